//! How far are the estimates from `/proc` from what the kernel itself says?
//!
//! Both monitors observe the same program at the same time, in intervals of a second, as `faithful`
//! does. The table has the means over the intervals, and for lock contention the largest difference
//! in any interval.
//!
//! ```text
//! make kernels && cargo run --release -p cosched-linux --example monitor_error [SECONDS [FOLDER]]
//! ```

use std::error::Error;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cosched_linux::kernel::clock::Clock;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::observe::monitor::interval::{Intervals, ProgramUse, by_program};
use cosched_linux::observe::monitor::kernel::KernelMonitor;
use cosched_linux::observe::monitor::{Monitor, ThreadActivity};

/// Kernels of `workloads/`, with their options.
const PROGRAMS: [(&str, &str); 9] = [
    ("lock-loop", "--hold 100 --gap 100"),
    ("lock-loop", "--hold 100 --gap 1000"),
    ("lock-loop", "--hold 100 --gap 3000"),
    ("lock-loop", "--hold 1000 --gap 10000"),
    ("lock-loop", "--hold 10000 --gap 100000"),
    ("nested-locks", "--accounts 8"),
    ("pipeline", ""),
    ("barrier-storm", ""),
    ("sleeper", ""),
];
/// Threads per CPU.
const LOADS: [usize; 2] = [2, 4];
/// Work for far longer than the monitors observe.
const WORK: &str = "--work 100000";
/// Until all threads are started and working.
const START: Duration = Duration::from_millis(500);

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let seconds: u32 = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let folder = arguments.next().unwrap_or_else(|| "workloads/bin".to_owned());
    let cpus = std::thread::available_parallelism()?.get();
    println!(
        "| program | threads | at locks: kernel | sampled | mean, largest difference | \
         without a CPU: kernel, sampled \
         | switches/s: kernel, sampled |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, options) in PROGRAMS {
        for load in LOADS {
            let threads = load * cpus;
            let mut command = Command::new(Path::new(&folder).join(name));
            command.args(["--threads", &threads.to_string()]).args(WORK.split(' '));
            command.args(options.split_whitespace()).stdout(Stdio::null());
            let child =
                Ended(command.spawn().map_err(|error| format!("{folder}/{name}: {error}"))?);
            std::thread::sleep(START);
            let seen = both(child.0.id() as i32, seconds)?;
            println!("{}", row(&format!("{name} {options}"), threads, &seen));
        }
    }
    Ok(())
}

/// A program that ends with this value.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The figures of both monitors for each interval: the kernel's, then the sampled one's.
fn both(pid: i32, intervals: u32) -> Result<Vec<[ProgramUse; 2]>, Box<dyn Error>> {
    let (proc, clock) = (Proc::default(), Clock::start());
    let mut monitors = [Monitor::Kernel(KernelMonitor::open(&proc)?), Monitor::sampled(&proc)];
    let mut cuts = [Intervals::default(), Intervals::default()];
    for monitor in &mut monitors {
        monitor.add(0, pid)?;
    }
    // The kernel's part sees a thread from its next switch on.
    std::thread::sleep(START);
    let (mut seen, mut reading) = (Vec::new(), Vec::new());
    // The first reading is where the first interval begins.
    for interval in 0..=intervals {
        let (began, from) = (Instant::now(), clock.monotonic(clock.now()));
        while interval > 0 && began.elapsed() < Duration::from_secs(1) {
            let period = monitors[1].looks_every().unwrap_or_default();
            std::thread::sleep(Duration::from_nanos(period.0));
            monitors[1].look()?;
        }
        let mut uses = [ProgramUse::default(); 2];
        for (i, monitor) in monitors.iter_mut().enumerate() {
            monitor.read(&mut reading)?;
            let slices = cuts[i].next(&reading, from);
            uses[i] = by_program(&slices).remove(&0).unwrap_or_default();
        }
        seen.extend((interval > 0).then_some(uses));
    }
    Ok(seen)
}

fn row(name: &str, threads: usize, seen: &[[ProgramUse; 2]]) -> String {
    let mean = |of: fn(&ProgramUse) -> f64, monitor: usize| {
        seen.iter().map(|uses| of(&uses[monitor])).sum::<f64>() / seen.len() as f64
    };
    let locks = |uses: &ProgramUse| 100.0 * uses.lock_contention().unwrap_or(0.0);
    let queued = |uses: &ProgramUse| 100.0 * uses.share(ThreadActivity::Runnable).unwrap_or(0.0);
    let switches = |uses: &ProgramUse| (uses.voluntary + uses.involuntary) as f64;
    let differences = seen.iter().map(|uses| (locks(&uses[1]) - locks(&uses[0])).abs());
    format!(
        "| {} | {threads} | {:.1} % | {:.1} % | {:+.1}, {:.1} | {:.1} %, {:.1} % | {:.0}, {:.0} |",
        name.trim(),
        mean(locks, 0),
        mean(locks, 1),
        mean(locks, 1) - mean(locks, 0),
        differences.fold(0.0, f64::max),
        mean(queued, 0),
        mean(queued, 1),
        mean(switches, 0),
        mean(switches, 1),
    )
}
