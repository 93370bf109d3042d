//! What the programs in the kernel report about locks: which ones, when threads came to them, and
//! from where they were handed on.

use std::collections::BTreeSet;
use std::fs;
use std::sync::atomic::AtomicI32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::gettid;

use super::interval::Intervals;
use super::*;
use crate::kernel::affinity;

/// How many times a lock is handed on between two threads.
const TURNS: u32 = 400;

/// The lock that two threads take one after the other.
#[derive(Default)]
struct Turn {
    taken: Mutex<u32>,
    handed_on: Condvar,
    /// Their numbers, 0 before they are there.
    threads: [AtomicI32; 2],
}

impl Turn {
    /// Takes every second turn until there are no more. Each is taken only once the other thread
    /// sleeps, so that every turn is a wake-up.
    fn take(&self, parity: u32) {
        self.threads[parity as usize].store(gettid().as_raw_nonzero().get(), Relaxed);
        let mut taken = self.taken.lock().unwrap();
        while *taken < TURNS {
            if *taken % 2 == parity {
                self.wait_for_sleep_of(1 - parity);
                *taken += 1;
                self.handed_on.notify_one();
            } else {
                taken = self.handed_on.wait(taken).unwrap();
            }
        }
        self.handed_on.notify_one();
    }

    fn wait_for_sleep_of(&self, parity: u32) {
        let sleeps = |stat: String| stat.rsplit(')').next().unwrap().starts_with(" S");
        loop {
            let thread = self.threads[parity as usize].load(Relaxed);
            let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
            if stat.is_ok_and(sleeps) {
                return;
            }
            thread::yield_now();
        }
    }
}

/// Starts a thread, bound to these CPUs if any, that waits for `go`. Returns its number.
fn begin(cpus: Option<CpuSet>, go: &Arc<Turn>, parity: u32) -> (i32, JoinHandle<()>) {
    let (tell, tid) = mpsc::channel();
    let go = go.clone();
    let work = move || {
        if let Some(cpus) = cpus {
            affinity::set(0, &cpus).unwrap();
        }
        tell.send(gettid().as_raw_nonzero().get()).unwrap();
        go.take(parity);
    };
    let thread = thread::spawn(work);
    (tid.recv().unwrap(), thread)
}

/// `None` where the kernel refuses our programs.
fn in_the_kernel() -> Option<Monitor> {
    match Monitor::open(&Proc::default()) {
        (monitor @ Monitor::Kernel(_), _) => Some(monitor),
        (_, why) => {
            eprintln!("skipped: {}", why.unwrap());
            None
        }
    }
}

/// The transfers of two threads on two CPUs, which are separate groups or one. `None` where there
/// are no two CPUs.
fn transfers(apart: bool) -> Option<Transfers> {
    let mut monitor = in_the_kernel()?;
    let found = affinity::get(0).unwrap();
    let cpus: Vec<CpuSet> = found.iter().take(2).map(|cpu| CpuSet::from_iter([cpu])).collect();
    if cpus.len() < 2 {
        eprintln!("skipped: there is one CPU");
        return None;
    }
    let both = vec![cpus[0].union(&cpus[1])];
    monitor.count_transfers(if apart { &cpus } else { &both }).unwrap();
    monitor.add(7, std::process::id() as i32).unwrap();
    let turn = Arc::new(Turn::default());
    let threads = [0, 1].map(|parity| begin(Some(cpus[parity as usize]), &turn, parity));
    let tids = threads.each_ref().map(|(tid, _)| *tid);
    threads.into_iter().for_each(|(_, thread)| thread.join().unwrap());
    let (mut read, mut sum, mut ended) = (Vec::new(), Transfers::default(), BTreeSet::new());
    // The last one may still be leaving the kernel.
    while ended.len() < tids.len() {
        monitor.read(&mut read).unwrap();
        for thread in read.iter().filter(|t| t.now.is_none() && tids.contains(&t.thread)) {
            ended.insert(thread.thread);
            sum.all += thread.transfers.all;
            sum.across += thread.transfers.across;
        }
    }
    Some(sum)
}

#[test]
fn lock_transfers_across_and_within_groups_are_distinguished() {
    let Some(apart) = transfers(true) else { return };
    assert!(apart.all > u64::from(TURNS) / 2 && apart.across == apart.all, "{apart:?}");
    let Some(together) = transfers(false) else { return };
    assert!(together.all > u64::from(TURNS) / 2 && together.across == 0, "{together:?}");
}

#[test]
fn transfers_are_counted_only_on_request() {
    let Some(mut monitor) = in_the_kernel() else { return };
    monitor.add(7, std::process::id() as i32).unwrap();
    let turn = Arc::new(Turn::default());
    let threads = [0, 1].map(|parity| begin(None, &turn, parity));
    let tids = threads.each_ref().map(|(tid, _)| *tid);
    threads.into_iter().for_each(|(_, thread)| thread.join().unwrap());
    let mut read = Vec::new();
    monitor.read(&mut read).unwrap();
    let own = read.iter().filter(|thread| tids.contains(&thread.thread));
    assert!(
        own.clone().count() > 0 && own.clone().all(|one| one.transfers == Transfers::default())
    );
}

#[test]
fn each_thread_has_its_most_waited_lock_and_time_of_arrival() {
    let Some(mut monitor) = in_the_kernel() else { return };
    monitor.tell_locks_apart().unwrap();
    monitor.add(7, std::process::id() as i32).unwrap();
    // Two threads wait for one lock now and then, and a third one for another lock. Both locks are
    // held for a while each.
    let locks = [Arc::new(Mutex::new(())), Arc::new(Mutex::new(()))];
    let over = Arc::new(Mutex::new(false));
    let begin = |lock: &Arc<Mutex<()>>| {
        let (lock, over) = (lock.clone(), over.clone());
        let (tell, tid) = mpsc::channel();
        let thread = thread::spawn(move || {
            tell.send(gettid().as_raw_nonzero().get()).unwrap();
            while !*over.lock().unwrap() {
                drop(lock.lock().unwrap());
            }
        });
        (tid.recv().unwrap(), thread)
    };
    let threads = [&locks[0], &locks[0], &locks[1]].map(begin);
    let tids = threads.each_ref().map(|(tid, _)| *tid);
    let (mut read, mut intervals) = (Vec::new(), Intervals::default());
    monitor.read(&mut read).unwrap();
    intervals.next(&read, Nanos::ZERO);
    for _ in 0..10 {
        let _held = locks.each_ref().map(|lock| lock.lock().unwrap());
        thread::sleep(Duration::from_millis(30));
    }
    monitor.read(&mut read).unwrap();
    let slices = intervals.next(&read, Nanos::ZERO);
    *over.lock().unwrap() = true;
    threads.into_iter().for_each(|(_, thread)| thread.join().unwrap());
    let of = |tid: i32| slices.iter().find(|slice| slice.thread.thread == tid).unwrap().thread;
    let main = |tid| of(tid).locks.into_iter().max_by_key(|lock| lock.time).unwrap();
    let waits = tids.map(main);
    assert!(waits.iter().all(|wait| wait.time >= Nanos::from_millis(50)), "{waits:?}");
    assert!(waits[0].lock == waits[1].lock && waits[0].lock != waits[2].lock, "{waits:?}");
    for arrival in tids.iter().flat_map(|tid| of(*tid).arrivals) {
        assert!(arrival.at.0 / WINDOW.0 == arrival.window, "{arrival:?}");
    }
    assert!(tids.iter().all(|tid| of(*tid).arrivals.iter().any(|arrival| arrival.window > 0)));
}
