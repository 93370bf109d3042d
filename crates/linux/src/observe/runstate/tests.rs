use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use cosched_core::CpuSet;
use cosched_page::{ENTRIES, RunState, ThreadEntry, ThreadTable};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect, munmap};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use rustix::thread::gettid;

use super::*;
use crate::kernel::affinity;

/// How long an expected state may take to come.
const SOON: Duration = Duration::from_secs(10);

/// The table as a program sees it.
struct Mapped(*mut std::ffi::c_void);

impl Mapped {
    fn of(table: BorrowedFd<'_>) -> Mapped {
        Mapped(map(table, ProtFlags::READ).unwrap())
    }

    fn entry(&self, tid: i32) -> Option<ThreadEntry> {
        // SAFETY: mapped as long as this lives, as long and as aligned as a table, and all of it
        // atomic words.
        unsafe { &*self.0.cast::<ThreadTable>() }.entry(tid as u32)
    }

    fn state(&self, tid: i32) -> RunState {
        self.entry(tid).map_or(RunState::Unknown, |entry| entry.state)
    }

    /// Waits until the thread has this state.
    fn comes_to(&self, tid: i32, state: RunState) -> bool {
        let until = Instant::now() + SOON;
        // It may have another state again a moment later.
        let mut has_come = self.state(tid) == state;
        while !has_come && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
            has_come = self.state(tid) == state;
        }
        has_come
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: this very mapping, and no reference outlives this.
        unsafe { munmap(self.0, ThreadTable::SIZE) }.unwrap();
    }
}

fn map(table: BorrowedFd<'_>, rights: ProtFlags) -> Result<*mut std::ffi::c_void, Errno> {
    let anywhere = std::ptr::null_mut();
    // SAFETY: a new mapping at a place of the kernel's choice; no other memory is touched.
    unsafe { mmap(anywhere, ThreadTable::SIZE, rights, MapFlags::SHARED, table, 0) }
}

/// `None`, with a message, where it is unavailable to this user or kernel.
fn states() -> Option<RunStates> {
    match RunStates::load(&Proc::default()) {
        Ok(states) => Some(states),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

/// A thread of this process that does one thing until it is asked to end.
struct Busy {
    tid: i32,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Busy {
    fn begin(work: impl Fn(&AtomicBool) + Send + 'static) -> Busy {
        let (over, (tell, tid)) = (Arc::new(AtomicBool::new(false)), mpsc::channel());
        let ends = over.clone();
        let thread = thread::spawn(move || {
            tell.send(gettid().as_raw_nonzero().get()).unwrap();
            work(&ends);
        });
        Busy { tid: tid.recv().unwrap(), over, thread }
    }

    /// A thread that computes, on this CPU only.
    fn computing(cpu: usize) -> Busy {
        Busy::begin(move |over| {
            affinity::set(0, &CpuSet::from_iter([cpu])).unwrap();
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        })
    }

    fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        self.thread.join().unwrap();
    }
}

#[test]
fn running_queued_and_sleeping_threads_are_distinguished() {
    let Some(mut states) = states() else { return };
    states.begin().unwrap();
    states.add(std::process::id() as i32).unwrap();
    let table = Mapped::of(states.table());
    let cpu = affinity::get(0).unwrap().iter().next().unwrap();
    let sleeps = Busy::begin(|over| {
        while !over.load(Ordering::Relaxed) {
            thread::park();
        }
    });
    assert!(table.comes_to(sleeps.tid, RunState::Blocked));
    let computing = [Busy::computing(cpu), Busy::computing(cpu)];
    // Only one of them fits on the CPU at a time.
    let both = || computing.each_ref().map(|busy| table.state(busy.tid));
    let (mut seen, until) = (Vec::new(), Instant::now() + SOON);
    let expected =
        [[RunState::Running, RunState::Preempted], [RunState::Preempted, RunState::Running]];
    while !expected.iter().all(|pair| seen.contains(pair)) && Instant::now() < until {
        let now = both();
        if !seen.contains(&now) {
            seen.push(now);
        }
        thread::sleep(Duration::from_micros(300));
    }
    assert!(expected.iter().all(|pair| seen.contains(pair)), "{seen:?}");
    assert!(computing.iter().all(|busy| table.entry(busy.tid).unwrap().cpu == cpu as u16));
    let tids = [sleeps.tid, computing[0].tid, computing[1].tid];
    sleeps.end();
    computing.into_iter().for_each(Busy::end);
    // The last one may still be leaving the kernel.
    assert!(
        tids.iter().all(|tid| table.comes_to(*tid, RunState::Unknown)),
        "a thread that has ended is forgotten"
    );
}

#[test]
fn a_thread_woken_on_a_busy_cpu_is_queued_there() {
    let Some(mut states) = states() else { return };
    states.begin().unwrap();
    states.add(std::process::id() as i32).unwrap();
    let table = Mapped::of(states.table());
    let cpu = affinity::get(0).unwrap().iter().next().unwrap();
    let naps = Busy::begin(move |over| {
        affinity::set(0, &CpuSet::from_iter([cpu])).unwrap();
        while !over.load(Ordering::Relaxed) {
            thread::park();
        }
    });
    let until = Instant::now() + SOON;
    let sleeps_there =
        ThreadEntry { tid: naps.tid as u32, cpu: cpu as u16, state: RunState::Blocked };
    while table.entry(naps.tid) != Some(sleeps_there) && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
    let busy = Busy::computing(cpu);
    let mut found = None;
    while found.is_none() && Instant::now() < until {
        naps.thread.thread().unpark();
        let looked: Vec<_> = (0..1000).map(|_| table.entry(naps.tid)).collect();
        found = looked.into_iter().flatten().find(|entry| entry.state == RunState::Woken);
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(found, Some(ThreadEntry { state: RunState::Woken, ..sleeps_there }));
    naps.end();
    busy.end();
}

#[test]
fn only_members_and_their_forks_are_written() {
    let Some(mut states) = states() else { return };
    states.begin().unwrap();
    let table = Mapped::of(states.table());
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    };
    // The fork of a member executes another command then.
    let mut inside = shell("read go; sh -c 'echo $$; exec sleep 60' & wait");
    states.add(inside.id() as i32).unwrap();
    inside.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    let mut line = String::new();
    BufReader::new(inside.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let sleeper: i32 = line.trim().parse().unwrap();
    let mut outside = shell("exec sleep 60");
    let slept = table.comes_to(sleeper, RunState::Blocked);
    let others = table.entry(outside.id() as i32);
    kill_process(Pid::from_raw(sleeper).unwrap(), Signal::KILL).unwrap();
    for child in [&mut inside, &mut outside] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(slept && others.is_none(), "{others:?}");
}

/// A process that sleeps or computes until it is killed, or this thread has ended; with this
/// number, if one is given. `None`, with a message, where the number may not be chosen.
fn child(number: Option<i32>, computes: bool) -> Option<i32> {
    let numbers = [number.unwrap_or_default()];
    // SAFETY: a structure of plain numbers.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.exit_signal = libc::SIGCHLD as u64;
    if number.is_some() {
        (arguments.set_tid, arguments.set_tid_size) = (numbers.as_ptr() as u64, 1);
    }
    // SAFETY: a fork: the kernel reads the arguments and the number, which outlive the call. The
    // child makes only system calls.
    let made = unsafe {
        let made = libc::syscall(libc::SYS_clone3, &raw const arguments, size_of_val(&arguments));
        if made == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            loop {
                if !computes {
                    libc::pause();
                }
            }
        }
        made
    };
    if made < 0 {
        let error = std::io::Error::last_os_error();
        assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{number:?}: {error}");
        eprintln!("skipped: this user may not choose the numbers of processes");
    }
    (made > 0).then_some(made as i32)
}

/// Kills a child, and waits until it is gone.
fn end(child: i32) {
    let child = Pid::from_raw(child).unwrap();
    kill_process(child, Signal::KILL).unwrap();
    waitpid(Some(child), WaitOptions::empty()).unwrap();
}

/// The next thread with a number that leads to this entry is written there.
#[test]
fn the_entry_of_a_killed_process_is_reused() {
    let Some(mut states) = states() else { return };
    states.begin().unwrap();
    states.add(std::process::id() as i32).unwrap();
    let table = Mapped::of(states.table());
    let Some(first) = child(None, true) else { return };
    assert!(table.comes_to(first, RunState::Running));
    end(first);
    assert_eq!(table.entry(first), None);
    // The killed child's number again, and another one with its entry, if the kernel gives such
    // numbers.
    let far = first + ENTRIES as i32;
    let largest = std::fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
    let gives_far = far < largest.trim().parse().unwrap();
    for (number, other) in [(first, far), (far, first)].into_iter().take(1 + usize::from(gives_far))
    {
        let Some(number) = child(Some(number), false) else { return };
        assert!(table.comes_to(number, RunState::Blocked));
        assert_eq!(table.entry(other), None);
        end(number);
        assert_eq!(table.entry(number), None);
    }
}

#[test]
fn nothing_is_written_while_it_is_idle() {
    let Some(mut states) = states() else { return };
    states.add(std::process::id() as i32).unwrap();
    let table = Mapped::of(states.table());
    let naps = Busy::begin(|over| {
        while !over.load(Ordering::Relaxed) {
            thread::park_timeout(Duration::from_millis(1));
        }
    });
    thread::sleep(Duration::from_millis(20));
    assert_eq!(table.entry(naps.tid), None);
    states.begin().unwrap();
    assert!(table.comes_to(naps.tid, RunState::Blocked));
    states.rest();
    let tid = naps.tid;
    naps.end();
    assert!(table.entry(tid).is_some(), "its end was seen without an observer");
}

/// It can map the table read-only, and can change it neither by mapping nor by system call.
#[test]
fn a_program_can_only_read_the_table() {
    let Some(states) = states() else { return };
    let writable = map(states.table(), ProtFlags::READ | ProtFlags::WRITE);
    assert!(writable.is_err(), "{writable:?}");
    let table = Mapped::of(states.table());
    // SAFETY: memory of this test's own; that nothing writes to it is what is tested.
    let widened =
        unsafe { mprotect(table.0, ThreadTable::SIZE, MprotectFlags::READ | MprotectFlags::WRITE) };
    assert!(widened.is_err());
    assert_eq!(update(&states, 5, 1 << 48 | 5), Err(libc::EPERM));
    assert_eq!(table.entry(5), None);
}

/// The kernel's answer to a change of one entry by system call.
fn update(states: &RunStates, key: u32, value: u64) -> Result<(), i32> {
    const BPF_MAP_UPDATE_ELEM: libc::c_int = 2;
    let (map, key, value) = (states.table().as_raw_fd() as u64, &raw const key, &raw const value);
    let attributes = [map, key as u64, value as u64, 0];
    // SAFETY: the kernel reads the attributes, a key of four bytes and a value of eight, all of
    // which outlive the call.
    let result = unsafe {
        let size = size_of_val(&attributes);
        libc::syscall(libc::SYS_bpf, BPF_MAP_UPDATE_ELEM, attributes.as_ptr(), size)
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error().raw_os_error().unwrap()) }
}
