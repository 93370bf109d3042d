//! What ties a program to others (IPC dependencies), and what forbids freezing it.
//!
//! A frozen program must not make others wait. One that holds a GPU keeps its queue, one that
//! listens keeps its clients, and one that holds a terminal keeps a person waiting. If two programs
//! share a pipe or memory, a frozen one stalls the other: they have to freeze together, as a
//! *group*.
//!
//! All of that is read from the files that the processes of a program hold, and from their shared
//! mappings. (Shared memory is usually mapped and its descriptor closed.) Two programs that are
//! just about to open the same named pipe hold nothing yet; the system call that they are in shows
//! it (`opening`). What the caller itself handed to every program ties no programs together and is
//! left out: its own terminal, the pipe behind its output, a make's job server.
//!
//! Two programs with a TCP connection between them share it. Whether a listening socket has clients
//! is known by its connections (`sockets`).
//!
//! Not read: the time-outs of calls in which threads wait. Reading them takes 19 us for a program
//! of one thread and 747 us for one of 100, and half of such calls hide theirs.
//! Test runners are known by name instead, and have short pauses.
//!
//! Limits: `/proc` does not show which process is at the other end of a UNIX connection, nor which
//! serves over UDP. Such ties show only if both programs hold the same end. The user can name
//! groups by hand.

mod events;
mod groups;
mod locks;
mod opening;
mod sockets;
mod tables;
mod terminals;

use std::collections::BTreeSet;
use std::path::Path;

use cosched_core::Refusal;
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, makedev, statx};

use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::{Fd, Proc};

pub(crate) use events::{waits_for_events, waits_for_stops};
pub(crate) use groups::groups;
pub(crate) use locks::ContendedLocks;
use sockets::{Contacts, ProgramSockets};
pub(crate) use tables::Tables;
use terminals::Terminals;

/// What all programs were given: names as in `/proc/PID/fd`.
pub(crate) type HandedOut = BTreeSet<String>;

/// Everything that a process, usually the caller, holds now: whatever it passes on is then known.
pub(crate) fn held_by(proc: &Proc, pid: i32) -> Result<HandedOut, FileError> {
    Ok(proc.fds(pid)?.into_iter().map(|fd| fd.target).collect())
}

/// Something that two programs can hold in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum SharedKey {
    /// A pipe without a name, by inode number.
    Pipe(u64),
    Fifo(FileId),
    /// A named pipe that is being opened, without further details. It may be any named pipe that is
    /// being opened.
    FifoBeingOpened,
    /// A socket, by inode number.
    Socket(u64),
    /// Shared memory: a memfd, a file in `/dev/shm`, or a System V segment.
    Memory(FileId),
    /// The memory of a named semaphore: the workers of a pool share it, and do not wait for each
    /// other.
    Semaphore(FileId),
    /// A file with a lock that programs wait for, or hold while others wait.
    LockedFile(FileId),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// What was found about one program: its IPC dependencies and freeze blockers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dependencies {
    pub(crate) holds_gpu: bool,
    /// It waits for connections of other programs: one is connected, or knows the address.
    pub(crate) listens: bool,
    /// It waits for connections, so far only of its own processes.
    pub(crate) listens_within: bool,
    /// It has a terminal open that it was not given, and did not make for its own processes.
    pub(crate) holds_terminal: bool,
    /// It waits in a call that a pause would end early, and catches no signal.
    pub(crate) waits_for_events: bool,
    /// What it may share with other programs.
    pub(crate) shared: BTreeSet<SharedKey>,
    /// Its processes with files that the caller may not see.
    pub(crate) unseen: Vec<i32>,
}

impl Dependencies {
    /// Why the program should be left running unless the user says otherwise, if there is a reason.
    pub(crate) fn forbid_freezing(&self) -> Option<Refusal> {
        let reasons = [
            (self.holds_gpu, Refusal::HoldsGpu),
            (self.listens, Refusal::Listens),
            (self.holds_terminal, Refusal::HoldsTerminal),
            (self.waits_for_events, Refusal::WaitsForEvents),
        ];
        reasons.into_iter().find_map(|(holds, why)| holds.then_some(why))
    }

    fn note(&mut self, folder: &Path, fd: &Fd) {
        let target = fd.target.as_str();
        if let Some(inode) = inode_of(target, "pipe:[") {
            self.shared.insert(SharedKey::Pipe(inode));
        } else if let Some(inode) = inode_of(target, "socket:[") {
            self.shared.insert(SharedKey::Socket(inode));
        } else if is_any(target, &["/dev/nvidia", "/dev/dri/", "/dev/kfd"]) {
            self.holds_gpu = true;
        } else if target.starts_with('/') {
            self.note_file(&folder.join(format!("fd/{}", fd.number)), target);
        }
    }

    /// A file with a name: only its type distinguishes a named pipe from an ordinary file.
    fn note_file(&mut self, link: &Path, target: &str) {
        // No file server is asked, since it might not answer. A file closed meanwhile ties no
        // programs together.
        let flags = AtFlags::STATX_DONT_SYNC;
        let Ok(file) = statx(CWD, link, flags, StatxFlags::TYPE | StatxFlags::INO) else {
            return;
        };
        let id = file_id(&file);
        if FileType::from_raw_mode(file.stx_mode.into()) == FileType::Fifo {
            self.shared.insert(SharedKey::Fifo(id));
        } else {
            self.shared.extend(memory(target, id));
        }
    }
}

/// Finds out what the processes of one program hold. Processes that end meanwhile are skipped.
/// `others` returns the processes of all other programs that run under cosched. `tables` are those
/// that were just read for other programs.
pub(crate) fn inspect(
    proc: &Proc,
    pids: &[i32],
    others: &dyn Fn() -> Vec<i32>,
    handed_out: &HandedOut,
    tables: &mut Tables,
) -> Result<Dependencies, FileError> {
    let (mut dependencies, first) = look(proc, pids, handed_out, tables)?;
    dependencies.shared.extend(first.peers.iter().copied().map(SharedKey::Socket));
    dependencies.listens = serves_others(proc, pids, others, handed_out, &first)?;
    dependencies.listens_within = first.listens && !dependencies.listens;
    Ok(dependencies)
}

/// What the threads of one process may wait for that another process does: memory that they share,
/// and connections. Neither pipes nor semaphores: the workers of a pool get their work by them.
pub(crate) fn ties(
    proc: &Proc,
    pid: i32,
    handed_out: &HandedOut,
    tables: &mut Tables,
) -> Result<BTreeSet<SharedKey>, FileError> {
    let (dependencies, contacts) = look(proc, &[pid], handed_out, tables)?;
    let mut ties = dependencies.shared;
    ties.extend(contacts.peers.iter().copied().map(SharedKey::Socket));
    ties.retain(|key| matches!(key, SharedKey::Memory(_) | SharedKey::Socket(_)));
    let maps = files::read_if_there(&proc.folder(pid).join("maps"))?.unwrap_or_default();
    ties.extend(maps.lines().filter_map(writable_file).map(SharedKey::Memory));
    Ok(ties)
}

/// Whether a process that is not under cosched is or can be connected to a listening socket of the
/// program.
fn serves_others(
    proc: &Proc,
    pids: &[i32],
    others: &dyn Fn() -> Vec<i32>,
    handed_out: &HandedOut,
    first: &Contacts,
) -> Result<bool, FileError> {
    if first.strangers.is_empty() && !first.awaits_others() {
        return Ok(false);
    }
    // Descriptors and tables are not read at one moment, so a new connection of the program's own
    // may look like another's. It does not twice.
    let (_, second) = look(proc, pids, handed_out, &mut Tables::default())?;
    if first.awaits_others() && second.awaits_others() {
        return Ok(true);
    }
    if first.strangers.is_empty() {
        return Ok(false);
    }
    let mut held_by_others = BTreeSet::new();
    for pid in others() {
        let fds = proc.fds(pid).unwrap_or_default();
        held_by_others.extend(fds.iter().filter_map(|fd| inode_of(&fd.target, "socket:[")));
    }
    let mut strangers = first.strangers.intersection(&second.strangers);
    Ok(strangers.any(|one| one.inode.is_none_or(|inode| !held_by_others.contains(&inode))))
}

fn look(
    proc: &Proc,
    pids: &[i32],
    handed_out: &HandedOut,
    tables: &mut Tables,
) -> Result<(Dependencies, Contacts), FileError> {
    let mut seen = Look::default();
    for &pid in pids {
        match seen.add(proc, pid, handed_out, tables) {
            Ok(()) => {}
            Err(error) if error.is_gone() => {}
            Err(error) if error.is_denied() => seen.dependencies.unseen.push(pid),
            Err(error) => return Err(error),
        }
    }
    seen.dependencies.holds_terminal = seen.terminals.are_of_others();
    Ok((seen.dependencies, seen.sockets.contacts(tables, proc, pids)))
}

#[derive(Default)]
struct Look {
    dependencies: Dependencies,
    sockets: ProgramSockets,
    terminals: Terminals,
}

impl Look {
    fn add(
        &mut self,
        proc: &Proc,
        pid: i32,
        handed_out: &HandedOut,
        tables: &mut Tables,
    ) -> Result<(), FileError> {
        let folder = proc.folder(pid);
        let mut sockets = BTreeSet::new();
        for fd in proc.fds(pid)?.iter().filter(|fd| !handed_out.contains(&fd.target)) {
            if !self.terminals.note(&folder, fd) {
                self.dependencies.note(&folder, fd);
            }
            sockets.extend(inode_of(&fd.target, "socket:["));
        }
        if !sockets.is_empty() {
            tables.read(&sockets, &folder)?;
            self.sockets.add(sockets, &folder);
        }
        let shared = &mut self.dependencies.shared;
        if let Some(maps) = files::read_if_there(&folder.join("maps"))? {
            shared.extend(maps.lines().filter_map(shared_mapping));
        }
        shared.extend(opening::pipes_opened_by(&folder));
        self.dependencies.waits_for_events |= waits_for_events(proc, pid);
        Ok(())
    }
}

/// A line of `/proc/PID/maps`, if it is shared memory:
/// `7f00-7f01 rw-s 00000000 00:1a 42    /dev/shm/x`.
fn shared_mapping(line: &str) -> Option<SharedKey> {
    let (_, id, path) = shared_file(line)?;
    memory(path, id)
}

/// A line of `/proc/PID/maps`, if it is a file that others see changes of; not a semaphore.
fn writable_file(line: &str) -> Option<FileId> {
    let (rights, id, path) = shared_file(line)?;
    let kind = memory(path, id);
    // Devices and what the kernel makes without a path are one file for all processes.
    let is_file = path.starts_with('/') && !path.starts_with("/dev/");
    let is_shared = matches!(kind, Some(SharedKey::Memory(_))) || kind.is_none() && is_file;
    (rights.starts_with("rw") && is_shared).then_some(id)
}

/// A line of `/proc/PID/maps`, if it is a shared mapping of a file: rights, file and path.
fn shared_file(line: &str) -> Option<(&str, FileId, &str)> {
    let mut words = line.split_ascii_whitespace();
    let (_range, rights, _offset) = (words.next()?, words.next()?, words.next()?);
    let (major, minor) = words.next()?.split_once(':')?;
    let inode = words.next()?;
    // The rest of the line, which may hold blanks.
    let path = &line[line.find('/').unwrap_or(line.len())..];
    let hexadecimal = |number| u32::from_str_radix(number, 16).ok();
    let id = FileId {
        device: makedev(hexadecimal(major)?, hexadecimal(minor)?),
        inode: inode.parse().ok()?,
    };
    rights.ends_with('s').then_some((rights, id, path))
}

/// Shared memory without a name, which processes have from a common ancestor.
const ANONYMOUS: &str = "/dev/zero (deleted)";

/// What a file or a mapping with this path is, if it is shared memory.
fn memory(path: &str, id: FileId) -> Option<SharedKey> {
    if path.starts_with("/dev/shm/sem.") {
        return Some(SharedKey::Semaphore(id));
    }
    is_any(path, &["/dev/shm/", "/memfd:", "/SYSV", ANONYMOUS]).then_some(SharedKey::Memory(id))
}

fn is_any(path: &str, prefixes: &[&str]) -> bool {
    prefixes.iter().any(|prefix| path.starts_with(prefix))
}

/// The number in `pipe:[123]`.
fn inode_of(target: &str, prefix: &str) -> Option<u64> {
    target.strip_prefix(prefix)?.strip_suffix(']')?.parse().ok()
}

fn file_id(file: &Statx) -> FileId {
    FileId { device: makedev(file.stx_dev_major, file.stx_dev_minor), inode: file.stx_ino }
}

#[cfg(test)]
mod tests;
