//! How much people are told while cosched works.

use std::fmt;

use crate::messages::say;

/// How much is told on the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Talk {
    /// Errors only.
    Quiet,
    /// What the user has to know.
    #[default]
    Usual,
    /// What is decided, too.
    Verbose,
}

impl Talk {
    /// By the options `--quiet` and `--verbose`.
    pub fn of(quiet: bool, verbose: bool) -> Talk {
        match (quiet, verbose) {
            (true, _) => Talk::Quiet,
            (_, true) => Talk::Verbose,
            _ => Talk::Usual,
        }
    }

    /// Tells what the user has to know.
    pub fn tell(self, text: fmt::Arguments<'_>) {
        self.at_least(Talk::Usual, text);
    }

    /// Tells what is decided.
    pub fn detail(self, text: fmt::Arguments<'_>) {
        self.at_least(Talk::Verbose, text);
    }

    fn at_least(self, level: Talk, text: fmt::Arguments<'_>) {
        if self >= level {
            say(text);
        }
    }
}
