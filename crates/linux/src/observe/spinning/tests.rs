use std::hint::{black_box, spin_loop};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::{Duration, Instant};

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
#[ignore = "the program that another test looks at"]
fn two_threads_spin_on_a_flag() {
    static FLAG: AtomicBool = AtomicBool::new(false);
    let spin = || {
        while !FLAG.load(Relaxed) {
            spin_loop();
        }
    };
    thread::scope(|scope| {
        scope.spawn(spin);
        spin();
    });
}

#[test]
#[ignore = "the program that another test looks at"]
fn two_threads_compute() {
    fn compute() {
        let mut sum = 0u64;
        loop {
            for i in 0..100_000u64 {
                sum = black_box(sum.wrapping_mul(31).wrapping_add(i));
            }
        }
    }
    thread::scope(|scope| {
        scope.spawn(compute);
        compute();
    });
}

/// A program that is ended with this.
struct Endless(Child);

impl Endless {
    fn start(test: &str) -> Endless {
        let mut program = Command::new(std::env::current_exe().unwrap());
        program.args(["--exact", &format!("observe::spinning::tests::{test}"), "--ignored"]);
        Endless(program.stdout(Stdio::null()).spawn().unwrap())
    }

    /// What is known once so many samples were judged.
    fn looked_at(&self, samples: u64, known: &mut Vec<SpinLoop>) -> SpinUse {
        let proc = Proc::default();
        let process = Process::find(&proc, self.0.id() as i32).unwrap();
        let (mut seen, until) = (SpinUse::default(), Instant::now() + PATIENCE);
        while seen.samples < samples {
            assert!(Instant::now() < until, "{} samples after {PATIENCE:?}", seen.samples);
            let look = SpinLook::begin(&[process], &proc);
            thread::sleep(Duration::from_millis(50));
            look.into_iter().for_each(|look| seen.add(look, known, &proc));
        }
        seen
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn threads_that_spin_are_recognised_and_those_that_compute_are_not() {
    let clock = SampleClock::CpuTime.sampling();
    if waiting::HERE.is_none() || counters::can_sample(clock).is_err() {
        eprintln!("skipped: the instruction pointer cannot be sampled here");
        return;
    }
    let mut known = Vec::new();
    let spins = Endless::start("two_threads_spin_on_a_flag");
    let seen = spins.looked_at(200, &mut known).so_far().unwrap();
    eprintln!("{seen:?} {known:?}");
    // Unoptimised, the look at the flag is a function of its own. Its samples lie in no loop.
    assert!(seen.share > 0.25, "{seen:?}");
    let again = spins.looked_at(5, &mut known).so_far().unwrap();
    assert!(again.share > 0.0, "it is known now: {again:?}");
    drop(spins);
    let computes = Endless::start("two_threads_compute");
    let seen = computes.looked_at(200, &mut known).so_far().unwrap();
    assert_eq!((seen.share, seen.loops), (0.0, Vec::new()));
}
