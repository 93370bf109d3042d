//! The estimate: `/proc`, sampled every few milliseconds.
//!
//! CPU time and time without a CPU (`schedstat`) and switches (`status`) are the kernel's own
//! accounts: exact, and so is the time asleep, which is the remainder. What a sleeping thread waits
//! for is known from the system call that it is in (`syscall`, with arguments; users may mostly
//! read it for their own processes). The call is sampled, and the time asleep is divided in
//! proportion to the samples. Waits that are shorter than the time between two samples are seen in
//! proportion; docs/research/measurements.md compares the estimate with the exact source.
//!
//! A sample opens a file for each thread. The more threads, the rarer the samples, so that they
//! take `SHARE` of a CPU. A stopped thread counts as being where it was stopped. Where system calls
//! may not be read (another user's process, or a kernel that lets only the parent read: Yama), the
//! known figures are reported, and the rest as unknown.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cosched_core::Nanos;

use super::{ACTIVITIES, ThreadActivity, ThreadUse, Ticks};
use crate::kernel::clock;
use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::{Proc, ProcState, status_field};

/// The shortest time between two samples.
const PERIOD: u64 = 10_000_000;
/// Samples take at most one part of a CPU in this many.
const SHARE: u64 = 100;
/// Samples read a thread's accounts, in case it ends, once one part in this many of the time since
/// the last reading is missing.
const MISSING: u64 = 8;

/// Operations of the futex call; as in `bpf/kernel.h`.
const LOCK_PI: u64 = 6;
const WAIT_BITSET: u64 = 9;
const LOCK_PI2: u64 = 13;
const OPERATION: u64 = 0x7f;
const CONTENDED: u64 = 2;

/// Processes, and the observed activities of their threads.
#[derive(Debug)]
pub struct Sampled {
    proc: Proc,
    members: BTreeMap<i32, SampledProcess>,
    threads: BTreeMap<(i32, i32), ObservedThread>,
    /// How long the last sample took, nanoseconds.
    took: u64,
    /// Whether the kernel's own ticks of user and kernel time are requested.
    pub(crate) ticks: bool,
}

#[derive(Clone, Copy, Debug)]
struct SampledProcess {
    program: u32,
    /// Its number may be given to another process once it has ended.
    start_time: u64,
    /// Whether it was sampled before: threads that come later are new.
    known: bool,
}

/// A thread, as far as it was observed.
#[derive(Clone, Debug, Default)]
struct ObservedThread {
    program: u32,
    /// The kernel's accounts when it was first seen, and at the last reading.
    base: Accounts,
    accounts: Accounts,
    accounted: u64,
    /// The accounts at a later sample: the last ones, if it has ended by the next reading.
    sampled: Option<(u64, Accounts)>,
    /// Its activity, and since when; `None`: it has ended.
    now: Option<ThreadActivity>,
    since: u64,
    reported: bool,
    /// Samples since the last reading that saw it asleep, by activity; that were answered at all;
    /// and those that were denied since one was answered.
    looks: [u32; ACTIVITIES],
    answered: u32,
    denied: u32,
    hidden: bool,
    asleep: [u64; ACTIVITIES],
    ticks: Ticks,
}

/// The kernel's own accounts of a thread; times in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Accounts {
    running: u64,
    runnable: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Accounts {
    /// Whether these are earlier than the other ones, which is impossible for the same thread.
    fn are_before(self, other: Accounts) -> bool {
        self.running < other.running
            || self.runnable < other.runnable
            || self.voluntary < other.voluntary
            || self.involuntary < other.involuntary
    }

    /// What was added since `base`. May be below zero where it stands for what is to be added.
    fn less(self, base: Accounts) -> Accounts {
        Accounts {
            running: self.running.wrapping_sub(base.running),
            runnable: self.runnable.wrapping_sub(base.runnable),
            voluntary: self.voluntary.wrapping_sub(base.voluntary),
            involuntary: self.involuntary.wrapping_sub(base.involuntary),
        }
    }
}

impl Sampled {
    pub(super) fn new(proc: Proc) -> Sampled {
        Sampled { proc, members: BTreeMap::new(), threads: BTreeMap::new(), took: 0, ticks: false }
    }

    pub(super) fn add(&mut self, program: u32, process: i32) -> Result<(), FileError> {
        let start_time = self.proc.stat(process)?.start_time;
        self.members.insert(process, SampledProcess { program, start_time, known: false });
        Ok(())
    }

    pub(super) fn forget(&mut self, program: u32) {
        self.members.retain(|_, member| member.program != program);
        self.threads.retain(|_, seen| seen.program != program);
    }

    /// The time from the last sample to the next.
    pub fn period(&self) -> Nanos {
        Nanos(PERIOD.max(self.took * SHARE))
    }

    pub(super) fn look(&mut self) -> Result<(), FileError> {
        let began = clock::monotonic();
        let mut alive = Vec::new();
        for (process, member) in self.processes()? {
            for thread in gone_is_empty(self.proc.threads(process))?.unwrap_or_default() {
                let folder = thread_folder(&self.proc, process, thread);
                let activity = match activity(&folder.join("syscall")) {
                    // This happens while it changes its program or its user, and once it has ended.
                    // It is permanent where another user may not observe it.
                    Err(error) if error.is_denied() => {
                        let stat = self.proc.thread_stat(process, thread);
                        let has_ended = stat.is_ok_and(|stat| stat.state == ProcState::Zombie);
                        has_ended.then_some(ThreadActivity::Sleeping)
                    }
                    activity => match gone_is_empty(activity)? {
                        Some(activity) => Some(activity),
                        None => continue,
                    },
                };
                alive.push((process, thread));
                match self.threads.get_mut(&(process, thread)) {
                    Some(seen) => seen.look(began, activity),
                    None => {
                        let base = if member.known {
                            Some(Accounts::default())
                        } else {
                            gone_is_empty(accounts(&folder))?
                        };
                        if let Some(base) = base {
                            let seen = ObservedThread::new(member.program, began, activity, base);
                            self.threads.insert((process, thread), seen);
                        }
                    }
                }
            }
        }
        for (name, seen) in &mut self.threads {
            if alive.binary_search(name).is_ok() && seen.is_behind(began) {
                let found = gone_is_empty(accounts(&thread_folder(&self.proc, name.0, name.1)))?;
                seen.sampled = found.map(|found| (began, found)).or(seen.sampled);
            }
            if seen.now.is_some() && alive.binary_search(name).is_err() {
                (seen.now, seen.since) = (None, began);
            }
        }
        self.members.values_mut().for_each(|member| member.known = true);
        self.took = clock::monotonic() - began;
        Ok(())
    }

    /// The added processes and all their descendants, ascending.
    fn processes(&mut self) -> Result<BTreeMap<i32, SampledProcess>, FileError> {
        let proc = &self.proc;
        self.members.retain(|pid, member| proc.is_same(*pid, member.start_time).unwrap_or(true));
        let mut processes = self.members.clone();
        for (process, member) in &self.members {
            for child in proc.descendants(*process)? {
                processes.entry(child).or_insert(*member);
            }
        }
        Ok(processes)
    }

    pub(super) fn read(&mut self, into: &mut Vec<ThreadUse>) -> Result<(), FileError> {
        self.look()?;
        self.threads.retain(|_, seen| !seen.reported);
        for ((process, thread), seen) in &mut self.threads {
            let folder = thread_folder(&self.proc, *process, *thread);
            // What a thread did after the last sample is lost when it ends.
            let found = gone_is_empty(accounts(&folder))?;
            let found = found.map(|found| (clock::monotonic(), found)).or(seen.sampled.take());
            if let Some((at, accounts)) = found {
                seen.account(at, accounts);
            }
            if self.ticks {
                if let Some(stat) = gone_is_empty(self.proc.thread_stat(*process, *thread))? {
                    seen.ticks = Ticks { user: stat.utime, kernel: stat.stime };
                }
            }
            seen.reported = seen.now.is_none();
            into.push(seen.reported(*process, *thread));
        }
        Ok(())
    }
}

pub(super) fn thread_folder(proc: &Proc, process: i32, thread: i32) -> PathBuf {
    proc.folder(process).join(format!("task/{thread}"))
}

impl ObservedThread {
    fn new(
        program: u32,
        at: u64,
        activity: Option<ThreadActivity>,
        base: Accounts,
    ) -> ObservedThread {
        let mut seen = ObservedThread {
            program,
            base,
            accounts: base,
            accounted: at,
            now: Some(ThreadActivity::Sleeping),
            since: at,
            ..ObservedThread::default()
        };
        seen.look(at, activity);
        // The first sample says where it is, but not for how long it has been there.
        seen.looks = [0; ACTIVITIES];
        seen
    }

    fn look(&mut self, at: u64, activity: Option<ThreadActivity>) {
        let Some(activity) = activity else {
            self.denied += 1;
            return;
        };
        self.answered += 1;
        self.denied = 0;
        if self.now != Some(activity) {
            (self.now, self.since) = (Some(activity), at);
        }
        if activity != ThreadActivity::Running {
            self.looks[activity as usize] += 1;
        }
    }

    /// Whether a sample has to read its accounts.
    fn is_behind(&self, at: u64) -> bool {
        let last = self.sampled.map_or(self.accounted, |(sampled, _)| sampled);
        MISSING * (at - last) >= at - self.accounted
    }

    /// The time asleep since the last reading is divided in proportion to the samples; without any,
    /// as it was before.
    fn account(&mut self, at: u64, accounts: Accounts) {
        if accounts.are_before(self.accounts) {
            // A thread that executes another program takes over the number of the first thread: it
            // continues from there.
            self.base = accounts.less(self.accounts.less(self.base));
            self.accounts = accounts;
        }
        let busy = |accounts: Accounts| accounts.running + accounts.runnable;
        let asleep = (at - self.accounted)
            .saturating_sub(busy(accounts).saturating_sub(busy(self.accounts)));
        let looks: u64 = self.looks.iter().copied().map(u64::from).sum();
        let place = self.now.filter(|now| *now != ThreadActivity::Running);
        match looks {
            0 => self.asleep[place.unwrap_or(ThreadActivity::Sleeping) as usize] += asleep,
            _ => {
                for (time, seen) in self.asleep.iter_mut().zip(self.looks) {
                    *time += asleep * u64::from(seen) / looks;
                }
            }
        }
        (self.accounts, self.accounted, self.looks) = (accounts, at, [0; ACTIVITIES]);
        // Once may be chance: it was changing its program just then.
        self.hidden = self.denied > 1 && self.answered == 0 && self.now.is_some();
        self.answered = 0;
    }

    fn reported(&self, process: i32, thread: i32) -> ThreadUse {
        let accounts = self.accounts.less(self.base);
        let mut time = self.asleep.map(Nanos);
        time[ThreadActivity::Running as usize] = Nanos(accounts.running);
        time[ThreadActivity::Runnable as usize] = Nanos(accounts.runnable);
        ThreadUse {
            program: self.program,
            process,
            thread,
            now: self.now,
            since: Nanos(self.since),
            time,
            voluntary: accounts.voluntary,
            involuntary: accounts.involuntary,
            ticks: self.ticks,
            hidden: self.hidden,
            ..ThreadUse::default()
        }
    }
}

/// The activity of a thread, by the system call that it is in.
pub(super) fn activity(path: &Path) -> Result<ThreadActivity, FileError> {
    let text = files::read(path)?;
    let mut words = text.split_whitespace();
    let first = words.next().unwrap_or_default();
    if first == "running" {
        return Ok(ThreadActivity::Running);
    }
    let call: i64 =
        first.parse().map_err(|_| FileError::malformed(path, "a system call", &text))?;
    if call != libc::SYS_futex {
        return Ok(ThreadActivity::Sleeping);
    }
    let argument = |word: Option<&str>| {
        let digits = word.and_then(|word| word.strip_prefix("0x"));
        digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
    };
    let arguments = (argument(words.nth(1)), argument(words.next()));
    let (Some(operation), Some(value)) = arguments else {
        return Err(FileError::malformed(path, "the arguments of a system call", &text));
    };
    Ok(match operation & OPERATION {
        LOCK_PI | LOCK_PI2 => ThreadActivity::AtMutex,
        _ if value & u64::from(u32::MAX) == CONTENDED => ThreadActivity::AtMutex,
        WAIT_BITSET => ThreadActivity::AtCondition,
        _ => ThreadActivity::AtBarrier,
    })
}

fn accounts(folder: &Path) -> Result<Accounts, FileError> {
    let path = folder.join("schedstat");
    let text = files::read(&path)?;
    let mut times = text.split_whitespace().map_while(|word| word.parse().ok());
    let (Some(running), Some(runnable)) = (times.next(), times.next()) else {
        return Err(FileError::malformed(&path, "times on and without a CPU", &text));
    };
    let path = folder.join("status");
    let status = files::read(&path)?;
    let count = |name| {
        let count = status_field(&status, name).and_then(|count| count.parse().ok());
        count.ok_or_else(|| FileError::malformed(&path, "counts of context switches", name))
    };
    Ok(Accounts {
        running,
        runnable,
        voluntary: count("voluntary_ctxt_switches")?,
        involuntary: count("nonvoluntary_ctxt_switches")?,
    })
}

/// A thread that has ended has no accounts.
fn gone_is_empty<T>(read: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match read {
        Err(error) if error.is_gone() => Ok(None),
        read => read.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn accounts(running: u64) -> Accounts {
        Accounts { running, voluntary: running, ..Accounts::default() }
    }

    fn running(seen: &ObservedThread) -> u64 {
        seen.reported(1, 1).in_activity(ThreadActivity::Running).0
    }

    #[test]
    fn a_reused_thread_number_continues_its_reported_counts() {
        let mut seen = ObservedThread::new(0, 0, Some(ThreadActivity::Running), accounts(100));
        seen.account(MS, accounts(150));
        assert_eq!(running(&seen), 50);
        seen.account(2 * MS, accounts(30));
        assert_eq!((running(&seen), seen.reported(1, 1).voluntary), (50, 50));
        seen.account(3 * MS, accounts(35));
        assert_eq!(running(&seen), 55);
    }

    #[test]
    fn denied_states_are_unknown_until_they_are_seen_again() {
        let mut seen = ObservedThread::new(0, 0, None, accounts(0));
        seen.look(MS, None);
        seen.account(10 * MS, accounts(2 * MS));
        let reported = seen.reported(1, 1);
        assert!(reported.hidden && reported.at_locks() == Nanos::ZERO);
        assert_eq!(running(&seen), 2 * MS);
        seen.look(11 * MS, None);
        seen.look(12 * MS, Some(ThreadActivity::AtMutex));
        seen.account(20 * MS, accounts(2 * MS));
        let reported = seen.reported(1, 1);
        assert!(!reported.hidden && reported.at_locks() == Nanos(10 * MS), "{reported:?}");
        for (at, is_hidden) in [(30, false), (40, true)] {
            seen.look(at * MS - MS, None);
            seen.account(at * MS, accounts(2 * MS));
            assert_eq!(seen.reported(1, 1).hidden, is_hidden, "once may be chance");
        }
        seen.now = None;
        seen.account(50 * MS, accounts(2 * MS));
        assert!(!seen.reported(1, 1).hidden, "it has ended");
    }

    #[test]
    fn what_a_thread_did_until_its_last_sample_is_reported() {
        let mut sampled = Sampled::new(Proc::default());
        sampled.add(3, std::process::id() as i32).unwrap();
        sampled.look().unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let own = rustix::thread::gettid().as_raw_nonzero().get();
            let folder = thread_folder(&Proc::default(), std::process::id() as i32, own);
            while super::accounts(&folder).unwrap().running < 10 * MS {}
            tell.send(own).unwrap();
            ended.recv().unwrap_err()
        });
        let own = told.recv().unwrap();
        sampled.look().unwrap();
        drop(end);
        thread.join().unwrap();
        let mut reading = Vec::new();
        sampled.read(&mut reading).unwrap();
        let seen = reading.iter().find(|seen| seen.thread == own).unwrap();
        assert!(seen.in_activity(ThreadActivity::Running).0 >= 10 * MS, "{seen:?}");
    }

    #[test]
    fn a_process_with_a_reused_number_is_not_observed() {
        let mut sampled = Sampled::new(Proc::default());
        let own = std::process::id() as i32;
        sampled.add(3, own).unwrap();
        assert!(sampled.processes().unwrap().contains_key(&own));
        sampled.members.values_mut().for_each(|member| member.start_time += 1);
        assert!(sampled.processes().unwrap().is_empty());
        sampled.add(3, own).unwrap();
        sampled.look().unwrap();
        sampled.forget(3);
        assert!(sampled.processes().unwrap().is_empty() && sampled.threads.is_empty());
        assert!(sampled.add(3, i32::MAX).is_err_and(|error| error.is_gone()));
    }
}
