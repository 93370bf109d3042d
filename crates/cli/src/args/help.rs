//! What `-h` shows, and how `--help` is arranged.
//!
//! `-h` shows the options that most users need. `--help` and the man pages show all options, and
//! those of single policies under a heading of their own. The definitions of the options say
//! nothing about this: one option can stand in several commands.

use clap::{Arg, Command};
use cosched_policy::OptionGroup;

/// A heading, and the options below it. `-h` leaves these options out.
type HelpSection = (&'static str, &'static [OptionGroup]);

const SECTIONS: [HelpSection; 6] = [
    (
        "Turns and CPUs",
        &[
            OptionGroup::Quantum,
            OptionGroup::Turns,
            OptionGroup::Pauses,
            OptionGroup::Places,
            OptionGroup::Fill,
        ],
    ),
    ("Policies faithful and shuffling", &[OptionGroup::Measuring]),
    ("Policy faithful", &[OptionGroup::Slices]),
    ("Policy shuffling", &[OptionGroup::Shuffling]),
    ("Policies bandwidth and fair-progress", &[OptionGroup::Slowdowns]),
    ("Policy fair-progress", &[OptionGroup::Equality]),
];
/// The heading of options that do not depend on the policy, and these options by their clap ids.
const THREADS: (&str, &[&str]) = ("Barriers and the scheduler", &["barrier", "scheduler"]);

/// `cosched stat` has options of the same names, and no policies.
const LOCKS: (&str, &[&str]) = ("Locks", &["groups", "group_by", "no_transfers", "sampled"]);

/// Options without a heading that `-h` leaves out.
const SELDOM_NEEDED: [&str; 4] = ["grace", "max_events", "watch", "set"];
/// The option that only simulations support, and the commands that make some. The others refuse it
/// and hide it.
const SIMULATED: (&str, [&str; 2]) = ("set", ["sim", "compare"]);
/// Options that `-h` of `cosched run` leaves out, too.
const SELDOM_IN_RUNS: [&str; 1] = ["metrics"];
/// Options that `-h` of `cosched compare` leaves out, too.
const SELDOM_COMPARED: [&str; 3] = ["kernel", "seed", "verbose"];

/// The same command and its subcommands, with headings, and with a `-h` that fits a screen.
pub(crate) fn arranged(command: Command) -> Command {
    let is_stat = command.get_name() == "stat";
    let simulates = SIMULATED.1.contains(&command.get_name());
    let seldom: &[&str] = match command.get_name() {
        "compare" => &SELDOM_COMPARED,
        "run" => &SELDOM_IN_RUNS,
        _ => &[],
    };
    let placed = |option: Arg| {
        let id = option.get_id().as_str().to_owned();
        let id = id.as_str();
        let is_seldom = SELDOM_NEEDED.contains(&id) || seldom.contains(&id);
        let is_refused = id == SIMULATED.0 && !simulates;
        let option = if is_refused { option.hide(true) } else { option };
        match heading(id, is_stat) {
            Some(heading) => option.help_heading(heading).hide_short_help(true),
            None => option.hide_short_help(is_seldom),
        }
    };
    command.mut_args(placed).mut_subcommands(arranged)
}

fn heading(id: &str, is_stat: bool) -> Option<&'static str> {
    let of_policies = || {
        let group = OptionGroup::of(&id.replace('_', "-")).filter(|_| !is_stat)?;
        let section = SECTIONS.iter().find(|(_, groups)| groups.contains(&group));
        section.map(|(heading, _)| *heading)
    };
    let (others, ids) = if is_stat { LOCKS } else { THREADS };
    if ids.contains(&id) { Some(others) } else { of_policies() }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use cosched_policy::Kind;

    use super::*;
    use crate::commands::Cli;

    /// The most lines of `-h`, in a terminal of 80 columns.
    const MOST_LINES: usize = 45;

    fn help(command: &str, long: bool) -> String {
        let mut cli = Cli::command().term_width(80);
        cli.build();
        let command = cli.find_subcommand_mut(command).unwrap();
        match long {
            true => command.render_long_help().to_string(),
            false => command.render_help().to_string(),
        }
    }

    #[test]
    fn short_help_fits_a_screen() {
        for command in ["run", "compare", "exec", "attach", "sim", "stat", "profile"] {
            let help = help(command, false);
            let lines = help.lines().count();
            let remedy = "SECTIONS and the lists below it say which options `-h` leaves out";
            assert!(lines <= MOST_LINES, "{lines} lines, at most {MOST_LINES}; {remedy}:\n{help}");
            let options = help.lines().filter(|line| line.trim_start().starts_with('-'));
            assert!((4..=13).contains(&options.count()), "{help}");
        }
    }

    /// Each heading, and the clap ids below it.
    fn sections() -> Vec<(&'static str, Vec<String>)> {
        let options = |groups: &[OptionGroup]| {
            let names = groups.iter().flat_map(|group| group.options());
            names.map(|name| name.replace('-', "_")).collect()
        };
        SECTIONS.iter().map(|(heading, groups)| (*heading, options(groups))).collect()
    }

    #[test]
    fn options_of_single_policies_stand_below_headings() {
        let (short, long) = (help("run", false), help("run", true));
        for (heading, ids) in sections() {
            let (_, below) = long.split_once(&format!("\n{heading}:\n")).unwrap();
            let until = below.lines().take_while(|line| line.is_empty() || line.starts_with(' '));
            let below: String = until.collect::<Vec<_>>().join("\n");
            for id in ids {
                let option = format!("--{}", id.replace('_', "-"));
                assert!(below.contains(&format!("  {option}")), "{option} is not in: {below}");
                assert!(!short.contains(&format!("  {option} ")), "{option} is in: {short}");
            }
        }
    }

    #[test]
    fn a_heading_names_the_policies_that_take_its_options() {
        for (heading, groups) in SECTIONS.into_iter().filter(|(it, _)| it.starts_with("Polic")) {
            let (_, named) = heading.split_once(' ').unwrap();
            let take = Kind::ALL.into_iter().filter(|kind| kind.takes(groups[0]));
            let names: Vec<&str> = take.map(Kind::name).collect();
            assert_eq!(named, names.join(" and "));
        }
    }

    #[test]
    fn every_option_with_a_place_exists() {
        let cli = Cli::command();
        let exists = |id: &str, command: &str| {
            let command = cli.find_subcommand(command).unwrap();
            assert!(command.get_arguments().any(|option| option.get_id() == id), "{id}");
        };
        sections().iter().flat_map(|(_, ids)| ids).for_each(|id| exists(id, "run"));
        LOCKS.1.iter().for_each(|id| exists(id, "stat"));
        THREADS.1.iter().chain(&["grace"]).for_each(|id| exists(id, "run"));
        SELDOM_IN_RUNS.iter().for_each(|id| exists(id, "run"));
        ["max_events", "watch"].iter().for_each(|id| exists(id, "sim"));
        SELDOM_COMPARED.iter().for_each(|id| exists(id, "compare"));
    }
}
