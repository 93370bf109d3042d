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
