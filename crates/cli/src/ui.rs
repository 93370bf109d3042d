//! What people see: messages, errors, tables, and the progress of a run.

pub(crate) mod deviations;
pub(crate) mod failure;
pub(crate) mod pace;
pub(crate) mod progress;
pub(crate) mod table;
mod talk;
mod words;

pub(crate) use talk::Talk;
pub(crate) use words::{check_stdout, print, print_if_read, put, say, say_last, watched};
