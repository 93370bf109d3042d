//! Programs that are left running while others have their turn.

use std::collections::BTreeSet;

use cosched_core::{Aspect, Happening, Nanos, ProgramId, Refusal};

use super::Linux;
use super::program::Live;
use crate::control::freezer::stops_itself;
use crate::observe::dependencies;

/// The most processes that are looked at before a freeze.
const MOST_PROCESSES: usize = 32;
/// A program that could not be frozen again and again for so long, since it catches SIGCONT, is
/// left running for good. Supervisors such as `mpirun` catch it before they have started others.
const LONG: Nanos = Nanos::from_secs(2);

impl Linux {
    /// A program is left running from now on. The user is told once.
    pub(super) fn forbid_freezing(&mut self, id: ProgramId, why: Refusal) {
        if self.inspector.is_first_report(id) {
            let text = format!("is left running while others have their turn: it {}", held(why));
            self.note(id, text);
            self.tell(Happening::Unfreezable(id, why));
        }
    }

    /// A program was not frozen for this reason, as its freezer has found.
    pub(super) fn could_not_freeze(&mut self, id: ProgramId, why: Refusal) {
        if matches!(why, Refusal::StopsItself | Refusal::WaitsForEvents) {
            self.forbid_freezing(id, why);
        }
        self.tell(Happening::Refused(id, Aspect::Frozen, why));
    }

    /// Why a program must not be paused while it waits as it does now. It is then left running for
    /// good.
    pub(super) fn must_wait_undisturbed(&mut self, live: &Live) -> Option<Refusal> {
        if self.job(live.id).freezable_for_sure {
            return None;
        }
        if live.not_frozen.is_some_and(|(first, last)| last.since(first) >= LONG) {
            self.forbid_freezing(live.id, Refusal::CatchesContinue);
            return Some(Refusal::CatchesContinue);
        }
        let (stats, proc) = (live.tree.stats(&self.proc), &self.proc);
        let parents: BTreeSet<i32> = stats.iter().map(|stat| stat.ppid).collect();
        let is_told = |pid| live.freezer.needs_processes() && parents.contains(&pid);
        let why = stats.iter().take(MOST_PROCESSES).find_map(|stat| match stat.pid {
            // A freezer that sends signals looks again right before: a wait may have begun.
            pid if dependencies::waits_for_events(proc, pid) => Some(Refusal::WaitsForEvents),
            pid if is_told(pid) && stops_itself(pid, proc).unwrap_or(false) => {
                Some(Refusal::StopsItself)
            }
            pid if is_told(pid) && dependencies::waits_for_stops(proc, pid) => {
                Some(Refusal::WaitsForStops)
            }
            _ => None,
        })?;
        self.forbid_freezing(live.id, why);
        Some(why)
    }
}

impl Live {
    pub(super) fn was_not_frozen(&mut self, why: Refusal, now: Nanos) {
        if why == Refusal::CatchesContinue {
            let before = self.not_frozen.filter(|(_, last)| now.since(*last) < LONG * 5);
            self.not_frozen = Some((before.map_or(now, |(first, _)| first), now));
        }
    }
}

fn held(why: Refusal) -> &'static str {
    match why {
        Refusal::HoldsGpu => "holds a GPU device (freezable = true overrides this)",
        Refusal::Listens => "listens on a socket (freezable = true overrides this)",
        Refusal::HoldsTerminal => "holds a terminal (freezable = true overrides this)",
        Refusal::WaitsForEvents => {
            "waits in a system call that a pause would end early (EINTR), and catches no signal \
             (freezable = true overrides this)"
        }
        Refusal::WaitsForStops => {
            "waits for processes that stop or continue (WUNTRACED, WCONTINUED), and pauses by \
             signals stop its own (freezable = true overrides this)"
        }
        Refusal::StopsItself => {
            "has a process or a parent that stops itself when its child is stopped by a signal (as \
             `script` and `su` do), and nothing would continue it"
        }
        Refusal::CatchesContinue => {
            "catches SIGCONT, which pauses by signals send (freezable = true overrides this)"
        }
        _ => "must not be frozen",
    }
}
