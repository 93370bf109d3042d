//! What must a switch between two gangs cost? The lower bound for cosched's own cost.
//!
//! Two programs of spinning processes, one per CPU, each in a cgroup of version 2, take turns of
//! 100 ms; a bare loop freezes the one, sleeps until it has stopped, and thaws the other. It
//! decides nothing and accounts nothing. Its CPU time per switch is the minimum for any scheduler
//! that sleeps, freezes and thaws by cgroup.
//!
//! ```text
//! cargo run --release -p cosched-linux --example switch_cost [SWITCHES]
//! ```

use std::process::{Child, Command};

use cosched_core::Nanos;
use cosched_linux::cgroup::{Dir, FreezeSwitch, Hierarchies};
use cosched_linux::kernel::clock::Clock;
use cosched_linux::kernel::poll::Poll;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::{self, SHORTEST_SLICE, SchedAttr};
use cosched_results::metrics::quantile;
use rustix::time::{ClockId, clock_gettime};

const QUANTUM: Nanos = Nanos::from_millis(100);
const LOOK: Nanos = Nanos::from_micros(60);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let first = std::env::args().nth(1);
    if first.as_deref() == Some("spin") {
        loop {
            std::hint::spin_loop();
        }
    }
    let switches: usize = first.map_or(Ok(100), |text| text.parse())?;
    let found = Hierarchies::find(&Proc::default())?;
    let own = &found.v2().ok_or("cgroup version 2 is not mounted")?.own;
    let programs = [Program::start(own, "a")?, Program::start(own, "b")?];
    let slice = SchedAttr { runtime: SHORTEST_SLICE, ..sched_attr::get(0)?.reset_on_fork() };
    sched_attr::set(0, &slice)?;

    let (clock, mut poll) = (Clock::start(), Poll::new(&[])?);
    let mut sleep = |time: Nanos| -> std::io::Result<()> {
        let due = clock.now() + time;
        while clock.now() < due {
            poll.wait(clock.absolute(due), &mut Vec::new())?;
        }
        Ok(())
    };
    programs[1].switch.freeze()?;
    let mut costs = Vec::with_capacity(switches);
    for turn in 0..switches {
        let (old, new) = (&programs[turn % 2], &programs[(turn + 1) % 2]);
        sleep(QUANTUM)?;
        let before = cpu_time();
        old.switch.freeze()?;
        while !old.switch.is_frozen()? {
            sleep(LOOK)?;
        }
        new.switch.thaw()?;
        sleep(Nanos::from_micros(1))?;
        costs.push(cpu_time() - before);
    }
    let micros = |share| quantile(&costs, share).map_or(f64::NAN, |n| n.0 as f64 / 1e3);
    println!(
        "CPU time of one switch, microseconds: p50 {:.0}, p90 {:.0}",
        micros(0.5),
        micros(0.9)
    );
    let percent = micros(0.5) * 100.0 / (QUANTUM.0 as f64 / 1e3);
    println!("so at least {percent:.2} % of one CPU with quanta of {QUANTUM}");
    Ok(())
}

/// The CPU time of this thread.
fn cpu_time() -> Nanos {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(used.tv_sec as u64 * 1_000_000_000 + used.tv_nsec as u64)
}

/// Spinning processes in a cgroup, which are killed when this is dropped.
struct Program {
    dir: Dir,
    switch: FreezeSwitch,
    spinners: Vec<Child>,
}

impl Program {
    fn start(own: &Dir, name: &str) -> Result<Program, Box<dyn std::error::Error>> {
        let dir = own.create_child(&format!("switch-cost-{name}-{}", std::process::id()))?;
        let switch = FreezeSwitch::open(&dir)?;
        let mut program = Program { dir, switch, spinners: Vec::new() };
        for _ in 0..std::thread::available_parallelism()?.get() {
            let spinner = Command::new(std::env::current_exe()?).arg("spin").spawn()?;
            program.dir.add(spinner.id() as i32)?;
            program.spinners.push(spinner);
        }
        Ok(program)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Each step is tried even if an earlier one failed.
        let _ = self.switch.thaw();
        for spinner in &mut self.spinners {
            let _ = spinner.kill().and_then(|()| spinner.wait());
        }
        let _ = self.dir.remove();
    }
}
