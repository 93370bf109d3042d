//! Moving the threads of a program in turn apart.
//!
//! *Problem.* A program that runs as backfill ([filler](cosched_core::Turn::Filler)) often has
//! several threads in the queue of one CPU. When its turn begins they stay there until the kernel
//! next balances all queues, a tick or two later (4 ms each with 250 Hz). Until then a barrier
//! waits for the thread behind, and the other CPU is left to backfill. With quanta of 100 ms, eight
//! kernels with barriers took 6.0 s instead of 5.2 s (`docs/research/turns.md`).
//!
//! *Idea.* A queued thread moves at once when its mask changes. Each thread that shares a CPU while
//! another CPU has fewer is therefore bound to that one, and gets its own mask back at once. A mask
//! is never widened: a thread moves only to CPUs of its own mask.
//!
//! *Algorithm.* The runnable threads of the programs that get the turn are counted by CPU. One
//! after another, a thread moves to the CPU with the fewest, if that has at least two fewer than
//! its own. Mostly there is no such CPU.
//!
//! *Between two weights.* At a switch the moves are made when the programs already have their
//! weight in turn, and those at the end of their turn have it still. Earlier, reading a thread's
//! data may wait for a lock that the thread holds, and the thread gets no CPU to release it. Later,
//! Linux 6.18 may keep everything else from a CPU for seconds: a thread of great weight comes to a
//! CPU that has only backfill (`docs/research/turns.md`).
//!
//! *A thread that is started in that moment* inherits its mask. Mostly there can be none: a thread
//! that the kernel has not run meanwhile has started none. If it has run, the threads that were
//! started in the program since, by their numbers, are checked until none has the mask. To make
//! that rare, a program is left alone if a thread or process of it has come since its last check,
//! or one of its processes has waited for a child.
//!
//! *During a turn.* Two threads come to share a CPU again: one sleeps, wakes up on the CPU of
//! another, and stays there, since to the kernel all CPUs look busy with backfill. So the threads
//! are checked [now and then](cosched_core::Turn::moved_apart_every). If a thread that was moved
//! has left its CPU by then, the kernel had a reason, such as a process of others on that CPU. No
//! thread is moved there again in this turn.
//!
//! The temporary masks are in the undo log.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use cosched_core::{CpuSet, MAX_CPUS, ProgramId};

use crate::cgroup::Dir;
use crate::kernel::affinity::{self, AffinityError};
use crate::kernel::procfs::{Proc, ProcState, Stat};
use crate::process::tree::Process;
use crate::safety::undo::{Log, LogError, Move, Record};

/// How many threads are checked, or twice as many as there are CPUs: a check costs some five
/// microseconds.
const MOST_LOOKS: usize = 64;
/// How long it takes at most until a thread that is being started can be seen.
const BIRTH: Duration = Duration::from_millis(1);
/// The most generations of threads that are followed from a thread to those that it starts.
const MOST_GENERATIONS: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct SpreadCandidate<'a> {
    pub(crate) program: ProgramId,
    /// Which of its units has the turn within it; 0 if it has none.
    pub(crate) unit: u32,
    pub(crate) dir: &'a Dir,
    /// The group of the whole program, which is the same where it has no units.
    pub(crate) home: &'a Dir,
    /// The CPUs that it has from now on.
    pub(crate) cpus: CpuSet,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Runnable {
    program: ProgramId,
    thread: Process,
    /// The CPU with the queue that it is in.
    cpu: usize,
    /// The CPUs that its program has from now on.
    cpus: CpuSet,
}

/// Moves threads apart, and remembers what it has seen of them.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    /// The threads of each program, or of each of its units, when they were last checked, and what
    /// each had waited for.
    seen: BTreeMap<(ProgramId, u32), HashMap<Process, u64>>,
    /// The CPUs that threads were moved to since a turn last began.
    used: CpuSet,
    unsettled: Option<Unsettled>,
}

/// Moves that were announced, and are not yet sure to be over.
#[derive(Debug, Default)]
struct Unsettled {
    /// The last number that a thread had got before.
    first: Option<i32>,
    /// The threads of the programs before.
    known: BTreeMap<ProgramId, Vec<i32>>,
    /// The moves of threads that have run meanwhile, and may have started others.
    have_run: Vec<Move>,
    /// Whether a mask could not be restored.
    refused: bool,
}

impl Spread {
    /// A turn begins: threads may be moved to every CPU again.
    pub(crate) fn begin(&mut self) {
        self.used = CpuSet::default();
    }

    /// Separates the threads of programs that have the turn, on a machine with so many CPUs. No
    /// move is made that cannot be announced.
    pub(crate) fn spread(
        &mut self,
        in_turn: &[SpreadCandidate<'_>],
        cpus: usize,
        proc: &Proc,
        log: &mut Log,
    ) -> Result<(), LogError> {
        let before: Vec<Vec<i32>> = in_turn.iter().map(|one| one.dir.threads()).collect();
        let count: usize = before.iter().map(Vec::len).sum();
        if count < 2 || count > MOST_LOOKS.max(2 * cpus) {
            return Ok(());
        }
        let mut runnable = Vec::new();
        for (candidate, tids) in in_turn.iter().zip(&before) {
            self.look(candidate, tids, proc, &mut runnable);
        }
        let mut moves = moves(&runnable, &self.used, |thread| affinity::get(thread.pid).ok());
        if moves.is_empty() {
            return Ok(());
        }
        // The program's other threads may have bound themselves to one of these CPUs.
        let below = in_turn.iter().map(|one| (one.program, one.home.threads_below()));
        let all = below.filter(|(_, (_, is_all))| *is_all);
        let known: BTreeMap<ProgramId, Vec<i32>> = all.map(|(id, (tids, _))| (id, tids)).collect();
        moves.retain(|one| known.contains_key(&one.program));
        if moves.is_empty() {
            return Ok(());
        }
        self.used = moves.iter().fold(self.used, |used, one| used.union(&one.set));
        let tids = known.iter().flat_map(|(id, tids)| tids.iter().map(|tid| (*id, *tid)));
        let kept = kept(
            &moves,
            tids,
            |tid| affinity::get(tid).ok(),
            |tid| proc.thread_stat(tid, tid).ok().map(Process::from),
        );
        let announced = moves.iter().chain(&kept).copied().collect();
        log.note(Record::MovesApart { moves: announced })?;
        let mut unsettled = Unsettled { first: proc.last_pid(), known, ..Unsettled::default() };
        for one in &moves {
            // Its owner may have changed it since.
            if affinity::get(one.thread.pid).is_ok_and(|mask| mask == one.found) {
                let runs = proc.runs(one.thread.pid);
                unless_gone(affinity::set(one.thread.pid, &one.set));
                unsettled.refused |= give_back(one.thread.pid, one) == RestoreResult::Refused;
                if runs.is_none() || runs != proc.runs(one.thread.pid) {
                    unsettled.have_run.push(*one);
                }
            }
        }
        self.unsettled = Some(unsettled);
        Ok(())
    }

    /// Makes sure that the last moves are over: no thread that was started meanwhile has one of
    /// their masks. This may take milliseconds, in which the program should have its turn.
    pub(crate) fn settle<'a>(
        &mut self,
        dir: impl Fn(ProgramId) -> Option<&'a Dir>,
        proc: &Proc,
        log: &mut Log,
    ) -> Result<(), LogError> {
        let Some(Unsettled { first, known, have_run, refused }) = self.unsettled.take() else {
            return Ok(());
        };
        let mut settled = !refused;
        for (program, known) in &known {
            let of_it: Vec<&Move> = have_run.iter().filter(|one| one.program == *program).collect();
            let Some(dir) = dir(*program).filter(|_| !of_it.is_empty()) else { continue };
            // Threads that these have started in turn have greater numbers.
            let mut last = proc.last_pid();
            settled &= give_back_to_newborn(known, &of_it, give_back, || {
                std::thread::sleep(BIRTH);
                let (mut newborn, is_all) = dir.threads_below();
                newborn.retain(|tid| is_between(*tid, first, last));
                last = proc.last_pid();
                (newborn, is_all)
            });
        }
        // Masks that could not be restored, or may be those of unseen threads, stay announced.
        if settled { log.note(Record::MovedApart) } else { Ok(()) }
    }

    /// Checks the threads of a program; adds those that are runnable, with whether they may move.
    fn look(
        &mut self,
        candidate: &SpreadCandidate<'_>,
        tids: &[i32],
        proc: &Proc,
        runnable: &mut Vec<Runnable>,
    ) {
        let SpreadCandidate { program, unit, cpus, .. } = *candidate;
        let before = self.seen.remove(&(program, unit)).unwrap_or_default();
        let stats: Vec<Stat> =
            tids.iter().filter_map(|tid| proc.thread_stat(*tid, *tid).ok()).collect();
        let now: HashMap<Process, u64> =
            stats.iter().map(|stat| (Process::from(*stat), stat.faults_of_reaped)).collect();
        if starts_nothing(&before, &now) {
            let running = stats.iter().filter(|stat| stat.state == ProcState::Running);
            runnable.extend(running.map(|stat| {
                let thread = Process::from(*stat);
                Runnable { program, thread, cpu: stat.cpu, cpus }
            }));
        }
        self.seen.insert((program, unit), now);
    }

    pub(crate) fn keep_only(&mut self, is_there: impl Fn(ProgramId) -> bool) {
        self.seen.retain(|(program, _), _| is_there(*program));
    }
}

/// Whether a thread with this number was started between two other numbers; where one of them is
/// unknown, it may have been. Numbers start again after the greatest.
fn is_between(tid: i32, first: Option<i32>, last: Option<i32>) -> bool {
    match (first, last) {
        (Some(first), Some(last)) if first <= last => tid > first && tid <= last,
        (Some(first), Some(last)) => tid > first || tid <= last,
        _ => true,
    }
}

/// Whether a program seems to have started no thread and no process since its last switch: all of
/// its threads were there then, and none has waited for a process since.
fn starts_nothing(before: &HashMap<Process, u64>, now: &HashMap<Process, u64>) -> bool {
    now.iter().all(|(thread, waited_for)| before.get(thread) == Some(waited_for))
}

/// Restores the mask of threads that are not among the known ones and have inherited a temporary
/// one. Each look tells whether it has seen all threads. Returns whether all are known to have
/// their mask.
fn give_back_to_newborn(
    known: &[i32],
    moves: &[&Move],
    mut give_back: impl FnMut(i32, &Move) -> RestoreResult,
    mut look: impl FnMut() -> (Vec<i32>, bool),
) -> bool {
    let mut known: HashSet<i32> = known.iter().copied().collect();
    for _ in 0..MOST_GENERATIONS {
        let (seen, is_all) = look();
        let news: Vec<i32> = seen.into_iter().filter(|tid| known.insert(*tid)).collect();
        let pairs = news.iter().flat_map(|tid| moves.iter().map(move |one| (*tid, one)));
        let given: Vec<RestoreResult> = pairs.map(|(tid, one)| give_back(tid, one)).collect();
        if given.contains(&RestoreResult::Refused) {
            return false;
        }
        if !given.contains(&RestoreResult::Back) {
            return is_all;
        }
    }
    false
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum RestoreResult {
    Back,
    /// The thread did not have the temporary mask, or has ended.
    NotNeeded,
    Refused,
}

/// Restores the mask of a thread, if it has the temporary one.
fn give_back(tid: i32, one: &Move) -> RestoreResult {
    match affinity::get(tid) {
        Ok(mask) if mask == one.set => match unless_gone(affinity::set(tid, &one.found)) {
            true => RestoreResult::Back,
            false => RestoreResult::Refused,
        },
        // Its owner has changed it since, or it has ended.
        _ => RestoreResult::NotNeeded,
    }
}

fn unless_gone(result: Result<(), AffinityError>) -> bool {
    matches!(result, Ok(()) | Err(AffinityError::Gone(_)))
}

/// Which threads move, and where to: to none of the CPUs that are `used` up.
fn moves(
    runnable: &[Runnable],
    used: &CpuSet,
    mask: impl Fn(Process) -> Option<CpuSet>,
) -> Vec<Move> {
    let mut load = [0u32; MAX_CPUS];
    for one in runnable {
        load[one.cpu.min(MAX_CPUS - 1)] += 1;
    }
    let mut moves = Vec::new();
    for one in runnable.iter().filter(|one| one.cpu < MAX_CPUS) {
        let may_stay = one.cpus.contains(one.cpu);
        if may_stay && load[one.cpu] < 2 {
            continue;
        }
        let Some(found) = mask(one.thread) else { continue };
        let open = found.intersection(&one.cpus).difference(used);
        let Some(to) = open.iter().min_by_key(|cpu| load[*cpu]) else { continue };
        if !may_stay || load[to] + 2 <= load[one.cpu] {
            load[to] += 1;
            load[one.cpu] -= 1;
            let set = [to].into_iter().collect();
            moves.push(Move { program: one.program, thread: one.thread, found, set });
        }
    }
    moves
}

/// The threads that set the mask of a move themselves, listed as moves that change nothing. Undo
/// then keeps their masks, and does not take them for threads that were started in that moment.
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
mod tests;
