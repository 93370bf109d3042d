//! The processes that come from one place: programs, helpers and `cosched` itself.
//!
//! Environments are inherited, so a variable marks all these processes, whatever their parents are
//! by now.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cosched_core::CpuSet;
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::{Proc, ProcState};
use cosched_linux::process::tree::Process;
use rustix::process::Signal;

/// The variable that marks them.
pub(crate) const MARK: &str = "COSCHED_TEST_PLACE";
/// The names of cosched's own processes: a helper is called `exe` until it has given itself its
/// name.
const OWN: [&str; 5] = ["cosched", "exe", "csentinel", "shim", "setpriv"];

/// Finds marked processes.
#[derive(Debug)]
pub(crate) struct Marked {
    entry: String,
    proc: Proc,
}

impl Marked {
    pub(crate) fn by(folder: &Path) -> Marked {
        Marked { entry: format!("{MARK}={}", folder.display()), proc: Proc::default() }
    }

    /// All of them that live.
    pub(crate) fn all(&self) -> Vec<Process> {
        let has_mark = |pid: &i32| {
            let environment = fs::read(self.proc.folder(*pid).join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|entry| entry == self.entry.as_bytes())
        };
        let found = self.proc.processes().unwrap().into_iter().filter(has_mark);
        let found = found.filter_map(|pid| Process::find(&self.proc, pid).ok());
        found.filter(|process| self.lives(*process)).collect()
    }

    /// Those that belong to programs.
    pub(crate) fn programs(&self) -> Vec<Process> {
        self.which(|name| !OWN.contains(&name))
    }

    /// Those with a name.
    pub(crate) fn named(&self, expected: &str) -> Vec<Process> {
        self.which(|name| name == expected)
    }

    fn which(&self, fits: impl Fn(&str) -> bool) -> Vec<Process> {
        let name = |process: &Process| {
            fs::read_to_string(self.proc.folder(process.pid).join("comm")).unwrap_or_default()
        };
        // One that has ended meanwhile has no name.
        let fits = |name: &str| !name.is_empty() && fits(name);
        self.all().into_iter().filter(|process| fits(name(process).trim_end())).collect()
    }

    pub(crate) fn lives(&self, process: Process) -> bool {
        process.look(&self.proc).is_some()
    }

    pub(crate) fn is_stopped(&self, process: Process) -> bool {
        process.look(&self.proc).is_some_and(|stat| stat.state == ProcState::Stopped)
    }

    /// Whether a program's process is frozen in its cgroup, or stopped.
    pub(crate) fn is_held(&self, process: Process) -> bool {
        let frozen = |folder: &Path| {
            let events = fs::read_to_string(folder.join("cgroup.events")).unwrap_or_default();
            let state = fs::read_to_string(folder.join("freezer.state")).unwrap_or_default();
            events.lines().any(|line| line == "frozen 1")
                || state.trim() != "THAWED" && !state.is_empty()
        };
        self.is_stopped(process)
            || super::backend::cgroups_of(process.pid).iter().any(|folder| frozen(folder))
    }

    /// The CPUs that a process may run on; `None` once it has ended.
    pub(crate) fn cpus(&self, process: Process) -> Option<CpuSet> {
        affinity::get(process.pid).ok().filter(|_| self.lives(process))
    }

    pub(crate) fn signal(&self, process: Process, signal: Signal) {
        process.signal(&self.proc, signal).unwrap();
    }

    /// CPU time that a process has used, in clock ticks.
    pub(crate) fn ticks(&self, process: Process) -> u64 {
        process.look(&self.proc).map_or(0, |stat| stat.utime + stat.stime)
    }

    /// Continues cosched's own processes. A sentinel that a test has stopped undoes nothing, and
    /// does not end.
    pub(crate) fn continue_own(&self) {
        for process in self.which(|name| OWN.contains(&name)) {
            let _ = process.signal(&self.proc, Signal::CONT);
        }
    }

    /// Ends the programs; helpers end by themselves when cosched and the programs are gone. Says
    /// whether all have ended in time.
    pub(crate) fn end(&self) -> bool {
        let until = Instant::now() + Duration::from_secs(5);
        while !self.all().is_empty() && Instant::now() < until {
            for process in self.programs() {
                let _ = process.signal(&self.proc, Signal::KILL);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.all().is_empty()
    }
}
