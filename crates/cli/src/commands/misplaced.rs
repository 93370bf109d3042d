//! Options of cosched at the end of a command: they go to that program, which may not be meant.

use clap::{Arg, Command, CommandFactory};
use cosched_workload::{SEPARATOR, shown};

use super::Cli;

/// Options that programs often have, too.
const OF_PROGRAMS: [&str; 15] = [
    "barrier", "count", "duration", "force", "help", "interval", "json", "kernel", "machine",
    "metrics", "out", "quiet", "seed", "threads", "verbose",
];

/// Says that the last words of a command may be meant for cosched; `None`: they do not look so.
pub(crate) fn note(arguments: &[String]) -> Option<String> {
    let dashes = arguments.iter().position(|word| word == "--")?;
    let (own, commands) = arguments.split_at(dashes);
    if own.iter().any(|word| word == "--quiet") {
        return None;
    }
    let cli = Cli::command();
    let command = cli.find_subcommand(own.get(1)?)?;
    let words = commands[1..].split(|word| word == SEPARATOR);
    let (program, options) = words.filter_map(|words| split(command, words)).next()?;
    let (program, option) = (shown(program), shown(&options.join(" ")));
    Some(format!(
        "'{option}' at the end goes to the program '{program}'; if it is meant for cosched, write \
         it before the commands: `cosched {} {option} -- ...`",
        own[1]
    ))
}

/// The program and the option at the end of its command.
fn split<'w>(command: &Command, words: &'w [String]) -> Option<(&'w str, &'w [String])> {
    let (program, rest) = words.split_first()?;
    let is_at = |&at: &usize| {
        let (name, value) = match rest[at].split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (rest[at].as_str(), rest.get(at + 1).map(String::as_str)),
        };
        let takes = option(command, name).map(|option| option.get_action().takes_values());
        let words = 1 + usize::from(takes == Some(true) && !rest[at].contains('='));
        takes == Some(value.is_some()) && at + words == rest.len()
    };
    let at = (0..rest.len()).find(is_at)?;
    Some((program, &rest[at..]))
}

fn option<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.strip_prefix("--").filter(|name| !OF_PROGRAMS.contains(name))?;
    command.get_arguments().find(|option| option.get_long() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<String> {
        note(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn options_after_a_command_are_pointed_out() {
        for (line, option) in [
            ("cosched run -- ./a ::: ./b --policy gang", "--policy gang"),
            ("cosched run -- ./a --policy=gang ::: ./b", "--policy=gang"),
            ("cosched compare -- true ::: true --runs 1", "--runs 1"),
            ("cosched compare -- true ::: true x --solo", "--solo"),
            ("cosched exec -- ./a 1 --policy faithful", "--policy faithful"),
        ] {
            let note = said(line).unwrap();
            assert!(note.starts_with(&format!("'{option}' at the end goes to ")), "{note}");
            assert!(note.contains(&format!(" {option} -- ...")), "{note}");
        }
        for line in [
            "cosched run -- ./a --threads 4",
            "cosched run -- ./a --policy gang input",
            "cosched run -- ./a --policy",
            "cosched run -- ./a --foo 1 ::: ./b",
            "cosched run --policy gang -- ./a",
            "cosched run jobs.toml",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
