//! Phases of programs, which need samples from a program's first instruction on.

use std::os::fd::AsFd;

use cosched_core::format::count;
use cosched_core::{Measure, ProgramId};

use super::{Linux, Note, SAMPLES};
use crate::observe::pointers::{CodeSamples, MOST_BLOCKS, SampleClock};
use crate::observe::ring::Ring;
use crate::process::tree::Process;

impl Linux {
    /// Samples where in its code a program is that is about to be started, if that is requested.
    /// Where that is unavailable, all of the program's time belongs to one phase, and the user gets
    /// one message.
    pub(super) fn sample_below(&mut self, id: ProgramId, shim: Process) {
        if !self.observer.is_requested(id, Measure::InstructionPointers) {
            return;
        }
        if self.observer.code.is_none() {
            self.observer.code = SampleClock::here().map(CodeSamples::new);
        }
        let why = match &mut self.observer.code {
            Some(code) => {
                let watch = |ring: &Ring| self.poll.add(ring.as_fd(), SAMPLES);
                let most_files = self.open_files.for_observing();
                match code.begin(id, shim, &self.cpus, most_files, watch) {
                    Ok(()) => return,
                    Err(error) => error.to_string(),
                }
            }
            None => "the kernel does not let this user".to_owned(),
        };
        if !std::mem::replace(&mut self.observer.is_blind, true) {
            self.note(
                id,
                format!("phases of this program and others are not distinguishable: {why}"),
            );
        }
    }

    /// Empties the rings of samples before they are full.
    pub(super) fn drain_samples(&mut self) {
        self.observer.code.iter_mut().for_each(CodeSamples::drain);
    }

    /// Says so at the first loss.
    pub(super) fn tell_of_lost_samples(&mut self) {
        let (late, surplus) = self.lost_samples();
        if late + surplus > 0 && !std::mem::replace(&mut self.observer.is_incomplete, true) {
            self.tell_the_run(of_lost_samples(late, surplus));
        }
    }

    /// Says at the end how many were lost in all.
    pub(super) fn tell_how_many_samples_were_lost(&mut self) {
        let (late, surplus) = self.lost_samples();
        let lost = late + surplus;
        if lost > 0 {
            let what = count(lost, "sample was", "samples were");
            self.tell_the_run(format!("in all, {what} lost of programs' code"));
        }
    }

    /// Samples that were not read in time, and samples of more blocks than are kept.
    fn lost_samples(&self) -> (usize, usize) {
        let code = self.observer.code.as_ref();
        code.map_or((0, 0), |code| (code.lost() as usize, code.surplus() as usize))
    }

    fn tell_the_run(&self, text: String) {
        self.send(Note { programs: Vec::new(), text, is_error: false });
    }
}

fn of_lost_samples(late: usize, surplus: usize) -> String {
    let lost = late + surplus;
    let why = match (late, lost) {
        (0, _) => format!("a program has run in more than {MOST_BLOCKS} blocks of code"),
        (_, 1) => "cosched was not on time to read it".to_owned(),
        _ => "cosched was not on time to read them".to_owned(),
    };
    format!(
        "{} lost, because {why}; a quantum with few samples may count for the wrong phase",
        count(lost, "sample of programs' code is", "samples of programs' code are"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_samples_are_told_with_the_reason() {
        let late = of_lost_samples(1, 0);
        assert!(late.contains("1 sample of") && late.contains("on time to read it;"), "{late}");
        assert!(of_lost_samples(2, 1).contains("3 samples of programs' code are"));
        let surplus = of_lost_samples(0, 2);
        assert!(surplus.contains("65536 blocks") && !surplus.contains("on time"), "{surplus}");
    }
}
