//! The model compared with closed forms, and with relations that hold for any machine.

use cosched_core::engine::outcome::Outcome;
use cosched_core::engine::{Engine, Error, Limits, ProgramSetup, Setup};
use cosched_core::{Nanos, Policy};
use cosched_policy::{Kind, Options};

use crate::hardware::{Bus, Hardware, Scope, topology};
use crate::model::{Mix, Model, Op};
use crate::{Costs, Halted, Kernel, Sim, SimulatedJob};

/// A machine on which nothing costs time but computing.
pub(crate) fn ideal(shape: &str) -> Hardware {
    Hardware {
        name: shape.to_owned(),
        topology: topology(shape).unwrap(),
        gigahertz: 1.0,
        smt_share: 1.0,
        cache_bytes: 1e6,
        memory_nanos: 100.0,
        remote_nanos: 0.0,
        buses: vec![Bus { of: Scope::Machine, bytes_per_nano: 6.4 }],
        switch_nanos: 0.0,
        wake_nanos: 0.0,
        signal_nanos: [0.0; 3],
        strays_per_second: 0.0,
        interruptions_per_second: 0.0,
        housekeeping_per_second: 0.0,
        tick_nanos: 0.0,
        own: FREE,
    }
}

const FREE: Costs =
    Costs { start: Nanos::ZERO, join: Nanos::ZERO, freeze: Nanos::ZERO, thaw: Nanos::ZERO };
/// 100 ms at 1 GHz.
const WORK: f64 = 1e8;

fn plain() -> Mix {
    Mix::computing(1.0)
}

/// Every line comes from memory: a cache gains nothing.
fn streaming() -> Mix {
    Mix { misses: 0.02, misses_without_cache: 0.02, parallelism: 4.0, ..plain() }
}

struct Scenario {
    hardware: Hardware,
    kernel: Kernel,
    policy: Kind,
    seed: u64,
    models: Vec<Model>,
}

impl Scenario {
    fn new(shape: &str, models: Vec<Model>) -> Scenario {
        let kernel = Kernel::EEVDF;
        Scenario { hardware: ideal(shape), kernel, policy: Kind::Linux, seed: 1, models }
    }

    fn run(&self) -> (Outcome, u64) {
        let (sim, outcome) = self.try_run();
        (outcome.unwrap(), sim.events())
    }

    fn try_run(&self) -> (Sim, Result<Outcome, Error<Halted>>) {
        self.try_run_within(u64::MAX)
    }

    fn try_run_within(&self, events: u64) -> (Sim, Result<Outcome, Error<Halted>>) {
        self.try_run_with(|sim| sim.stop_after(events))
    }

    fn try_run_with(&self, limit: impl Fn(&mut Sim)) -> (Sim, Result<Outcome, Error<Halted>>) {
        let entries = self.models.iter().map(|model| ProgramSetup::new(model.threads)).collect();
        let topology = self.hardware.topology.clone();
        let limits = Limits::default();
        let setup = Setup { cpus: topology.all(), topology, programs: entries, limits };
        let jobs =
            self.models.iter().map(|model| SimulatedJob { model: model.clone(), weight: 1.0 });
        let mut sim = Sim::new(self.hardware.clone(), self.kernel, jobs.collect(), FREE, self.seed);
        limit(&mut sim);
        let policy: Box<dyn Policy + Send> = self.policy.build(&Options::default()).unwrap();
        Engine::new(sim, policy, setup).run(&mut ())
    }

    /// When each program ended, seconds.
    fn ends(&self) -> Vec<f64> {
        let (outcome, _) = self.run();
        outcome.programs.iter().map(|program| program.done.unwrap().as_secs_f64()).collect()
    }
}

/// Checks that a value is within a share of the expected one.
#[track_caller]
fn near(found: f64, expected: f64, share: f64) {
    assert!((found - expected).abs() <= share * expected, "{found} instead of {expected}");
}

#[test]
fn a_program_alone_takes_its_instructions_times_its_cycles() {
    let cycles = Mix { base_cpi: 1.5, ..plain() };
    let ends = Scenario::new("core:4", vec![Model::parallel(4, WORK, cycles)]).ends();
    near(ends[0], 0.15, 1e-6);
}

#[test]
fn threads_on_one_cpu_share_it_equally_under_every_kernel() {
    for kernel in Kernel::NAMES.iter().filter_map(|name| Kernel::named(name)) {
        let models = vec![Model::parallel(1, 5.0 * WORK, plain()); 3];
        let ends = Scenario { kernel, ..Scenario::new("core:1", models) }.ends();
        // Together they take as long as one after another, and none ends much before the others.
        let last = ends.iter().copied().fold(0.0, f64::max);
        near(last, 1.5, 1e-3);
        // Turns of Solaris are up to 200 ms long.
        let first = if kernel.is_solaris() { 1.5 - 2.0 * 0.2 } else { 1.25 };
        assert!(ends.iter().all(|end| *end >= first), "{kernel:?} {ends:?}");
    }
}

#[test]
fn a_serial_part_limits_the_speedup_as_amdahl_says() {
    let model = |threads: u16| Model {
        script: vec![
            Op::Only { threads: (0, 1), next: 1 },
            Op::Compute { instructions: 0.25 * WORK, mix: 0 },
            Op::Barrier(0),
            Op::Compute { instructions: 0.75 * WORK / f64::from(threads), mix: 0 },
        ],
        barriers: 1,
        ..Model::parallel(threads, 0.0, plain())
    };
    for threads in [1, 2, 4, 8] {
        let ends = Scenario::new("core:8", vec![model(threads)]).ends();
        near(ends[0], 0.1 * (0.25 + 0.75 / f64::from(threads)), 1e-6);
    }
}

#[test]
fn streaming_threads_share_the_bandwidth_of_the_bus() {
    // Alone, a thread sends 64 bytes for each of 0.02 misses per instruction, at 1 + 0.02 * 100 / 4
    // = 1.5 cycles each.
    let alone = 64.0 * 0.02 / 1.5;
    for threads in [1u16, 2, 4, 16, 32] {
        let model = Model::parallel(threads, WORK, streaming());
        let ends = Scenario::new("core:32", vec![model]).ends();
        let sent = f64::from(threads) * WORK * 0.02 * 64.0 / (ends[0] * 1e9);
        let roof = (f64::from(threads) * alone).min(6.4);
        assert!(sent <= roof * 1.000_001, "{threads}: {sent} of {roof}");
        // Waiting in line costs most where demand and supply are even.
        assert!(sent > 0.75 * roof, "{threads}: {sent} of {roof}");
    }
}

#[test]
fn programs_too_big_for_a_shared_cache_slow_each_other() {
    let cached = Mix { misses: 0.0, misses_without_cache: 0.01, footprint: 1e6, ..streaming() };
    let alone = Scenario::new("core:2", vec![Model::parallel(1, WORK, cached)]).ends();
    near(alone[0], 0.1, 1e-6);
    let both = Scenario::new("core:2", vec![Model::parallel(1, WORK, cached); 2]).ends();
    // Half of the misses without any cache: 0.005 * 100 / 4 cycles more, and a little for the bus.
    assert!(both[0] > 0.1125 && both[0] < 0.115, "{both:?}");
}

#[test]
fn siblings_on_one_core_get_their_share_of_it() {
    let hardware = Hardware { smt_share: 0.6, ..ideal("core:1 pu:2") };
    let models = vec![Model::parallel(1, WORK, plain()), Model::parallel(1, 2.0 * WORK, plain())];
    let ends = Scenario { hardware, ..Scenario::new("core:1", models) }.ends();
    near(ends[0], 0.1 / 0.6, 1e-3);
    // The second one has the core to itself once the first one has ended.
    near(ends[1], 0.1 / 0.6 + 0.1, 1e-3);
}

#[test]
fn a_lock_admits_one_thread_at_a_time() {
    let briefly = Nanos::from_micros(20);
    for spin in [Nanos::ZERO, briefly, Nanos::NEVER] {
        let model = Model::lock(4, 1000, 1e4, 1e4, plain(), spin);
        let ends = Scenario::new("core:4", vec![model]).ends();
        // 4000 times 10 us inside. The time outside is hidden behind the others' inside, except the
        // first, and those in which all others have spun in vain, and are asleep.
        let most = if spin == briefly { 0.06 } else { 0.041 };
        assert!(ends[0] >= 0.04 && ends[0] < most, "{spin}: {ends:?}");
    }
}

#[test]
fn the_slowest_stage_sets_the_pace_of_a_pipeline() {
    let items = 200;
    let stage = |threads, work, from: Option<u16>, to: Option<u16>, times: u32, at: u32| {
        let body: Vec<Op> = from
            .map(Op::Pop)
            .into_iter()
            .chain([Op::Compute { instructions: work, mix: 0 }])
            .chain(to.map(Op::Push))
            .collect();
        let repeat = Op::Repeat { from: at + 1, times, counter: 0 };
        let next = body.len() as u16 + 1;
        [vec![Op::Only { threads, next }], body, vec![repeat]].concat()
    };
    let first = stage((0, 1), 1e5, None, Some(0), items, 0);
    let middle = stage((1, 3), 1e6, Some(0), Some(1), items / 2, first.len() as u32);
    let last = stage((3, 4), 1e5, Some(1), None, items, (first.len() + middle.len()) as u32);
    let script = [first, middle, last].concat();
    let model = Model { script, queues: vec![4, 4], ..Model::parallel(4, 0.0, plain()) };
    let ends = Scenario::new("core:4", vec![model]).ends();
    // Two threads of 1 ms per item, and the time of the first and the last item in the other
    // stages.
    near(ends[0], f64::from(items) / 2.0 * 1e-3, 0.01);
}

#[test]
fn sleeping_takes_time_and_no_cpu() {
    let script = vec![
        Op::Compute { instructions: 1e6, mix: 0 },
        Op::Sleep(Nanos::from_millis(9)),
        Op::Repeat { from: 0, times: 10, counter: 0 },
    ];
    let model = Model { script, ..Model::parallel(1, 0.0, plain()) };
    let (outcome, _) = Scenario::new("core:1", vec![model]).run();
    assert_eq!(outcome.programs[0].done, Some(Nanos::from_millis(100)));
    near(outcome.programs[0].completions[0].usage.user_seconds, 0.01, 1e-6);
}

#[test]
fn spinning_barriers_suffer_together_and_not_in_gangs() {
    let model = Model::barriers(4, 2000, 1e5, plain(), Nanos::NEVER);
    let models = vec![model; 3];
    let alone = 0.2;
    let of = |policy| Scenario { policy, ..Scenario::new("core:4", models.clone()) }.ends();
    let last = |ends: Vec<f64>| ends.into_iter().fold(0.0, f64::max);
    let (linux, gang) = (last(of(Kind::Linux)), last(of(Kind::Gang)));
    near(gang, 3.0 * alone, 0.01);
    assert!(linux > 1.5 * gang, "linux {linux}, gang {gang}");
}

/// Threads that the first one makes after a millisecond, and that then wait at a spinning barrier
/// every 0.1 ms.
fn made_late(rounds: u32) -> Model {
    let script = vec![
        Op::Compute { instructions: 1e6, mix: 0 },
        Op::Create,
        Op::Compute { instructions: 1e5, mix: 0 },
        Op::Barrier(0),
        Op::Repeat { from: 2, times: rounds, counter: 0 },
    ];
    Model { script, ..Model::barriers(2, rounds, 1e5, plain(), Nanos::NEVER) }
}

#[test]
fn a_new_thread_stays_with_its_parent_if_cpus_are_busy() {
    let alone = Scenario::new("core:2", vec![made_late(50)]).ends();
    near(alone[0], 0.001 + 50.0 * 1e-4, 1e-6);
    // Both programs have their two threads on one CPU each then: one round for each tick of 4 ms.
    let both = Scenario::new("core:2", vec![made_late(50); 2]).ends();
    assert!(both.iter().all(|end| (0.15..0.25).contains(end)), "{both:?}");
}

/// Stray moves and interruptions make siblings share a CPU now and then.
#[test]
fn strays_and_interruptions_mix_siblings_sometimes() {
    let quiet = Scenario::new("core:2", vec![made_late(1000); 2]);
    let mut busy = Scenario::new("core:2", vec![made_late(1000); 2]);
    busy.hardware.strays_per_second = 5.0;
    busy.hardware.interruptions_per_second = 100.0;
    assert!(busy.ends()[0] < 0.5 * quiet.ends()[0], "{:?}, {:?}", busy.ends(), quiet.ends());
}

#[test]
fn an_interruption_is_a_switch_that_takes_no_time() {
    let mut scenario = Scenario::new("core:1", vec![Model::parallel(1, 10.0 * WORK, plain())]);
    scenario.hardware.interruptions_per_second = 100.0;
    let program = &scenario.run().0.programs[0];
    near(program.done.unwrap().as_secs_f64(), 1.0, 1e-6);
    let switches = program.completions[0].usage.involuntary_switches;
    assert!((70..130).contains(&switches), "{switches}");
}

/// A kernel timer is no switch where a thread waits for the CPU.
#[test]
fn a_kernel_timer_is_a_switch_only_on_a_free_cpu() {
    let switches = |programs: usize, often: f64| {
        let models = vec![Model::parallel(1, 10.0 * WORK, plain()); programs];
        let mut scenario = Scenario::new("core:1", models);
        scenario.kernel.skew_tick = false;
        scenario.hardware.housekeeping_per_second = often;
        let programs = scenario.run().0.programs;
        let usage = |i: usize| programs[i].completions[0].usage.involuntary_switches;
        (0..programs.len()).map(usage).sum::<u64>()
    };
    let alone = switches(1, 50.0);
    assert!((35..65).contains(&alone), "{alone}");
    // Two programs for two seconds: they alternate at every tick anyway.
    let (without, with) = (switches(2, 0.0), switches(2, 50.0));
    assert!(without.abs_diff(with) <= 10, "{without}, {with}");
}

#[test]
fn a_tick_takes_time_and_makes_lock_users_collide() {
    let time = |tick: f64| {
        let mut scenario = Scenario::new("core:1", vec![Model::parallel(1, WORK, plain())]);
        scenario.hardware.tick_nanos = tick;
        scenario.ends()[0]
    };
    // 25 ticks in 0.1 s, of 40 us each.
    near(time(40_000.0) - time(0.0), 0.001, 0.2);
    let sleeps = |tick: f64| {
        let model = Model::lock(2, 100_000, 1000.0, 300.0, plain(), Nanos::ZERO);
        let mut scenario = Scenario::new("core:2", vec![model]);
        scenario.hardware.wake_nanos = 20_000.0;
        scenario.hardware.tick_nanos = tick;
        scenario.run().0.programs[0].completions[0].usage.voluntary_switches
    };
    assert!(sleeps(5000.0) > 5 * (1 + sleeps(0.0)), "{} {}", sleeps(5000.0), sleeps(0.0));
}

#[test]
fn a_slow_wake_up_does_not_fall_into_step_with_a_lock() {
    let model = Model::lock(2, 10_000, 1000.0, 300.0, plain(), Nanos::ZERO);
    let mut scenario = Scenario::new("core:2", vec![model]);
    scenario.hardware.wake_nanos = 20_000.0;
    for seed in 1..6 {
        scenario.seed = seed;
        // 10,000 turns of 1.3 us each, and a few wake-ups.
        let end = scenario.ends()[0];
        assert!(end < 2.0 * 0.013, "{end}");
    }
}

/// Figure 2 of the TiDon paper.
#[test]
fn gangs_leave_cpus_idle_unless_they_share_a_quantum() {
    // Three threads, two and two on four CPUs. While the three run, one CPU is idle and neither of
    // the others may use it, though both could run: this is the fragmentation of the figure. The
    // two programs of two threads fit into one quantum.
    let threads = [3, 2, 2];
    let models: Vec<Model> =
        threads.iter().map(|threads| Model::parallel(*threads, 4.0 * WORK, plain())).collect();
    let of = |policy| Scenario { policy, ..Scenario::new("core:4", models.clone()) }.run().0;
    // 0.4 s each: three gangs one after another, or two.
    let (gang, greedy) = (of(Kind::Gang), of(Kind::Greedy));
    near(gang.total.as_secs_f64(), 1.2, 1e-3);
    near(greedy.total.as_secs_f64(), 0.8, 1e-3);
    for (i, one) in gang.programs.iter().enumerate() {
        for other in &gang.programs[i + 1..] {
            let overlap = one
                .timeline
                .iter()
                .any(|a| other.timeline.iter().any(|b| a.from < b.to && b.from < a.to));
            assert!(!overlap, "two gangs at a time");
        }
    }
    let used: f64 = gang.programs.iter().map(|p| p.completions[0].usage.user_seconds).sum();
    near(used / (4.0 * gang.total.as_secs_f64()), 7.0 / 12.0, 1e-3);
}

/// A run is equal for equal seeds, and takes twice as long if everything takes twice as long.
#[test]
fn a_run_repeats_with_its_seed_and_scales_with_time() {
    let models = |times: f64| -> Vec<Model> {
        (0..3).map(|_| Model::barriers(3, 50, times * 1e6, plain(), Nanos::ZERO)).collect()
    };
    let scenario = |seed, times| Scenario { seed, ..Scenario::new("core:4", models(times)) };
    let (first, second) = (scenario(7, 1.0), scenario(7, 1.0));
    assert_eq!(first.ends(), second.ends());
    assert_eq!(first.run().1, second.run().1);
    let slow = Hardware { gigahertz: 0.5, ..ideal("core:4") };
    let kernel = Kernel { tick: Nanos::from_millis(8), ..Kernel::ROUND_ROBIN };
    let half = Scenario { hardware: slow, kernel, ..scenario(7, 1.0) };
    let whole = Scenario { kernel: Kernel::ROUND_ROBIN, ..scenario(7, 1.0) };
    for (half, whole) in half.ends().iter().zip(whole.ends()) {
        near(*half, 2.0 * whole, 0.1);
    }
}

/// Waits for an item that no thread brings.
fn deadlock(spin: Nanos) -> Model {
    let script = vec![Op::Compute { instructions: WORK, mix: 0 }, Op::Pop(0)];
    Model { script, spin, queues: vec![1], ..Model::parallel(1, 0.0, plain()) }
}

#[test]
fn a_deadlock_is_an_error_even_if_other_events_go_on() {
    let (asleep, spinning) = (deadlock(Nanos::ZERO), deadlock(Nanos::NEVER));
    let forever = Op::Sleep(Nanos::NEVER);
    let sleeps = Model { script: vec![forever], ..Model::parallel(1, 0.0, plain()) };
    let interrupted = Hardware { interruptions_per_second: 20.0, ..ideal("core:1") };
    let on = |policy, hardware: &Hardware, models: Vec<Model>| {
        let hardware = hardware.clone();
        Scenario { policy, hardware, ..Scenario::new("core:1", models) }
    };
    let scenarios = [
        on(Kind::Linux, &ideal("core:1"), vec![asleep.clone()]),
        on(Kind::Linux, &interrupted, vec![spinning.clone()]),
        // Ticks, and quanta, and programs that are done.
        on(Kind::Linux, &ideal("core:1"), vec![spinning.clone(), spinning.clone()]),
        on(Kind::Gang, &ideal("core:1"), vec![spinning.clone(), asleep.clone()]),
        on(Kind::Gang, &interrupted, vec![asleep.clone(), Model::parallel(1, WORK, plain())]),
        // A sleep without an end.
        on(Kind::Linux, &interrupted, vec![sleeps.clone(), spinning.clone()]),
        on(Kind::Gang, &ideal("core:1"), vec![sleeps.clone(), sleeps]),
        // The longest time that a thread can compute is less than this.
        on(Kind::Linux, &interrupted, vec![Model::parallel(1, 1e20, plain())]),
    ];
    for scenario in scenarios {
        let Err(Error::Machine(Halted::Stuck { at, left })) = scenario.try_run().1 else {
            panic!("not stuck")
        };
        assert!((1..=2).contains(&left), "{left} threads are left");
        assert!(at < Nanos::from_secs(3600), "{at}");
    }
}

#[test]
fn a_simulation_ends_soon_after_its_event_limit() {
    let scenario = Scenario::new("core:2", vec![Model::parallel(2, WORK, plain()); 3]);
    let (sim, outcome) = scenario.try_run();
    assert!(outcome.is_ok() && sim.events() > 100, "{} events", sim.events());
    for most in [0, 1, sim.events() / 2] {
        let (limited, outcome) = scenario.try_run_within(most);
        let Err(Error::Machine(Halted::TooLong { events, .. })) = outcome else {
            panic!("{outcome:?}")
        };
        assert_eq!((events, limited.events()), (most, most + 1));
    }
    assert!(scenario.try_run_within(sim.events()).1.is_ok());
}

#[test]
fn a_simulation_ends_when_the_user_asks_for_it() {
    let scenario = Scenario::new("core:2", vec![Model::parallel(2, WORK, plain()); 3]);
    let (sim, outcome) = scenario.try_run_with(|sim| sim.stop_if(|| true));
    assert!(matches!(outcome, Err(Error::Machine(Halted::Interrupted { .. }))), "{outcome:?}");
    assert_eq!(sim.events(), 0);
    let (sim, outcome) = scenario.try_run_with(|sim| sim.stop_if(|| false));
    assert_eq!((outcome.unwrap(), sim.events()), scenario.run());
}

#[test]
fn a_slow_program_is_not_stuck() {
    // An hour between two instructions; and threads that are made later, and spin for one that
    // arrives much later.
    let slow = vec![
        Op::Sleep(Nanos::from_secs(3600)),
        Op::Create,
        Op::Only { threads: (0, 1), next: 1 },
        Op::Compute { instructions: 60e9, mix: 0 },
        Op::Barrier(0),
    ];
    let model =
        Model { script: slow, barriers: 1, spin: Nanos::NEVER, ..Model::parallel(2, 0.0, plain()) };
    let hardware = Hardware { interruptions_per_second: 100.0, ..ideal("core:2") };
    let scenario = Scenario { hardware, ..Scenario::new("core:2", vec![model]) };
    near(scenario.ends()[0], 3660.0, 1e-6);
}
