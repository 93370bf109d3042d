//! For tests: programs in one line each, and a machine that carries out plans at once.
//!
//! [`Lab`] carries out a policy's plans without delay, moves its own clock, and reports what
//! happened. It checks every plan for the rules of all policies.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cosched_core::{
    Cause, CpuSet, Directive, Exit, IpBin, LockShare, MachineSample, MaskOwner, Nanos, Plan,
    Policy, Profile, Program, ProgramId, ProgramState, Sample, Thread, Token, Topology, World,
};
use proptest::test_runner::{Config as ProptestConfig, RngSeed};

use crate::common::unit::{Member, Unit};
use crate::fair_progress::FairOptions;
use crate::gangs::bandwidth::Slowdowns;
use crate::gangs::rounds::Gang;
use crate::kind::Options;

/// Runs this many cases of a property, and keeps no file of failed ones: a failure becomes a test
/// of its own.
///
/// The cases are equal in every run, so that a failure can be repeated. `PROPTEST_RNG_SEED` and
/// `PROPTEST_CASES` select others.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let asked = |variable| std::env::var_os(variable).is_some();
    let cases = if asked("PROPTEST_CASES") { default.cases } else { cases };
    let seed = if asked("PROPTEST_RNG_SEED") { default.rng_seed } else { RngSeed::Fixed(1) };
    ProptestConfig { cases, rng_seed: seed, failure_persistence: None, ..default }
}

/// A new program of weight 1 with this many threads.
pub(crate) fn program(slot: u16, threads: u16) -> Program {
    Program {
        id: ProgramId::first(slot),
        state: ProgramState::New,
        thread_count: threads,
        requested: threads,
        allowed: threads,
        cpus: None,
        weight: 1.0,
        group: None,
        freezable: true,
        max_frozen: Nanos::from_secs(1),
        time_limit: None,
        malleable: false,
        epoch: 0,
        arrived: Nanos::ZERO,
        ran: Nanos::ZERO,
        waited: Nanos::ZERO,
        waiting_since: Some(Nanos::ZERO),
        turn: None,
        settled_at: Nanos::ZERO,
        profile: Profile::default(),
        threads: 0..0,
    }
}

/// A unit of one program.
pub(crate) fn unit(slot: u16, threads: usize, misses: Option<f64>) -> Unit {
    Unit {
        members: vec![Member {
            id: ProgramId::first(slot),
            threads,
            thread_limit: None,
            unbound: false,
        }],
        threads,
        misses,
        traffic: None,
        weight: 1.0,
    }
}

/// Name, threads and misses per 1000 instructions of the programs of table 5.2, in its order.
pub(crate) const TABLE_5_2: [(&str, u16, f64); 12] = [
    ("BT", 4, 2.5),
    ("LU", 12, 0.6),
    ("CG", 8, 3.0),
    ("FT", 6, 1.3),
    ("IS", 2, 44.8),
    ("atax", 8, 30.6),
    ("mvt", 12, 20.8),
    ("gemver", 8, 33.5),
    ("syr2k", 22, 0.2),
    ("fdtd-apml", 12, 0.3),
    ("jacobi-2d-imper", 12, 0.8),
    ("cholesky", 20, 0.5),
];

/// The programs of table 5.2 as units.
pub(crate) fn table_5_2() -> Vec<Unit> {
    let rows = TABLE_5_2.iter().enumerate();
    rows.map(|(slot, row)| unit(slot as u16, usize::from(row.1), Some(row.2))).collect()
}

/// The units of each gang, in the order in which they were taken.
pub(crate) fn gang_slots(gangs: &[Gang]) -> Vec<Vec<usize>> {
    gangs.iter().map(|gang| gang.iter().map(|(unit, _)| *unit).collect()).collect()
}

/// The names of each gang's programs, for the programs of table 5.2.
pub(crate) fn gang_names(gangs: &[Gang]) -> Vec<Vec<&'static str>> {
    let names = |gang: Vec<usize>| gang.into_iter().map(|unit| TABLE_5_2[unit].0).collect();
    gang_slots(gangs).into_iter().map(names).collect()
}

/// A table of two variants, without noise. Half of the traffic slows no program that has none
/// itself. With all of it, every program takes three times as long.
pub(crate) fn slowdowns() -> Slowdowns {
    let text = "machine = 'made up'\ngigabytes_per_second = [5.0, 10.0]\n\
        pairs = [[1.5, 2.0], [2.0, 3.0]]\n\
        triples = [[[2.0, 2.5], [2.5, 3.0]], [[2.5, 3.5], [3.5, 4.5]]]";
    Slowdowns::parse(text).unwrap()
}

/// The defaults, with a table for the policies that need one.
pub(crate) fn options() -> Options {
    let fair = FairOptions { peak: Some(120.0), ..FairOptions::default() };
    Options { slowdowns: Some(Arc::new(slowdowns())), fair, ..Options::default() }
}

/// The data of a world.
pub(crate) struct Scene {
    pub(crate) topology: Topology,
    pub(crate) cpus: CpuSet,
    pub(crate) max_frozen: Nanos,
    pub(crate) now: Nanos,
    pub(crate) programs: Vec<Program>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) samples: Vec<Sample>,
    pub(crate) ips: Vec<IpBin>,
    pub(crate) locks: Vec<LockShare>,
    machine: MachineSample,
}

impl Scene {
    /// One package of this many CPUs, and programs that arrived together.
    pub(crate) fn new(cpus: u16, programs: Vec<Program>) -> Scene {
        let topology = Topology::regular(1, 1, cpus, 1, 1);
        Scene {
            cpus: topology.all(),
            topology,
            max_frozen: Nanos::from_secs(1),
            now: Nanos::ZERO,
            programs,
            threads: Vec::new(),
            samples: Vec::new(),
            ips: Vec::new(),
            locks: Vec::new(),
            machine: MachineSample::default(),
        }
    }

    pub(crate) fn world(&self) -> World<'_> {
        World {
            now: self.now,
            topology: &self.topology,
            cpus: &self.cpus,
            max_frozen: self.max_frozen,
            programs: &self.programs,
            threads: &self.threads,
            samples: &self.samples,
            ips: &self.ips,
            locks: &self.locks,
            machine: &self.machine,
        }
    }
}

/// A policy, and a machine that carries out its plans at once.
pub(crate) struct Lab<P> {
    pub(crate) policy: P,
    pub(crate) scene: Scene,
    /// The latest plan.
    pub(crate) plan: Plan,
    wakes: BTreeMap<Token, Nanos>,
}

impl<P: Policy> Lab<P> {
    /// A policy at the moment when these programs arrive.
    pub(crate) fn new(policy: P, cpus: u16, programs: Vec<Program>) -> Lab<P> {
        let causes: Vec<Cause> = programs.iter().map(|p| Cause::Arrived(p.id)).collect();
        let scene = Scene::new(cpus, programs);
        let mut lab = Lab { policy, scene, plan: Plan::default(), wakes: BTreeMap::new() };
        lab.tell(&causes);
        lab
    }

    /// Tells the policy what happened, checks its plan and carries it out.
    pub(crate) fn tell(&mut self, causes: &[Cause]) {
        if causes.is_empty() {
            return;
        }
        let mut plan = Plan::default();
        self.policy.decide(causes, &self.scene.world(), &mut plan);
        self.check(&plan);
        self.carry_out(&plan);
        self.plan = plan;
    }

    /// Checks the rules for every plan of every policy.
    fn check(&self, plan: &Plan) {
        let mut named = BTreeSet::new();
        for (id, directive) in &plan.programs {
            assert!(named.insert(*id), "{id} is in one plan twice: {plan:?}");
            let world = self.scene.world();
            let program = world.program(*id).unwrap_or_else(|| panic!("unknown {id} in {plan:?}"));
            match directive {
                Directive::Run(settings) => {
                    let cpus = settings.cpus.unwrap_or(self.scene.cpus);
                    assert!(cpus.is_subset(&self.scene.cpus), "{id} on unknown CPUs: {plan:?}");
                    assert!(!cpus.is_empty(), "{id} on no CPU: {plan:?}");
                }
                Directive::Freeze => {
                    let may = program.freezable || program.state == ProgramState::New;
                    assert!(may, "{id} may not be frozen: {plan:?}");
                }
                Directive::Release => {}
            }
        }
        let mut ruled = BTreeSet::new();
        for (id, rule) in &plan.threads {
            assert!(ruled.insert(*id), "{id:?} is in one plan twice: {plan:?}");
            let world = self.scene.world();
            let thread = world.thread(*id).unwrap_or_else(|| panic!("unknown {id:?} in {plan:?}"));
            assert_eq!(thread.mask_owner, MaskOwner::Cosched, "{id:?} is not ours: {plan:?}");
            let cpus = rule.cpus.unwrap_or(self.scene.cpus);
            assert!(cpus.is_subset(&self.scene.cpus), "{id:?} on unknown CPUs: {plan:?}");
            assert!(!cpus.is_empty(), "{id:?} on no CPU: {plan:?}");
        }
        for wake in &plan.wake {
            assert!(wake.at > self.scene.now, "a wake-up in the past: {plan:?}");
        }
    }

    fn carry_out(&mut self, plan: &Plan) {
        for (id, directive) in &plan.programs {
            let now = self.scene.now;
            let Some(program) = self.scene.programs.iter_mut().find(|p| p.id == *id) else {
                continue;
            };
            match directive {
                Directive::Run(settings) => {
                    program.state = ProgramState::Running;
                    program.cpus = settings.cpus;
                    let most = program.requested;
                    program.allowed =
                        settings.thread_limit.map_or(most, |thread_limit| thread_limit.min(most));
                    program.waiting_since = None;
                }
                Directive::Freeze => {
                    if program.state != ProgramState::New {
                        program.state = ProgramState::Frozen;
                    }
                    program.waiting_since.get_or_insert(now);
                }
                Directive::Release => panic!("no policy here releases programs"),
            }
        }
        for wake in &plan.wake {
            self.wakes.insert(wake.token, wake.at);
        }
        self.wakes.retain(|_, at| *at != Nanos::NEVER);
    }

    /// The time of the policy's next call, if nothing else happens.
    pub(crate) fn next_wake(&self) -> Option<Nanos> {
        self.wakes.values().min().copied()
    }

    /// The time of the wake-up with this token.
    pub(crate) fn wake_of(&self, token: Token) -> Option<Nanos> {
        self.wakes.get(&token).copied()
    }

    /// Goes on to the next wake-up; returns whether there was one.
    pub(crate) fn wake(&mut self) -> bool {
        let Some(at) = self.next_wake() else { return false };
        self.scene.now = at;
        let due: Vec<Token> = self.wakes.iter().filter(|w| *w.1 <= at).map(|w| *w.0).collect();
        self.wakes.retain(|_, due| *due > at);
        self.tell(&due.into_iter().map(Cause::Woke).collect::<Vec<_>>());
        true
    }

    /// Goes on to the next wake-up, which reads the scene's samples.
    pub(crate) fn wake_reading(&mut self) {
        let Some(at) = self.next_wake() else { return };
        self.scene.now = at;
        let due: Vec<Token> = self.wakes.iter().filter(|w| *w.1 <= at).map(|w| *w.0).collect();
        self.wakes.retain(|_, due| *due > at);
        let sampled = self.scene.samples.iter().map(|sample| Cause::Sampled(sample.program));
        let causes: Vec<Cause> = sampled.chain(due.into_iter().map(Cause::Woke)).collect();
        self.tell(&causes);
    }

    /// Lets time pass, but not beyond a wake-up.
    pub(crate) fn pass(&mut self, span: Nanos) {
        let until = self.scene.now + span;
        self.scene.now = self.next_wake().map_or(until, |wake| until.min(wake - Nanos(1)));
    }

    pub(crate) fn arrive(&mut self, program: Program) {
        let id = program.id;
        let waiting_since = program.waiting_since.map(|_| self.scene.now);
        self.scene.programs.push(Program { arrived: self.scene.now, waiting_since, ..program });
        self.scene.programs.sort_by_key(|p| p.id);
        self.tell(&[Cause::Arrived(id)]);
    }

    pub(crate) fn exit(&mut self, slot: u16) {
        let id = ProgramId::first(slot);
        self.scene.programs.retain(|p| p.id != id);
        self.tell(&[Cause::Exited(id, Exit::Code(0))]);
    }

    /// Changes a program without the policy's knowledge, and then calls the policy.
    pub(crate) fn change(&mut self, slot: u16, change: impl FnOnce(&mut Program)) {
        let id = ProgramId::first(slot);
        if let Some(program) = self.scene.programs.iter_mut().find(|p| p.id == id) {
            change(program);
        }
        self.tell(&[Cause::ThreadsChanged(id)]);
    }

    pub(crate) fn set_state(&mut self, slot: u16, state: ProgramState) {
        self.change(slot, |p| p.state = state);
    }

    /// The slots of the programs that run.
    pub(crate) fn running(&self) -> Vec<u16> {
        let runs = |p: &&Program| p.state.may_run();
        self.scene.programs.iter().filter(runs).map(|p| p.id.slot).collect()
    }

    /// The CPUs of programs in gangs, each as often as it is assigned.
    pub(crate) fn cpus_in_use(&self) -> Vec<usize> {
        let gangs = self.scene.programs.iter().filter(|p| p.freezable && p.state.may_run());
        let cpus = |p: &Program| p.cpus.unwrap_or(self.scene.cpus).iter().collect::<Vec<_>>();
        let mut all: Vec<usize> = gangs.flat_map(cpus).collect();
        all.sort_unstable();
        all
    }

    /// The quantum of the latest plan: round, gang, number of gangs, length.
    pub(crate) fn quantum(&self) -> Option<(u64, u16, u16, Nanos)> {
        let quantum = self.plan.quantum?;
        Some((quantum.round, quantum.gang, quantum.gangs, quantum.length))
    }

    /// The programs that ran in each of the next quanta, the present one first.
    pub(crate) fn quanta(&mut self, n: usize) -> Vec<Vec<u16>> {
        (0..n)
            .map(|_| {
                let running = self.running();
                self.wake();
                running
            })
            .collect()
    }
}
