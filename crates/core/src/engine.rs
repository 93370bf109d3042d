//! The engine: one loop that drives any policy on any machine.
//!
//! ```text
//! wait ─▶ account for events ─▶ due wake-ups ─▶ policy decides ─▶ check ─▶ reconcile ─▶ wait
//! ```
//!
//! The engine is *level-triggered*. It keeps, per program, the directive of the plan and the state
//! that the machine has confirmed. After every event it looks for steps that bring the second
//! closer to the first (`reconcile`). The order in which effects arrive therefore does not matter,
//! and a step that was lost in a race is taken again.
//!
//! The engine keeps four promises whatever the policy plans:
//!
//! - No program is thawed onto CPUs on which another program is still being frozen.
//! - No program is frozen longer than [`Limits::max_frozen`], or than its own limit.
//! - A freeze that is not confirmed in time is given up and reported, so that the other programs go
//!   on.
//! - Programs of one group run together.

mod arrivals;
mod awake;
mod check;
mod ending;
mod events;
pub mod latest;
mod ledger;
pub mod outcome;
mod reconcile;
mod rules;
mod setup;
mod shares;
#[cfg(test)]
mod tests;
mod timers;
mod turns;
mod watch;

pub use check::{BadPlan, check};
pub use setup::{Limits, Predecessor, ProgramSetup, Repeat, Setup};
pub use watch::{Beat, Watch};

use crate::cause::{Cause, Token};
use crate::id::ProgramId;
use crate::machine::{Machine, Step};
use crate::output::Output;
use crate::plan::{Directive, Plan, Settings};
use crate::policy::{Policy, World};
use crate::program::{Program, ProgramState};
use crate::sample::{Arena, IpBin};
use crate::time::Nanos;
use awake::Awake;
use ending::Closing;
use latest::Latest;
use ledger::Account;
use outcome::{Cost, Decision, Ended, Outcome, Samples};
use reconcile::Control;
use rules::Rules;
use timers::Timers;
use turns::ChosenPrograms;

/// Why a run could not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error<E> {
    /// The machine is lost.
    #[error(transparent)]
    Machine(E),
    /// The policy made a plan that makes no sense.
    #[error("the policy made an impossible plan: {0}")]
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
    awake: Awake,
    /// One per slot.
    accounts: Vec<Account>,
    /// Slots that have not arrived yet, in ascending order.
    expected: Vec<u16>,
    timers: Timers,
    turns: ChosenPrograms,
    /// Exceptions for single threads.
    rules: Rules,
    /// Steps that follow from a plan directly, not from a difference of states.
    pending: Vec<Step>,
    arena: Arena,
    causes: Vec<Cause>,
    plan: Plan,
    epochs: u64,
    now: Nanos,
    /// The shortest limit on frozen time of the programs that are there.
    max_frozen: Nanos,
    next_beat: Nanos,
    /// Up to when fair shares are counted.
    shares_until: Nanos,
    /// Everything is being frozen for a measurement, which these wake-ups requested.
    pause: Option<FullFreeze>,
    closing: Option<Closing>,
    /// A program could be started. It waits until the engine has taken in the events since the last
    /// start.
    starts_wait: bool,
    switch_began: Option<Nanos>,
    /// The last wait ended so late that cosched itself cannot have been running. The accounts of
    /// that time do not show what happened.
    overslept: bool,
    outcome: Outcome,
}

/// A freeze of everything, so that a measurement belongs to one quantum alone.
#[derive(Debug)]
struct FullFreeze {
    tokens: Vec<Token>,
    deadline: Nanos,
}

impl<M: Machine, P: Policy> Engine<M, P> {
    /// An engine for one run.
    pub fn new(machine: M, policy: P, setup: Setup) -> Engine<M, P> {
        let slots = setup.programs.len();
        let most = setup.limits.history;
        let outcome = Outcome {
            ended: Ended::Complete,
            total: Nanos::ZERO,
            cpus: setup.cpus.len(),
            programs: Vec::new(),
            decisions: Latest::of(most),
            deviations: Latest::of(most),
            wake_lateness: Samples::of(most),
            switches: Latest::of(most),
            cost: Cost::default(),
            switch_gaps: Samples::of(most),
        };
        Engine {
            machine,
            policy,
            programs: Vec::with_capacity(slots),
            controls: Vec::with_capacity(slots),
            awake: Awake::default(),
            accounts: setup
                .programs
                .iter()
                .map(|entry| Account::new(entry, most / 2 / slots.max(1)))
                .collect(),
            expected: (0..slots).map(|slot| slot as u16).collect(),
            timers: Timers::default(),
            turns: ChosenPrograms::new(slots),
            rules: Rules::default(),
            pending: Vec::new(),
            arena: Arena::default(),
            causes: Vec::new(),
            plan: Plan::default(),
            epochs: 0,
            now: Nanos::ZERO,
            max_frozen: setup.limits.max_frozen,
            next_beat: setup.limits.heartbeat,
            shares_until: Nanos::ZERO,
            pause: None,
            closing: None,
            starts_wait: false,
            switch_began: None,
            overslept: false,
            outcome,
            setup,
        }
    }

    /// Runs the workload to its end, and returns the machine with the accounts.
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
            self.admit_arrivals(watch);
            self.expire()?;
            if !self.causes.is_empty() && self.closing.is_none() && self.pause.is_none() {
                self.decide(watch)?;
            }
            self.close_if_done();
            self.give_up_if_hopeless();
            let steps = self.reconcile();
            if !steps.is_empty() {
                self.machine.submit(&steps).map_err(Error::Machine)?;
            }
            if self.programs.is_empty() && (self.closing.is_some() || self.expected.is_empty()) {
                return Ok(());
            }
            events.clear();
            let decided = self.now;
            let deadline = self.next_deadline(watch);
            self.now = self.machine.wait(deadline, &mut events).map_err(Error::Machine)?;
            self.overslept = self.now.since(deadline) > self.setup.limits.max_frozen;
            for event in &mut events {
                // An event that is found late stands after the decisions that were made without it.
                event.at = event.at.max(decided);
                watch.happened(event);
                self.account_for(*event);
            }
            self.settle();
            self.beat_if_due(watch);
        }
    }

    fn index(&self, id: ProgramId) -> Option<usize> {
        self.programs.binary_search_by_key(&id, |p| p.id).ok()
    }

    fn arrive(&mut self, id: ProgramId, at: Nanos) {
        self.count_shares(at);
        let entry = &self.setup.programs[usize::from(id.slot)];
        let mut program = Program {
            id,
            state: ProgramState::New,
            thread_count: entry.thread_count,
            requested: entry.thread_count,
            allowed: entry.thread_count,
            cpus: None,
            turn: None,
            weight: entry.weight,
            group: entry.group,
            freezable: entry.freezable,
            max_frozen: entry.max_frozen.unwrap_or(Nanos::NEVER).min(self.setup.limits.max_frozen),
            time_limit: entry.time_limit,
            malleable: entry.malleable,
            epoch: 0,
            arrived: at,
            ran: Nanos::ZERO,
            waited: Nanos::ZERO,
            waiting_since: Some(at),
            settled_at: at,
            profile: entry.profile,
            threads: 0..0,
        };
        let account = &mut self.accounts[usize::from(id.slot)];
        account.arrives(id, at);
        let mut control = Control::default();
        if entry.runs_already {
            program.state = ProgramState::Running;
            control.desired = Directive::Run(Settings::default());
            account.runs(&mut program, at);
            self.turns.finds(id);
        }
        let index = self.programs.partition_point(|p| p.id < id);
        self.programs.insert(index, program);
        self.controls.insert(index, control);
        self.renew_max_frozen();
        self.awake.wake(id);
        self.causes.push(Cause::Arrived(id));
    }

    /// Finds the shortest limit on frozen time again, after a program came, went or changed.
    fn renew_max_frozen(&mut self) {
        let freezable = self.programs.iter().filter(|program| program.freezable);
        let shortest = freezable.map(|program| program.max_frozen).min();
        self.max_frozen = shortest.unwrap_or(self.setup.limits.max_frozen);
    }

    /// Handles the wake-ups and deadlines that are due.
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
        for wake in &due {
            self.outcome.wake_lateness.add(self.now - wake.at);
        }
        let tokens = due.iter().map(|wake| wake.token);
        if timers::freezes(&due) {
            let deadline = self.now + self.setup.limits.freeze_patience;
            self.pause = Some(FullFreeze { tokens: tokens.collect(), deadline });
            return Ok(());
        }
        self.causes.extend(tokens.map(Cause::Woke));
        self.read(timers::reads(&due))
    }

    /// Reads the measurements that are due, or all observed ones, and tells the policy which
    /// programs were sampled.
    fn read(&mut self, all: bool) -> Result<(), Error<M::Error>> {
        let reads = self.timers.take_reads(self.now, all);
        if reads.is_empty() {
            return Ok(());
        }
        let began = self.machine.now();
        self.machine.read(&reads, &mut self.arena).map_err(Error::Machine)?;
        self.outcome.cost.reading += self.machine.now() - began;
        self.share_out_threads();
        self.rules.forget_the_gone(&world(
            self.now,
            self.max_frozen,
            &self.setup,
            &self.programs,
            &self.arena,
        ));
        let mut sampled: Vec<ProgramId> = reads.iter().filter_map(|o| o.program).collect();
        sampled.sort_unstable();
        sampled.dedup();
        let is_fresh = |bin: &&IpBin| sampled.binary_search(&bin.program).is_ok();
        let fresh = self.arena.ips.iter().filter(is_fresh);
        self.outcome.cost.code_samples += fresh.map(|bin| u64::from(bin.count)).sum::<u64>();
        self.causes.extend(sampled.into_iter().map(Cause::Sampled));
        Ok(())
    }

    /// Gives every program its range in the list of threads.
    fn share_out_threads(&mut self) {
        let threads = &self.arena.threads;
        for program in &mut self.programs {
            let from = threads.partition_point(|thread| thread.program < program.id);
            let to = threads.partition_point(|thread| thread.program <= program.id);
            program.threads = from as u32..to as u32;
        }
    }

    fn decide(&mut self, watch: &mut dyn Watch) -> Result<(), Error<M::Error>> {
        self.refresh();
        let mut plan = std::mem::take(&mut self.plan);
        plan.clear();
        let world = world(self.now, self.max_frozen, &self.setup, &self.programs, &self.arena);
        let began = self.machine.now();
        self.policy.decide(&self.causes, &world, &mut plan);
        self.outcome.cost.deciding += self.machine.now() - began;
        check(&plan, &world)?;
        watch.decided(&world, &plan);
        self.causes.clear();
        self.adopt(&plan);
        self.record(&mut plan);
        self.plan = plan;
        Ok(())
    }

    /// Adopts a plan as the desired state from now on.
    fn adopt(&mut self, plan: &Plan) {
        self.end_grace_periods();
        self.count_switch(plan);
        self.timers.adopt(plan, self.now);
        self.pending.extend(plan.observe.iter().map(|observe| Step::Observe(*observe)));
        let world = world(self.now, self.max_frozen, &self.setup, &self.programs, &self.arena);
        let changed = self.rules.adopt(plan, &world, &mut self.pending);
        for (id, directive) in &plan.programs {
            let Some(i) = self.index(*id) else { continue };
            self.awake.wake(*id);
            let control = &mut self.controls[i];
            if self.now >= control.override_until {
                control.override_freeze = None;
            }
            if control.desired != *directive {
                control.desired = *directive;
                self.count_directive(i);
            }
        }
        for id in changed {
            let Some(i) = self.index(id) else { continue };
            self.awake.wake(id);
            self.controls[i].apply_anyway = true;
            self.count_directive(i);
        }
    }

    /// Records what the policy has said. The reasons are taken out of the plan.
    fn record(&mut self, plan: &mut Plan) {
        for (id, output) in &plan.outputs {
            if let Some(account) = self.accounts.get_mut(usize::from(id.slot)) {
                account.outcome.learning.take_in(output);
                if let Output::Estimated(estimates) = output {
                    account.estimates(*estimates, self.now);
                }
            }
        }
        if !plan.reasons.is_empty() {
            let reasons = std::mem::take(&mut plan.reasons);
            self.outcome.decisions.push(Decision { at: self.now, reasons });
        }
    }

    /// Numbers the program's new directive.
    fn count_directive(&mut self, i: usize) {
        self.epochs += 1;
        self.programs[i].epoch = self.epochs;
    }

    /// Brings the running times in the world up to the present.
    fn refresh(&mut self) {
        for i in self.runners() {
            let program = &mut self.programs[i];
            program.ran = self.accounts[usize::from(program.id.slot)].ran(self.now);
        }
    }

    fn next_deadline(&self, watch: &dyn Watch) -> Nanos {
        if self.starts_wait {
            return self.now;
        }
        let arrivals = self.next_arrival().into_iter();
        let pause = self.pause.iter().map(|p| p.deadline);
        // Wake-ups that are due during a pause wait for its end.
        let timers = if self.pause.is_none() { self.timers.next() } else { Nanos::NEVER };
        let kill = self.closing.iter().flat_map(|c| [c.kill_at, c.give_up_at]);
        let kill = kill.filter(|at| *at > self.now);
        arrivals
            .chain(pause)
            .chain(kill)
            .chain([timers, self.beat_deadline(watch), self.next_freeze_deadline()])
            .min()
            .unwrap_or(Nanos::NEVER)
    }

    fn conclude(&mut self) -> Outcome {
        let came = self.accounts.iter().filter(|a| a.outcome.not_started.is_none());
        let done = came.map(|a| a.outcome.done);
        let last = done.collect::<Option<Vec<_>>>().and_then(|done| done.into_iter().max());
        self.outcome.programs = self.accounts.drain(..).map(|account| account.outcome).collect();
        self.outcome.end_at(last.unwrap_or(self.now));
        self.outcome.clone()
    }
}

/// The world as it is now. It is borrowed, and nothing is copied.
fn world<'a>(
    now: Nanos,
    max_frozen: Nanos,
    setup: &'a Setup,
    programs: &'a [Program],
    arena: &'a Arena,
) -> World<'a> {
    World {
        now,
        topology: &setup.topology,
        cpus: &setup.cpus,
        max_frozen,
        programs,
        threads: &arena.threads,
        samples: &arena.samples,
        ips: &arena.ips,
        locks: &arena.locks,
        machine: &arena.machine,
    }
}
