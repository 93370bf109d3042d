//! How much more does a context switch cost while run states are written down? And what does one
//! sample cost without them?
//!
//! Two threads on one CPU wake each other through a socket, so each of their turns is one switch
//! and one wake-up. Rounds of three kinds are interleaved. In the first kind, nothing is attached.
//! In the second, the programs for the kernel are attached and the threads are no members, like
//! nearly all threads of a machine. In the third, they are attached and the threads are members.
//! The output gives medians over rounds, and quartiles. Each round with the programs attached is
//! compared with nothing attached in the same round. After that come the means by which a process
//! can read a thread's state without the kernel's help: each is one sample of one thread.
//!
//! ```text
//! cargo run --release -p cosched-linux --example runstate_cost [ROUNDS]
//! ```

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use cosched_core::CpuSet;
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::observe::runstate::RunStates;

/// Turns of one thread, in one round.
const TURNS: u32 = 20_000;
const LOOKS: u32 = 2_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(15), |text| text.parse())?;
    let cpu = affinity::get(0)?.iter().next().ok_or("no CPU may be used")?;
    affinity::set(0, &CpuSet::from_iter([cpu]))?;
    let mut states = RunStates::load(&Proc::default())?;
    let (mut before, mut strangers, mut members) = (Vec::new(), Vec::new(), Vec::new());
    // A process that has become a member stays one, so all rounds without membership come first.
    // Both are compared with nothing attached in the same round.
    for round in 0..2 * rounds {
        states.rest();
        let without = turn()?;
        states.begin()?;
        if round == rounds {
            states.add(std::process::id() as i32)?;
        }
        let more = turn()? as i64 - without as i64;
        before.push(without as i64);
        if round < rounds { strangers.push(more) } else { members.push(more) }
    }
    println!("one switch and one wake-up, nothing attached: {}", summary(before));
    println!("more for threads that are not members: {}", summary(strangers));
    println!("more for a member: {}", summary(members));
    states.rest();

    let own = format!("/proc/self/task/{}", std::process::id());
    for (what, path) in [("schedstat", format!("{own}/schedstat")), ("stat", format!("{own}/stat"))]
    {
        let file = File::open(&path)?;
        let kept = looks(rounds, || _ = black_box(file.read_at(&mut [0; 512], 0)));
        let opened = looks(rounds, || _ = black_box(std::fs::read(&path)));
        println!(
            "one look at {what}, held open: {}; opened each time: {}",
            summary(kept),
            summary(opened)
        );
    }
    Ok(())
}

/// The cost of a switch and a wake-up in one round, nanoseconds.
fn turn() -> Result<u64, Box<dyn std::error::Error>> {
    let (mut here, mut there) = UnixStream::pair()?;
    let echo = std::thread::spawn(move || {
        while there.read_exact(&mut [0]).is_ok() && there.write_all(&[1]).is_ok() {}
    });
    let began = Instant::now();
    for _ in 0..TURNS {
        here.write_all(&[1])?;
        here.read_exact(&mut [0])?;
    }
    // Each turn has two of them.
    let cost = (began.elapsed() / (2 * TURNS)).as_nanos() as u64;
    drop(here);
    echo.join().expect("it does not panic");
    Ok(cost)
}

/// The cost of one sample, by rounds, nanoseconds.
fn looks(rounds: usize, look: impl Fn()) -> Vec<i64> {
    let round = |_| {
        let began = Instant::now();
        (0..LOOKS).for_each(|_| look());
        (began.elapsed() / LOOKS).as_nanos() as i64
    };
    (0..rounds).map(round).collect()
}

fn summary(mut costs: Vec<i64>) -> String {
    costs.sort_unstable();
    let at = |quarter: usize| costs.get(costs.len() * quarter / 4).copied().unwrap_or_default();
    format!("{} ns ({} to {})", at(2), at(1), at(3))
}
