//! The reasons for thread limits, and their words.

use cosched_core::format::{count, of_requested};
use cosched_core::{Says, Wording, Words};
use serde::{Deserialize, Serialize};

/// A reason about a program's thread limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum LimitReason {
    /// The thread limit of its parallel regions from now on.
    #[serde(alias = "granted")]
    LimitsThreads {
        /// The limit.
        threads: u16,
        /// How many threads it requests.
        #[serde(alias = "asked")]
        requested: u16,
        /// Its speed with them, relative to the speed with all that it requests, as far as both are
        /// known.
        speed: Option<f64>,
    },
    /// A trial has begun of its speed with this many threads.
    TriesThreads {
        /// How many threads.
        threads: u16,
        /// How many threads it requests.
        #[serde(alias = "asked")]
        requested: u16,
    },
}

impl Words for LimitReason {
    fn words(&self) -> Wording {
        let words = match *self {
            LimitReason::LimitsThreads { threads, requested, speed } => {
                let speed = speed.filter(|_| threads != requested);
                let speed =
                    speed.map_or(String::new(), |speed| format!("; {speed:.2} times as fast"));
                Wording::new(
                    "this is the thread limit of its parallel regions",
                    format!("{threads} of {}", count(requested.into(), "thread", "threads")),
                )
                .figures(format!("{}{speed}", of_requested(threads, requested)))
            }
            LimitReason::TriesThreads { threads, requested } => Wording::new(
                "a trial measures its speed with another thread limit",
                format!("tries {}", count(threads.into(), "thread", "threads")),
            )
            .figures(of_requested(threads, requested)),
        };
        words.says(Says::Threads)
    }
}
