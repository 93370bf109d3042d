//! One interval of a program, and its result: groups, or none.

use std::collections::BTreeMap;

use cosched_core::{
    CpuSet, Grouping, MaskOwner, Nanos, Output, Plan, ProgramId, Sample, Thread, ThreadId, World,
};

use super::grouping::{Contender, spread};
use super::pages::{loss, share_out_but_hold};
use super::params::Params;
use super::{Homes, ShufflingOptions, ShufflingReason, SortBy};

/// What was sampled of a thread in an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadTotals {
    lived: Nanos,
    waited: Nanos,
    misses: u64,
    /// The part of its life in which its misses were counted.
    counted: Nanos,
    ran: bool,
}

impl ThreadTotals {
    /// Adds a sample of the thread.
    pub(super) fn add(&mut self, sample: &Sample) {
        let lived = (sample.to - sample.from).since(sample.frozen);
        self.lived += lived;
        self.waited += sample.lock_wait.unwrap_or_default();
        if let Some(misses) = sample.llc_misses {
            self.misses += misses;
            self.counted += lived;
        }
        self.ran |=
            sample.on_cpu > Nanos::ZERO || sample.run_delay.unwrap_or_default() > Nanos::ZERO;
    }

    /// The share of its time at locks.
    fn lock_time(&self) -> f64 {
        (self.waited.as_secs_f64() / self.lived.as_secs_f64()).min(1.0)
    }

    /// Its misses per second. `None`: they were counted for less than half of its life. What a
    /// program's threads miss together says nothing of a single one.
    fn misses_per_second(&self) -> Option<f64> {
        let is_known = self.counted > Nanos::ZERO && self.counted.0 >= self.lived.0 / 2;
        is_known.then(|| self.misses as f64 / self.counted.as_secs_f64())
    }
}

/// One interval of a program, with the decision at its end.
pub(super) struct ShufflingRound<'a> {
    pub(super) options: &'a ShufflingOptions,
    pub(super) params: &'a Params,
    /// The CPUs of each socket.
    pub(super) sockets: &'a [CpuSet],
    /// The memory node of each socket, where it has one.
    pub(super) nodes: &'a [Option<u16>],
    /// Where the threads' pages lie.
    pub(super) pages: &'a Homes,
    pub(super) threads: &'a [Thread],
    pub(super) totals: BTreeMap<ThreadId, ThreadTotals>,
    pub(super) length: Nanos,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum IntervalResult {
    /// Threads hardly wait at locks: this share of their time.
    Calm(f64),
    /// The present groups are good enough; threads that came later are in them.
    Good(Homes),
    /// Other groups are better.
    Better { homes: Homes, shuffle: Shuffle },
}

/// Groups that are better, and why.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shuffle {
    /// How many threads were sorted.
    threads: u16,
    /// How many of these threads change their socket.
    moved: u16,
    /// The number of sockets.
    groups: u16,
    /// The mean share of their time at locks.
    pub(super) lock_time: f64,
    /// The spread of the threads of a socket before, and with the groups.
    before: f64,
    after: f64,
}

impl Shuffle {
    /// Says that the groups are in force from now on.
    pub(super) fn tell(self, id: ProgramId, plan: &mut Plan) {
        let Shuffle { threads, moved, groups, lock_time, before, after } = self;
        let why = ShufflingReason::Shuffled { threads, moved, groups, lock_time, before, after };
        plan.because(Some(id), why);
        let sorted = Grouping::Sorted { threads, moved, groups, lock_time };
        plan.output(id, Output::Grouped(sorted));
    }
}

impl ShufflingRound<'_> {
    /// Decides on groups. `homes` has the present sockets of threads. `None`: there are no two
    /// distinguishable threads.
    pub(super) fn decide(&self, homes: &Homes, world: &World<'_>) -> Option<IntervalResult> {
        let contenders = self.contenders(homes, world);
        if contenders.len() < 2 {
            return None;
        }
        let lock_time = self.lock_time(&contenders);
        if self.options.sort.is_for_locks() && lock_time <= self.options.threshold {
            return Some(IntervalResult::Calm(lock_time));
        }
        let cpus: Vec<usize> = self.sockets.iter().map(CpuSet::len).collect();
        let stay = self.stay();
        let (sort, nodes) = (self.options.sort, self.nodes);
        let to = share_out_but_hold(&contenders, &cpus, &stay, sort, nodes, self.params);
        let on: Vec<usize> = contenders.iter().map(|one| one.socket).collect();
        let apart = |on: &[usize]| spread(&contenders, on, self.sockets.len());
        let (before, after) = (apart(&on), apart(&to));
        let mut homes = homes.clone();
        let moved = contenders.iter().zip(&to).filter(|(one, to)| one.socket != **to).count();
        let is_better = moved > 0 && self.is_better(&contenders, before - after);
        if !homes.is_empty() && !is_better {
            self.house_newcomers(&contenders, &cpus, &stay, &mut homes);
            return Some(IntervalResult::Good(homes));
        }
        homes.extend(contenders.iter().map(|one| one.id).zip(to));
        let shuffle = Shuffle {
            threads: contenders.len() as u16,
            moved: moved as u16,
            groups: self.sockets.len() as u16,
            lock_time,
            before,
            after,
        };
        Some(IntervalResult::Better { homes, shuffle })
    }

    /// The threads that are to be in groups.
    fn contenders(&self, homes: &Homes, world: &World<'_>) -> Vec<Contender> {
        let contender = |thread: &Thread| {
            let totals = self.totals.get(&thread.id)?;
            let half = Nanos(self.length.0 / 2);
            if thread.mask_owner != MaskOwner::Cosched || !totals.ran || totals.lived < half {
                return None;
            }
            let misses = totals.misses_per_second();
            let value = match self.options.sort {
                SortBy::Misses => misses?,
                SortBy::Lock | SortBy::LockTime | SortBy::Birth => totals.lock_time(),
            };
            let socket =
                homes.get(&thread.id).copied().unwrap_or_else(|| socket_of(thread, self.sockets));
            let lock = main_lock(thread.id, world).filter(|_| self.options.sort == SortBy::Lock);
            let pages = self.pages.get(&thread.id).copied().unwrap_or(socket);
            let weighed = misses.filter(|_| self.options.weighs_pages());
            let loss = loss(weighed.unwrap_or(0.0), self.params.farther);
            Some(Contender { id: thread.id, lock, value, socket, pages, loss })
        };
        self.threads.iter().filter_map(contender).collect()
    }

    /// For each socket, the number of threads there that another process has bound.
    fn stay(&self) -> Vec<usize> {
        let mut stay = vec![0; self.sockets.len()];
        for thread in self.threads.iter().filter(|t| t.mask_owner != MaskOwner::Cosched) {
            stay[socket_of(thread, self.sockets)] += 1;
        }
        stay
    }

    /// The mean share of their time at locks.
    fn lock_time(&self, contenders: &[Contender]) -> f64 {
        let shares = contenders.iter().filter_map(|one| self.totals.get(&one.id));
        shares.map(ThreadTotals::lock_time).sum::<f64>() / contenders.len() as f64
    }

    /// Whether threads come nearer to each other by enough to be moved.
    fn is_better(&self, contenders: &[Contender], nearer: f64) -> bool {
        let Some(hysteresis) = self.options.hysteresis() else {
            return self.options.sort != SortBy::Birth;
        };
        match self.options.sort {
            SortBy::Lock | SortBy::LockTime => nearer > hysteresis,
            // Misses are evened out, so the misses of a socket's threads differ more. Enough is a
            // part of the mean.
            SortBy::Misses => {
                let mean =
                    contenders.iter().map(|one| one.value).sum::<f64>() / contenders.len() as f64;
                -nearer > hysteresis * mean
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
        homes: &mut Homes,
    ) {
        let mut load = stay.to_vec();
        homes.values().for_each(|socket| load[*socket] += 1);
        for one in contenders {
            if homes.contains_key(&one.id) {
                continue;
            }
            let fuller = |a: &usize, b: &usize| {
                ((load[*a] + 1) * cpus[*b]).cmp(&((load[*b] + 1) * cpus[*a]))
            };
            let Some(socket) = (0..cpus.len()).min_by(fuller) else { return };
            load[socket] += 1;
            homes.insert(one.id, socket);
        }
    }
}

/// The socket that a thread is on; for a thread outside of all sockets, the first.
pub(super) fn socket_of(thread: &Thread, sockets: &[CpuSet]) -> usize {
    sockets.iter().position(|cpus| cpus.contains(usize::from(thread.cpu))).unwrap_or(0)
}

/// The lock that a thread waited for most, where that is known.
fn main_lock(thread: ThreadId, world: &World<'_>) -> Option<u64> {
    let own = world.locks.iter().filter(|share| share.thread == thread);
    own.max_by_key(|share| (share.wait, std::cmp::Reverse(share.lock))).map(|share| share.lock)
}
