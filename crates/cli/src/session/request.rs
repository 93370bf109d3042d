//! One run to be made, and one that was made.

use std::path::Path;

use cosched_core::engine::outcome::Ended;
use cosched_core::{Exit, Profile};
use cosched_linux::machine::Origin;
use cosched_linux::process::launch::LineLabels;
use cosched_linux::process::tree::Process;
use cosched_policy::Kind;
use cosched_results::result::RunResult;
use cosched_workload::{ProgramSpec, Workload, escaped};

use crate::how::How;
use crate::ui::failure::Failure;
use crate::ui::{Talk, say};

/// One run to be made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) kind: Kind,
    pub(crate) how: &'a How,
    /// A folder for the programs' outputs and run.json.
    pub(crate) out: Option<&'a Path>,
    /// Whether standard output is needed for something else.
    pub(crate) stdout_is_taken: bool,
    /// Whether programs write to the files that the workload names for their outputs.
    pub(crate) redirects: bool,
    /// What is known of each program.
    pub(crate) profiles: &'a [Profile],
    /// Whether to count instructions and cache misses.
    pub(crate) count: bool,
    /// How the programs come to be there.
    pub(crate) origins: Origins<'a>,
    /// What else the user requests.
    pub(crate) extras: Extras,
}

/// What the user requests beside the run itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extras {
    /// How much is told on the terminal.
    pub(crate) talk: Talk,
    /// Which outputs of programs have the program's name before each line.
    pub(crate) labels: Labels,
    /// Whether the files of an earlier run make room in the output folder.
    pub(crate) force: bool,
}

/// Which outputs are labelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

impl Request<'_> {
    /// Whether what programs tell of their progress is of use.
    pub(super) fn hears_progress(&self) -> bool {
        self.kind.hears_progress(self.how.policy.goal.unwrap_or_default())
    }

    /// What stands before each line of a program's outputs: its name, and so many blanks that the
    /// lines of all programs begin at the same place.
    pub(super) fn labels(&self, spec: &ProgramSpec) -> LineLabels {
        let Labels { stdout, stderr } = self.extras.labels;
        let shown = |spec: &ProgramSpec| escaped(&spec.name);
        let names = self.workload.programs.iter().map(shown);
        let longest = names.map(|name| name.chars().count()).max().unwrap_or_default();
        let label = format!("{:longest$} | ", shown(spec));
        LineLabels { stdout: stdout.then(|| label.clone()), stderr: stderr.then_some(label) }
    }
}

/// How the programs of a run come to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origins<'a> {
    /// cosched starts them.
    Started,
    /// cosched starts the only one, in its own place.
    Child,
    /// They run already: the first process of each.
    Running(&'a [Process]),
}

impl Origins<'_> {
    pub(super) fn of(self, slot: usize) -> Origin {
        match self {
            Origins::Started => Origin::Started,
            Origins::Child => Origin::Child,
            Origins::Running(processes) => Origin::Running(processes[slot]),
        }
    }
}

/// A run that was made.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) result: RunResult,
    pub(crate) ended: Ended,
    /// What went wrong after the programs had run; the result is whole all the same.
    pub(crate) troubles: Vec<Failure>,
}

impl Ran {
    /// Tells what went wrong after the programs had run; says whether nothing did.
    pub(crate) fn report_troubles(&self) -> bool {
        self.troubles.iter().for_each(|trouble| say(format_args!("{}", trouble.text())));
        self.troubles.is_empty()
    }

    /// Whether every program ended with status 0.
    pub(crate) fn all_succeeded(&self) -> bool {
        self.result.programs.iter().all(|program| program.exit == Some(Exit::Code(0)))
    }
}
