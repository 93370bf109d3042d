//! On which machine a record is replayed: the one that it was made on, as far as that is known.

use cosched_core::format::count;
use cosched_results::result::RunResult;
use cosched_sim::Hardware;

use crate::session::Session;
use crate::sim::simulator::hardware as named_hardware;
use crate::sim::this;
use crate::ui::failure::Failure;

/// The machine, and what had to be assumed about it.
///
/// A recorded CPU second is a CPU second: what siblings and memory cost is in it already, so a
/// core's siblings do not slow each other down once more.
pub(super) fn hardware(
    record: &RunResult,
    named: Option<Hardware>,
) -> Result<(Hardware, Option<String>), Failure> {
    let (found, assumed) = match named {
        Some(named) => (named, None),
        None => own(record)?,
    };
    let (here, there) = (found.topology.cpus().len(), record.machine.cpus);
    if here != there {
        let cpus = count(there, "CPU", "CPUs");
        return Err(Failure::Input(format!(
            "the run had {cpus}, and {} has {here}, so the simulation's error would not be \
             known; name a \
             machine of {cpus} with --machine, such as \"package:1 core:{there}\"",
            found.name
        )));
    }
    Ok((Hardware { smt_share: 1.0, ..found }, assumed))
}

fn own(record: &RunResult) -> Result<(Hardware, Option<String>), Failure> {
    if record.machine.is_simulated() {
        let name = record.machine.model.as_deref().unwrap_or_default();
        let found = named_hardware(name).map_err(|_| {
            Failure::Input(format!(
                "the run was simulated on the machine '{name}', which is not among the known \
                 ones; name its file \
                 with --machine"
            ))
        })?;
        return Ok((found, None));
    }
    let plain = Hardware::words(&format!("package:1 core:{}", record.machine.cpus))
        .map_err(Failure::broken)?;
    let here = Session::here()?;
    if here.description != record.machine {
        let assumed = "the run was made on another machine, and only its number of CPUs is known; \
                       name a description of it with --machine";
        return Ok((plain, Some(assumed.to_owned())));
    }
    let why = match this::file().is_ok_and(|file| file.exists()) {
        true => match this::hardware(&here, None) {
            Ok(measured) => return Ok((measured, None)),
            Err(failure) => failure.text().to_owned(),
        },
        false => "this machine is not measured yet (`cosched sim measure` does it)".to_owned(),
    };
    let assumed = format!("{why}, so the costs of switches and starts are assumed");
    Ok((Hardware { topology: this::usable(&here), ..plain }, Some(assumed)))
}
