//! Barrier statistics: how the threads of a program waited at barriers of cosched.

use cosched_core::BarrierStats;
use cosched_results::result::{BarrierResult, InKernel, ProgramResult};
use cosched_workload::BarrierMode;

use crate::history::nanos;
use crate::words;

/// Stands where there are no figures.
const NO_FIGURES: &str = "No waits were seen there: the program has no barriers that cosched can \
                          replace (a statically linked program has none), or the result is from an \
                          older cosched.";

/// A barrier that takes as long costs more than to wake a thread, seconds.
const TELLING: f64 = 50e-6;

/// Sentences about a program that was to use barriers of cosched; none about other programs.
pub(super) fn in_words(program: &ProgramResult) -> Vec<String> {
    let Some(barrier) = &program.barrier else { return Vec::new() };
    if barrier.mode == BarrierMode::Own {
        return Vec::new();
    }
    let stats =
        barrier.statistics.map_or_else(|| NO_FIGURES.to_owned(), |stats| waits(&stats, program));
    let donated = program.in_kernel.as_ref().and_then(donated);
    [place(barrier), stats].into_iter().chain(donated).chain(between(barrier)).collect()
}

/// How often waiting threads gave their CPU to a thread that they waited for.
fn donated(counts: &InKernel) -> Option<String> {
    (counts.handed_over > 0).then(|| {
        format!(
            "A waiting thread gave its CPU to a thread that it waited for {}.",
            words::count(counts.handed_over as usize, "time", "times")
        )
    })
}

/// Which barriers the threads used, and what a waiting thread knew there.
fn place(barrier: &BarrierResult) -> String {
    let at = "Its threads were asked to wait at barriers of cosched";
    match (barrier.mode, &barrier.lacks) {
        _ if barrier.statistics.is_none() => format!("{at}."),
        (BarrierMode::Donate, None) => {
            format!("{at}. A waiting thread knew which other threads ran.")
        }
        (_, Some(why)) => {
            format!("{at}. A waiting thread did not know which other threads ran: {why}.")
        }
        (mode, None) => format!("{at} (mode '{mode}')."),
    }
}

/// What bounded how long threads spin between parallel regions, where cosched cannot see them.
fn between(barrier: &BarrierResult) -> Option<String> {
    let given = barrier.between_regions.iter().map(|(name, value)| format!("{name}={value}"));
    let given: Vec<String> = given.collect();
    (!given.is_empty()).then(|| {
        let given = words::list(&given);
        format!("Between parallel regions they spin for a limited time: {given}.")
    })
}

/// How many barriers the threads of a program passed while it ran, and how their waits ended.
fn waits(stats: &BarrierStats, program: &ProgramResult) -> String {
    let ran: f64 = program.timeline.iter().map(|span| span.1 - span.0).sum();
    let mut line =
        format!("They passed {}", words::count(stats.barriers as usize, "barrier", "barriers"));
    if ran > 0.0 {
        line.push_str(&format!(", {:.0} per second", stats.barriers as f64 / ran));
    }
    line.push('.');
    let percent = |some: u64| format!("{:.0} %", 100.0 * stats.share(some));
    if stats.waits() > 0 {
        line.push_str(&format!(
            " Of {}, {} ended within microseconds, {} after longer spinning, {} after \
             yielding the CPU, and {} asleep.",
            words::count(stats.waits() as usize, "wait", "waits"),
            percent(stats.spun_briefly),
            percent(stats.spun),
            percent(stats.yielded),
            percent(stats.slept),
        ));
    }
    if stats.long_waits() > 0 {
        let known = (stats.knew as f64 / stats.long_waits() as f64).min(1.0);
        line.push_str(&format!(
            " The waits beyond microseconds took {} in total. In {:.0} % of them, the waiting \
             thread knew what the late threads \
             did.",
            words::span(nanos(stats.waited_seconds)),
            100.0 * known,
        ));
    }
    line.extend(times(stats, program.usage.cpu().as_secs_f64()));
    line
}

/// How long barriers took, what spinning there cost, and what is left for work of so many seconds
/// of CPU time (Tidon's equation 2); nothing where it is not known, or where all of it is
/// microseconds.
fn times(stats: &BarrierStats, cpu_seconds: f64) -> Option<String> {
    let (times, mean) = (stats.times?, stats.mean_latency_seconds()?);
    (times.longest_latency_seconds >= TELLING).then(|| {
        let arrives = stats.mean_completion_seconds().map(|after| {
            format!(
                " Measured at every 17th barrier, a thread arrived {} after the first one on \
                 average.",
                words::span(nanos(after))
            )
        });
        // What ended outside of the run has no CPU time that is known.
        let left = (cpu_seconds > times.spun_seconds).then(|| {
            let left = words::span(nanos(cpu_seconds - times.spun_seconds));
            format!(", which leaves {left} for its other work")
        });
        format!(
            " Until its first thread went on, a barrier took {} on average, and {} at most.{} \
             Waiting threads spun for {} of CPU time{}.",
            words::span(nanos(mean)),
            words::span(nanos(times.longest_latency_seconds)),
            arrives.unwrap_or_default(),
            words::span(nanos(times.spun_seconds)),
            left.unwrap_or_default(),
        )
    })
}
