//! The folder of a run: `run.json`, and two files with the outputs of each program.
//!
//! Nothing in it is ever overwritten unasked: a file that is there may be the only result of hours,
//! or no result of ours at all. So every name that a run would write is looked at before it starts.

mod inner;
mod mark;
mod replace;

use std::fmt::Display;
use std::fs::{self, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use cosched_linux::kernel::poll::hold_interruptions;
use cosched_policy::Kind;
use cosched_results::result::{ResultError, RunResult};
use cosched_results::whole_file;
use cosched_workload::input;
use cosched_workload::{Workload, shown, shown_path};
use rustix::fs::{Access, access};
use tempfile::TempDir;

use crate::ui::failure::Failure;
pub(crate) use inner::for_others;
pub(crate) use mark::RunMark;
pub(crate) use replace::{TakenFolder, replace};

pub(crate) const RESULT: &str = "run.json";
/// The name of a page beside the result.
pub const REPORT: &str = "report.html";
/// The name of a trace beside the result.
pub const TRACE: &str = "run.pftrace";

/// Where the result of a run goes.
pub fn result(out: &Path) -> PathBuf {
    out.join(RESULT)
}

/// The result of an earlier run, by its folder or by its file.
///
/// # Errors
/// When the result is not there, or is damaged.
pub fn load(run: &Path) -> Result<RunResult, Failure> {
    let file = if run.is_dir() { result(run) } else { run.to_owned() };
    match inside(run, 1).filter(|_| !file.exists()) {
        None => RunResult::load(&file).map_err(Failure::input).and_then(|run| known(run, &file)),
        Some(inner) => Err(Failure::Input(format!(
            "{}: holds folders of runs, and no run itself; name one of them, such as {}",
            shown_path(run),
            shown_path(&inner)
        ))),
    }
}

/// The result in the content of a file.
///
/// # Errors
/// When the content is damaged, or of an unknown policy.
pub fn read(content: &[u8], file: &Path) -> Result<RunResult, Failure> {
    RunResult::read(content, file).map_err(Failure::input).and_then(|run| known(run, file))
}

/// What lies where a run of a comparison belongs.
pub enum Left {
    /// A result.
    Whole(Box<RunResult>),
    /// What a full disk or a crash made of it; where and what, in words.
    Damaged(String),
}

/// Reads what lies where a run of a comparison belongs.
///
/// # Errors
/// When the file cannot be read.
pub fn look(file: &Path) -> Result<Left, ResultError> {
    let why = match RunResult::load(file) {
        Ok(run) => return Ok(Left::Whole(Box::new(run))),
        Err(why) => why,
    };
    let what = match &why {
        ResultError::Damaged { what, .. } => what.clone(),
        ResultError::Impossible { field, what, .. } => format!("{field} {what}"),
        // A text there may be a user's own, and is no damage. No user writes anything but text
        // there.
        ResultError::NoResult { .. } if !is_text(file) => "it is not text".to_owned(),
        _ => return Err(why),
    };
    Ok(Left::Damaged(format!("{} is damaged ({what})", shown_path(file))))
}

/// Whether a person could have written a file.
fn is_text(file: &Path) -> bool {
    let strange = |sign: char| sign.is_control() && !sign.is_whitespace();
    let text = fs::read(file).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.is_some_and(|text| !text.contains(strange))
}

/// A result of a policy that is there.
///
/// # Errors
/// When the policy is not known.
pub fn known(run: RunResult, file: &Path) -> Result<RunResult, Failure> {
    match run.policy.parse::<Kind>() {
        Ok(_) => Ok(run),
        Err(_) => Err(Failure::Input(format!(
            "{}: this version of cosched does not know its policy '{}'; use the version that made \
             the run",
            shown_path(file),
            shown(&run.policy)
        ))),
    }
}

/// The first folder of a run in a folder: `compare --out` makes one for each variant, or for each
/// round one of those.
fn inside(folder: &Path, deeper: usize) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.into_iter().find_map(|inner| match result(&inner).exists() {
        true => Some(inner),
        false => deeper.checked_sub(1).and_then(|deeper| inside(&inner, deeper)),
    })
}

/// Where a program's `stdout` or `stderr` goes.
pub fn output(out: &Path, program: &str, stream: &str) -> PathBuf {
    out.join(format!("{program}.{stream}"))
}

/// Makes the folder, if it is not there, and checks that it can be written to.
///
/// # Errors
/// When the folder cannot be made or written to, or holds a file that the run would write.
pub fn prepare(out: &Path, workload: &Workload) -> Result<(), Failure> {
    check_free(out, workload)?;
    make(out)?;
    tempfile::tempfile_in(out).map_err(|error| {
        let what = format!("nothing can be written there: {error}; choose another folder");
        refused(out, &what)
    })?;
    Ok(())
}

/// An output folder that is held open. What a run writes goes into this folder, also if another
/// one, or a link, has taken its name meanwhile.
#[derive(Debug)]
pub struct Folder {
    shown: PathBuf,
    open: fs::File,
}

impl Folder {
    /// Opens a folder that is [prepared](prepare).
    pub(crate) fn open(out: &Path) -> Result<Folder, Failure> {
        Folder::hold(out).map_err(|error| refused(out, &error.to_string()))
    }

    /// Opens any folder.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn hold(folder: &Path) -> io::Result<Folder> {
        Ok(Folder { shown: folder.to_owned(), open: fs::File::open(folder)? })
    }

    /// Where a file of this name is, for this process alone.
    pub fn place(&self, file: &Path) -> PathBuf {
        self.path().join(file.file_name().unwrap_or_default())
    }

    /// An error about such a file, with the name that the user knows.
    pub fn failure(&self, error: &dyn Display) -> Failure {
        Failure::broken(self.named(&error.to_string()))
    }

    /// Where it is, for this process alone, whatever has its name.
    pub fn path(&self) -> PathBuf {
        own_path(&self.open)
    }
}

fn own_path(file: &fs::File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// A folder for what the user does not keep; it is removed when this is dropped.
///
/// # Errors
/// When no temporary folder can be made.
pub fn hidden() -> Result<TempDir, Failure> {
    hold_interruptions().map_err(Failure::broken)?;
    tempfile::tempdir().map_err(|error| {
        let remedy = "name a folder that you may write to in the variable TMPDIR";
        Failure::unwritable(&std::env::temp_dir(), &error, remedy)
    })
}

/// Makes a folder, if it is not there.
///
/// # Errors
/// When the folder cannot be made.
pub fn make(out: &Path) -> Result<(), Failure> {
    fs::create_dir_all(out).map_err(|error| {
        let leads_nowhere = |path: &&Path| path.is_symlink() && path.metadata().is_err();
        if let Some(link) = out.ancestors().find(leads_nowhere) {
            let what = format!(
                "the folder cannot be made: {} is a link that leads nowhere; correct the link, or \
                 choose another folder",
                shown_path(link)
            );
            return refused(out, &what);
        }
        let file = out.ancestors().find(|path| path.metadata().is_ok_and(|found| !found.is_dir()));
        refused(
            out,
            &match file {
                Some(file) if file == out => {
                    "it is a file, not a folder; name a folder, which is made if it does not exist"
                        .to_owned()
                }
                Some(file) => {
                    format!(
                        "the folder cannot be made: {} is a file; choose another one",
                        shown_path(file)
                    )
                }
                None => format!("the folder cannot be made: {error}; choose another one"),
            },
        )
    })
}

/// Checks that nothing is there that the run would write.
///
/// # Errors
/// When such a file is there.
pub fn check_free(out: &Path, workload: &Workload) -> Result<(), Failure> {
    match left(out, workload).first() {
        None => Ok(()),
        Some(file) if *file == result(out) => {
            let what = "it already holds a run; choose another folder, or move the run away (only \
                        `cosched run` replaces it, with --force)";
            Err(refused(out, what))
        }
        Some(file) if file.ends_with(mark::NAME) => {
            let what = "a run is in progress there, or was killed; choose another folder, or move \
                        away what a killed one left (only `cosched run` replaces it, with --force)";
            Err(refused(out, what))
        }
        Some(file) => Err(refused(
            out,
            &format!(
                "{} exists and would be overwritten; choose another folder, or move the file away",
                shown_path(file)
            ),
        )),
    }
}

/// What is there of that which a run would write.
pub fn left(out: &Path, workload: &Workload) -> Vec<PathBuf> {
    let result = result(out);
    let outputs = workload
        .programs
        .iter()
        .flat_map(|spec| ["stdout", "stderr"].map(|stream| output(out, &spec.name, stream)));
    let (part, mark) = (whole_file::part(&result), out.join(mark::NAME));
    [result, mark, part].into_iter().chain(outputs).filter(|file| is_there(file)).collect()
}

/// Checks that files can be made and removed in a folder, or the folder be made.
///
/// # Errors
/// When files or the folder cannot be made.
pub fn check_writable(out: &Path) -> Result<(), Failure> {
    let paths = out.ancestors().filter(|path| *path != Path::new(""));
    let mut there = paths.map(|path| (path, path.metadata()));
    let missing = |found: &io::Result<Metadata>| {
        found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let Some((there, found)) = there.find(|(_, found)| !missing(found)) else {
        return Ok(());
    };
    let writable = found.map_err(|error| error.to_string()).and_then(|found| {
        let needed = Access::WRITE_OK | Access::EXEC_OK;
        match found.is_dir() {
            true => access(there, needed).map_err(|errno| io::Error::from(errno).to_string()),
            false => Err("it is a file, not a folder".to_owned()),
        }
    });
    writable.map_err(|why| {
        let what = format!("nothing can be written in {}: {why}", shown_path(there));
        refused(out, &format!("{what}; check its permissions, or choose another folder"))
    })
}

/// Checks that [`remove`] can remove a file, as far as the file itself is concerned.
///
/// # Errors
/// When the file cannot be removed.
pub fn check_removable(file: &Path) -> Result<(), Failure> {
    match file.symlink_metadata() {
        Ok(found) if found.is_dir() => Err(irremovable(file, &"it is a folder")),
        _ => Ok(()),
    }
}

/// Removes a file that an interrupted run left.
///
/// # Errors
/// When the system refuses.
pub fn remove(file: &Path) -> Result<(), Failure> {
    fs::remove_file(file).map_err(|error| irremovable(file, &error))
}

fn irremovable(file: &Path, why: &dyn Display) -> Failure {
    Failure::Input(format!(
        "{}: cannot be removed: {why}; move it away, or choose another folder",
        shown_path(file)
    ))
}

/// A link that leads nowhere is there, too: the file would be made at its other end.
fn is_there(file: &Path) -> bool {
    file.symlink_metadata().is_ok()
}

fn refused(out: &Path, what: &str) -> Failure {
    Failure::Input(format!("--out {}: {what}", shown_path(out)))
}

/// A file beside a result: in its folder. `None` for what a shell hands over, which has no folder.
pub fn beside(result: &Path, file: &str) -> Option<PathBuf> {
    match result.is_dir() {
        true => Some(result.join(file)),
        false if input::is_handed_over(result) => None,
        false => Some(result.with_file_name(file)),
    }
}
