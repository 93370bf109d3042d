//! What clients of a run connect to, request, and are shown.

pub mod cpu_time;
pub mod onlookers;
pub mod user_requests;
