//! Programs that start after others have ended: the key `after`.
//!
//! What it names is looked at as a whole, once all names are known: every program in it must be
//! there, must end some time, and must not wait for the one that waits for it.

use std::collections::{HashMap, HashSet};

use toml::Value;

use super::error::Problem;
use super::mistakes::MOST;
use super::shown;
use super::spec::{ProgramSpec, Workload};
use crate::nearest::nearest;
use cosched_core::engine::Repeat;

/// A program that has to end before another one starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Its name.
    pub program: String,
    /// Whether it may end in any way; otherwise each of its runs must return 0.
    pub any_exit: bool,
}

/// The exit that lets a program start in any case.
const ANY: &str = "any";
/// More programs of a cycle than these are not spelt out.
const MOST_NAMES: usize = 8;

impl Workload {
    /// Whether a program comes only when another one has ended, directly or by way of others.
    pub fn comes_after(&self, program: &ProgramSpec, other: &ProgramSpec) -> bool {
        let awaited = |spec: &ProgramSpec| -> Vec<String> {
            spec.after.iter().map(|after| after.program.clone()).collect()
        };
        let (mut seen, mut open) = (HashSet::new(), awaited(program));
        while let Some(name) = open.pop() {
            if name == other.name {
                return true;
            }
            if let Some(spec) = self.programs.iter().find(|spec| spec.name == name) {
                if seen.insert(name) {
                    open.extend(awaited(spec));
                }
            }
        }
        false
    }
}

/// What one element of the key says.
pub(super) fn awaited(element: Value) -> Result<After, Problem> {
    match element {
        Value::String(program) => Ok(After { program, any_exit: false }),
        Value::Table(mut table) => {
            let program = table.remove("program");
            let exit = table.remove("exit");
            let (Some(Value::String(program)), true) = (program, table.is_empty()) else {
                return Err(Problem::AfterElement);
            };
            let any_exit = match exit {
                None | Some(Value::Integer(0)) => false,
                Some(Value::String(rule)) if rule == ANY => true,
                Some(Value::Integer(code)) => return Err(Problem::AfterExit(code.to_string())),
                Some(Value::String(rule)) => return Err(Problem::AfterExit(format!("'{rule}'"))),
                Some(other) => return Err(Problem::AfterExit(other.type_str().to_owned())),
            };
            Ok(After { program, any_exit })
        }
        _ => Err(Problem::AfterElement),
    }
}

/// Checks what all programs wait for. Each mistake is the position of the program, that of the
/// element of its key, and what is wrong. An unknown name may be that of another program that is
/// still `unnamed`.
pub(super) fn check(programs: &[ProgramSpec], unnamed: &[usize]) -> Vec<(usize, usize, Problem)> {
    let mut slots: HashMap<&str, usize> = HashMap::new();
    for (slot, spec) in programs.iter().enumerate() {
        slots.entry(&spec.name).or_insert(slot);
    }
    let mut mistakes = Vec::new();
    let mut awaited: Vec<Vec<usize>> = vec![Vec::new(); programs.len()];
    for (slot, spec) in programs.iter().enumerate() {
        for (element, After { program, .. }) in spec.after.iter().enumerate() {
            let problem = match slots.get(program.as_str()) {
                None if mistakes.len() >= MOST || unnamed.iter().any(|it| *it != slot) => continue,
                None => Problem::AfterUnknown {
                    program: program.clone(),
                    nearest: nearest(program, programs.iter().map(|spec| &spec.name[..]))
                        .map(str::to_owned),
                },
                Some(other) if *other == slot => Problem::AfterItself,
                Some(other) if awaited[slot].contains(other) => {
                    Problem::AfterTwice(program.clone())
                }
                Some(other) if programs[*other].repeat == Repeat::UntilAllFinish => {
                    Problem::AfterEndless(program.clone())
                }
                Some(other) => {
                    awaited[slot].push(*other);
                    continue;
                }
            };
            mistakes.push((slot, element, problem));
        }
    }
    while let Some(cycle) = cycle(&awaited) {
        let first = cycle[0];
        let next = &programs[*cycle.get(1).unwrap_or(&first)].name;
        let element = programs[first].after.iter().position(|after| after.program == *next);
        let problem = Problem::AfterCycle(in_words(&cycle, programs));
        mistakes.push((first, element.unwrap_or(0), problem));
        cycle.iter().for_each(|slot| awaited[*slot].clear());
    }
    mistakes
}

/// Programs each of which waits for the next one, and the last one for the first. `awaited` are
/// those that each program waits for.
fn cycle(awaited: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut open: Vec<usize> = awaited.iter().map(Vec::len).collect();
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); awaited.len()];
    for (slot, others) in awaited.iter().enumerate() {
        others.iter().for_each(|other| waiting[*other].push(slot));
    }
    // Programs that can start, in an order in which they might.
    let mut ready: Vec<usize> = (0..awaited.len()).filter(|slot| open[*slot] == 0).collect();
    while let Some(done) = ready.pop() {
        for slot in &waiting[done] {
            open[*slot] -= 1;
            if open[*slot] == 0 {
                ready.push(*slot);
            }
        }
    }
    // Each of the others waits for another of these, so the way along them comes back.
    let mut path: Vec<usize> = Vec::new();
    let mut at = (0..awaited.len()).find(|slot| open[*slot] > 0)?;
    while !path.contains(&at) {
        path.push(at);
        at = awaited[at].iter().copied().find(|other| open[*other] > 0)?;
    }
    let begin = path.iter().position(|slot| *slot == at)?;
    Some(path.split_off(begin))
}

fn in_words(cycle: &[usize], programs: &[ProgramSpec]) -> String {
    let names = cycle.iter().chain(cycle.first()).map(|slot| shown(&programs[*slot].name));
    let mut names: Vec<String> = names.collect();
    if names.len() > MOST_NAMES {
        names.splice(MOST_NAMES / 2..names.len() - MOST_NAMES / 2, ["…".to_owned()]);
    }
    names.join(" after ")
}
