//! The state of the simulated machine, and the loop that moves it on.
//!
//! An instant is worked off in three steps: everything that is due happens; CPUs on which
//! something has changed choose anew who runs; and threads whose surroundings have changed are priced
//! anew, which gives each the time at which it will be done. Choosing can make things happen in the same instant
//! (a thread that gets a CPU finds its barrier open), so the first two repeat until nothing is left.

use cosched_core::{CpuSet, Event, Exit, Happening, Level, Nanos, ProgramId};

use crate::contention::Prices;
use crate::hardware::Hardware;
use crate::kernel::Kernel;
use crate::model::Model;
use crate::queue::Queue;
use crate::sync::Sync;
use crate::thread::{Doing, Place, Thread, Tid};

/// The inside of a simulated machine.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) hardware: Hardware,
    pub(crate) kernel: Kernel,
    /// Nanoseconds.
    pub(crate) now: u64,
    pub(crate) due: Queue<Due>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) programs: Vec<Program>,
    /// CPUs that have to choose anew.
    pub(crate) unsettled: Vec<usize>,
    /// Threads on CPUs that have to look at their next operation.
    pub(crate) ready: Vec<Tid>,
    /// Threads on CPUs that have to be priced.
    pub(crate) unpriced: Vec<Tid>,
    pub(crate) prices: Prices,
    /// How many threads are on the CPUs of each group of each level, or in their queues.
    pub(crate) loads: [Vec<u32>; 4],
    /// How many threads wait in queues.
    pub(crate) queued: usize,
    pub(crate) balancing: bool,
    /// Round robin: the number of the last turn given.
    pub(crate) turns: f64,
    pub(crate) seed: u64,
    /// What has happened, for the machine's caller.
    pub(crate) out: Vec<Event>,
    /// How many events were worked off.
    pub(crate) events: u64,
}

/// What can be due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Due {
    /// A thread is done with what it does, if the stamp is still its own.
    Horizon(Tid, u32),
    /// A sleep is over, if the stamp is still its own.
    Awake(Tid, u32),
    /// The clock interrupts a CPU.
    Tick(u16),
    /// Time to look whether CPUs are unevenly loaded.
    Balance,
    /// A step of the machine takes effect.
    Effect(Effect),
}

/// A step of the machine, at the time at which it takes effect.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effect {
    Start(u16),
    /// If the number is still the program's own.
    Freeze(u16, u64),
    Thaw(u16, u64),
    /// To be told when it comes.
    Tell(Happening),
}

/// A CPU.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cpu {
    pub(crate) current: Option<Tid>,
    pub(crate) queue: Vec<Tid>,
    /// Who ran last.
    pub(crate) last: Option<Tid>,
    pub(crate) unsettled: bool,
    pub(crate) ticking: bool,
    /// See [`World::least`] and [`World::average`]: kept for when the queue is empty.
    pub(crate) least: f64,
    pub(crate) average: f64,
}

/// A run of a program.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) id: ProgramId,
    pub(crate) model: Model,
    pub(crate) weight: f64,
    /// `None`: all.
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) frozen: bool,
    /// Its threads lie side by side in the world's list.
    pub(crate) first: Tid,
    pub(crate) alive: u16,
    /// How many of them run or want to.
    pub(crate) runnable: u32,
    pub(crate) sync: Sync,
    /// A freeze or thaw with another number is no longer wanted.
    pub(crate) order: u64,
}

impl Program {
    pub(crate) fn tids(&self) -> std::ops::Range<Tid> {
        self.first..self.first + Tid::from(self.model.threads)
    }
}

impl World {
    pub(crate) fn new(hardware: Hardware, kernel: Kernel, seed: u64) -> World {
        let count = hardware.topology.cpus().len();
        let groups = |level| {
            let numbers = hardware.topology.cpus().iter().map(|cpu| cpu.group(level));
            vec![0; numbers.max().map_or(0, |last| usize::from(last) + 1)]
        };
        World {
            prices: Prices::new(&hardware),
            loads: Level::ALL.map(groups),
            hardware,
            kernel,
            now: 0,
            due: Queue::new(seed),
            threads: Vec::new(),
            cpus: vec![Cpu::default(); count],
            programs: Vec::new(),
            unsettled: Vec::new(),
            ready: Vec::new(),
            unpriced: Vec::new(),
            queued: 0,
            balancing: false,
            turns: 0.0,
            seed,
            out: Vec::new(),
            events: 0,
        }
    }

    /// Moves on until something is to be told, or until a time. Tells whether anything is still to come.
    pub(crate) fn advance(&mut self, until: u64) -> bool {
        self.settle();
        while self.out.is_empty() {
            match self.due.next() {
                Some(at) if at <= until => {
                    self.now = at;
                    while let Some(due) = self.due.pop_at(at) {
                        self.events += 1;
                        self.happen(due);
                    }
                    self.settle();
                }
                other => {
                    if until != u64::MAX {
                        self.now = until;
                    }
                    return other.is_some() || until != u64::MAX;
                }
            }
        }
        true
    }

    fn happen(&mut self, due: Due) {
        match due {
            Due::Horizon(tid, stamp) => {
                if self.threads[tid as usize].stamp == stamp {
                    self.account(tid);
                    self.done(tid);
                }
            }
            Due::Awake(tid, stamp) => {
                if self.threads[tid as usize].stamp == stamp {
                    self.wake(tid);
                }
            }
            Due::Tick(cpu) => self.tick(usize::from(cpu)),
            Due::Balance => self.balance(),
            Due::Effect(effect) => self.take_effect(effect),
        }
    }

    /// Until everybody who can go on does.
    fn settle(&mut self) {
        loop {
            if let Some(tid) = self.ready.pop() {
                self.proceed(tid);
            } else if let Some(cpu) = self.unsettled.pop() {
                self.cpus[cpu].unsettled = false;
                self.choose(cpu);
            } else {
                break;
            }
        }
        self.price();
    }

    /// Books the time of a thread until now.
    pub(crate) fn account(&mut self, tid: Tid) {
        let weight = self.weight(tid);
        self.threads[tid as usize].account(self.now, weight);
    }

    /// A running thread has come to its horizon.
    fn done(&mut self, tid: Tid) {
        let thread = &mut self.threads[tid as usize];
        match thread.doing {
            Doing::Spin { .. } => self.block(tid),
            Doing::Nothing | Doing::Compute { .. } => {
                self.stir(tid);
                let thread = &mut self.threads[tid as usize];
                thread.doing = Doing::Nothing;
                thread.owes = 0.0;
                self.ready.push(tid);
            }
        }
    }

    pub(crate) fn unsettle(&mut self, cpu: usize) {
        if !std::mem::replace(&mut self.cpus[cpu].unsettled, true) {
            self.unsettled.push(cpu);
        }
    }

    pub(crate) fn tell(&mut self, what: Happening) {
        self.out.push(Event { at: Nanos(self.now), what });
    }

    /// The program of a thread.
    pub(crate) fn program_of(&self, tid: Tid) -> usize {
        usize::from(self.threads[tid as usize].program)
    }

    /// The last operation of a thread is done.
    pub(crate) fn end(&mut self, tid: Tid) {
        self.take_off(tid, Place::Ended);
        let program = self.program_of(tid);
        self.programs[program].alive -= 1;
        if self.programs[program].alive == 0 {
            self.exit(program, Exit::Code(0));
        }
    }
}
