//! What people see: messages, errors, tables and exit codes.
//!
//! | module | what it holds |
//! |---|---|
//! | `messages` | messages on standard error |
//! | [`failure`] | errors and exit codes |
//! | `output` | results on standard output |
//! | `talk` | how much is told |
//! | [`pace`] | the order of rounds, and the time left |
//! | [`table`] | tables, and how all of them look |
//!
//! A module uses only those above it. Programs' names and paths may hold anything, so messages
//! show control characters escaped.

#![forbid(unsafe_code)]

pub mod failure;
mod messages;
mod output;
pub mod pace;
pub mod table;
mod talk;

pub use messages::{say, say_last, say_waiting, watched};
pub use output::{check_stdout, print, print_if_read, print_json, put};
pub use talk::Talk;
