//! Programs that start after others.

use cosched_core::engine::outcome::Missing;
use serde::{Deserialize, Serialize};

/// A program that had to end before another one came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterResult {
    /// Its name.
    pub program: String,
    /// Whether it might end in any way; otherwise each of its runs had to return 0.
    pub any_exit: bool,
}

/// Why a program was not started that was to start after others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotStartedResult {
    /// The name of the program that it waited for.
    pub program: String,
    /// What that lacked.
    pub why: Missing,
}
