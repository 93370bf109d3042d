//! Files in the place of a program's standard streams: `stdin`, `stdout` and `stderr`.
//!
//! Whether they are there, and may be read or made, is checked by the command that runs the
//! programs. The simulator, which runs none, needs no files.

use std::path::{Component, Path, PathBuf};

use super::error::{Place, Problem};
use super::shell_paths;

/// The files that a workload file names for one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    /// What it reads as standard input; `None`: nothing, as from `/dev/null`.
    pub stdin: Option<StreamFile>,
    /// Where its standard output goes; `None`: where the command that runs it puts it.
    pub stdout: Option<StreamFile>,
    /// Where its standard error goes, as `stdout`. Both may name the same file.
    pub stderr: Option<StreamFile>,
}

impl Streams {
    /// The outputs, each with its key.
    pub fn outputs(&self) -> impl Iterator<Item = (&'static str, &StreamFile)> {
        let outputs = [("stdout", &self.stdout), ("stderr", &self.stderr)];
        outputs.into_iter().filter_map(|(key, file)| Some((key, file.as_ref()?)))
    }
}

/// A file in the place of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamFile {
    /// Which one; absolute.
    pub path: PathBuf,
    /// Where it was written down.
    pub place: Place,
}

/// The path of a stream's file. A relative one begins at the folder in which the program starts.
pub(super) fn path(named: &str, cwd: &Path) -> Result<PathBuf, Problem> {
    if named.is_empty() {
        return Err(Problem::EmptyPath);
    }
    if named.contains('\0') {
        return Err(Problem::HasNul);
    }
    shell_paths::check(named, cwd)?;
    let path = cwd.join(named);
    let path = std::path::absolute(&path).unwrap_or(path);
    match path.components().next_back() {
        Some(Component::Normal(_)) if !named.ends_with('/') => Ok(path),
        _ => Err(Problem::NamesAFolder(path)),
    }
}
