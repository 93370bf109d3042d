//! `cosched compare`: the same programs in several variants, several times, in one table.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use clap::builder::ArgPredicate;
use cosched_core::format::count;
use cosched_lab::sim::{self, SEED, Simulated};
use cosched_policy::{Kind, OptionGroup};
use cosched_report::{Comparison, Incomparable};
use cosched_sim::Kernel;
use cosched_workload::Workload;

use crate::args::choices;
use crate::args::{HowArgs, SourceArgs, ThreadsArgs, seed, variant, whole};
use crate::experiment::{
    Experiment, ExperimentPlan, ExperimentRecord, Here, MOST_ROUNDS, Site, Variant, check_names,
    show,
};
use crate::how::check::useless;
use crate::how::{How, PolicyChoices};
use crate::session::enter_scope;
use crate::source::{self, Needs, Runs};
use crate::ui::failure::{self, Failure, both, exit_code};
use crate::ui::{Talk, print, print_json, say};

/// The variants where the user names none: the rivals that users try, and its default policy.
const UNNAMED: &str = "linux,fcfs,turns";

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// The variants, separated by commas: policies, or passive, llvm, one-thread, split.
    ///
    /// passive: OpenMP threads sleep as soon as they wait. llvm: LLVM's OpenMP runtime instead of
    /// GCC's. one-thread: each program has one thread. split: each program has CPUs of its own, by
    /// taskset. All variants are compared with the first one. NAME-2 is NAME again: linux,linux-2.
    #[arg(long, value_delimiter = ',', default_value = UNNAMED, value_parser = variant::variant(),
          hide_possible_values = true,
          default_value_if("with_options", ArgPredicate::IsPresent, None))]
    policies: Vec<Variant>,
    /// One more variant: a policy with its own options. May be repeated.
    ///
    /// The name is free, as in --variant unguarded="faithful --no-guard". Options that it does not
    /// give are those of the command line.
    #[arg(long = "variant", value_name = "NAME=POLICY OPTIONS",
          value_parser = variant::with_options)]
    with_options: Vec<Variant>,
    #[command(flatten)]
    how: HowArgs,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Number of rounds; each round runs every variant once.
    ///
    /// The order changes from round to round (A B C, then B C A). 6 rounds give confidence
    /// intervals, 7 give verdicts. Ctrl-C keeps complete rounds.
    #[arg(long, default_value_t = 10, allow_negative_numbers = true,
          value_parser = whole(1..=MOST_ROUNDS))]
    runs: u16,
    /// Also run each program alone in every round.
    #[arg(long)]
    solo: bool,
    /// Simulate all of it on a modelled machine.
    ///
    /// `cosched sim --help` says how to name one.
    #[arg(long, short, value_name = "MACHINE", value_parser = choices::machine(),
          hide_possible_values = true)]
    machine: Option<String>,
    /// The simulated kernel [default: eevdf]
    ///
    /// eevdf (Linux 6.6 and later), cfs (Linux up to 6.5), rr, balance, solaris-ts or solaris-fx.
    #[arg(long, short, requires = "machine", value_parser = choices::kernel(),
          hide_possible_values = true)]
    kernel: Option<Kernel>,
    /// The seed of the first simulated round; each further round has the next number [default: 1]
    #[arg(long, requires = "machine", allow_negative_numbers = true, value_parser = seed)]
    seed: Option<u64>,
    /// A folder for the results and outputs of every run; made if it does not exist.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue the comparison in the folder of --out.
    ///
    /// Complete rounds are kept, and missing ones are run. Programs, variants, settings, machine
    /// and the shell's variables that matter must be the same. --runs may differ.
    #[arg(long, requires = "out")]
    resume: bool,
    /// Print nothing but the verdict and errors.
    #[arg(long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also print every warning of pauses, and what `auto` chooses while programs run.
    #[arg(long)]
    verbose: bool,
    /// Print the figures as JSON instead of the table.
    #[arg(long)]
    json: bool,
}

/// Runs the workload in each variant, as often as requested.
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let variants = &[&args.policies[..], &args.with_options[..]].concat();
    check_names(variants)?;
    let talk = Talk::of(args.quiet, args.verbose);
    let how = &args.how.how();
    let own = failure::all(variants.iter().map(Variant::check_use));
    let kinds: Vec<Kind> = variants.iter().map(|variant| variant.kind()).collect();
    match &args.machine {
        None => {
            let hows = variants.iter().map(|variant| variant.how(how));
            let simulated = failure::all(hows.map(|how| how.check_no_constants("compare")));
            let used = both(both(own, simulated), how.check_use(&kinds));
            let runs = Runs { alone: args.solo, together: true, ..Runs::default() };
            let workload = source::with_threads(
                &args.source.source(),
                args.threads.threads,
                Needs::Runs(runs),
            );
            let (_, workload) = both(used, workload)?;
            let hows: Vec<_> =
                variants.iter().map(|variant| (variant.kind(), variant.how(how))).collect();
            enter_scope(hows.iter().map(|(kind, how)| (*kind, how)), talk);
            let mut here = Here::new(&workload, how, args.solo, talk)?;
            here.tell_unused(&hows)?;
            run(args, how, variants, &workload, &mut here, |record| {
                record.with("--solo", args.solo)
            })
        }
        Some(machine) => {
            let variants_fit = check_variants(&args.policies);
            let measuring = [OptionGroup::Measuring, OptionGroup::Slices, OptionGroup::Shuffling];
            let measuring = measuring.into_iter().flat_map(|group| group.options().iter().copied());
            let used = ["quantum", "max-frozen", "placement", "fill", "goal", "slowdowns", "set"];
            let used: Vec<&str> = used.into_iter().chain(measuring).collect();
            let kernel = args.kernel.unwrap_or(Kernel::EEVDF);
            let seed = args.seed.unwrap_or(SEED);
            let used = failure::all([
                own.map(drop),
                variants_fit,
                how.check_use_by("compare --machine", &used),
                check_grace(how),
                how.check_use(&kinds),
                check_seed(seed, args.runs),
            ]);
            let workload = sim::machine(machine).and_then(|machine| {
                let needs = Needs::Models(&machine);
                source::with_threads(&args.source.source(), args.threads.threads, needs)
            });
            let (_, workload) = both(used, workload)?;
            let mut simulated = Simulated::new(&workload, machine, kernel, seed, how)?;
            simulated.tell_unused(&kinds, talk);
            let description = simulated.description();
            run(args, how, variants, &workload, &mut simulated, |record| {
                let record = record.with("--kernel", kernel.name()).with("--seed", seed);
                record.with("the machine's description (its hash)", description)
            })
        }
    }
}

/// Checks that `--grace` is left out: no program is asked to end on a simulated machine.
fn check_grace(how: &How) -> Result<(), Failure> {
    match how.grace == How::from(PolicyChoices::default()).grace {
        true => Ok(()),
        false => Err(useless("compare --machine", "grace")),
    }
}

/// Refuses variants that no simulator can show.
fn check_variants(variants: &[Variant]) -> Result<(), Failure> {
    let names = |can: bool| -> String {
        let names = variants
            .iter()
            .filter(|variant| variant.can_be_simulated() == can)
            .map(Variant::to_string);
        names.collect::<Vec<_>>().join(",")
    };
    let (refused, left) = match (names(false), names(true)) {
        (refused, _) if refused.is_empty() => return Ok(()),
        (refused, left) if left.is_empty() => {
            (refused, "choose policies, passive or one-thread".to_owned())
        }
        (refused, left) => (refused, format!("use --policies {left}")),
    };
    Err(Failure::Input(format!("--machine: {refused} cannot be simulated; {left}")))
}

/// Each round has the next seed, so there has to be one for the last round.
fn check_seed(first: u64, rounds: u16) -> Result<(), Failure> {
    let most = u64::MAX - u64::from(rounds - 1);
    match first <= most {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "--seed {first}: each of {} takes the next number, but the largest is \
             {}; give at most {most}",
            count(rounds.into(), "round", "rounds"),
            u64::MAX
        ))),
    }
}

fn run(
    args: &CompareArgs,
    how: &How,
    variants: &[Variant],
    workload: &Workload,
    site: &mut dyn Site,
    settings: impl FnOnce(ExperimentRecord) -> ExperimentRecord,
) -> Result<ExitCode, Failure> {
    let record = ExperimentRecord::new(workload, variants, site.session()).with_how(how, variants);
    let plan = ExperimentPlan {
        workload,
        variants,
        how,
        rounds: args.runs,
        out: args.out.as_deref(),
        resume: args.resume,
        record: settings(record).with("--runs", if args.runs == 1 { "1" } else { "more than 1" }),
        talk: Talk::of(args.quiet, args.verbose),
    };
    let experiment = Experiment::run(site, &plan)?;
    match Comparison::of(&experiment.variants) {
        Err(Incomparable::NoRun) => {
            say(format_args!(
                "nothing to compare: the comparison ended before every variant had run once"
            ));
        }
        Err(obstacle) => {
            let failure = format!("nothing to compare: {obstacle}");
            return Err(Failure::Broken(failure));
        }
        Ok(comparison) => {
            let can_continue = args.out.is_some();
            let interrupted = !experiment.whole;
            let mut comparison = Comparison { interrupted, can_continue, ..comparison };
            for (compared, variant) in comparison.variants.iter_mut().zip(variants) {
                compared.options = variant.words().map(str::to_owned);
            }
            if args.json {
                print_json(&serde_json::to_string_pretty(&comparison).map_err(Failure::broken)?)?;
            } else if args.quiet {
                experiment.failures.iter().for_each(|failure| say(format_args!("{failure}")));
                comparison.verdict().map_or(Ok(()), |verdict| print(&verdict))?;
            } else {
                print(&show(&comparison, &experiment))?;
            }
        }
    }
    Ok(exit_code(experiment.ended, experiment.all_succeeded))
}
