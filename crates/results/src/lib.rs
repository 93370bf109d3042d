//! What came of a run: the file run.json and its checks, the state of a run that goes on, metrics,
//! and statistics over several runs.

#![forbid(unsafe_code)]

pub mod json;
pub mod live;
pub mod metrics;
pub mod result;
pub mod statistics;
pub mod whole_file;
