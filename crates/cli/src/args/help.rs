//! What `-h` shows, and how `--help` is arranged.
//!
//! `-h` shows the options that most users need. `--help` and the man pages show all options, and
//! those of single policies under a heading of their own. The definitions of the options say
//! nothing about this: one option can stand in several commands.

use clap::{Arg, Command};

/// A heading, and the options below it by their clap ids. `-h` leaves these options out.
type Section = (&'static str, &'static [&'static str]);

const SECTIONS: [Section; 7] = [
    (
        "Turns and CPUs",
        &["quantum", "max_frozen", "turns", "placement", "fill", "freezer", "pinning"],
    ),
    ("Barriers", &["barrier"]),
    ("Policies faithful and shuffling", &["interval", "no_guard", "relearn"]),
    ("Policy faithful", &["actuators", "quanta"]),
    ("Policy shuffling", &["groups", "group_by", "threshold", "hysteresis", "sort_by"]),
    ("Policies bandwidth and fair-progress", &["slowdowns"]),
    (
        "Policy fair-progress",
        &[
            "peak_bandwidth",
            "training_limit",
            "fairness",
            "no_distribution",
            "no_sequences",
            "by_corunners",
            "no_phases",
            "optimal",
        ],
    ),
];

/// `cosched stat` has options of the same names, and no policies.
const SECTIONS_OF_STAT: [Section; 1] =
    [("Locks", &["groups", "group_by", "no_transfers", "sampled"])];

/// Options without a heading that `-h` leaves out.
const SELDOM_NEEDED: [&str; 3] = ["grace", "max_events", "watch"];
/// Options that `-h` of `cosched run` leaves out, too.
const SELDOM_IN_RUNS: [&str; 1] = ["metrics"];
/// Options that `-h` of `cosched compare` leaves out, too.
const SELDOM_COMPARED: [&str; 3] = ["kernel", "seed", "verbose"];

/// The same command and its subcommands, with headings, and with a `-h` that fits a screen.
pub(crate) fn arranged(command: Command) -> Command {
    let (sections, seldom): (&[Section], &[&str]) = match command.get_name() {
        "stat" => (&SECTIONS_OF_STAT, &[]),
        "compare" => (&SECTIONS, &SELDOM_COMPARED),
        "run" => (&SECTIONS, &SELDOM_IN_RUNS),
        _ => (&SECTIONS, &[]),
    };
    let placed = |option: Arg| {
        let id = option.get_id().as_str();
        let is_seldom = SELDOM_NEEDED.contains(&id) || seldom.contains(&id);
        match sections.iter().find(|(_, ids)| ids.contains(&id)) {
            Some((heading, _)) => option.help_heading(*heading).hide_short_help(true),
            None => option.hide_short_help(is_seldom),
        }
    };
    command.mut_args(placed).mut_subcommands(arranged)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

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
            assert!(help.lines().count() <= MOST_LINES, "{} lines: {help}", help.lines().count());
            let options = help.lines().filter(|line| line.trim_start().starts_with('-'));
            assert!((4..=13).contains(&options.count()), "{help}");
        }
    }

    #[test]
    fn options_of_single_policies_stand_below_headings() {
        let (short, long) = (help("run", false), help("run", true));
        for (heading, ids) in SECTIONS {
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
    fn every_option_with_a_place_exists() {
        let cli = Cli::command();
        let all = |ids: &[&str], command: &str| {
            let command = cli.find_subcommand(command).unwrap();
            for id in ids {
                assert!(command.get_arguments().any(|option| option.get_id() == id), "{id}");
            }
        };
        SECTIONS.iter().for_each(|(_, ids)| all(ids, "run"));
        SECTIONS_OF_STAT.iter().for_each(|(_, ids)| all(ids, "stat"));
        all(&["grace"], "run");
        all(&SELDOM_IN_RUNS, "run");
        all(&["max_events", "watch"], "sim");
        all(&SELDOM_COMPARED, "compare");
    }
}
