use cosched_results::result::RunResult;

use super::*;
use crate::{VariantRuns, testkit};

const SEVEN: [f64; 7] = [4.0, 4.1, 4.2, 4.05, 4.15, 4.1, 4.1];

fn variant(name: &str, factor: f64, totals: &[f64]) -> VariantRuns {
    let run = |total: &f64| RunResult { total_seconds: total * factor, ..testkit::gang() };
    VariantRuns { name: name.into(), runs: totals.iter().map(run).collect() }
}

fn said(variants: &[VariantRuns]) -> String {
    Comparison::of(variants).unwrap().verdict().unwrap()
}

#[test]
fn the_verdict_holds_the_others_against_cosched() {
    let mut one_by_one = variant("fcfs", 1.0, &SEVEN);
    one_by_one.runs.reverse();
    let variants = [variant("linux", 2.5, &SEVEN), one_by_one, variant("turns", 1.0, &SEVEN)];
    assert_eq!(
        said(&variants),
        "Verdict: cosched (turns) 4.1 s; together (linux) 10.2 s, 2.5x slower than cosched; \
         one by one (fcfs) 4.1 s, no clear difference from cosched."
    );
    let variants = [variant("linux", 0.9, &SEVEN), variant("turns", 1.0, &SEVEN)];
    assert_eq!(
        said(&variants),
        "Verdict: cosched (turns) 4.1 s; together (linux) 3.7 s, 1.11x faster than cosched."
    );
}

#[test]
fn the_verdict_names_the_policy_that_decided_instead() {
    let mut turns = variant("turns", 1.0, &SEVEN);
    turns.runs.iter_mut().for_each(|run| run.decided_by = Some("auto".into()));
    let said = said(&[variant("linux", 2.5, &SEVEN), turns]);
    assert!(said.starts_with("Verdict: cosched (turns; auto decided) 4.1 s; "), "{said}");
}

/// Rounds differ by more than the variants, so the ratio is not that of the medians: these are
/// equal here for `linux` and `fcfs`.
#[test]
fn the_verdict_has_the_ratios_of_the_lines() {
    let own = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let linux: Vec<f64> = [2.0, 3.5, 5.0, 4.5, 9.0, 10.0, 13.0].into();
    let fcfs: Vec<f64> = [9.0, 8.0, 9.0, 5.0, 4.0, 5.0, 3.0].into();
    let variants = |first: &str| {
        let mut all = vec![
            variant("linux", 1.0, &linux),
            variant("fcfs", 1.0, &fcfs),
            variant("turns", 1.0, &own),
        ];
        all.sort_by_key(|variant| variant.name != first);
        Comparison::of(&all).unwrap()
    };
    let compared = variants("linux");
    assert_eq!(
        compared.verdict().unwrap(),
        "Verdict: cosched (turns) 4.0 s; together (linux) 5.0 s, slower than cosched, which \
         took 0.57 of its total time round by round (0.50 to 0.89); one by one (fcfs) 5.0 s, \
         no clear difference from cosched."
    );
    let line = "turns is better than linux: 0.57 of its total time round by round (0.50 to 0.89).";
    assert!(compared.sentences().contains(&line.to_owned()), "{:?}", compared.sentences());
    let compared = variants("turns");
    let line = "linux is worse than turns: 1.74 of its total time round by round (1.12 to 2.00).";
    assert!(compared.sentences().contains(&line.to_owned()), "{:?}", compared.sentences());
    let same = "slower than cosched: 1.74 of its total time round by round (1.12 to 2.00)";
    let verdict = compared.verdict().unwrap();
    assert!(verdict.contains(same), "{verdict}");
}

#[test]
fn cosched_has_a_line_against_each_usual_way() {
    let variants = [
        variant("linux", 2.5, &SEVEN),
        variant("fcfs", 1.5, &SEVEN),
        variant("turns", 1.0, &SEVEN),
    ];
    assert_eq!(
        Comparison::of(&variants).unwrap().sentences(),
        [
            "fcfs is better than linux: 0.60 of its total time round by round (0.60 to 0.60).",
            "turns is better than linux: 0.40 of its total time round by round (0.40 to 0.40).",
            "turns is better than fcfs: 0.67 of its total time round by round (0.67 to 0.67).",
        ]
    );
}

#[test]
fn plain_linux_under_another_name_is_not_cosched() {
    let variants = [variant("linux", 1.0, &SEVEN), variant("linux-2", 1.0, &SEVEN)];
    assert_eq!(
        said(&variants),
        "Verdict: linux-2 4.1 s; together (linux) 4.1 s, no clear difference from linux-2."
    );
    let variants = [variant("gang", 1.0, &SEVEN), variant("calm", 1.0, &SEVEN)];
    let mut compared = Comparison::of(&variants).unwrap();
    compared.variants[1].options = Some("linux --nice 5".into());
    let verdict = compared.verdict().unwrap();
    assert!(verdict.starts_with("Verdict: cosched (gang) 4.1 s; calm 4.1 s, "), "{verdict}");
}

#[test]
fn few_rounds_are_measured_without_a_verdict() {
    let totals = [4.0, 4.1, 4.2, 4.05, 4.15, 4.1];
    let variants = |rounds: usize| {
        let variant = |name, factor| variant(name, factor, &totals[..rounds]);
        [variant("linux", 2.5), variant("fcfs", 1.15), variant("turns", 1.0)]
    };
    assert_eq!(
        said(&variants(1)),
        "Measured in 1 round: cosched (turns) 4.0 s; together (linux) 10.0 s; one by one \
         (fcfs) 4.6 s. A verdict takes 7 rounds or more (`--runs 7`)."
    );
    assert!(
        said(&variants(6))
            .starts_with("Measured in 6 rounds: cosched (turns) 4.1 s; together (linux) ")
    );
    for (can_continue, how) in [
        (true, "The same command with `--resume` continues."),
        (false, "With `--out DIR` a comparison can be continued later."),
    ] {
        let all = Comparison::of(&variants(6)).unwrap();
        let interrupted = Comparison { interrupted: true, can_continue, ..all };
        let said = interrupted.verdict().unwrap();
        let end = ". It ended early, after 6 complete rounds; a verdict takes 7 or more. ";
        assert!(said.ends_with(&format!("{end}{how}")), "{said}");
    }
    let simulated = Comparison { simulated: true, ..Comparison::of(&variants(1)).unwrap() };
    assert!(
        simulated.verdict().unwrap().starts_with("Simulated in 1 round: cosched (turns) 4.0 s; ")
    );
}

#[test]
fn programs_of_no_length_get_no_verdict() {
    let variants = |seconds: f64| {
        let totals = [seconds; 7];
        [variant("linux", 2.0, &totals), variant("turns", 1.0, &totals)]
    };
    let short = Comparison::of(&variants(0.004)).unwrap();
    let verdict = short.verdict().unwrap();
    assert!(verdict.starts_with("The programs are too short to compare: "), "{verdict}");
    assert!(short.sentences().is_empty(), "{:?}", short.sentences());
    let simulated = Comparison { simulated: true, ..short };
    assert!(simulated.verdict().unwrap().starts_with("Verdict: "));
    assert!(said(&variants(0.04)).starts_with("Verdict: "));
}

#[test]
fn several_policies_keep_their_names() {
    let variants =
        [variant("linux", 1.0, &SEVEN), variant("gang", 3.0, &SEVEN), variant("auto", 1.0, &SEVEN)];
    assert_eq!(
        said(&variants),
        "Verdict: auto 4.1 s; together (linux) 4.1 s, no clear difference from auto; \
         gang 12.3 s, 3.0x slower than auto."
    );
    assert_eq!(Comparison::of(&variants[..1]).unwrap().verdict(), None);
}

#[test]
fn failures_and_disturbed_rounds_are_part_of_it() {
    let mut variants = [variant("linux", 2.5, &SEVEN), variant("turns", 1.0, &SEVEN)];
    variants[0].runs[1].others_cpu_seconds = Some(10.0);
    let disturbed = "2.5x slower than cosched; 1 of 7 rounds was disturbed.";
    assert!(said(&variants).ends_with(disturbed), "{}", said(&variants));
    let mut busy = variants.clone();
    for run in &mut busy[1].runs[..3] {
        run.others_cpu_seconds = Some(10.0);
    }
    assert!(said(&busy).starts_with("Verdict: "), "{}", said(&busy));
    busy[1].runs[3].others_cpu_seconds = Some(10.0);
    assert_eq!(
        said(&busy),
        "The machine was busy in 4 of 7 rounds, so these figures cannot be carried over to an \
         idle machine. Verdict: cosched (turns) 4.1 s; together (linux) 10.2 s, 2.5x slower \
         than cosched."
    );
    let line = &Comparison::of(&busy).unwrap().sentences()[0];
    let below = Comparison::of(&busy).unwrap().verdict_below_lines().unwrap();
    assert!(below.starts_with("Verdict: ") && !below.contains("disturbed"), "{below}");
    assert!(line.starts_with("turns was better in these rounds than linux"), "{line}");
    variants[0].runs[1].programs[0].exit = Some(cosched_core::Exit::Code(1));
    assert!(
        said(&variants)
            .contains("together (linux) 10.2 s, but other programs failed than with cosched")
    );
    variants[1].runs[1].programs[0].exit = Some(cosched_core::Exit::Code(1));
    assert!(said(&variants).ends_with("was disturbed; programs failed."), "{}", said(&variants));
}
