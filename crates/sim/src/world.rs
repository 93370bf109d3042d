//! The state of the simulated machine, and the loop that advances it.
//!
//! An instant has three steps. Everything that is due happens. CPUs on which something has changed
//! choose the next thread. CPUs with other threads or co-runners than before are priced again,
//! which gives each thread the time at which it will have finished. Choosing can cause events in
//! the same instant (a thread that gets a CPU finds its barrier open), so the first two steps
//! repeat until nothing is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cosched_core::{CpuSet, Event, Exit, Happening, Level, Nanos, ProgramId, Settings};

use crate::agenda::Agenda;
use crate::arrivals::LockArrivals;
use crate::cpu::CpuState;
use crate::delays::{Delays, Shares};
use crate::eviction::{Cache, Presence};
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use crate::model::Model;
use crate::prices::Prices;
use crate::queue::Queue;
use crate::samples::ProgramReading;
use crate::shape::Shape;
use crate::sync::Sync;
use crate::tally::{KeptIntervals, Tally};
use crate::thread::{Doing, SimulatedThread, ThreadState};
use crate::tid::Tid;

/// How many events are handled, within a tenth of a second, before the next look at whether the
/// user has asked for an end.
const LOOK: u64 = 1 << 14;

/// The inside of a simulated machine.
#[derive(Debug)]
pub(crate) struct SimulatedWorld {
    pub(crate) hardware: Hardware,
    pub(crate) shape: Shape,
    pub(crate) kernel: Kernel,
    /// See [`Kernel::stretch`].
    pub(crate) stretch: f64,
    /// The present time, nanoseconds.
    pub(crate) now: u64,
    /// Recurring events: slots as [`Due`] numbers them.
    pub(crate) agenda: Agenda,
    /// Events that happen once.
    pub(crate) effects: Queue<Effect>,
    pub(crate) threads: Vec<SimulatedThread>,
    pub(crate) cpus: Vec<CpuState>,
    pub(crate) programs: Vec<ProgramRun>,
    /// CPUs that have to choose again.
    pub(crate) unsettled: Vec<usize>,
    /// Threads on CPUs that have to begin their next operation.
    pub(crate) ready: Vec<Tid>,
    /// CPUs that have to be priced.
    pub(crate) unpriced: Vec<usize>,
    pub(crate) prices: Prices,
    /// The last-level caches.
    pub(crate) caches: Vec<Cache>,
    /// How many threads are on the CPUs of each group of each level, or in their queues.
    pub(crate) loads: [Vec<u32>; 4],
    /// CPUs with nothing to do, by level and group.
    pub(crate) idle: [Vec<u32>; 4],
    /// How many threads wait in those queues.
    pub(crate) waiting: [Vec<u32>; 4],
    /// How many threads wait in queues, and how many of them have a fixed priority.
    pub(crate) queued: u32,
    pub(crate) ranked: u32,
    /// Whether any program has ever had a part in taking turns by weight.
    pub(crate) by_weight: bool,
    /// Programs that have got the turn by weight in this instant.
    pub(crate) begun: Vec<usize>,
    /// The CPUs to which threads were moved apart since a turn last began.
    pub(crate) used: Vec<usize>,
    /// The number of the last turn, where turns are given in order.
    pub(crate) turns: f64,
    /// Last-level misses of runs without threads in the list.
    pub(crate) past_misses: f64,
    /// The time of the last reading of the machine as a whole, and the number of last-level misses
    /// at that time.
    pub(crate) machine_reading: (u64, f64),
    pub(crate) seed: u64,
    /// Events for the machine's caller.
    pub(crate) out: Vec<Event>,
    /// How many events were handled.
    pub(crate) events: u64,
    /// How many events may be handled, about.
    pub(crate) most_events: u64,
    /// Says whether the user has asked for an end.
    pub(crate) is_unwanted: Option<fn() -> bool>,
    /// How many events may be handled before that is looked at.
    next_look: u64,
    /// Whether it has, when that was looked at.
    pub(crate) ended_by_user: bool,
    /// The receiver of the simulated time.
    pub(crate) time_receiver: Option<Arc<AtomicU64>>,
    /// The number of instants until the next check whether any thread can still go on.
    pub(crate) patience: usize,
    /// When priorities were last raised (Solaris), nanoseconds.
    pub(crate) raised: u64,
    /// What programs did in each interval, if that is recorded.
    pub(crate) watch: Option<KeptIntervals>,
    /// Which thread was put on a CPU when, if that is recorded.
    pub(crate) switches: Option<Vec<Switch>>,
    pub(crate) shares: Shares,
}

/// A CPU switches to a thread, or to none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The time.
    pub at: Nanos,
    /// The CPU, by its position in the topology.
    pub cpu: u16,
    /// The thread: its program, and its number in the program.
    pub to: Option<(ProgramId, u16)>,
}

/// Recurring events.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Due {
    /// The thread on a CPU has finished its operation.
    Horizon(usize),
    /// The clock interrupts a CPU.
    Tick(usize),
    /// The threads of programs in turn are moved apart again.
    Spread,
    /// Load control looks at the load.
    Load,
    /// A sleep is over.
    Awake(Tid),
}

/// A step of the machine, at the time at which it takes effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect {
    Start(u16),
    /// A freeze, if the number is still the program's own.
    Freeze(u16, u64),
    Thaw(u16, u64),
    /// Report it at this time.
    Tell(Happening),
}

#[derive(Clone, Debug)]
pub(crate) struct ProgramRun {
    pub(crate) id: ProgramId,
    pub(crate) model: Model,
    /// Its share, where programs have one.
    pub(crate) weight: f64,
    /// The settings of the last plan, as far as the kernel has applied them.
    pub(crate) settings: Settings,
    /// Its nice value as a weight.
    pub(crate) nice_weight: f64,
    /// It has a share of its own.
    pub(crate) grouped: bool,
    /// Its part in taking turns by weight.
    pub(crate) part: Option<cosched_core::Turn>,
    /// Its threads interrupt no other thread when they wake up.
    pub(crate) batch: bool,
    /// Its CPUs; `None`: all.
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) frozen: bool,
    /// The start of the present freeze; and how long it was frozen before.
    pub(crate) frozen_since: u64,
    pub(crate) frozen_before: u64,
    /// The position of its first thread in the world's list; the others follow.
    pub(crate) first: Tid,
    pub(crate) alive: u16,
    /// How many of them are runnable.
    pub(crate) runnable: u32,
    /// How many of them may sleep by the load of the machine.
    pub(crate) slots: u64,
    pub(crate) sync: Sync,
    /// How many bytes of each cache it has evicted.
    pub(crate) evicted: Vec<f64>,
    /// Whether it is at each cache, and how much was evicted there in its absence.
    pub(crate) presences: Vec<Presence>,
    /// A freeze or thaw with another number is no longer wanted.
    pub(crate) order: u64,
    /// Its last reading.
    pub(crate) reading: ProgramReading,
    /// How its threads lost their CPUs, since it began.
    pub(crate) tally: Tally,
    /// When its threads came to locks.
    pub(crate) arrivals: LockArrivals,
    /// The durations of its barriers, and its threads' fair share of the machine.
    pub(crate) delays: Delays,
}

impl ProgramRun {
    pub(crate) fn tids(&self) -> std::ops::Range<Tid> {
        self.first..self.first + Tid::from(self.model.threads)
    }
}

impl SimulatedWorld {
    pub(crate) fn new(hardware: Hardware, kernel: Kernel, seed: u64) -> SimulatedWorld {
        let count = hardware.topology.cpus().len();
        let shape = Shape::new(&hardware.topology);
        let groups = Level::ALL.map(|level| {
            let groups = (0..count).map(|cpu| shape.group(cpu, level) + 1).max();
            vec![0; groups.unwrap_or(0)]
        });
        let mut agenda = Agenda::new(seed);
        agenda.grow(2 * count + 2);
        SimulatedWorld {
            prices: Prices::new(&hardware, &shape),
            caches: vec![Cache::default(); groups[Level::Llc as usize].len()],
            loads: groups.clone(),
            idle: Level::ALL.map(|level| {
                let groups = 0..groups[level as usize].len();
                groups.map(|group| shape.cpus(level, group).len() as u32).collect()
            }),
            waiting: groups,
            stretch: Kernel::stretch(count),
            hardware,
            shape,
            kernel,
            now: 0,
            agenda,
            effects: Queue::new(!seed),
            threads: Vec::new(),
            cpus: vec![CpuState::default(); count],
            programs: Vec::new(),
            unsettled: Vec::new(),
            ready: Vec::new(),
            unpriced: Vec::new(),
            queued: 0,
            ranked: 0,
            by_weight: false,
            begun: Vec::new(),
            used: Vec::new(),
            turns: 0.0,
            past_misses: 0.0,
            machine_reading: (0, 0.0),
            seed,
            out: Vec::new(),
            events: 0,
            most_events: u64::MAX,
            is_unwanted: None,
            next_look: 0,
            ended_by_user: false,
            time_receiver: None,
            patience: 0,
            raised: 0,
            watch: None,
            switches: None,
            shares: Shares::default(),
        }
    }

    /// Advances until there is an event to report, or until a time. Returns whether anything is
    /// still to come, by itself or, as far as `others` may, from programs that have not arrived.
    pub(crate) fn advance(&mut self, until: u64, others: bool) -> bool {
        self.settle();
        while self.out.is_empty() {
            let due = self.next_time().filter(|at| *at < u64::MAX);
            let ends = self.events > self.most_events || self.is_ended_by_user();
            if ends || (due.is_none() && until == u64::MAX) || !(others || self.gets_on()) {
                return false;
            }
            let Some(at) = due.filter(|at| *at <= until) else {
                self.now = until;
                return true;
            };
            debug_assert!(at >= self.now, "time goes back from {} to {at}", self.now);
            self.keep_watch(at);
            self.now = at;
            self.tell_time();
            while self.next_time() == Some(at)
                && self.events <= self.most_events
                && !self.is_ended_by_user()
            {
                self.events += 1;
                self.happen();
            }
            self.settle();
        }
        true
    }

    /// Whether the user ends the simulation, at the times when that is looked at.
    fn is_ended_by_user(&mut self) -> bool {
        if let Some(is_unwanted) = self.is_unwanted.filter(|_| self.events >= self.next_look) {
            self.ended_by_user |= is_unwanted();
            self.next_look = self.events.saturating_add(LOOK);
        }
        self.ended_by_user
    }

    fn tell_time(&self) {
        if let Some(to) = &self.time_receiver {
            to.store(self.now, Ordering::Relaxed);
        }
    }

    fn next_time(&self) -> Option<u64> {
        let (again, once) = (self.agenda.first(), self.effects.first());
        match (again, once) {
            (Some((again, ..)), Some((once, _))) => Some(again.min(once)),
            (again, once) => again.map(|due| due.0).or(once.map(|due| due.0)),
        }
    }

    /// Handles the first events that are due.
    fn happen(&mut self) {
        let again = self.agenda.first();
        let once = self.effects.first();
        let is_once = |(at, tie): (u64, u64)| again.is_none_or(|due| (at, tie) < (due.0, due.1));
        if once.is_some_and(is_once) {
            if let Some(effect) = self.effects.pop() {
                self.take_effect(effect);
            }
            return;
        }
        let Some((_, _, slot)) = again else { return };
        self.agenda.clear(slot);
        match self.due(slot) {
            Due::Horizon(cpu) => {
                // Another event may have taken the thread off its CPU in this instant.
                if let Some(tid) = self.cpus[cpu].current {
                    self.account(tid);
                    self.done(tid);
                }
            }
            Due::Tick(cpu) => self.tick(cpu),
            Due::Spread => self.keep_apart(),
            Due::Load => self.look_at_load(),
            Due::Awake(tid) => self.wake(tid),
        }
    }

    fn due(&self, slot: usize) -> Due {
        let cpus = self.cpus.len();
        match slot {
            _ if slot < cpus => Due::Horizon(slot),
            _ if slot < 2 * cpus => Due::Tick(slot - cpus),
            _ if slot == 2 * cpus => Due::Spread,
            _ if slot == 2 * cpus + 1 => Due::Load,
            _ => Due::Awake((slot - 2 * cpus - 2) as Tid),
        }
    }

    pub(crate) fn tick_slot(&self, cpu: usize) -> usize {
        self.cpus.len() + cpu
    }

    pub(crate) fn spread_slot(&self) -> usize {
        2 * self.cpus.len()
    }

    pub(crate) fn load_slot(&self) -> usize {
        2 * self.cpus.len() + 1
    }

    pub(crate) fn sleep_slot(&self, tid: Tid) -> usize {
        2 * self.cpus.len() + 2 + tid as usize
    }

    /// Repeats until every thread that can go on does.
    fn settle(&mut self) {
        self.spread_begun();
        loop {
            if let Some(tid) = self.ready.pop() {
                self.proceed(tid);
            } else if let Some(cpu) = self.unsettled.pop() {
                self.choose(cpu);
                self.cpus[cpu].unsettled = false;
            } else {
                break;
            }
        }
        self.price();
    }

    /// Accounts for the time of a thread until now.
    pub(crate) fn account(&mut self, tid: Tid) {
        let brought = self.threads[tid as usize].account(self.now, self.kernel.is_fair());
        if brought > 0.0 {
            self.brings_in(tid, brought);
        }
    }

    /// A running thread has reached its horizon.
    fn done(&mut self, tid: Tid) {
        match self.threads[tid as usize].doing {
            Doing::Spin { .. } if self.is_donor(tid) => self.look_around(tid),
            Doing::Spin { .. } => self.block(tid),
            Doing::Nothing | Doing::Compute { .. } => {
                self.stir(tid);
                let thread = &mut self.threads[tid as usize];
                if thread.refills_first() {
                    (thread.lines.lost, thread.lines.refills) = (0.0, false);
                    self.unprice_thread(tid);
                } else {
                    thread.finishes();
                    self.ready.push(tid);
                }
            }
        }
    }

    pub(crate) fn unsettle(&mut self, cpu: usize) {
        if !std::mem::replace(&mut self.cpus[cpu].unsettled, true) {
            self.unsettled.push(cpu);
        }
    }

    pub(crate) fn unprice(&mut self, cpu: usize) {
        if !std::mem::replace(&mut self.cpus[cpu].unpriced, true) {
            self.unpriced.push(cpu);
        }
    }

    pub(crate) fn unprice_thread(&mut self, tid: Tid) {
        self.unprice(usize::from(self.threads[tid as usize].cpu));
    }

    pub(crate) fn tell(&mut self, what: Happening) {
        self.out.push(Event { at: Nanos(self.now), what });
    }

    /// Records which thread has a CPU now.
    pub(crate) fn note_switch(&mut self, cpu: usize) {
        let Some(switches) = &mut self.switches else { return };
        let to = self.cpus[cpu].current.map(|tid| {
            let thread = &self.threads[tid as usize];
            (self.programs[usize::from(thread.turn.program)].id, thread.index)
        });
        let last = switches.iter().rev().find(|switch| usize::from(switch.cpu) == cpu);
        if last.and_then(|switch| switch.to) != to {
            switches.push(Switch { at: Nanos(self.now), cpu: cpu as u16, to });
        }
    }

    /// The program of a thread.
    pub(crate) fn program_of(&self, tid: Tid) -> usize {
        usize::from(self.threads[tid as usize].turn.program)
    }

    /// The last operation of a thread is done.
    pub(crate) fn end(&mut self, tid: Tid) {
        self.take_off(tid, ThreadState::Ended);
        let program = self.program_of(tid);
        self.end_share(program, 1);
        self.programs[program].alive -= 1;
        if self.programs[program].alive == 0 {
            self.exit(program, Exit::Code(0));
        }
    }
}
