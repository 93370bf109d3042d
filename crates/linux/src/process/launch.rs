//! Starting programs, each below a [shim](crate::process::shim) of its own.
//!
//! A program must not run before its quantum, and nothing may be changed that is not in the undo
//! log yet. So a start has two halves: [`Launcher::prepare`] makes the shim, which then waits for
//! its order. Now the caller knows under which process the program will live, and can log it.
//! [`Prepared::start`] gives the order. If cosched dies in between, the shim ends: nothing was
//! started. The program's first process waits once more, until the caller has logged its number and
//! says so by [`Launched::is_known`].
//!
//! Its first process begins in the program's cgroup, or joins it, and gets its CPUs before `exec`:
//! it never sees the machine otherwise, and no thread escapes.

mod reports;

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cosched_core::CpuSet;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

pub use reports::{Reports, ShimReport, StartStep};

use crate::kernel::open_files::FileLimit;
use crate::kernel::procfs::Proc;
use crate::process::helper::{self, Helper, HelperError};
use crate::process::labels::{Pipes, Spare};
use crate::process::tree::Process;

/// How long a shim may take to end that has nothing left to do: far longer than one needs that gets
/// any CPU.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

/// What to start, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What the program's first process does before and at `exec`.
    pub order: LaunchOrder,
    /// Where the program's standard output goes.
    pub stdout: OutputTo,
    /// Where its standard error goes. The same file as `stdout` is opened only once, so that the
    /// two do not overwrite one another.
    pub stderr: OutputTo,
}

/// What the shim is told. The program gets a process group of its own. Every signal that is not
/// [ignored](LaunchOrder::ignored) has its default effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchOrder {
    /// The file to execute; taken relative to `cwd`, and not searched for if it has a slash.
    pub executable: PathBuf,
    /// Its arguments, the name that it is called by first.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// What it reads as standard input, absolute; `None`: `/dev/null`.
    pub stdin: Option<PathBuf>,
    /// The cgroup of version 2 in which its first process begins.
    pub born_in: Option<PathBuf>,
    /// `cgroup.procs` files of others, which it joins.
    pub cgroups: Vec<PathBuf>,
    /// The CPUs that it may run on; `None`: those that cosched may run on.
    pub cpus: Option<CpuSet>,
    /// Whether it gets a session of its own instead of cosched's.
    pub new_session: bool,
    /// How many files it may hold open; `None`: as many as cosched.
    pub open_files: Option<FileLimit>,
    /// Signals that it ignores, since cosched's caller does.
    pub ignored: Vec<i32>,
    /// What the shim writes before each line of its outputs.
    #[serde(default)]
    pub labels: LineLabels,
}

/// What stands before each line of a program's outputs. `None`: the program has the output itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineLabels {
    /// Before those of its standard output.
    pub stdout: Option<String>,
    /// Before those of its standard error.
    pub stderr: Option<String>,
}

impl LineLabels {
    /// How many files cosched holds open to pass the outputs on if the shim is killed.
    pub(crate) fn open_files(&self) -> usize {
        2 * [&self.stdout, &self.stderr].into_iter().flatten().count()
    }
}

/// Where an output of a program goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputTo {
    /// Where cosched's own goes.
    #[default]
    Inherit,
    /// Where cosched's own standard error goes.
    Stderr,
    /// Into a file, made if it is not there.
    File {
        /// Which one; relative to cosched's working directory.
        path: PathBuf,
        /// Whether to keep what is in it.
        append: bool,
    },
}

/// Why a program could not be started. What the shim finds later comes as [`ShimReport::Failed`].
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// An output file could not be opened.
    #[error("cannot open {} for the program's output: {source}", path.display())]
    Output {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The shim could not be started.
    #[error(transparent)]
    Helper(#[from] HelperError),
    /// The shim ended or cannot be reached.
    #[error("the process that was to start the program cannot be reached: {0}")]
    Lost(#[source] io::Error),
    /// A path cannot be passed on.
    #[error("the program's executable, directory and cgroups must be UTF-8: {0}")]
    NotUtf8(#[source] serde_json::Error),
}

/// Starts programs.
#[derive(Clone, Debug)]
pub struct Launcher {
    executable: PathBuf,
    proc: Proc,
}

impl Launcher {
    /// Starts shims from `executable`, which has to call
    /// [`become_one_if_asked`](crate::helpers::become_one_if_asked) first; normally
    /// [`helper::OWN_EXECUTABLE`].
    pub fn new(executable: &Path, proc: Proc) -> Launcher {
        Launcher { executable: executable.to_owned(), proc }
    }

    /// Makes the shim. Nothing of the program runs yet.
    ///
    /// # Errors
    /// When an output cannot be opened or no process can be made.
    pub fn prepare(&self, spec: &Spec) -> Result<Prepared, LaunchError> {
        let mut line = serde_json::to_vec(&spec.order).map_err(LaunchError::NotUtf8)?;
        line.push(b'\n');
        let files = open_outputs(&spec.stdout, &spec.stderr)?;
        let pipes = Pipes::open(&spec.order.labels).map_err(LaunchError::Lost)?;
        let spare = Spare::of(&pipes, &files).map_err(LaunchError::Lost)?;
        let outputs = files.map(|file| file.map_or_else(Stdio::inherit, Stdio::from));
        let (child, channel) = helper::spawn(&self.executable, Helper::Shim, outputs, &[])?;
        // The child is not reaped before `Launched::reap`, so its entry is there even if it has
        // ended.
        let process = Process::find(&self.proc, child.id() as i32)
            .map_err(|error| LaunchError::Lost(io::Error::other(error)))?;
        let shim = ShimProcess { child, process };
        Ok(Prepared { shim, channel, line, pipes, spare, log: None })
    }
}

/// A shim that waits for its order; ends when this is dropped.
#[derive(Debug)]
pub struct Prepared {
    shim: ShimProcess,
    channel: UnixStream,
    line: Vec<u8>,
    pipes: Pipes,
    spare: Spare,
    log: Option<File>,
}

impl Prepared {
    /// The shim: the root of the program's tree of processes.
    pub fn shim(&self) -> Process {
        self.shim.process
    }

    /// Has the shim hold the undo log.
    pub fn hold(&mut self, log: File) {
        self.log = Some(log);
    }

    /// Gives the order.
    ///
    /// # Errors
    /// When the shim has ended.
    pub fn start(mut self) -> Result<Launched, LaunchError> {
        self.pipes.send(self.log.as_ref(), &self.channel).map_err(LaunchError::Lost)?;
        self.channel.write_all(&self.line).map_err(LaunchError::Lost)?;
        let reports = Reports::new(self.channel).map_err(LaunchError::Lost)?;
        Ok(Launched { shim: self.shim, reports, spare: self.spare })
    }
}

/// A program that was started, seen from cosched. When it is dropped the shim takes it that
/// cosched is gone.
#[derive(Debug)]
pub struct Launched {
    shim: ShimProcess,
    /// What the shim tells.
    pub reports: Reports,
    spare: Spare,
}

impl Launched {
    /// The shim: the root of the program's tree of processes.
    pub fn shim(&self) -> Process {
        self.shim.process
    }

    /// Lets the program's first process go on, which has reported its number
    /// ([`ShimReport::Forked`]) and waits.
    pub fn is_known(&mut self) {
        self.reports.answer();
    }

    /// Passes labelled outputs on from now on, since the shim was killed.
    pub(crate) fn pass_outputs_on(&mut self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.spare).pass_on()
    }

    /// Takes note of the shim's end, if it has ended; says whether it has. To be called once its
    /// reports have closed, or else a zombie stays until cosched ends.
    ///
    /// # Errors
    /// When the kernel does not know the shim as our child.
    pub fn reap(&mut self) -> io::Result<bool> {
        Ok(self.shim.child.try_wait()?.is_some())
    }

    /// Waits for the end of a shim that has nothing left to do, so that no zombie of it stays. It
    /// does not wait for long, since another process may have stopped the shim.
    pub(crate) fn dismiss(mut self) {
        let until = Instant::now() + PATIENCE;
        while !self.reap().unwrap_or(true) && Instant::now() < until {
            std::thread::sleep(PAUSE);
        }
    }
}

#[derive(Debug)]
struct ShimProcess {
    child: Child,
    process: Process,
}

/// Those that do not go where cosched's own go.
fn open_outputs(stdout: &OutputTo, stderr: &OutputTo) -> Result<[Option<File>; 2], LaunchError> {
    let first = open(stdout).map_err(|source| cannot_open(stdout, source))?;
    let second = match &first {
        Some(file) if stderr == stdout => file.try_clone().map(Some),
        _ => open(stderr),
    };
    Ok([first, second.map_err(|source| cannot_open(stderr, source))?])
}

fn open(output: &OutputTo) -> io::Result<Option<File>> {
    match output {
        OutputTo::Inherit => Ok(None),
        OutputTo::Stderr => Ok(Some(io::stderr().as_fd().try_clone_to_owned()?.into())),
        OutputTo::File { path, append } => open_file(path, *append).map(Some),
    }
}

fn cannot_open(output: &OutputTo, source: io::Error) -> LaunchError {
    let path = match output {
        OutputTo::File { path, .. } => shown(path),
        OutputTo::Inherit | OutputTo::Stderr => PathBuf::from("/dev/stderr"),
    };
    LaunchError::Output { path, source }
}

/// A file in a folder that is held open, by the name that the folder has now.
fn shown(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| folder.starts_with("/proc/self/fd"));
    match folder.and_then(|folder| folder.read_link().ok()).zip(path.file_name()) {
        Some((folder, name)) => folder.join(name),
        None => path.to_owned(),
    }
}

/// Opens a new file, or a pipe or a device, or to add to it one of the user's own. A file that was
/// made meanwhile, by another program say, never loses what is in it. A link could lead to any file
/// where others may write to its folder, so none is followed.
fn open_file(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).append(append);
    match options.clone().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        new => return new,
    }
    // A FIFO without a reader is an error, not a wait.
    let file = options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path)?;
    let found = file.metadata()?;
    let is_own = found.uid() == geteuid().as_raw() && found.nlink() == 1;
    if found.is_file() && !(append && is_own) {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    // The program gets this open file. Few programs expect that a full terminal refuses a write:
    // their output would be lost.
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A write to a full terminal would fail otherwise.
    #[test]
    fn writes_to_a_device_wait_until_it_takes_them() {
        for append in [false, true] {
            let file = open_file(Path::new("/dev/null"), append).unwrap();
            let flags = fcntl_getfl(&file).unwrap();
            assert!(!flags.contains(OFlags::NONBLOCK), "{flags:?}");
            assert_eq!(flags.contains(OFlags::APPEND), append, "{flags:?}");
        }
    }
}
