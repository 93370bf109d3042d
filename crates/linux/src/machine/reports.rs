//! Reading from the shims: how programs begin and end.
//!
//! A program has *ended* once its command has and no process of its session is left. Background
//! jobs of a script therefore count as part of it. Daemons, which open a session of their own, do
//! not delay its end; they are detached, left running and reported.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use cosched_core::format::count;
use cosched_core::{Event, Exit, Happening, Nanos, ProgramId, Usage};

use super::program::{CommandEnd, Live, Parent};
use super::{Linux, MachineError};
use crate::observe::counters::Counters;
use crate::process::launch::{Launched, Reports, ShimReport, StartStep};
use crate::safety::undo::Record;

/// How long to wait for the last report of a shim with no process left.
const LAST_REPORT: Nanos = Nanos::from_secs(1);
/// How long to wait for the last lines of outputs.
const LAST_LINES: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

impl Linux {
    pub(super) fn hear(&mut self, id: ProgramId) -> Result<(), MachineError> {
        let Some(mut live) = self.live.remove(&id) else { return Ok(()) };
        if matches!(live.parent, Parent::Other(_)) {
            return self.end_attached(live);
        }
        let (reports, closed) = match &mut live.parent {
            Parent::Shim(shim) => read(&mut shim.reports),
            _ => (Vec::new(), false),
        };
        for report in reports {
            match report {
                ShimReport::Forked { process } => {
                    self.expect(&mut live, process)?;
                    if let Parent::Shim(shim) = &mut live.parent {
                        shim.is_known();
                    }
                }
                ShimReport::Started { at, process } => {
                    self.begin(&mut live, process, self.clock.of_monotonic(at))?;
                }
                ShimReport::Failed { step, errno } => {
                    self.note_error(id, failed_text(step, errno));
                    let exit = Exit::Failed(errno);
                    live.ended = Some(CommandEnd::unseen(exit, Usage::default()));
                }
                ShimReport::Exited { at, exit, usage } => {
                    let at = Some(self.clock.of_monotonic(at));
                    live.ended = Some(CommandEnd { exit, usage, at });
                }
                ShimReport::Gone { at, usage } => {
                    let exit = live.ended.map_or(Exit::Unknown, |ended| ended.exit);
                    let at = Some(self.clock.of_monotonic(at));
                    live.ended = Some(CommandEnd { exit, usage, at });
                    live.gone = true;
                }
            }
        }
        if closed {
            self.lose_shim(&mut live)?;
        }
        self.settle_end(live)
    }

    /// The shim's socket is closed: there will be no more reports.
    fn lose_shim(&mut self, live: &mut Live) -> Result<(), MachineError> {
        let Parent::Shim(shim) = std::mem::replace(&mut live.parent, Parent::Absent) else {
            return Ok(());
        };
        self.poll.remove(shim.reports.as_fd())?;
        if live.gone || live.has_failed() {
            live.parent = self.see_off(shim);
            return Ok(());
        }
        self.mourn(live, shim)
    }

    /// The socket closes a moment before the process is a zombie. A shim that cannot be reaped now
    /// is reaped when the kernel announces its end.
    fn see_off(&mut self, mut shim: Launched) -> Parent {
        if !shim.reap().unwrap_or(true) {
            self.unreaped.push(shim);
        }
        Parent::Absent
    }

    /// Ends a program once its command has ended and no process of its session is left.
    pub(super) fn settle_end(&mut self, mut live: Live) -> Result<(), MachineError> {
        if matches!(live.parent, Parent::Cosched) {
            self.adopt_for(&mut live)?;
        }
        let Some(CommandEnd { exit, usage, at }) = live.ended else {
            self.live.insert(live.id, live);
            return Ok(());
        };
        let over = live.gone || live.has_failed();
        let members = if over { Vec::new() } else { live.tree.members(&self.proc) };
        let session_of = |pid| self.proc.stat(pid).map(|stat| stat.session).ok();
        let holds = members.iter().any(|process| session_of(process.pid) == live.session);
        if holds && !matches!(live.parent, Parent::Absent) {
            self.inspector.hurry(live.id, self.clock.now());
            // The command is not the last process; only the shim sees the end of the last one.
            live.ended = Some(CommandEnd::unseen(exit, usage));
            self.live.insert(live.id, live);
            return Ok(());
        }
        // What its last processes have used is known once the shim has reaped them.
        if members.is_empty() && !over && matches!(live.parent, Parent::Shim(_)) {
            let now = self.clock.now();
            if now.since(*live.empty_since.get_or_insert(now)) < LAST_REPORT {
                self.inspector.hurry(live.id, now);
                self.live.insert(live.id, live);
                return Ok(());
            }
        }
        self.inspector.forget(live.id);
        self.observer.forget(live.id);
        self.forget_units(live.id);
        self.spin_watch.forget(live.id);
        // From now on its remaining processes get their requests.
        if let Some(hook_server) = live.hook_server.take() {
            self.config.stats.tell(
                live.id.slot,
                hook_server.barrier_stats(),
                hook_server.reported(),
            );
            self.config.stats.end(live.id.slot);
        }
        self.rest_states();
        if members.is_empty() {
            live.remove_cgroups();
            // Only the shim knows for sure: a walk can miss a process if its parent ends meanwhile.
            if over {
                self.log.note(Record::Gone { program: live.id })?;
            }
        } else {
            let queued = self.queue.len();
            self.release(&mut live)?;
            // It has ended for the engine: events of its release do not matter any more.
            self.queue.truncate(queued);
            // A program in cosched's own place is as without cosched.
            if !self.is_child(live.id) {
                let left = count(members.len(), "process", "processes");
                self.note(live.id, format!("ended and left {left} running"));
            }
        }
        // Processes that are left from here on are not counted any more.
        let counts = live.counters.take().as_ref().map(Counters::read).unwrap_or_default();
        let what = Happening::Exited(live.id, exit, Usage { counts, ..usage });
        self.queue.push(Event { at: at.unwrap_or_else(|| self.clock.now()), what });
        if matches!(live.parent, Parent::Shim(_)) || !members.is_empty() {
            self.keep_leftover(live);
        }
        Ok(())
    }

    /// Keeps a program that counts as ended and has processes left.
    fn keep_leftover(&mut self, mut live: Live) {
        live.parent = match live.parent {
            Parent::Killed(shim) => self.see_off(shim),
            other => other,
        };
        self.leftovers.push(live);
    }

    /// Waits, at the end of a run, for the shims below which no process is left: many runs may
    /// follow in one process.
    pub(super) fn dismiss_shims(&mut self) {
        let is_gone = |live: &Live| live.tree.members(&self.proc).is_empty();
        let all = std::mem::take(&mut self.leftovers).into_iter();
        let (gone, left): (Vec<Live>, _) = all.partition(is_gone);
        self.leftovers = left;
        let shims = gone.into_iter().filter_map(|live| match live.parent {
            Parent::Shim(shim) | Parent::Killed(shim) => Some(shim),
            Parent::Absent | Parent::Cosched | Parent::Other(_) => None,
        });
        self.unreaped.drain(..).chain(shims).for_each(Launched::dismiss);
    }

    /// Waits, at the end of a run, for what has passed outputs on instead of killed shims. It does
    /// not wait for long: processes may be left that can still write.
    pub(super) fn finish_outputs(&mut self) {
        let until = Instant::now() + LAST_LINES;
        for thread in self.passing_on.drain(..) {
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Continues to read from programs that count as ended, until their shims end too.
    pub(super) fn hear_leftover(&mut self, id: ProgramId) -> Result<(), MachineError> {
        let Some(i) = self.leftovers.iter().position(|live| live.id == id) else { return Ok(()) };
        let Parent::Shim(shim) = &mut self.leftovers[i].parent else { return Ok(()) };
        let (reports, closed) = read(&mut shim.reports);
        let live = &mut self.leftovers[i];
        live.gone |= reports.iter().any(|report| matches!(report, ShimReport::Gone { .. }));
        if closed {
            let mut live = self.leftovers.remove(i);
            self.lose_shim(&mut live)?;
            if live.gone {
                live.remove_cgroups();
                self.log.note(Record::Gone { program: id })?;
            } else {
                self.keep_leftover(live);
            }
        }
        Ok(())
    }
}

/// The reports of a shim, and whether there will be no more. A shim that sends nonsense is not read
/// any longer.
fn read(reports: &mut Reports) -> (Vec<ShimReport>, bool) {
    match reports.read() {
        Ok(list) => (list, reports.closed()),
        Err(_) => (Vec::new(), true),
    }
}

fn failed_text(step: StartStep, errno: i32) -> String {
    let what = match step {
        StartStep::Directory => "its working directory cannot be entered",
        StartStep::Input => "the file in the place of its standard input cannot be opened",
        StartStep::Cgroup => "its cgroup cannot be joined",
        StartStep::Cpus => "it cannot be bound to its CPUs",
        StartStep::Session => "it cannot open a session",
        StartStep::Command => "it cannot be executed",
    };
    format!("could not be started: {what}: {}", io::Error::from_raw_os_error(errno))
}
