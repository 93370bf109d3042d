//! The simulated machine as the engine sees it: steps in, events out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use cosched_core::format::count;
use cosched_core::{
    Arena, Counts, Event, Exit, Happening, Machine, Nanos, Observe, ProgramId, Quality, Settings,
    Signal, Step, Usage,
};

use crate::delays::Delays;
use crate::eviction::{CacheLines, Presence};
use crate::fair::EnqueueReason;
use crate::hardware::{Costs, Hardware};
use crate::kernel::Kernel;
use crate::model::{Model, Op};
use crate::samples::ProgramReading;
use crate::sync::Sync;
use crate::tally::{Interval, KeptIntervals, Tally};
use crate::thread::{SimulatedThread, ThreadState, ThreadUsage};
use crate::tid::Tid;
use crate::world::{Effect, ProgramRun, SimulatedWorld, Switch};

/// A run of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedJob {
    /// Its model.
    pub model: Model,
    /// Its weight in the kernel, relative to the others; 1 for a nice value of 0.
    pub weight: f64,
}

/// Why a simulation has ended before its programs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Halted {
    /// No thread can go on any more.
    #[error(
        "at {at} no thread can continue: a program deadlocks, or computes for longer than 500 \
         years ({})",
        count(*left, "thread is left", "threads are left")
    )]
    Stuck {
        /// The time at which this was found.
        at: Nanos,
        /// How many threads have not ended.
        left: usize,
    },
    /// It took more events than allowed.
    #[error(
        "the simulation has not ended within {}, by {at}; a model may repeat \
         something too often; \
         `cosched sim --max-events` allows more",
        count(*events as usize, "event", "events")
    )]
    TooLong {
        /// The simulated time.
        at: Nanos,
        /// The number of events that were allowed.
        events: u64,
    },
    /// The user has asked for an end.
    #[error("the simulation was interrupted at {at}")]
    Interrupted {
        /// The simulated time.
        at: Nanos,
    },
}

/// A simulated machine.
#[derive(Debug)]
pub struct Sim {
    world: SimulatedWorld,
    jobs: Vec<SimulatedJob>,
    costs: Costs,
    /// The runs by slot.
    runs: BTreeMap<u16, u16>,
}

impl Sim {
    /// A machine on which slot `i` runs `jobs[i]`; the same seed gives the same run.
    pub fn new(
        hardware: Hardware,
        kernel: Kernel,
        jobs: Vec<SimulatedJob>,
        costs: Costs,
        seed: u64,
    ) -> Sim {
        let world = SimulatedWorld::new(hardware, kernel, seed);
        Sim { world, jobs, costs, runs: BTreeMap::new() }
    }

    /// How many events were handled so far.
    pub fn events(&self) -> u64 {
        self.world.events
    }

    /// Ends the simulation with an error soon after this many events.
    pub fn stop_after(&mut self, events: u64) {
        self.world.most_events = events;
    }

    /// Ends the simulation with an error soon after the function says so: by itself it notices no
    /// signal.
    pub fn stop_if(&mut self, is_unwanted: fn() -> bool) {
        self.world.is_unwanted = Some(is_unwanted);
    }

    /// Writes the simulated time to `to` from now on, in nanoseconds.
    pub fn tell_time(&mut self, to: Arc<AtomicU64>) {
        self.world.time_receiver = Some(to);
    }

    /// Records from now on which thread is on which CPU.
    pub fn record(&mut self) {
        self.world.switches.get_or_insert_default();
    }

    /// Records from now on what programs do in each interval.
    pub fn watch(&mut self, interval: Nanos) {
        self.world.watch = Some(KeptIntervals::new(self.world.now, interval));
    }

    /// What each program did in each interval, in order of time; empty unless
    /// [watched](Self::watch).
    pub fn intervals(&self) -> &[Interval] {
        self.world.watch.as_ref().map_or(&[], |watch| &watch.rows)
    }

    /// Which thread was put on which CPU when, in order of time; empty unless
    /// [recorded](Self::record).
    pub fn switches(&self) -> &[Switch] {
        self.world.switches.as_deref().unwrap_or_default()
    }

    fn run_of(&self, id: ProgramId) -> Option<u16> {
        let run = *self.runs.get(&id.slot)?;
        let program = &self.world.programs[usize::from(run)];
        (program.id == id && program.alive > 0).then_some(run)
    }

    fn after(&mut self, delay: Nanos, effect: Effect) {
        self.world.effects.push(self.world.now + delay.0, effect);
    }

    fn start(&mut self, id: ProgramId, settings: Settings) {
        let SimulatedJob { model, weight } = self.jobs[usize::from(id.slot)].clone();
        let world = &mut self.world;
        let known = self.runs.get(&id.slot).copied();
        let before = known.map(|run| &world.programs[usize::from(run)]);
        let first = before.map_or(world.threads.len() as Tid, |program| program.first);
        let (threads, mixes) = (model.threads, model.mixes.len());
        let lines = CacheLines::new(model.footprint() / f64::from(threads));
        let program = ProgramRun {
            id,
            weight,
            settings: Settings::default(),
            nice_weight: 1.0,
            grouped: false,
            part: None,
            batch: false,
            cpus: None,
            frozen: false,
            frozen_since: 0,
            frozen_before: 0,
            first,
            alive: threads,
            runnable: 0,
            slots: 0,
            sync: Sync::new(&model),
            evicted: vec![0.0; world.caches.len()],
            presences: vec![Presence::default(); world.caches.len()],
            order: before.map_or(0, |program| program.order + 1),
            model,
            reading: ProgramReading::new(world.now, usize::from(threads)),
            tally: Tally::default(),
            arrivals: Default::default(),
            delays: Delays::default(),
        };
        let run = known.unwrap_or(world.programs.len() as u16);
        match known {
            Some(run) => world.programs[usize::from(run)] = program,
            None => world.programs.push(program),
        }
        for index in 0..threads {
            let tid = first + Tid::from(index);
            let by_mix = vec![0.0; mixes];
            let fresh = SimulatedThread { lines, by_mix, ..SimulatedThread::new(tid, run, index) };
            match world.threads.get_mut(tid as usize) {
                Some(thread) => {
                    world.past_misses += thread.used.misses;
                    *thread = SimulatedThread {
                        generation: thread.generation + 1,
                        cpu: thread.cpu,
                        ..fresh
                    }
                }
                None => world.threads.push(fresh),
            }
        }
        world.agenda.grow(world.sleep_slot(world.threads.len() as Tid));
        // Room for four times the even share of each: queues hardly ever grow later.
        let room = 4 * (1 + world.threads.len() / world.cpus.len());
        for cpu in &mut world.cpus {
            cpu.queue.reserve(room.saturating_sub(cpu.queue.len()));
        }
        self.runs.insert(id.slot, run);
        self.world.obey(usize::from(run), settings);
        self.after(self.costs.start, Effect::Start(run));
    }

    /// A new number, which makes earlier freezes and thaws stale.
    fn renumber(&mut self, run: u16) -> u64 {
        let order = &mut self.world.programs[usize::from(run)].order;
        *order += 1;
        *order
    }
}

impl Machine for Sim {
    type Error = Halted;

    fn now(&self) -> Nanos {
        Nanos(self.world.now)
    }

    fn wait(&mut self, until: Nanos, out: &mut Vec<Event>) -> Result<Nanos, Halted> {
        let others = self.runs.len() < self.jobs.len() && until != Nanos::NEVER;
        let more = self.world.advance(until.0, others);
        let (at, events) = (self.now(), self.world.most_events);
        if self.events() > events {
            return Err(Halted::TooLong { at, events });
        }
        if self.world.ended_by_user {
            return Err(Halted::Interrupted { at });
        }
        out.append(&mut self.world.out);
        if more || !out.is_empty() {
            return Ok(at);
        }
        Err(Halted::Stuck { at, left: self.world.left().count() })
    }

    fn read(&mut self, what: &[Observe], into: &mut Arena) -> Result<(), Halted> {
        self.world.read(what, into);
        Ok(())
    }

    fn submit(&mut self, steps: &[Step]) -> Result<(), Halted> {
        for step in steps {
            match *step {
                Step::Start(id, settings) => self.start(id, settings),
                Step::Freeze(id) => {
                    if let Some(run) = self.run_of(id) {
                        let order = self.renumber(run);
                        self.after(self.costs.freeze, Effect::Freeze(run, order));
                    }
                }
                Step::Thaw(id) | Step::Release(id) => {
                    if let Some(run) = self.run_of(id) {
                        if matches!(step, Step::Release(_)) {
                            self.world.forget_rules(usize::from(run));
                            self.world.obey(usize::from(run), Settings::default());
                        }
                        let order = self.renumber(run);
                        self.after(self.costs.thaw, Effect::Thaw(run, order));
                    }
                }
                Step::Apply(id, settings, epoch) => {
                    if let Some(run) = self.run_of(id) {
                        self.world.obey(usize::from(run), settings);
                        self.after(Nanos::ZERO, Effect::Tell(Happening::Applied(id, epoch)));
                    }
                }
                Step::Signal(id, signal) => {
                    if let Some(run) = self.run_of(id) {
                        let number = match signal {
                            Signal::Interrupt => 2,
                            Signal::Terminate => 15,
                            Signal::Kill => 9,
                        };
                        self.world.kill(usize::from(run), Exit::Signal(number));
                    }
                }
                Step::ApplyThread(id, rule) => self.world.obey_rule(id, rule),
                // Everything is counted anyway.
                Step::Observe(_) => {}
            }
        }
        Ok(())
    }
}

impl SimulatedWorld {
    pub(crate) fn take_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Start(run) => {
                let program = &self.programs[usize::from(run)];
                let (id, tids) = (program.id, program.tids());
                let one_by_one = program.model.script.contains(&Op::Create);
                self.begin_share(usize::from(run));
                for tid in tids.take(if one_by_one { 1 } else { usize::MAX }) {
                    self.make_runnable(tid, EnqueueReason::Fresh);
                }
                self.plan_look_at_load();
                self.tell(Happening::Started(id));
            }
            Effect::Freeze(run, order) => {
                let program = &mut self.programs[usize::from(run)];
                if program.order != order || program.alive == 0 {
                    return;
                }
                if !std::mem::replace(&mut program.frozen, true) {
                    program.frozen_since = self.now;
                }
                let (id, tids) = (program.id, program.tids());
                for tid in tids {
                    if matches!(
                        self.threads[tid as usize].place,
                        ThreadState::Running | ThreadState::Queued
                    ) {
                        self.take_off(tid, ThreadState::Held);
                    }
                }
                self.tell(Happening::Froze(id));
            }
            Effect::Thaw(run, order) => {
                let program = &mut self.programs[usize::from(run)];
                if program.order != order || program.alive == 0 {
                    return;
                }
                if std::mem::replace(&mut program.frozen, false) {
                    program.frozen_before += self.now - program.frozen_since;
                }
                let (id, tids) = (program.id, program.tids());
                for tid in tids {
                    if self.threads[tid as usize].place == ThreadState::Held {
                        self.make_runnable(tid, EnqueueReason::Woken);
                    }
                }
                self.tell(Happening::Thawed(id));
            }
            Effect::Tell(what) => self.tell(what),
        }
    }

    pub(crate) fn kill(&mut self, run: usize, exit: Exit) {
        for tid in self.programs[run].tids() {
            self.take_off(tid, ThreadState::Ended);
            let slot = self.sleep_slot(tid);
            self.agenda.clear(slot);
        }
        self.end_share(run, self.programs[run].alive);
        self.programs[run].alive = 0;
        self.exit(run, exit);
    }

    pub(crate) fn exit(&mut self, run: usize, exit: Exit) {
        self.watch_end(run);
        let tids = self.programs[run].tids();
        tids.clone().for_each(|tid| self.frees_lines(tid));
        let threads = &self.threads[tids.start as usize..tids.end as usize];
        let used = threads.iter().map(|thread| thread.used);
        let used = used.fold(ThreadUsage::default(), ThreadUsage::plus);
        let counts = Counts {
            instructions: Some(used.instructions.round() as u64),
            cycles: None,
            llc_references: Some(used.references.round() as u64),
            llc_misses: Some(used.misses.round() as u64),
            quality: Quality::Exact,
        };
        let usage = Usage {
            user_seconds: threads.iter().map(|thread| thread.used.ran as f64 * 1e-9).sum(),
            voluntary_switches: used.switches[0],
            involuntary_switches: used.switches[1],
            counts,
            waits: self.waits(run, used),
            ..Usage::default()
        };
        self.tell(Happening::Exited(self.programs[run].id, exit, usage));
    }
}
