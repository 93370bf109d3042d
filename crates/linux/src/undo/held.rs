//! Who has a process: what the logs of those who live tell.
//!
//! A log holds what its cosched owes, and so names every program that it has in hand. It is read here from
//! outside: by who wants to attach to a process that another cosched may have, and by who wants it to let one go.

use std::path::{Path, PathBuf};

use super::log::owner;
use super::owed::Owed;
use super::{Book, Log, LogError, Record};
use crate::procfs::Proc;
use crate::tree::{Process, Tree};
use cosched_core::ProgramId;

/// A program that a living cosched has.
#[derive(Clone, Debug)]
pub struct Held {
    /// The cosched.
    pub owner: Process,
    /// Its log.
    pub log: PathBuf,
    /// The program's name there.
    pub program: ProgramId,
    /// Where its processes are.
    pub tree: Tree,
}

impl Held {
    /// Every program of every cosched that lives and keeps its log in this folder.
    ///
    /// # Errors
    /// When the folder cannot be listed. A log that cannot be read is passed over: it may have just been removed.
    pub fn all(folder: &Path, proc: &Proc) -> Result<Vec<Held>, LogError> {
        let mut held = Vec::new();
        for log in Log::all(folder)? {
            let Some(owner) = owner(&log).filter(|owner| owner.look(proc).is_some()) else {
                continue;
            };
            // Another user's folder may hold anything.
            if !log.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let Ok(book) = Log::load(&log, proc) else { continue };
            let programs = Owed::of(&book).programs.into_iter();
            held.extend(programs.map(|(program, owed)| Held {
                owner,
                log: log.clone(),
                program,
                tree: owed.tree,
            }));
        }
        Ok(held)
    }

    /// Its processes now.
    pub fn members(&self, proc: &Proc) -> Vec<Process> {
        self.tree.members(proc)
    }

    /// Whether a process with this number belongs to it.
    pub fn includes(&self, pid: i32, proc: &Proc) -> bool {
        self.members(proc).iter().any(|process| process.pid == pid)
    }

    /// What its cosched still owes it; nothing once it has let it go.
    pub fn owed(&self, proc: &Proc) -> Vec<Record> {
        let book = Log::load(&self.log, proc).unwrap_or_default();
        Book::records(&book)
            .iter()
            .filter(|record| record.program() == Some(self.program))
            .cloned()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_program_is_held_by_who_owes_it_something_and_by_nobody_afterwards() {
        let (folder, proc) = (tempfile::tempdir().unwrap(), Proc::default());
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let (pid, program) = (child.id() as i32, ProgramId::first(3));
        let mut log = Log::create(folder.path(), &proc).unwrap();
        let process = Process::find(&proc, pid).unwrap();
        log.note(Record::Main { program, process }).unwrap();
        std::fs::write(folder.path().join("2147483647-5-1.undo"), "").unwrap();
        let all = || Held::all(folder.path(), &proc).unwrap();
        let [held] = &all()[..] else { panic!("{:?}", all()) };
        assert!(held.includes(pid, &proc) && !held.includes(1, &proc));
        assert_eq!((held.owner.pid, held.program), (std::process::id() as i32, program));
        assert_eq!(held.owed(&proc), [Record::Main { program, process }]);
        log.note(Record::Gone { program }).unwrap();
        assert_eq!((held.owed(&proc), all().len()), (vec![], 0));
        log.delete().unwrap();
        assert_eq!(held.owed(&proc), []);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
