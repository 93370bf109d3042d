//! The sentinel: the process that undoes everything if cosched cannot.
//!
//! A killed process cleans up nothing. Before cosched changes anything, it therefore starts a
//! process that only waits at the other end of a socket. The kernel closes cosched's end however
//! cosched ends: exit, panic, SIGKILL, out of memory. If no goodbye came before, the sentinel reads
//! the [undo log](crate::safety::undo) and restores everything. It can do so at once even while
//! every CPU is busy, since a thread that has slept long is served first. It holds the log open, so
//! that it works even when the file was removed.
//!
//! The sentinel must survive what kills cosched. It is in a session of its own, ignores what
//! terminals send, has another name, and holds nothing else open. It leaves cosched's cgroup where
//! it may, because systemd ends services and scopes by killing a cgroup. If it is killed
//! nevertheless, its end of the socket closes, and cosched can start another. cosched also replaces
//! a sentinel that is stopped or frozen.
//!
//! A cosched that another process *stops* (SIGSTOP, a debugger) is alive and thaws no program. A
//! cosched that is *stuck*, and misses a `heartbeat`, thaws no program either. The sentinel
//! therefore checks now and then, and thaws every program, with the same weight, while cosched is
//! stopped or stuck. Nothing else is undone then. The sentinel reports when it did so, and cosched
//! resumes from there when it continues.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use cosched_core::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::clients::onlookers;
use crate::kernel::again::again;
use crate::kernel::clock::monotonic;
use crate::kernel::procfs::{Proc, ProcState, Stat};
use crate::process::helper::{self, Helper, HelperError};
use crate::safety::heartbeat::Heartbeat;
use crate::safety::refuge::Refuge;
use crate::safety::undo::{self, KeptLog, Log};

/// What cosched sends when everything is undone.
const GOODBYE: u8 = b'.';
/// What the sentinel sends when it is ready.
const ON_GUARD: u8 = b'!';
/// The length of the report that every program was thawed: when, on the kernel's monotonic clock.
const NEWS: usize = size_of::<u64>();
const CHECK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// How often to check whether a process still listens at a killed cosched's sockets, and the time
/// between two checks.
const SOCKET_CHECKS: usize = 100;
/// How often to check whether a killed sentinel has ended; one that is frozen does not.
const END_CHECKS: usize = 100;
const BETWEEN_CHECKS: Duration = Duration::from_millis(10);
/// Far longer than a process takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often the first sentinel of a run is started at most.
const STARTS: usize = 3;
/// How often the end of a dismissed sentinel is waited for, and how long each time.
const LOOKS: usize = 20;
const LOOK: Duration = Duration::from_millis(100);

/// The sentinel, seen from cosched. When it is dropped without [`Sentinel::goodbye`], the sentinel
/// assumes that cosched has failed, and undoes all changes.
#[derive(Debug)]
pub struct Sentinel {
    child: Child,
    channel: UnixStream,
    heartbeat: Heartbeat,
}

impl Sentinel {
    /// Starts the sentinel of a log, from an executable that has to call
    /// [`become_one_if_asked`](crate::helpers::become_one_if_asked) first; normally
    /// [`helper::OWN_EXECUTABLE`]. It is ready when this returns.
    ///
    /// # Errors
    /// When no process can be made, or it does not answer.
    pub fn spawn(executable: &Path, log: &Log) -> Result<Sentinel, HelperError> {
        let failed = |source| HelperError { executable: executable.to_owned(), source };
        let mut tries = 0;
        loop {
            tries += 1;
            match Task::new(log).map_err(failed)?.begin(executable, PATIENCE) {
                Ok(sentinel) => return Ok(sentinel),
                Err(NotBegun { error, .. }) if tries == STARTS => return Err(error),
                // Another process may have ended or stopped it.
                Err(_) => {}
            }
        }
    }

    fn await_guard(&mut self, patience: Duration) -> io::Result<()> {
        self.channel.set_read_timeout(Some(patience))?;
        self.channel.read_exact(&mut [0]).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::Error::other("it does not answer"),
            io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => {
                io::Error::other("it has ended at once")
            }
            _ => error,
        })?;
        self.channel.set_nonblocking(true)
    }

    /// The number of its process.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Notes that cosched waits, until this time on the kernel's monotonic clock at most.
    pub(crate) fn waits_until(&self, at: Nanos) {
        self.heartbeat.waits_until(at);
    }

    /// Notes that cosched works: to be called more often than every half second.
    pub(crate) fn works(&self) {
        self.heartbeat.works();
    }

    /// Whether it does not work, since it is stopped, or frozen: then another is needed.
    pub(crate) fn is_held_up(&self, proc: &Proc) -> bool {
        let is_stopped = |stat: Stat| stat.state == ProcState::Stopped;
        self.heartbeat.is_unwatched() || proc.stat(self.pid()).is_ok_and(is_stopped)
    }

    /// Dismisses a sentinel that works; returns the process, to be waited for.
    pub(crate) fn retire(mut self) -> Child {
        let _ = self.channel.write_all(&[GOODBYE]);
        self.child
    }

    /// Dismisses a sentinel that does not work; returns the process, to be waited for.
    pub(crate) fn dismiss(mut self) -> Child {
        // If it is frozen, it reads this before it sees that the socket is closed, and undoes
        // nothing.
        let _ = self.channel.write_all(&[GOODBYE]);
        let _ = self.child.kill();
        self.child
    }

    /// All its reports that were not read yet; to be called when it is readable, otherwise there
    /// are none.
    ///
    /// # Errors
    /// When the kernel does not know it as a child.
    pub fn hear(&mut self) -> io::Result<SentinelNews> {
        let mut heard = SentinelNews::default();
        let mut news = [0; NEWS];
        loop {
            // The kernel delivers whole what was written whole.
            match self.channel.read(&mut news) {
                Ok(NEWS) => {
                    let at = Nanos(u64::from_le_bytes(news));
                    heard.thawed = Some((heard.thawed.map_or(at, |(first, _)| first), at));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if is_for_now(&error) => return Ok(heard),
                Ok(_) | Err(_) => {
                    heard.has_ended = true;
                    self.child.try_wait()?;
                    return Ok(heard);
                }
            }
        }
    }

    /// Waits for its end, if that has come.
    pub(crate) fn reap(&mut self) {
        let _ = self.child.try_wait();
    }

    /// Dismisses the sentinel: everything is undone. Waits a little for its end, so that it leaves
    /// no trace. One that does not work is killed. Returns whether it ended by itself.
    pub fn goodbye(mut self, proc: &Proc) -> bool {
        let ready = self.channel.set_nonblocking(false);
        let ready = ready.and_then(|()| self.channel.set_read_timeout(Some(LOOK)));
        let mut asked = ready.and_then(|()| self.channel.write_all(&[GOODBYE]));
        for _ in 0..LOOKS {
            // Its end closes the socket.
            match asked.and_then(|()| self.channel.read(&mut [0; NEWS])) {
                Ok(0) => return self.child.wait().is_ok_and(|status| status.success()),
                Err(error) if is_for_now(&error) && !self.is_held_up(proc) => {}
                Err(_) => break,
                Ok(_) => {}
            }
            asked = Ok(());
        }
        end(&mut self.child);
        false
    }
}

/// What a sentinel needs to begin. It may begin in another thread than the one that writes the log.
#[derive(Debug)]
pub(crate) struct Task {
    path: PathBuf,
    file: File,
    memory: File,
}

impl Task {
    /// The guard over a log as it is now.
    pub(crate) fn new(log: &Log) -> io::Result<Task> {
        // The log itself is passed, too: another process may remove the file.
        let path = std::path::absolute(log.path())?;
        Ok(Task { path, file: log.file()?, memory: log.memory()? })
    }

    /// Starts the sentinel. It is ready when this returns.
    pub(crate) fn begin(self, executable: &Path, patience: Duration) -> Result<Sentinel, NotBegun> {
        let failed = |source| HelperError { executable: executable.to_owned(), source };
        // Not as an argument: `pkill -f cosched` must not find it there.
        let path = [self.path.as_os_str().as_bytes(), &[0]].concat();
        let heartbeat = Heartbeat::new(self.memory);
        let outputs = [self.file.into(), heartbeat.memory().map_err(failed)?.into()];
        let (child, channel) = helper::spawn(executable, Helper::Sentinel, outputs, &path)?;
        let mut sentinel = Sentinel { child, channel, heartbeat };
        if let Err(error) = sentinel.await_guard(patience) {
            // A stopped one would stay.
            let left = (!end(&mut sentinel.child)).then_some(sentinel.child);
            return Err(NotBegun { error: failed(error), left });
        }
        Ok(sentinel)
    }
}

/// Why a sentinel did not begin.
#[derive(Debug)]
pub(crate) struct NotBegun {
    pub(crate) error: HelperError,
    /// Its process, which was killed and has not ended, since it is frozen.
    pub(crate) left: Option<Child>,
}

impl From<HelperError> for NotBegun {
    fn from(error: HelperError) -> NotBegun {
        NotBegun { error, left: None }
    }
}

/// What cosched learns from the sentinel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentinelNews {
    /// When it thawed every program, since cosched was stopped, for the first and the last time: on
    /// the kernel's monotonic clock. It does so again and again until cosched goes on.
    pub thawed: Option<(Nanos, Nanos)>,
    /// It has ended, so another is needed.
    pub has_ended: bool,
}

/// Readable (for epoll) when there is something to [hear](Sentinel::hear).
impl AsFd for Sentinel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

/// Kills a sentinel, and waits for its end, if it can end. Returns whether it has ended.
fn end(child: &mut Child) -> bool {
    let _ = child.kill();
    for _ in 0..END_CHECKS {
        if !matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        std::thread::sleep(BETWEEN_CHECKS);
    }
    false
}

/// Runs the sentinel until cosched has ended.
///
/// Has to be the first thing that the process does: it closes every descriptor that it finds.
pub fn main() -> ! {
    // An error cannot be reported: changes that could not be undone stay in the log.
    let status = if guard(&Proc::default()).is_ok() { 0 } else { 1 };
    std::process::exit(status)
}

fn guard(proc: &Proc) -> io::Result<()> {
    let mut channel = helper::begin(Helper::Sentinel)?;
    rustix::process::setsid()?;
    std::env::set_current_dir("/")?;
    let (file, memory) = outputs()?;
    let shared = Some(memory.try_clone()?);
    let log = KeptLog { path: read_path(&mut channel)?, file, memory: shared };
    let heartbeat = Heartbeat(memory);
    // Its parent is another process if cosched is gone already.
    let cosched = undo::owner(&log.path).map_or_else(parent, |owner| owner.pid);
    let refuge = Refuge::enter(proc);
    // If cosched is gone already, the next read shows it.
    let _ = channel.write_all(&[ON_GUARD]);
    // A cosched that is stopped for hours reads nothing: reports that do not fit any more are
    // dropped.
    channel.set_nonblocking(true)?;
    let said_goodbye = wait_for_the_end(&mut channel, &log, &heartbeat, cosched, proc);
    let result = if said_goodbye { Ok(()) } else { undo_all(&log, proc) };
    refuge.leave();
    if let (false, Some(folder)) = (said_goodbye, log.path.parent()) {
        remove_sockets(folder, cosched as u32);
    }
    result
}

/// Waits until cosched has ended, and thaws everything while it is stopped or stuck. Returns
/// whether it said goodbye.
fn wait_for_the_end(
    channel: &mut UnixStream,
    log: &KeptLog,
    heartbeat: &Heartbeat,
    cosched: i32,
    proc: &Proc,
) -> bool {
    let mut last_word = [0];
    loop {
        heartbeat.checks();
        match poll(&mut [PollFd::new(channel, PollFlags::IN)], Some(&CHECK_EVERY)) {
            // A process that cosched was starting when it was killed, and that is held up, keeps
            // the socket open.
            Ok(0) if parent() != cosched => return false,
            Ok(0) => {
                if is_held_up(cosched, heartbeat, proc) {
                    // A log that cannot be read now is tried again at the next check.
                    if let Ok(journal) = again(|| log.load(proc)) {
                        // A program with little left to do may have ended before all of them run.
                        let since = monotonic();
                        undo::thaw(&journal, proc);
                        let _ = channel.write(&since.to_le_bytes());
                    }
                }
                continue;
            }
            Err(Errno::INTR) => continue,
            // Reading reports the error, if not at once.
            Err(_) => std::thread::sleep(BETWEEN_CHECKS),
            Ok(_) => {}
        }
        match channel.read(&mut last_word) {
            Ok(0) => return false,
            Ok(_) => return last_word[0] == GOODBYE,
            Err(error) if is_for_now(&error) => {}
            // An error is not the end: a cosched that lives undoes its changes itself.
            Err(_) if proc.stat(cosched).is_ok_and(|stat| !stat.has_ended()) => {
                std::thread::sleep(BETWEEN_CHECKS);
            }
            Err(_) => return false,
        }
    }
}

/// The number of the parent, which is cosched until it has ended.
fn parent() -> i32 {
    rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get())
}

/// Whether cosched thaws no program: it is stopped, or stuck.
fn is_held_up(cosched: i32, heartbeat: &Heartbeat, proc: &Proc) -> bool {
    let stopped = |stat: Stat| matches!(stat.state, ProcState::Stopped | ProcState::Traced);
    heartbeat.is_missed() || proc.stat(cosched).is_ok_and(stopped)
}

/// Whether there is just nothing to read.
fn is_for_now(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

fn undo_all(log: &KeptLog, proc: &Proc) -> io::Result<()> {
    let journal = again(|| log.load(proc))?;
    let restored = undo::restore(&journal, proc);
    // Changes that could not be undone stay in the log, for another attempt later; so does a
    // damaged log, for `recover` to report.
    if !restored.failed.is_empty() || journal.damaged_lines() > 0 {
        return log.keep_memory();
    }
    again(|| log.forget()).map_err(io::Error::other)
}

/// The files that cosched has passed as the standard outputs, which are closed: the log, and the
/// memory with the heartbeat and further lines of the log.
fn outputs() -> io::Result<(File, File)> {
    let log = io::stdout().as_fd().try_clone_to_owned()?;
    let memory = io::stderr().as_fd().try_clone_to_owned()?;
    helper::drop_outputs()?;
    Ok((log.into(), memory.into()))
}

/// Removes the sockets of a cosched that has been killed. The kernel may close them a moment after
/// the channel. A socket at which a process listens for longer belongs to another process.
fn remove_sockets(folder: &Path, cosched: u32) {
    for _ in 0..SOCKET_CHECKS {
        if !onlookers::is_run_heard(folder, cosched) {
            break;
        }
        std::thread::sleep(BETWEEN_CHECKS);
    }
    onlookers::remove_left(folder, cosched);
}

/// A path, ended by a zero byte. The end of the stream means that cosched died before it had one.
fn read_path(channel: &mut UnixStream) -> io::Result<PathBuf> {
    let (mut path, mut byte) = (Vec::new(), [0]);
    loop {
        channel.read_exact(&mut byte)?;
        if byte[0] == 0 {
            return Ok(PathBuf::from(std::ffi::OsString::from_vec(path)));
        }
        path.push(byte[0]);
    }
}
