//! What the option parser cannot know of a mistake: that commands come after `--`.

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;

/// Between the commands of several programs.
const SEPARATOR: &str = ":::";

/// The parser's error, with a remedy where the user has forgotten the `--` before a command.
pub(crate) fn with_remedy(mut error: clap::Error, arguments: &[String]) -> clap::Error {
    let is_unknown = error.kind() == ErrorKind::UnknownArgument;
    if let Some(tip) = tip(arguments).filter(|_| is_unknown && may_be_of_command(&error)) {
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Whether what the parser did not know is no option of ours that was misspelt.
fn may_be_of_command(error: &clap::Error) -> bool {
    let is_word = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => !word.starts_with('-'),
        _ => false,
    };
    is_word || error.get(ContextKind::SuggestedArg).is_none()
}

/// Where the command belongs that a subcommand takes; `None`: it takes none, or that was heeded.
fn tip(arguments: &[String]) -> Option<String> {
    let name = arguments.get(1).filter(|_| !arguments.iter().any(|argument| argument == "--"))?;
    let cli = Cli::command();
    let subcommand = cli.find_subcommand(name)?;
    let command = subcommand.get_positionals().find(|positional| positional.is_last_set())?;
    let names = command.get_value_names().unwrap_or_default();
    Some(match names.iter().any(|name| name.contains(SEPARATOR)) {
        true => format!(
            "commands come after '--', and '{SEPARATOR}' stands between them: cosched {name} -- ./a 1 {SEPARATOR} ./b"
        ),
        false => format!("the command comes after '--': cosched {name} -- ./a 1"),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn told(line: &str) -> String {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&arguments).unwrap_err();
        with_remedy(error, &arguments).to_string()
    }

    #[test]
    fn who_forgot_the_two_dashes_is_told_where_they_belong() {
        let remedy = "after '--'";
        for line in ["run sleep 1", "compare ./a ::: ./b", "run ./a --foo ::: ./b", "exec ./a 1"] {
            let told = told(&format!("cosched {line}"));
            assert!(told.contains(remedy) && !told.contains("use '-- "), "{told}");
            assert_eq!(told.contains(" ::: ./b"), !line.starts_with("exec"), "{told}");
        }
        for line in ["run --polcy gang ./a ::: ./b", "run --polcy gang -- ./a ::: ./b"] {
            let misspelt = told(&format!("cosched {line}"));
            assert!(!misspelt.contains(remedy) && misspelt.contains("'--policy'"), "{misspelt}");
        }
        let none = told("cosched explain out another");
        assert!(!none.contains(remedy), "it starts nothing: {none}");
    }

    #[test]
    fn a_time_below_zero_is_an_option_with_a_wrong_value_and_not_another_option() {
        for option in ["--quantum", "--max-frozen", "--grace"] {
            let told = told(&format!("cosched run {option} -5ms -- ./a"));
            assert!(told.contains(&format!("invalid value '-5ms' for '{option}")), "{told}");
        }
    }
}
