//! `cosched profile`: how programs run alone on this machine, measured once and kept.

use std::process::ExitCode;

use clap::{Arg, Args};
use cosched_lab::profile::{self, ProfileOptions, USED};
use cosched_policy::OptionGroup;

use crate::args::{HowArgs, SourceArgs, whole};
use crate::ui::failure::Failure;

/// What to measure.
#[derive(Debug, Args)]
#[command(mut_args = shown)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    #[command(flatten)]
    pub(crate) how: HowArgs,
    /// Measure with these thread counts, such as 1..4 or 1,2,4 [default: the thread count that each
    /// program requests]
    #[arg(long, value_name = "N[..N]")]
    pub(crate) threads: Option<String>,
    /// Runs of each program; the median is kept.
    #[arg(long, default_value_t = 1, allow_negative_numbers = true,
          value_parser = whole(1..=1000u16))]
    pub(crate) runs: u16,
    /// Measure the memory's peak bandwidth instead of programs (fair-progress). The machine must be
    /// idle; it takes less than a second on most machines. An earlier figure is replaced.
    #[arg(long, conflicts_with_all = ["workload", "programs", "commands", "threads", "runs"])]
    pub(crate) machine: bool,
    /// Print the profiles as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The same option, hidden if this command refuses it.
fn shown(option: Arg) -> Arg {
    let name = option.get_id().as_str().replace('_', "-");
    let of_policies = name == "barrier" || OptionGroup::of(&name).is_some();
    let useless = of_policies && !USED.contains(&name.as_str());
    if useless { option.hide(true) } else { option }
}

/// Measures the programs of a workload, one by one, and shows what was found.
pub(crate) fn profile(args: &ProfileArgs) -> Result<ExitCode, Failure> {
    profile::profile(&ProfileOptions {
        source: args.source.source(),
        how: args.how.how(),
        threads: args.threads.clone(),
        runs: args.runs,
        machine: args.machine,
        json: args.json,
    })
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::commands::Cli;

    #[test]
    fn hidden_options_are_refused() {
        let command = Cli::command();
        let profile = command.find_subcommand("profile").unwrap();
        let of_policies = OptionGroup::ALL.into_iter().flat_map(|group| group.options().iter());
        let refused = of_policies.filter(|name| !USED.contains(name)).chain(&["barrier"]);
        for id in refused.map(|name| name.replace('-', "_")) {
            let option = profile.get_arguments().find(|option| *option.get_id() == *id).unwrap();
            assert!(option.is_hide_set(), "{id}");
            let long = format!("--{}", option.get_long().unwrap());
            let takes_value = option.get_action().takes_values();
            let value = match id.as_str() {
                // Their values are files.
                "slowdowns" | "quanta" => continue,
                "goal" => "fair",
                "barrier" => "donate",
                "turns" => "freeze",
                "fairness" | "threshold" | "hysteresis" => "0.5",
                "quantum" | "max_frozen" | "interval" => "20ms",
                "actuators" => "slice",
                "groups" => "0,1",
                "group_by" => "llc",
                "sort_by" => "lock",
                _ => "2",
            };
            let words =
                ["cosched", "profile", &long].into_iter().chain(takes_value.then_some(value));
            let parsed = Cli::try_parse_from(words.chain(["--", "true"]));
            let parsed = parsed.unwrap_or_else(|error| panic!("give {id} a value above: {error}"));
            let crate::commands::Command::Profile(args) = parsed.command else { panic!("{id}") };
            let Err(Failure::Input(message)) = super::profile(&args) else { panic!("{id}") };
            assert!(message.contains(&long) && message.contains("does not support"), "{message}");
        }
        let run = command.find_subcommand("run").unwrap();
        assert!(
            run.get_arguments()
                .all(|option| option.get_id() != "fairness" || !option.is_hide_set())
        );
    }
}
