//! One program: when its processes are looked at, and which unit has its turn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cosched_core::Nanos;

use super::clock::TurnClock;
use super::units::{FoundParts, Part, ProcessUnit, UnitHome};
use crate::cgroup::{Version, Weight};
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;
use crate::process::tree::Process;

/// The time between two checks whether a unit still uses its turn.
const CHECK: Nanos = Nanos::from_millis(100);
/// The pauses between two looks at a program: the shortest, and the longest.
const PAUSES: (Nanos, Nanos) = (Nanos::from_millis(200), Nanos::from_secs(4));
/// A look may be late by one part in so many of the pause before it.
const PATIENCE: u64 = 8;
/// The pause after which processes that were seen busy are looked at again.
const SOON: Nanos = Nanos::from_millis(100);
/// A look is followed by a pause of at least so many times its duration: 0.2 %.
const SPARING: u64 = 500;
/// The time until units are made again after one could not be made.
pub(super) const RETRY: Nanos = Nanos::from_secs(10);
/// A process that reads and writes more often in a second may wait for another one: by pipes and
/// sockets, it is not known for which.
const MOST_CALLS: f64 = 50.0;

/// Processes that were seen busy, and how often each had read and written; `None`: not known.
pub(super) type BusyProcesses = BTreeMap<Process, Option<u64>>;

/// How many threads of a program are on a CPU, or wait for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RunningThreads {
    /// In units.
    pub(super) units: u32,
    /// In its other processes.
    pub(super) others: u32,
}

impl RunningThreads {
    /// Of processes with so many running threads each, of which those with these numbers (in order)
    /// are in no unit.
    pub(super) fn of(processes: &BTreeMap<Process, u32>, loose: &[i32]) -> RunningThreads {
        let is_loose = |process: &Process| loose.binary_search(&process.pid).is_ok();
        let sum = |of_loose: bool| {
            let those = processes.iter().filter(|(process, _)| is_loose(process) == of_loose);
            those.map(|(_, running)| running).sum()
        };
        RunningThreads { units: sum(false), others: sum(true) }
    }

    /// The weight of the unit in turn: all units together then get as much of the CPUs as they
    /// would without turns, beside the other processes of the program.
    fn weight(&self, version: Version) -> Weight {
        match version {
            // The group is beside the threads of the others, and counts as so many of them.
            Version::V1 => Weight::Times(self.units),
            // It is beside the group of the others.
            Version::V2 => Weight::Times(self.units / self.others.max(1)),
        }
    }
}

/// What the user should know of a program's units.
#[derive(Debug)]
pub(super) enum UnitNews {
    /// There are several, or could be.
    Several,
    /// There are none, since cosched may not open the files that they need.
    TooFewFiles,
    /// None can be made where the program has made cgroups itself.
    OwnGroups,
    /// One could not be made.
    Failed(FileError),
}

#[derive(Debug)]
pub(crate) struct Family {
    /// In the order of their turns; the first has its turn.
    pub(super) units: VecDeque<ProcessUnit>,
    threads: RunningThreads,
    /// The processes that were busy at the last look.
    busy: BusyProcesses,
    looked_at: Nanos,
    /// The processes that units have taken in.
    known: BTreeSet<Process>,
    look_at: Nanos,
    /// From when on units may be made again.
    make_at: Nanos,
    /// Whether the user knows that processes take turns, and that some do not.
    told_turns: bool,
    told_missing: bool,
    pause: Nanos,
    /// When the unit in turn is checked next.
    check_at: Nanos,
    clock: TurnClock,
}

impl Family {
    pub(super) fn new(has_turn: bool, now: Nanos) -> Family {
        Family {
            units: VecDeque::new(),
            threads: RunningThreads::default(),
            busy: BTreeMap::new(),
            looked_at: now,
            known: BTreeSet::new(),
            look_at: now + PAUSES.0,
            make_at: now,
            told_turns: false,
            told_missing: false,
            pause: PAUSES.0,
            check_at: Nanos::NEVER,
            clock: TurnClock::new(has_turn, now),
        }
    }

    /// The unit that has its turn.
    pub(super) fn in_turn(&self) -> Option<&ProcessUnit> {
        self.units.front()
    }

    /// When there is something to do.
    pub(super) fn due(&self) -> Nanos {
        match self.units.len() {
            2.. => self.check_at.min(self.look_at),
            _ => self.look_at,
        }
    }

    /// When to wake up for that. A look can wait for a while: mostly, cosched wakes up for a switch
    /// before.
    pub(super) fn wakes_at(&self) -> Nanos {
        let look_at = self.look_at + self.pause / PATIENCE;
        match self.units.len() {
            2.. => self.check_at.min(look_at),
            _ => look_at,
        }
    }

    pub(super) fn is_look_due(&self, now: Nanos) -> bool {
        now >= self.look_at
    }

    pub(super) fn program_turns(&mut self, has_turn: bool, now: Nanos) {
        self.clock.program_turns(has_turn, now);
    }

    /// Nothing can be done with the program at present.
    pub(super) fn wait(&mut self, now: Nanos) {
        self.look_at = self.look_at.max(now + PAUSES.0);
        self.check_at = self.check_at.max(now + CHECK);
    }

    /// Notes the processes that a look has found busy, with how often each has read and written.
    /// Returns those that were busy the last time, too, are not known yet, and wait for no other.
    pub(super) fn saw(&mut self, busy: BusyProcesses, now: Nanos) -> Vec<Process> {
        let seconds = now.since(self.looked_at).as_secs_f64();
        let (mut sure, mut any_news) = (Vec::new(), false);
        for (process, calls) in busy.iter().filter(|(process, _)| !self.known.contains(process)) {
            match self.busy.get(process) {
                // Where this is not known, nothing else is.
                Some(before) => {
                    match calls.zip(*before).map(|(now, before)| now.saturating_sub(before)) {
                        Some(calls) if calls as f64 <= MOST_CALLS * seconds => sure.push(*process),
                        _ => {}
                    }
                }
                None => any_news = true,
            }
        }
        let is_soon = any_news && (busy.len() > 1 || !self.units.is_empty());
        self.pause = if is_soon { SOON } else { (self.pause * 2).clamp(PAUSES.0, PAUSES.1) };
        (self.looked_at, self.look_at) = (now, now + self.pause);
        self.busy = busy;
        sure
    }

    /// Nothing more is to be found.
    pub(super) fn end_looks(&mut self) {
        self.look_at = Nanos::NEVER;
    }

    /// Forgets units that are over, and processes that are not among these any more.
    pub(super) fn forget_ended(&mut self, present: &BTreeSet<Process>) {
        self.known.retain(|process| present.contains(process));
        let before = self.units.len();
        self.units.retain(|unit| !unit.is_over());
        if self.units.len() < before {
            self.weigh();
        }
    }

    /// A look has taken so long. That may be because cosched got no CPU.
    pub(super) fn spare(&mut self, cost: Nanos, now: Nanos) {
        self.look_at = self.look_at.max(now + (cost * SPARING).min(PAUSES.1));
    }

    /// Whether processes may join units, or become some: not soon after none could be made.
    pub(super) fn may_grow(&self, now: Nanos) -> bool {
        now >= self.make_at || !self.units.is_empty()
    }

    /// Some processes are in no unit. The user is told of it once.
    pub(super) fn misses_units(&mut self, why: UnitNews) -> Option<UnitNews> {
        (!std::mem::replace(&mut self.told_missing, true)).then_some(why)
    }

    /// Makes units of these parts of the program. A part that is tied to a unit joins it. Returns
    /// what the user should know.
    pub(super) fn joins(
        &mut self,
        found: FoundParts,
        home: &UnitHome<'_>,
        made: &mut u32,
        now: Nanos,
    ) -> Option<UnitNews> {
        let FoundParts { parts, are_all } = found;
        if are_all && self.units.len() + parts.len() < 2 {
            // The only one may get company.
            return None;
        }
        let mut missing = None;
        for part in parts {
            let processes = part.processes.clone();
            let most = if now < self.make_at { self.units.len().max(2) } else { home.most };
            let taken_in = self.units.iter().map(|unit| unit.taken_in);
            let place = place_in(taken_in, most);
            if let Some(place) = self.tied_to(&part, home.proc).or(place) {
                self.units[place].add(part, home.proc);
            } else if now >= self.make_at {
                *made += 1;
                match ProcessUnit::make(home, *made, part) {
                    Ok(unit) => self.units.push_back(unit),
                    Err(_) if home.is_divided_by_program() => {
                        (self.make_at, missing) = (Nanos::NEVER, Some(UnitNews::OwnGroups));
                        continue;
                    }
                    Err(error) => {
                        (self.make_at, missing) = (now + RETRY, Some(UnitNews::Failed(error)));
                        continue;
                    }
                }
            } else {
                continue;
            }
            self.known.extend(processes);
        }
        self.clock.begin(now);
        self.check_at = now + CHECK;
        self.weigh();
        if self.units.len() > 1 && !std::mem::replace(&mut self.told_turns, true) {
            return Some(UnitNews::Several);
        }
        missing.and_then(|why| self.misses_units(why))
    }

    /// The unit that a part is tied to. If it is tied to several, they become one.
    fn tied_to(&mut self, part: &Part, proc: &Proc) -> Option<usize> {
        let is_tied = |place: &usize| self.units[*place].is_tied_to(part);
        let tied: Vec<usize> = (0..self.units.len()).filter(is_tied).collect();
        let (first, others) = tied.split_first()?;
        for place in others.iter().rev() {
            if let Some(other) = self.units.remove(*place) {
                self.units[*first].unite(other, proc);
            }
        }
        Some(*first)
    }

    /// Notes how many threads of the program run.
    pub(super) fn counted(&mut self, threads: RunningThreads) {
        if std::mem::replace(&mut self.threads, threads) != threads {
            self.weigh();
        }
    }

    /// Gives each unit the weight of its part: the first has its turn.
    pub(super) fn weigh(&mut self) {
        for (place, unit) in self.units.iter_mut().enumerate() {
            let weight = match place {
                0 => self.threads.weight(unit.dir.version()),
                _ => Weight::Backfill,
            };
            // A group that cannot be weighed is gone, which shows at the next check.
            let _ = unit.weigh(weight);
        }
    }

    /// Gives each unit its weight again, whatever it has now.
    pub(super) fn weigh_anew(&mut self) {
        self.units.iter_mut().for_each(ProcessUnit::forget_weight);
        self.weigh();
    }

    /// Gives all units the same weight: they take no turns any more.
    pub(super) fn even_out(&mut self) {
        // A group that cannot be weighed is gone.
        self.units.iter_mut().for_each(|unit| _ = unit.weigh(Weight::Times(1)));
    }

    /// Passes the turn on, if it is over. Returns whether weights have to be set.
    pub(super) fn pass_on(&mut self, now: Nanos, proc: &Proc) -> bool {
        if now < self.check_at || self.units.len() < 2 {
            return false;
        }
        self.check_at = now + self.clock.stretched(CHECK);
        let is_over = self.units[0].is_over();
        let goes_on = !is_over && !self.clock.is_over(now) && self.units[0].wants_cpu(proc);
        if goes_on {
            return false;
        }
        self.clock.begin(now);
        if is_over {
            self.units.pop_front();
        } else {
            self.units.rotate_left(1);
        }
        // The next that wants a CPU, if any does.
        let mut waiting = self.units.iter().map(|unit| unit.wants_cpu(proc));
        let next = waiting.position(|wants| wants).unwrap_or(0);
        self.units.rotate_left(next);
        if let Some(unit) = self.units.front_mut() {
            let weight = self.threads.weight(unit.dir.version());
            // A group that cannot be weighed is gone, which shows at the next check.
            let _ = unit.weigh(weight);
        }
        true
    }
}

/// Of units that have taken in so many processes, the one that takes further ones in; `None`: they
/// get one of their own. Left where they are, they would starve all units.
fn place_in(taken_in: impl ExactSizeIterator<Item = usize>, most: usize) -> Option<usize> {
    let is_full = taken_in.len() >= most;
    let smallest = taken_in.enumerate().min_by_key(|(_, count)| *count);
    smallest.filter(|_| is_full).map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::{Dir, live};
    use crate::observe::dependencies::SharedKey;

    fn process(pid: i32) -> Process {
        Process { pid, start_time: 7 }
    }

    /// Busy processes that read and write nothing.
    fn busy(pids: &[i32]) -> BusyProcesses {
        pids.iter().map(|pid| (process(*pid), Some(0))).collect()
    }

    #[test]
    fn the_unit_in_turn_counts_as_the_threads_of_all_units() {
        let threads = RunningThreads::of(
            &[(3, 1), (4, 2), (5, 2), (9, 1)].map(|(pid, running)| (process(pid), running)).into(),
            &[3, 9],
        );
        assert_eq!(threads, RunningThreads { units: 4, others: 2 });
        assert_eq!(threads.weight(Version::V1), Weight::Times(4));
        assert_eq!(threads.weight(Version::V2), Weight::Times(2), "beside the group of the others");
        let alone = RunningThreads { units: 8, others: 0 };
        assert_eq!(alone.weight(Version::V2), Weight::Times(8));
    }

    #[test]
    fn processes_beyond_the_most_units_share_the_smallest() {
        let place = |taken_in: [usize; 4], most| place_in(taken_in.into_iter(), most);
        assert_eq!(place([1; 4], 5), None);
        assert_eq!([place([2, 2, 1, 2], 4), place([2, 2, 1, 2], 3)], [Some(2); 2]);
    }

    #[test]
    fn processes_count_once_they_were_busy_twice() {
        let ms = Nanos::from_millis;
        let mut family = Family::new(true, Nanos::ZERO);
        assert_eq!(family.saw(busy(&[1, 2]), ms(200)), []);
        assert_eq!(family.due(), ms(200) + SOON);
        assert_eq!(family.saw(busy(&[2, 3]), ms(300)), [process(2)]);
        let reused = Process { start_time: 8, ..process(3) };
        assert_eq!(family.saw([(reused, Some(0))].into(), ms(400)), []);
        family.known.insert(reused);
        assert_eq!(family.saw([(reused, Some(0))].into(), ms(500)), []);
    }

    #[test]
    fn processes_that_ended_are_not_remembered() {
        let mut family = Family::new(true, Nanos::ZERO);
        family.known.extend([process(1), process(2)]);
        family.forget_ended(&[process(2), process(3)].into());
        assert_eq!(family.known, [process(2)].into());
    }

    #[test]
    fn processes_that_read_and_write_often_are_none() {
        let ms = Nanos::from_millis;
        let mut family = Family::new(true, Nanos::ZERO);
        family.saw(
            [(process(1), Some(10)), (process(2), Some(10)), (process(3), None)].into(),
            ms(0),
        );
        let later = [(process(1), Some(15)), (process(2), Some(16)), (process(3), None)].into();
        assert_eq!(family.saw(later, ms(100)), [process(1)], "50 calls a second");
    }

    /// An ordinary folder has no weights.
    #[test]
    fn units_that_could_not_be_made_are_tried_again_later() {
        let (folder, seconds) = (tempfile::tempdir().unwrap(), Nanos::from_secs);
        let (dir, proc) = (Dir::new(folder.path(), Version::V1), Proc::new(folder.path()));
        let home = UnitHome { dir: &dir, most: 8, proc: &proc };
        let mut family = Family::new(true, Nanos::ZERO);
        let mut joined = |now| {
            family.saw(busy(&[1, 2]), now);
            let sure = family.saw(busy(&[1, 2]), now);
            assert_eq!(sure, [process(1), process(2)]);
            let part = |process| Part { processes: vec![process], keys: BTreeSet::new() };
            let parts = sure.into_iter().map(part).collect();
            let news = family.joins(FoundParts { parts, are_all: true }, &home, &mut 0, now);
            assert!(!family.may_grow(now + RETRY - Nanos(1)) && family.may_grow(now + RETRY));
            news
        };
        assert!(matches!(joined(seconds(1)), Some(UnitNews::Failed(_))));
        assert!(joined(seconds(20)).is_none(), "the user knows it");
    }

    /// Needs CPU groups.
    #[test]
    fn units_that_one_process_ties_together_become_one() {
        let Some(run) = live::v1("cpu", "ties") else { return };
        let (folder, now) = (tempfile::tempdir().unwrap(), Nanos::from_secs(1));
        let proc = Proc::new(folder.path());
        let home = UnitHome { dir: run.dir(), most: 8, proc: &proc };
        let (mut family, mut made) = (Family::new(true, now), 0);
        let mut joins = |parts: &[(i32, &[u64])]| {
            let part = |(pid, pipes): &(i32, &[u64])| Part {
                processes: vec![process(*pid)],
                keys: pipes.iter().copied().map(SharedKey::Pipe).collect(),
            };
            let parts = parts.iter().map(part).collect();
            family.joins(FoundParts { parts, are_all: true }, &home, &mut made, now);
            family.units.iter().map(|unit| unit.number).collect::<Vec<u32>>()
        };
        assert_eq!(joins(&[(1, &[7]), (2, &[8]), (3, &[9])]), [1, 2, 3]);
        assert_eq!(joins(&[(4, &[7, 9])]), [1, 2]);
        assert_eq!(joins(&[(5, &[9])]), [1, 2], "the first has what the third had");
        assert_eq!(run.dir().children().unwrap().len(), 2);
    }

    #[test]
    fn programs_with_one_process_are_looked_at_ever_more_rarely() {
        let mut family = Family::new(true, Nanos::ZERO);
        let mut now = family.due();
        for _ in 0..10 {
            family.saw(busy(&[1]), now);
            now = family.due();
        }
        family.saw(busy(&[1]), now);
        assert_eq!(family.due(), now + PAUSES.1);
        assert_eq!(family.wakes_at(), now + Nanos::from_millis(4500), "or with the next switch");
        family.spare(Nanos::from_secs(1), now);
        assert_eq!(family.due(), now + PAUSES.1);
        let mut family = Family::new(true, Nanos::ZERO);
        family.spare(Nanos::from_millis(2), Nanos::ZERO);
        assert_eq!(family.due(), Nanos::from_secs(1), "a look that takes 2 ms");
    }
}
