//! A program of threads that wait for one lock, and how they are scheduled.

use std::process::Child;

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::{self, SchedAttr, default_slice};
use cosched_linux::process::tree::Process;

use super::{Place, eventually, skip};

/// How many of its threads wait for one another.
const THREADS: &str = "3";

/// The program, running. Its main thread has a nice value of its own.
#[derive(Debug)]
pub(crate) struct Locker {
    pub(crate) process: Process,
    /// The original scheduling of its main thread and of its others, including those that are born
    /// later.
    found: [SchedAttr; 2],
    /// The handle, where the test itself is its parent.
    child: Option<Child>,
}

impl Locker {
    /// How it is started.
    pub(crate) const ARGUMENTS: [&str; 2] = ["locks", THREADS];

    /// Whether this kernel has slices; prints a message if not.
    pub(crate) fn can_be_changed() -> bool {
        let here = default_slice().unwrap().is_some();
        if !here {
            skip("this kernel has no slices per thread (Linux 6.12 has)");
        }
        here
    }

    /// Starts it, without a cosched.
    pub(crate) fn start(place: &Place) -> Locker {
        Locker::of_threads(THREADS, place)
    }

    /// Starts one with so many threads that wait for one another.
    pub(crate) fn of_threads(threads: &str, place: &Place) -> Locker {
        let child = place.start(&place.trap(), &[Locker::ARGUMENTS[0], threads]);
        let process = Process::find(&Proc::default(), child.id() as i32).unwrap();
        Locker::of(process, Some(child))
    }

    /// The one that a cosched of this place has started.
    pub(crate) fn in_place(place: &Place) -> Locker {
        let mut found = None;
        eventually("the program", || {
            found = place.marked().named("trap").first().copied();
            found.is_some()
        });
        Locker::of(found.unwrap(), None)
    }

    fn of(process: Process, child: Option<Child>) -> Locker {
        let attrs = |process: Process| all(process.pid).into_iter().map(|(_, attr)| attr);
        // One thread comes and goes.
        eventually("the threads", || attrs(process).count() > 3);
        let plain = SchedAttr { runtime: cosched_core::Nanos::ZERO, ..sched_attr::get(0).unwrap() };
        if child.is_some() {
            let nicer = SchedAttr { nice: (plain.nice + 2).min(19), ..plain };
            sched_attr::set(process.pid, &nicer).unwrap();
            let main = sched_attr::get(process.pid).unwrap();
            return Locker {
                process,
                found: [main, SchedAttr { nice: plain.nice, ..main }],
                child,
            };
        }
        let default = sched_attr::default_slice().unwrap().unwrap();
        let found = SchedAttr { runtime: default, ..plain };
        Locker { process, found: [found; 2], child }
    }

    /// Whether all its threads have another slice than the original one.
    pub(crate) fn is_changed(&self) -> bool {
        let attrs = all(self.process.pid);
        !attrs.is_empty() && attrs.iter().all(|(_, attr)| attr.runtime != self.found[0].runtime)
    }

    /// Whether all its threads have their original scheduling, or the one that they were born with.
    pub(crate) fn has_original_settings(&self) -> bool {
        let [main, others] = self.found;
        let attrs = all(self.process.pid);
        let is_original = |(tid, attr): &(i32, SchedAttr)| {
            // A newborn thread may come from either.
            if *tid == self.process.pid { *attr == main } else { [main, others].contains(attr) }
        };
        !attrs.is_empty() && attrs.iter().all(is_original)
    }

    /// How its threads are scheduled.
    pub(crate) fn attrs(&self) -> Vec<SchedAttr> {
        all(self.process.pid).into_iter().map(|(_, attr)| attr).collect()
    }

    /// Checks that it gets more CPU time from here on.
    pub(crate) fn goes_on(&self, place: &Place) {
        let before = place.marked().ticks(self.process);
        eventually("the program's going on", || place.marked().ticks(self.process) > before);
    }

    /// Makes it end by itself. Returns its status, where the test is its parent.
    pub(crate) fn stop(mut self, place: &Place) -> Option<i32> {
        place.write("stop", "");
        eventually("the program's end", || match &mut self.child {
            Some(child) => child.try_wait().unwrap().is_some(),
            None => !place.marked().lives(self.process),
        });
        self.child.map(|mut child| child.wait().unwrap().code().unwrap())
    }
}

/// All threads of a process, with how they are scheduled; those that end meanwhile are left out.
fn all(pid: i32) -> Vec<(i32, SchedAttr)> {
    let tids = Proc::default().threads(pid).unwrap_or_default();
    tids.into_iter().filter_map(|tid| Some((tid, sched_attr::get(tid).ok()?))).collect()
}
