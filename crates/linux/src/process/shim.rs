//! The shim: the process with one program in its subtree.
//!
//! A program is one command with *all* its descendants. Without a cgroup, Linux forgets the
//! ancestors of a process as soon as a parent in between ends: the orphan becomes a child of init.
//! If an ancestor is a *child subreaper*, the orphan becomes that ancestor's child instead. Every
//! program therefore gets a small parent of its own that is one. However a program forks, double
//! forks and daemons included, its processes stay below its shim until they end.
//!
//! The shim reads its [order](crate::process::launch), starts the command, and then only reaps: it
//! reports when the command has ended, and when the last descendant has. Where outputs are
//! labelled, it passes them on. It is never frozen. If cosched is gone, the shim stays until the
//! command has ended and the undo log is marked as undone or set aside, or until no process is
//! left. Until then its processes are found below it, and the kernel sends no SIGHUP to those that
//! are stopped, as it does when their parent dies. Orphans then go to init, as they would without
//! cosched. A shim that still passes outputs on stays without them. The shim holds the undo log
//! open, and reads no line of it. If the sentinel and the file's name are gone, too, `cosched
//! recover` [finds](crate::safety::undo::kept_by_shims) the log there.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread::JoinHandle;
use std::time::Duration;

use cosched_core::Nanos;
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_ambient_set, set_capabilities,
};

use crate::kernel::affinity;
use crate::kernel::again::again;
use crate::kernel::clock::{Clock, monotonic};
use crate::kernel::files;
use crate::kernel::poll::{Poll, Ready};
use crate::kernel::procfs::Proc;
use crate::kernel::signals;
use crate::process::children;
use crate::process::fork::{self, Forked};
use crate::process::helper::{self, Helper};
use crate::process::labels::Pipes;
use crate::process::launch::{LaunchOrder, ShimReport, StartStep};
use crate::process::tree::Process;

const CHANNEL: u64 = 0;

/// How long to wait where waiting for children fails.
const PAUSE: Duration = Duration::from_millis(2);
/// When a shim that only waits for the changes to be undone looks whether they are: first after
/// this time, then each time after twice the time before.
const FIRST_LOOK: Nanos = Nanos::from_millis(10);
/// At least this often: if the sentinel was killed, too, it may wait for days.
const LAST_LOOK: Nanos = Nanos::from_secs(1);

/// Tells whether nothing more will be undone after a log that this process holds open.
type IsDoneWith = fn(&File, &Proc) -> bool;

/// Runs the shim until its program and cosched need it no more.
///
/// Has to be the first thing that the process does: it closes every descriptor that it finds.
pub fn main(is_done_with: IsDoneWith) -> ! {
    // An error cannot be reported: cosched sees the socket close.
    let status = if run(is_done_with, &Proc::default()).is_ok() { 0 } else { 1 };
    std::process::exit(status)
}

fn run(is_done_with: IsDoneWith, proc: &Proc) -> io::Result<()> {
    let channel = helper::begin(Helper::Shim)?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let poll = Poll::new(&[libc::SIGCHLD])?;
    poll.add(channel.as_fd(), CHANNEL)?;

    let Some((ends, log)) = Pipes::receive(&channel)? else { return Ok(()) };
    let mut line = String::new();
    BufReader::new(&channel).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Ok(()); // cosched was gone before it gave its order: nothing has begun.
    }
    let order: LaunchOrder = serde_json::from_str(&line)?;
    let started = start(&order, ends, &channel, proc);
    // A shim that keeps them does its work, too.
    let _ = give_up_capabilities();
    let log = log.map(File::from);
    let mut shim = Shim { channel, poll, log, is_done_with, cosched_is_there: true };
    match started {
        Ok((main, outputs)) => {
            let watched = shim.watch(main, proc);
            // Whatever outlives the command may still write.
            let _ = leave_to_init();
            outputs.into_iter().for_each(|thread| _ = thread.join());
            watched
        }
        Err((step, error)) => {
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            shim.report(&ShimReport::Failed { step, errno });
            Ok(())
        }
    }
}

/// Gives up the capabilities of the executable. Only processes that have as many could look at the
/// log that the shim holds, and once the program is started, the shim needs none. Ambient ones are
/// the user's own: the program gets them, too.
fn give_up_capabilities() -> io::Result<()> {
    let found = capabilities(None)?;
    let is_ambient = |one| capability_is_in_ambient_set(one).unwrap_or(false);
    if rustix::process::geteuid().is_root() || found.permitted.iter().any(is_ambient) {
        return Ok(());
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, ..found })?;
    Ok(())
}

/// Leaves orphans to init from now on. Children that the shim has are reaped by the kernel.
fn leave_to_init() -> io::Result<()> {
    rustix::process::set_child_subreaper(None)?;
    signals::ignore(Signal::CHILD)?;
    // The kernel does not reap children that ended before.
    while rustix::process::wait(WaitOptions::NOHANG)?.is_some() {}
    Ok(())
}

struct Shim {
    channel: UnixStream,
    poll: Poll,
    log: Option<File>,
    is_done_with: IsDoneWith,
    cosched_is_there: bool,
}

impl Shim {
    /// Reaps until no process is left, or until the command has ended, cosched is gone, and all
    /// changes are undone.
    fn watch(&mut self, main: Pid, proc: &Proc) -> io::Result<()> {
        let pid = main.as_raw_nonzero().get();
        let process = again(|| Process::find(proc, pid)).map_err(io::Error::other)?;
        self.report(&ShimReport::Started { at: Nanos(monotonic()), process });
        // The shim must not hold open what the program closes, nor its working directory.
        again(helper::drop_outputs)?;
        again(|| std::env::set_current_dir("/"))?;

        let (mut main_runs, mut look) = (true, FIRST_LOOK);
        while main_runs || self.cosched_is_there || self.changes_are_left(proc) {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == main => {
                    main_runs = false;
                    let (at, exit) = (Nanos(monotonic()), children::exit_of(status.as_raw()));
                    let usage = again(children::usage_of_all)?;
                    self.report(&ShimReport::Exited { at, exit, usage });
                }
                Ok(Some(_)) => {}
                Ok(None) if main_runs || self.cosched_is_there => self.sleep(Nanos::NEVER)?,
                Ok(None) => {
                    self.sleep(look)?;
                    look = Nanos(2 * look.0).min(LAST_LOOK);
                }
                Err(rustix::io::Errno::CHILD) => {
                    let at = Nanos(monotonic());
                    self.report(&ShimReport::Gone { at, usage: again(children::usage_of_all)? });
                    break;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Whether the sentinel, or `recover`, has still to undo something.
    fn changes_are_left(&self, proc: &Proc) -> bool {
        self.log.as_ref().is_some_and(|log| !(self.is_done_with)(log, proc))
    }

    /// Waits until a child has ended or cosched is gone, but not longer than this.
    fn sleep(&mut self, most: Nanos) -> io::Result<()> {
        let mut ready = Vec::new();
        if self.poll.wait(Clock::start().absolute(most), &mut ready).is_err() {
            // The signal may be taken already, so its cause is looked for.
            std::thread::sleep(PAUSE);
        }
        if ready.contains(&Ready::Source(CHANNEL))
            && !matches!(again(|| self.channel.read(&mut [0; 64])), Ok(1..))
        {
            again(|| self.poll.remove(self.channel.as_fd()))?;
            self.cosched_is_there = false;
        }
        Ok(())
    }

    fn report(&self, report: &ShimReport) {
        tell(&self.channel, report);
    }
}

/// Reports to cosched. If cosched is gone, this is no error here; [`Shim::sleep`] notices it.
fn tell(mut channel: &UnixStream, report: &ShimReport) {
    let mut line = serde_json::to_vec(report).unwrap_or_default();
    line.push(b'\n');
    let mut left = &line[..];
    // Without memory, the kernel takes nothing for a moment.
    let _ = again(|| {
        while !left.is_empty() {
            left = &left[channel.write(left)?..];
        }
        io::Result::Ok(())
    });
}

/// In the child: reports its number to cosched, and waits until that is in the undo log. So nothing
/// runs that the log does not know, even if cosched, its sentinel and this shim are killed
/// together. If cosched is gone, nothing starts.
fn wait_until_known(mut channel: &UnixStream, proc: &Proc) -> io::Result<()> {
    let pid = std::process::id() as i32;
    let process = again(|| Process::find(proc, pid)).map_err(io::Error::other)?;
    tell(channel, &ShimReport::Forked { process });
    again(|| channel.read_exact(&mut [0]))
}

/// The step that failed, and why.
type FailedStep = (StartStep, io::Error);

/// Starts the command; returns when it executes its own first instruction, with the threads that
/// pass labelled outputs on.
fn start(
    order: &LaunchOrder,
    ends: Vec<OwnedFd>,
    channel: &UnixStream,
    proc: &Proc,
) -> Result<(Pid, Vec<JoinHandle<()>>), FailedStep> {
    std::env::set_current_dir(&order.cwd).map_err(|error| (StartStep::Directory, error))?;
    let failed = |error| (StartStep::Command, error);
    let (reader, writer) = UnixStream::pair().map_err(failed)?;
    let pipes = Pipes::of(&order.labels, ends).map_err(failed)?;
    // SAFETY: the shim has a single thread.
    match unsafe { fork::into_cgroup(order.born_in.as_deref()) }.map_err(failed)? {
        Forked::Child { born_in } => {
            let (step, error) = match wait_until_known(channel, proc) {
                Ok(()) => become_the_command(order, born_in, &pipes),
                Err(error) => (StartStep::Command, error),
            };
            let errno = error.raw_os_error().unwrap_or(libc::EIO);
            let _ = serde_json::to_writer(&writer, &(step, errno));
            fork::end()
        }
        Forked::Parent { child } => {
            drop(writer);
            let begun = hear(reader).and_then(|()| pipes.pass_on().map_err(failed));
            if begun.is_err() {
                // It has failed, whatever it is about to do.
                let _ = rustix::process::kill_process(child, Signal::KILL);
                let _ = rustix::process::waitpid(Some(child), WaitOptions::empty());
            }
            begun.map(|outputs| (child, outputs))
        }
    }
}

/// Waits until the child has executed the command, which closes its end of the socket, or has
/// reported an error.
fn hear(mut reader: UnixStream) -> Result<(), FailedStep> {
    let mut all = Vec::new();
    reader.read_to_end(&mut all).map_err(|error| (StartStep::Command, error))?;
    if all.is_empty() {
        return Ok(());
    }
    let (step, errno) = serde_json::from_slice(&all).unwrap_or((StartStep::Command, libc::EIO));
    Err((step, io::Error::from_raw_os_error(errno)))
}

/// In the child: executes the command, or returns the error.
fn become_the_command(order: &LaunchOrder, born_in: bool, pipes: &Pipes) -> FailedStep {
    if let Err(failed) = prepare(order, born_in) {
        return failed;
    }
    if let Err(error) = pipes.write_into() {
        return (StartStep::Command, error);
    }
    let mut command = Command::new(&order.executable);
    if let Some((name, arguments)) = order.argv.split_first() {
        command.arg0(name).args(arguments);
    }
    if let Some(stdin) = &order.stdin {
        // A terminal must not become that of the program's session.
        match File::options().read(true).custom_flags(libc::O_NOCTTY).open(stdin) {
            Ok(file) => command.stdin(file),
            Err(error) => return (StartStep::Input, error),
        };
    }
    // Otherwise its standard input is the shim's, which is nothing.
    command.env_clear().envs(order.env.iter().map(|(key, value)| (key, value)));
    if !order.new_session {
        command.process_group(0);
    }
    signals::set_in(&mut command, order.ignored.clone());
    (StartStep::Command, command.exec())
}

/// Before `exec`: everything that must hold from the command's first instruction on.
fn prepare(order: &LaunchOrder, born_in: bool) -> Result<(), FailedStep> {
    let own = order.born_in.iter().filter(|_| !born_in).map(|dir| dir.join("cgroup.procs"));
    for procs in own.chain(order.cgroups.iter().cloned()) {
        // 0 means the writing process.
        files::write(&procs, "0").map_err(|error| {
            // Only a number travels from the child to its parent.
            let errno = error.errno().unwrap_or(libc::EIO);
            (StartStep::Cgroup, io::Error::from_raw_os_error(errno))
        })?;
    }
    if let Some(cpus) = &order.cpus {
        affinity::set(0, cpus).map_err(|error| (StartStep::Cpus, error.into()))?;
    }
    if let Some(limit) = order.open_files {
        limit.set().map_err(|error| (StartStep::Command, error.into()))?;
    }
    if order.new_session {
        rustix::process::setsid().map_err(|error| (StartStep::Session, error.into()))?;
    }
    signals::reset(&order.ignored).map_err(|error| (StartStep::Command, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(bytes: &[u8]) -> Result<(), (StartStep, Option<i32>)> {
        let (reader, mut writer) = UnixStream::pair().unwrap();
        writer.write_all(bytes).unwrap();
        drop(writer);
        hear(reader).map_err(|(step, error)| (step, error.raw_os_error()))
    }

    #[test]
    fn the_step_that_failed_is_heard_with_its_error() {
        let failed = (StartStep::Cgroup, libc::EBUSY);
        let told = serde_json::to_vec(&failed).unwrap();
        assert_eq!(heard(&told), Err((StartStep::Cgroup, Some(libc::EBUSY))));
        assert_eq!(heard(b""), Ok(()));
        assert_eq!(heard(&told[..5]), Err((StartStep::Command, Some(libc::EIO))));
    }
}
