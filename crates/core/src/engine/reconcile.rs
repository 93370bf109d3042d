//! From plan to steps: the difference between directives and confirmed states.
//!
//! For every program there is a *goal*: its directive, unless a promise of the
//! engine overrides it (a measurement pause, a freeze that was given up, a group
//! that runs). The table is short:
//!
//! | goal \ state | New | Starting | Running | Freezing | Frozen |
//! |---|---|---|---|---|---|
//! | freeze | – | wait | freeze | wait | – |
//! | run | start\* | wait | apply | apply, thaw | apply, thaw\* |
//! | leave | – | wait | leave | leave | leave |
//!
//! \* only once no program that is to be frozen may still run on its CPUs. This rule keeps gangs
//! apart, and it is the whole switching protocol.
//!
//! Programs start one at a time. Between two starts the engine takes in what has happened, because
//! making a process takes long where the running programs leave no CPU free. The end of a program
//! does not wait for that, and neither does the user's request to end the run.

use std::collections::BTreeSet;

use super::Engine;
use crate::cause::{Aspect, Refusal};
use crate::cpuset::CpuSet;
use crate::machine::{Machine, Signal, Step};
use crate::plan::{Directive, Settings};
use crate::policy::Policy;
use crate::program::{GroupId, Program, ProgramState};
use crate::time::Nanos;

/// What the engine keeps of one program in addition to what policies see.
#[derive(Debug)]
pub(super) struct Control {
    /// The last directive.
    pub(super) desired: Directive,
    /// The number of the last directive that was in full effect.
    pub(super) settled: u64,
    /// The number of the settings that were last sent to the machine and are not confirmed yet.
    pub(super) applying: Option<u64>,
    /// The next settings are to be sent even if they are the old ones: the program waits for the
    /// answer.
    pub(super) apply_anyway: bool,
    /// The settings that were last sent to the machine.
    pub(super) last_sent: Settings,
    /// A thaw is under way.
    pub(super) thawing: bool,
    /// When an unconfirmed freeze is given up, or a start that other programs wait for.
    pub(super) patience_ends: Nanos,
    /// Why the program runs although its directive says freeze. This ends with the next plan that
    /// names it.
    pub(super) override_freeze: Option<Refusal>,
    /// A program that was frozen for too long runs until this time, even if plans name it again.
    /// Then this ends by itself.
    pub(super) override_until: Nanos,
    /// Its last freeze was not confirmed in time. No program waits for its next one.
    pub(super) unreliable: bool,
    /// The machine was told to release it.
    pub(super) left: bool,
    /// It was ended by force.
    pub(super) killed: bool,
    /// A signal to send once it is released.
    pub(super) signal: Option<Signal>,
}

impl Default for Control {
    /// A program that no plan has named yet does not start.
    fn default() -> Control {
        Control {
            desired: Directive::Freeze,
            settled: 0,
            applying: None,
            apply_anyway: false,
            last_sent: Settings::default(),
            thawing: false,
            patience_ends: Nanos::NEVER,
            override_freeze: None,
            override_until: Nanos::ZERO,
            unreliable: false,
            left: false,
            killed: false,
            signal: None,
        }
    }
}

impl Control {
    /// Whether the program was thawed because it had been frozen for too long.
    pub(super) fn is_thawed_for_a_while(&self) -> bool {
        matches!(self.override_freeze, Some(Refusal::FrozenTooLong | Refusal::CoschedStopped))
    }
}

impl<M: Machine, P: Policy> Engine<M, P> {
    /// The steps that can be taken now.
    pub(super) fn reconcile(&mut self) -> Vec<Step> {
        let mut steps = std::mem::take(&mut self.pending);
        let awake = self.awake();
        let groups = self.running_groups(&awake);
        let goals: Vec<(usize, Directive)> =
            awake.into_iter().map(|i| (i, self.goal(i, &groups))).collect();
        for (i, goal) in &goals {
            match self.programs[*i].state {
                ProgramState::Running if *goal == Directive::Freeze => self.freeze(*i, &mut steps),
                ProgramState::Starting => self.await_start(*i, *goal),
                _ => {}
            }
        }
        let held = self.held(&goals);
        self.starts_wait = false;
        for (i, goal) in &goals {
            match goal {
                Directive::Run(settings) => self.let_run(*i, *settings, &held, &mut steps),
                Directive::Release => self.release(*i, &mut steps),
                Directive::Freeze => {}
            }
        }
        steps
    }

    /// The directive of a program after the engine's promises.
    fn goal(&self, i: usize, running_groups: &BTreeSet<GroupId>) -> Directive {
        let (program, control) = (&self.programs[i], &self.controls[i]);
        let started = program.state != ProgramState::New;
        if control.desired == Directive::Release {
            return Directive::Release;
        }
        let run_as_it_is = Directive::Run(control.last_sent);
        if started && (!program.freezable || control.override_freeze.is_some()) {
            return match control.desired {
                Directive::Freeze => run_as_it_is,
                desired => desired,
            };
        }
        if self.pause.is_some() {
            return Directive::Freeze;
        }
        let group_runs = program.group.is_some_and(|group| running_groups.contains(&group));
        if control.desired == Directive::Freeze && started && group_runs {
            return run_as_it_is;
        }
        control.desired
    }

    /// Groups with a program that is to run.
    fn running_groups(&self, awake: &[usize]) -> BTreeSet<GroupId> {
        let desired = |i: &&usize| matches!(self.controls[**i].desired, Directive::Run(_));
        awake.iter().filter(desired).filter_map(|i| self.programs[*i].group).collect()
    }

    fn freeze(&mut self, i: usize, steps: &mut Vec<Step>) {
        self.programs[i].state = ProgramState::Freezing;
        self.controls[i].patience_ends = self.now + self.setup.limits.freeze_patience;
        self.switch_began.get_or_insert(self.now);
        steps.push(Step::Freeze(self.programs[i].id));
    }

    /// A program that is to be frozen and is still starting (its file system may hang) is waited
    /// for as long as a freeze is.
    fn await_start(&mut self, i: usize, goal: Directive) {
        let control = &mut self.controls[i];
        match goal {
            Directive::Freeze if control.patience_ends == Nanos::NEVER => {
                control.patience_ends = self.now + self.setup.limits.freeze_patience;
            }
            Directive::Freeze => {}
            Directive::Run(_) | Directive::Release => control.patience_ends = Nanos::NEVER,
        }
    }

    fn let_run(&mut self, i: usize, settings: Settings, held: &CpuSet, steps: &mut Vec<Step>) {
        let blocked = settings.cpus.as_ref().unwrap_or(&self.setup.cpus).intersects(held);
        let (id, state) = (self.programs[i].id, self.programs[i].state);
        // A thread limit stands until the next one. A region may request less.
        let thread_limit =
            settings.thread_limit.map(|thread_limit| thread_limit.min(self.programs[i].requested));
        let settings = Settings { thread_limit, ..settings };
        self.controls[i].left = false;
        match state {
            ProgramState::New if steps.iter().any(|step| matches!(step, Step::Start(..))) => {
                self.starts_wait |= !blocked;
            }
            ProgramState::New if !blocked => {
                self.tell(i, settings);
                self.programs[i].state = ProgramState::Starting;
                steps.push(Step::Start(id, settings));
            }
            ProgramState::Frozen if !self.controls[i].thawing && !blocked => {
                self.apply(i, settings, steps);
                self.controls[i].thawing = true;
                steps.push(Step::Thaw(id));
            }
            // A freeze that is not confirmed yet is called off.
            ProgramState::Freezing if !self.controls[i].thawing => {
                self.apply(i, settings, steps);
                self.controls[i].thawing = true;
                self.controls[i].patience_ends = Nanos::NEVER;
                steps.push(Step::Thaw(id));
            }
            ProgramState::Running => self.apply(i, settings, steps),
            _ => {}
        }
    }

    /// Sends new settings to the machine, if they differ from the last ones.
    fn apply(&mut self, i: usize, settings: Settings, steps: &mut Vec<Step>) {
        let anyway = std::mem::take(&mut self.controls[i].apply_anyway);
        if anyway || self.controls[i].last_sent != settings {
            self.tell(i, settings);
            let epoch = self.programs[i].epoch;
            self.controls[i].applying = Some(epoch);
            steps.push(Step::Apply(self.programs[i].id, settings, epoch));
        }
    }

    fn tell(&mut self, i: usize, settings: Settings) {
        self.controls[i].last_sent = settings;
        let program = &mut self.programs[i];
        program.cpus = settings.cpus;
        program.turn = settings.turn;
        program.allowed = settings.thread_limit.unwrap_or(program.requested);
    }

    /// The CPUs on which a program that is to be frozen may still be. No other program runs there
    /// before it is frozen.
    fn held(&self, goals: &[(usize, Directive)]) -> CpuSet {
        let may_be_there = |(i, goal): &&(usize, Directive)| {
            *goal == Directive::Freeze
                && self.programs[*i].state.may_run()
                && !self.controls[*i].unreliable
        };
        let cpus = |(i, _): &(usize, Directive)| self.programs[*i].cpus.unwrap_or(self.setup.cpus);
        let held = goals.iter().filter(may_be_there).map(cpus);
        held.fold(CpuSet::EMPTY, |all, cpus| all.union(&cpus))
    }

    fn release(&mut self, i: usize, steps: &mut Vec<Step>) {
        let (program, control) = (&mut self.programs[i], &mut self.controls[i]);
        if program.state == ProgramState::New || program.state == ProgramState::Starting {
            return;
        }
        if !control.left {
            control.left = true;
            control.last_sent = Settings::default();
            program.cpus = None;
            program.turn = None;
            program.allowed = program.requested;
            steps.push(Step::Release(program.id));
        }
        if let Some(signal) = control.signal.take() {
            steps.push(Step::Signal(program.id, signal));
        }
        let Some(closing) = &self.closing else { return };
        if self.now >= closing.kill_at && !std::mem::replace(&mut control.killed, true) {
            steps.push(Step::Signal(program.id, Signal::Kill));
        }
    }

    /// Gives up freezes that are not confirmed in time, and thaws programs that were frozen too
    /// long.
    pub(super) fn end_overlong_freezes(&mut self) {
        self.wake_overlong();
        for i in self.awake() {
            let Program { id, max_frozen, .. } = self.programs[i];
            let frozen_since = self.accounts[usize::from(id.slot)].frozen_since();
            let too_long = frozen_since.is_some_and(|since| self.now >= since + max_frozen);
            let unconfirmed = self.programs[i].state == ProgramState::Freezing
                && self.now >= self.controls[i].patience_ends;
            if self.starts_too_slowly(i) {
                self.controls[i].unreliable = true;
                self.deviate(self.now, id, Aspect::Frozen, Refusal::TimedOut);
            }
            let why = match (too_long, unconfirmed) {
                (true, _) if self.overslept => Refusal::CoschedStopped,
                (true, _) => Refusal::FrozenTooLong,
                (_, true) => Refusal::TimedOut,
                _ => continue,
            };
            if self.controls[i].override_freeze.is_none() {
                self.controls[i].override_freeze = Some(why);
                self.controls[i].unreliable |= unconfirmed;
                if too_long {
                    let until = self.now + max_frozen / 10;
                    self.controls[i].override_until = until;
                    self.awake.thaws_for_a_while(id, until);
                }
                self.deviate(self.now, id, Aspect::Frozen, why);
            }
        }
    }

    fn starts_too_slowly(&self, i: usize) -> bool {
        let control = &self.controls[i];
        self.programs[i].state == ProgramState::Starting
            && !control.unreliable
            && self.now >= control.patience_ends
    }

    /// When the next of these deadlines is due.
    pub(super) fn next_freeze_deadline(&self) -> Nanos {
        let deadline = |i: usize| {
            let control = &self.controls[i];
            if control.override_freeze.is_some() || control.left {
                return Nanos::NEVER;
            }
            let Program { id, max_frozen, .. } = self.programs[i];
            let since = self.accounts[usize::from(id.slot)].frozen_since();
            let longest = since.map(|since| since + max_frozen);
            let patience = match self.programs[i].state {
                ProgramState::Freezing => control.patience_ends,
                ProgramState::Starting if !control.unreliable => control.patience_ends,
                _ => Nanos::NEVER,
            };
            longest.unwrap_or(Nanos::NEVER).min(patience)
        };
        let resting = self.awake.first_freeze_ends();
        self.awake().into_iter().map(deadline).chain(resting).min().unwrap_or(Nanos::NEVER)
    }

    /// Whether any program that can be frozen may still be on a CPU.
    pub(super) fn anybody_running(&self) -> bool {
        self.awake().into_iter().any(|i| {
            let (program, control) = (&self.programs[i], &self.controls[i]);
            program.freezable && control.override_freeze.is_none() && program.state.may_run()
        })
    }

    /// Whether every program that is to run does run.
    pub(super) fn all_run(&self) -> bool {
        use ProgramState::{Frozen, New, Starting};
        self.awake_now().all(|i| {
            !matches!(self.controls[i].desired, Directive::Run(_))
                || !matches!(self.programs[i].state, New | Starting | Frozen)
        })
    }
}
