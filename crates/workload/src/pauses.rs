//! What a pause could break in a program, as far as its command and environment tell.
//!
//! Time passes while a program is paused. A program that measures time can then give a wrong
//! result: `timeout` ends it too soon, a test misses its deadline, systemd restarts it. If it is
//! paused by signals, its processes can see that they were stopped.
//!
//! All of it is a guess: what is not found here is paused like any other program.

use std::ffi::{OsStr, OsString};

use cosched_core::Nanos;

use super::spec::ProgramSpec;

/// The variable by which systemd tells a service that it has to report regularly.
pub(crate) const WATCHDOG: &str = "WATCHDOG_USEC";
/// The variable with the number of the process that systemd waits for.
const WATCHDOG_PID: &str = "WATCHDOG_PID";

/// What a pause of a program could break.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PauseRisks {
    /// The shortest time after which a `timeout` ends it.
    pub time_limit: Option<Nanos>,
    /// The test runner that it starts: tests may have deadlines.
    pub test_runner: Option<String>,
    /// What takes a stopped process for one that has ended, or stops itself because of it.
    pub sees_stops: Option<SeesStops>,
    /// Whether it is a shell at which a person waits.
    pub is_interactive: bool,
    /// Whether systemd's watchdog waits for its reports.
    pub has_watchdog: bool,
}

/// How a program can see that one of its processes was stopped by a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeesStops {
    /// A shell with job control.
    JobControl,
    /// A script that asks for stopped children.
    Script(String),
}

impl PauseRisks {
    /// Tests must not be paused longer than this at a stretch. The shortest usual deadline is
    /// Hypothesis' 200 ms for one example.
    pub const OF_TESTS: Nanos = Nanos::from_millis(100);

    /// Whether a pause of any length may break the program.
    pub fn forbid_pauses(&self) -> bool {
        self.has_watchdog || self.is_interactive
    }
}

impl ProgramSpec {
    /// What a pause could break in this program. Scripts are read only if they may be: what is
    /// simulated is the same on every machine.
    pub fn pause_risks(
        &self,
        inherited: &[(OsString, OsString)],
        may_read_scripts: bool,
    ) -> PauseRisks {
        let risks = self.command_traits(inherited, may_read_scripts).risks;
        // With its number, systemd waits for cosched, and not for what cosched starts.
        let is_coscheds = !self.env.contains_key(WATCHDOG)
            && inherited.iter().any(|(name, _)| name == OsStr::new(WATCHDOG_PID));
        let value = self.variable(WATCHDOG, inherited).filter(|value| !value.is_empty());
        let has_watchdog = value.is_some() && !is_coscheds;
        PauseRisks { has_watchdog: has_watchdog || risks.has_watchdog, ..risks }
    }
}

#[cfg(test)]
mod tests;
