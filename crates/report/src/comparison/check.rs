//! Which runs can be compared, and which values a printed comparison can have.
//!
//! Figures of different work, or from different machines, are no samples of one thing. A document
//! that was edited by hand may be well-formed and still have impossible values. The error names the
//! first such field, as for [a run](cosched_results::result).

use cosched_core::MAX_CPUS;
use cosched_core::format::count;
use cosched_results::result::{ProgramResult, RunResult};
use cosched_workload::{BarrierMode, shown};

use super::{Compared, Comparison, Incomparable, RoundFigures};
use crate::after;
use crate::variant::VariantRuns;

/// The largest possible figure: no time is longer than thirty years, and no ratio is larger.
const LARGEST: f64 = 1e9;

/// The field with an impossible value, and what is wrong with it.
pub(super) type ComparisonFault = (String, String);

fn machine_in_words(run: &RunResult) -> String {
    match &run.simulation {
        Some(simulation) => format!("{}, kernel {}", run.machine, simulation.kernel),
        None => run.machine.to_string(),
    }
}

/// Checks that the runs are samples of the same thing.
pub(super) fn alike(variants: &[VariantRuns]) -> Result<(), Incomparable> {
    let Some((first, model)) =
        variants.first().and_then(|variant| Some((variant, variant.runs.first()?)))
    else {
        return Err(Incomparable::NoRun);
    };
    let names = |run: &RunResult| -> Vec<String> {
        run.programs.iter().map(|program| program.name.clone()).collect()
    };
    for variant in variants {
        if variant.runs.len() != first.runs.len() {
            return Err(Incomparable::Rounds);
        }
        for run in &variant.runs {
            if names(run) != names(model) {
                return Err(Incomparable::Programs);
            }
            differ(first, model, variant, run)?;
            if let Some(setting) = variant.runs.first().and_then(|first| other_setting(first, run))
            {
                return Err(Incomparable::Settings { variant: variant.name.clone(), setting });
            }
            if machine_in_words(run) != machine_in_words(model) {
                let of = |variant: &VariantRuns, run: &RunResult| {
                    (variant.name.clone(), machine_in_words(run))
                };
                return Err(Incomparable::Machines {
                    one: of(first, model),
                    other: of(variant, run),
                });
            }
            if let Some(signal) = run.interrupted_by.clone() {
                return Err(Incomparable::Interrupted { variant: variant.name.clone(), signal });
            }
        }
    }
    Ok(())
}

/// Checks that every program does the same work in two runs with programs of the same names.
fn differ(
    first: &VariantRuns,
    model: &RunResult,
    variant: &VariantRuns,
    run: &RunResult,
) -> Result<(), Incomparable> {
    let pairs = model.programs.iter().zip(&run.programs);
    let described = |one: &ProgramResult, other: &ProgramResult| work(one) + &terms(one, other);
    let mut pairs =
        pairs.map(|(one, other)| (&one.name, described(one, other), described(other, one)));
    match pairs.find(|(_, one, other)| one != other) {
        None => Ok(()),
        Some((program, one, other)) => Err(Incomparable::Work {
            program: program.clone(),
            one: (first.name.clone(), one),
            other: (variant.name.clone(), other),
        }),
    }
}

/// The work of a program, in words: its command, and when it arrives.
fn work(program: &ProgramResult) -> String {
    let command = bound(program).unwrap_or(&program.command);
    // When a program comes that waits for others is a matter of the variant.
    let arrival = match (after::others(program), program.arrived_seconds) {
        (Some(others), _) => format!(" after {others}"),
        (None, 0.0) => String::new(),
        (None, late) => format!(" from {late} s on"),
    };
    format!("`{}`{arrival}", command.join(" "))
}

/// The command of a program to which the variant `split` gives CPUs of its own.
fn bound(program: &ProgramResult) -> Option<&[String]> {
    match &program.command[..] {
        [taskset, option, _, own @ ..] if taskset == "taskset" && option == "--cpu-list" => {
            Some(own)
        }
        _ => None,
    }
}

/// The thread count and the weight of a program, in words, where they differ from those in another
/// run. The thread count belongs to the variant where there is only one thread, as in `one-thread`,
/// or where the program has CPUs of its own, as in `split`.
fn terms(program: &ProgramResult, other: &ProgramResult) -> String {
    let its_own = |program: &ProgramResult| program.threads == 1 || bound(program).is_some();
    let mut words = String::new();
    if program.requested() != other.requested() && !its_own(program) && !its_own(other) {
        words.push_str(&format!(" with {} threads", program.requested()));
    }
    let weights = program.terms.as_ref().zip(other.terms.as_ref());
    if let Some((own, _)) = weights.filter(|(own, other)| own.weight != other.weight) {
        words.push_str(&format!(" with weight {}", own.weight));
    }
    words
}

/// A setting in which two runs differ, by its name in run.json.
fn other_setting(one: &RunResult, other: &RunResult) -> Option<&'static str> {
    let mut pairs = one.programs.iter().zip(&other.programs);
    let threads = pairs.clone().any(|(one, other)| one.requested() != other.requested());
    // Older files lack it. With other thread counts a barrier may not be worth while, and the
    // counts depend on what is known when programs start.
    let as_many =
        one.programs.iter().map(|p| p.threads).eq(other.programs.iter().map(|p| p.threads));
    let barrier = as_many && pairs.clone().any(|(one, other)| waiting(one) != waiting(other));
    let environment = pairs.any(|(one, other)| {
        let both = one.environment.as_ref().zip(other.environment.as_ref());
        both.is_some_and(|(one, other)| one != other)
    });
    let differ = [
        ("threads", threads),
        ("environment", environment),
        ("barrier", barrier),
        ("policy", one.policy != other.policy),
        ("placement", one.placement != other.placement),
        ("quantum_seconds", one.quantum_seconds != other.quantum_seconds),
        ("max_frozen_seconds", one.max_frozen_seconds != other.max_frozen_seconds),
        ("fill", one.fill != other.fill),
    ];
    differ.into_iter().find_map(|(setting, differs)| differs.then_some(setting))
}

/// How a program waited at barriers, and what its threads did not know there.
fn waiting(program: &ProgramResult) -> Option<(BarrierMode, Option<&String>)> {
    program.barrier.as_ref().map(|barrier| (barrier.mode, barrier.lacks.as_ref()))
}

/// Checks that a printed comparison has no impossible values.
pub(super) fn printed(comparison: &Comparison) -> Result<(), ComparisonFault> {
    let cpus = comparison.machine.cpus;
    if !(1..=MAX_CPUS).contains(&cpus) {
        return fault("machine.cpus", format!("is {cpus}, but can be 1 to {MAX_CPUS}"));
    }
    if comparison.rounds == 0 {
        return fault("rounds", "is 0, but there is at least one".to_owned());
    }
    let Some(first) = comparison.variants.first() else {
        return fault("variants", "is empty, but there is at least one".to_owned());
    };
    for (i, variant) in comparison.variants.iter().enumerate() {
        let at = format!("variants[{i}]");
        if comparison.variants[..i].iter().any(|other| other.name == variant.name) {
            return fault(
                &format!("{at}.variant"),
                format!("'{}' is there twice", shown(&variant.name)),
            );
        }
        let other = variant.against.as_ref().map(|against| &against.variant);
        if other != (i > 0).then_some(&first.name) {
            let what = "is not the first variant, with which all others are compared";
            return fault(&format!("{at}.against"), what.to_owned());
        }
        figures(&at, variant)?;
        samples(&format!("{at}.samples"), &variant.samples, comparison.rounds)?;
    }
    Ok(())
}

fn figures(at: &str, variant: &Compared) -> Result<(), ComparisonFault> {
    let against = variant.against.as_ref();
    let figures = [
        ("total_seconds", Some(variant.total_seconds)),
        ("ratio_to_solo_sum", variant.ratio_to_solo_sum),
        ("mean_turnaround_seconds", variant.mean_turnaround_seconds),
        ("unfairness", variant.unfairness),
        ("extended_weighted_speedup", variant.extended_weighted_speedup),
        ("responsiveness_longest_gap_seconds", Some(variant.responsiveness_longest_gap_seconds)),
        ("longest_wait_seconds", variant.longest_wait_seconds),
        ("cpu_utilisation", Some(variant.cpu_utilisation)),
        ("own_cpu_percent", Some(variant.own_cpu_percent)),
        ("against.total_ratio", against.map(|against| against.total_ratio)),
        ("against.turnaround_ratio", against.and_then(|against| against.turnaround_ratio)),
    ];
    for (name, figure) in figures.into_iter().filter_map(|(name, figure)| Some((name, figure?))) {
        let field = format!("{at}.{name}");
        number(&format!("{field}.value"), figure.value)?;
        let Some((low, high)) = figure.interval else { continue };
        number(&format!("{field}.interval"), low)?;
        number(&format!("{field}.interval"), high)?;
        if low > high {
            return fault(&format!("{field}.interval"), format!("ends at {high}, below {low}"));
        }
    }
    Ok(())
}

fn samples(at: &str, samples: &RoundFigures, rounds: usize) -> Result<(), ComparisonFault> {
    fn all(samples: &[f64]) -> Vec<Option<f64>> {
        samples.iter().copied().map(Some).collect()
    }
    let lists = [
        ("total_seconds", all(&samples.total_seconds)),
        ("solo_sum_seconds", samples.solo_sum_seconds.clone()),
        ("mean_turnaround_seconds", samples.mean_turnaround_seconds.clone()),
        ("unfairness", samples.unfairness.clone()),
        ("extended_weighted_speedup", samples.extended_weighted_speedup.clone()),
        ("responsiveness_longest_gap_seconds", all(&samples.responsiveness_longest_gap_seconds)),
        ("longest_wait_seconds", all(&samples.longest_wait_seconds)),
        ("cpu_utilisation", all(&samples.cpu_utilisation)),
        ("own_cpu_percent", all(&samples.own_cpu_percent)),
    ];
    for (name, list) in lists {
        let field = format!("{at}.{name}");
        // Older documents lack it.
        let is_new = ["longest_wait_seconds", "extended_weighted_speedup"].contains(&name);
        let is_old = is_new && list.is_empty();
        if list.len() != rounds && !is_old {
            return fault(
                &field,
                format!(
                    "has {} of {}",
                    count(list.len(), "figure", "figures"),
                    count(rounds, "round", "rounds")
                ),
            );
        }
        list.into_iter().flatten().try_for_each(|sample| number(&field, sample))?;
    }
    Ok(())
}

fn number(field: &str, figure: f64) -> Result<(), ComparisonFault> {
    match (0.0..=LARGEST).contains(&figure) {
        true => Ok(()),
        false => fault(field, format!("is {figure:e}, but can be 0 to {LARGEST:e}")),
    }
}

fn fault<T>(field: &str, what: String) -> Result<T, ComparisonFault> {
    Err((field.to_owned(), what))
}
