//! What the option parser cannot know of a mistake: that commands come after `--`.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Between the commands of several programs.
const SEPARATOR: &str = ":::";

/// The parser's error, with a remedy where somebody has forgotten the `--` before a command.
pub(crate) fn with_remedy(mut error: clap::Error, arguments: &[String]) -> clap::Error {
    let before = || arguments.iter().take_while(|argument| *argument != "--");
    let is_command = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(word)) => {
            !word.starts_with('-') || before().any(|argument| argument == SEPARATOR)
        }
        _ => false,
    };
    let has_none = before().count() == arguments.len();
    if error.kind() == ErrorKind::UnknownArgument && is_command && has_none {
        let subcommand = arguments.get(1).map_or("run", String::as_str);
        let tip = format!(
            "commands come after '--', and '{SEPARATOR}' stands between them: cosched {subcommand} -- ./a 1 {SEPARATOR} ./b"
        );
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    fn told(line: &str) -> String {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let error = Cli::try_parse_from(&arguments).unwrap_err();
        with_remedy(error, &arguments).to_string()
    }

    #[test]
    fn who_forgot_the_two_dashes_is_told_where_they_belong() {
        let remedy = "commands come after '--'";
        for line in ["run sleep 1", "compare ./a ::: ./b", "run ./a --foo ::: ./b"] {
            let told = told(&format!("cosched {line}"));
            assert!(told.contains(remedy) && !told.contains("use '-- "), "{told}");
        }
        let misspelt = told("cosched run --polcy gang -- ./a ::: ./b");
        assert!(!misspelt.contains(remedy) && misspelt.contains("'--policy'"), "{misspelt}");
    }

    #[test]
    fn a_time_below_zero_is_an_option_with_a_wrong_value_and_not_another_option() {
        for option in ["--quantum", "--max-frozen", "--grace"] {
            let told = told(&format!("cosched run {option} -5ms -- ./a"));
            assert!(told.contains(&format!("invalid value '-5ms' for '{option}")), "{told}");
        }
    }
}
