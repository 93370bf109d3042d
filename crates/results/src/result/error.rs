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
pub enum ResultError {
    /// The file could not be read.
    #[error(
        "{}: cannot be read: {source}; {}",
        shown_path(file),
        input::remedy(source, readable(file))
    )]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file could not be written.
    #[error("{}: cannot be written: {source}; {}", shown_path(file), match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space, or choose a folder on another disk"
        }
        _ => "choose a folder that you may write to",
    })]
    Unwritable {
        /// The file.
        file: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is something else.
    #[error("{}: is not a result of a run ({what}); {READABLE}", shown_path(file))]
    NoResult {
        /// The file.
        file: PathBuf,
        /// How this is known.
        what: String,
    },
    /// The file is of another version.
    #[error(
        "{}: has the schema '{found}', but only '{EARLIEST}' to '{SCHEMA}' can be read; \
        run the workload again, or use the cosched that wrote the file",
        shown_path(file), EARLIEST = EARLIER_SCHEMAS[0]
    )]
    OtherSchema {
        /// The file.
        file: PathBuf,
        /// The schema that it names.
        found: String,
    },
    /// The file is not JSON, or a field is missing or wrong.
    #[error("{}: is damaged: {source}; run the workload again", shown_path(file))]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
    /// A field has a value that no run can have.
    #[error(
        "{}: {field} {what}; no run can be like this, so the file is damaged: run the workload \
         again",
        shown_path(file)
    )]
    Impossible {
        /// The file.
        file: PathBuf,
        /// Which field.
        field: String,
        /// What is wrong with it.
        what: String,
    },
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
