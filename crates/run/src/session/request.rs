//! One run to be made, and one that was made.

use std::path::Path;

use cosched_core::engine::outcome::Ended;
use cosched_core::{Exit, Learning, Profile, SpinLoop};
use cosched_linux::control::ext::SchedulerBackend;
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
pub struct Request<'a> {
    /// The programs.
    pub workload: &'a Workload,
    /// The policy that decides.
    pub kind: Kind,
    /// How policy and machine do their work.
    pub how: &'a How,
    /// A folder for the programs' outputs and run.json.
    pub out: Option<&'a Path>,
    /// Whether standard output is needed for something else.
    pub stdout_is_taken: bool,
    /// Whether programs write to the files that the workload names for their outputs.
    pub redirects: bool,
    /// What is known of each program.
    pub profiles: &'a [Profile],
    /// Whether to count instructions and cache misses.
    pub count: bool,
    /// How the programs come to be there.
    pub origins: Origins<'a>,
    /// The spin loops that are known from earlier runs.
    pub spin_loops: &'a [SpinLoop],
    /// What else the user requests.
    pub extras: Extras,
}

/// What the user requests beside the run itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras {
    /// How much is told on the terminal.
    pub talk: Talk,
    /// Which outputs of programs have the program's name before each line.
    pub labels: Labels,
    /// Whether the files of an earlier run make room in the output folder.
    pub force: bool,
    /// Whether programs are started as without cosched, with as many threads as they take.
    pub as_they_are: bool,
    /// Whether the solo times are from runs of the same comparison.
    pub solo_runs: bool,
}

/// Which outputs are labelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Lines of standard output.
    pub stdout: bool,
    /// Lines of standard error.
    pub stderr: bool,
}

impl<'a> Request<'a> {
    /// A run that neither shows nor keeps outputs: cosched starts the programs, and counts
    /// nothing. The profiles are those of the programs, one by one.
    pub fn new(
        workload: &'a Workload,
        kind: Kind,
        how: &'a How,
        profiles: &'a [Profile],
    ) -> Request<'a> {
        Request {
            workload,
            kind,
            how,
            out: None,
            stdout_is_taken: true,
            redirects: false,
            profiles,
            count: false,
            origins: Origins::Started,
            spin_loops: &[],
            extras: Extras::default(),
        }
    }

    /// Whether the scheduler in the kernel is to schedule the programs' threads.
    pub(super) fn is_by_ext(&self) -> bool {
        self.how.policy.scheduler == Some(SchedulerBackend::Ext)
    }

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
pub enum Origins<'a> {
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
pub struct Ran {
    /// What came of it.
    pub result: RunResult,
    /// What trials have shown of each program, in the workload's order.
    pub learning: Vec<Learning>,
    /// Whether it went to its end, or what ended it.
    pub ended: Ended,
    /// What went wrong after the programs had run; the result is whole all the same.
    pub troubles: Vec<Failure>,
}

impl Ran {
    /// Tells what went wrong after the programs had run; says whether nothing did.
    pub fn report_troubles(&self) -> bool {
        self.troubles.iter().for_each(|trouble| say(format_args!("{}", trouble.text())));
        self.troubles.is_empty()
    }

    /// Whether every program ended with status 0.
    pub fn all_succeeded(&self) -> bool {
        self.result.programs.iter().all(|program| program.exit == Some(Exit::Code(0)))
    }
}
