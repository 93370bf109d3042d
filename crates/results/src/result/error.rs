//! Why a result cannot be read or written.

use std::io;
use std::path::{Path, PathBuf};

use cosched_workload::{input, shown_path};

use super::{EARLIER_SCHEMAS, RUN_IN_PROGRESS, SCHEMA};

/// What can be read, in words.
const READABLE: &str = "name a folder that `cosched run --out` made, or the run.json in it";

/// What can be read in the place of a file that cannot, in words.
fn readable(file: &Path) -> &'static str {
    match file.with_file_name(RUN_IN_PROGRESS).symlink_metadata() {
        Ok(_) => "a run is in progress there, or was killed before it could save its result",
        Err(_) => READABLE,
    }
}

/// Why a result could not be read or written.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say what the variants and fields mean")]
pub enum ResultError {
    #[error(
        "{}: cannot be read: {source}; {}",
        shown_path(file),
        input::remedy(source, readable(file))
    )]
    Unreadable { file: PathBuf, source: io::Error },
    #[error("{}: cannot be written: {source}; {}", shown_path(file), match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or choose a folder on another disk"
        }
        _ => "choose a folder that you may write to",
    })]
    Unwritable { file: PathBuf, source: io::Error },
    #[error("{}: is not a result of a run ({what}); {READABLE}", shown_path(file))]
    NoResult { file: PathBuf, what: String },
    #[error(
        "{}: has the schema '{found}', but only '{EARLIEST}' to '{SCHEMA}' can be read; \
        run the workload again, or use the cosched that wrote the file",
        shown_path(file), EARLIEST = EARLIER_SCHEMAS[0]
    )]
    OtherSchema { file: PathBuf, found: String },
    #[error("{}: is damaged: {what}; run the workload again", shown_path(file))]
    Damaged { file: PathBuf, what: String },
    #[error(
        "{}: {field} {what}; no run can be like this, so the file is damaged: run the workload \
         again",
        shown_path(file)
    )]
    Impossible { file: PathBuf, field: String, what: String },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::RunResult;

    #[test]
    fn a_run_without_a_result_yet_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.json");
        let said = || RunResult::load(&file).unwrap_err().to_string();
        assert!(said().ends_with(READABLE), "{}", said());
        std::fs::write(folder.path().join(RUN_IN_PROGRESS), "").unwrap();
        assert!(said().contains("a run is in progress there, or was killed"), "{}", said());
    }
}
