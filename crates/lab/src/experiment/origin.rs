//! Whether a run that lies in a folder is one of this comparison.
//!
//! *Problem.* Rounds are samples of one thing, and a folder takes whatever a user puts there: a run
//! with another quantum, of another command, or a copy of another round's run.
//!
//! *Idea.* What a run tells of itself is held against what it [would tell](super::Site::expected)
//! if it were made now. No two real runs are the same in every figure, and simulated rounds have
//! seeds of their own, so copies are found, too. The rivals are told by what they change: commands
//! (`split`), threads (`one-thread`), variables (`passive`, `llvm`).

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use cosched_core::{Exit, Nanos};
use cosched_results::result::{Context, ProgramContext, ProgramResult, RunResult};
use cosched_workload::shown_path;
use serde::Serialize;
use serde_json::{Value, json};

/// Where a run differs from what it would have to be; in words.
pub(super) fn check(run: &RunResult, expected: &Context, times_alone: bool) -> Result<(), String> {
    let names: Vec<&String> = run.programs.iter().map(|program| &program.name).collect();
    let expected_names: Vec<&String> = expected.programs.iter().map(|spec| &spec.name).collect();
    let mut differ = Differences::default();
    differ.hold("the policy", &run.policy, &expected.policy);
    differ.hold("the programs", &names, &expected_names);
    // What follows from these is not worth a word.
    if differ.none() {
        differ.hold("--placement", &run.placement, &expected.placement);
        differ.hold("--quantum (s)", run.quantum_seconds, expected.quantum.map(seconds));
        let frozen = expected.max_frozen.map(seconds);
        differ.hold_known("--max-frozen (s)", run.max_frozen_seconds, frozen);
        differ.hold_known("--fill", run.fill, expected.fill);
        differ.hold("the machine", &run.machine, &expected.machine);
        if let (Some(there), Some(now)) = (&run.simulation, &expected.simulation) {
            differ.hold("the seed", there.seed, now.seed);
            differ.hold("--kernel", &there.kernel, &now.kernel);
            differ.hold("--set", &there.set, &now.set);
        }
        for (program, spec) in run.programs.iter().zip(&expected.programs) {
            differ.program(program, spec, times_alone);
        }
    }
    match differ.none() {
        true => Ok(()),
        false => Err(differ.0.join(". ")),
    }
}

/// What is not the same, each in words.
#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn none(&self) -> bool {
        self.0.is_empty()
    }

    fn hold(&mut self, name: &str, there: impl Serialize, now: impl Serialize) {
        let (there, now): (Value, Value) = (json!(there), json!(now));
        if there != now {
            self.0.push(format!("there, {name}: {there}; now: {now}"));
        }
    }

    /// The same of what older files do not tell.
    fn hold_known<T: Serialize>(&mut self, name: &str, there: Option<T>, now: Option<T>) {
        if there.is_some() {
            self.hold(name, there, now);
        }
    }

    fn program(&mut self, program: &ProgramResult, spec: &ProgramContext, times_alone: bool) {
        let of = |what: &str| format!("{what} of the program '{}'", spec.name);
        self.hold(&of("command"), &program.command, &spec.command);
        self.hold(&of("threads"), program.requested(), spec.threads);
        self.hold(&of("after"), &program.after, &spec.after);
        self.hold_known(&of("variables"), program.environment.as_ref(), spec.environment.as_ref());
        if let (Some(there), Some(now)) = (&program.terms, &spec.terms) {
            self.hold(&of("weight"), there.weight, now.weight);
            self.hold(&of("group"), &there.group, &now.group);
            self.hold(&of("freezable"), there.freezable, now.freezable);
        }
        let done = program.turnaround_seconds.is_some() && program.exit == Some(Exit::Code(0));
        if times_alone && done {
            let measured = |known| if known { "measured" } else { "unknown" };
            let solo = program.solo_seconds.or(program.rejected_solo_seconds);
            self.hold(&of("solo time"), measured(solo.is_some()), measured(true));
        }
    }
}

/// As `run.json` has times: rounded to microseconds.
fn seconds(time: Nanos) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e6
}

/// The real runs that were looked at, so that none counts twice.
#[derive(Default)]
pub(super) struct SeenRuns(HashMap<(String, u64), Vec<(RunResult, PathBuf)>>);

impl SeenRuns {
    /// Checks that a run is no copy of one before it; in words.
    pub(super) fn check(&mut self, run: &RunResult, folder: &Path) -> Result<(), String> {
        // Without noise, variants can be the same in every figure.
        if run.machine.is_simulated() {
            return Ok(());
        }
        let alike =
            self.0.entry((run.started_at.clone(), run.total_seconds.to_bits())).or_default();
        if let Some((_, original)) = alike.iter().find(|(other, _)| other == run) {
            return Err(format!("it is a copy of {}", shown_path(original)));
        }
        alike.push((run.clone(), folder.to_owned()));
        Ok(())
    }
}
