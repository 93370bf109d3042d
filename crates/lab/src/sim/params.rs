//! `cosched sim params`: the constants of policies, with what they rest on.

use std::process::ExitCode;

use cosched_policy::{Kind, Param, Params};
use serde::Serialize;

use crate::ui::failure::Failure;
use crate::ui::{print, print_json};

const SCHEMA: &str = "cosched-sim-params/1";

#[derive(Debug, Serialize)]
struct ParamsDocument {
    schema: &'static str,
    /// The policy that uses them; `None`: any.
    policy: Option<&'static str>,
    constants: Vec<Param>,
}

/// Shows the constants of one policy, or of all.
///
/// # Errors
/// When the output cannot be written.
pub fn params(policy: Option<Kind>, json: bool) -> Result<ExitCode, Failure> {
    let params = Params::default();
    let constants = policy.map_or_else(|| params.list(), |kind| kind.constants(&params));
    let policy = policy.map(Kind::name);
    match json {
        true => {
            let document = ParamsDocument { schema: SCHEMA, policy, constants };
            print_json(&serde_json::to_string_pretty(&document).map_err(Failure::broken)?)?;
        }
        false if constants.is_empty() => {
            print(&format!("{} uses no constant", policy.unwrap_or("no policy")))?;
        }
        false => print(&show(&constants))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A paragraph for each constant, which begins with a line that --set takes.
fn show(constants: &[Param]) -> String {
    let shown = |param: &Param| {
        let Param { name, value, least, most, unit, what, basis } = param;
        format!("{name}={value} ({least} to {most}; {unit})\n    {what}\n    Rests on: {basis}.")
    };
    constants.iter().map(shown).collect::<Vec<_>>().join("\n")
}
