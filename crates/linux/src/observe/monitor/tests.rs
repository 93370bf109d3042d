use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::gettid;

use super::*;
use crate::kernel::procfs::ProcState;

const SPAN: Duration = Duration::from_millis(600);

/// Threads of this process, each of which does one thing until it is to end.
struct TestThreads {
    lock: Arc<Mutex<bool>>,
    end_signal: Arc<Condvar>,
    threads: Vec<(ThreadActivity, i32, JoinHandle<()>)>,
    pipe: UnixStream,
}

impl TestThreads {
    fn gather() -> TestThreads {
        let lock = Arc::new(Mutex::new(false));
        let held = Arc::new(Mutex::new(()));
        let end_signal = Arc::new(Condvar::new());
        let (pipe, end) = UnixStream::pair().unwrap();
        let (tell, tids) = mpsc::channel();
        let begin = |activity, work: Box<dyn FnOnce() + Send>| {
            let tell = tell.clone();
            let thread = thread::spawn(move || {
                tell.send(gettid().as_raw_nonzero().get()).unwrap();
                work();
            });
            (activity, tids.recv().unwrap(), thread)
        };
        let ended = |lock: &Mutex<bool>| *lock.lock().unwrap();
        let (spun, waited) = (lock.clone(), (lock.clone(), end_signal.clone()));
        let (holder, taker) = (held.clone(), held);
        let (has, taken) = mpsc::channel();
        let holds = begin(
            ThreadActivity::Sleeping,
            Box::new(move || {
                let _held = holder.lock().unwrap();
                has.send(()).unwrap();
                std::io::Read::read(&mut &end, &mut [0]).unwrap();
            }),
        );
        taken.recv().unwrap();
        let threads = vec![
            holds,
            begin(ThreadActivity::AtMutex, Box::new(move || drop(taker.lock().unwrap()))),
            begin(
                ThreadActivity::AtCondition,
                Box::new(move || {
                    let (lock, end_signal) = waited;
                    let _end = end_signal.wait_while(lock.lock().unwrap(), |end| !*end).unwrap();
                }),
            ),
            begin(
                ThreadActivity::Running,
                Box::new(move || {
                    while !ended(&spun) {
                        (0..10_000).for_each(|i| _ = std::hint::black_box(i))
                    }
                }),
            ),
        ];
        TestThreads { lock, end_signal, threads, pipe }
    }

    /// Waits until all of them sleep that are to.
    fn settle(&self) {
        let sleeps = |tid: i32| {
            let stat = Proc::default().thread_stat(std::process::id() as i32, tid);
            stat.is_ok_and(|stat| stat.state == ProcState::Sleeping)
        };
        let sleepers =
            self.threads.iter().filter(|(activity, ..)| *activity != ThreadActivity::Running);
        while !sleepers.clone().all(|(_, tid, _)| sleeps(*tid)) {
            thread::yield_now();
        }
    }

    fn dismiss(self) {
        *self.lock.lock().unwrap() = true;
        self.end_signal.notify_all();
        std::io::Write::write_all(&mut &self.pipe, &[0]).unwrap();
        self.threads.into_iter().for_each(|(_, _, thread)| thread.join().unwrap());
    }
}

/// Checks the activity that a source reports for each thread, and its time.
fn watched(mut monitor: Monitor) {
    monitor.add(7, std::process::id() as i32).unwrap();
    let all = TestThreads::gather();
    all.settle();
    let mut first = Vec::new();
    monitor.read(&mut first).unwrap();
    let began = Instant::now();
    while began.elapsed() < SPAN {
        thread::sleep(monitor.looks_every().map_or(SPAN, |period| Duration::from_nanos(period.0)));
        monitor.look().unwrap();
    }
    let mut second = Vec::new();
    monitor.read(&mut second).unwrap();
    let find = |list: &[ThreadUse], tid: i32| {
        *list.iter().find(|t| t.thread == tid).expect("it is watched")
    };
    for (activity, tid, _) in &all.threads {
        let (before, after) = (find(&first, *tid), find(&second, *tid));
        assert_eq!((after.program, after.process), (7, std::process::id() as i32));
        let spent = after.in_activity(*activity).0 - before.in_activity(*activity).0;
        match activity {
            // Others may have the CPU, so a thread that computes may not be running when it is
            // sampled.
            ThreadActivity::Running => assert!(spent > 0),
            _ => {
                assert_eq!(after.now, Some(*activity), "{after:?}");
                assert!(
                    spent >= SPAN.as_nanos() as u64 * 9 / 10,
                    "{activity:?}: {before:?} {after:?}"
                );
            }
        }
    }
    let tids: Vec<i32> = all.threads.iter().map(|(_, tid, _)| *tid).collect();
    all.dismiss();
    // The last one may still be leaving the kernel.
    let mut ends = 0;
    while ends < tids.len() {
        monitor.read(&mut second).unwrap();
        ends += second.iter().filter(|t| t.now.is_none() && tids.contains(&t.thread)).count();
    }
    assert_eq!(ends, tids.len(), "each end is told once");
}

#[test]
fn samples_of_proc_show_what_each_thread_waits_for() {
    watched(Monitor::sampled(&Proc::default()));
}

/// `None` for ordinary users.
fn in_the_kernel() -> Option<Monitor> {
    let is_root = rustix::process::geteuid().is_root();
    is_root.then(|| Monitor::Kernel(kernel::KernelMonitor::open(&Proc::default()).unwrap()))
}

#[test]
fn the_kernel_shows_what_each_thread_waits_for() {
    in_the_kernel().into_iter().for_each(watched);
}

/// A shell that does nothing before it is observed.
struct Shell(Child);

impl Shell {
    fn waiting(script: &str) -> Shell {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("read go; {script}")]);
        Shell(shell.stdin(Stdio::piped()).spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    /// Lets it run.
    fn begin(&mut self) {
        drop(self.0.stdin.take());
    }

    /// Lets it run to its end.
    fn runs(&mut self) {
        self.begin();
        self.0.wait().unwrap();
    }
}

#[test]
fn forked_children_are_observed_too() {
    let Some(mut monitor) = in_the_kernel() else { return };
    let mut shell = Shell::waiting("sleep 0.01; sh -c 'sleep 0.01; sleep 0.01' & wait");
    monitor.add(1, shell.pid()).unwrap();
    shell.runs();
    let mut threads = Vec::new();
    monitor.read(&mut threads).unwrap();
    let processes: std::collections::BTreeSet<i32> =
        threads.iter().map(|thread| thread.process).collect();
    assert!(
        processes.len() >= 4,
        "a shell, two that sleep at least, and a shell below: {threads:?}"
    );
    assert!(threads.iter().all(|thread| thread.program == 1));
}

/// The ticks that a source counts for a thread that computes and for one that makes system calls,
/// once there are enough.
fn ticks(mut monitor: Monitor) -> [Ticks; 2] {
    const ENOUGH: u64 = 20;
    monitor.add(7, std::process::id() as i32).unwrap();
    let over = Arc::new(Mutex::new(false));
    let begin = |work: fn()| {
        let (over, (tell, tid)) = (over.clone(), mpsc::channel());
        let thread = thread::spawn(move || {
            tell.send(gettid().as_raw_nonzero().get()).unwrap();
            while !*over.lock().unwrap() {
                work();
            }
        });
        (tid.recv().unwrap(), thread)
    };
    let computes = begin(|| (0..100_000).for_each(|i| _ = std::hint::black_box(i)));
    // A file of the kernel that takes long to make.
    let calls = begin(|| _ = std::hint::black_box(std::fs::read("/proc/self/smaps")));
    monitor.count_ticks(true).unwrap();
    let counted = |monitor: &mut Monitor| {
        thread::sleep(Duration::from_millis(50));
        let mut read = Vec::new();
        monitor.read(&mut read).unwrap();
        let of = |tid| read.iter().find(|t| t.thread == tid).map_or(Ticks::default(), |t| t.ticks);
        [computes.0, calls.0].map(of)
    };
    while counted(&mut monitor).iter().any(|ticks| ticks.user + ticks.kernel < ENOUGH) {}
    let before = counted(&mut monitor);
    monitor.count_ticks(false).unwrap();
    let (after, later) = (counted(&mut monitor), counted(&mut monitor));
    assert_eq!(after, later, "nothing ticks any more without a request");
    assert_ne!(before, [Ticks::default(); 2]);
    *over.lock().unwrap() = true;
    [computes, calls].into_iter().for_each(|(_, thread)| thread.join().unwrap());
    after
}

fn computes_and_calls([computes, calls]: [Ticks; 2]) {
    assert!(computes.user > 4 * computes.kernel, "{computes:?}");
    assert!(calls.kernel > calls.user, "{calls:?}");
}

#[test]
fn bpf_ticks_distinguish_computing_from_system_calls() {
    match Monitor::open(&Proc::default()) {
        (monitor @ Monitor::Kernel(_), _) => computes_and_calls(ticks(monitor)),
        (_, why) => eprintln!("skipped: {}", why.unwrap()),
    }
}

#[test]
fn proc_ticks_distinguish_computing_from_system_calls() {
    computes_and_calls(ticks(Monitor::sampled(&Proc::default())));
}

#[test]
fn threads_without_room_are_reported_and_get_it_later() {
    let Some(Monitor::Kernel(open)) = in_the_kernel() else { return };
    drop(open);
    let kernel = kernel::KernelMonitor::with_room(&Proc::default(), 3).unwrap();
    let mut monitor = Monitor::Kernel(kernel);
    let shell = || Shell::waiting("for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.01; done");
    let mut threads = Vec::new();
    let mut both = [shell(), shell()];
    for shell in &both {
        monitor.add(1, shell.pid()).unwrap();
    }
    both.iter_mut().for_each(Shell::begin);
    both.iter_mut().for_each(Shell::runs);
    assert!(monitor.lost() > 0, "two shells and twenty that sleep had room for three");
    let lost = monitor.lost();
    monitor.read(&mut threads).unwrap();
    assert!(threads.len() == 3 && threads.iter().all(|thread| thread.now.is_none()), "{threads:?}");
    let mut last = shell();
    monitor.add(2, last.pid()).unwrap();
    last.runs();
    monitor.read(&mut threads).unwrap();
    assert!(threads.iter().any(|thread| thread.program == 2), "{threads:?}");
    assert!(monitor.lost() >= lost);
}

/// Its records are made at switches, and a thread that sleeps has none.
#[test]
fn a_process_that_only_sleeps_has_an_idle_thread_in_the_kernel() {
    let Some(mut monitor) = in_the_kernel() else { return };
    let shell = Shell::waiting("");
    let is_asleep = || {
        let stat = Proc::default().stat(shell.pid());
        stat.is_ok_and(|stat| stat.state == ProcState::Sleeping)
    };
    while !is_asleep() {
        thread::yield_now();
    }
    monitor.add(3, shell.pid()).unwrap();
    let (mut intervals, mut reading) = (interval::Intervals::default(), Vec::new());
    let mut next = |monitor: &mut Monitor, began| {
        monitor.read(&mut reading).unwrap();
        interval::by_program(&intervals.next(&reading, began))[&3]
    };
    next(&mut monitor, Nanos::ZERO);
    let began = Nanos(crate::kernel::clock::monotonic());
    let program = next(&mut monitor, began);
    assert_eq!((program.threads, program.idle), (1, 1));
    let mut shell = shell;
    shell.runs();
    let ended = next(&mut monitor, Nanos::ZERO);
    assert_eq!((ended.threads, ended.idle), (1, 0), "its end is told once, by its record");
}
