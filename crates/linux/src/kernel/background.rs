//! A thread beside the scheduling one, for work that may be late: showing a run to clients.
//!
//! Two properties of the scheduling thread it must not share. *Signals*: Ctrl-C has to reach
//! cosched as data ([`poll`](crate::kernel::poll)), and a signal to the process goes to any thread
//! that has not blocked it. The background thread therefore blocks all signals, from before its
//! first instruction on. *Scheduling*: what makes cosched punctual would make its background
//! punctual at the programs' expense. The thread has to be started before the machine, so that it
//! keeps the caller's original scheduling.

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

use crate::kernel::signals;

/// Starts a thread that no signal reaches, scheduled as the caller is now.
///
/// # Errors
/// When the kernel gives no further thread.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let found = signals::mask(libc::SIG_SETMASK, &all_signals())?;
    let spawned = Builder::new().name(name.to_owned()).spawn(work);
    signals::mask(libc::SIG_SETMASK, &found)?;
    spawned
}

fn all_signals() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises the set.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        all.assume_init()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// The signals that the calling thread has blocked, one bit each.
    fn blocked() -> u64 {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn background_threads_block_signals_and_the_caller_does_not() {
        let (found, (sender, receiver)) = (blocked(), channel());
        let thread = spawn("test", move || sender.send(blocked()).unwrap()).unwrap();
        thread.join().unwrap();
        let inside = receiver.recv().unwrap();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGCHLD, libc::SIGTSTP] {
            assert!(inside & 1 << (signal - 1) != 0, "{signal}");
        }
        assert_eq!(blocked(), found);
    }
}
