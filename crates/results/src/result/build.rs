//! From what the engine saw, and what only its caller knows, to a [`RunResult`].

use std::collections::BTreeMap;
use std::iter::zip;

use cosched_core::engine::outcome::{Completion, Cost, Ended, Outcome, ProgramOutcome, Samples};
use cosched_core::waits::Waits;
use cosched_core::{Exit, Molding, Nanos, Usage};

use super::{
    AfterResult, Backends, BarrierResult, CompletionResult, DecisionResult, DeviationResult,
    EstimatesResult, FairShareResult, Instead, MachineDescription, NotStartedResult, Own,
    PolicyCost, ProgramResult, Quantiles, RunResult, SCHEMA, Simulation, Terms, TimelineEntry,
};
use crate::metrics::{Metrics, ProgramTimes, quantile};

/// What the engine does not know of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// The policy's name.
    pub policy: String,
    /// The policy that decides in its place, where programs cannot take turns by weight.
    pub decided_by: Option<String>,
    /// How threads were placed, where the policy places them.
    pub placement: Option<String>,
    /// The quantum that the user requested, where the policy has one.
    pub quantum: Option<Nanos>,
    /// The longest time that a program may be frozen at a stretch, where the policy freezes.
    pub max_frozen: Option<Nanos>,
    /// Whether idle CPUs of a gang are backfilled, where the policy can do that.
    pub fill: Option<bool>,
    /// The wall-clock time at which the run began, RFC 3339.
    pub started_at: String,
    /// The machine.
    pub machine: MachineDescription,
    /// What a simulation needs to be repeated.
    pub simulation: Option<Simulation>,
    /// The backends: how programs were frozen and bound.
    pub backends: Backends,
    /// CPU time that cosched itself used, seconds.
    pub own_cpu_seconds: f64,
    /// One per program, in the workload's order.
    pub programs: Vec<ProgramContext>,
}

/// What the engine does not know of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramContext {
    /// Its name.
    pub name: String,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// How many threads it requested; fewer, if it was started with fewer.
    pub threads: u16,
    /// Set if it was started with fewer threads than it would have requested.
    pub molded: Option<Molding>,
    /// The time that *one* run of it takes alone, with all threads that it requests and the same
    /// placement.
    pub solo: Option<Nanos>,
    /// CPU time of that run, of all threads.
    pub solo_cpu: Option<Nanos>,
    /// The programs that have to end before it comes.
    pub after: Vec<AfterResult>,
    /// Its other terms for the policy.
    pub terms: Option<Terms>,
    /// Variables that it got in addition to what it inherited, where it was run.
    pub environment: Option<BTreeMap<String, String>>,
    /// How its threads waited at barriers, if not by its own barrier.
    pub barrier: Option<BarrierResult>,
    /// What replaced its progress, which it was to report and did not.
    pub instead_of_progress: Option<Instead>,
}

impl RunResult {
    /// The result of a run.
    ///
    /// # Panics
    /// If `outcome` and `context` are not of the same programs.
    pub fn new(outcome: &Outcome, context: &Context) -> RunResult {
        assert_eq!(outcome.programs.len(), context.programs.len(), "not of the same programs");
        let programs = || zip(&outcome.programs, &context.programs);
        let times: Vec<_> = programs().map(|(o, c)| times(o, c)).collect();
        // The machine's clock stands still while a simulation decides.
        let is_measured = outcome.cost != Cost::default() && context.simulation.is_none();
        let metrics = Metrics::of(&times, outcome.total, outcome.cpus);
        let mut result = RunResult {
            schema: SCHEMA.to_owned(),
            policy: context.policy.clone(),
            decided_by: context.decided_by.clone(),
            placement: context.placement.clone(),
            quantum_seconds: context.quantum.map(seconds),
            max_frozen_seconds: context.max_frozen.map(seconds),
            fill: context.fill,
            started_at: context.started_at.clone(),
            interrupted_by: interruption(outcome.ended).map(str::to_owned),
            total_seconds: seconds(outcome.total),
            kept_from_seconds: outcome.kept_from().map(seconds),
            others_cpu_seconds: None,
            stolen_cpu_seconds: None,
            solo_runs: false,
            machine: context.machine.clone(),
            simulation: context.simulation.clone(),
            backends: context.backends.clone(),
            metrics: rounded(Metrics {
                extended_weighted_speedup: metrics
                    .extended_weighted_speedup
                    .filter(|_| charges_idle_cpus(context)),
                ..metrics
            }),
            programs: zip(programs(), &times)
                .map(|((o, c), t)| ProgramResult {
                    not_started: o.not_started.map(|not_started| NotStartedResult {
                        program: context.programs[usize::from(not_started.program)].name.clone(),
                        why: not_started.why,
                    }),
                    ..program(o, c, t)
                })
                .collect(),
            deviations: outcome
                .deviations
                .iter()
                .map(|d| DeviationResult {
                    at_seconds: seconds(d.at),
                    program: d.program,
                    what: d.what,
                    why: d.why,
                })
                .collect(),
            decisions: outcome
                .decisions
                .iter()
                .map(|d| DecisionResult { at_seconds: seconds(d.at), reasons: d.reasons.clone() })
                .collect(),
            own: Own {
                cpu_percent: match outcome.total {
                    Nanos::ZERO => 0.0,
                    total => 100.0 * context.own_cpu_seconds / total.as_secs_f64(),
                },
                switches: outcome.switches.count() as usize,
                wake_lateness: quantiles(&outcome.wake_lateness),
                switch_gap: quantiles(&outcome.switch_gaps),
                policy_cost: is_measured.then(|| PolicyCost {
                    reading_seconds: seconds(outcome.cost.reading),
                    deciding_seconds: seconds(outcome.cost.deciding),
                    code_samples: outcome.cost.code_samples,
                }),
            },
        };
        result.reject_impossible_solos();
        result
    }
}

/// Whether no CPU was idle because of the policy but in training, which is charged to programs:
/// under the baselines of Linux, and under `fair-progress`.
fn charges_idle_cpus(context: &Context) -> bool {
    let policy = context.decided_by.as_ref().unwrap_or(&context.policy);
    policy == "fair-progress" || policy.starts_with("linux")
}

/// Runs that count for the turnaround. A program that is repeated as a co-runner runs on after it
/// is done.
fn counted(outcome: &ProgramOutcome) -> impl Iterator<Item = &Completion> {
    outcome.completions.iter().filter(|c| outcome.done.is_none_or(|done| c.at <= done))
}

fn times(outcome: &ProgramOutcome, context: &ProgramContext) -> ProgramTimes {
    let complete = usage(outcome);
    // A program that was never started has taken no time. A program that failed has not done the
    // work of its solo time.
    let done = outcome.done.filter(|_| outcome.started.is_some());
    let succeeded = outcome.earlier.failed.is_none()
        && counted(outcome).all(|completion| completion.exit == Exit::Code(0));
    let all = |run: Nanos| run * (outcome.earlier.counted + counted(outcome).count() as u64);
    ProgramTimes {
        turnaround: done.map(|done| done.since(outcome.arrived)),
        running: outcome.ran,
        waiting: outcome.waited,
        frozen: outcome.frozen,
        solo: context.solo.filter(|_| succeeded).map(all),
        molded_solo: context.molded.filter(|_| succeeded).map(|molded| all(molded.solo)),
        solo_cpu_seconds: context.solo_cpu.filter(|_| succeeded).map(|one| all(one).as_secs_f64()),
        work_cpu_seconds: work_cpu(outcome).filter(|_| done.is_some() && succeeded),
        estimates: outcome.estimates,
        cpu_seconds: cpu(&complete) + cpu(&outcome.unfinished),
    }
}

fn cpu(usage: &Usage) -> f64 {
    usage.user_seconds + usage.system_seconds
}

/// CPU time until the program was done, seconds; `None`: it never was, or that is not known.
fn work_cpu(outcome: &ProgramOutcome) -> Option<f64> {
    // Earlier runs that are not kept one by one are summed up, with those after the end.
    let is_kept = outcome.earlier.counted == outcome.completions.dropped();
    outcome.done.filter(|_| is_kept).map(|_| {
        let runs = counted(outcome).map(|completion| completion.usage);
        cpu(&runs.fold(outcome.earlier.usage, |sum, usage| sum.and(&usage)))
    })
}

fn program(
    outcome: &ProgramOutcome,
    context: &ProgramContext,
    times: &ProgramTimes,
) -> ProgramResult {
    let failed = |exit: &Exit| *exit != Exit::Code(0);
    let exits = || counted(outcome).map(|completion| completion.exit);
    let failed = outcome.earlier.failed.or(exits().find(failed));
    let exit = failed.or(exits().last()).or(outcome.earlier.last);
    let usage = usage(outcome);
    ProgramResult {
        name: context.name.clone(),
        command: context.command.clone(),
        threads: context.threads,
        threads_seen: None,
        processes_seen: None,
        units_seen: None,
        spinning: None,
        in_kernel: None,
        molded_from: context.molded.map(|molded| molded.requested),
        molded_solo_seconds: times.turnaround.and(times.molded_solo).map(seconds),
        arrived_seconds: seconds(outcome.arrived),
        after: context.after.clone(),
        not_started: None,
        started_seconds: outcome.started.map(seconds),
        turnaround_seconds: times.turnaround.map(seconds),
        running_seconds: seconds(times.running),
        waiting_seconds: seconds(times.waiting),
        filler_seconds: seconds(outcome.filled),
        solo_seconds: times.turnaround.and(times.solo).map(seconds),
        solo_cpu_seconds: times.turnaround.and(times.solo_cpu_seconds).map(to_microseconds),
        rejected_solo_seconds: None,
        interference_seconds: times.interference_seconds().map(to_microseconds),
        slowdown: times.slowdown(),
        longest_frozen_seconds: to_microseconds(times.longest_frozen_seconds()),
        exit_status: exit.map(Exit::shell_status),
        exit,
        completions: outcome
            .completions
            .iter()
            .filter(|c| !matches!(c.exit, Exit::Failed(_)))
            .map(|c| CompletionResult { at_seconds: seconds(c.at), exit: c.exit })
            .collect(),
        usage: Usage {
            user_seconds: to_microseconds(usage.user_seconds),
            system_seconds: to_microseconds(usage.system_seconds),
            waits: usage.waits.map(to_the_microsecond),
            ..usage
        },
        fair_share: FairShareResult::of(outcome.share, work_cpu(outcome)),
        earlier_completions: outcome.completions.dropped(),
        timeline: outcome
            .timeline
            .iter()
            .map(|span| TimelineEntry(seconds(span.from), seconds(span.to), span.cpus))
            .collect(),
        turns: outcome.turns.iter().map(|turn| (seconds(turn.from), seconds(turn.to))).collect(),
        detached_seconds: outcome.detached.map(seconds),
        left_running: outcome.left_running,
        terms: context.terms.clone(),
        environment: context.environment.clone(),
        barrier: context.barrier.clone(),
        instead_of_progress: context.instead_of_progress.filter(|_| outcome.started.is_some()),
        // Estimates from progress that the policy did not use would mislead.
        estimates: EstimatesResult::of(times).filter(|_| context.instead_of_progress.is_none()),
    }
}

/// Metrics that are times are rounded like every other time.
fn rounded(metrics: Metrics) -> Metrics {
    Metrics {
        responsiveness_max_seconds: to_microseconds(metrics.responsiveness_max_seconds),
        responsiveness_longest_gap_seconds: to_microseconds(
            metrics.responsiveness_longest_gap_seconds,
        ),
        mean_turnaround_seconds: metrics.mean_turnaround_seconds.map(to_microseconds),
        ..metrics
    }
}

/// What all its complete runs have used.
fn usage(outcome: &ProgramOutcome) -> Usage {
    let earlier = outcome.earlier.usage;
    outcome.completions.iter().fold(earlier, |sum, completion| sum.and(&completion.usage))
}

/// Fields that are times are rounded like every other time.
fn to_the_microsecond(waits: Waits) -> Waits {
    Waits {
        useful_seconds: to_microseconds(waits.useful_seconds),
        spun_seconds: to_microseconds(waits.spun_seconds),
        lag_seconds: to_microseconds(waits.lag_seconds),
        latency_seconds: to_microseconds(waits.latency_seconds),
        longest_latency_seconds: to_microseconds(waits.longest_latency_seconds),
        completion_seconds: to_microseconds(waits.completion_seconds),
        ..waits
    }
}

fn interruption(ended: Ended) -> Option<&'static str> {
    match ended {
        Ended::Complete => None,
        Ended::Interrupted(by) => Some(by.name()),
    }
}

fn quantiles(samples: &Samples) -> Option<Quantiles> {
    let at = |share| quantile(&samples.latest, share).map(seconds);
    let max_seconds = seconds(samples.longest);
    Some(Quantiles { p50_seconds: at(0.5)?, p99_seconds: at(0.99)?, max_seconds })
}

pub(crate) fn seconds(time: Nanos) -> f64 {
    to_microseconds(time.as_secs_f64())
}

/// Rounds seconds, so that they are written with at most six decimals.
pub(crate) fn to_microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}
