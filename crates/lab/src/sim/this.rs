//! The machine that `--machine this` names: the one that cosched runs on.
//!
//! Its CPUs are those that programs may use here, as the live side finds them. Its figures were
//! measured by `cosched sim measure`, which keeps them in a file beside the store of profiles; the
//! same file can be carried to another machine and named there like any other description.

use std::path::{Path, PathBuf};

use cosched_core::Topology;
use cosched_sim::Hardware;

use crate::session::Session;
use crate::store;
use crate::ui::failure::Failure;

/// What stands for this machine on the command line.
pub const THIS: &str = "this";

/// Where the figures of this machine are kept.
pub(crate) fn file() -> Result<PathBuf, Failure> {
    let folder = store::folder().map_err(Failure::input)?;
    Ok(folder.join("machine.toml"))
}

/// This machine, with the figures of a description: the kept one, unless another is named.
pub(crate) fn hardware(session: &Session, named: Option<&Path>) -> Result<Hardware, Failure> {
    let path = named.map_or_else(file, |path| Ok(path.to_owned()))?;
    if !path.exists() {
        return Err(Failure::Input(format!(
            "{}: does not exist: this machine is not measured yet; `cosched sim measure` does it, \
             in half a minute on the idle machine",
            path.display()
        )));
    }
    let described = Hardware::load(&path).map_err(Failure::input)?;
    Ok(Hardware { topology: usable(session), ..described })
}

/// The CPUs that programs may use.
pub(super) fn usable(session: &Session) -> Topology {
    let cpus = session.topology.cpus().iter();
    Topology::new(cpus.filter(|cpu| session.usable.cpus.contains(cpu.id)).copied().collect())
}
