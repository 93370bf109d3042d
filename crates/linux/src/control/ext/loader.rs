//! The process that loads the scheduler: `cosched-ext`, which comes with cosched.

use std::io::{self, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use serde::Deserialize;

/// What the executable is called.
pub const NAME: &str = "cosched-ext";
/// Where packages put it, if not beside cosched.
const PACKAGED: &str = "/usr/libexec/cosched/cosched-ext";
/// The variable that names another one.
pub const VARIABLE: &str = "COSCHED_EXT";
/// The version of its message, and of the maps' layouts.
const VERSION: u32 = 2;
/// Far longer than loading takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// More than the kernel's complaint is long.
const LONGEST: usize = 16 * 1024;

/// Why the scheduler is not loaded.
#[derive(Debug, thiserror::Error)]
pub enum ExtError {
    /// There is no such executable.
    #[error(
        "`--scheduler ext` needs {NAME}, which is not beside cosched, nor at {PACKAGED} (remedy: \
         install the package cosched-ext, build it with `cargo build --release -p cosched-ext`, \
         or name it in {VARIABLE}; or leave the option out)"
    )]
    Missing,
    /// It cannot be executed.
    #[error(
        "cannot start {}: {error} (remedy: install {NAME} again; or leave `--scheduler ext` out)",
        executable.display()
    )]
    NotStarted {
        /// Its file.
        executable: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// It says why not.
    #[error("`--scheduler ext` is not possible here: {0}")]
    Refused(String),
    /// There are more programs than it can have.
    #[error(
        "`--scheduler ext` can have {most} programs, and there are {programs} (remedy: leave the \
         option out, or run fewer programs at once)"
    )]
    TooMany {
        /// How many there are.
        programs: usize,
        /// How many there can be.
        most: usize,
    },
}

/// The message of the executable.
#[derive(Deserialize)]
struct LoaderAnswer {
    version: u32,
    error: Option<String>,
}

/// The process, with cosched's end of its channel. Dropping it ends the process.
#[derive(Debug)]
pub(super) struct Loader {
    process: Child,
    channel: UnixStream,
}

impl Loader {
    pub(super) fn pid(&self) -> i32 {
        self.process.id() as i32
    }
}

/// Readable (for epoll) when the process has ended.
impl AsFd for Loader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        // Its end, however it comes, ends the scheduler. It may be stopped.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What it gives.
pub(super) struct Loaded {
    pub(super) loader: Loader,
    pub(super) control: OwnedFd,
    pub(super) programs: OwnedFd,
    pub(super) members: OwnedFd,
    pub(super) slices: OwnedFd,
}

/// The executable of this user's choice, or the one that came with cosched.
///
/// # Errors
/// When there is none.
pub fn find() -> Result<PathBuf, ExtError> {
    if let Some(named) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
        return Ok(named.into());
    }
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(NAME)));
    beside.into_iter().chain([PACKAGED.into()]).find(|file| file.is_file()).ok_or(ExtError::Missing)
}

/// Has the kernel check the scheduler, without loading it. Returns what it says, for users.
///
/// # Errors
/// When there is no executable for it, or the kernel would not take the scheduler.
pub fn check() -> Result<String, ExtError> {
    answer_of(&find()?, PATIENCE)
}

/// What an executable says of this kernel, if it ends in time.
fn answer_of(executable: &Path, patience: Duration) -> Result<String, ExtError> {
    let failed = |error| ExtError::NotStarted { executable: executable.to_owned(), error };
    let (channel, theirs) = UnixStream::pair().map_err(failed)?;
    channel.set_nonblocking(true).map_err(failed)?;
    let process = Command::new(executable)
        .arg("--check")
        .stdin(Stdio::null())
        .stdout(OwnedFd::from(theirs))
        .spawn()
        .map_err(failed)?;
    let mut loader = Loader { process, channel };
    let until = Instant::now() + patience;
    let status = loop {
        match loader.process.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if Instant::now() < until => sleep(Duration::from_millis(2)),
            None => {
                return Err(silent(executable, "does not answer"));
            }
        }
    };
    // Without waiting for another process that holds the other end.
    let mut said = Vec::new();
    let _ = (&loader.channel).take(LONGEST as u64).read_to_end(&mut said);
    let said = String::from_utf8_lossy(&said).trim().to_owned();
    match said.is_empty() {
        false if status.success() => Ok(said),
        false => Err(ExtError::Refused(said)),
        true => Err(silent(executable, "ended without an answer")),
    }
}

fn silent(executable: &Path, what: &str) -> ExtError {
    ExtError::Refused(format!(
        "{} {what} (remedy: install {NAME} and cosched from one release; or leave the option out)",
        executable.display()
    ))
}

pub(super) fn load(executable: &Path) -> Result<Loaded, ExtError> {
    let failed = |error| ExtError::NotStarted { executable: executable.to_owned(), error };
    let (channel, theirs) = UnixStream::pair().map_err(failed)?;
    channel.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let process = Command::new(executable)
        // What hits cosched's whole group (Ctrl-C) is no reason to end: cosched ends it.
        .process_group(0)
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .spawn()
        .map_err(failed)?;
    let loader = Loader { process, channel };
    let [control, programs, members, slices] = receive(&loader.channel)?;
    Ok(Loaded { loader, control, programs, members, slices })
}

/// Its message, with the descriptors that came along.
fn receive(channel: &UnixStream) -> Result<[OwnedFd; 4], ExtError> {
    let refused = |why: &str| ExtError::Refused(why.to_owned());
    let untold = |what: &str| {
        refused(&format!("{NAME} {what} (remedy: `{NAME} --check` says whether it works here)"))
    };
    let (mut text, mut maps) = (Vec::new(), Vec::new());
    loop {
        let mut part = [0; LONGEST];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut part)];
        let received = recvmsg(channel, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC);
        let received = match received {
            Ok(received) => received,
            // cosched was stopped and goes on.
            Err(Errno::INTR) => continue,
            Err(_) => return Err(untold("does not answer")),
        };
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                maps.extend(fds);
            }
        }
        text.extend_from_slice(&part[..received.bytes]);
        let is_over = received.bytes == 0 || text.len() > LONGEST || text.ends_with(b"\n");
        if is_over || received.flags.contains(ReturnFlags::CTRUNC) {
            break;
        }
    }
    let answer: LoaderAnswer =
        serde_json::from_slice(&text).map_err(|_| untold("has ended without an answer"))?;
    match answer {
        LoaderAnswer { version, .. } if version != VERSION => Err(refused(&format!(
            "{NAME} is of another version than cosched (remedy: install both from one release)"
        ))),
        LoaderAnswer { error: Some(error), .. } => Err(ExtError::Refused(error)),
        LoaderAnswer { .. } => maps
            .try_into()
            .map_err(|_| refused(&format!("{NAME} has sent other descriptors than needed"))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_executable_that_does_not_answer_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let answer = |script: &str, patience| {
            let file = folder.path().join("ext");
            fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            answer_of(&file, patience).map_err(|error| error.to_string())
        };
        let began = Instant::now();
        let refused = answer("exec sleep 600", Duration::from_millis(50)).unwrap_err();
        assert!(refused.contains("ext does not answer (remedy: "), "{refused}");
        assert!(began.elapsed() < PATIENCE);
        let refused = answer("exit 1", PATIENCE).unwrap_err();
        assert!(refused.contains("ext ended without an answer (remedy: "), "{refused}");
        assert!(answer("echo not here; exit 1", PATIENCE).unwrap_err().ends_with("not here"));
        assert_eq!(answer("echo here", PATIENCE).unwrap(), "here");
    }
}
