//! How late does a sleeping thread wake while every CPU is busy? The evidence for how cosched
//! schedules itself.
//!
//! Spinning processes fill every CPU (two each, or as many as the first argument says). This
//! process sleeps for 5 ms again and again, as cosched does between quanta, in several scheduling
//! settings, interleaved round by round. Settings without the needed permission are left out, with
//! a message.
//!
//! ```text
//! cargo run --release -p cosched-linux --example wake_lateness [SPINNERS_PER_CPU [ROUNDS]]
//! ```

use std::process::{Child, Command};

use cosched_core::Nanos;
use cosched_linux::kernel::clock::Clock;
use cosched_linux::kernel::poll::Poll;
use cosched_linux::kernel::sched_attr::{self, SchedAttr, SchedPolicy};
use cosched_results::metrics::quantile;

const SLEEP: Nanos = Nanos::from_millis(5);
const SLEEPS_PER_ROUND: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next();
    if first.as_deref() == Some("spin") {
        loop {
            std::hint::spin_loop();
        }
    }
    let per_cpu: usize = first.map_or(Ok(2), |text| text.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let cpus = std::thread::available_parallelism()?.get();
    let spinners = Spinners::start(per_cpu * cpus)?;

    let found = sched_attr::get(0)?.reset_on_fork();
    let settings: [(&str, SchedAttr); 6] = [
        ("fair, original", found),
        ("fair, slice 0.1 ms", SchedAttr { runtime: Nanos::from_micros(100), ..found }),
        ("fair, nice -10", SchedAttr { nice: -10, ..found }),
        (
            "fair, nice -10, slice 0.1 ms",
            SchedAttr { nice: -10, runtime: Nanos::from_micros(100), ..found },
        ),
        ("batch", SchedAttr { policy: SchedPolicy::Batch, ..found }),
        (
            "fifo 1",
            SchedAttr {
                policy: SchedPolicy::Fifo,
                priority: 1,
                nice: 0,
                runtime: Nanos::ZERO,
                ..found
            },
        ),
    ];
    let mut lateness: Vec<Vec<Nanos>> = vec![Vec::new(); settings.len()];
    let (clock, mut poll) = (Clock::start(), Poll::new(&[])?);
    for _ in 0..rounds {
        for ((name, attr), late) in settings.iter().zip(&mut lateness) {
            if sched_attr::set(0, attr).is_err() {
                eprintln!("skipped: '{name}' needs CAP_SYS_NICE");
                continue;
            }
            for _ in 0..SLEEPS_PER_ROUND {
                let due = clock.now() + SLEEP;
                while clock.now() < due {
                    poll.wait(clock.absolute(due), &mut Vec::new())?;
                }
                late.push(clock.now() - due);
            }
            sched_attr::set(0, &found)?;
        }
    }
    drop(spinners);
    println!(
        "lateness of a wake-up beside {per_cpu} spinning thread(s) per CPU, \
         {cpus} CPUs, microseconds"
    );
    println!("{:<30} {:>8} {:>8} {:>8}", "cosched's own scheduling", "p50", "p99", "max");
    for ((name, _), late) in settings.iter().zip(&lateness) {
        let micros = |share| quantile(late, share).map_or(f64::NAN, |n| n.0 as f64 / 1e3);
        println!("{name:<30} {:>8.0} {:>8.0} {:>8.0}", micros(0.5), micros(0.99), micros(1.0));
    }
    Ok(())
}

/// Processes that use up every CPU until this is dropped.
struct Spinners(Vec<Child>);

impl Spinners {
    fn start(n: usize) -> std::io::Result<Spinners> {
        let me = std::env::current_exe()?;
        (0..n)
            .map(|_| Command::new(&me).arg("spin").spawn())
            .collect::<Result<_, _>>()
            .map(Spinners)
    }
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // Another process may have ended it. Nothing else can be done about that.
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}
