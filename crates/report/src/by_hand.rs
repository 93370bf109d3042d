//! A small run made by hand: two gangs that take turns, and a program that must not be frozen.
//!
//! | ms | a | b | c |
//! |---|---|---|---|
//! | 0 | waits for its start | waits for its start | starts |
//! | 1 | runs on 0-1 | | runs on 2 |
//! | 100 | sent a freeze; frozen at 101 | starts at 102, on any CPU | |
//! | 150 | | | ends, arrives again, runs from 152 on |
//! | 200 | runs on 0-1 from 203 on | sent a freeze, which is given up at 210 | |
//! | 250 | ends | | |
//! | 260 | | is frozen | |
//! | 270 | | stopped by another process until 280 | |
//! | 300 | | ends | ends |

use cosched_core::engine::outcome::{
    Completion, Decision, Deviation, Ended, Outcome, ProgramOutcome, Span,
};
use cosched_core::{Aspect, CpuSet, Exit, Nanos, ProgramId, Quantum, Reason, Refusal, Usage, Why};
use cosched_policy::reasons::SharedReason;
use cosched_results::result::{Backends, Context, MachineDescription, ProgramContext, RunResult};

pub(crate) const A: usize = 0;
pub(crate) const B: usize = 1;
pub(crate) const C: usize = 2;

pub(crate) const fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

pub(crate) fn run() -> RunResult {
    RunResult::new(&outcome(), &context())
}

pub(crate) fn outcome() -> Outcome {
    let a = program(&[(1, 101, Some("0-1")), (203, 250, Some("0-1"))], &[250], 147, 103);
    let b = program(&[(102, 260, None), (265, 270, None), (280, 300, None)], &[300], 183, 107);
    let c = program(&[(1, 150, Some("2")), (152, 300, Some("2"))], &[150, 300], 297, 3);
    let quantum = |gang| (None, Quantum { round: 1, gang, gangs: 2, length: ms(100) }.into());
    let about =
        |slot, generation, why: SharedReason| (Some(ProgramId { slot, generation }), why.into());
    let (requested, given, max_frozen) = (ms(200), ms(100), Some(ms(1000)));
    let shortened = SharedReason::QuantumShortened { requested, given, max_frozen };
    let decisions = vec![
        decision(
            0,
            &[
                about(2, 0, SharedReason::NeverFrozen),
                (None, shortened.into()),
                quantum(0),
                about(0, 0, SharedReason::InGang),
                about(1, 0, SharedReason::OtherGang { gang: 1 }),
            ],
        ),
        decision(
            100,
            &[
                quantum(1),
                about(1, 0, SharedReason::InGang),
                about(0, 0, SharedReason::OtherGang { gang: 0 }),
            ],
        ),
        decision(150, &[about(2, 1, SharedReason::NeverFrozen)]),
        decision(
            200,
            &[
                quantum(0),
                about(0, 0, SharedReason::InGang),
                about(1, 0, SharedReason::OtherGang { gang: 1 }),
            ],
        ),
        decision(262, &[quantum(1), about(1, 0, SharedReason::InGang)]),
    ];
    let deviation =
        |at, why, what| Deviation { at: ms(at), program: ProgramId::first(1), what, why };
    Outcome {
        ended: Ended::Complete,
        total: ms(300),
        cpus: 4,
        programs: vec![a, b, c],
        decisions: decisions.into(),
        deviations: vec![
            deviation(210, Refusal::TimedOut, Aspect::Frozen),
            deviation(270, Refusal::StoppedByOther, Aspect::Running),
        ]
        .into(),
        wake_lateness: vec![Nanos::from_micros(50)].into(),
        switches: vec![ms(100), ms(200)].into(),
        cost: Default::default(),
        switch_gaps: vec![ms(2), ms(3)].into(),
    }
}

fn program(
    timeline: &[(u64, u64, Option<&str>)],
    completions: &[u64],
    ran: u64,
    waited: u64,
) -> ProgramOutcome {
    let cpus = |list: &str| list.parse::<CpuSet>().expect("a list of CPUs");
    let span = |(from, to, on): &(u64, u64, Option<&str>)| Span {
        from: ms(*from),
        to: ms(*to),
        cpus: on.map(cpus),
    };
    let completion =
        |at: &u64| Completion { at: ms(*at), exit: Exit::Code(0), usage: Usage::default() };
    ProgramOutcome {
        started: timeline.first().map(|(from, _, _)| ms(*from)),
        completions: completions.iter().map(completion).collect(),
        done: completions.last().map(|at| ms(*at)),
        ran: ms(ran),
        waited: ms(waited),
        timeline: timeline.iter().map(span).collect(),
        ..ProgramOutcome::default()
    }
}

fn decision(at: u64, reasons: &[(Option<ProgramId>, Why)]) -> Decision {
    let reason =
        |(program, why): &(Option<ProgramId>, Why)| Reason { program: *program, why: why.clone() };
    Decision { at: ms(at), reasons: reasons.iter().map(reason).collect() }
}

pub(crate) fn context() -> Context {
    let program = |(name, threads, solo): (&str, u16, u64)| ProgramContext {
        name: name.to_owned(),
        command: vec![name.to_owned()],
        threads,
        molded: None,
        solo: Some(ms(solo)),
        solo_cpu: None,
        after: Vec::new(),
        terms: None,
        environment: None,
        barrier: None,
        instead_of_progress: None,
    };
    Context {
        policy: "greedy".to_owned(),
        decided_by: None,
        placement: Some("packed".to_owned()),
        quantum: Some(ms(200)),
        max_frozen: Some(ms(1000)),
        fill: None,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        machine: MachineDescription { cpus: 4, model: None, kernel: "6.18".to_owned() },
        simulation: None,
        backends: Backends { freezing: "cgroup-v2".to_owned(), pinning: "affinity".to_owned() },
        own_cpu_seconds: 0.003,
        programs: [("a", 2, 140), ("b", 4, 150), ("c", 1, 149)].map(program).to_vec(),
    }
}
