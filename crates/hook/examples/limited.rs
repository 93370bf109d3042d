//! Runs a command with a fixed thread limit for its parallel regions, without a scheduler: `limited
//! N COMMAND...`. It prints how often the command requested threads. Use it to try out what the
//! hook does to a program, and what that costs.

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use cosched_linux::hook::{HookServer, Uses, library, preloaded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};

/// How often to check whether the command has ended.
const LOOK: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let usage = "usage: limited N COMMAND...";
    let thread_limit: u16 = words.next().ok_or(usage)?.parse()?;
    let mut server = HookServer::open(Uses::THREADS)?;
    server.limit_threads(Some(thread_limit), 0);
    let mut env = std::env::vars_os().collect();
    preloaded(&mut env, &library()?, server.name());
    let mut child =
        Command::new(words.next().ok_or(usage)?).args(words).env_clear().envs(env).spawn()?;
    let mut requests = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let patience = Timespec::try_from(LOOK)?;
        poll(&mut [PollFd::new(&server, PollFlags::IN)], Some(&patience))?;
        let time = clock_gettime(ClockId::Monotonic);
        let now = time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000;
        if server.hear(now, |_| true).requested.is_some() {
            requests += 1;
            server.limit_threads(Some(thread_limit), 0);
        }
        server.beat(now);
    };
    eprintln!("limited: {requests} requests; ticks: {}; {status}", server.reported().ticks);
    Ok(())
}
