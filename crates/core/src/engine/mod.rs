//! The engine: one loop that drives any policy on any machine.
//!
//! ```text
//! wait ─▶ book what happened ─▶ due wake-ups ─▶ policy decides ─▶ check ─▶ reconcile ─▶ wait
//! ```
//!
//! The engine is *level-triggered*. It keeps, per program, the directive that is
//! wanted and the state that the machine has confirmed, and after everything
//! that happens it looks for steps that bring the second closer to the first
//! (`reconcile`). So it does not matter in which order effects arrive, and a
//! step that got lost in a race is simply taken again.
//!
//! It keeps four promises whatever the policy plans: nobody is thawed onto CPUs
//! on which another program is still being frozen; nobody is frozen longer than
//! [`Limits::max_frozen`]; a freeze that is not confirmed in time is given up and
//! reported, so that the others go on; programs of one group run together.

mod check;
mod ledger;
pub mod outcome;
mod reconcile;
mod setup;
#[cfg(test)]
mod tests;
mod timers;

pub use check::{BadPlan, check};
pub use setup::{Entry, Limits, Setup};

use crate::cause::{Aspect, Cause, Refusal, Token};
use crate::machine::{Event, Happening, Machine, Signal};
use crate::plan::{Directive, Plan};
use crate::policy::{Policy, World};
use crate::program::{Program, ProgramId, ProgramState};
use crate::sample::Arena;
use crate::time::Nanos;
use ledger::Account;
use outcome::{Decision, Deviation, Ended, Outcome};
use reconcile::Control;
use timers::Timers;

/// What an observer of a run is told, for progress displays and logs.
pub trait Watch {
    /// A policy decided.
    fn decided(&mut self, world: &World<'_>, plan: &Plan) {
        let _ = (world, plan);
    }
    /// Something happened on the machine.
    fn happened(&mut self, event: &Event) {
        let _ = event;
    }
    /// A heartbeat passed ([`Limits::heartbeat`]).
    fn beat(&mut self, world: &World<'_>) {
        let _ = world;
    }
}

/// An observer that looks away.
impl Watch for () {}

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// The machine is lost.
    #[error(transparent)]
    Machine(E),
    /// The policy made a plan that makes no sense.
    #[error("the policy is wrong: {0}")]
    Plan(#[from] BadPlan),
}

/// Drives one policy on one machine through one workload.
pub struct Engine<M: Machine, P: Policy> {
    machine: M,
    policy: P,
    setup: Setup,
    /// Arrived and not ended, sorted by id; `controls` runs in parallel.
    programs: Vec<Program>,
    controls: Vec<Control>,
    /// One per slot.
    accounts: Vec<Account>,
    /// Slots that have not arrived yet.
    expected: Vec<u16>,
    timers: Timers,
    arena: Arena,
    causes: Vec<Cause>,
    plan: Plan,
    epochs: u64,
    now: Nanos,
    next_beat: Nanos,
    /// Everything is being frozen for a measurement, for these wake-ups.
    pause: Option<Pause>,
    closing: Option<Closing>,
    switch_began: Option<Nanos>,
    outcome: Outcome,
}

/// A freeze of everything, so that a measurement belongs to one quantum alone.
#[derive(Debug)]
struct Pause {
    tokens: Vec<Token>,
    deadline: Nanos,
}

/// The run is being ended: no policy decides any more.
#[derive(Debug)]
struct Closing {
    kill_at: Nanos,
    killed: bool,
}

impl<M: Machine, P: Policy> Engine<M, P> {
    /// An engine for one run.
    pub fn new(machine: M, policy: P, setup: Setup) -> Engine<M, P> {
        let slots = setup.programs.len();
        let outcome = Outcome {
            ended: Ended::Complete,
            total: Nanos::ZERO,
            cpus: setup.cpus.len(),
            programs: Vec::new(),
            decisions: Vec::new(),
            deviations: Vec::new(),
            wake_lateness: Vec::new(),
            switch_gaps: Vec::new(),
        };
        Engine {
            machine,
            policy,
            programs: Vec::with_capacity(slots),
            controls: Vec::with_capacity(slots),
            accounts: setup.programs.iter().map(Account::new).collect(),
            expected: (0..slots).map(|slot| slot as u16).collect(),
            timers: Timers::default(),
            arena: Arena::default(),
            causes: Vec::new(),
            plan: Plan::default(),
            epochs: 0,
            now: Nanos::ZERO,
            next_beat: setup.limits.heartbeat,
            pause: None,
            closing: None,
            switch_began: None,
            outcome,
            setup,
        }
    }

    /// Runs the workload to its end and gives the machine back with the accounts.
    ///
    /// # Errors
    /// When the machine is lost or the policy's plan makes no sense.
    pub fn run(mut self, watch: &mut dyn Watch) -> (M, Result<Outcome, Error<M::Error>>) {
        let ended = self.drive(watch);
        let result = ended.map(|()| self.conclude());
        (self.machine, result)
    }

    fn drive(&mut self, watch: &mut dyn Watch) -> Result<(), Error<M::Error>> {
        let mut events = Vec::new();
        self.now = self.machine.now();
        loop {
            self.admit_arrivals();
            self.expire()?;
            if !self.causes.is_empty() && self.closing.is_none() {
                self.decide(watch)?;
            }
            self.close_if_done();
            let steps = self.reconcile();
            self.mark_killed();
            if !steps.is_empty() {
                self.machine.submit(&steps).map_err(Error::Machine)?;
            }
            if self.programs.is_empty() && (self.closing.is_some() || self.expected.is_empty()) {
                return Ok(());
            }
            events.clear();
            self.machine.wait(self.next_deadline(), &mut events).map_err(Error::Machine)?;
            self.now = self.machine.now();
            for event in &events {
                watch.happened(event);
                self.book(*event);
            }
            if self.now >= self.next_beat {
                self.next_beat = self.now + self.setup.limits.heartbeat;
                self.refresh();
                watch.beat(&world(self.now, &self.setup, &self.programs, &self.arena));
            }
        }
    }

    fn index(&self, id: ProgramId) -> Option<usize> {
        self.programs.binary_search_by_key(&id, |p| p.id).ok()
    }

    /// Programs whose time has come arrive.
    fn admit_arrivals(&mut self) {
        if self.closing.is_some() {
            return;
        }
        let now = self.now;
        let programs = &self.setup.programs;
        let due = |slot: &u16| programs[usize::from(*slot)].arrives <= now;
        let (due, later) = self.expected.iter().partition(|slot| due(slot));
        self.expected = later;
        let due: Vec<u16> = due;
        for slot in due {
            self.arrive(ProgramId::first(slot), self.setup.programs[usize::from(slot)].arrives);
        }
    }

    fn arrive(&mut self, id: ProgramId, at: Nanos) {
        let entry = &self.setup.programs[usize::from(id.slot)];
        let program = Program {
            id,
            state: ProgramState::New,
            asked: entry.asked,
            granted: entry.asked,
            cpus: None,
            weight: entry.weight,
            group: entry.group,
            freezable: entry.freezable,
            arrived: at,
            ran: Nanos::ZERO,
            waited: Nanos::ZERO,
            waiting_since: Some(at),
            settled_at: at,
            profile: entry.profile,
            threads: 0..0,
        };
        self.accounts[usize::from(id.slot)].arrives();
        let index = self.programs.partition_point(|p| p.id < id);
        self.programs.insert(index, program);
        self.controls.insert(index, Control::default());
        self.causes.push(Cause::Arrived(id));
    }

    /// Wake-ups and deadlines that have come.
    fn expire(&mut self) -> Result<(), Error<M::Error>> {
        self.end_overlong_freezes();
        if let Some(pause) = &self.pause {
            if self.anybody_running() && self.now < pause.deadline {
                return Ok(());
            }
            self.read(true)?;
            let tokens = self.pause.take().map(|p| p.tokens).unwrap_or_default();
            self.causes.extend(tokens.into_iter().map(Cause::Woke));
        }
        let due = self.timers.due(self.now);
        let lateness = due.iter().map(|wake| self.now - wake.at);
        self.outcome.wake_lateness.extend(lateness);
        let tokens = due.iter().map(|wake| wake.token);
        if timers::freezes(&due) {
            let deadline = self.now + self.setup.limits.freeze_patience;
            self.pause = Some(Pause { tokens: tokens.collect(), deadline });
            return Ok(());
        }
        self.causes.extend(tokens.map(Cause::Woke));
        self.read(timers::reads(&due))
    }

    /// Reads what is due, or everything observed, and tells the policy of whom.
    fn read(&mut self, all: bool) -> Result<(), Error<M::Error>> {
        let reads = self.timers.take_reads(self.now, all);
        if reads.is_empty() {
            return Ok(());
        }
        self.machine.read(&reads, &mut self.arena).map_err(Error::Machine)?;
        let mut sampled: Vec<ProgramId> = reads.iter().map(|o| o.program).collect();
        sampled.sort_unstable();
        sampled.dedup();
        self.causes.extend(sampled.into_iter().map(Cause::Sampled));
        Ok(())
    }

    fn decide(&mut self, watch: &mut dyn Watch) -> Result<(), Error<M::Error>> {
        self.refresh();
        let mut plan = std::mem::take(&mut self.plan);
        plan.clear();
        let world = world(self.now, &self.setup, &self.programs, &self.arena);
        self.policy.decide(&self.causes, &world, &mut plan);
        check(&plan, &world)?;
        watch.decided(&world, &plan);
        self.causes.clear();
        self.adopt(&plan);
        self.plan = plan;
        Ok(())
    }

    /// Takes a plan over as what is wanted from now on.
    fn adopt(&mut self, plan: &Plan) {
        self.timers.adopt(plan, self.now);
        for (id, directive) in &plan.programs {
            let Some(i) = self.index(*id) else { continue };
            let control = &mut self.controls[i];
            if self.now >= control.override_until {
                control.override_freeze = None;
            }
            if control.wanted != *directive {
                self.epochs += 1;
                control.wanted = *directive;
                control.epoch = self.epochs;
            }
        }
        if !plan.reasons.is_empty() {
            self.outcome.decisions.push(Decision { at: self.now, reasons: plan.reasons.clone() });
        }
    }

    /// Brings the running times in the world up to the present.
    fn refresh(&mut self) {
        for program in &mut self.programs {
            program.ran = self.accounts[usize::from(program.id.slot)].ran(self.now);
        }
    }

    /// Books one event.
    fn book(&mut self, Event { at, what }: Event) {
        match what {
            Happening::Interrupted(signal) => {
                return self.close(Ended::Interrupted(signal), signal);
            }
            Happening::MachineChanged(cpus) => {
                self.setup.cpus = cpus;
                self.causes.push(Cause::MachineChanged);
                return;
            }
            Happening::Commanded(command) => return self.causes.push(Cause::Commanded(command)),
            _ => {}
        }
        let Some(id) = what.program() else { return };
        let Some(i) = self.index(id) else { return };
        let (program, control) = (&mut self.programs[i], &mut self.controls[i]);
        let account = &mut self.accounts[usize::from(id.slot)];
        match what {
            Happening::Started(_) | Happening::Thawed(_) | Happening::ContinuedByOther(_) => {
                program.state = ProgramState::Running;
                control.thawing = false;
                account.runs(program, at);
                self.switched(at, matches!(what, Happening::Thawed(_)));
            }
            Happening::Froze(_) => {
                program.state = ProgramState::Frozen;
                control.thawing = false;
                control.unreliable = false;
                account.freezes(program, at);
            }
            Happening::StoppedByOther(_) => {
                program.state = ProgramState::StoppedByOther;
                account.rests(at);
                self.deviate(id, Aspect::Running, Refusal::StoppedByOther);
            }
            Happening::Applied(_, epoch) => {
                program.settled_at = at;
                account.moves(program, at);
                self.causes.push(Cause::Settled { program: id, epoch });
            }
            Happening::Exited(_, exit, usage) => {
                let surplus = self.closing.is_some() && account.done();
                account.ends(program, at, (!surplus).then_some((exit, usage)));
                self.causes.push(Cause::Exited(id, exit));
                self.leave_world(i, at);
            }
            Happening::Refused(_, aspect, why) => {
                if aspect == Aspect::Frozen {
                    control.override_freeze = Some(why);
                }
                self.deviate(id, aspect, why);
            }
            Happening::Unfreezable(_, why) => {
                program.freezable = false;
                self.deviate(id, Aspect::Frozen, why);
            }
            Happening::Grouped(_, group) => {
                program.group = Some(group);
                self.causes.push(Cause::ThreadsChanged(id));
            }
            Happening::ThreadsChanged(_) => self.causes.push(Cause::ThreadsChanged(id)),
            Happening::Requested { program, threads, blocked } => {
                self.causes.push(Cause::Requested { program, threads, blocked });
            }
            Happening::Interrupted(_) | Happening::MachineChanged(_) | Happening::Commanded(_) => {}
        }
    }

    /// Takes an ended program out of the world; it may come again.
    fn leave_world(&mut self, i: usize, at: Nanos) {
        let id = self.programs.remove(i).id;
        self.controls.remove(i);
        self.timers.forget(|observe| observe.program == id);
        self.outcome.total = self.outcome.total.max(at);
        let wanted = self.accounts[usize::from(id.slot)].repeats() && !self.all_done();
        if wanted && self.closing.is_none() {
            self.arrive(id.next(), at);
        }
    }

    fn all_done(&self) -> bool {
        self.accounts.iter().all(Account::done)
    }

    /// Notes that something is not as wanted, and tells the policy.
    fn deviate(&mut self, program: ProgramId, wanted: Aspect, why: Refusal) {
        self.outcome.deviations.push(Deviation { at: self.now, program, wanted, why });
        self.causes.push(Cause::Deviated { program, wanted, why });
    }

    /// Every program has done what is asked: whoever runs again only to keep the others company is ended.
    fn close_if_done(&mut self) {
        if self.closing.is_none() && self.all_done() && !self.programs.is_empty() {
            self.close(Ended::Complete, Signal::Terminate);
        }
    }

    /// Begins the end of the run; a second call loses patience.
    fn close(&mut self, ended: Ended, signal: Signal) {
        self.outcome.ended = ended;
        let again = self.closing.is_some();
        let kill_at = if again { self.now } else { self.now + self.setup.limits.grace };
        self.closing = Some(Closing { kill_at, killed: false });
        self.pause = None;
        self.expected.clear();
        for control in &mut self.controls {
            control.wanted = Directive::Leave;
            control.signal = Some(signal);
        }
        if !again {
            self.drop_unstarted();
        }
    }

    fn mark_killed(&mut self) {
        if let Some(closing) = &mut self.closing {
            closing.killed |= self.now >= closing.kill_at;
        }
    }

    /// Programs that never started are not started any more.
    fn drop_unstarted(&mut self) {
        let mut keep = self.programs.iter().map(|p| p.state != ProgramState::New);
        self.controls.retain(|_| keep.next().unwrap_or(true));
        self.programs.retain(|p| p.state != ProgramState::New);
    }

    fn next_deadline(&self) -> Nanos {
        let arrivals =
            self.expected.iter().map(|slot| self.setup.programs[usize::from(*slot)].arrives);
        let pause = self.pause.iter().map(|p| p.deadline);
        let kill = self.closing.iter().filter(|c| !c.killed).map(|c| c.kill_at);
        arrivals
            .chain(pause)
            .chain(kill)
            .chain([self.timers.next(), self.next_beat, self.next_freeze_deadline()])
            .min()
            .unwrap_or(Nanos::NEVER)
    }

    /// Keeps the time that a switch between gangs took; a switch that starts a program does not count.
    fn switched(&mut self, at: Nanos, thawed: bool) {
        if !self.all_run() {
            return;
        }
        if let Some(began) = self.switch_began.take().filter(|_| thawed) {
            self.outcome.switch_gaps.push(at - began);
        }
    }

    fn conclude(&mut self) -> Outcome {
        let done = self.accounts.iter().map(|a| a.outcome.done);
        if let Some(last) = done.collect::<Option<Vec<_>>>().and_then(|d| d.into_iter().max()) {
            self.outcome.total = last;
        } else {
            self.outcome.total = self.now;
        }
        self.outcome.programs = self.accounts.drain(..).map(|account| account.outcome).collect();
        self.outcome.clone()
    }
}

/// The world as it is now: borrowed, nothing copied.
fn world<'a>(now: Nanos, setup: &'a Setup, programs: &'a [Program], arena: &'a Arena) -> World<'a> {
    World {
        now,
        topology: &setup.topology,
        cpus: &setup.cpus,
        max_frozen: setup.limits.max_frozen,
        programs,
        threads: &arena.threads,
        samples: &arena.samples,
        ips: &arena.ips,
        locks: &arena.locks,
        machine: &arena.machine,
    }
}
