//! What the option parser cannot know of a mistake: that commands come after `--`, which option was
//! probably meant, and what a forgotten value is.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};
use cosched_workload::SEPARATOR;
use cosched_workload::nearest::nearest;
use cosched_workload::shell;

use super::Cli;

/// The parser's error with a remedy: where commands belong, or the option, value or subcommand that
/// is near what was typed. The parser's own suggestions are often far-fetched, and are replaced.
pub(crate) fn with_remedy(mut error: clap::Error, arguments: &[String]) -> clap::Error {
    if matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict) {
        // The parser's usage line shows options that have nothing to do with the mistake.
        error.remove(ContextKind::Usage);
    }
    match error.kind() {
        ErrorKind::UnknownArgument => correct_argument(&mut error, arguments),
        ErrorKind::InvalidValue if is_value(&error, "") => ask_for_value(&mut error, arguments),
        ErrorKind::InvalidValue => keep_near_value(&mut error),
        // Options that take negative numbers take this, too.
        ErrorKind::ValueValidation if is_value(&error, "--") => {
            return without_value(&error, arguments);
        }
        ErrorKind::InvalidSubcommand => correct_subcommand(&mut error, arguments),
        _ => {}
    }
    error
}

fn correct_argument(error: &mut clap::Error, arguments: &[String]) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return };
    let word = word.clone();
    let option = word.starts_with('-').then(|| near_option(&word, arguments)).flatten();
    error.remove(ContextKind::SuggestedArg);
    // What comes after `--` is a command, and no value.
    if said(error, ContextKind::Suggested).is_some_and(|tip| tip.contains("as a value")) {
        error.remove(ContextKind::Suggested);
    }
    let tip = tip(arguments).filter(|_| may_be_of_command(&word, arguments));
    match (option, tip) {
        (Some(option), _) => {
            error.insert(ContextKind::SuggestedArg, ContextValue::String(option));
        }
        (None, Some(tip)) => {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        (None, None) => {}
    }
}

/// The first tip of the parser.
fn said(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::StyledStrs(tips) => tips.first().map(ToString::to_string),
        _ => None,
    }
}

fn is_value(error: &clap::Error, value: &str) -> bool {
    matches!(
        error.get(ContextKind::InvalidValue),
        Some(ContextValue::String(word)) if word == value
    )
}

/// The error of an option that took the `--` before a command as its value.
fn without_value(error: &clap::Error, arguments: &[String]) -> clap::Error {
    let mut missing = clap::Error::new(ErrorKind::InvalidValue).with_cmd(&Cli::command());
    let option = error.get(ContextKind::InvalidArg).cloned();
    option.map(|option| missing.insert(ContextKind::InvalidArg, option));
    missing.insert(ContextKind::InvalidValue, ContextValue::String(String::new()));
    ask_for_value(&mut missing, arguments);
    missing
}

/// Says what an option without its value needs, and shows the place of the value.
fn ask_for_value(error: &mut clap::Error, arguments: &[String]) {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return };
    let Some((option, name)) = shown.split_once(" <") else { return };
    let name = name.trim_end_matches(['>', '.']);
    let cli = Cli::command();
    let mut known = named(&cli, arguments).get_arguments();
    let known = known.find(|known| known.get_long().is_some_and(|long| option[2..] == *long));
    let short = known.and_then(clap::Arg::get_short).map(|short| format!("-{short}"));
    let is_option = |word: &String| word == option || Some(word) == short.as_ref();
    let lacks_value = |at: &usize| arguments.get(at + 1).is_none_or(|next| next.starts_with('-'));
    let mut places = (0..arguments.len()).filter(|at| is_option(&arguments[*at]));
    let Some(at) = places.find(lacks_value) else { return };
    let what = match name {
        "DIR" => "a folder",
        "FILE" => "a file",
        "N" => "a number",
        _ => "a value",
    };
    let mut corrected = arguments.to_vec();
    corrected.insert(at + 1, name.to_owned());
    corrected[0] = "cosched".to_owned();
    let tip = format!("'{option}' needs {what}: {}", shell::join(corrected));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// Leaves the parser's suggestion of a value only if it is near.
fn keep_near_value(error: &mut clap::Error) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidValue) else { return };
    let Some(ContextValue::String(value)) = error.get(ContextKind::SuggestedValue) else { return };
    if nearest(word, [value.as_str()]).is_none() {
        error.remove(ContextKind::SuggestedValue);
    }
}

/// Suggests the subcommand that is near what was typed.
fn correct_subcommand(error: &mut clap::Error, arguments: &[String]) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return;
    };
    let cli = Cli::command();
    let shown = named(&cli, arguments).get_subcommands().filter(|known| !known.is_hide_set());
    let near = nearest(word, shown.map(Command::get_name)).map(str::to_owned);
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    if let Some(near) = near {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::String(near));
    }
}

/// The option of the named subcommand that is near an option that was typed.
fn near_option(typed: &str, arguments: &[String]) -> Option<String> {
    let typed = typed.trim_start_matches('-').split('=').next()?;
    let cli = Cli::command();
    let command = named(&cli, arguments);
    let shown = command.get_arguments().filter(|option| !option.is_hide_set());
    let known = shown.filter_map(clap::Arg::get_long);
    nearest(typed, known).map(|option| format!("--{option}"))
}

/// The subcommand that the first words name.
fn named<'a>(cli: &'a Command, arguments: &[String]) -> &'a Command {
    let words = arguments.iter().skip(1);
    let found = words.map_while(|word| (!word.starts_with('-')).then_some(word));
    found.fold(cli, |command, word| command.find_subcommand(word).unwrap_or(command))
}

/// Whether what the parser did not know belongs to a command: it is no option, or an option right
/// after a word that is not an option's value.
fn may_be_of_command(word: &str, arguments: &[String]) -> bool {
    let is_option = |at: usize| arguments[at].starts_with('-');
    let at = arguments.iter().position(|argument| argument.split('=').next() == Some(word));
    let follows_word = at.is_some_and(|at| at > 2 && !is_option(at - 1) && !is_option(at - 2));
    !word.starts_with('-') || follows_word
}

/// Where the command belongs that a subcommand takes; `None`: it takes none, or that was heeded.
fn tip(arguments: &[String]) -> Option<String> {
    let name = arguments.get(1).filter(|_| !arguments.iter().any(|argument| argument == "--"))?;
    let cli = Cli::command();
    let subcommand = cli.find_subcommand(name)?;
    let pid = arguments.iter().find(|word| word.parse::<u32>().is_ok());
    let takes_pids = subcommand.get_opts().any(|option| option.get_long() == Some("pid"));
    if let Some(pid) = pid.filter(|_| takes_pids) {
        return Some(format!(
            "a running process is named by an option: cosched {name} --pid {pid}"
        ));
    }
    let command = subcommand.get_positionals().find(|positional| positional.is_last_set())?;
    let names = command.get_value_names().unwrap_or_default();
    Some(match names.iter().any(|name| name.contains(SEPARATOR)) {
        true => format!(
            "commands come after '--', and '{SEPARATOR}' stands between them: cosched {name} -- \
             ./a 1 {SEPARATOR} ./b"
        ),
        false => format!("the command comes after '--': cosched {name} -- ./a 1"),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn printed(line: &str) -> String {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&arguments).unwrap_err();
        with_remedy(error, &arguments).to_string()
    }

    #[test]
    fn forgotten_dashes_before_a_command_are_pointed_out() {
        let remedy = "after '--'";
        for line in ["run sleep 1", "compare ./a ::: ./b", "run ./a --foo ::: ./b", "exec ./a 1"] {
            let printed = printed(&format!("cosched {line}"));
            assert!(printed.contains(remedy) && !printed.contains("use '-- "), "{printed}");
            assert_eq!(printed.contains(" ::: ./b"), !line.starts_with("exec"), "{printed}");
        }
        for line in ["run --polcy gang ./a ::: ./b", "run --polcy gang -- ./a ::: ./b"] {
            let printed = printed(&format!("cosched {line}"));
            assert!(!printed.contains(remedy) && printed.contains("'--policy'"), "{printed}");
        }
        let pid = printed("cosched stat 4711");
        assert!(pid.contains("cosched stat --pid 4711"), "{pid}");
        let none = printed("cosched explain out one another");
        assert!(!none.contains(remedy), "it starts nothing: {none}");
    }

    #[test]
    fn no_unrelated_option_stands_below_a_mistake() {
        for line in ["cosched run --bogus -- true", "cosched run jobs.toml -- true"] {
            let message = printed(line);
            assert!(!message.contains("--groups") && !message.contains("Usage"), "{message}");
        }
    }

    #[test]
    fn only_near_options_are_suggested() {
        let rounds = printed("cosched compare --rounds 3 -- ./a");
        assert!(rounds.contains("a similar argument exists: '--runs'"), "{rounds}");
        let nested = printed("cosched sim measure --qick");
        assert!(nested.contains("'--quick'"), "{nested}");
        for line in ["run --topology 2 -- ./a", "run --stderr x -- ./a", "run --jobs 2"] {
            let printed = printed(&format!("cosched {line}"));
            assert!(!printed.contains("tip:"), "{printed}");
        }
        let elsewhere = printed("cosched --policy gang run -- ./a");
        assert!(elsewhere.contains("'run --policy' exists"), "{elsewhere}");
    }

    #[test]
    fn only_near_values_and_subcommands_are_suggested() {
        assert!(printed("cosched run --policy gagn -- ./a").contains("'gang'"));
        assert!(printed("cosched rnu -- ./a").contains("subcommand exists: 'run'"));
        for line in ["run --policy tetris -- ./a", "gang"] {
            let printed = printed(&format!("cosched {line}"));
            assert!(!printed.contains("tip:"), "{printed}");
        }
    }

    #[test]
    fn a_forgotten_value_before_a_command_is_asked_for() {
        for (line, needs) in [
            ("run --out -- true", "'--out' needs a folder: cosched run --out DIR -- true"),
            ("run -o -- true", "'--out' needs a folder: cosched run -o DIR -- true"),
            ("run --quantum -- a ::: b", "a value: cosched run --quantum QUANTUM -- a ::: b"),
            ("run --threads -- true", "a number: cosched run --threads N -- true"),
            ("run --prog a --prog -- b", "a value: cosched run --prog a --prog CMD -- b"),
            ("sim measure --out", "a file: cosched sim measure --out FILE"),
        ] {
            let printed = printed(&format!("cosched {line}"));
            assert!(printed.contains("error: a value is required for '--"), "{line}: {printed}");
            assert!(printed.contains(&format!("{needs}\n")), "{line}: {printed}");
        }
    }

    #[test]
    fn a_negative_time_is_a_wrong_value_and_no_option() {
        for option in ["--quantum", "--max-frozen", "--grace"] {
            let printed = printed(&format!("cosched run {option} -5ms -- ./a"));
            assert!(printed.contains(&format!("invalid value '-5ms' for '{option}")), "{printed}");
        }
    }
}
