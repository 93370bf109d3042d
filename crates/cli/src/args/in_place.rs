//! What `exec` and `attach` share: a policy for programs that keep their terminal, their session
//! and their cgroup.
//!
//! Such programs can only have policies that pause no program and move no program.

use std::path::PathBuf;

use clap::Args;
use cosched_policy::Kind;

use crate::args::choices;
use crate::args::{MeasureArgs, SchedulerArgs, named};
use crate::how::How;
use crate::live::MetricsAt;
use crate::ui::failure::{Failure, both};

/// The policy for such programs, and where its results go.
#[derive(Debug, Args)]
pub(crate) struct InPlaceArgs {
    /// The policy: faithful, shuffling, balance, or linux (which changes nothing).
    #[arg(long, short, default_value = Kind::Faithful.name(),
          value_parser = choices::policy_in_place(),
          hide_possible_values = true)]
    pub(crate) policy: Kind,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    by: SchedulerArgs,
    /// A folder for run.json; made if it does not exist. No file in it is overwritten.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Serve metrics meanwhile (OpenMetrics over HTTP, /metrics) at 127.0.0.1:PORT or unix:PATH.
    #[arg(long, value_name = "WHERE", value_parser = named::<MetricsAt>)]
    pub(crate) metrics: Option<MetricsAt>,
}

impl InPlaceArgs {
    /// The options of the policy; a policy that cannot do this is refused.
    pub(crate) fn how(&self, what: &str) -> Result<How, Failure> {
        let mut how = How::from(self.measure.choices());
        how.policy.scheduler = self.by.scheduler;
        both(check(self.policy, what), how.check_use(&[self.policy]))?;
        Ok(how)
    }
}

/// Refuses policies that cannot do this.
fn check(policy: Kind, what: &str) -> Result<(), Failure> {
    if policy.descriptor().attaches {
        return Ok(());
    }
    let can: Vec<&str> =
        Kind::ALL.into_iter().filter(|kind| kind.descriptor().attaches).map(Kind::name).collect();
    Err(Failure::Input(format!(
        "policy '{policy}' cannot {what}: it decides when programs start or run, or \
         gives them cgroups of their own; choose from {}, or start the programs with `cosched run`",
        can.join(", ")
    )))
}
