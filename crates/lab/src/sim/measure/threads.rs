//! What it takes to put another thread on a CPU, to wake one, and to tell one that spins.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cosched_core::{Level, Topology};

use super::{Effort, median, on_each};
use crate::ui::failure::Failure;

/// The time to put another thread on a CPU, nanoseconds: two threads on one CPU yield to each
/// other (`sched_yield`). The time that yielding takes without another thread is subtracted. Only
/// the switches that the kernel counted count.
pub(super) fn switch(cpu: usize, effort: Effort) -> Result<f64, Failure> {
    let yields = 20_000 / effort.less;
    let yield_cpu = |threads: usize| -> Result<(f64, u64), Failure> {
        let together = Barrier::new(threads);
        let measured = on_each(&vec![cpu; threads], |_| {
            together.wait();
            let (since, before) = (Instant::now(), switches_so_far());
            for _ in 0..yields {
                std::thread::yield_now();
            }
            (since.elapsed().as_nanos() as f64, switches_so_far() - before)
        })?;
        let longest = measured.iter().map(|(time, _)| *time).fold(0.0, f64::max);
        Ok((longest, measured.iter().map(|(_, switches)| switches).sum()))
    };
    let mut figures = Vec::new();
    for _ in 0..effort.repetitions {
        let (alone, _) = yield_cpu(1)?;
        let (both, switches) = yield_cpu(2)?;
        figures.push(((both - 2.0 * alone) / switches.max(1) as f64).max(0.0));
    }
    Ok(median(&figures))
}

/// Voluntary and involuntary switches of the calling thread; 0 where the kernel does not tell.
fn switches_so_far() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let lines = text.lines().filter(|line| line.contains("voluntary_ctxt_switches"));
    lines.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
}

/// From waking a thread that sleeps on an idle CPU until it runs, nanoseconds: the median, and what
/// one in ten stays below and above. Where there is one CPU, nothing.
pub(super) fn wake(topology: &Topology, effort: Effort) -> Result<[f64; 3], Failure> {
    let cpus = topology.cpus();
    let Some(other) = cpus.get(1) else { return Ok([0.0; 3]) };
    let rounds = (600 / effort.less).max(10) as u64;
    let (origin, woken_at, seen) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
    let ready = AtomicBool::new(false);
    let sleeper = std::sync::OnceLock::new();
    let now = || origin.elapsed().as_nanos() as u64;
    let measured = on_each(&[cpus[0].id, other.id], |cpu| {
        let mut latencies = Vec::new();
        if cpu == other.id {
            let _ = sleeper.set(std::thread::current());
            ready.store(true, Ordering::Release);
            for round in 1..=rounds {
                let mut since = woken_at.load(Ordering::Acquire);
                while since == 0 {
                    std::thread::park();
                    since = woken_at.load(Ordering::Acquire);
                }
                latencies.push((now() - since) as f64);
                woken_at.store(0, Ordering::Release);
                seen.store(round, Ordering::Release);
            }
        } else {
            while !ready.load(Ordering::Acquire) {
                std::hint::spin_loop();
            }
            for round in 1..=rounds {
                // Long enough to be asleep, and no longer than programs sleep at their barriers and
                // locks.
                let since = Instant::now();
                while since.elapsed() < Duration::from_micros(100) {
                    std::hint::spin_loop();
                }
                woken_at.store(now(), Ordering::Release);
                if let Some(sleeper) = sleeper.get() {
                    sleeper.unpark();
                }
                while seen.load(Ordering::Acquire) < round {
                    std::hint::spin_loop();
                }
            }
        }
        latencies
    })?;
    let mut all = measured.concat();
    all.sort_by(f64::total_cmp);
    Ok([median(&all), all[all.len() / 10], all[all.len() * 9 / 10]])
}

/// How often the kernel moves a thread that waits for a CPU although all CPUs have as many, per
/// second and CPU; `None` where it does not tell. Two threads for each CPU never wait for anything;
/// every move is made good by another one later, which does not count.
pub(super) fn strays(cpus: usize, effort: Effort) -> Result<Option<f64>, Failure> {
    let settle = Duration::from_millis(300) / effort.less as u32;
    let time = Duration::from_secs(8) / effort.less as u32;
    let since = Instant::now();
    let spin = |until: Duration| while since.elapsed() < until {};
    let moves = std::thread::scope(|scope| {
        let moved = || {
            spin(settle);
            let before = migrations()?;
            spin(settle + time);
            Some(migrations()? - before)
        };
        let threads: Vec<_> = (0..2 * cpus).map(|_| scope.spawn(moved)).collect();
        threads.into_iter().map(|thread| thread.join().ok().flatten()).sum::<Option<u64>>()
    });
    Ok(moves.map(|moves| moves as f64 / 2.0 / time.as_secs_f64() / cpus as f64))
}

/// How often others interrupt a busy CPU, per second: the switches of a thread on each CPU that
/// never waits.
pub(super) fn interruptions(cpus: &[usize], effort: Effort) -> Result<f64, Failure> {
    let time = Duration::from_secs(3) / effort.less as u32;
    let switches = on_each(cpus, |_| {
        let (since, before) = (Instant::now(), switches_so_far());
        while since.elapsed() < time {
            std::hint::spin_loop();
        }
        switches_so_far() - before
    })?;
    Ok(switches.iter().sum::<u64>() as f64 / time.as_secs_f64() / cpus.len() as f64)
}

/// What a tick takes of a thread that runs, nanoseconds: how long one that does nothing but look at
/// the clock stands still at a time. Most of these times are ticks; the rare long ones, others'
/// turns, do not move the median.
pub(super) fn tick(cpus: &[usize], effort: Effort) -> Result<f64, Failure> {
    const SEEN: Duration = Duration::from_micros(1);
    let time = Duration::from_secs(1) / effort.less as u32;
    let gaps = on_each(cpus, |_| {
        let (since, mut last, mut gaps) = (Instant::now(), Instant::now(), Vec::new());
        while last - since < time {
            let now = Instant::now();
            if now - last > SEEN {
                gaps.push((now - last).as_nanos() as f64);
            }
            last = now;
        }
        gaps
    })?;
    let gaps = gaps.concat();
    Ok(if gaps.is_empty() { 0.0 } else { median(&gaps) })
}

/// How often the calling thread was moved to another CPU.
fn migrations() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
    let line = text.lines().find(|line| line.contains("nr_migrations"))?;
    line.split_whitespace().last()?.parse().ok()
}

/// Until a spinning thread sees what another CPU has written, nanoseconds: on the same core, in the
/// same package, across packages. Where the machine has no such pair, the next nearer one counts,
/// or else the next wider one.
pub(super) fn signals(topology: &Topology, effort: Effort) -> Result<[f64; 3], Failure> {
    let cpus = topology.cpus();
    let kinds = [[true, true], [false, true], [false, false]];
    let mut found = [None; 3];
    for (kind, found) in kinds.iter().zip(&mut found) {
        let pair = cpus.iter().find_map(|a| {
            let same = |b: &cosched_core::Cpu| {
                [Level::Core, Level::Package].map(|level| a.group(level) == b.group(level))
            };
            cpus.iter().find(|b| a.id != b.id && same(b) == *kind).map(|b| [a.id, b.id])
        });
        if let Some(pair) = pair {
            *found = Some(signal(pair, effort)?);
        }
    }
    let nearest = |kind: usize| {
        let nearer = found[..=kind].iter().rev();
        nearer.chain(&found[kind..]).find_map(|figure| *figure).unwrap_or(0.0)
    };
    Ok([nearest(0), nearest(1), nearest(2)])
}

/// Half of the time of a round trip between two CPUs.
fn signal(pair: [usize; 2], effort: Effort) -> Result<f64, Failure> {
    let rounds = 20_000 / effort.less as u64;
    let mut figures = Vec::new();
    for _ in 0..effort.repetitions {
        let ball = AtomicU64::new(0);
        let times = on_each(&pair, |cpu| {
            let own = u64::from(cpu == pair[1]);
            let since = Instant::now();
            for round in 0..rounds {
                while ball.load(Ordering::Acquire) != 2 * round + own {}
                ball.store(2 * round + own + 1, Ordering::Release);
            }
            since.elapsed().as_nanos() as f64
        })?;
        // The thread that was started last has not waited for the other one to be made.
        let time = times.iter().copied().fold(f64::INFINITY, f64::min);
        figures.push(time / (2 * rounds) as f64);
    }
    Ok(median(&figures))
}
