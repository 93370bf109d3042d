//! Programs that start after others have ended: the key `after`.
//!
//! What it names is looked at as a whole, once all names are known: every program in it must be
//! there, must end some time, and must not wait for the one that waits for it.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use toml::{Spanned, Value};

use super::error::Problem;
use super::{ProgramSpec, Repeat, Workload, shown};
use crate::nearest::nearest;

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

/// All elements of the key; or what is wrong, and with which of them.
pub(super) fn list(elements: Vec<Spanned<Value>>) -> Result<Vec<After>, (Range<usize>, Problem)> {
    let read = |element: Spanned<Value>| {
        let place = element.span();
        awaited(element.into_inner()).map_err(|problem| (place, problem))
    };
    elements.into_iter().map(read).collect()
}

/// Checks what all programs wait for. An error tells the position of the program, that of the
/// element of its key, and what is wrong.
pub(super) fn check(programs: &[ProgramSpec]) -> Result<(), (usize, usize, Problem)> {
    let names = programs.iter().enumerate().map(|(slot, spec)| (spec.name.as_str(), slot));
    let slots: HashMap<&str, usize> = names.collect();
    for (slot, spec) in programs.iter().enumerate() {
        let mut seen = Vec::new();
        for (element, After { program, .. }) in spec.after.iter().enumerate() {
            let problem = match slots.get(program.as_str()) {
                None => Problem::AfterUnknown {
                    program: program.clone(),
                    nearest: nearest(program, programs.iter().map(|spec| &spec.name[..]))
                        .map(str::to_owned),
                },
                Some(other) if *other == slot => Problem::AfterItself,
                Some(other) if seen.contains(other) => Problem::AfterTwice(program.clone()),
                Some(other) if programs[*other].repeat == Repeat::UntilAllFinish => {
                    Problem::AfterEndless(program.clone())
                }
                Some(other) => {
                    seen.push(*other);
                    continue;
                }
            };
            return Err((slot, element, problem));
        }
    }
    match cycle(programs, &slots) {
        None => Ok(()),
        Some(cycle) => {
            let first = cycle[0];
            let next = &programs[*cycle.get(1).unwrap_or(&first)].name;
            let element = programs[first].after.iter().position(|after| after.program == *next);
            let problem = Problem::AfterCycle(in_words(&cycle, programs));
            Err((first, element.unwrap_or(0), problem))
        }
    }
}

/// Programs each of which waits for the next one, and the last one for the first.
fn cycle(programs: &[ProgramSpec], slots: &HashMap<&str, usize>) -> Option<Vec<usize>> {
    let awaited = |slot: usize| programs[slot].after.iter().map(|after| slots[&*after.program]);
    let mut open: Vec<usize> = programs.iter().map(|spec| spec.after.len()).collect();
    let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); programs.len()];
    for slot in 0..programs.len() {
        awaited(slot).for_each(|other| waiting[other].push(slot));
    }
    // Programs that can start, in an order in which they might.
    let mut ready: Vec<usize> = (0..programs.len()).filter(|slot| open[*slot] == 0).collect();
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
    let mut at = (0..programs.len()).find(|slot| open[*slot] > 0)?;
    while !path.contains(&at) {
        path.push(at);
        at = awaited(at).find(|other| open[*other] > 0)?;
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
