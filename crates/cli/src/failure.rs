//! What can go wrong, and the exit code that tells it.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | every program succeeded |
//! | 1 | a program failed, or cosched could not go on |
//! | 2 | bad input: nothing was started |
//! | 130, 143 | ended by Ctrl-C; by SIGTERM or another signal that does the same |

use std::process::ExitCode;

use cosched_core::Signal;
use cosched_core::engine::outcome::Ended;

/// Why a command ends without doing what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The user has to change something; nothing was started.
    Input(String),
    /// Something broke on the way.
    Broken(String),
}

impl Failure {
    /// Bad input, in the words of an error.
    pub(crate) fn input(error: impl std::fmt::Display) -> Failure {
        Failure::Input(error.to_string())
    }

    /// Something that broke, in the words of an error.
    pub(crate) fn broken(error: impl std::fmt::Display) -> Failure {
        Failure::Broken(error.to_string())
    }

    /// Says it on standard error.
    pub(crate) fn report(&self) -> ExitCode {
        let (text, code) = match self {
            Failure::Input(text) => (text, 2),
            Failure::Broken(text) => (text, 1),
        };
        crate::session::say(format_args!("{text}"));
        ExitCode::from(code)
    }
}

/// The exit code of a run whose programs all succeeded, or not.
pub(crate) fn exit_code(ended: Ended, all_succeeded: bool) -> ExitCode {
    match (ended, all_succeeded) {
        (Ended::Interrupted(Signal::Interrupt), _) => ExitCode::from(130),
        (Ended::Interrupted(_), _) => ExitCode::from(143),
        (Ended::Complete, true) => ExitCode::SUCCESS,
        (Ended::Complete, false) => ExitCode::FAILURE,
    }
}
