//! What `exec` and `attach` share: a policy for programs that keep their place, at a terminal or
//! wherever they were found.
//!
//! Such programs can only have policies that freeze no program and move no program.

use std::path::PathBuf;

use clap::Args;
use cosched_policy::Kind;

use crate::args::{HowArgs, MeasureArgs, named};
use crate::choices;
use crate::failure::Failure;
use crate::live::MetricsAt;

/// What decides about such programs, and what is told of them.
#[derive(Debug, Args)]
pub(crate) struct InPlaceArgs {
    /// What decides: faithful, shuffling, or linux, which changes nothing.
    #[arg(long, short, default_value = Kind::Faithful.name(), value_parser = choices::policy_in_place(),
          hide_possible_values = true)]
    pub(crate) policy: Kind,
    #[command(flatten)]
    measure: MeasureArgs,
    /// A folder for run.json; made if it is not there. No file in it is overwritten.
    #[arg(long, short, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Serve metrics while it lasts (OpenMetrics over HTTP, /metrics): 127.0.0.1:PORT, or
    /// unix:PATH.
    #[arg(long, value_name = "WHERE", value_parser = named::<MetricsAt>)]
    pub(crate) metrics: Option<MetricsAt>,
}

impl InPlaceArgs {
    /// How the policy does its work; one that cannot do this is refused.
    pub(crate) fn how(&self, what: &str) -> Result<HowArgs, Failure> {
        check(self.policy, what)?;
        let how = HowArgs::from(self.measure.clone());
        how.check_use(&[self.policy])?;
        Ok(how)
    }
}

/// Refuses policies that cannot do this.
fn check(policy: Kind, what: &str) -> Result<(), Failure> {
    if policy.attaches() {
        return Ok(());
    }
    let can: Vec<&str> =
        Kind::ALL.into_iter().filter(|kind| kind.attaches()).map(Kind::name).collect();
    Err(Failure::Input(format!(
        "policy '{policy}' cannot {what}: it freezes programs, or starts them in cgroups or sessions of their own; choose \
         from {}, or start the programs with `cosched run`",
        can.join(", ")
    )))
}
