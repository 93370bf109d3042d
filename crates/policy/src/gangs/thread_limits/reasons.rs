//! The reasons for thread limits, and their words.

use std::borrow::Cow;

use cosched_core::format::{count, of_requested};
use cosched_core::{Says, Words};
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
    fn in_general(&self) -> Cow<'static, str> {
        let words = match self {
            LimitReason::LimitsThreads { .. } => "this is the thread limit of its parallel regions",
            LimitReason::TriesThreads { .. } => {
                "a trial measures its speed with another thread limit"
            }
        };
        words.into()
    }

    fn figures(&self) -> Option<String> {
        Some(match *self {
            LimitReason::LimitsThreads { threads, requested, speed } => {
                let speed = speed.filter(|_| threads != requested);
                let speed =
                    speed.map_or(String::new(), |speed| format!("; {speed:.2} times as fast"));
                format!("{}{speed}", of_requested(threads, requested))
            }
            LimitReason::TriesThreads { threads, requested } => of_requested(threads, requested),
        })
    }

    fn brief(&self) -> Cow<'static, str> {
        let words = match *self {
            LimitReason::LimitsThreads { threads, requested, .. } => {
                format!("{threads} of {requested} threads")
            }
            LimitReason::TriesThreads { threads, .. } => {
                format!("tries {}", count(threads.into(), "thread", "threads"))
            }
        };
        words.into()
    }

    fn says(&self) -> Says {
        Says::Threads
    }
}
