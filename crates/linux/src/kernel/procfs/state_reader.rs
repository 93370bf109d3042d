//! One thread's state, read again and again.
//!
//! To wait until a program has really stopped means to check each of its threads, over and over,
//! while the clock of the quantum runs. Opening a file of `/proc` costs more than reading it, so
//! the reader keeps it open. The state is in the first bytes, so these go to the stack.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::io::Errno;

use super::stat::state_in;
use super::{Proc, ProcState};
use crate::kernel::files::FileError;

/// Room for the number, a name of 64 bytes (kernel workers have the longest) and the state.
const BEGINNING: usize = 96;

/// Reads one thread's state without allocating.
#[derive(Debug)]
pub(crate) struct StateReader {
    file: File,
}

impl StateReader {
    /// Opens the thread's file. The reader stays with this very thread, even if a later one gets
    /// its number.
    pub(crate) fn open(proc: &Proc, pid: i32, tid: i32) -> Result<StateReader, FileError> {
        let path = proc.folder(pid).join(format!("task/{tid}/stat"));
        match File::open(&path) {
            Ok(file) => Ok(StateReader { file }),
            Err(source) => Err(FileError::io("open", &path, source)),
        }
    }

    /// The state at this moment; [`ProcState::Dead`] once the thread is gone.
    ///
    /// # Errors
    /// The system's error number if the file cannot be read; `INVAL` if it holds no state.
    pub(crate) fn state(&self) -> Result<ProcState, Errno> {
        let mut beginning = [0; BEGINNING];
        match rustix::io::pread(self.file.as_fd(), &mut beginning, 0) {
            Ok(read) => state_in(&beginning[..read]).ok_or(Errno::INVAL),
            Err(Errno::SRCH) => Ok(ProcState::Dead),
            Err(errno) => Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_calling_thread_is_seen_running() {
        let me = rustix::thread::gettid().as_raw_nonzero().get();
        let reader = StateReader::open(&Proc::default(), id() as i32, me).unwrap();
        assert_eq!(reader.state(), Ok(ProcState::Running));
    }

    #[test]
    fn an_ended_process_is_a_zombie_until_it_is_waited_for() {
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id() as i32;
        let reader = StateReader::open(&Proc::default(), pid, pid).unwrap();
        assert!(!reader.state().unwrap().has_ended());
        child.kill().unwrap();
        let ended = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::waitid(rustix::process::WaitId::Pid(pid), ended).unwrap();
        assert_eq!(reader.state(), Ok(ProcState::Zombie));
        child.wait().unwrap();
        assert_eq!(reader.state(), Ok(ProcState::Dead));
    }

    #[test]
    fn a_thread_that_is_gone_cannot_be_opened() {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::spawn(move || sender.send(rustix::thread::gettid()).unwrap());
        let tid = receiver.recv().unwrap().as_raw_nonzero().get();
        thread.join().unwrap();
        let opened = StateReader::open(&Proc::default(), id() as i32, tid);
        // The kernel may still be removing the joined thread: then the file can be opened, and
        // ends.
        if let Ok(reader) = opened {
            while !reader.state().unwrap().has_ended() {
                std::thread::yield_now();
            }
        }
    }
}
