//! Moving the threads of a program apart when its turn begins.
//!
//! *Problem.* A program that gets what others leave ([filler](cosched_core::Turn::Filler)) often
//! has several threads in the queue of one CPU. When its turn begins they stay there until the
//! kernel's next look at all queues, a tick or two later (4 ms each with 250 Hz): until then a
//! barrier waits for the thread behind, and the other CPU is left to fillers. With quanta of 100
//! ms, eight kernels with barriers took 6.0 s instead of 5.2 s (`docs/turns.md`).
//!
//! *Idea.* A queued thread moves at once when its mask changes. So each thread that shares a CPU
//! while another CPU has fewer is bound to that one, and gets its own mask back at once. A mask is
//! never widened: a thread moves only to CPUs of its own mask.
//!
//! *Algorithm.* The runnable threads of the programs in turn are counted by CPU. One after another,
//! a thread moves to the CPU with the fewest, if that has at least two fewer than its own. Mostly
//! there is none.
//!
//! The masks of that moment are in the undo log. A thread that is started in that moment inherits
//! one; it is found by a second look at the list of threads.

use cosched_core::{CpuSet, MAX_CPUS, ProgramId};

use crate::affinity::{self, AffinityError};
use crate::cgroup::{Dir, Version};
use crate::procfs::{Proc, State};
use crate::tree::Process;
use crate::undo::{Log, LogError, Move, Record};

/// So many threads are looked at, or twice as many as there are CPUs: a look costs some five
/// microseconds.
const MOST_LOOKS: usize = 64;

/// A runnable thread.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Runnable {
    program: ProgramId,
    thread: Process,
    /// The CPU in whose queue it is.
    cpu: usize,
}

/// Moves apart the threads of the programs in turn, each with its cgroup, on these CPUs.
///
/// # Errors
/// When the moves cannot be announced; then none is made.
pub(crate) fn spread(
    in_turn: &[(ProgramId, &Dir)],
    cpus: &CpuSet,
    proc: &Proc,
    log: &mut Log,
) -> Result<(), LogError> {
    let before: Vec<(ProgramId, Vec<i32>)> =
        in_turn.iter().map(|(program, dir)| (*program, threads(dir))).collect();
    let count: usize = before.iter().map(|(_, tids)| tids.len()).sum();
    if count < 2 || count > MOST_LOOKS.max(2 * cpus.len()) {
        return Ok(());
    }
    let all = before.iter().flat_map(|(program, tids)| tids.iter().map(|tid| (*program, *tid)));
    let runnable: Vec<Runnable> = all.filter_map(|(id, tid)| runnable(id, tid, proc)).collect();
    let moves = moves(&runnable, cpus, |thread| affinity::get(thread.pid).ok());
    if moves.is_empty() {
        return Ok(());
    }
    let known = before.iter().flat_map(|(program, tids)| tids.iter().map(|tid| (*program, *tid)));
    let kept = kept(
        &moves,
        known,
        |tid| affinity::get(tid).ok(),
        |tid| proc.thread_stat(tid, tid).ok().map(Process::from),
    );
    log.note(Record::MovesApart { moves: moves.iter().chain(&kept).copied().collect() })?;
    for one in &moves {
        // Its owner may have changed it since.
        if affinity::get(one.thread.pid).is_ok_and(|mask| mask == one.found) {
            unless_gone(affinity::set(one.thread.pid, &one.set));
        }
    }
    let mut settled = moves.iter().map(|one| give_back(one.thread.pid, one)).fold(true, both);
    let programs = in_turn.iter().zip(&before);
    for ((program, dir), (_, known)) in programs {
        let news = threads(dir).into_iter().filter(|tid| !known.contains(tid));
        for tid in news {
            let of_it = moves.iter().filter(|one| one.program == *program);
            settled &= of_it.map(|one| give_back(tid, one)).fold(true, both);
        }
    }
    // What could not be given back stays announced.
    if settled { log.note(Record::MovedApart) } else { Ok(()) }
}

/// Gives a thread the mask that was found, if it has the one of the moment; whether it does not
/// have that any more.
fn give_back(tid: i32, one: &Move) -> bool {
    match affinity::get(tid) {
        Ok(mask) if mask == one.set => unless_gone(affinity::set(tid, &one.found)),
        // Its owner has changed it since, or it has ended.
        _ => true,
    }
}

fn unless_gone(result: Result<(), AffinityError>) -> bool {
    matches!(result, Ok(()) | Err(AffinityError::Gone { .. }))
}

fn both(a: bool, b: bool) -> bool {
    a && b
}

/// The threads in a program's cgroup, without those in groups that it has made below.
fn threads(dir: &Dir) -> Vec<i32> {
    let file = match dir.version() {
        Version::V2 => "cgroup.threads",
        Version::V1 => "tasks",
    };
    let list = dir.read(file).unwrap_or_default();
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

fn runnable(program: ProgramId, tid: i32, proc: &Proc) -> Option<Runnable> {
    let stat = proc.thread_stat(tid, tid).ok()?;
    let cpu = stat.cpu;
    (stat.state == State::Running).then_some(Runnable { program, thread: stat.into(), cpu })
}

/// Which threads move, and where to.
fn moves(
    runnable: &[Runnable],
    cpus: &CpuSet,
    mask: impl Fn(Process) -> Option<CpuSet>,
) -> Vec<Move> {
    let mut load = [0u32; MAX_CPUS];
    for one in runnable {
        load[one.cpu.min(MAX_CPUS - 1)] += 1;
    }
    let mut moves = Vec::new();
    for one in runnable.iter().filter(|one| one.cpu < MAX_CPUS) {
        if load[one.cpu] < 2 {
            continue;
        }
        let Some(found) = mask(one.thread) else { continue };
        let Some(to) = found.intersection(cpus).iter().min_by_key(|cpu| load[*cpu]) else {
            continue;
        };
        if load[to] + 2 <= load[one.cpu] {
            load[to] += 1;
            load[one.cpu] -= 1;
            let set = [to].into_iter().collect();
            moves.push(Move { program: one.program, thread: one.thread, found, set });
        }
    }
    moves
}

/// The threads that have the mask of a move from themselves, told as moves that change nothing. So
/// undo keeps their masks, and does not take these threads for ones that were started in that
/// moment.
fn kept(
    moves: &[Move],
    known: impl Iterator<Item = (ProgramId, i32)>,
    mask: impl Fn(i32) -> Option<CpuSet>,
    process: impl Fn(i32) -> Option<Process>,
) -> Vec<Move> {
    let keeps = |(program, tid): (ProgramId, i32)| {
        let own = mask(tid)?;
        let alike = moves.iter().any(|one| one.program == program && one.set == own);
        let thread = alike.then(|| process(tid)).flatten()?;
        Some(Move { program, thread, found: own, set: own })
    };
    known.filter_map(keeps).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: ProgramId = ProgramId::first(0);

    fn on(cpus: &[usize]) -> Vec<Runnable> {
        let thread = |i: usize| Process { pid: i as i32, start_time: 0 };
        let of = |(i, cpu): (usize, &usize)| Runnable { program: P, thread: thread(i), cpu: *cpu };
        cpus.iter().enumerate().map(of).collect()
    }

    /// The threads that move, each with its new CPU.
    fn told(at: &[usize], cpus: usize, mask: impl Fn(i32) -> &'static str) -> Vec<(i32, String)> {
        let mask = |thread: Process| Some(mask(thread.pid).parse().unwrap());
        let moves = moves(&on(at), &CpuSet::first(cpus), mask);
        moves.iter().map(|one| (one.thread.pid, one.set.to_string())).collect()
    }

    #[test]
    fn threads_that_share_a_cpu_move_to_one_without() {
        assert_eq!(told(&[1, 1], 2, |_| "0-1"), [(0, "0".to_owned())]);
        assert_eq!(told(&[0, 1], 2, |_| "0-1"), []);
        let apart = told(&[2, 2, 2, 2], 4, |_| "0-3");
        assert_eq!(apart, [(0, "0".to_owned()), (1, "1".to_owned()), (2, "3".to_owned())]);
    }

    #[test]
    fn with_more_threads_than_cpus_the_queues_become_even() {
        assert_eq!(told(&[0, 0, 0, 1], 2, |_| "0-1"), [(0, "1".to_owned())]);
        assert_eq!(told(&[0, 0, 1], 2, |_| "0-1"), []);
    }

    #[test]
    fn threads_bound_by_themselves_are_told_apart() {
        let process = |tid: i32| Process { pid: tid, start_time: 0 };
        let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
        let one = Move { program: P, thread: process(1), found: cpus("0-1"), set: cpus("1") };
        let other = ProgramId::first(1);
        let known = [(P, 1), (P, 2), (P, 3), (other, 4)];
        let mask = |tid: i32| Some(cpus(["0-1", "1", "0", "1"][tid as usize - 1]));
        let kept = kept(&[one], known.into_iter(), mask, |tid| Some(process(tid)));
        assert_eq!(
            kept,
            [Move { program: P, thread: process(2), found: cpus("1"), set: cpus("1") }]
        );
    }

    #[test]
    fn no_thread_leaves_its_own_mask() {
        assert_eq!(
            told(&[1, 1], 4, |tid| if tid == 0 { "1" } else { "1-2" }),
            [(1, "2".to_owned())]
        );
        assert_eq!(told(&[1, 1], 2, |_| "1"), []);
        assert_eq!(told(&[1, 1], 2, |_| "1,5"), [], "no CPU of the run");
    }
}
