//! The rival `split`: every program gets CPUs of its own, as when a user starts programs with
//! `taskset`.
//!
//! The shares are disjoint blocks of neighbouring CPUs. Every program gets one CPU, and each
//! further one goes to the program with the most threads per CPU: as near to a division in
//! proportion to threads as whole CPUs allow. Where there are more programs than CPUs, each gets
//! one, and they share them in turn (the third of three on two CPUs gets the first one).
//!
//! A program is then asked to use as many threads as it has CPUs, if it would use more. OpenMP's
//! and OpenBLAS' runtimes do that by themselves where no number is set. Where the workload file
//! sets one, a user who gives a program one CPU does not tell it to use two. A number in the
//! command itself (`--threads 8`) stays.

use cosched_core::{CpuSet, Level};
use cosched_workload::ProgramSpec;

use crate::session::Session;
use crate::ui::failure::Failure;

/// The command that starts a program on some CPUs.
const TASKSET: &str = "taskset";

/// Starts each of the programs on its own share of the CPUs.
pub(super) fn split(programs: &mut [ProgramSpec], session: &Session) -> Result<(), Failure> {
    let threads: Vec<u16> = programs.iter().map(|spec| session.threads(spec)).collect();
    let shares = shares(&threads, &neighbours(session));
    for ((spec, threads), share) in programs.iter_mut().zip(threads).zip(shares) {
        // What is wrong with the command itself is told before taskset stands in front of it.
        session.executable(spec)?;
        spec.threads = Some(threads.min(share.len() as u16));
        let words = [TASKSET.to_owned(), "--cpu-list".to_owned(), share.to_string()];
        spec.command.splice(..0, words);
        session.executable(spec).map_err(|_| {
            Failure::Input(format!(
                "variant 'split' needs the command {TASKSET}, which is not in PATH; install it \
                 (Debian, Ubuntu: \
                 apt-get install util-linux), or leave the variant out"
            ))
        })?;
    }
    Ok(())
}

/// The usable CPUs, those that share most beside each other.
fn neighbours(session: &Session) -> Vec<usize> {
    let usable = session.topology.cpus().iter().filter(|cpu| session.usable.cpus.contains(cpu.id));
    let mut cpus: Vec<_> =
        usable.map(|cpu| (Level::ALL.map(|level| cpu.group(level)), cpu.id)).collect();
    cpus.sort_unstable();
    cpus.into_iter().map(|(_, id)| id).collect()
}

/// The CPUs of each program, by how many threads it has; none is empty.
fn shares(threads: &[u16], cpus: &[usize]) -> Vec<CpuSet> {
    if threads.len() >= cpus.len() {
        let one = |(_, cpu): (&u16, &usize)| CpuSet::from_iter([*cpu]);
        return threads.iter().zip(cpus.iter().cycle()).map(one).collect();
    }
    let mut sizes = vec![1; threads.len()];
    for _ in threads.len()..cpus.len() {
        // Of equals the first one.
        let most = (0..sizes.len()).rev().max_by(|a, b| {
            let per_cpu = |i: usize| f64::from(threads[i]) / f64::from(sizes[i]);
            per_cpu(*a).total_cmp(&per_cpu(*b))
        });
        most.into_iter().for_each(|i| sizes[i] += 1);
    }
    let mut left = cpus.iter().copied();
    sizes.iter().map(|size| left.by_ref().take(*size as usize).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(threads: &[u16], cpus: usize) -> Vec<String> {
        let cpus: Vec<usize> = (0..cpus).collect();
        shares(threads, &cpus).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn shares_are_disjoint_and_near_the_thread_counts() {
        assert_eq!(shown(&[2, 2], 2), ["0", "1"]);
        assert_eq!(shown(&[4, 4], 8), ["0-3", "4-7"]);
        assert_eq!(shown(&[1, 3], 4), ["0", "1-3"]);
        assert_eq!(shown(&[8, 8, 8], 8), ["0-2", "3-5", "6-7"]);
        assert_eq!(shown(&[1, 1, 6], 16), ["0-1", "2-3", "4-15"]);
    }

    #[test]
    fn every_program_gets_a_cpu_even_if_they_must_share() {
        assert_eq!(shown(&[100, 1, 1], 4), ["0-1", "2", "3"]);
        assert_eq!(shown(&[2, 2, 2, 2, 2], 2), ["0", "1", "0", "1", "0"]);
        assert_eq!(shown(&[4], 4), ["0-3"]);
    }
}
