//! What other processes took from a run, and solo times that the run contradicts.
//!
//! A figure that is impossible, such as a program that takes half of its solo time with co-runners,
//! says nothing about policies. It says that something was measured on a busy machine.

use cosched_results::result::{ProgramResult, RunResult};

use crate::history::nanos;
use crate::variant::VariantRuns;
use crate::{detached, words};

/// A run is disturbed, and a machine is busy, if other processes use at least this part of the
/// CPUs. A desktop often uses half of it. Less makes a run longer by a tenth at most.
pub const SHARE: f64 = 0.1;
/// A disturbed run lost at least so much CPU time: the kernel counts in hundredths of a second.
const SECONDS: f64 = 0.1;

/// Whether other processes, or other guests, took CPU time that matters.
pub fn is_disturbed(result: &RunResult) -> bool {
    !takers(result).is_empty()
}

/// What was in the way of a run's programs, as a sentence; `None`: nothing that matters, or it is
/// not known.
pub fn sentence(result: &RunResult) -> Option<String> {
    Some(format!("{}.", words::capitalised(&phrase(result)?)))
}

/// The same within a sentence.
pub fn phrase(result: &RunResult) -> Option<String> {
    let takers = takers(result);
    (!takers.is_empty()).then(|| takers.join(", and "))
}

/// What took CPU time, with how many CPUs.
fn takers(result: &RunResult) -> Vec<String> {
    let cpus = result.machine.cpus;
    let took = |what: &str, verb: &str, seconds: Option<f64>| {
        let used = seconds? / result.total_seconds;
        let matters = seconds? >= SECONDS && is_busy(used, cpus);
        matters.then(|| format!("{what} {verb} {}", of_cpus(used, cpus)))
    };
    let all = [
        took("other processes", "used", others_seconds(result)),
        took("the hypervisor", "took", result.stolen_cpu_seconds),
    ];
    all.into_iter().flatten().collect()
}

/// How many CPUs other processes used of a run's, on average; `None` where that is not known.
pub fn others(result: &RunResult) -> Option<f64> {
    let used = others_seconds(result)? / result.total_seconds;
    used.is_finite().then_some(used)
}

/// CPU time that other processes used. It is unknown after a detach: older files count the detached
/// program among them.
fn others_seconds(result: &RunResult) -> Option<f64> {
    result.others_cpu_seconds.filter(|_| !detached::is_any(result))
}

/// Whether a machine is so busy that times on it would say little.
pub fn is_busy(used: f64, cpus: usize) -> bool {
    used >= SHARE * cpus as f64
}

/// The rounds of a comparison, counted from 1, in which a run was disturbed.
pub fn disturbed_rounds(variants: &[VariantRuns]) -> Vec<usize> {
    let rounds = variants.iter().map(|variant| variant.runs.len()).max().unwrap_or_default();
    let is_one = |round: &usize| {
        variants.iter().filter_map(|variant| variant.runs.get(*round)).any(is_disturbed)
    };
    (0..rounds).filter(is_one).map(|round| round + 1).collect()
}

/// Whether disturbed rounds decide what a comparison shows.
pub(crate) fn decides(disturbed: usize, rounds: usize) -> bool {
    disturbed > 0 && 2 * disturbed >= rounds
}

/// What follows if they do.
pub(crate) const NOT_FOR_IDLE: &str = "so these figures cannot be carried over to an idle machine";

/// Which rounds of a comparison were disturbed, by how much, and what follows; `None`: none.
pub fn disturbed_rounds_in_words(variants: &[VariantRuns]) -> Option<String> {
    let rounds = disturbed_rounds(variants);
    let runs = || variants.iter().flat_map(|variant| &variant.runs);
    let cpus = runs().next()?.machine.cpus;
    let most = runs().filter_map(others).fold(0.0, f64::max);
    let all = variants.iter().map(|variant| variant.runs.len()).max().unwrap_or_default();
    let which = match rounds.len() {
        0 => return None,
        1 if all == 1 => "The round was".to_owned(),
        n if n == all => "All rounds were".to_owned(),
        1 => format!("Round {} was", rounds[0]),
        _ => {
            let names: Vec<String> = rounds.iter().map(ToString::to_string).collect();
            format!("Rounds {} were", words::list(&names))
        }
    };
    let follows = match decides(rounds.len(), all) {
        true => format!(", {NOT_FOR_IDLE}"),
        false => String::new(),
    };
    let used = of_cpus(most, cpus);
    Some(format!("{which} disturbed: other processes used up to {used}{follows}."))
}

/// "1.9 of 2 CPUs".
pub fn of_cpus(used: f64, cpus: usize) -> String {
    format!("{used:.1} of {}", words::count(cpus, "CPU", "CPUs"))
}

/// What it means that a solo time of a run cannot be true, and what to do; follows a colon.
pub fn why_impossible(run: &RunResult) -> &'static str {
    match run.solo_runs {
        true => "the solo runs of this comparison were disturbed",
        false => "the profile is out of date or was disturbed; `cosched profile` measures it anew",
    }
}

/// Says that impossible solo times are not used, with the programs of these runs that have them.
/// Names are quoted: `true` is one.
pub fn impossible_solos<'a>(results: impl IntoIterator<Item = &'a RunResult>) -> Option<String> {
    let programs =
        results.into_iter().flat_map(|run| run.programs.iter().map(move |program| (run, program)));
    let (mut found, mut why, mut of) = (Vec::<(&String, f64)>::new(), "", "");
    for (run, program) in programs {
        let Some(solo) = program.rejected_solo_seconds else { continue };
        match found.iter_mut().find(|(name, _)| *name == &program.name) {
            Some((_, largest)) => *largest = largest.max(solo),
            None => {
                found.push((&program.name, solo));
                why = why_impossible(run);
                // Each round has a solo time of its own; their median is shown elsewhere.
                of = if run.solo_runs { " in one round" } else { "" };
            }
        }
    }
    let shown =
        |(name, solo): &(&String, f64)| format!("'{name}' ({}{of})", words::span(nanos(*solo)));
    let solos: Vec<String> = found.iter().map(shown).collect();
    let (times, are, programs) = match solos.len() {
        0 => return None,
        1 => ("time", "is", "program"),
        _ => ("times", "are", "programs"),
    };
    Some(format!(
        "The solo {times} of {} {are} not used, because the {programs} ran for less: {why}.",
        words::list(&solos)
    ))
}

/// Why the interference of a run is not known, as a sentence.
pub(crate) fn why_unknown(run: &RunResult) -> String {
    let lacks_solo = |program: &ProgramResult| program.alone_as_started_seconds().is_none();
    let lacks_solo = run.programs.iter().any(lacks_solo);
    impossible_solos([run]).unwrap_or_else(|| match lacks_solo {
        true if run.simulation.is_some() => {
            "Interference is not known without solo times; leave out --no-solo.".to_owned()
        }
        true => "Interference is not known without solo times; `cosched profile` measures them."
            .to_owned(),
        false => "Interference is not known, because a program did not finish its work.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cosched_results::result::Simulation;

    use super::*;
    use crate::testkit;

    #[test]
    fn other_processes_are_reported_with_their_cpus() {
        let mut run = testkit::gang();
        assert_eq!((sentence(&run), is_disturbed(&run), others(&run)), (None, false, None));
        // 0.6 s on two CPUs.
        run.others_cpu_seconds = Some(1.14);
        assert_eq!(sentence(&run).unwrap(), "Other processes used 1.9 of 2 CPUs.");
        run.stolen_cpu_seconds = Some(0.18);
        assert_eq!(
            sentence(&run).unwrap(),
            "Other processes used 1.9 of 2 CPUs, and the hypervisor took 0.3 of 2 CPUs."
        );
        run.others_cpu_seconds = Some(0.01);
        assert_eq!(sentence(&run).unwrap(), "The hypervisor took 0.3 of 2 CPUs.");
        assert!(is_disturbed(&run));
    }

    #[test]
    fn a_few_clock_ticks_are_no_disturbance() {
        let mut run = testkit::gang();
        (run.total_seconds, run.others_cpu_seconds) = (0.05, Some(0.06));
        assert!(!is_disturbed(&run), "the kernel counts in hundredths of a second");
        (run.total_seconds, run.others_cpu_seconds) = (100.0, Some(12.0));
        assert!(!is_disturbed(&run), "0.1 of 2 CPUs, as a desktop uses");
        run.others_cpu_seconds = Some(21.0);
        assert!(is_disturbed(&run), "0.2 of 2 CPUs");
    }

    #[test]
    fn a_simulation_finds_solo_times_itself() {
        let mut run = testkit::gang();
        run.programs.iter_mut().for_each(|program| program.solo_seconds = None);
        assert!(why_unknown(&run).contains("`cosched profile`"), "{}", why_unknown(&run));
        run.simulation = Some(Simulation {
            machine: "e5410-8".into(),
            kernel: "eevdf".into(),
            seed: 1,
            set: BTreeMap::new(),
        });
        assert!(why_unknown(&run).ends_with("leave out --no-solo."), "{}", why_unknown(&run));
    }

    #[test]
    fn disturbed_rounds_are_named() {
        let variant = |disturbed: &[bool]| {
            let run = |taken: &bool| RunResult {
                others_cpu_seconds: Some(if *taken { 0.9 } else { 0.0 }),
                ..testkit::gang()
            };
            VariantRuns { name: "linux".into(), runs: disturbed.iter().map(run).collect() }
        };
        let said = |variants: &[VariantRuns]| disturbed_rounds_in_words(variants);
        assert_eq!(said(&[variant(&[false, false])]), None);
        let two = [variant(&[true, false, false]), variant(&[false, false, true])];
        assert_eq!(
            said(&two).unwrap(),
            "Rounds 1 and 3 were disturbed: other processes used up to 1.5 of 2 CPUs, so these \
             figures cannot be carried over to an idle machine."
        );
        let one = said(&[variant(&[true, false, false])]).unwrap();
        assert!(one.ends_with("used up to 1.5 of 2 CPUs."), "{one}");
        assert!(said(&[variant(&[true])]).unwrap().starts_with("The round was disturbed"));
        assert!(said(&[variant(&[true, true])]).unwrap().starts_with("All rounds were disturbed"));
    }

    #[test]
    fn an_impossible_solo_time_is_named_once() {
        let mut run = testkit::gang();
        assert_eq!(impossible_solos([&run]), None);
        testkit::reject_solo(&mut run, 0, 0.4);
        assert_eq!(
            impossible_solos([&run, &run]).unwrap(),
            "The solo time of 'a' (400 ms) is not used, because the program ran for less: the \
             profile is out of date or was disturbed; `cosched profile` measures it anew."
        );
        let solo_runs = RunResult { solo_runs: true, ..run.clone() };
        assert_eq!(
            impossible_solos([&solo_runs]).unwrap(),
            "The solo time of 'a' (400 ms in one round) is not used, because the program ran for \
             less: the solo runs of this comparison were disturbed."
        );
        let mut other = run.clone();
        other.programs[0].name = "true".into();
        let both = impossible_solos([&run, &other]).unwrap();
        let begin = "The solo times of 'a' (400 ms) and 'true' (400 ms) are not used, because the \
                     programs ran for less: ";
        assert!(both.starts_with(begin), "{both}");
    }
}
