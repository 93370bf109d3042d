//! The effect of signals on this process and the programs that it starts, and which signals request
//! its end.
//!
//! Ignored signals and the mask of blocked ones survive `exec`. A helper that ignores signals of
//! the terminal therefore has to undo that before it becomes a user's program.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use cosched_core::Interruption;
use rustix::process::Signal;

/// The signals that would end cosched at once without a handler, by their numbers.
pub const INTERRUPTIONS: [(i32, Interruption); 7] = [
    (libc::SIGINT, Interruption::Interrupt),
    (libc::SIGQUIT, Interruption::Quit),
    (libc::SIGHUP, Interruption::Hangup),
    (libc::SIGTERM, Interruption::Terminate),
    (libc::SIGUSR1, Interruption::User1),
    (libc::SIGUSR2, Interruption::User2),
    (libc::SIGALRM, Interruption::Alarm),
];

/// The kernel's `struct sigaction` for the default effect: handler, flags, restorer and mask are
/// zero.
const DEFAULT_ACTION: [u64; 4] = [0; 4];
/// The `struct sigaction` that ignores a signal.
const IGNORING_ACTION: [u64; 4] = [libc::SIG_IGN as u64, 0, 0, 0];

const LAST: i32 = 64;

/// The signals that this process ignored when it was started, one [`bit`] each.
static IGNORED_AT_START: AtomicU64 = AtomicU64::new(0);

/// The meaning of a signal, if it is one of [`INTERRUPTIONS`].
pub fn interruption(signal: i32) -> Option<Interruption> {
    INTERRUPTIONS.iter().find(|(number, _)| *number == signal).map(|(_, by)| *by)
}

/// The number of a signal.
pub fn number(by: Interruption) -> Option<i32> {
    INTERRUPTIONS.iter().find(|(_, one)| *one == by).map(|(number, _)| *number)
}

/// The signals that this process ignored when it was started, because its caller did (`nohup`). The
/// programs that it starts ignore them, too.
pub fn ignored() -> Vec<i32> {
    let found = IGNORED_AT_START.load(Ordering::Relaxed);
    (1..=LAST).filter(|signal| found & bit(*signal) != 0).collect()
}

/// Records which signals are ignored. Rust's runtime ignores SIGPIPE before `main`, and cosched
/// handles others in `main`, so this has to come earlier.
pub(crate) fn record_ignored() {
    let found = (1..=LAST).filter(|signal| is_ignored(*signal)).map(bit);
    IGNORED_AT_START.store(found.fold(0, |all, one| all | one), Ordering::Relaxed);
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

pub(crate) fn is_ignored(signal: i32) -> bool {
    let mut action = DEFAULT_ACTION;
    // SAFETY: nothing is changed, and the kernel writes the four words of the action. The C library
    // would refuse 32 and 33.
    let read = unsafe {
        let (none, size) = (std::ptr::null::<u64>(), size_of::<u64>());
        libc::syscall(libc::SYS_rt_sigaction, signal, none, action.as_mut_ptr(), size)
    };
    read == 0 && action[0] == IGNORING_ACTION[0]
}

/// Ignores a signal in this process.
pub(crate) fn ignore(signal: Signal) -> io::Result<()> {
    // SAFETY: SIG_IGN is no function, so no code of ours can run in a handler.
    unsafe { handle(signal.as_raw(), libc::SIG_IGN) }
}

/// Makes the ends of children arrive as signals, even if the caller ignored them.
///
/// # Errors
/// When the kernel refuses.
pub fn hear_of_children() -> io::Result<()> {
    // SAFETY: SIG_DFL is no function.
    unsafe { handle(libc::SIGCHLD, libc::SIG_DFL) }
}

/// Makes a write fail in a file that grows beyond the user's limit (`ulimit -f`), instead of ending
/// this process.
///
/// # Errors
/// When the kernel refuses.
pub fn outlive_file_size_limit() -> io::Result<()> {
    extern "C" fn nothing(_: libc::c_int) {}
    // Not ignored: programs would inherit that. They do not inherit a handler.
    // SAFETY: the handler does nothing, so it may run at any time.
    unsafe { handle(libc::SIGXFSZ, nothing as *const () as libc::sighandler_t) }
}

/// # Safety
/// The handler, if it is a function, may run at any time.
unsafe fn handle(signal: i32, handler: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: as the caller promises.
    match unsafe { libc::signal(signal, handler) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Sends a signal to one thread of a process. Returns whether the thread was there and the caller
/// may.
pub(crate) fn send_to_thread(pid: i32, tid: i32, signal: Signal) -> bool {
    // SAFETY: the call takes three numbers and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_tgkill, pid, tid, signal.as_raw()) == 0 }
}

/// Gives every signal its default effect, except for some that are ignored, and blocks none, as a
/// program expects at its start.
///
/// Allocates nothing and takes no lock, so it may run between `fork` and `exec`.
pub(crate) fn reset(ignored: &[i32]) -> io::Result<()> {
    for signal in (1..=libc::SIGRTMAX()).filter(|signal| !ignored.contains(signal)) {
        set_action(signal, &DEFAULT_ACTION);
    }
    ignore_all(ignored);
    unblock()
}

/// Ignores these signals, which this process may handle until now. As safe between `fork` and
/// `exec` as [`reset`].
pub(crate) fn ignore_all(signals: &[i32]) {
    signals.iter().for_each(|signal| set_action(*signal, &IGNORING_ACTION));
}

fn set_action(signal: i32, action: &[u64; 4]) {
    // SAFETY: the kernel reads the action, of which all four words are there, and writes nothing.
    // The action runs no code of ours. The kernel refuses KILL and STOP, which are at their
    // default. The C library would refuse 32 and 33, too.
    unsafe {
        let (none, set) = (std::ptr::null_mut::<u64>(), size_of::<u64>());
        libc::syscall(libc::SYS_rt_sigaction, signal, action.as_ptr(), none, set);
    }
}

/// Has what this command will start ignore these signals, and block none, whatever the caller waits
/// for by then (see [`poll`](crate::kernel::poll)). A [`Command`] by itself gives SIGPIPE its
/// default effect.
pub fn set_in(command: &mut Command, ignored: Vec<i32>) -> &mut Command {
    let set = move || {
        ignore_all(&ignored);
        unblock()
    };
    // SAFETY: between `fork` and `exec` this makes system calls only; it allocates nothing and
    // takes no lock.
    unsafe { command.pre_exec(set) }
}

/// Blocks no signal; the rest stays as it is. Allocates nothing and takes no lock, so it may run
/// between `fork` and `exec`.
///
/// # Errors
/// When the kernel refuses to change the mask.
pub fn unblock() -> io::Result<()> {
    unblock_all_but(None)
}

/// Blocks only this signal, or none; the rest is as in [`unblock`].
///
/// # Errors
/// When the kernel refuses to change the mask.
pub fn unblock_all_but(blocked: Option<i32>) -> io::Result<()> {
    mask(libc::SIG_SETMASK, &set_of(blocked)?).map(drop)
}

pub(crate) fn set_of(signals: impl IntoIterator<Item = i32>) -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            if libc::sigaddset(set.as_mut_ptr(), signal) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(set.assume_init())
    }
}

/// The signals that are blocked and have come.
pub(crate) fn pending() -> io::Result<libc::sigset_t> {
    let mut found = MaybeUninit::uninit();
    // SAFETY: the call writes `found`, which is read only if it succeeded.
    unsafe {
        match libc::sigpending(found.as_mut_ptr()) {
            0 => Ok(found.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Changes the mask of the calling thread, `how` as in `pthread_sigmask`. Returns the previous one.
pub(crate) fn mask(how: i32, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut found = MaybeUninit::uninit();
    // SAFETY: the call reads `set`, and writes `found`, which is read only if it succeeded.
    unsafe {
        match libc::pthread_sigmask(how, set, found.as_mut_ptr()) {
            0 => Ok(found.assume_init()),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `Command` itself resets SIGPIPE, and a handler is replaced by the default at `exec`.
    #[test]
    fn a_started_command_ignores_the_given_signals() {
        let given = [libc::SIGPIPE, libc::SIGXFSZ, libc::SIGTTOU, libc::SIGCHLD];
        let mut command = Command::new("sed");
        command.args(["-n", "s/^SigIgn:\t//p", "/proc/self/status"]);
        let output = set_in(&mut command, given.to_vec()).output().unwrap();
        let mask = String::from_utf8(output.stdout).unwrap();
        let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
        for signal in given {
            assert_ne!(mask & bit(signal), 0, "{signal}: {mask:x}");
        }
    }
}
