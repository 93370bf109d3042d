//! The CPU time of programs that run, for those who look on.
//!
//! What a program has used is told exactly when it has ended (`wait4`). Before that it has to be put together: the
//! kernel counts for each process its own time and that of the children that it has waited for, and everybody whom
//! nobody else waits for is waited for by the program's [shim](crate::shim). So the sum over the tree below the shim is
//! whole, and the shim's own time is left out. Looking costs an open file for each process, and one for each thread to
//! find new processes. So this is done rarely, by a thread that is not the scheduling one, and only while somebody
//! looks on: trees are walked every [`WALK`], times are read every [`LOOK`].
//!
//! Context switches are not told: the kernel counts them for each thread, and an open file for each thread costs too much.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use crate::procfs::{Proc, Stat};

/// How often times are read.
pub const LOOK: Duration = Duration::from_secs(2);
/// How often it is looked which processes a program has.
pub const WALK: Duration = Duration::from_secs(10);
/// Of a second: what the kernel counts times in for user space.
const TICKS: f64 = 100.0;

/// The shims of the programs by slot, told by the machine to whoever reads times.
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<[AtomicI32]>);

impl Roots {
    /// For so many programs; nothing runs yet.
    pub fn new(slots: usize) -> Roots {
        Roots((0..slots).map(|_| AtomicI32::new(0)).collect())
    }

    /// The program has this shim from now on.
    pub(crate) fn set(&self, slot: u16, shim: i32) {
        if let Some(root) = self.0.get(usize::from(slot)) {
            root.store(shim, Ordering::Relaxed);
        }
    }

    fn get(&self, slot: usize) -> Option<i32> {
        self.0.get(slot).map(|root| root.load(Ordering::Relaxed)).filter(|pid| *pid > 0)
    }
}

/// Reads times.
#[derive(Debug)]
pub struct Meter {
    proc: Proc,
    roots: Roots,
    walked: Vec<Walked>,
}

/// What the last walk has found.
#[derive(Clone, Debug, Default)]
struct Walked {
    shim: i32,
    below: Vec<i32>,
    at: Option<Instant>,
}

impl Meter {
    /// Of the programs with these shims.
    pub fn new(proc: Proc, roots: Roots) -> Meter {
        let walked = vec![Walked::default(); roots.0.len()];
        Meter { proc, roots, walked }
    }

    /// What the program at this position, which must be started and not be done, has used in its present run, seconds.
    /// `None` if its shim is gone.
    pub fn seconds(&mut self, slot: usize, now: Instant) -> Option<f64> {
        let shim = self.roots.get(slot)?;
        let walked = &mut self.walked[slot];
        let fresh = walked.at.is_some_and(|at| now.duration_since(at) < WALK);
        if walked.shim != shim || !fresh {
            *walked = Walked { shim, below: self.proc.descendants(shim).ok()?, at: Some(now) };
        }
        // Parents come first: the time of who ends meanwhile is missed once, and not counted twice.
        let reaped = self.proc.stat(shim).ok()?.reaped;
        let below = walked.below.iter().filter_map(|pid| self.proc.stat(*pid).ok());
        let used: u64 = below.map(|stat| own(&stat) + stat.reaped).sum();
        Some((reaped + used) as f64 / TICKS)
    }
}

fn own(stat: &Stat) -> u64 {
    stat.utime + stat.stime
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_time_of_everybody_below_counts_also_of_those_who_have_ended() {
        // A child that has ended, one that lives, and the parent in the shim's place, whose own time is left out.
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{spin}'; sh -c '{spin}; exec sleep 1000' & wait");
        let mut shim = Command::new("sh").args(["-c", &script]).spawn().unwrap();
        let roots = Roots::new(2);
        roots.set(1, shim.id() as i32);
        let (proc, mut meter) = (Proc::default(), Meter::new(Proc::default(), roots));
        let last = loop {
            let below = proc.descendants(shim.id() as i32).unwrap();
            let asleep = |pid: &&i32| {
                std::fs::read_to_string(proc.folder(**pid).join("comm"))
                    .is_ok_and(|c| c == "sleep\n")
            };
            if let Some(pid) = below.iter().find(asleep) {
                break *pid;
            }
            std::thread::yield_now();
        };
        let alone = own(&proc.stat(last).unwrap()) as f64 / TICKS;
        let both = meter.seconds(1, Instant::now()).unwrap();
        assert!(alone > 0.0 && both > alone, "{both} {alone}");
        assert_eq!(meter.seconds(0, Instant::now()), None);
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(last).unwrap(),
            rustix::process::Signal::KILL,
        )
        .unwrap();
        shim.wait().unwrap();
        assert_eq!(meter.seconds(1, Instant::now()), None);
    }
}
