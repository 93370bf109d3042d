//! Announcing which processes of a program another process has stopped.
//!
//! Undo sends SIGCONT to all processes of a program that was frozen by signals, except those that
//! another process stopped. The log therefore knows of these before cosched stops others. It must
//! also know which of them were continued since: cosched stops those like all others, and undo has
//! to continue them.

use crate::control::freezer::Freezer;
use crate::kernel::procfs::{Proc, ProcState};
use crate::process::tree::Process;
use crate::safety::undo::{Log, LogError, Record};

pub(super) fn note_stopped(freezer: &Freezer, log: &mut Log) -> Result<(), LogError> {
    let mut others = freezer.stopped_by_others().iter();
    others.try_for_each(|process| log.note(Record::StoppedByOther { process: *process }))
}

/// Announces the stops by other processes that are over, of any program. The freezer has just been
/// asked to look for stops.
pub(super) fn note_continued(
    freezer: &Freezer,
    proc: &Proc,
    log: &mut Log,
) -> Result<(), LogError> {
    let noted = log.journal().records().iter().filter_map(|record| match record {
        Record::StoppedByOther { process } => Some(*process),
        _ => None,
    });
    // One that cannot be read now may be stopped still.
    let runs = |process: &Process| {
        let stat = process.check(proc);
        stat.is_ok_and(|stat| stat.is_none_or(|stat| stat.state != ProcState::Stopped))
    };
    let is_left_out = |process: &Process| freezer.stopped_by_others().contains(process);
    let continued: Vec<Process> =
        noted.filter(|process| !is_left_out(process) && runs(process)).collect();
    let mut continued = continued.into_iter();
    continued.try_for_each(|process| log.note(Record::ContinuedByOther { process }))
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::{Duration, Instant};

    use rustix::process::Signal;

    use super::*;
    use crate::process::tree::Tree;

    fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !is_so() {
            assert!(Instant::now() < until, "waited in vain for {what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Otherwise undo would leave it stopped after the freeze.
    #[test]
    fn a_process_continued_by_others_is_announced_again() {
        let (folder, proc) = (tempfile::tempdir().unwrap(), Proc::default());
        let mut log = Log::create(folder.path(), &proc).unwrap();
        let mut shell = Command::new("sh").args(["-c", "sleep 1000 & wait"]).spawn().unwrap();
        let main = Process::find(&proc, shell.id() as i32).unwrap();
        let tree = Tree { main: Some(main), ..Tree::default() };
        eventually("the child", || tree.members(&proc).len() == 2);
        let members = tree.members(&proc);
        let child = members.into_iter().find(|process| *process != main).unwrap();
        let mut freezer = Freezer::of(None, false).unwrap();
        let is_stopped = || child.look(&proc).unwrap().state == ProcState::Stopped;
        for (signal, stopped) in [(Signal::STOP, true), (Signal::CONT, false)] {
            child.signal(&proc, signal).unwrap();
            eventually("its state", || is_stopped() == stopped);
            freezer.look_for_stops(&tree, &proc);
            note_continued(&freezer, &proc, &mut log).unwrap();
            note_stopped(&freezer, &mut log).unwrap();
            let record = Record::StoppedByOther { process: child };
            assert_eq!(log.journal().records().contains(&record), stopped);
        }
        tree.signal(&proc, Signal::KILL, &[]).unwrap();
        shell.wait().unwrap();
    }
}
