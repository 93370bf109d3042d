//! CPU time and context switches of running programs, for clients.
//!
//! The usage of a program is known exactly when it has ended (`wait4`). Before that it has to be
//! summed up. *CPU time*: the kernel counts for each process its own time and that of the children
//! that it has waited for. The program's [shim](crate::process::shim) waits for every process that
//! no other process waits for. The sum over the tree below the shim is therefore complete; the
//! shim's own time is left out. *Switches* are counted for each thread. Those of a thread that has
//! ended since the last sample are missed until the program's end. *Busy processes* are those with
//! CPU time since the last sample.
//!
//! A program in cosched's own place has cosched itself as its shim. Of one that ran before cosched
//! came, only the busy processes are told, and none with a parent that has ended.
//!
//! A sample costs an open file for each process and each thread. It is therefore taken by a thread
//! that is not the scheduling one, and only while there is a client. [`SamplePace`] says how often.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::kernel::clock::ticks_since_boot;
use crate::kernel::procfs::{Proc, Stat};

/// The shortest time between two samples.
const LOOK: Duration = Duration::from_secs(2);
/// Samples take this part of the time at most: 0.025 % of a CPU, however many programs and threads
/// there are.
const PART: u32 = 4000;
const WALK: Duration = Duration::from_secs(10);
/// Ticks in a second: the kernel's unit of times for user space.
const TICKS: f64 = 100.0;
/// A process with less CPU time than this, in CPUs, is not busy.
const BUSY: f64 = 0.05;
/// The most busy processes that are told of a program.
const MOST_BUSY: usize = 8;

/// The process with a program's processes below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Root {
    pub(crate) pid: i32,
    pub(crate) start_time: u64,
    pub(crate) is: RootKind,
}

/// What the root of a program is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RootKind {
    /// Its shim, or cosched in that place, which is not part of it.
    Shim,
    /// Its first process, which ran before cosched came.
    Running,
}

/// The programs by slot: the machine writes where they are for the code that reads times.
#[derive(Clone, Debug, Default)]
pub struct Roots(Arc<[Mutex<Option<Root>>]>);

impl Roots {
    /// For so many programs; none runs yet.
    pub fn new(slots: usize) -> Roots {
        Roots((0..slots).map(|_| Mutex::default()).collect())
    }

    pub(crate) fn set(&self, slot: u16, root: Option<Root>) {
        if let Some(Ok(place)) = self.0.get(usize::from(slot)).map(Mutex::lock).as_mut() {
            **place = root;
        }
    }

    fn get(&self, slot: usize) -> Option<Root> {
        *self.0.get(slot)?.lock().ok()?
    }
}

/// When to sample.
#[derive(Debug, Default)]
pub struct SamplePace {
    next: Option<Instant>,
}

impl SamplePace {
    /// Whether a sample is due.
    pub fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| now >= next)
    }

    /// Notes the duration of a sample.
    pub fn has_looked(&mut self, began: Instant, took: Duration) {
        self.next = Some(began + LOOK.max(took * PART));
    }
}

/// What a program has used in its present run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// CPU time, seconds.
    pub seconds: f64,
    /// Context switches, voluntary and not.
    pub switches: u64,
}

/// A process that computes.
#[derive(Clone, Debug, PartialEq)]
pub struct ProcessLoad {
    /// Its number.
    pub pid: i32,
    /// The name that the kernel has for it.
    pub name: String,
    /// How many threads it has.
    pub threads: u32,
    /// CPU time over time since the last sample, or since it started.
    pub cpus: f64,
}

/// Reads what programs have used.
#[derive(Debug)]
pub struct Meter {
    proc: Proc,
    roots: Roots,
    walked: Vec<Walked>,
}

#[derive(Clone, Debug, Default)]
struct Walked {
    root: Option<Root>,
    below: Vec<i32>,
    at: Option<Instant>,
    /// Switches of the threads that existed at the last sample.
    threads: HashMap<i32, u64>,
    /// Switches of threads that have ended, as far as they were seen.
    gone: u64,
    /// When processes were read last, in ticks since boot, and their CPU time then.
    read: u64,
    ticks: HashMap<i32, u64>,
    busy: Vec<ProcessLoad>,
}

impl Meter {
    /// For these programs.
    pub fn new(proc: Proc, roots: Roots) -> Meter {
        let walked = vec![Walked::default(); roots.0.len()];
        Meter { proc, roots, walked }
    }

    /// The usage of the program in this slot, which must have started and not be done. `None` if
    /// it is not known, or the program's root is gone.
    pub fn used(&mut self, slot: usize, now: Instant) -> Option<Used> {
        let root = self.roots.get(slot)?;
        let has_shim = root.is == RootKind::Shim;
        let walked = &mut self.walked[slot];
        if walked.root != Some(root) {
            *walked = Walked { root: Some(root), ..Walked::default() };
        }
        if walked.at.is_none_or(|at| now.duration_since(at) >= WALK) {
            let below = self.proc.descendants(root.pid).ok()?;
            let first = Some(root.pid).filter(|_| !has_shim);
            (walked.below, walked.at) = (first.into_iter().chain(below).collect(), Some(now));
        }
        // Parents come first: the time of a process that ends meanwhile is missed once, and not
        // counted twice.
        let of_root = self.proc.stat(root.pid).ok()?;
        if of_root.start_time != root.start_time {
            return None;
        }
        let reaped = if has_shim { of_root.reaped } else { 0 };
        let below = walked.below.iter().filter_map(|pid| self.proc.stat(*pid).ok());
        let below: Vec<Stat> = below.collect();
        let used: u64 = below.iter().map(|stat| own(stat) + stat.reaped).sum();
        if walked.read == 0 && !has_shim {
            walked.note_times(&below, ticks_since_boot());
        }
        walked.look_for_busy(&below, ticks_since_boot(), &self.proc);
        has_shim.then(|| Used {
            seconds: (reaped + used) as f64 / TICKS,
            switches: walked.switches(&self.proc),
        })
    }

    /// The processes of the program in this slot that computed between the last two samples, the
    /// busiest first; none if it is only one.
    pub fn busy(&self, slot: usize) -> &[ProcessLoad] {
        &self.walked[slot].busy
    }
}

impl Walked {
    /// `now`: ticks since boot.
    fn look_for_busy(&mut self, below: &[Stat], now: u64, proc: &Proc) {
        let (before, earlier) = self.note_times(below, now);
        let busy = below.iter().filter_map(|stat| {
            let (known, since) = match earlier.get(&stat.pid) {
                Some(known) => (*known, before),
                None => (0, stat.start_time),
            };
            let used = own(stat).saturating_sub(known);
            let cpus = used as f64 / now.saturating_sub(since).max(1) as f64;
            let name = || proc.name(stat.pid).ok();
            (cpus >= BUSY).then(name).flatten().map(|name| ProcessLoad {
                pid: stat.pid,
                name,
                threads: stat.threads,
                cpus: (cpus * 100.0).round() / 100.0,
            })
        });
        self.busy = busy.collect();
        self.busy.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.pid.cmp(&b.pid)));
        self.busy.truncate(if self.busy.len() > 1 { MOST_BUSY } else { 0 });
    }

    /// Notes the CPU times of processes, and returns those noted before, with their time.
    fn note_times(&mut self, below: &[Stat], now: u64) -> (u64, HashMap<i32, u64>) {
        let ticks = below.iter().map(|stat| (stat.pid, own(stat))).collect();
        (std::mem::replace(&mut self.read, now), std::mem::replace(&mut self.ticks, ticks))
    }

    fn switches(&mut self, proc: &Proc) -> u64 {
        let mut threads = HashMap::new();
        for pid in &self.below {
            for tid in proc.threads(*pid).unwrap_or_default() {
                if let Ok(switches) = proc.switches(*pid, tid) {
                    threads.insert(tid, switches);
                }
            }
        }
        let ended = self.threads.iter().filter(|(tid, _)| !threads.contains_key(tid));
        self.gone += ended.map(|(_, switches)| switches).sum::<u64>();
        self.threads = threads;
        self.gone + self.threads.values().sum::<u64>()
    }
}

fn own(stat: &Stat) -> u64 {
    stat.utime + stat.stime
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::testkit::TestProcess;
    use crate::process::tree::Process;

    #[test]
    fn the_longer_a_sample_takes_the_rarer_it_is() {
        let (mut pace, now) = (SamplePace::default(), Instant::now());
        assert!(pace.is_due(now));
        pace.has_looked(now, Duration::from_micros(100));
        assert!(!pace.is_due(now + LOOK / 2) && pace.is_due(now + LOOK));
        pace.has_looked(now, Duration::from_millis(5));
        assert!(!pace.is_due(now + Duration::from_secs(19)));
        assert!(pace.is_due(now + Duration::from_secs(20)));
    }

    #[test]
    fn processes_that_compute_are_told_the_busiest_first() {
        let (proc, mut walked) = (Proc::default(), Walked::default());
        let pids = [rustix::process::getpid(), rustix::process::getppid().unwrap()];
        let stats = |times: [u64; 2]| {
            let stat = |(pid, utime): (rustix::process::Pid, u64)| {
                let stat = proc.stat(pid.as_raw_nonzero().get()).unwrap();
                Stat { utime, stime: 0, start_time: 1000, threads: 2, ..stat }
            };
            pids.into_iter().zip(times).map(stat).collect::<Vec<_>>()
        };
        let mut told = |times, now| {
            walked.look_for_busy(&stats(times), now, &proc);
            walked.busy.iter().map(|busy| (busy.pid, busy.threads, busy.cpus)).collect::<Vec<_>>()
        };
        let [first, second] = pids.map(|pid| pid.as_raw_nonzero().get());
        assert_eq!(told([50, 100], 1100), [(second, 2, 1.0), (first, 2, 0.5)], "since its start");
        assert_eq!(told([450, 200], 1300), [(first, 2, 2.0), (second, 2, 0.5)], "since then");
        assert_eq!(told([650, 201], 1400), [], "only one");
    }

    #[test]
    fn cpu_time_includes_descendants_that_have_ended() {
        // A child that has ended, one that lives, and the parent in the shim's place; its own
        // time is left out.
        let spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{spin}'; sh -c '{spin}; exec sleep 1000' & wait");
        let (shim, roots) = (TestProcess::shell(&script), Roots::new(2));
        let Process { pid, start_time } = shim.process();
        let root = |is| Some(Root { pid, start_time, is });
        roots.set(1, root(RootKind::Shim));
        let (proc, mut meter) = (Proc::default(), Meter::new(Proc::default(), roots.clone()));
        let last = loop {
            let below = proc.descendants(shim.pid()).unwrap();
            let asleep = |pid: &&i32| proc.name(**pid).is_ok_and(|name| name == "sleep");
            if let Some(pid) = below.iter().find(asleep) {
                break *pid;
            }
            std::thread::yield_now();
        };
        let alone = own(&proc.stat(last).unwrap()) as f64 / TICKS;
        let used = meter.used(1, Instant::now()).unwrap();
        let both = used.seconds;
        assert!(alone > 0.0 && both > alone, "{both} {alone}");
        assert!(used.switches > 0);
        assert_eq!(meter.used(0, Instant::now()), None);
        roots.set(1, root(RootKind::Running));
        assert_eq!(meter.used(1, Instant::now()), None, "it had used some before");
        assert_eq!(meter.busy(1), [], "nothing since");
        drop(shim);
        assert_eq!(meter.used(1, Instant::now()), None);
    }
}
