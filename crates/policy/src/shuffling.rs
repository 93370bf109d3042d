//! `shuffling`: threads that come to a lock at about the same time share a socket.
//!
//! *Problem.* A lock that goes from a thread on one socket to a thread on another takes its cache line, and the data that it
//! guards, across the machine: acquiring takes longer, and the critical section begins with misses. Load balancing knows
//! nothing of locks, so the next one to come is mostly on another socket.
//!
//! *Idea.* Threads that wait for locks for the same share of their time come to them at about the same time. If these
//! are on one socket, whoever gets the lock next is mostly a neighbour.
//!
//! *Algorithm.* In each interval, sample the lock times of a program's N threads. If they exceed a threshold, sort the threads by
//! lock time, divide them into as many groups as there are sockets, and move threads until each group has a socket of
//! its own ([`grouping`]). Groups and sockets are paired so that the fewest threads move ([`matching`]). A thread is bound to all
//! CPUs of its socket; among these the kernel places it.
//!
//! *Source.* The slides on thread shuffling: "Thread Shuffling (algorithm)", "Shuffling Interval" (500 ms). The threshold,
//! the number of samples and the order of equals are not in them. Ours:
//!
//! - *lock time* is the share of an interval that a thread slept at locks; a thread that did not run at all, or that was not there
//!   for half of the interval, is not sampled, and stays where it is;
//! - the *threshold* is on the mean over the sampled threads; once it has been below half of that for [`PATIENCE`]
//!   intervals, the threads may run anywhere again: without locks nothing is gained by binding them;
//! - *hysteresis*: groups that are there are given up only for groups whose threads are nearer to each other by more than so
//!   much of their time. A thread that comes later goes to the socket with most room until then;
//! - *several programs* are shuffled one by one, since they share no locks;
//! - threads that somebody else has bound are left alone, and count where they are;
//! - what a socket is can be [said](sockets), and what threads are sorted by ([`SortBy`]).

mod grouping;
mod matching;
mod sockets;

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use cosched_core::{
    Cause, Command, CpuSet, MaskOwner, Measure, Nanos, Observe, Plan, Policy, ProgramId,
    ProgramState, Sample, Settings, Thread, ThreadId, ThreadRule, Why, World,
};

use crate::kind::UnknownName;
use grouping::{Contender, share_out, spread};
pub use sockets::{GroupBy, Sockets, SocketsError};

/// So many intervals in a row without contention, and threads are let go.
const PATIENCE: u32 = 4;

/// How `shuffling` is to work.
#[derive(Clone, Debug, PartialEq)]
pub struct ShufflingOptions {
    /// How often threads are sampled, and shuffled if need be.
    pub interval: Nanos,
    /// Above this mean share of their time at locks threads are shuffled; 0 to 1.
    pub threshold: f64,
    /// By so much of their time the threads of a group have to be nearer to each other for new groups to be made; 0 to 1.
    pub hysteresis: f64,
    /// What counts as a socket.
    pub sockets: Sockets,
    /// What threads are sorted by.
    pub sort: SortBy,
}

impl Default for ShufflingOptions {
    fn default() -> ShufflingOptions {
        ShufflingOptions {
            interval: Nanos::from_millis(500),
            threshold: 0.10,
            hysteresis: 0.02,
            sockets: Sockets::Widest,
            sort: SortBy::Lock,
        }
    }
}

/// What threads are sorted by before they are divided into groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// The lock that they wait for most, where that is known, and how long they wait. Ours: threads that wait equally long
    /// for different locks gain nothing by being together.
    Lock,
    /// How long they wait at locks, as in the slides.
    LockTime,
    /// How often they miss the last-level cache; evened out over the sockets. What the slides compare with as DINO.
    Misses,
    /// The order in which they were made, once and for all: a pool of threads on a pool of CPUs. What the slides compare
    /// with as PSets.
    Birth,
}

impl SortBy {
    /// All of them.
    pub const ALL: [SortBy; 4] = [SortBy::Lock, SortBy::LockTime, SortBy::Misses, SortBy::Birth];

    /// The name by which users ask for it.
    pub const fn name(self) -> &'static str {
        match self {
            SortBy::Lock => "lock",
            SortBy::LockTime => "lock-time",
            SortBy::Misses => "misses",
            SortBy::Birth => "birth",
        }
    }

    /// Whether it has to do with locks: otherwise there is no threshold for them.
    fn is_for_locks(self) -> bool {
        matches!(self, SortBy::Lock | SortBy::LockTime)
    }

    /// What has to be measured for it.
    fn measures(self) -> &'static [Measure] {
        use Measure::{Counters, CpuTime, LockShares, LockWait, Threads};
        match self {
            SortBy::Lock => &[Threads, LockWait, CpuTime, LockShares],
            SortBy::LockTime | SortBy::Birth => &[Threads, LockWait, CpuTime],
            SortBy::Misses => &[Threads, LockWait, CpuTime, Counters],
        }
    }
}

impl fmt::Display for SortBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SortBy {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<SortBy, UnknownName> {
        let found = SortBy::ALL.into_iter().find(|sort| sort.name() == name);
        found.ok_or_else(|| UnknownName::new("order", name, SortBy::ALL.map(SortBy::name)))
    }
}

/// Each thread on the socket of those who come to locks when it does.
#[derive(Debug)]
pub(crate) struct Shuffling {
    options: ShufflingOptions,
    /// The CPUs of each, of which threads are given all.
    sockets: Vec<CpuSet>,
    programs: BTreeMap<ProgramId, Tracked>,
}

/// What is known of a program.
#[derive(Debug)]
struct Tracked {
    /// What was seen of its threads since the last decision, and when that was.
    heard: BTreeMap<ThreadId, Heard>,
    since: Nanos,
    /// The socket that each thread was given.
    homes: BTreeMap<ThreadId, usize>,
    /// Intervals in a row without contention.
    calm: u32,
}

/// What was seen of a thread in an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    lived: Nanos,
    waited: Nanos,
    misses: u64,
    ran: bool,
}

impl Heard {
    fn add(&mut self, sample: &Sample) {
        self.lived += (sample.to - sample.from).since(sample.frozen);
        self.waited += sample.lock_wait.unwrap_or_default();
        self.misses += sample.llc_misses.unwrap_or_default();
        self.ran |=
            sample.on_cpu > Nanos::ZERO || sample.run_delay.unwrap_or_default() > Nanos::ZERO;
    }

    /// The share of its time at locks.
    fn lock_time(&self) -> f64 {
        (self.waited.as_secs_f64() / self.lived.as_secs_f64()).min(1.0)
    }
}

impl Shuffling {
    pub(crate) fn new(options: ShufflingOptions) -> Shuffling {
        Shuffling { options, sockets: Vec::new(), programs: BTreeMap::new() }
    }

    fn arrived(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let Some(program) = world.program(id) else { return };
        // What runs already was attached to, and is left as it is for now.
        if program.state == ProgramState::New {
            plan.run(id, Settings::default());
            plan.because(Some(id), Why::LeftToKernel);
        }
        let (heard, homes) = (BTreeMap::new(), BTreeMap::new());
        self.programs.insert(id, Tracked { heard, since: world.now, homes, calm: 0 });
        let period = self.options.interval;
        let observe = |measure: &Measure| Observe { program: Some(id), measure: *measure, period };
        plan.observe.extend(self.options.sort.measures().iter().map(observe));
    }

    /// The CPUs that programs may use are others than before: who has lost all CPUs of his socket may run anywhere until the
    /// next shuffling.
    fn find_sockets(&mut self, world: &World<'_>, plan: &mut Plan) {
        let found = self.options.sockets.usable(world.topology, world.cpus);
        let before = std::mem::replace(&mut self.sockets, found);
        if before == self.sockets {
            return;
        }
        let now = |old: usize| self.sockets.iter().position(|new| new.intersects(&before[old]));
        for tracked in self.programs.values_mut() {
            let homes = std::mem::take(&mut tracked.homes);
            let is_ours = |id| world.thread(id).is_some_and(|t| t.mask_owner == MaskOwner::Cosched);
            for (id, old) in homes.into_iter().filter(|(id, _)| is_ours(*id)) {
                let new = now(old);
                new.into_iter().for_each(|new| _ = tracked.homes.insert(id, new));
                plan.threads.push((id, rule(new.map(|new| self.sockets[new]))));
            }
        }
    }

    fn sampled(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let (Some(tracked), Some(program)) = (self.programs.get_mut(&id), world.program(id)) else {
            return;
        };
        for sample in world.samples.iter().filter(|sample| sample.program == id) {
            if let Some(thread) = sample.thread {
                tracked.heard.entry(thread).or_default().add(sample);
            }
        }
        // What was read in the middle of an interval is a part of it.
        if world.now.since(tracked.since) < Nanos(self.options.interval.0 / 2) {
            return;
        }
        let round = Round {
            options: &self.options,
            sockets: &self.sockets,
            threads: world.threads_of(program),
            heard: std::mem::take(&mut tracked.heard),
            length: world.now.since(std::mem::replace(&mut tracked.since, world.now)),
        };
        let is_ours = |thread: &&Thread| thread.mask_owner == MaskOwner::Cosched;
        let lives =
            |id: &ThreadId| round.threads.iter().filter(is_ours).any(|thread| thread.id == *id);
        tracked.homes.retain(|id, _| lives(id));
        if round.sockets.len() > 1 {
            round.decide(id, tracked, world, plan);
        }
    }
}

impl Policy for Shuffling {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        if self.sockets.is_empty() || causes.contains(&Cause::MachineChanged) {
            self.find_sockets(world, plan);
        }
        let moved_anyway = !plan.threads.is_empty();
        for cause in causes {
            match *cause {
                Cause::Arrived(id) => self.arrived(id, world, plan),
                // No thread twice in one plan: with the next sample it is early enough.
                Cause::Sampled(id) if !moved_anyway => self.sampled(id, world, plan),
                Cause::Exited(id, _) | Cause::Commanded(Command::Detach(id)) => {
                    self.programs.remove(&id);
                }
                _ => {}
            }
        }
    }
}

/// One interval of a program, at whose end it is decided.
struct Round<'a> {
    options: &'a ShufflingOptions,
    sockets: &'a [CpuSet],
    threads: &'a [Thread],
    heard: BTreeMap<ThreadId, Heard>,
    length: Nanos,
}

impl Round<'_> {
    fn decide(&self, id: ProgramId, tracked: &mut Tracked, world: &World<'_>, plan: &mut Plan) {
        let contenders = self.contenders(&tracked.homes, world);
        if contenders.len() < 2 {
            return;
        }
        let lock_time = self.lock_time(&contenders);
        if self.options.sort.is_for_locks() && lock_time <= self.options.threshold {
            let is_calm = lock_time < self.options.threshold / 2.0;
            tracked.calm = if is_calm { tracked.calm + 1 } else { 0 };
            if tracked.calm >= PATIENCE && !tracked.homes.is_empty() {
                let homes = std::mem::take(&mut tracked.homes);
                plan.threads.extend(homes.into_keys().map(|thread| (thread, rule(None))));
                plan.because(Some(id), Why::Unbound { lock_time });
            }
            return;
        }
        tracked.calm = 0;
        let cpus: Vec<usize> = self.sockets.iter().map(CpuSet::len).collect();
        let stay = self.stay();
        let to = share_out(&contenders, &cpus, &stay, self.options.sort);
        let on: Vec<usize> = contenders.iter().map(|one| one.socket).collect();
        let apart = |on: &[usize]| spread(&contenders, on, self.sockets.len());
        let (before, after) = (apart(&on), apart(&to));
        if !tracked.homes.is_empty() && !self.is_better(&contenders, before - after) {
            return self.house_newcomers(&contenders, &cpus, &stay, tracked, plan);
        }
        let moved = contenders.iter().zip(&to).filter(|(one, to)| one.socket != **to).count();
        for (one, to) in contenders.iter().zip(to) {
            self.house(one.id, to, tracked, plan);
        }
        plan.because(
            Some(id),
            Why::Shuffled {
                threads: contenders.len() as u16,
                moved: moved as u16,
                groups: self.sockets.len() as u16,
                lock_time,
                before,
                after,
            },
        );
    }

    /// The threads that are to be in groups.
    fn contenders(&self, homes: &BTreeMap<ThreadId, usize>, world: &World<'_>) -> Vec<Contender> {
        let contender = |thread: &Thread| {
            let heard = self.heard.get(&thread.id)?;
            let half = Nanos(self.length.0 / 2);
            if thread.mask_owner != MaskOwner::Cosched || !heard.ran || heard.lived < half {
                return None;
            }
            let value = match self.options.sort {
                SortBy::Misses => heard.misses as f64 / heard.lived.as_secs_f64(),
                SortBy::Lock | SortBy::LockTime | SortBy::Birth => heard.lock_time(),
            };
            let socket = homes.get(&thread.id).copied().or_else(|| self.socket_of(thread))?;
            let lock = main_lock(thread.id, world).filter(|_| self.options.sort == SortBy::Lock);
            Some(Contender { id: thread.id, lock, value, socket })
        };
        self.threads.iter().filter_map(contender).collect()
    }

    /// The socket that a thread is on; one outside of them all is nearest to the first.
    fn socket_of(&self, thread: &Thread) -> Option<usize> {
        let on = self.sockets.iter().position(|cpus| cpus.contains(usize::from(thread.cpu)));
        Some(on.unwrap_or(0))
    }

    /// For each socket, how many threads are there that somebody else has bound.
    fn stay(&self) -> Vec<usize> {
        let mut stay = vec![0; self.sockets.len()];
        for thread in self.threads.iter().filter(|t| t.mask_owner != MaskOwner::Cosched) {
            self.socket_of(thread).into_iter().for_each(|socket| stay[socket] += 1);
        }
        stay
    }

    /// The mean share of their time at locks.
    fn lock_time(&self, contenders: &[Contender]) -> f64 {
        let shares = contenders.iter().filter_map(|one| self.heard.get(&one.id));
        shares.map(Heard::lock_time).sum::<f64>() / contenders.len() as f64
    }

    /// Whether threads come nearer to each other by enough to be moved.
    fn is_better(&self, contenders: &[Contender], nearer: f64) -> bool {
        match self.options.sort {
            SortBy::Lock | SortBy::LockTime => nearer > self.options.hysteresis,
            // Misses are evened out, so threads of a socket come apart; enough is a part of the mean.
            SortBy::Misses => {
                let mean =
                    contenders.iter().map(|one| one.value).sum::<f64>() / contenders.len() as f64;
                -nearer > self.options.hysteresis * mean
            }
            SortBy::Birth => false,
        }
    }

    /// Threads without a socket get the one with most room.
    fn house_newcomers(
        &self,
        contenders: &[Contender],
        cpus: &[usize],
        stay: &[usize],
        tracked: &mut Tracked,
        plan: &mut Plan,
    ) {
        let mut load = stay.to_vec();
        tracked.homes.values().for_each(|socket| load[*socket] += 1);
        for one in contenders {
            if tracked.homes.contains_key(&one.id) {
                continue;
            }
            let fuller = |a: &usize, b: &usize| {
                ((load[*a] + 1) * cpus[*b]).cmp(&((load[*b] + 1) * cpus[*a]))
            };
            let Some(socket) = (0..cpus.len()).min_by(fuller) else { return };
            load[socket] += 1;
            self.house(one.id, socket, tracked, plan);
        }
    }

    /// Gives a thread a socket, if it has another one or none.
    fn house(&self, thread: ThreadId, socket: usize, tracked: &mut Tracked, plan: &mut Plan) {
        if tracked.homes.insert(thread, socket) != Some(socket) {
            plan.threads.push((thread, rule(Some(self.sockets[socket]))));
        }
    }
}

/// A thread runs on these CPUs; `None`: as its program.
fn rule(cpus: Option<CpuSet>) -> ThreadRule {
    ThreadRule { cpus, ..ThreadRule::default() }
}

/// The lock for which a thread waited most, where that is known.
fn main_lock(thread: ThreadId, world: &World<'_>) -> Option<u64> {
    let own = world.locks.iter().filter(|share| share.thread == thread);
    own.max_by_key(|share| (share.wait, std::cmp::Reverse(share.lock))).map(|share| share.lock)
}

#[cfg(test)]
mod tests;
