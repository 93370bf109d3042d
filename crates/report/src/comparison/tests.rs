//! Which runs can be compared, and what the verdicts are.

use cosched_results::result::{
    AfterResult, ProgramResult, SIMULATED, Simulation, Terms, TimelineEntry,
};

use super::*;
use crate::testkit;

fn variant(name: &str, totals: &[f64]) -> VariantRuns {
    let run = |total: &f64| RunResult { total_seconds: *total, ..testkit::gang() };
    VariantRuns { name: name.into(), runs: totals.iter().map(run).collect() }
}

#[test]
fn a_variant_with_failures_is_not_better() {
    let slow = [10.0, 11.0, 10.5, 10.2, 10.8, 10.1, 10.4];
    let mut fast = variant("gang", &slow.map(|total| total / 2.0));
    fast.runs[3].programs[0].exit = Some(Exit::Code(1));
    let compared = Comparison::of(&[variant("linux", &slow), fast]).unwrap();
    assert_eq!(compared.variants[1].against.as_ref().unwrap().verdict, Verdict::NoDifference);
    let sentence = &compared.sentences()[0];
    assert!(sentence.contains("different programs failed"), "{sentence}");
}

#[test]
fn a_verdict_takes_seven_rounds() {
    let slow = [10.0, 11.0, 10.5, 10.2, 10.8, 10.1, 10.4];
    let fast = slow.map(|total| total / 2.0);
    let compared = Comparison::of(&[variant("linux", &slow), variant("gang", &fast)]).unwrap();
    assert_eq!(compared.variants[0].against, None);
    assert_eq!(compared.variants[1].against.as_ref().unwrap().verdict, Verdict::Better);
    let sentence = &compared.sentences()[0];
    assert!(sentence.starts_with("gang is better than linux: 0.50"), "{sentence}");
    let few = Comparison::of(&[variant("linux", &slow[..6]), variant("gang", &fast[..6])]).unwrap();
    assert_eq!(few.sentences(), Vec::<String>::new());
    let against = few.variants[1].against.as_ref().unwrap();
    let both = (against.verdict, against.turnaround_verdict.unwrap());
    assert_eq!(both, (Verdict::TooFewRounds, Verdict::TooFewRounds));
    let text = serde_json::to_string(&few).unwrap();
    // Written before there was a verdict for it.
    let earlier = text.replace("too-few-rounds", "no-difference");
    assert!(earlier != text && Comparison::parse(&earlier).unwrap() == few);
}

#[test]
fn runs_of_different_programs_or_rounds_are_not_compared() {
    let mut other = variant("gang", &[1.0]);
    other.runs[0].programs[0].name = "something else".into();
    let why = |variants: &[VariantRuns]| Comparison::of(variants).unwrap_err();
    assert_eq!(why(&[variant("linux", &[2.0]), other]), Incomparable::Programs);
    let more = [variant("linux", &[2.0, 2.0]), variant("gang", &[1.0])];
    assert_eq!(why(&more), Incomparable::Rounds);
    assert_eq!(why(&[variant("linux", &[])]), Incomparable::NoRun);
}

#[test]
fn runs_of_different_machines_are_not_compared() {
    let why = |change: fn(&mut MachineDescription)| {
        let mut other = variant("gang", &[1.0]);
        change(&mut other.runs[0].machine);
        Comparison::of(&[variant("linux", &[2.0]), other]).unwrap_err().to_string()
    };
    assert_eq!(
        why(|machine| machine.cpus = 8),
        "linux is of 2 CPUs, 6.18.0, and gang of 8 CPUs, 6.18.0"
    );
    let simulated = why(|machine| {
        machine.model = Some("Opteron".to_owned());
        machine.kernel = SIMULATED.to_owned();
    });
    assert!(simulated.ends_with("gang of Opteron, 2 CPUs, simulated"), "{simulated}");
    let mut variants = [variant("linux", &[2.0]), variant("gang", &[1.0])];
    for (variant, kernel) in variants.iter_mut().zip(["cfs", "eevdf"]) {
        let (machine, set) = ("e5410-8".to_owned(), Default::default());
        let of = |seed| Simulation { machine, kernel: kernel.into(), seed, set };
        variant.runs[0].simulation = Some(of(1));
    }
    let kernels = Comparison::of(&variants).unwrap_err().to_string();
    assert!(kernels.contains(", kernel cfs, and gang of "), "{kernels}");
}

#[test]
fn an_interrupted_run_is_not_compared() {
    let mut other = variant("gang", &[1.0]);
    other.runs[0].interrupted_by = Some("SIGINT".to_owned());
    let why = Comparison::of(&[variant("linux", &[2.0]), other]).unwrap_err().to_string();
    assert_eq!(why, "gang was interrupted (SIGINT)");
}

#[test]
fn the_longest_wait_counts_the_time_before_a_start() {
    let mut fcfs = testkit::gang();
    for (program, from) in fcfs.programs.iter_mut().zip([0.0, 0.3]) {
        program.started_seconds = Some(from);
        program.timeline = vec![TimelineEntry(from, from + 0.3, None)];
    }
    let variant = VariantRuns { name: "fcfs".into(), runs: vec![fcfs] };
    let compared = Comparison::of(&[variant]).unwrap();
    let longest = compared.variants[0].longest_wait_seconds.map(|wait| wait.value);
    assert_eq!(longest, Some(0.3));
    assert_eq!(compared.variants[0].responsiveness_longest_gap_seconds.value, 0.0);
}

#[test]
fn a_program_that_runs_on_leaves_no_sum_of_solo_times() {
    let mut run = testkit::gang();
    assert_eq!(solo_sum(&run), Some(0.6));
    let later = run.programs[1].timeline[1];
    run.programs[0].timeline.push(later);
    assert_eq!(solo_sum(&run), None);
}

#[test]
fn a_single_variant_has_figures_and_no_comparison() {
    let one = Comparison::of(&[variant("linux", &[2.0, 3.0, 4.0])]).unwrap();
    assert_eq!((one.rounds, one.variants[0].total_seconds.value), (3, 3.0));
    assert_eq!(one.variants[0].against, None);
}

#[test]
fn a_printed_comparison_is_read_and_others_are_refused() {
    let variants = [variant("linux", &[2.0, 2.5]), variant("gang", &[1.0, 1.5])];
    let printed = Comparison::of(&variants).unwrap();
    let text = serde_json::to_string(&printed).unwrap();
    assert_eq!(Comparison::parse(&text).unwrap(), printed);
    let error = |text: &str| Comparison::parse(text).unwrap_err().to_string();
    assert!(error(r#"{"schema": "cosched-run/1"}"#).contains("no comparison"));
    assert!(error(&text.replace("\"failed\"", "\"fail\"")).contains("missing field `failed`"));
    // Written before backends and variants were called so.
    let earlier = text.replace("\"backends\":", "\"rungs\":").replace("compare/4", "compare/2");
    let earlier = earlier.replace("\"variants\":", "\"ways\":").replace("\"variant\":", "\"way\":");
    assert!(earlier != text && Comparison::parse(&earlier).unwrap() == printed);
    // Written before simulated comparisons were there.
    let earlier = text.replace("\"simulated\":false,", "");
    assert!(earlier.len() < text.len() && Comparison::parse(&earlier).unwrap() == printed);
}

/// The second program comes when the first one has ended.
fn wait_for_a(run: &mut RunResult, at: f64) {
    run.programs[1].arrived_seconds = at;
    run.programs[1].after = vec![AfterResult { program: "a".into(), any_exit: false }];
}

#[test]
fn programs_with_other_work_are_not_compared() {
    let why = |change: fn(&mut RunResult)| {
        let mut other = variant("gang", &[1.0]);
        change(&mut other.runs[0]);
        Comparison::of(&[variant("linux", &[2.0]), other]).unwrap_err().to_string()
    };
    assert_eq!(
        why(|run| run.programs[0].command = vec!["sleep".into(), "0.5".into()]),
        "a is `a` in linux, and `sleep 0.5` in gang"
    );
    assert_eq!(
        why(|run| run.programs[1].arrived_seconds = 2.0),
        "b is `b` in linux, and `b` from 2 s on in gang"
    );
    assert_eq!(why(|run| wait_for_a(run, 1.0)), "b is `b` in linux, and `b` after a in gang");
    let mut both = [variant("linux", &[2.0]), variant("gang", &[1.0])];
    both.iter_mut().zip([1.5, 0.5]).for_each(|(variant, at)| wait_for_a(&mut variant.runs[0], at));
    assert!(Comparison::of(&both).is_ok(), "when that is depends on the variant");
    assert_eq!(
        why(|run| run.programs[0].threads = 4),
        "a is `a` with 2 threads in linux, and `a` with 4 threads in gang"
    );
    let mut one_thread = variant("one-thread", &[1.0]);
    one_thread.runs[0].programs.iter_mut().for_each(|program| program.threads = 1);
    assert!(Comparison::of(&[variant("linux", &[2.0]), one_thread]).is_ok(), "that is what it is");
    let started_with = |name: &str, threads: [u16; 2]| {
        let mut variant = variant(name, &[1.0, 1.5]);
        for (run, threads) in variant.runs.iter_mut().zip(threads) {
            run.programs[0].threads = threads;
            run.programs[0].molded_from = (threads < 8).then_some(8);
        }
        variant
    };
    let both = [started_with("linux", [8; 2]), started_with("auto", [4, 3])];
    assert!(
        Comparison::of(&both).is_ok(),
        "a variant may start programs with fewer, as it knows them by then"
    );
    let weighted = |weight: f64| {
        let mut variant = variant("gang", &[1.0]);
        variant.runs[0].programs[1].terms = Some(Terms {
            weight,
            group: None,
            freezable: None,
            misses_per_kilo_instruction: None,
            memory_gigabytes_per_second: None,
        });
        variant
    };
    let heavy = VariantRuns { name: "heavy".into(), ..weighted(2.0) };
    assert_eq!(
        Comparison::of(&[weighted(1.0), heavy]).unwrap_err().to_string(),
        "b is `b` with weight 1 in gang, and `b` with weight 2 in heavy"
    );
    assert!(
        Comparison::of(&[variant("linux", &[2.0]), weighted(2.0)]).is_ok(),
        "older files: unknown"
    );
    let mut split = variant("split", &[1.0]);
    for program in &mut split.runs[0].programs {
        program.threads = 2;
        program.command.splice(..0, ["taskset", "--cpu-list", "0-1"].map(str::to_owned));
    }
    assert!(
        Comparison::of(&[variant("linux", &[2.0]), split]).is_ok(),
        "it is the same on less CPUs"
    );
}

#[test]
fn rounds_with_other_settings_are_not_compared() {
    let mut other = variant("gang", &[1.0, 1.5]);
    other.runs[1].quantum_seconds = Some(0.02);
    let why = Comparison::of(&[variant("linux", &[2.0, 3.0]), other]).unwrap_err().to_string();
    assert_eq!(why, "runs of gang differ in their quantum_seconds");
    let why = |name: &str, change: fn(&mut ProgramResult, usize)| {
        let mut other = variant(name, &[1.0, 1.5]);
        for (round, run) in other.runs.iter_mut().enumerate() {
            run.programs.iter_mut().for_each(|program| change(program, round));
        }
        Comparison::of(&[variant("linux", &[2.0, 3.0]), other]).unwrap_err().to_string()
    };
    let environment = why("passive", |program, round| {
        let waits = [("OMP_WAIT_POLICY".to_owned(), "passive".to_owned())];
        program.environment = Some(waits.into_iter().take(round).collect());
    });
    assert_eq!(environment, "runs of passive differ in their environment");
    let threads = why("one-thread", |program, round| program.threads = 1 + round as u16);
    assert_eq!(threads, "runs of one-thread differ in their threads");
}

#[test]
fn an_impossible_value_is_refused_with_the_field() {
    let variants = [variant("linux", &[2.0, 2.5]), variant("gang", &[1.0, 1.5])];
    let printed = serde_json::to_value(Comparison::of(&variants).unwrap()).unwrap();
    let interval = |low: f64, high: f64| serde_json::json!([low, high]);
    for (place, value, expected) in [
        ("/variants", serde_json::json!([]), "variants is empty"),
        ("/variants/1/variant", "linux".into(), "variants[1].variant 'linux' is there twice"),
        (
            "/variants/1/against/variant",
            "fcfs".into(),
            "variants[1].against is not the first variant",
        ),
        (
            "/variants/0/total_seconds/value",
            1e308.into(),
            "variants[0].total_seconds.value is 1e308",
        ),
        (
            "/variants/0/total_seconds/value",
            (-1.0).into(),
            "variants[0].total_seconds.value is -1e0",
        ),
        (
            "/variants/0/total_seconds/interval",
            interval(5.0, 1.0),
            "variants[0].total_seconds.interval ends at 1, below 5",
        ),
        (
            "/variants/0/samples/total_seconds/1",
            (-1.0).into(),
            "variants[0].samples.total_seconds is -1e0",
        ),
        ("/rounds", 99.into(), "variants[0].samples.total_seconds has 2 figures of 99 rounds"),
        (
            "/variants/1/samples/unfairness",
            serde_json::json!([]),
            "variants[1].samples.unfairness has 0",
        ),
        ("/rounds", 0.into(), "rounds is 0"),
        ("/machine/cpus", 0.into(), "machine.cpus is 0"),
    ] {
        let mut changed = printed.clone();
        *changed.pointer_mut(place).unwrap() = value;
        let refusal = Comparison::of_json(changed).unwrap_err().to_string();
        assert!(refusal.starts_with(expected), "{refusal}");
        assert!(refusal.ends_with("so the file is damaged: compare again"), "{refusal}");
    }
}
