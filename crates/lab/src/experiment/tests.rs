//! Whole experiments, on a site that makes the times up.

mod kept;

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use cosched_core::engine::outcome::{Completion, Ended, Outcome, ProgramOutcome};
use cosched_core::{Exit, Interruption, Nanos, Topology, Usage};
use cosched_policy::Kind;
use cosched_report::Comparison;
use cosched_results::result::{
    Backends, Context, MachineDescription, NONE, ProgramContext, RunResult,
};
use cosched_results::statistics::Verdict;
use cosched_workload::Workload;

use super::{
    Experiment, ExperimentPlan, ExperimentRecord, Site, Variant, VariantOptions, VariantRun,
};
use crate::how::{How, PolicyChoices};
use crate::out;
use crate::session::{Ran, Session};
use crate::stop::MeasuringStop;
use crate::ui::Talk;
use crate::ui::failure::Failure;
use crate::ui::pace::order;

/// A machine like those of docs/research/benchmarks.md: times scatter by 5 %, one run in ten has a
/// hiccup of up to a half, the host drifts, and now and then it changes between fast minutes and
/// minutes that are 1.4 times slower.
struct MadeUp {
    session: Session,
    random: fastrand::Rng,
    /// The logarithm of how much slower than at first.
    drift: f64,
    slow: bool,
    /// How long the programs take under `gang` where they take 1 under everything else.
    gang: f64,
    /// How many runs are made before the next one is interrupted.
    patience: usize,
    /// The folders of the runs that were made.
    made: Vec<String>,
    /// The requested quantum of each.
    quanta: Vec<Option<Duration>>,
    /// What goes wrong, and in which round.
    fails: Option<(Fails, u16)>,
    round: u16,
    /// How often it was looked for other processes.
    looks: Cell<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fails {
    Alone,
    Save,
    WarmUp,
}

fn made_up(seed: u64) -> MadeUp {
    let machine = MachineDescription { cpus: 2, model: None, kernel: "6.18".to_owned() };
    MadeUp {
        session: Session::of(Topology::regular(1, 1, 1, 2, 1), machine),
        random: fastrand::Rng::with_seed(seed),
        drift: 0.0,
        slow: false,
        gang: 1.0,
        patience: usize::MAX,
        made: Vec::new(),
        quanta: Vec::new(),
        fails: None,
        round: 0,
        looks: Cell::new(0),
    }
}

impl MadeUp {
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.random.f64()).sum::<f64>() - 6.0
    }

    /// What the next run takes of what it would take on a machine of its own.
    fn factor(&mut self) -> f64 {
        self.drift += 0.01 * self.normal();
        self.slow ^= self.random.f64() < 0.05;
        let hiccup = if self.random.f64() < 0.1 { 1.0 + self.random.f64() / 2.0 } else { 1.0 };
        let host = if self.slow { 1.4 } else { 1.0 };
        (self.drift + 0.05 * self.normal()).exp() * hiccup * host
    }
}

impl MadeUp {
    fn make(&mut self, turn: &VariantRun<'_>, ended: Ended) -> RunResult {
        let variant = if turn.kind == Kind::Gang { self.gang } else { 1.0 };
        let took = Nanos((1e9 * self.factor() * variant) as u64);
        result(turn, took, ended, &self.session.description)
    }
}

impl Site for MadeUp {
    fn session(&self) -> &Session {
        &self.session
    }

    fn tell_before_runs(&self) {
        self.looks.set(self.looks.get() + 1);
    }

    fn warms_up(&self) -> bool {
        matches!(self.fails, Some((Fails::WarmUp, _)))
    }

    fn finds_times_alone(&self) -> bool {
        self.fails.is_some()
    }

    fn check(&self, _: &Workload, _: Kind, _: &How) -> Result<(), Failure> {
        Ok(())
    }

    fn expected(&self, turn: &VariantRun<'_>, _round: u16) -> Context {
        context(turn, &self.session.description)
    }

    fn alone(&mut self, round: u16) -> Result<(), MeasuringStop> {
        self.round = round;
        match self.fails {
            Some((Fails::Alone, at)) if at == round => {
                Err(Failure::Broken("cg ended with status 3".to_owned()).into())
            }
            _ => Ok(()),
        }
    }

    fn run(&mut self, turn: &VariantRun<'_>) -> Result<Ran, MeasuringStop> {
        let ended = match self.patience {
            0 => Ended::Interrupted(Interruption::Interrupt),
            _ => Ended::Complete,
        };
        self.patience = self.patience.saturating_sub(1);
        let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
        let out = turn.out.canonicalize().unwrap();
        self.made.push(format!("{}/{}", name(out.parent().unwrap()), name(&out)));
        self.quanta.push(turn.how.policy.quantum);
        let result = self.make(turn, ended);
        out::prepare(turn.out, turn.workload)?;
        if self.warms_up() || self.fails == Some((Fails::Save, self.round)) {
            let troubles = vec![Failure::Broken("the disk is full".to_owned())];
            return Ok(Ran { result, learning: Vec::new(), ended, troubles });
        }
        result.save(&out::result(turn.out)).unwrap();
        Ok(Ran { result, learning: Vec::new(), ended, troubles: Vec::new() })
    }
}

fn result(
    turn: &VariantRun<'_>,
    took: Nanos,
    ended: Ended,
    machine: &MachineDescription,
) -> RunResult {
    let end = Completion { at: took, exit: Exit::Code(0), usage: Usage::default() };
    let program = ProgramOutcome {
        started: Some(Nanos::ZERO),
        completions: vec![end].into(),
        done: Some(took),
        ran: took,
        ..ProgramOutcome::default()
    };
    let outcome = Outcome {
        ended,
        total: took,
        cpus: 2,
        programs: vec![program],
        decisions: vec![].into(),
        deviations: vec![].into(),
        switches: vec![].into(),
        wake_lateness: vec![].into(),
        cost: Default::default(),
        switch_gaps: vec![].into(),
    };
    RunResult::new(&outcome, &context(turn, machine))
}

fn context(turn: &VariantRun<'_>, machine: &MachineDescription) -> Context {
    let spec = &turn.workload.programs[0];
    Context {
        policy: turn.kind.to_string(),
        decided_by: None,
        placement: None,
        quantum: None,
        max_frozen: None,
        fill: None,
        started_at: String::new(),
        machine: machine.clone(),
        simulation: None,
        backends: Backends { freezing: NONE.to_owned(), pinning: NONE.to_owned() },
        own_cpu_seconds: 0.0,
        programs: vec![ProgramContext {
            name: spec.name.clone(),
            command: spec.command.clone(),
            threads: 2,
            molded: None,
            solo: None,
            solo_cpu: None,
            after: Vec::new(),
            terms: None,
            environment: Some(spec.env.clone()),
            barrier: None,
            instead_of_progress: None,
        }],
    }
}

/// A variant by its name, or with a policy, and perhaps a quantum in milliseconds, of its own.
fn variant(text: &str) -> Variant {
    let Some((name, words)) = text.split_once('=') else { return text.parse().unwrap() };
    let (policy, quantum) = words.split_once(" --quantum ").unwrap_or((words, ""));
    let quantum = quantum.trim_end_matches("ms").parse().ok().map(Duration::from_millis);
    let how = PolicyChoices { quantum, ..PolicyChoices::default() }.into();
    let own = VariantOptions { policy: policy.parse().unwrap(), how, words: words.to_owned() };
    Variant::with_own(name, own).unwrap()
}

/// An experiment of so many rounds with one program, in a folder or in none.
fn experiment(
    site: &mut MadeUp,
    variants: &str,
    rounds: u16,
    out: Option<&Path>,
    resume: bool,
) -> Result<Experiment, Failure> {
    let workload = Workload::from_commands(vec![vec!["cg".to_owned()]], "/tmp".as_ref()).unwrap();
    let variants: Vec<Variant> = variants.split(',').map(variant).collect();
    let how = How::from(PolicyChoices::default());
    let record =
        ExperimentRecord::new(&workload, &variants, &site.session).with_how(&how, &variants);
    let (workload, variants, how, talk) = (&workload, &variants[..], &how, Talk::Usual);
    let plan = ExperimentPlan { workload, variants, how, rounds, out, resume, record, talk };
    Experiment::run(site, &plan)
}

#[test]
fn measured_solo_times_are_shown_even_if_impossible() {
    let mut compared = experiment(&mut made_up(1), "linux,gang", 2, None, false).unwrap();
    let shown =
        |compared: &Experiment| super::show(&Comparison::of(&compared.variants).unwrap(), compared);
    assert!(!shown(&compared).contains("Solo times"));
    for variant in &mut compared.variants {
        for (run, solo) in variant.runs.iter_mut().zip([3.0, 4.0]) {
            run.solo_runs = true;
            run.programs[0].rejected_solo_seconds = Some(solo);
        }
    }
    let shown = shown(&compared);
    assert!(shown.contains("\nSolo times: cg 3.50 (3.00–4.00) s.\n"), "{shown}");
    assert!(shown.contains("the solo runs of this comparison were disturbed."), "{shown}");
    assert!(!shown.contains("profile"), "{shown}");
}

/// How many of so many comparisons of a variant with itself claim a difference.
fn claims(rounds: u16, comparisons: u64) -> usize {
    let workload = Workload::from_commands(vec![vec!["cg".to_owned()]], "/tmp".as_ref()).unwrap();
    let how = How::from(PolicyChoices::default());
    let turn = VariantRun { workload: &workload, kind: Kind::Linux, how: &how, out: Path::new("") };
    let claims = |seed: &u64| {
        let mut site = made_up(*seed);
        let mut variants = ["linux", "linux-2"]
            .map(|name| cosched_report::VariantRuns { name: name.to_owned(), runs: Vec::new() });
        for round in 0..rounds {
            for i in order(2, round) {
                let run = site.make(&turn, Ended::Complete);
                variants[i].runs.push(run);
            }
        }
        let comparison = Comparison::of(&variants).unwrap();
        comparison.variants[1].against.as_ref().unwrap().verdict != Verdict::NoDifference
    };
    (1..=comparisons).filter(claims).count()
}

/// A variant is compared with itself, on a machine as bad as those that are measured on. By the
/// test behind a verdict a difference is then claimed in 1.6 of 100 comparisons of 7 rounds, and in
/// 2.0 of 10 rounds. What chance adds to that is bounded by two standard deviations.
#[test]
fn identical_variants_rarely_differ_significantly() {
    const COMPARISONS: u64 = 2000;
    let most = 0.02 * 2000.0 + 2.0 * (0.02f64 * 0.98 * 2000.0).sqrt();
    for rounds in [7, 10] {
        let hundred = claims(rounds, 100);
        let claims = claims(rounds, COMPARISONS);
        println!(
            "{claims} of {COMPARISONS} comparisons of {rounds} rounds claim a difference, \
             {hundred} of the first 100"
        );
        assert!(hundred <= 5, "{hundred} of the first 100 with {rounds} rounds");
        assert!(claims as f64 <= most, "{claims} with {rounds} rounds");
    }
}

#[test]
fn a_variant_that_is_a_fifth_faster_is_nearly_always_found() {
    let found = (1..=50).filter(|seed| {
        let mut site = MadeUp { gang: 0.8, ..made_up(*seed) };
        let experiment = experiment(&mut site, "linux,gang", 10, None, false).unwrap();
        let comparison = Comparison::of(&experiment.variants).unwrap();
        comparison.variants[1].against.as_ref().unwrap().verdict == Verdict::Better
    });
    let found = found.count();
    println!("{found} of 50 comparisons find a variant that takes four fifths better");
    assert!(found >= 40, "{found} of 50");
}
