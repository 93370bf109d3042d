//! The last word of an interrupted calibration. What is measured is in a file at any time, so that
//! nothing has to be done before the end, and the command ends at once.

use std::path::PathBuf;
use std::process::exit;
use std::{fs, io, thread};

use cosched_core::Nanos;
use cosched_linux::kernel::clock::Clock;
use cosched_linux::kernel::poll::{Poll, Ready};
use cosched_linux::kernel::signals::{INTERRUPTIONS, interruption, unblock_all_but};
use cosched_workload::shown_path;

use crate::ui::failure::interruption_code;
use crate::ui::say;

/// From now on, a signal that asks this process to end does so after a word about what is kept.
/// Called before other threads are made, which would get the signal.
pub(super) fn tell_what_is_kept(kept: PathBuf) -> io::Result<()> {
    let mut poll = Poll::new(&INTERRUPTIONS.map(|(signal, _)| signal))?;
    let clock = Clock::start();
    let end = move |signal| {
        if fs::metadata(&kept).is_ok_and(|file| file.len() > 0) {
            say(format_args!(
                "interrupted: what is measured is kept in {}; the same command goes on with it",
                shown_path(&kept)
            ));
        }
        exit(interruption(signal).map_or(1, |by| interruption_code(by).into()))
    };
    thread::Builder::new().spawn(move || {
        let mut ready = Vec::new();
        while poll.wait(clock.absolute(Nanos::NEVER), &mut ready).is_ok() {
            for one in ready.drain(..) {
                if let Ready::Signal(signal) = one {
                    end(signal);
                }
            }
        }
        // Without a watcher, signals have their usual effect here.
        let _ = unblock_all_but(None);
        loop {
            thread::park();
        }
    })?;
    Ok(())
}
