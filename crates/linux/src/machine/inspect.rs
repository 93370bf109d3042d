//! Inspecting running programs now and then: what they hold, which process traces or stops them.
//!
//! The kernel announces none of this. An inspection costs time, since a process's list of open
//! files and mappings is read. Inspections of what a program *holds* therefore become rarer while
//! it runs: programs open their devices and sockets early. Whether another process stopped it takes
//! one small read. Waking up for it costs far more than the read itself. It is therefore done when
//! cosched is awake anyway, at the end of a quantum, say. Only where nothing else happens does
//! cosched wake for it.

mod locks;

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::format::cpus as cpus_in_words;
use cosched_core::{GroupId, Happening, Nanos, ProgramId, Refusal};

use super::confined::{Confined, computing, confined_to};
use super::program::{ExecutionState, Live};
use super::{Linux, MachineError, Note};
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;
use crate::kernel::procfs::ProcState;
use crate::observe::dependencies::{self, Dependencies, HandedOut, SharedKey, Tables};
use crate::process::tree::Process;
use crate::safety::undo::Record;

const FIRST: Nanos = Nanos::from_millis(100);
/// How long after a check for stops the next one is useful, and how long after that it is worth
/// waking up.
const STOPS: Nanos = Nanos::from_millis(900);
const STOPS_PATIENCE: Nanos = Nanos::from_millis(100);
const HURRY: Nanos = Nanos::from_millis(20);
const LONGEST: Nanos = Nanos::from_secs(30);
/// The longest time between inspections of a program that may be frozen only until another process
/// connects.
const LONGEST_TO_CONNECTION: Nanos = Nanos::from_secs(2);

/// When to inspect which program, and what was seen.
#[derive(Debug)]
pub(super) struct Inspector {
    pub(super) handed_out: HandedOut,
    watched: BTreeMap<ProgramId, Watched>,
    /// The group of each slot, as it was seen.
    groups: Vec<Option<GroupId>>,
    /// The most threads of each slot that were seen at once.
    pub(super) threads: Vec<Option<u32>>,
    /// The most processes of each slot that were seen to compute at once.
    pub(super) processes: Vec<Option<u32>>,
    pub(super) confined: Confined,
}

#[derive(Debug, Default)]
struct Watched {
    /// From when on to check whether it was stopped, or has ended; and when to wake up for it.
    stops_at: Nanos,
    wakes_at: Nanos,
    /// When to inspect what it holds, and how long to wait after that.
    dependencies_at: Nanos,
    pause: Nanos,
    dependencies: Dependencies,
    /// The file locks that tie it to others, and when that was seen last.
    locks: BTreeMap<SharedKey, Nanos>,
    /// When to look for file locks that it waits for, if it runs then.
    locks_at: Nanos,
    /// When to count its threads, and how long to wait after that, where nothing that it holds is
    /// looked at: with that, they are counted anyway.
    threads_at: Nanos,
    threads_pause: Nanos,
    traced: bool,
    reported: bool,
    /// Whether it was told that a process has left the program's cgroups.
    strayed: bool,
}

impl Watched {
    /// Whether the program takes turns, so that what it shares matters.
    fn turns(&self) -> bool {
        self.dependencies_at < Nanos::NEVER
    }

    /// What it shares, file locks included.
    fn all_dependencies(&self) -> Dependencies {
        let mut dependencies = self.dependencies.clone();
        dependencies.shared.extend(self.locks.keys());
        dependencies
    }

    fn look_at_stops_after(&mut self, now: Nanos) {
        self.stops_at = now + STOPS;
        self.wakes_at = self.stops_at + STOPS_PATIENCE;
    }
}

impl Inspector {
    pub(super) fn new(handed_out: HandedOut, slots: usize) -> Inspector {
        Inspector {
            handed_out,
            watched: BTreeMap::new(),
            groups: vec![None; slots],
            threads: vec![None; slots],
            processes: vec![None; slots],
            confined: Confined::default(),
        }
    }

    /// Whether it has not been reported yet that a program is left running. It counts as reported
    /// from now on.
    pub(super) fn is_first_report(&mut self, id: ProgramId) -> bool {
        let watched = self.watched.get_mut(&id);
        watched.is_some_and(|watched| !std::mem::replace(&mut watched.reported, true))
    }

    /// Notes a started program. What it holds matters only if it takes turns.
    pub(super) fn expect(&mut self, id: ProgramId, now: Nanos, turns: bool) {
        let mut watched = Watched {
            dependencies_at: if turns { now + FIRST } else { Nanos::NEVER },
            pause: FIRST,
            threads_at: if turns { Nanos::NEVER } else { now },
            threads_pause: FIRST,
            locks_at: now + FIRST,
            ..Watched::default()
        };
        watched.look_at_stops_after(now);
        self.watched.insert(id, watched);
        // The group of a repeated program has to be reported again.
        self.groups[usize::from(id.slot)] = None;
    }

    /// A program's command has ended and some of its processes have not: check soon.
    pub(super) fn hurry(&mut self, id: ProgramId, now: Nanos) {
        if let Some(watched) = self.watched.get_mut(&id) {
            (watched.stops_at, watched.wakes_at) = (now + HURRY, now + HURRY);
        }
    }

    pub(super) fn forget(&mut self, id: ProgramId) {
        self.watched.remove(&id);
        self.confined.saw(id, None);
    }

    fn saw_threads(&mut self, id: ProgramId, threads: u32) {
        let most = &mut self.threads[usize::from(id.slot)];
        *most = (*most).max(Some(threads).filter(|threads| *threads > 0));
    }

    fn saw_processes(&mut self, id: ProgramId, computing: usize) {
        let most = &mut self.processes[usize::from(id.slot)];
        *most = (*most).max(u32::try_from(computing).ok().filter(|computing| *computing > 0));
    }

    fn counts_threads(&mut self, id: ProgramId, now: Nanos) -> bool {
        let due = self.watched.get_mut(&id).filter(|watched| now >= watched.threads_at);
        due.is_some_and(|watched| {
            watched.threads_at = now + watched.threads_pause;
            watched.threads_pause = (watched.threads_pause * 3).min(LONGEST);
            true
        })
    }

    /// Whether another process traces the program, as of the last inspection.
    pub(super) fn is_traced(&self, id: ProgramId) -> bool {
        self.watched.get(&id).is_some_and(|watched| watched.traced)
    }
}

impl Linux {
    pub(super) fn next_inspection(&self) -> Nanos {
        self.next_look_with(|watched| watched.wakes_at)
    }

    /// When the next inspection is useful, or due.
    fn next_look_with(&self, stops: impl Fn(&Watched) -> Nanos) -> Nanos {
        let next = |(id, watched): (&ProgramId, &Watched)| match self.is_paused(*id) {
            true => watched.dependencies_at,
            false => stops(watched).min(watched.dependencies_at),
        };
        self.inspector.watched.iter().map(next).min().unwrap_or(Nanos::NEVER)
    }

    /// Whether cosched has paused it. Then a stop by another process would look like our own: the
    /// check for one waits until the program runs.
    fn is_paused(&self, id: ProgramId) -> bool {
        self.live.get(&id).is_some_and(|live| {
            live.ended.is_none()
                && matches!(live.state, ExecutionState::Freezing { .. } | ExecutionState::Frozen)
        })
    }

    pub(super) fn inspect(&mut self) -> Result<(), MachineError> {
        if self.run_cgroups.is_by_weight() {
            self.look_at_locks()?;
        }
        let now = self.clock.now();
        if now < self.next_look_with(|watched| watched.stops_at) {
            return Ok(());
        }
        self.look_at_cpus();
        self.tell_of_the_log();
        let ids: Vec<ProgramId> = self.inspector.watched.keys().copied().collect();
        let mut tables = Tables::default();
        for id in ids {
            self.guard.sentinel.works();
            let hidden = self.is_paused(id);
            let Some(watched) = self.inspector.watched.get_mut(&id) else { continue };
            let stops = now >= watched.stops_at && !hidden;
            // Inspections that are nearly due are done together.
            let holds = now + watched.pause / 10 >= watched.dependencies_at;
            if holds {
                watched.dependencies_at = now + watched.pause;
                watched.pause = (watched.pause * 3).min(LONGEST);
            }
            if stops {
                watched.look_at_stops_after(now);
                self.look_at_stops(id)?;
            }
            if holds {
                self.inspect_dependencies(id, &mut tables)?;
            }
        }
        Ok(())
    }

    fn look_at_stops(&mut self, id: ProgramId) -> Result<(), MachineError> {
        let Some(mut live) = self.live.remove(&id) else { return Ok(()) };
        if live.ended.is_some() {
            return self.settle_end(live);
        }
        let is_held_here = live.freezer.thaw_rest(&self.proc).is_err();
        let stat = live.tree.main.and_then(|main| main.look(&self.proc));
        self.count_threads(&live, stat.map_or(0, |stat| stat.threads));
        let stopped = stat.is_some_and(|stat| stat.state == ProcState::Stopped);
        match (live.state, live.tree.main) {
            // What cosched could not continue may look like a stop by another process.
            _ if is_held_here => {}
            (ExecutionState::Running, Some(process)) if stopped => {
                self.log.note(Record::StoppedByOther { process })?;
                live.state = ExecutionState::StoppedByOther;
                let pid = process.pid;
                self.note(
                    id,
                    format!(
                        "was stopped by another process, or because it wanted something of the \
                         terminal, and is left alone until it is continued (`kill -CONT {pid}`); a \
                         program that needs the terminal gets it by `cosched exec`"
                    ),
                );
                self.tell(Happening::StoppedByOther(id));
            }
            // It may have run for a moment in which another program was frozen: its record is gone.
            (ExecutionState::StoppedByOther, Some(process)) if stopped => {
                self.log.note(Record::StoppedByOther { process })?;
            }
            (ExecutionState::StoppedByOther, Some(process)) => {
                self.log.note(Record::ContinuedByOther { process })?;
                live.state = ExecutionState::Running;
                self.tell(Happening::ContinuedByOther(id));
            }
            _ => {}
        }
        self.live.insert(id, live);
        Ok(())
    }

    /// Counts a program's threads, of which its first process has so many. Others are looked for
    /// ever more rarely, and not at all where that is done with what the program holds.
    fn count_threads(&mut self, live: &Live, of_main: u32) {
        let mut threads = of_main;
        if self.inspector.counts_threads(live.id, self.clock.now()) {
            let stats = live.tree.stats(&self.proc);
            let others = stats.iter().filter(|stat| Some(Process::from(**stat)) != live.tree.main);
            threads += others.map(|stat| stat.threads).sum::<u32>();
            self.inspector.saw_processes(live.id, computing(&stats).len());
        } else if self.inspector.threads[usize::from(live.id.slot)].is_none() {
            // That of the first process alone is no figure for the program.
            return;
        }
        self.inspector.saw_threads(live.id, threads);
    }

    fn inspect_dependencies(
        &mut self,
        id: ProgramId,
        tables: &mut Tables,
    ) -> Result<(), MachineError> {
        let Some(live) = self.live.get(&id) else { return Ok(()) };
        let stats = live.tree.stats(&self.proc);
        let processes: Vec<Process> = stats.iter().copied().map(Process::from).collect();
        let (dependencies, traced, threads) = self.dependencies_of(live, &processes, tables)?;
        let strays = live.has_strays(&processes, &self.proc);
        let pids = computing(&stats);
        let confined = confined_to(live, &pids, &self.proc, &self.cpus);
        self.inspector.saw_threads(id, threads);
        self.inspector.saw_processes(id, pids.len());
        let job = self.job(id);
        let forbidden = dependencies
            .forbid_freezing()
            .filter(|_| !job.freezable_for_sure && !self.run_cgroups.is_by_weight());
        let may_be_connected = dependencies.listens_within && !job.freezable_for_sure;
        let Some(watched) = self.inspector.watched.get_mut(&id) else { return Ok(()) };
        watched.traced = traced;
        if may_be_connected && !self.run_cgroups.is_by_weight() {
            watched.dependencies_at =
                watched.dependencies_at.min(self.clock.now() + LONGEST_TO_CONNECTION);
        }
        let strays = strays && !std::mem::replace(&mut watched.strayed, strays);
        let news = watched.dependencies.shared != dependencies.shared;
        watched.dependencies = dependencies;
        if let Some(why) = forbidden {
            self.forbid_freezing(id, why);
        }
        if strays {
            self.tell_of_strays(id);
        }
        self.inspector.confined.saw(id, confined);
        self.tell_of_confined();
        if news {
            self.regroup();
        }
        Ok(())
    }

    /// Tells of programs that have bound themselves to CPUs that are too few for them.
    fn tell_of_confined(&mut self) {
        for (id, cpus) in self.inspector.confined.news(&self.cpus) {
            self.note(
                id,
                format!(
                    "has bound itself to {}, as another program has, while other CPUs are free: \
                     start them unbound (`mpirun --bind-to none`, OMP_PROC_BIND=false)",
                    cpus_in_words(&cpus)
                ),
            );
        }
    }

    /// A process is outside of the program's cgroups. To freeze the rest would not pause the
    /// program.
    fn tell_of_strays(&mut self, id: ProgramId) {
        let has = "has a process that moved to another cgroup";
        if self.run_cgroups.is_by_weight() {
            self.note(id, format!("{has}: that process takes no turns"));
        } else {
            self.note(id, format!("is left running while others have their turn: it {has}"));
            self.tell(Happening::Unfreezable(id, Refusal::LeftCgroup));
        }
    }

    /// What a program with these processes shares, whether another process traces it, and how many
    /// threads it has.
    fn dependencies_of(
        &self,
        live: &Live,
        processes: &[Process],
        tables: &mut Tables,
    ) -> Result<(Dependencies, bool, u32), MachineError> {
        let members = |live: &Live| live.tree.members(&self.proc);
        let pids: Vec<i32> = processes.iter().map(|process| process.pid).collect();
        let looks = pids.iter().filter_map(|pid| self.proc.tracer_and_threads(*pid).ok());
        let (mut traced, mut threads) = (false, 0);
        for (tracer, own) in looks {
            traced |= tracer.is_some();
            threads += own;
        }
        let others = || {
            let others = self.live.values().filter(|other| other.id != live.id);
            others.flat_map(members).map(|process| process.pid).collect()
        };
        let handed_out = &self.inspector.handed_out;
        let dependencies = dependencies::inspect(&self.proc, &pids, &others, handed_out, tables)?;
        Ok((dependencies, traced, threads))
    }

    /// Finds anew which programs share something, and reports changes.
    fn regroup(&mut self) {
        let (ids, all): (Vec<ProgramId>, Vec<Dependencies>) = self
            .inspector
            .watched
            .iter()
            .map(|(id, watched)| (*id, watched.all_dependencies()))
            .unzip();
        let groups = dependencies::groups(&all);
        let without_locks: Vec<Dependencies> =
            self.inspector.watched.values().map(|watched| watched.dependencies.clone()).collect();
        let without_locks = dependencies::groups(&without_locks);
        let mut joined = BTreeSet::new();
        for (id, number) in ids.iter().zip(&groups) {
            let slot = usize::from(id.slot);
            // A group is named after its first member, so that a name never passes to other
            // programs.
            let first =
                ids.iter().zip(&groups).find(|(_, other)| number.is_some() && *other == number);
            let group = first.map(|(first, _)| GroupId(first.slot));
            if self.config.jobs[slot].grouped_by_user || self.inspector.groups[slot] == group {
                continue;
            }
            self.inspector.groups[slot] = group;
            joined.extend(*number);
            // A program that shares nothing any more is a group of its own.
            self.tell(Happening::Grouped(*id, group.unwrap_or(GroupId(id.slot))));
        }
        for number in joined {
            let members = ids.iter().zip(&groups).zip(&without_locks);
            let members = members.filter(|((id, other), _)| {
                **other == Some(number) && !self.config.jobs[usize::from(id.slot)].grouped_by_user
            });
            let (programs, share): (Vec<ProgramId>, Vec<bool>) =
                members.map(|((id, _), unlocked)| (*id, unlocked.is_some())).unzip();
            let what = match (share.contains(&true), share.contains(&false)) {
                (false, _) => "use the same file lock",
                (true, false) => "share pipes, sockets or memory",
                (true, true) => "share pipes, sockets, memory or a file lock",
            };
            if programs.len() > 1 {
                let text = format!("{what}: they run together");
                self.send(Note { programs, text, is_error: false });
            }
        }
    }
}

/// What cosched itself holds open: it does not tie programs that hold it, too, to one another.
pub(super) fn handed_out(proc: &Proc) -> Result<HandedOut, FileError> {
    let mut handed_out = dependencies::held_by(proc, std::process::id() as i32)?;
    handed_out.insert("/dev/null".to_owned());
    Ok(handed_out)
}
