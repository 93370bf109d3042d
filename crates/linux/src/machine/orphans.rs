//! If a program's shim was killed, cosched takes its place; a program in cosched's own place has no
//! shim.
//!
//! While the machine lives, cosched is a child subreaper like its shims. What a killed shim leaves
//! therefore becomes cosched's children, not init's, and so do orphans of a program without a shim.
//! cosched finds the program's processes there, continues to freeze, bind and signal them, and
//! learns by `wait` how the command ends.
//!
//! Orphans carry no mark of their program. Their program is known by the process group and session
//! that its command leads, or by its cgroup. Otherwise, there may still be only one program from
//! which the orphan can have come. An orphan of unknown origin is left alone: it may descend from
//! children that cosched had before.
//!
//! A shim's socket closes a moment before its children are passed on. Once the shim can be waited
//! for, they have been.

use std::collections::HashSet;
use std::io;

use cosched_core::{Event, Exit, Happening, Nanos, ProgramId, Usage};
use rustix::process::{Pid, child_subreaper, getpid, set_child_subreaper};

use super::others;
use super::program::{CommandEnd, ExecutionState, Live, Parent};
use super::{Job, Linux, MachineError, Origin};
use crate::control::ext::ExtScheduler;
use crate::kernel::files::FileError;
use crate::kernel::procfs::{Proc, Stat};
use crate::process::children::{self, Child};
use crate::process::claim::{Claim, Of};
use crate::process::launch::Launched;
use crate::process::tree::Process;
use crate::safety::undo::{Log, Record};

/// After so many orphans of a program, those that have ended are forgotten.
const MANY: usize = 256;

/// What cosched knows about children that are not its helpers.
#[derive(Debug)]
pub(super) struct Orphanage {
    /// Whether cosched was a subreaper before.
    found: Option<Pid>,
    /// Children that cosched's process had before.
    strangers: Vec<i32>,
    /// How many shims were killed.
    killed: usize,
    /// What the reaped orphans have used.
    used: Usage,
    /// The claim on cosched's children, since then: what such a shim leaves is below it. It is
    /// dropped before what it leaves out, so that no released child is ever taken.
    claim: Option<Claim>,
    /// The children that are not claimed by this.
    released: Vec<Claim>,
}

impl Orphanage {
    /// Makes orphans come to cosched, where it starts programs that may leave some; to be called
    /// before it has helpers.
    pub(super) fn open(proc: &Proc, jobs: &[Job]) -> Result<Orphanage, MachineError> {
        let strangers = proc.children(std::process::id() as i32)?;
        let found = child_subreaper().map_err(io::Error::from)?;
        if jobs.iter().any(|job| !matches!(job.origin, Origin::Running(_))) {
            set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
        }
        let (used, released) = Default::default();
        Ok(Orphanage { found, strangers, killed: 0, used, claim: None, released })
    }

    /// Whether an orphan can only come from the one program that has lost its shim.
    fn knows_all(&self) -> bool {
        self.strangers.is_empty() && self.killed == 1
    }
}

impl Drop for Orphanage {
    /// Several runs may follow one another in one process.
    fn drop(&mut self) {
        // A change that was allowed once is allowed again.
        let _ = set_child_subreaper(self.found);
    }
}

impl Linux {
    /// A shim was killed: its socket is closed, and its program has not ended.
    pub(super) fn mourn(
        &mut self,
        live: &mut Live,
        mut shim: Launched,
    ) -> Result<(), MachineError> {
        self.orphanage.killed += 1;
        self.claim_all_orphans();
        self.passing_on.extend(shim.pass_outputs_on());
        live.parent = Parent::Killed(shim);
        self.take_over(live)
    }

    /// No other cosched may take what the shim leaves, now or later.
    fn claim_all_orphans(&mut self) {
        let find = |pid: i32| Process::find(&self.proc, pid).ok();
        let strangers: Vec<Process> =
            self.orphanage.strangers.iter().filter_map(|pid| find(*pid)).collect();
        if let (None, Some(own)) = (&self.orphanage.claim, find(std::process::id() as i32)) {
            self.release_children(strangers);
            self.orphanage.claim = Claim::take(Of::Children, own, &self.proc).unwrap_or_default();
        }
    }

    fn release_children(&mut self, children: impl IntoIterator<Item = Process>) {
        let claims = children
            .into_iter()
            .filter_map(|child| Claim::take(Of::Release, child, &self.proc).unwrap_or_default());
        self.orphanage.released.extend(claims);
    }

    /// Lets other coscheds attach to a program that was detached from this one.
    pub(super) fn release_claim(&mut self, id: ProgramId) {
        let Some(live) = self.live.get_mut(&id) else { return };
        (live.claim, live.is_detached) = (None, true);
        let tree = &live.tree;
        let roots = tree.shim.iter().chain(&tree.main).chain(&tree.orphans).copied();
        let children: Vec<Process> = match live.parent {
            Parent::Shim(_) | Parent::Killed(_) | Parent::Cosched => roots.collect(),
            _ => Vec::new(),
        };
        self.release_children(children);
    }

    /// Takes the place of a killed shim as soon as its children have been passed on.
    fn take_over(&mut self, live: &mut Live) -> Result<(), MachineError> {
        let Parent::Killed(shim) = &mut live.parent else { return Ok(()) };
        // While another shim's death is news, its children could be taken for this one's.
        if !shim.reap().unwrap_or(true) || self.has_news_of_a_death() {
            return Ok(());
        }
        live.parent = Parent::Cosched;
        self.note(live.id, "lost its parent process (killed?); cosched takes its place");
        self.adopt_for(live)?;
        if let (Some(main), ExecutionState::Starting, None) =
            (live.tree.main, live.state, live.ended)
        {
            self.begin(live, main, self.clock.now())?;
        }
        if live.tree.main.is_none() && live.ended.is_none() {
            self.note(live.id, "had not been started when its parent process was killed");
            live.ended = Some(CommandEnd::unseen(Exit::Unknown, Usage::default()));
        }
        self.look_at_command(live);
        Ok(())
    }

    /// Reaps children of cosched that have ended: shims, or orphans.
    pub(super) fn reap(&mut self) -> Result<(), MachineError> {
        self.unreaped.retain_mut(|shim| !shim.reap().unwrap_or(true));
        if self.live.keys().any(|id| self.is_child(*id)) {
            self.adopt()?;
            return self.bury();
        }
        if self.orphanage.killed == 0 {
            return Ok(());
        }
        for id in self.in_care(|parent| !matches!(parent, Parent::Shim(_) | Parent::Absent)) {
            let Some(mut live) = self.live.remove(&id) else { continue };
            self.take_over(&mut live)?;
            self.look_at_command(&mut live);
            self.settle_end(live)?;
        }
        self.adopt()?;
        self.bury()
    }

    /// Reaps orphans that are no commands. Their exit statuses do not matter, but they must not
    /// stay as zombies.
    pub(super) fn bury(&mut self) -> Result<(), MachineError> {
        let orphans = self.orphans()?;
        if self.has_news_of_a_death()
            || !self.in_care(|p| matches!(p, Parent::Killed(_))).is_empty()
        {
            return Ok(()); // A command that is not known yet may be among them.
        }
        let commands: Vec<i32> =
            self.live.values().filter_map(|live| live.tree.main).map(|main| main.pid).collect();
        for stat in orphans.iter().filter(|stat| stat.has_ended()) {
            if commands.contains(&stat.pid) {
                continue;
            }
            if let Child::Ended(_, usage) = children::look(stat.pid) {
                self.orphanage.used = self.orphanage.used.and(&usage);
            }
        }
        Ok(())
    }

    /// What a program in cosched's own place has used apart from its command: orphans that were
    /// reaped, and processes that are left. All of the latter counts as time in user mode.
    pub(super) fn used_by_orphans(&self, live: &Live) -> Usage {
        let user_seconds = others::used(&live.tree.members(&self.proc), &self.proc);
        self.orphanage.used.and(&Usage { user_seconds, ..Usage::default() })
    }

    /// Whether a shim has ended and its socket has not shown that yet.
    fn has_news_of_a_death(&self) -> bool {
        let mut programs = self.live.values().chain(&self.leftovers);
        programs.any(|live| match &live.parent {
            Parent::Shim(shim) => shim.shim().look(&self.proc).is_none(),
            _ => false,
        })
    }

    /// Takes in the orphans that have come since the last call. Returns whether there were any. To
    /// be called before the processes of a program are walked.
    pub(super) fn adopt(&mut self) -> Result<bool, MachineError> {
        let mut any = false;
        let receives =
            |live: &&Live| matches!(live.parent, Parent::Cosched) || self.is_child(live.id);
        let ids: Vec<ProgramId> = self.live.values().filter(receives).map(|live| live.id).collect();
        for id in ids {
            let Some(mut live) = self.live.remove(&id) else { continue };
            any |= self.adopt_for(&mut live)?;
            self.live.insert(id, live);
        }
        Ok(any)
    }

    /// The live programs with such a parent.
    fn in_care(&self, which: impl Fn(&Parent) -> bool) -> Vec<ProgramId> {
        let found = self.live.values().filter(|live| which(&live.parent));
        found.map(|live| live.id).collect()
    }

    pub(super) fn adopt_for(&mut self, live: &mut Live) -> Result<bool, MachineError> {
        let mut any = false;
        if live.is_detached {
            return Ok(any);
        }
        let orphans = self.orphans()?;
        // Checked after the orphans were listed: a process that left one of them is dead by now.
        let leaders = orphans.iter().flat_map(|stat| [stat.pgrp, stat.session]).collect();
        let is_only_one = match self.is_child(live.id) {
            true => self.orphanage.strangers.is_empty(),
            false => self.orphanage.knows_all() && !self.has_news_of_a_death(),
        };
        for stat in orphans {
            let process = Process::from(stat);
            let known = live.tree.main == Some(process) || live.tree.orphans.contains(&process);
            if known || !(is_only_one || comes_from(live, &stat)) {
                continue;
            }
            // Another cosched may have taken it before this one heard of the shim's end.
            if Claim::is_taken(Of::Tree, process, &self.proc) {
                continue;
            }
            if live.tree.main.is_none() && live.ended.is_none() {
                // The shim had one child, the command, and was killed before it could report it.
                self.begin(live, process, self.clock.now())?;
            } else if !stat.has_ended() {
                self.log.note(Record::Orphan { program: live.id, process })?;
                live.tree.orphans.push(process);
                any = true;
                if live.tree.orphans.len() % MANY == 0 {
                    forget_ended(live, &leaders, &self.proc);
                }
            }
        }
        Ok(any)
    }

    /// The children of cosched that are neither helpers nor were there before, including ended
    /// ones.
    fn orphans(&self) -> Result<Vec<Stat>, FileError> {
        let mut others = self.orphanage.strangers.clone();
        others.extend(self.ext.as_ref().map(ExtScheduler::loader));
        others.extend(self.unreaped.iter().map(|shim| shim.shim().pid));
        let programs = self.live.values().chain(&self.leftovers);
        others.extend(programs.filter_map(|live| live.parent.shim()).map(|shim| shim.pid));
        let mut children = self.proc.children(std::process::id() as i32)?;
        children.retain(|pid| !others.contains(pid));
        let orphans = children.into_iter().filter_map(|pid| self.proc.stat(pid).ok());
        Ok(orphans.filter(|child| !self.guard.may_have(child, &self.proc)).collect())
    }

    /// How the command of a program in cosched's own care has ended, if it has.
    fn look_at_command(&mut self, live: &mut Live) {
        let (Parent::Cosched, Some(main), None) = (&live.parent, live.tree.main, live.ended) else {
            return;
        };
        live.ended = match children::look(main.pid) {
            Child::Lives => None,
            Child::Ended(exit, usage) => Some(CommandEnd::unseen(exit, usage)),
            // The shim had waited for it, and was killed before it could report the end.
            Child::NotOurs => Some(CommandEnd::unseen(Exit::Unknown, Usage::default())),
        };
    }

    /// Notes a program's first process. If its shim is killed now, the process is known
    /// nevertheless.
    pub(super) fn expect(&mut self, live: &mut Live, main: Process) -> Result<(), MachineError> {
        live.tree.main = Some(main);
        // Where it cannot be claimed, the log tells that it is taken. Its orphans are below its
        // shim.
        if let Ok(claim) = Claim::take(Of::Tree, live.tree.shim.unwrap_or(main), &self.proc) {
            live.claim = claim;
        }
        self.log.note(Record::Main { program: live.id, process: main })?;
        Ok(())
    }

    /// Notes that a program's command runs, since when.
    pub(super) fn begin(
        &mut self,
        live: &mut Live,
        main: Process,
        at: Nanos,
    ) -> Result<(), MachineError> {
        self.expect(live, main)?;
        live.state = ExecutionState::Running;
        // A program that opens a session leads it.
        live.session.get_or_insert(main.pid);
        self.inspector.expect(live.id, self.clock.now(), self.config.turns);
        self.expect_units(live);
        self.spin_watch.expect(live.id, self.clock.now());
        let settings = live.at_start;
        self.schedule(live, &settings)?;
        self.queue.push(Event { at, what: Happening::Started(live.id) });
        Ok(())
    }
}

/// Announces the processes of a program that have lost their parents. They are neither below the
/// command nor in a cgroup. The process that has to continue them then finds them even after the
/// end of their shim.
pub(super) fn note_strays(live: &mut Live, proc: &Proc, log: &mut Log) -> Result<(), MachineError> {
    let Some(shim) = live.tree.shim else { return Ok(()) };
    for pid in proc.children(shim.pid)? {
        let Ok(process) = Process::find(proc, pid) else { continue };
        if live.tree.main != Some(process) && !live.tree.orphans.contains(&process) {
            live.tree.orphans.retain(|orphan| orphan.look(proc).is_some());
            log.note(Record::Orphan { program: live.id, process })?;
            live.tree.orphans.push(process);
        }
    }
    Ok(())
}

/// Forgets orphans that have ended, except for leaders of other orphans.
fn forget_ended(live: &mut Live, leaders: &HashSet<i32>, proc: &Proc) {
    let stays = |orphan: &Process| leaders.contains(&orphan.pid) || orphan.look(proc).is_some();
    live.tree.orphans.retain(stays);
}

/// Whether a process is known to belong to a program. Before it leads a group of its own, the
/// command is in its shim's.
fn comes_from(live: &Live, stat: &Stat) -> bool {
    let leaders = [live.tree.shim, live.tree.main]
        .into_iter()
        .flatten()
        .chain(live.tree.orphans.iter().copied());
    let mut leaders = leaders.map(|process| process.pid);
    leaders.any(|pid| pid == stat.pgrp || pid == stat.session) || live.holds_in_cgroup(stat.pid)
}
