//! Processes and threads as `/proc` shows them.
//!
//! cosched reads `/proc` for two kinds of questions. The first kind comes now and then: which
//! process descends from which, what files does a program hold, is it traced. The second kind comes
//! up to thousands of times a second: is this thread still running? The `procfs` crate answers the
//! first kind well, but reads and parses whole files into new memory on every call. A few lines
//! parse the few fields that are needed. Both kinds are therefore served here, from one parser, and
//! the second without allocating (`StateReader`).
//!
//! Data may be old by the time it is used. A process that has ended shows as an error for which
//! [`FileError::is_gone`] holds. A number that was given to another process is recognised by its
//! start time (`Proc::is_same`).

mod cpu_load;
mod signal_masks;
mod stat;
mod state_reader;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cosched_core::{CpuSet, Nanos};

use crate::kernel::files::{self, FileError};

pub use cpu_load::CpuLoad;
pub use stat::{ProcState, Stat};
pub(crate) use state_reader::StateReader;

/// From so many threads on it may cost less to read the parent of every process than of every
/// thread for its children.
const MANY_THREADS: usize = 64;

/// The proc file system.
#[derive(Clone, Debug)]
pub struct Proc {
    root: PathBuf,
}

impl Default for Proc {
    fn default() -> Proc {
        Proc::new("/proc")
    }
}

/// An open file of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fd {
    /// The descriptor.
    pub number: i32,
    /// What it refers to, in the kernel's form: a path, `pipe:[123]`, `socket:[123]`, ...
    pub target: String,
}

/// A process' place in one cgroup hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// The controllers bound to the hierarchy; empty for version 2.
    pub controllers: Vec<String>,
    /// The cgroup, seen from the root of the reader's cgroup namespace.
    pub path: String,
}

/// How often the kernel has run a thread, and how long in total: while both stay, the thread does
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunCount {
    times: u64,
    nanoseconds: u64,
}

impl Proc {
    /// A proc file system mounted, or made up, at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Proc {
        Proc { root: root.into() }
    }

    /// The proc file system at `/proc`, if it numbers processes as this process does.
    ///
    /// # Errors
    /// When it belongs to another PID namespace: each of its numbers would mean another process.
    pub fn own() -> Result<Proc, FileError> {
        let proc = Proc::default();
        let link = proc.root.join("self");
        let missing = |error: io::Error| {
            let text = format!("{error} (remedy: mount -t proc proc /proc)");
            FileError::io("read", &link, io::Error::new(error.kind(), text))
        };
        let found = fs::read_link(&link).map_err(missing)?;
        if found == Path::new(&std::process::id().to_string()) {
            return Ok(proc);
        }
        let expected = "this process' number (remedy: in a PID namespace of one's own, mount -t \
                        proc proc /proc)";
        Err(FileError::malformed(&link, expected, &found.to_string_lossy()))
    }

    /// Whether a process numbers processes and threads as this one does; not if it is gone.
    pub(crate) fn numbers_alike(&self, process: i32) -> bool {
        self.shares(process, "ns/pid")
    }

    /// Whether start times mean the same for this process and another one: they have the same time
    /// namespace, or the kernel has none.
    pub(crate) fn times_alike(&self, process: i32) -> bool {
        !self.root.join("self/ns/time").exists() || self.shares(process, "ns/time")
    }

    /// Whether a process has the executable of this one.
    pub(crate) fn runs_own_executable(&self, process: i32) -> bool {
        self.shares(process, "exe")
    }

    fn shares(&self, process: i32, link: &str) -> bool {
        let target = |process: &str| {
            let file = fs::metadata(self.root.join(process).join(link)).ok()?;
            Some((file.dev(), file.ino()))
        };
        target("self").is_some_and(|own| target(&process.to_string()) == Some(own))
    }

    /// Where it is mounted.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of a process.
    pub fn folder(&self, pid: i32) -> PathBuf {
        self.root.join(pid.to_string())
    }

    /// The kernel's data about a process.
    ///
    /// # Errors
    /// When it has ended, or the file cannot be read.
    pub fn stat(&self, pid: i32) -> Result<Stat, FileError> {
        stat::read(&self.folder(pid).join("stat"))
    }

    /// The kernel's data about a thread; times and state are the thread's own.
    pub(crate) fn thread_stat(&self, pid: i32, tid: i32) -> Result<Stat, FileError> {
        stat::read(&self.folder(pid).join(format!("task/{tid}/stat")))
    }

    /// The name of a process: 15 bytes at most, any but line ends.
    ///
    /// # Errors
    /// When it has ended, or the file cannot be read.
    pub fn name(&self, pid: i32) -> Result<String, FileError> {
        Ok(files::read(&self.folder(pid).join("comm"))?.trim_end_matches('\n').to_owned())
    }

    /// The process that a thread belongs to; for a process, its own number.
    ///
    /// # Errors
    /// When it has ended, or the file cannot be read.
    pub fn process_of(&self, thread: i32) -> Result<i32, FileError> {
        let path = self.folder(thread).join("status");
        let status = files::read(&path)?;
        let process = status_field(&status, "Tgid").and_then(|number| number.parse().ok());
        process.ok_or_else(|| FileError::malformed(&path, "the number of a process", "no Tgid"))
    }

    /// The threads of a process, ascending.
    ///
    /// # Errors
    /// When it has ended, or the folder cannot be read.
    pub fn threads(&self, pid: i32) -> Result<Vec<i32>, FileError> {
        ids(&self.folder(pid).join("task"))
    }

    /// All processes, ascending.
    ///
    /// # Errors
    /// When the root cannot be listed.
    pub fn processes(&self) -> Result<Vec<i32>, FileError> {
        ids(&self.root)
    }

    /// The children of a process, ascending. One that has ended has none.
    ///
    /// # Errors
    /// When proc cannot be read.
    pub fn children(&self, pid: i32) -> Result<Vec<i32>, FileError> {
        let threads = files::unless_gone(self.threads(pid))?.unwrap_or_default();
        if threads.len() >= MANY_THREADS && threads.len() > self.processes()?.len() {
            return Ok(self.by_parent()?.remove(&pid).unwrap_or_default());
        }
        let mut children = Vec::new();
        for tid in threads {
            let path = self.folder(pid).join(format!("task/{tid}/children"));
            match files::read_if_there(&path)? {
                Some(list) => children.extend(numbers(&path, &list)?),
                // The thread is gone, and its children belong to another one by now. Or the kernel
                // was built without the file.
                None if path.with_file_name("stat").exists() => {
                    return Ok(self.by_parent()?.remove(&pid).unwrap_or_default());
                }
                None => {}
            }
        }
        children.sort_unstable();
        children.dedup();
        Ok(children)
    }

    /// The children of a process, their children, and so on; without the process itself, ascending.
    /// Processes born meanwhile may be missed: call again until nothing changes.
    ///
    /// # Errors
    /// When proc cannot be read.
    pub fn descendants(&self, pid: i32) -> Result<Vec<i32>, FileError> {
        let mut found = BTreeSet::new();
        let mut open = vec![pid];
        while let Some(parent) = open.pop() {
            for child in self.children(parent)? {
                if child != pid && found.insert(child) {
                    open.push(child);
                }
            }
        }
        Ok(found.into_iter().collect())
    }

    /// How often a thread was taken from a CPU, by itself or not.
    pub(crate) fn switches(&self, pid: i32, tid: i32) -> Result<u64, FileError> {
        let path = self.folder(pid).join(format!("task/{tid}/status"));
        let status = files::read(&path)?;
        let count = |field: &str| -> Option<u64> { status_field(&status, field)?.parse().ok() };
        let both = count("voluntary_ctxt_switches").zip(count("nonvoluntary_ctxt_switches"));
        let wrong = || FileError::malformed(&path, "counts of context switches", &status);
        both.map(|(own, forced)| own + forced).ok_or_else(wrong)
    }

    /// The user with the permissions that a process has; `None`: it is gone.
    pub fn user(&self, pid: i32) -> Option<u32> {
        let status = files::read(&self.folder(pid).join("status")).ok()?;
        status_field(&status, "Uid")?.split_whitespace().nth(1)?.parse().ok()
    }

    /// Whether a process has the permissions of this user alone, and was not given others by a
    /// set-uid file.
    pub(crate) fn is_only_of(&self, pid: i32, user: u32) -> bool {
        let status = files::read(&self.folder(pid).join("status")).unwrap_or_default();
        let users = status_field(&status, "Uid").unwrap_or_default().split_whitespace();
        // Real, effective, saved, and for files.
        users.filter_map(|number| number.parse::<u32>().ok()).eq([user; 4])
    }

    /// Whether a process may soon refuse the signals of this user: it executes a file that gives it
    /// another user, or the right to become one. The kernel shows it as another user's, so that a
    /// look at its folder is enough for most others.
    pub(crate) fn may_change_user(&self, pid: i32, user: u32) -> bool {
        let folder = self.folder(pid);
        if user == 0 || folder.metadata().is_ok_and(|found| found.uid() == user) {
            return false;
        }
        let status = files::read(&folder.join("status"));
        status.is_ok_and(|status| has_more_rights(&status, user))
    }

    /// How often a process has read and written so far; `None`: that is not open to the caller.
    pub(crate) fn reads_and_writes(&self, pid: i32) -> Option<u64> {
        let text = files::read(&self.folder(pid).join("io")).ok()?;
        let count = |name| status_field(&text, name)?.parse::<u64>().ok();
        Some(count("syscr")? + count("syscw")?)
    }

    /// How often the kernel has run a thread; `None`: the thread has ended, or the kernel keeps no
    /// such account.
    pub(crate) fn runs(&self, tid: i32) -> Option<RunCount> {
        let text = files::read_line(&self.folder(tid).join("schedstat")).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(|word| word.parse().ok());
        let (nanoseconds, _waited, times) = (numbers.next()??, numbers.next()?, numbers.next()??);
        (times > 0).then_some(RunCount { times, nanoseconds })
    }

    /// The last number that a process or thread got; `None`: the kernel does not say.
    pub(crate) fn last_pid(&self) -> Option<i32> {
        // `0.20 0.18 0.12 1/80 11206`
        let line = files::read_line(&self.root.join("loadavg")).ok()?;
        line.split_ascii_whitespace().nth(4)?.parse().ok()
    }

    /// How many threads of the machine run or are ready to; `None`: the kernel does not say.
    pub fn running_threads(&self) -> Option<u64> {
        let line = files::read_line(&self.root.join("loadavg")).ok()?;
        line.split_ascii_whitespace().nth(3)?.split('/').next()?.parse().ok()
    }

    /// How long a thread was ready and had no CPU.
    pub(crate) fn run_delay(&self, pid: i32, tid: i32) -> Result<Nanos, FileError> {
        let path = self.folder(pid).join(format!("task/{tid}/schedstat"));
        let text = files::read_line(&path)?;
        let delay = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        let wrong = || FileError::malformed(&path, "times on and without a CPU", &text);
        delay.map(Nanos).ok_or_else(wrong)
    }

    /// The process that traces this one, if any, and how many threads this one has.
    pub(crate) fn tracer_and_threads(&self, pid: i32) -> Result<(Option<i32>, u32), FileError> {
        let path = self.folder(pid).join("status");
        let status = files::read(&path)?;
        let number = |field: &str, expected| {
            let text = status_field(&status, field).unwrap_or("0");
            text.parse::<i32>().map_err(|_| FileError::malformed(&path, expected, text))
        };
        let tracer = number("TracerPid", "a tracer's number")?;
        let threads = number("Threads", "a number of threads")?;
        Ok((Some(tracer).filter(|tracer| *tracer != 0), threads.max(0) as u32))
    }

    /// The words of the command that a process was started with, as far as it has not overwritten
    /// them; none for a kernel thread.
    ///
    /// # Errors
    /// When it has ended.
    pub fn command_line(&self, pid: i32) -> Result<Vec<String>, FileError> {
        let path = self.folder(pid).join("cmdline");
        let bytes = fs::read(&path).map_err(|source| FileError::io("read", &path, source))?;
        let words =
            bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let mut words: Vec<String> = words.collect();
        while words.last().is_some_and(String::is_empty) {
            words.pop();
        }
        Ok(words)
    }

    /// The open files of a process, ascending by descriptor.
    ///
    /// # Errors
    /// When it has ended, or belongs to another user.
    pub fn fds(&self, pid: i32) -> Result<Vec<Fd>, FileError> {
        let folder = self.folder(pid).join("fd");
        let mut fds = Vec::new();
        for number in ids(&folder)? {
            let path = folder.join(number.to_string());
            let followed = fs::read_link(&path);
            // Descriptors may be closed after they were listed.
            let target = files::unless_gone(
                followed.map_err(|source| FileError::io("follow", &path, source)),
            )?;
            fds.extend(
                target.map(|target| Fd { number, target: target.to_string_lossy().into_owned() }),
            );
        }
        Ok(fds)
    }

    /// The cgroups of a process, one per hierarchy.
    ///
    /// # Errors
    /// When it has ended, or the file cannot be read.
    pub fn cgroups(&self, pid: i32) -> Result<Vec<Membership>, FileError> {
        memberships(&self.folder(pid).join("cgroup"))
    }

    /// How busy some CPUs have been since the machine was started, from the kernel's own accounts.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn cpu_load(&self, cpus: &CpuSet) -> Result<CpuLoad, FileError> {
        Ok(cpu_load::parse(&files::read(&self.root.join("stat"))?, cpus))
    }

    /// The processor's name, where the kernel knows it.
    pub fn cpu_model(&self) -> Option<String> {
        let text = files::read(&self.root.join("cpuinfo")).ok()?;
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    }

    /// Whether the process is there, as a zombie at least, and is the one that started at
    /// `start_time` (see [`Stat::start_time`]): numbers of ended processes are reused.
    pub(crate) fn is_same(&self, pid: i32, start_time: u64) -> Result<bool, FileError> {
        let stat = files::unless_gone(self.stat(pid))?;
        Ok(stat.is_some_and(|stat| stat.start_time == start_time))
    }

    /// Children by parent, from the `stat` of every process.
    fn by_parent(&self) -> Result<BTreeMap<i32, Vec<i32>>, FileError> {
        let mut children = BTreeMap::<i32, Vec<i32>>::new();
        for pid in self.processes()? {
            if let Some(stat) = files::unless_gone(self.stat(pid))? {
                children.entry(stat.ppid).or_default().push(pid);
            }
        }
        Ok(children)
    }
}

/// The right to become another user, in a mask of capabilities.
const CAP_SETUID: u64 = 1 << 7;

/// Whether a process is not of this user alone, or may become another user, by its
/// `/proc/PID/status`.
fn has_more_rights(status: &str, user: u32) -> bool {
    let users = status_field(status, "Uid").unwrap_or_default().split_whitespace();
    users.filter_map(|number| number.parse::<u32>().ok()).any(|one| one != user)
        || mask(status, "CapPrm") & CAP_SETUID != 0
}

/// A field of `/proc/PID/status` that is a mask; zero if it is not there.
fn mask(status: &str, field: &str) -> u64 {
    status_field(status, field).and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0)
}

/// A field of `/proc/PID/status`.
pub(crate) fn status_field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(key, value)| (key == name).then(|| value.trim()))
}

/// A file of the form of `/proc/PID/cgroup`: lines of `number:controllers:path`.
pub(crate) fn memberships(path: &Path) -> Result<Vec<Membership>, FileError> {
    let text = files::read(path)?;
    let parse = |line: &str| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, cgroup) = parts.next().zip(parts.next())?;
        Some(Membership { controllers: words(controllers), path: cgroup.to_owned() })
    };
    let expected = "number:controllers:path";
    text.lines()
        .map(|line| parse(line).ok_or_else(|| FileError::malformed(path, expected, line)))
        .collect()
}

/// The parts of a list with commas.
pub(crate) fn words(list: &str) -> Vec<String> {
    let parts = list.split(',').filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

/// A folder with process, thread or descriptor numbers as entries.
fn ids(folder: &Path) -> Result<Vec<i32>, FileError> {
    let numbers = files::numbered(folder, "")?;
    Ok(numbers.into_iter().filter_map(|n| i32::try_from(n).ok()).collect())
}

fn numbers(path: &Path, list: &str) -> Result<Vec<i32>, FileError> {
    let parse =
        |word: &str| word.parse().map_err(|_| FileError::malformed(path, "process numbers", word));
    list.split_whitespace().map(parse).collect()
}

#[cfg(test)]
mod tests;
