//! Small results for tests.

use cosched_core::{
    Actuator, Aspect, BarrierStats, BarrierTimes, CpuSet, Exit, Nanos, ProgramId, Quantum, Reason,
    Refusal, Usage, Why,
};
use cosched_policy::reasons::{FaithfulReason, LimitReason, SharedReason, ShufflingReason};
use cosched_results::metrics::Metrics;
use cosched_results::result::{
    Backends, BarrierResult, DecisionResult, DeviationResult, MachineDescription, Own,
    ProgramResult, RunResult, SCHEMA, TimelineEntry,
};
use cosched_workload::BarrierMode;

fn about(slot: u16, why: impl Into<Why>) -> Reason {
    Reason { program: Some(ProgramId::first(slot)), why: why.into() }
}

/// Two programs of two threads that take turns on two CPUs. Each has a solo time of 0.3 s and two
/// quanta of 0.15 s, without a gap between them.
pub(crate) fn gang() -> RunResult {
    let cpus = Some(CpuSet::first(2));
    let spans = |starts: [f64; 2]| starts.map(|at| TimelineEntry(at, at + 0.15, cpus)).to_vec();
    let programs =
        vec![program("a", spans([0.0, 0.3]), 0.45), program("b", spans([0.15, 0.45]), 0.6)];
    let quantum = |slot: u16, at_seconds| {
        let length = Nanos::from_millis(150);
        let why = Quantum { round: 1, gang: slot, gangs: 2, length }.into();
        let turn = about(slot, SharedReason::InGang);
        DecisionResult { at_seconds, reasons: vec![Reason { program: None, why }, turn] }
    };
    RunResult {
        schema: SCHEMA.into(),
        policy: "gang".into(),
        decided_by: None,
        placement: Some("packed".into()),
        quantum_seconds: Some(0.15),
        max_frozen_seconds: Some(1.0),
        fill: None,
        started_at: "2026-01-01T00:00:00Z".into(),
        interrupted_by: None,
        total_seconds: 0.6,
        kept_from_seconds: None,
        others_cpu_seconds: None,
        stolen_cpu_seconds: None,
        solo_runs: false,
        machine: MachineDescription { cpus: 2, model: None, kernel: "6.18.0".into() },
        simulation: None,
        backends: Backends { freezing: "signals".into(), pinning: "affinity".into() },
        metrics: Metrics {
            fairness_stddev: Some(0.083),
            unfairness: Some(4.0 / 3.0),
            cpu_utilisation: 0.98,
            mean_turnaround_seconds: Some(0.525),
            ..Metrics::default()
        },
        programs,
        deviations: vec![DeviationResult {
            at_seconds: 0.3,
            program: ProgramId::first(1),
            what: Aspect::Frozen,
            why: Refusal::TimedOut,
        }],
        decisions: vec![quantum(0, 0.0), quantum(1, 0.15), quantum(0, 0.3), quantum(1, 0.45)],
        own: Own {
            cpu_percent: 0.5,
            switches: 3,
            wake_lateness: None,
            switch_gap: None,
            policy_cost: None,
        },
    }
}

/// The programs of [`gang`], running together and not bound to any CPU.
pub(crate) fn linux() -> RunResult {
    let spans = || vec![TimelineEntry(0.0, 0.6, None)];
    RunResult {
        policy: "linux".into(),
        programs: vec![program("a", spans(), 0.6), program("b", spans(), 0.6)],
        decisions: Vec::new(),
        deviations: Vec::new(),
        ..gang()
    }
}

/// The run of [`linux`], where program `a` waits for locks and had trials of actuators for its
/// threads.
pub(crate) fn faithful() -> RunResult {
    let slice = |ms, lock_contention| FaithfulReason::Slice {
        slice: Nanos::from_millis(ms),
        lock_contention,
        miss_ratio: None,
        profiled: false,
        io_wait: None,
    };
    let tried = |actuator, against| FaithfulReason::Tried { actuator, against };
    let at =
        |at_seconds, reasons: &[Reason]| DecisionResult { at_seconds, reasons: reasons.to_vec() };
    let pause = Nanos::from_secs(10);
    RunResult {
        policy: "faithful".into(),
        decisions: vec![
            at(0.0, &[about(0, SharedReason::LeftToKernel), about(1, SharedReason::LeftToKernel)]),
            at(
                0.1,
                &[
                    about(0, FaithfulReason::Given { actuator: Actuator::None }),
                    about(0, slice(200, 0.84)),
                    about(1, FaithfulReason::Given { actuator: Actuator::None }),
                    about(1, slice(20, 0.12)),
                ],
            ),
            at(0.11, &[about(0, tried(Actuator::Slice, Actuator::None))]),
            at(
                0.2,
                &[
                    about(0, FaithfulReason::Kept { actuator: Actuator::Slice, progress: 1.2 }),
                    about(0, tried(Actuator::BatchSlice, Actuator::Slice)),
                ],
            ),
            at(
                0.3,
                &[about(
                    0,
                    FaithfulReason::PutBack {
                        actuator: Actuator::BatchSlice,
                        progress: 0.4,
                        pause,
                    },
                )],
            ),
        ],
        ..linux()
    }
}

/// The run of [`linux`], where program `a` had thread limits.
pub(crate) fn adaptive() -> RunResult {
    let decision = |at_seconds, why| DecisionResult { at_seconds, reasons: vec![about(0, why)] };
    RunResult {
        policy: "adaptive-greedy".into(),
        decisions: vec![
            decision(0.0, LimitReason::LimitsThreads { threads: 1, requested: 4, speed: None }),
            decision(0.1, LimitReason::TriesThreads { threads: 2, requested: 4 }),
            decision(
                0.2,
                LimitReason::LimitsThreads { threads: 2, requested: 4, speed: Some(0.8) },
            ),
        ],
        ..linux()
    }
}

/// The run of [`linux`], where threads of program `a` were shuffled, and released later.
pub(crate) fn shuffling() -> RunResult {
    let decision = |at_seconds, why| DecisionResult { at_seconds, reasons: vec![about(0, why)] };
    let (threads, moved, groups) = (8, 3, 2);
    let (lock_time, before, after) = (0.6, 0.2, 0.05);
    RunResult {
        policy: "shuffling".into(),
        decisions: vec![
            decision(
                0.1,
                ShufflingReason::Shuffled { threads, moved, groups, lock_time, before, after },
            ),
            decision(0.3, ShufflingReason::Unbound { lock_time: 0.01 }),
        ],
        ..linux()
    }
}

/// What threads spun, and how long barriers took.
pub(crate) fn barrier_times() -> BarrierTimes {
    let (spun_seconds, latency_seconds, longest_latency_seconds) = (0.02, 0.04, 0.003);
    let completion_seconds = Some(0.1);
    BarrierTimes { spun_seconds, latency_seconds, longest_latency_seconds, completion_seconds }
}

/// The run of [`linux`], where the threads of program `a` waited at barriers of cosched.
pub(crate) fn donating() -> RunResult {
    let mut run = linux();
    let (spun_briefly, spun, slept, knew) = (1200, 300, 500, 600);
    let (barriers, waited_seconds) = (2000, 0.05);
    let times = Some(barrier_times());
    let counts = BarrierStats { spun_briefly, spun, slept, knew, ..BarrierStats::default() };
    let stats = BarrierStats { barriers, waited_seconds, times, ..counts };
    let (mode, statistics) = (BarrierMode::Donate, Some(stats));
    run.programs[0].barrier =
        Some(BarrierResult { mode, lacks: None, statistics, between_regions: [].into() });
    run.programs[0].usage.user_seconds = 0.5;
    run
}

/// Makes the result as it is of a solo time that cannot be true.
pub(crate) fn reject_solo(run: &mut RunResult, slot: usize, seconds: f64) {
    let program = &mut run.programs[slot];
    (program.solo_seconds, program.rejected_solo_seconds) = (None, Some(seconds));
    (program.interference_seconds, program.slowdown) = (None, None);
    let metrics = &mut run.metrics;
    (metrics.fairness_stddev, metrics.unfairness, metrics.weighted_speedup) = (None, None, None);
}

fn program(name: &str, timeline: Vec<TimelineEntry>, end: f64) -> ProgramResult {
    let running: f64 = timeline.iter().map(|span| span.1 - span.0).sum();
    let gaps = timeline.windows(2).map(|spans| spans[1].0 - spans[0].1);
    let longest_frozen_seconds = gaps.fold(0.0, f64::max);
    ProgramResult {
        name: name.into(),
        command: vec![name.into()],
        threads: 2,
        threads_seen: None,
        processes_seen: None,
        units_seen: None,
        spinning: None,
        in_kernel: None,
        molded_from: None,
        molded_solo_seconds: None,
        arrived_seconds: 0.0,
        after: Vec::new(),
        not_started: None,
        started_seconds: Some(timeline[0].0),
        turnaround_seconds: Some(end),
        running_seconds: running,
        waiting_seconds: end - running,
        filler_seconds: 0.0,
        solo_seconds: Some(0.3),
        solo_cpu_seconds: None,
        rejected_solo_seconds: None,
        interference_seconds: Some(running - 0.3),
        slowdown: Some(end / 0.3),
        longest_frozen_seconds,
        exit_status: Some(0),
        exit: Some(Exit::Code(0)),
        completions: Vec::new(),
        earlier_completions: 0,
        fair_share: None,
        usage: Usage::default(),
        timeline,
        turns: Vec::new(),
        detached_seconds: None,
        left_running: false,
        terms: None,
        environment: None,
        barrier: None,
        instead_of_progress: None,
        estimates: None,
    }
}
