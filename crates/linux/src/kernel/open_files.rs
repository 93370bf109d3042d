//! Room for open files.
//!
//! cosched holds a few files open for each program: the socket of its shim, the switch of its
//! freezer, its counters. The limit that a process is started with (1024, usually) is the *soft*
//! one, kept low for the sake of old programs; every process may raise it up to the *hard* one.
//! cosched therefore raises its own as far as possible, and programs get the original limit. The
//! largest number that a run will need is known beforehand, so that a run that would fail in the
//! middle is refused at the start.

use cosched_core::format::count;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

/// Files that cosched opens once: the undo log, the sentinel's socket, what it waits with (three),
/// the marks of the run's cgroups (four), and those that are open for a moment while a program is
/// started, inspected, frozen, or looked at for spin loops (nine).
const ONCE: usize = 37;
/// Connections of clients, at each socket.
pub const VISITORS: usize = 16;
/// The run's own socket, and the one for metrics.
const SOCKETS: usize = 2;
/// Files for one program: its shim's socket, the two of its freezer, and its claim.
const EACH: usize = 4;
/// The hook server of a program, and sockets of its first processes.
const HOOK_SERVER: usize = 6;
/// Counters of one program, if they are requested.
const COUNTERS: usize = 4;
/// The weight of a unit: of some processes of a program, which take turns with others.
const UNIT: usize = 2;

/// How many files a process may hold open; `None`: any number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLimit {
    /// The number in force.
    pub soft: Option<u64>,
    /// How far it may be raised.
    pub hard: Option<u64>,
}

impl FileLimit {
    /// The caller's own limit.
    pub fn own() -> FileLimit {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        FileLimit { soft: current, hard: maximum }
    }

    /// Makes it the caller's own limit. Allocates nothing, so it may run between `fork` and `exec`.
    ///
    /// # Errors
    /// When the hard limit would rise and the caller may not do that.
    pub fn set(self) -> rustix::io::Result<()> {
        setrlimit(Resource::Nofile, Rlimit { current: self.soft, maximum: self.hard })
    }
}

/// Why a run cannot have the files that it needs.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} at once can take up to {needed} open files, and this process may have {limit}; \
     raise the hard limit (`ulimit -Hn {needed}` as root, LimitNOFILE= in a systemd unit), or run \
     fewer programs at once",
    count(*programs, "program", "programs")
)]
pub struct TooFewFiles {
    programs: usize,
    needed: usize,
    limit: u64,
}

/// The caller's limit, raised as far as possible; restored when this is dropped.
#[derive(Debug)]
pub struct Raised {
    found: FileLimit,
    /// How many files may be open besides all that are needed.
    spare: usize,
    /// How many units each program may have of these.
    units: usize,
}

impl Raised {
    /// Raises the limit, provided that it is then enough for so many programs, of which so many
    /// have the hook, besides the `open` files that are open already.
    pub(crate) fn for_programs(
        programs: usize,
        hooked: usize,
        counted: bool,
        open: usize,
    ) -> Result<Raised, TooFewFiles> {
        let found = FileLimit::own();
        let each = EACH + if counted { COUNTERS } else { 0 };
        let needed = open + ONCE + SOCKETS * VISITORS + programs * each + hooked * HOOK_SERVER;
        if let Some(limit) = found.hard.filter(|limit| *limit < needed as u64) {
            return Err(TooFewFiles { programs, needed, limit });
        }
        // No process is refused this. If cosched is refused it nevertheless, the original limit may
        // be enough.
        let _ = FileLimit { soft: found.hard, ..found }.set();
        let spare = spare(FileLimit::own().soft, needed);
        Ok(Raised { found, spare, units: units_each(spare, programs) })
    }

    /// How many units each program may have.
    pub(crate) fn units(&self) -> usize {
        self.units
    }

    /// How many files samples of programs' code may take, or the counters of threads. Programs run
    /// without, so half of the rest is left for what is not foreseen.
    pub(crate) fn for_observing(&self) -> usize {
        self.spare / 2
    }

    /// The original limit, which programs get.
    pub fn found(&self) -> FileLimit {
        self.found
    }
}

/// How many files may be open besides those that are needed.
fn spare(limit: Option<u64>, needed: usize) -> usize {
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    limit.saturating_sub(needed)
}

/// How many units each program may have of the files that are left.
fn units_each(spare: usize, programs: usize) -> usize {
    spare / UNIT / programs.max(1)
}

impl Drop for Raised {
    fn drop(&mut self) {
        // Lowering what was raised is always granted.
        let _ = self.found.set();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_the_hard_one_and_restored() {
        let found = FileLimit::own();
        let low = FileLimit { soft: Some(100), ..found };
        low.set().unwrap();
        let raised = Raised::for_programs(1, 0, false, 3).unwrap();
        assert_eq!(FileLimit::own(), FileLimit { soft: found.hard, ..found });
        assert_eq!(raised.found(), low);
        let limit = found.hard.and_then(|hard| usize::try_from(hard).ok()).unwrap_or(usize::MAX);
        assert_eq!(raised.for_observing(), (limit - ONCE - SOCKETS * VISITORS - EACH - 3) / 2);
        drop(raised);
        assert_eq!(FileLimit::own(), low);
        // Other tests in this process hold more files open.
        found.set().unwrap();
    }

    #[test]
    fn programs_share_the_files_that_are_left() {
        let spares = [50, 100, 103, 104, 1000].map(|limit| spare(Some(limit), 100));
        assert_eq!(spares, [0, 0, 3, 4, 900]);
        assert_eq!(spares.map(|spare| units_each(spare, 2)), [0, 0, 0, 1, 225]);
        assert!(units_each(spare(None, 100), 2) > 1000);
    }

    #[test]
    fn an_insufficient_hard_limit_is_refused_with_the_needed_number() {
        let hard = FileLimit::own().hard.unwrap_or(1 << 20);
        let programs = usize::try_from(hard).unwrap();
        let error = Raised::for_programs(programs, 1, true, 3).unwrap_err();
        assert!(error.needed as u64 > hard && error.limit == hard);
        assert!(error.to_string().contains(&format!("ulimit -Hn {}", error.needed)), "{error}");
    }
}
