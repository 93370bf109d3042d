//! What cosched learns from its sentinel and its log: whether programs were thawed meanwhile,
//! whether another sentinel is needed, and whether the disk is full.

use std::os::fd::AsFd;

use super::config::Note;
use super::{Linux, MachineError, SENTINEL};
use crate::safety::sentinel::Sentinel;

impl Linux {
    /// Says that the log is kept in memory, if that is new.
    pub(super) fn tell_of_the_log(&mut self) {
        if let Some(refusal) = self.log.refusal() {
            let text = format!("{refusal}; it is kept in memory until there is room");
            let _ = self.notes.send(Note { program: None, text, is_error: true });
        }
    }

    /// Learns whether the sentinel has thawed all programs since cosched was stopped, and replaces
    /// a sentinel that has ended.
    pub(super) fn hear_sentinel(&mut self) -> Result<(), MachineError> {
        let heard = self.sentinel.hear()?;
        for at in heard.thawed {
            self.was_stopped(self.clock.of_monotonic(at));
        }
        // A sentinel that holds an old file of the log is replaced.
        let has_moved = self.log.has_moved();
        if heard.has_ended {
            self.relieve_sentinel()?.dismiss();
        } else if has_moved {
            // If it cannot be reached, it has ended already.
            let _ = self.relieve_sentinel()?.goodbye();
        }
        if has_moved {
            self.log.forget_former();
        }
        Ok(())
    }

    /// Replaces a sentinel that does not work.
    pub(super) fn look_at_sentinel(&mut self) -> Result<(), MachineError> {
        if self.sentinel.is_held_up(&self.proc) {
            self.relieve_sentinel()?.dismiss();
        }
        Ok(())
    }

    /// Starts another sentinel; returns the old one.
    fn relieve_sentinel(&mut self) -> Result<Sentinel, MachineError> {
        self.poll.remove(self.sentinel.as_fd())?;
        let relief = Sentinel::spawn(&self.executable, &self.log)?;
        let relieved = std::mem::replace(&mut self.sentinel, relief);
        self.poll.add(self.sentinel.as_fd(), SENTINEL)?;
        Ok(relieved)
    }
}
