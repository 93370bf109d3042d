//! Load balancing between queues.
//!
//! A CPU that runs out of work takes a thread from the longest queue, near ones first (Linux'
//! `newidle_balance`). At its ticks, a CPU with waiting threads checks whether another one has so
//! much less to do that a thread should go there, again near ones first and far ones less often.
//! Where a CPU is idle it checks more often: such a tick makes Linux wake an idle CPU to balance
//! for the others (`nohz_balancer_kick`), each at an interval of a millisecond for each CPU that
//! there is. In Linux the CPU with less work does all that, on a timer of its own. Here the CPU
//! with more work does it, so that a machine without waiting threads has nothing to do.
//!
//! An idle CPU counts threads (`migrate_task`). Between busy CPUs, threads weigh what their nice
//! values say. A thread of a program with a share of its own weighs its part of it (`migrate_load`,
//! `task_h_load`). Linux takes averages over some tens of milliseconds; here the present weights
//! count. One thread at a time moves.
//!
//! The lightest CPU of the machine is found by descending from the lightest package. The load of
//! groups is summed up when it is needed: the more CPUs there are, the less often.

use cosched_core::Level;

use crate::fair::EnqueueReason;
use crate::queue::mix;
use crate::thread::ThreadState;
use crate::tid::Tid;
use crate::world::SimulatedWorld;

/// The distances at which work is searched, near to far (`None`: the whole machine).
const DISTANCES: [Option<Level>; 4] =
    [Some(Level::Core), Some(Level::Llc), Some(Level::Package), None];
/// The nanoseconds between a busy CPU's checks at a distance, for each CPU that there is, in Linux:
/// `busy_factor` (16) times the balance interval (1 ms for each CPU, in `sd_init`).
const PERIOD: u64 = 16_000_000;
/// The nanoseconds between checks where a CPU is idle: without `busy_factor`.
const PERIOD_OF_IDLE: u64 = 1_000_000;
/// Only every second check is made here. At the first one `detach_tasks` leaves a thread that
/// weighs more than half of the difference (it compares the load shifted by `nr_balance_failed`).
/// Between busy CPUs there is mostly no other case: there is one thread more here than there.
const LOOKS: u64 = 2;
/// A check is late by fewer ticks than this. Assumed.
const DISTURBED: u64 = 4;
/// A CPU gives a thread away only if its load is more than this many percent of the other CPU's
/// (`imbalance_pct`).
const IMBALANCE: f64 = 117.0;
/// The largest rounding error of a weight.
const ROUNDING: f64 = 1e-9;

impl SimulatedWorld {
    /// An idle CPU takes a thread: one with a fixed priority that waits on any CPU, else one from
    /// the longest queue near it.
    pub(crate) fn pull(&mut self, cpu: usize) {
        if self.queued == 0 {
            return;
        }
        let found = self.waiting_rank(cpu).or_else(|| self.longest_near(cpu));
        if let Some((from, tid)) = found {
            self.move_queued(tid, from, cpu);
        }
    }

    /// A thread without a fixed priority, from the longest queue near a CPU. All threads of Solaris
    /// have one.
    fn longest_near(&self, cpu: usize) -> Option<(usize, Tid)> {
        if self.kernel.is_solaris() {
            return None;
        }
        DISTANCES.into_iter().find_map(|distance| match distance {
            Some(level) => self.longest(cpu, level, self.shape.group(cpu, level)),
            None => self.longest_anywhere(cpu),
        })
    }

    /// A thread with a fixed priority that could run here, from the CPUs on which such threads
    /// wait.
    fn waiting_rank(&self, cpu: usize) -> Option<(usize, Tid)> {
        if self.ranked == 0 {
            return None;
        }
        let all = self.cpus.iter().enumerate().filter(|(other, _)| *other != cpu);
        let waiting = all.flat_map(|(other, of)| of.queue.iter().map(move |turn| (other, turn)));
        waiting
            .filter(|(_, turn)| turn.rank > 0 && self.may_use(turn.tid, cpu))
            .filter(|(from, turn)| self.may_steal(turn.tid, *from, cpu))
            .max_by_key(|(from, turn)| (turn.rank, self.chance(turn.tid, *from)))
            .map(|(from, turn)| (from, turn.tid))
    }

    fn longest_anywhere(&self, cpu: usize) -> Option<(usize, Tid)> {
        let (_, packages) = self.shape.inside(None)?;
        let waiting = |package: u16| self.waiting[Level::Package as usize][usize::from(package)];
        let most = packages
            .iter()
            .copied()
            .max_by_key(|package| (waiting(*package), self.chance(u32::from(*package), cpu)))?;
        let first = self.longest(cpu, Level::Package, usize::from(most));
        // If no thread of that package may come, the other packages are searched.
        first.or_else(|| {
            let others = packages.iter().filter(|package| **package != most);
            others
                .filter_map(|package| self.longest(cpu, Level::Package, usize::from(*package)))
                .next()
        })
    }

    /// The CPU with the most threads in a group, of those with at least two more than this one, and
    /// a thread of its queue that may move here.
    fn longest(&self, cpu: usize, level: Level, group: usize) -> Option<(usize, Tid)> {
        if self.waiting[level as usize][group] == 0 {
            return None;
        }
        let own = self.cpus[cpu].load;
        let others = self.shape.cpus(level, group).iter().map(|other| usize::from(*other));
        others
            .filter(|other| *other != cpu && self.cpus[*other].load > own + 1)
            .filter_map(|from| self.movable(from, cpu).map(|tid| (from, tid)))
            .max_by_key(|(from, tid)| (self.cpus[*from].load, self.chance(*tid, *from)))
    }

    fn movable(&self, from: usize, to: usize) -> Option<Tid> {
        let waiting = self.cpus[from].queue.iter().filter(|turn| !turn.delayed);
        waiting.map(|turn| turn.tid).find(|tid| self.may_move(*tid, to))
    }

    fn may_move(&self, tid: Tid, to: usize) -> bool {
        self.may_use(tid, to) && !(self.kernel.apart && self.has_sibling(tid, to))
    }

    pub(crate) fn move_queued(&mut self, tid: Tid, from: usize, to: usize) {
        debug_assert_eq!(self.threads[tid as usize].place, ThreadState::Queued);
        self.leave_queue(tid, from);
        self.enqueue(tid, to, EnqueueReason::Moved);
    }

    /// At a tick of a CPU with waiting threads: gives a thread to a CPU with less to do. If several
    /// distances are due at once, all are checked, near ones first (`sched_balance_domains`).
    pub(crate) fn push_away(&mut self, cpu: usize) {
        let ticks = self.now / self.kernel.tick.0;
        // Solaris moves threads when they join a queue.
        if self.kernel.is_solaris() || self.strays(cpu) {
            return;
        }
        let mut nearer = 1;
        for distance in DISTANCES {
            let width = self.shape.around(cpu, distance).len() as u64;
            // This distance adds no CPU.
            if width == std::mem::replace(&mut nearer, width) {
                continue;
            }
            // One tick less, so that distances do not all come due at once
            // (`get_sd_balance_interval`).
            let look = (PERIOD * width / self.kernel.tick.0).saturating_sub(1);
            let period = (LOOKS * look).max(1);
            // Each CPU has its own time, plus or minus some ticks. The causes of this jitter are
            // not modelled, and without it threads that alternate at every tick would stay in step
            // with the checks.
            let own = self.seed ^ ((cpu as u64) << 48);
            let moment = mix(own) % period + mix(own ^ (ticks / period)) % DISTURBED;
            let is_due = ticks % period == moment % period;
            let often = (PERIOD_OF_IDLE * width).div_ceil(self.kernel.tick.0);
            let helps = ticks % often == mix(own) % often && self.has_free(cpu, distance);
            if !is_due && !helps {
                continue;
            }
            let found = self.lighter(cpu, distance);
            if let Some((tid, to)) = found.filter(|(_, to)| is_due || self.is_free(*to)) {
                self.move_queued(tid, cpu, to);
            }
        }
    }

    /// Whether a CPU near this one is idle, or runs only fillers (`!sched_idle_cpu(cpu)` in
    /// `sched_balance_domains`).
    fn has_free(&self, cpu: usize, distance: Option<Level>) -> bool {
        let is_idle = match distance {
            Some(level) => self.idle[level as usize][self.shape.group(cpu, level)] > 0,
            None => self.idle[Level::Package as usize].iter().any(|idle| *idle > 0),
        };
        let mut around = self.shape.around(cpu, distance).iter().copied().map(usize::from);
        is_idle || (self.by_weight && around.any(|to| to != cpu && self.has_only_fillers(to)))
    }

    /// Now and then a thread is moved although the queues are even. Returns whether one was.
    fn strays(&mut self, cpu: usize) -> bool {
        const PARTS: u64 = 1 << 30;
        let often = self.hardware.strays_per_second * self.kernel.tick.as_secs_f64();
        if (self.chance(u32::MAX, cpu) % PARTS) as f64 >= often * PARTS as f64 {
            return false;
        }
        let around = self.shape.around(cpu, Some(Level::Llc)).iter().copied().map(usize::from);
        let even = around.filter(|to| *to != cpu && self.cpus[*to].load == self.cpus[cpu].load);
        let Some(to) = even.min_by_key(|to| self.chance(0, *to)) else { return false };
        match self.movable(cpu, to) {
            Some(tid) => {
                self.move_queued(tid, cpu, to);
                true
            }
            None => false,
        }
    }

    /// A thread of a CPU's queue, and a CPU nearby that it could move to.
    fn lighter(&self, cpu: usize, distance: Option<Level>) -> Option<(Tid, usize)> {
        if self.cpus[cpu].load < 2 {
            return None;
        }
        let own = self.burden(cpu);
        let mut anywhere = None;
        // Linux goes on until the difference is gone (`detach_tasks`). Fillers hardly change it, so
        // others come first.
        let waiting = self.cpus[cpu].queue.iter().filter(|turn| !turn.delayed);
        let fillers = waiting.clone().filter(|turn| turn.idle);
        for turn in waiting.filter(|turn| !turn.idle).chain(fillers) {
            let tid = turn.tid;
            let to = match self.goes_anywhere(tid) {
                true => *anywhere.get_or_insert_with(|| self.lightest(cpu, distance)),
                false => {
                    let around = self.shape.around(cpu, distance).iter().copied().map(usize::from);
                    let allowed = around.filter(|to| *to != cpu && self.may_move(tid, *to));
                    let key = |to: &usize| (parts(self.burden(*to)), self.chance(tid, *to));
                    match allowed.min_by_key(key) {
                        Some(to) => to,
                        None => continue,
                    }
                }
            };
            let other = self.burden(to);
            let is_worth_it = 100.0 * own > IMBALANCE * other;
            // Half of the difference would make them equal. With more, the other CPU has the higher
            // load afterwards, so equal threads swap places from time to time.
            let moves = self.bears(self.program_of(tid)) <= own - other + ROUNDING;
            if self.cpus[to].load == 0 || (is_worth_it && moves) {
                return Some((tid, to));
            }
        }
        None
    }

    fn goes_anywhere(&self, tid: Tid) -> bool {
        !self.kernel.apart
            && self.threads[tid as usize].mask.is_none()
            && self.programs[self.program_of(tid)].cpus.is_none()
    }

    /// The CPU with the lowest load nearby: of the lightest group the lightest group, and so on.
    /// Groups with fewer threads than CPUs come first (`group_has_spare`).
    fn lightest(&self, cpu: usize, distance: Option<Level>) -> usize {
        let mut at = distance.map(|level| (level, self.shape.group(cpu, level)));
        while let Some((level, groups)) = self.shape.inside(at) {
            let key = |group: &u16| {
                let (group, chance) = (usize::from(*group), self.chance(u32::from(*group), cpu));
                let cpus = self.shape.cpus(level, group);
                let (threads, size) = (self.loads[level as usize][group], cpus.len());
                let bears = match threads as usize >= size {
                    true => cpus.iter().map(|cpu| self.burden(usize::from(*cpu))).sum(),
                    false => f64::from(threads),
                };
                (threads as usize >= size, parts(bears / size as f64), chance)
            };
            let group = groups.iter().copied().min_by_key(key).unwrap_or(0);
            at = Some((level, usize::from(group)));
        }
        let cpus = at.map_or(&[][..], |(level, group)| self.shape.cpus(level, group));
        let key = |other: &u16| {
            let other = usize::from(*other);
            (parts(self.burden(other)), self.chance(0, other))
        };
        cpus.iter().copied().min_by_key(key).map_or(cpu, usize::from)
    }

    /// The weight of the threads on a CPU and in its queue.
    pub(crate) fn burden(&self, cpu: usize) -> f64 {
        let shares = self.cpus[cpu].shares.iter();
        shares.map(|(program, count)| f64::from(*count) * self.bears(usize::from(*program))).sum()
    }

    /// The weight of a program's thread in load balancing: a kernel without weights counts threads.
    fn bears(&self, program: usize) -> f64 {
        if self.kernel.is_fair() { self.weight_in(program) } else { 1.0 }
    }

    /// A thread of a program was added to a CPU or its queue, or has left both.
    pub(crate) fn load_changes(&mut self, cpu: usize, program: u16, comes: bool) {
        self.cpus[cpu].counts(program, comes);
        let change = |count: &mut u32| *count = if comes { *count + 1 } else { *count - 1 };
        let (begins, ends) = (self.cpus[cpu].load == 1 && comes, self.cpus[cpu].load == 0);
        for level in Level::ALL {
            let group = self.shape.group(cpu, level);
            change(&mut self.loads[level as usize][group]);
            let idle = &mut self.idle[level as usize][group];
            *idle = *idle + u32::from(ends) - u32::from(begins);
        }
    }

    /// A thread has begun to wait in a CPU's queue, or no longer waits.
    pub(crate) fn waiting_changes(&mut self, cpu: usize, comes: bool, rank: u8) {
        let change = |count: &mut u32| *count = if comes { *count + 1 } else { *count - 1 };
        change(&mut self.queued);
        if rank > 0 {
            change(&mut self.ranked);
        }
        for level in Level::ALL {
            change(&mut self.waiting[level as usize][self.shape.group(cpu, level)]);
        }
    }
}

/// A weight as an integer of small parts, so that it can be ordered together with other keys.
pub(crate) fn parts(weight: f64) -> u64 {
    (weight * 65_536.0) as u64
}
