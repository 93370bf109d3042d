//! What clients of a run connect to, ask for, and are shown.

pub mod cpu_time;
pub mod onlookers;
pub mod user_requests;
