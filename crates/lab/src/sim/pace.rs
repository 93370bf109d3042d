//! How far a simulation has come, and how much work it may take.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cosched_core::Nanos;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::ui::watched;

/// So many events of the simulator take some minutes to an hour, and none of the paper's
/// experiments as many.
pub const MOST_EVENTS: u64 = 4_000_000_000;
/// How often it is shown how far it has come.
const TICK: Duration = Duration::from_millis(200);

/// The simulated time, and the limit.
#[derive(Debug)]
pub(super) struct SimulatedTime {
    /// How far the simulation that is under way has come, in nanoseconds.
    pub(super) time: Arc<AtomicU64>,
    /// Ends a simulation with an error.
    pub(super) most_events: u64,
}

impl Default for SimulatedTime {
    fn default() -> SimulatedTime {
        SimulatedTime { time: Arc::default(), most_events: MOST_EVENTS }
    }
}

impl SimulatedTime {
    /// Shows the time to people, until this is dropped.
    pub(super) fn show(&self) -> TerminalLine {
        if !watched() {
            return TerminalLine(ProgressBar::hidden());
        }
        let time = Arc::clone(&self.time);
        let style = ProgressStyle::with_template("{spinner} simulated: {time}, in {elapsed}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
        let style =
            style.with_key("time", move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
                // Writing to memory does not fail.
                let _ = write!(out, "{}", Nanos(time.load(Ordering::Relaxed)));
            });
        let bar = ProgressBar::new_spinner().with_style(style);
        bar.enable_steady_tick(TICK);
        TerminalLine(bar)
    }
}

pub(super) struct TerminalLine(ProgressBar);

impl Drop for TerminalLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
