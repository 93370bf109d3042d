//! What a run shows on the terminal: how much cosched tells, and which program wrote a line.

use std::io::{IsTerminal, stderr, stdout};

use clap::{Args, ValueEnum};

use crate::session::Labels;
use crate::ui::Talk;
use crate::ui::failure::Failure;

/// How much is shown.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct TerminalArgs {
    /// Print nothing but errors, and what the programs print.
    #[arg(long, conflicts_with = "verbose")]
    quiet: bool,
    /// Also print every warning of pauses, what `auto` chooses while programs run, and at the end
    /// how programs were frozen and bound to CPUs.
    #[arg(long)]
    verbose: bool,
    /// Write a program's name before each line that it prints. The default is to do so on a
    /// terminal, if there are several programs. A labelled program sees a pipe instead of the
    /// terminal; Python is told to print each line at once (PYTHONUNBUFFERED).
    #[arg(long, value_enum, value_name = "WHEN", num_args = 0..=1, require_equals = true,
          default_missing_value = "always")]
    label: Option<When>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    /// Whatever the outputs go to.
    Always,
    /// Not on a terminal either.
    Never,
}

impl TerminalArgs {
    pub(super) fn talk(&self) -> Talk {
        Talk::of(self.quiet, self.verbose)
    }

    /// Which outputs of so many programs are labelled. `to_files`: they go into a folder;
    /// `json`: standard output is needed for the result.
    ///
    /// # Errors
    /// When labels are asked for in files that hold the output of one program each.
    pub(super) fn labels(
        &self,
        programs: usize,
        to_files: bool,
        json: bool,
    ) -> Result<Labels, Failure> {
        let all = |on| Labels { stdout: on, stderr: on };
        match self.label {
            Some(When::Always) if to_files => Err(Failure::Input(
                "--label: with --out each output goes into a file of its own, which needs no \
                 label: leave one of the two out"
                    .to_owned(),
            )),
            Some(when) => Ok(all(when == When::Always)),
            None if to_files || programs < 2 => Ok(all(false)),
            None => {
                let stderr = stderr().is_terminal();
                let stdout = if json { stderr } else { stdout().is_terminal() };
                Ok(Labels { stdout, stderr })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        terminal: TerminalArgs,
    }

    fn parse(line: &str) -> Result<TerminalArgs, clap::Error> {
        let words = line.split_whitespace();
        Ok(Line::try_parse_from(["run"].into_iter().chain(words))?.terminal)
    }

    #[test]
    fn labels_can_be_asked_for_and_forbidden() {
        let labels = |line: &str| parse(line).unwrap().labels(2, false, false).unwrap();
        assert_eq!(labels("--label"), Labels { stdout: true, stderr: true });
        assert_eq!(labels("--label=never"), Labels::default());
        assert!(parse("--label=sometimes").is_err());
    }

    #[test]
    fn files_of_one_program_each_get_no_labels() {
        assert!(parse("--label").unwrap().labels(2, true, false).is_err());
        assert_eq!(parse("").unwrap().labels(2, true, false).unwrap(), Labels::default());
    }

    #[test]
    fn quiet_and_verbose_exclude_each_other() {
        let talk = ["", "--quiet", "--verbose"].map(|line| parse(line).unwrap().talk());
        assert_eq!(talk, [Talk::Usual, Talk::Quiet, Talk::Verbose]);
        assert!(parse("--quiet --verbose").is_err());
    }
}
