//! What a command needs of the programs that it reads, besides keys that are right.

use std::io::ErrorKind;
use std::path::Path;

use cosched_sim::{Model, ModelError};
use cosched_workload::{
    ExecutableError, ProgramSpec, Reading, Workload, WorkloadError, shown_path,
};
use rustix::process::{Resource, getrlimit};

use super::check_launcher;
use crate::session::{Session, check_alone, check_outputs, check_together};
use crate::ui::failure::Failure;

/// Bytes of command and environment that the kernel passes on whatever the stack's limit is.
const LEAST_PASSED_ON: u64 = 128 << 10;
const MOST_PASSED_ON: u64 = 6 << 20;
/// At least what cosched adds to the environment, and the kernel to the command (two paths).
const ADDED: u64 = 16 << 10;
const MIB: f64 = (1 << 20) as f64;

/// What a command does with programs.
#[derive(Clone, Copy)]
pub enum Needs<'a> {
    /// It runs them.
    Runs(Runs<'a>),
    /// It has their models run on this machine.
    Models(&'a Session),
}

/// How programs are run.
#[derive(Clone, Copy, Default)]
pub struct Runs<'a> {
    /// Each by itself.
    pub alone: bool,
    /// The run with the others is predicted, which needs to know when each starts.
    pub predicted: bool,
    /// With the others.
    pub together: bool,
    /// One after another: a program may make what the next ones need.
    pub in_order: bool,
    /// Their outputs go to the files that the jobs file names.
    pub redirects: bool,
    /// The folder for other outputs, where `redirects` holds.
    pub out: Option<&'a Path>,
}

impl Needs<'_> {
    /// The workload, if the command can use it.
    ///
    /// # Errors
    /// When there is a mistake in it: all of them.
    pub(super) fn checked(self, reading: Reading) -> Result<Workload, Failure> {
        match self {
            Needs::Models(machine) => {
                for (_, spec) in reading.right(&["env", "threads", "model"]) {
                    let mistakes = model_on(spec, machine).err().into_iter().flatten();
                    mistakes.for_each(|mistake| reading.refuse(mistake));
                }
            }
            Needs::Runs(runs) => runs.check(&reading),
        }
        reading.finish().map_err(Failure::input)
    }
}

impl Runs<'_> {
    fn check(self, reading: &Reading) {
        let refuse = |checked: Result<(), WorkloadError>| {
            checked.unwrap_or_else(|mistake| reading.refuse(mistake));
        };
        let workload = reading.workload();
        let path = std::env::var_os("PATH");
        for (slot, spec) in reading.right(&["command", "cwd", "env"]) {
            let executable = || spec.executable(path.as_deref()).map(drop).map_err(unusable);
            refuse(check_launcher(spec).and_then(|()| executable()));
            if !(self.in_order && slot > 0) {
                refuse(spec.check_script().map_err(unusable));
            }
            refuse(check_size(spec));
            refuse(check_folder(spec));
        }
        for (_, spec) in reading.right(&["after"]).filter(|_| self.predicted) {
            refuse(check_start(spec));
        }
        for (_, spec) in reading.right(&["name", "cwd", "stdin", "after"]) {
            refuse(self.check_input(workload, spec));
        }
        if self.redirects {
            let writers: Vec<_> = reading.right(&["name", "cwd"]).collect();
            check_outputs(&writers, self.out)
                .into_iter()
                .for_each(|mistake| reading.refuse(mistake));
        }
        // Real programs need no model, but a wrong one is a mistake here, too.
        for (_, spec) in reading.right(&["threads", "model"]) {
            let read = |table| model(spec, table, spec.threads.unwrap_or(1)).err();
            let mistakes = spec.model.as_ref().and_then(read).into_iter().flatten();
            mistakes.for_each(|mistake| reading.refuse(mistake));
        }
    }

    fn check_input(self, workload: &Workload, spec: &ProgramSpec) -> Result<(), WorkloadError> {
        if self.alone {
            check_alone(workload, spec)?;
        }
        if self.together {
            check_together(workload, spec)?;
        }
        Ok(())
    }
}

fn unusable(error: ExecutableError) -> WorkloadError {
    let what = format!("command {}", error.problem);
    WorkloadError::Unusable { place: *error.place, what }
}

/// Checks that the kernel passes command and environment on: it takes the words, each with a zero
/// byte and a pointer, up to a quarter of the stack's limit.
fn check_size(spec: &ProgramSpec) -> Result<(), WorkloadError> {
    let environment = spec.environment(std::env::vars_os());
    let words = spec.command.iter().map(|word| word.len() + 1);
    let variables = environment.iter().map(|(name, value)| name.len() + value.len() + 2);
    let bytes: usize = words.chain(variables).map(|bytes| bytes + size_of::<usize>()).sum();
    let stack = getrlimit(Resource::Stack).current.unwrap_or(u64::MAX);
    let most = (stack / 4).clamp(LEAST_PASSED_ON, MOST_PASSED_ON);
    if bytes as u64 + ADDED <= most {
        return Ok(());
    }
    let by_limit = if most < MOST_PASSED_ON { ", or raise `ulimit -s`" } else { "" };
    Err(WorkloadError::Unusable {
        place: spec.places.command.clone(),
        what: format!(
            "command has {} words, which take {:.1} MiB with the environment, and the kernel \
             passes on at most {:.1} MiB; put the words into a file that the program \
             reads{by_limit}",
            spec.command.len(),
            bytes as f64 / MIB,
            most as f64 / MIB,
        ),
    })
}

/// Checks that the user may enter the folder in which the program starts. Without the key `cwd`
/// that is the current one, or the jobs file's, which nothing has been looked up in.
fn check_folder(spec: &ProgramSpec) -> Result<(), WorkloadError> {
    let entered = spec.cwd.join(".").metadata();
    let is_closed = entered.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
    match is_closed {
        false => Ok(()),
        true => Err(WorkloadError::Unusable {
            place: spec.places.command.clone(),
            what: format!(
                "starts in {}: permission denied for this user; go to another folder (`cd`), or \
                 name one with `cwd` in a jobs file",
                shown_path(&spec.cwd)
            ),
        }),
    }
}

fn check_start(spec: &ProgramSpec) -> Result<(), WorkloadError> {
    match spec.after.is_empty() {
        true => Ok(()),
        false => Err(WorkloadError::Unusable {
            place: spec.places.command.clone(),
            what: "after: `cosched advise` predicts programs that start at a known time; leave \
                   the key out, or measure with `cosched compare`"
                .to_owned(),
        }),
    }
}

/// Reads the simulator's model of a program with this thread count.
fn model(
    spec: &ProgramSpec,
    table: &toml::Table,
    threads: u16,
) -> Result<Model, Vec<WorkloadError>> {
    let mut table = table.clone();
    if spec.malleable {
        table.insert("malleable".to_owned(), true.into());
    }
    let wrong = |mistake: ModelError| WorkloadError::Unusable {
        place: spec.places.in_model(mistake.path()).clone(),
        what: format!("model: {}", mistake.to_string().trim_end()),
    };
    Model::read_all(&table, threads).map_err(|mistakes| mistakes.into_iter().map(wrong).collect())
}

/// The simulator's model of a program on this machine.
///
/// # Errors
/// When the program has no model, or a wrong one: all mistakes in it.
pub fn model_on(spec: &ProgramSpec, machine: &Session) -> Result<Model, Vec<WorkloadError>> {
    match &spec.model {
        Some(table) => model(spec, table, machine.threads(spec)),
        None => Err(vec![WorkloadError::Unusable {
            place: spec.places.command.clone(),
            what: "the program has no [program.model], which the simulator needs; \
                   `cosched sim --from RUN --jobs-file` writes the models of a recorded run"
                .to_owned(),
        }]),
    }
}
