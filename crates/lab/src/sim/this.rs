//! The machine that `--machine this` names: the one that cosched runs on.
//!
//! Its CPUs are those that programs may use here, as the live side finds them. Its figures were
//! measured by `cosched sim measure`, which keeps them in a file beside the store of profiles; the
//! same file can be carried to another machine and named there like any other description.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cosched_core::Topology;
use cosched_sim::Hardware;
use cosched_workload::{input, shown_path};

use crate::session::Session;
pub use crate::session::THIS;
use crate::store;
use crate::ui::failure::Failure;

/// Where the figures of this machine are kept.
pub(crate) fn file() -> Result<PathBuf, Failure> {
    let folder = store::folder().map_err(Failure::input)?;
    Ok(folder.join("machine.toml"))
}

/// This machine, with the figures of a description: the kept one, unless another is named.
pub(crate) fn hardware(session: &Session, named: Option<&Path>) -> Result<Hardware, Failure> {
    let path = named.map_or_else(file, |path| Ok(path.to_owned()))?;
    check(&path)?;
    let described = Hardware::load(&path).map_err(Failure::input)?;
    Ok(Hardware { topology: usable(session), ..described })
}

/// The CPUs that programs may use.
pub(super) fn usable(session: &Session) -> Topology {
    let cpus = session.topology.cpus().iter();
    Topology::new(cpus.filter(|cpu| session.usable.cpus.contains(cpu.id)).copied().collect())
}

fn check(path: &Path) -> Result<(), Failure> {
    if let Err(error) = path.metadata() {
        if error.kind() != ErrorKind::NotFound {
            let remedy = input::remedy(&error, "check the path");
            return Err(Failure::Input(format!(
                "{}: cannot be read: {error}; {remedy}",
                shown_path(path)
            )));
        }
        return Err(Failure::Input(format!(
            "{}: does not exist: this machine is not measured yet; `cosched sim measure` does it, \
             in half a minute on the idle machine",
            shown_path(path)
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_and_a_loop_of_links_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("machine.toml");
        let said = || check(&file).unwrap_err().text().to_owned();
        assert!(said().contains("this machine is not measured yet"), "{}", said());
        std::os::unix::fs::symlink(&file, &file).unwrap();
        assert!(said().contains("it is a loop of symbolic links: correct"), "{}", said());
    }
}
