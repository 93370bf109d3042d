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
//! *A thread that is started in that moment* inherits its mask. The moment of each thread is as short
//! as two calls. A millisecond later, new threads in the list are looked at, until none has such a
//! mask. A process that is being started then may take longer until it is in the list. So a thread is
//! moved only if it has no child process, and has waited for none since the last switch (or ever, if
//! it was not there then and its process has several threads).
//!
//! The masks of the moment are in the undo log.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use cosched_core::{CpuSet, MAX_CPUS, ProgramId};

use crate::affinity::{self, AffinityError};
use crate::cgroup::{Dir, Version};
use crate::files;
use crate::procfs::{Proc, Stat, State};
use crate::tree::Process;
use crate::undo::{Log, LogError, Move, Record};

/// So many threads are looked at, or twice as many as there are CPUs: a look costs some five
/// microseconds.
const MOST_LOOKS: usize = 64;
/// How long it takes at most until a thread that is being started can be seen.
const BIRTH: Duration = Duration::from_millis(1);
/// Threads that start threads that start threads are followed this far.
const MOST_GENERATIONS: usize = 8;

/// A runnable thread.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Runnable {
    program: ProgramId,
    thread: Process,
    /// The CPU in whose queue it is.
    cpu: usize,
    /// Whether it may be moved: it is unlikely to start a process now.
    may_move: bool,
}

/// Moves threads apart, and remembers what it has seen of them.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    /// The threads of each program at its last switch, and what each had waited for.
    seen: BTreeMap<ProgramId, HashMap<Process, u64>>,
}

impl Spread {
    /// Moves apart the threads of the programs in turn, each with its cgroup, on these CPUs.
    ///
    /// # Errors
    /// When the moves cannot be announced; then none is made.
    pub(crate) fn spread(
        &mut self,
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
        let mut runnable = Vec::new();
        for (program, tids) in &before {
            self.look(*program, tids, proc, &mut runnable);
        }
        let moves = moves(&runnable, cpus, |thread| affinity::get(thread.pid).ok());
        if moves.is_empty() {
            return Ok(());
        }
        let known =
            before.iter().flat_map(|(program, tids)| tids.iter().map(|tid| (*program, *tid)));
        let kept = kept(
            &moves,
            known,
            |tid| affinity::get(tid).ok(),
            |tid| proc.thread_stat(tid, tid).ok().map(Process::from),
        );
        let announced = moves.iter().chain(&kept).copied().collect();
        log.note(Record::MovesApart { moves: announced })?;
        let mut settled = true;
        for one in &moves {
            // Its owner may have changed it since.
            if affinity::get(one.thread.pid).is_ok_and(|mask| mask == one.found) {
                unless_gone(affinity::set(one.thread.pid, &one.set));
                settled &= give_back(one.thread.pid, one) != Given::Refused;
            }
        }
        for ((program, dir), (_, known)) in in_turn.iter().zip(&before) {
            let of_it: Vec<&Move> = moves.iter().filter(|one| one.program == *program).collect();
            settled &= of_it.is_empty()
                || give_back_to_newborn(known, &of_it, give_back, || {
                    std::thread::sleep(BIRTH);
                    threads(dir)
                });
        }
        // What could not be given back stays announced.
        if settled { log.note(Record::MovedApart) } else { Ok(()) }
    }

    /// Looks at the threads of a program; adds those that are runnable, with whether they may move.
    fn look(
        &mut self,
        program: ProgramId,
        tids: &[i32],
        proc: &Proc,
        runnable: &mut Vec<Runnable>,
    ) {
        let before = self.seen.remove(&program).unwrap_or_default();
        let stats: Vec<Stat> =
            tids.iter().filter_map(|tid| proc.thread_stat(*tid, *tid).ok()).collect();
        for stat in stats.iter().filter(|stat| stat.state == State::Running) {
            let thread = Process::from(*stat);
            let waited_for = stat.faults_of_reaped;
            let has_waited = match before.get(&thread) {
                Some(before) => waited_for != *before,
                // Shells, compilers and `make` have one thread.
                None => stat.threads < 2 || waited_for > 0,
            };
            let may_move = !has_waited && !has_children(stat.pid, proc);
            runnable.push(Runnable { program, thread, cpu: stat.cpu, may_move });
        }
        let seen = stats.into_iter().map(|stat| (Process::from(stat), stat.faults_of_reaped));
        self.seen.insert(program, seen.collect());
    }

    /// Forgets all other programs.
    pub(crate) fn keep_only(&mut self, is_there: impl Fn(ProgramId) -> bool) {
        self.seen.retain(|program, _| is_there(*program));
    }
}

/// Whether a thread has started processes that it has not waited for.
fn has_children(tid: i32, proc: &Proc) -> bool {
    let list = files::read(&proc.folder(tid).join(format!("task/{tid}/children")));
    list.is_ok_and(|list| !list.trim().is_empty())
}

/// Gives the mask that was found to the threads that are not among the known ones and have inherited
/// that of a moment; whether all have it.
fn give_back_to_newborn(
    known: &[i32],
    moves: &[&Move],
    mut give_back: impl FnMut(i32, &Move) -> Given,
    mut look: impl FnMut() -> Vec<i32>,
) -> bool {
    let mut known: HashSet<i32> = known.iter().copied().collect();
    for _ in 0..MOST_GENERATIONS {
        let news: Vec<i32> = look().into_iter().filter(|tid| known.insert(*tid)).collect();
        let pairs = news.iter().flat_map(|tid| moves.iter().map(move |one| (*tid, one)));
        let given: Vec<Given> = pairs.map(|(tid, one)| give_back(tid, one)).collect();
        if given.contains(&Given::Refused) {
            return false;
        }
        if !given.contains(&Given::Back) {
            return true;
        }
    }
    false
}

/// What became of a mask that was to be given back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Given {
    /// The thread has it.
    Back,
    /// The thread did not have the mask of the moment, or has ended.
    NotNeeded,
    Refused,
}

/// Gives a thread the mask that was found, if it has the one of the moment.
fn give_back(tid: i32, one: &Move) -> Given {
    match affinity::get(tid) {
        Ok(mask) if mask == one.set => match unless_gone(affinity::set(tid, &one.found)) {
            true => Given::Back,
            false => Given::Refused,
        },
        // Its owner has changed it since, or it has ended.
        _ => Given::NotNeeded,
    }
}

fn unless_gone(result: Result<(), AffinityError>) -> bool {
    matches!(result, Ok(()) | Err(AffinityError::Gone { .. }))
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
        if load[one.cpu] < 2 || !one.may_move {
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
        let of = |(i, cpu): (usize, &usize)| Runnable {
            program: P,
            thread: thread(i),
            cpu: *cpu,
            may_move: true,
        };
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
    fn a_thread_that_may_start_a_process_stays() {
        let mut threads = on(&[1, 1, 1]);
        (threads[0].may_move, threads[1].may_move) = (false, false);
        let moves = moves(&threads, &CpuSet::first(2), |_| "0-1".parse().ok());
        assert_eq!(moves.iter().map(|one| one.thread.pid).collect::<Vec<_>>(), [2]);
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
    fn what_newborn_threads_have_started_meanwhile_is_looked_at_until_none_has_the_mask() {
        let process = Process { pid: 1, start_time: 0 };
        let cpus = |list: &str| list.parse::<CpuSet>().unwrap();
        let one = Move { program: P, thread: process, found: cpus("0-1"), set: cpus("1") };
        let (mut given, mut looks) = (Vec::new(), 0);
        let lists: [&[i32]; 4] = [&[1, 2], &[1, 2, 3], &[1, 3, 4], &[5]];
        let give = |tid: i32, _: &Move| {
            given.push(tid);
            if tid < 4 { Given::Back } else { Given::NotNeeded }
        };
        let look = || {
            looks += 1;
            lists[looks - 1].to_vec()
        };
        assert!(give_back_to_newborn(&[1], &[&one], give, look));
        assert_eq!((given, looks), (vec![2, 3, 4], 3));
        let refuse = |_: i32, _: &Move| Given::Refused;
        assert!(!give_back_to_newborn(&[1], &[&one], refuse, || vec![2]), "it stays announced");
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
