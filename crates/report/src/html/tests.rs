//! What every user may expect of the page. A test of the command opens it in a browser.

use cosched_core::CpuSet;
use cosched_results::result::{
    MachineDescription, NONE, RunResult, SIMULATED, Simulation, TimelineEntry,
};

use crate::{Comparison, Report, VariantRuns, testkit};

fn report(variants: Vec<VariantRuns>) -> Report {
    let comparison = Comparison::of(&variants).ok();
    Report { title: "jobs".into(), notes: Vec::new(), comparison, variants, window: None }
}

fn variant(name: &str, run: RunResult) -> VariantRuns {
    VariantRuns { name: name.into(), runs: vec![run] }
}

#[test]
fn the_page_has_all_sections_and_fetches_nothing() {
    let page =
        report(vec![variant("linux", testkit::linux()), variant("gang", testkit::gang())]).html();
    for part in
        ["id=\"comparison\"", "id=\"variant-1\"", "id=\"gang-snapshot\"", "id=\"gang-turnaround\""]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.contains("default-src 'none'"));
    for fetched in ["http://", "https://", "src=\"", "@import", "url(\""] {
        assert!(!page.contains(fetched), "{fetched}");
    }
}

#[test]
fn a_printed_comparison_says_that_it_was_ended_early() {
    let mut report =
        report(vec![variant("linux", testkit::linux()), variant("fine", testkit::gang())]);
    let early = "The comparison was ended before its last round.";
    assert!(!report.html().contains(early));
    let printed = report.comparison.as_mut().unwrap();
    printed.interrupted = true;
    printed.variants[1].options = Some("gang --quantum 5ms".to_owned());
    let page = report.html();
    assert!(page.contains(early) && page.contains("<p>fine: gang --quantum 5ms.</p>"), "{page}");
}

#[test]
fn a_run_that_pauses_and_binds_nothing_is_said_so() {
    let mut run = testkit::gang();
    run.backends.freezing = NONE.into();
    run.backends.pinning = format!("{NONE}, turns by weight");
    let page = report(vec![variant("turns", run)]).html();
    assert!(page.contains("<dd>not paused</dd>"));
    assert!(page.contains("<dd>not bound to CPUs, turns by weight</dd>"));
    let page = report(vec![variant("gang", testkit::gang())]).html();
    assert!(page.contains("<dd>paused by ") && page.contains("<dd>bound to CPUs by "));
}

#[test]
fn a_simulated_run_has_machine_kernel_and_seed_but_no_date() {
    let live = report(vec![variant("gang", testkit::gang())]).html();
    assert!(live.contains("<dt>began</dt>") && !live.contains("<dt>seed</dt>"));
    let (machine, kernel) = ("core:4".to_owned(), "balance".to_owned());
    let simulation = Some(Simulation { machine, kernel, seed: 23, set: Default::default() });
    let run = testkit::gang();
    let described = MachineDescription { kernel: SIMULATED.into(), ..run.machine };
    let run = RunResult { simulation, machine: described, ..run };
    let page = report(vec![variant("gang", run)]).html();
    assert!(!page.contains("<dt>began</dt>"));
    for (what, value) in
        [("simulated machine", "core:4"), ("simulated kernel", "balance"), ("seed", "23")]
    {
        assert!(page.contains(&format!("<dt>{what}</dt><dd>{value}</dd>")), "{what}");
    }
}

/// The first question is "did it help?": the answer stands before the pictures, and these before
/// other facts. A picture stands before the sentence that says what it shows.
#[test]
fn the_page_opens_with_the_verdict_and_the_pictures() {
    let page = report(vec![variant("gang", testkit::gang())]).html();
    let order = [
        "<h1>",
        "2 programs took 600 ms on 2 CPUs under gang: taking turns 75 %",
        "id=\"gang-snapshot\"",
        "id=\"gang-turnaround\"",
        "<svg viewBox",
        "interference (slowdown by programs that ran at the same time).",
        "<dt>policy</dt>",
    ];
    let mut rest = page.as_str();
    for part in order {
        let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part}: {page}"));
        rest = after;
    }
}

#[test]
fn names_are_never_markup() {
    let mut run = testkit::gang();
    run.programs[0].name = "</script><script>alert('&')".into();
    let page = report(vec![variant("<b>gang</b>", run)]).html();
    assert!(!page.contains("</script><script>alert"));
    assert!(!page.contains("<b>gang"));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(&#39;&amp;&#39;)"));
    assert_eq!(page.matches("<script").count(), 2);
    let mut run = testkit::gang();
    run.programs[0].name = "a\u{202e}b".into();
    assert!(!report(vec![variant("gang", run)]).html().contains('\u{202e}'));
}

#[test]
fn twelve_programs_for_ten_minutes_take_two_megabytes() {
    let mut run = testkit::gang();
    run.total_seconds = 600.0;
    run.machine.cpus = 24;
    // Five of the twelve in every quantum, as where programs are packed tightly.
    let model = run.programs[0].clone();
    run.programs = (0..12)
        .map(|i| {
            let mut program = model.clone();
            program.name = format!("program-{i}");
            let turns = (0..6000).filter(|quantum| (quantum * 7 + i * 5) % 12 < 5);
            program.timeline = turns
                .map(|quantum| {
                    let (at, first) = (f64::from(quantum) * 0.1, (quantum * i) as usize % 20);
                    let cpus: CpuSet = (first..first + 4).collect();
                    TimelineEntry(at + 0.000_431, at + 0.0998, Some(cpus))
                })
                .collect();
            program
        })
        .collect();
    let size = report(vec![variant("minwait", run)]).html().len();
    assert!(size < 2_000_000, "{size} bytes");
    assert!(size > 200_000, "{size} bytes: this cannot be all");
}

#[test]
fn a_screen_reader_hears_row_names_and_no_colour_samples() {
    let page = report(vec![variant("gang", testkit::gang())]).html();
    assert!(page.contains("<tr><th scope=\"row\">a</th><td class=\"number\">2</td>"), "{page}");
    assert!(page.contains("<th scope=\"col\">program</th>"));
    assert!(!page.contains("colour of"));
    let keys =
        page.split_once("<ul class=\"keys live\">").unwrap().1.split_once("</ul>").unwrap().0;
    assert_eq!(keys.matches("aria-hidden=\"true\"").count(), 2, "{keys}");
}

#[test]
fn every_plot_has_a_narrow_form() {
    let mut run = testkit::gang();
    run.machine.model = Some("Opteron 8354".to_owned());
    let page = report(vec![variant("gang", run)]).html();
    let forms = |class: &str| page.matches(&format!("<div class=\"{class}\"><svg")).count();
    assert!(forms("broad") >= 5);
    assert_eq!(forms("broad"), forms("slim"));
    assert!(page.contains("<dd>Opteron 8354, 2 CPUs, 6.18.0</dd>"), "{page}");
}

#[test]
fn plots_are_files_with_colours_of_their_own() {
    let report = report(vec![variant("a b", testkit::gang()), variant("a/b", testkit::linux())]);
    let plots = report.plots();
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert!(
        names.contains(&"a-b-snapshot.svg") && names.contains(&"2-a-b-snapshot.svg"),
        "{names:?}"
    );
    assert!(names.contains(&"comparison-total.svg"));
    for (name, plot) in &plots {
        assert!(plot.contains(crate::svg::MARK), "{name}");
        assert!(plot.starts_with("<svg xmlns=") && plot.trim_end().ends_with("</svg>"), "{name}");
        assert!(!plot.contains("var("), "{name}");
    }
}

#[test]
fn a_window_is_what_the_snapshots_show() {
    let mut report = report(vec![variant("gang", testkit::gang())]);
    report.window = Some((0.2, 0.4));
    let page = report.html();
    assert!(page.contains("From 0.20 s to 0.40 s of 0.60 s."));
    report.window = Some((5.0, 9.0));
    assert!(report.html().contains("From 0.00 s to 0.60 s of 0.60 s."), "beyond this run");
}

#[test]
fn a_page_about_simulations_says_that_no_program_ran() {
    let simulated = |run: RunResult| RunResult {
        machine: MachineDescription { kernel: SIMULATED.into(), ..run.machine },
        ..run
    };
    let page = |run: fn(RunResult) -> RunResult| {
        report(vec![variant("linux", run(testkit::linux())), variant("gang", run(testkit::gang()))])
            .html()
    };
    assert!(
        page(simulated).contains("Simulated: CPU model not known, 2 CPUs. No program was run.")
    );
    assert!(!page(|run| run).contains("No program was run"));
}
