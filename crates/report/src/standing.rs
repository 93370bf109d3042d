//! Snapshots of runs for tests: two gangs, one of which has the quantum, and a program that has
//! ended.

use cosched_core::{Actuator, BarrierStats, CpuSet, Exit, Nanos, Why};
use cosched_policy::reasons::{FairReason, FaithfulReason, SharedReason, ShufflingReason};
use cosched_results::live::{
    ChosenSlice, Forward, LiveQuantum, LiveState, SCHEMA, Shuffled, Snapshot, Standing,
};

use crate::testkit::barrier_times;

/// Three programs under the policy gang.
pub(crate) fn snapshot() -> Snapshot {
    let quantum =
        LiveQuantum { round: 12, gang: 0, gangs: 2, began_seconds: 2.4, length_seconds: Some(0.1) };
    Snapshot {
        schema: SCHEMA.into(),
        pid: 4711,
        policy: "gang".into(),
        decided_by: None,
        placement: Some("packed".into()),
        quantum_seconds: Some(0.1),
        started_at: "2026-01-01T00:00:00Z".into(),
        at_seconds: 2.45,
        cpus: CpuSet::first(2),
        quantum: Some(quantum),
        switches: 23,
        deviations: 1,
        own_cpu_seconds: 0.01,
        programs: vec![
            program("solver", LiveState::Running, 1.25, Some(SharedReason::InGang.into())),
            program(
                "sort",
                LiveState::Frozen,
                0.9,
                Some(SharedReason::OtherGang { gang: 1 }.into()),
            ),
            Standing {
                exit: Some(Exit::Code(3)),
                completions: 1,
                cpus: None,
                ..program("short", LiveState::Ended, 0.3, None)
            },
        ],
    }
}

/// The snapshot under faithful: the solver waits for locks and has a trial of batch, sort has no
/// trial, and short has ended.
pub(crate) fn faithful() -> Snapshot {
    let mut snapshot = snapshot();
    (snapshot.policy, snapshot.placement) = ("faithful".into(), None);
    (snapshot.quantum, snapshot.quantum_seconds) = (None, None);
    let slice = |slice_seconds, lock_contention, miss_ratio| {
        Some(ChosenSlice { slice_seconds, lock_contention, miss_ratio, io_wait: None })
    };
    let (solver, rest) = snapshot.programs.split_at_mut(1);
    let (solver, sort) = (&mut solver[0], &mut rest[0]);
    (solver.slice, solver.actuator) = (slice(0.2, 0.84, Some(0.05)), Some(Actuator::Slice));
    (solver.tried, solver.cpus) = (Some(Actuator::BatchSlice), None);
    let (actuator, against) = (Actuator::BatchSlice, Actuator::Slice);
    solver.why = Some(FaithfulReason::Tried { actuator, against }.into());
    (sort.slice, sort.actuator) = (slice(0.02, 0.12, None), Some(Actuator::None));
    (sort.state, sort.cpus, sort.why) =
        (LiveState::Running, None, Some(SharedReason::LeftToKernel.into()));
    snapshot
}

/// The snapshot under shuffling: the solver's threads were moved, and sort hardly waits.
pub(crate) fn shuffling() -> Snapshot {
    let mut snapshot = faithful();
    snapshot.policy = "shuffling".into();
    for program in &mut snapshot.programs {
        (program.slice, program.actuator, program.tried) = (None, None, None);
    }
    let solver = &mut snapshot.programs[0];
    let shuffled = Shuffled { threads: 8, groups: 2, moves: 5, lock_contention: 0.62 };
    solver.shuffled = Some(shuffled);
    let (threads, moved, groups) = (8, 3, 2);
    let (lock_time, before, after) = (0.62, 0.2, 0.05);
    solver.why =
        Some(ShufflingReason::Shuffled { threads, moved, groups, lock_time, before, after }.into());
    snapshot
}

/// The snapshot under fair-progress: sort has the smaller slowdown and waits; short has ended.
pub(crate) fn equalising() -> Snapshot {
    let mut snapshot = snapshot();
    snapshot.policy = "fair-progress".into();
    snapshot.quantum = snapshot.quantum.map(|quantum| LiveQuantum { gang: 0, gangs: 1, ..quantum });
    let forward = |progress_seconds, slowdown, trainings| {
        let training_idle_seconds = 0.025 * trainings as f64;
        let speed_known = 0.75;
        Some(Forward { progress_seconds, slowdown, speed_known, trainings, training_idle_seconds })
    };
    let progress = Nanos::from_millis(950);
    let whys: [Option<Why>; 2] = [
        Some(FairReason::LeastProgress { progress, coverage: 0.75, slowdown: Some(2.58) }.into()),
        Some(
            FairReason::MoreProgress { progress: Nanos::from_millis(1100), slowdown: None }.into(),
        ),
    ];
    let forwards = [forward(0.95, Some(2.58), 2), forward(1.1, None, 0), forward(0.3, None, 1)];
    for (program, forward) in snapshot.programs.iter_mut().zip(forwards) {
        program.forward = forward;
    }
    for (program, why) in snapshot.programs.iter_mut().zip(whys) {
        program.why = why;
    }
    snapshot
}

/// The snapshot under linux, where the solver's threads wait at barriers of cosched.
pub(crate) fn donating() -> Snapshot {
    let mut snapshot = snapshot();
    (snapshot.policy, snapshot.placement) = ("linux".into(), None);
    (snapshot.quantum, snapshot.quantum_seconds) = (None, None);
    let (spun_briefly, spun, slept, knew) = (1200, 300, 500, 600);
    let (barriers, waited_seconds) = (2450, 0.05);
    let times = Some(barrier_times());
    let counts = BarrierStats { spun_briefly, spun, slept, knew, ..BarrierStats::default() };
    let stats = BarrierStats { barriers, waited_seconds, times, ..counts };
    snapshot.programs[0].barrier_stats = Some(stats);
    snapshot
}

fn program(name: &str, state: LiveState, running_seconds: f64, why: Option<Why>) -> Standing {
    Standing {
        name: name.into(),
        state,
        generation: 0,
        threads: 2,
        allowed: 2,
        cpus: Some(CpuSet::first(2)),
        weight: 1.0,
        group: None,
        arrived_seconds: 0.0,
        started_seconds: Some(0.0),
        running_seconds,
        waiting_seconds: 2.4 - running_seconds,
        filler_seconds: 0.0,
        is_filler: false,
        waiting_now_seconds: if state == LiveState::Frozen { 0.05 } else { 0.0 },
        cpu_seconds: Some(1.5 * running_seconds),
        share_seconds: Some(2.4),
        context_switches: Some(100),
        turns: 12,
        completions: 0,
        exit: None,
        why,
        slice: None,
        actuator: None,
        tried: None,
        shuffled: None,
        forward: None,
        barrier_stats: None,
        processes: Vec::new(),
    }
}
