//! The journal: what is still to be undone, according to the log.
//!
//! Later records cancel earlier ones (a program is gone, a cgroup was removed), and many repeat
//! what is known already: a program that is bound to the same CPUs in every quantum needs one
//! record, not one per quantum. The journal is therefore small however long cosched runs, and knows
//! which announcements are new.

use std::collections::{HashMap, HashSet};

use cosched_core::{CpuSet, ProgramId};

use super::record::Record;
use crate::process::tree::Process;

/// Stands for a thread where records of several threads are compared.
const ANY: Process = Process { pid: 0, start_time: 0 };

/// The records that are in force.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    records: Vec<Record>,
    /// The same records, to find them fast.
    known: HashSet<Record>,
    /// The masks in the records of threads' own masks: each thread has one such record at most.
    own_masks: HashMap<(ProgramId, Process), CpuSet>,
    /// How many lines of the log cannot be read.
    damaged: usize,
}

impl Journal {
    /// The records in force, in the order in which they came.
    pub fn records(&self) -> &[Record] {
        &self.records
    }

    /// How many lines of the log cannot be read: what they announced may still be in force.
    pub fn damaged_lines(&self) -> usize {
        self.damaged
    }

    /// Counts a line that cannot be read.
    pub(super) fn count_damaged(&mut self) {
        self.damaged += 1;
    }

    /// Whether it is known that there is nothing to undo.
    pub fn owes_nothing(&self) -> bool {
        let owes_nothing = |record: &Record| match record {
            Record::Program { stopped_by_signal, .. } => !stopped_by_signal,
            Record::Boot { .. }
            | Record::PidNamespace { .. }
            | Record::Main { .. }
            | Record::Orphan { .. } => true,
            _ => false,
        };
        self.damaged == 0 && self.records.iter().all(owes_nothing)
    }

    /// Whether the record would change the journal.
    pub fn is_news(&self, record: &Record) -> bool {
        match record {
            Record::Gone { program } => {
                self.records.iter().any(|known| known.program() == Some(*program))
            }
            Record::ContinuedByOther { process } => {
                self.known.contains(&Record::StoppedByOther { process: *process })
            }
            Record::CgroupRemoved { dir } => self.records.iter().any(|known| known.is_cgroup(dir)),
            Record::MovedApart => self.records.iter().any(is_move),
            Record::Unpinned { program, set } => {
                self.records.iter().any(|known| is_pin(known, *program, set))
            }
            _ => !self.known.contains(record),
        }
    }

    /// Adds a record.
    pub fn add(&mut self, record: Record) {
        match &record {
            Record::Gone { program } => self.strike(|known| known.program() == Some(*program)),
            Record::ContinuedByOther { process } => {
                self.strike(|known| *known == Record::StoppedByOther { process: *process });
            }
            Record::CgroupRemoved { dir } => self.strike(|known| known.is_cgroup(dir)),
            Record::MovedApart => self.strike(is_move),
            Record::Unpinned { program, set } => self.strike(|known| is_pin(known, *program, set)),
            // Of a thread's own masks, the last one is valid.
            Record::UserMask { program, thread, mask } => {
                let (of, mask) = ((*program, *thread), *mask);
                // Most threads have no earlier one, and a log may have many of them.
                if self.own_masks.get(&of).is_some_and(|before| *before != mask) {
                    self.strike(|known| own_mask_of(known) == Some(of));
                }
                self.own_masks.insert(of, mask);
                self.take_in(record);
            }
            _ => self.take_in(record),
        }
    }

    fn take_in(&mut self, record: Record) {
        if self.known.insert(record.clone()) {
            self.records.push(record);
        }
    }

    /// Forgets processes that have ended, and the changes of such threads except for one of each
    /// kind: what such a thread has started may have inherited it.
    pub(super) fn forget_ended(&mut self, lives: impl Fn(Process) -> bool) {
        let mut kept = HashSet::new();
        self.strike(|known| {
            let (thread, alike) = match known {
                Record::Attr { program, thread, found, set } => {
                    let (program, found, set) = (*program, *found, *set);
                    (*thread, Record::Attr { program, thread: ANY, found, set })
                }
                Record::UserMask { program, thread, mask } => {
                    let (program, mask) = (*program, *mask);
                    (*thread, Record::UserMask { program, thread: ANY, mask })
                }
                Record::Orphan { process, .. } | Record::StoppedByOther { process } => {
                    return !lives(*process);
                }
                _ => return false,
            };
            !lives(thread) && !kept.insert(alike)
        });
    }

    fn strike(&mut self, mut matches: impl FnMut(&Record) -> bool) {
        let (known, own_masks) = (&mut self.known, &mut self.own_masks);
        self.records.retain(|record| {
            let stays = !matches(record);
            if !stays {
                known.remove(record);
                if let Some(of) = own_mask_of(record) {
                    own_masks.remove(&of);
                }
            }
            stays
        });
    }
}

fn is_move(record: &Record) -> bool {
    matches!(record, Record::MovesApart { .. })
}

fn is_pin(record: &Record, of: ProgramId, mask: &CpuSet) -> bool {
    matches!(record, Record::Pinned { program, set, .. } if *program == of && set == mask)
}

/// The program and the thread that a record of a thread's own mask is about.
fn own_mask_of(record: &Record) -> Option<(ProgramId, Process)> {
    match record {
        Record::UserMask { program, thread, .. } => Some((*program, *thread)),
        _ => None,
    }
}

impl FromIterator<Record> for Journal {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Journal {
        let mut journal = Journal::default();
        records.into_iter().for_each(|record| journal.add(record));
        journal
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::Nanos;

    use super::*;
    use crate::kernel::sched_attr::{SchedAttr, SchedPolicy};
    use crate::safety::undo::Move;

    const P: ProgramId = ProgramId::first(0);
    const Q: ProgramId = ProgramId::first(1);

    fn numbered(pid: i32) -> Process {
        Process { pid, start_time: 1 }
    }

    fn mask(pid: i32, cpus: usize) -> Record {
        Record::UserMask { program: P, thread: numbered(pid), mask: CpuSet::first(cpus) }
    }

    fn pinned(program: ProgramId, cpus: usize) -> Record {
        Record::Pinned { program, found: CpuSet::first(8), set: CpuSet::first(cpus) }
    }

    #[test]
    fn a_repeated_announcement_is_news_only_once() {
        let mut journal = Journal::default();
        assert!(journal.is_news(&pinned(P, 2)));
        journal.add(pinned(P, 2));
        assert!(!journal.is_news(&pinned(P, 2)));
        assert!(journal.is_news(&pinned(P, 4)) && journal.is_news(&pinned(Q, 2)));
    }

    #[test]
    fn an_unchanged_program_needs_no_undo() {
        let process = numbered(7);
        let main = Record::Main { program: P, process };
        let started =
            |stopped_by_signal| Record::Program { program: P, shim: process, stopped_by_signal };
        let owes_nothing = |records: [Record; 2]| Journal::from_iter(records).owes_nothing();
        assert!(owes_nothing([started(false), main.clone()]));
        assert!(!owes_nothing([started(true), main.clone()]));
        assert!(!owes_nothing([main, pinned(P, 2)]));
    }

    #[test]
    fn a_program_that_is_gone_needs_no_undo() {
        let mut journal: Journal = [pinned(P, 2), pinned(Q, 2), pinned(P, 4)].into_iter().collect();
        journal.add(Record::Gone { program: P });
        assert_eq!(journal.records(), [pinned(Q, 2)]);
        assert!(!journal.is_news(&Record::Gone { program: P }));
        assert!(journal.is_news(&pinned(P, 2)));
    }

    #[test]
    fn a_mask_that_no_thread_has_needs_no_undo() {
        let unpinned = |cpus| Record::Unpinned { program: P, set: CpuSet::first(cpus) };
        let mut journal: Journal = [pinned(P, 2), pinned(Q, 2), pinned(P, 4)].into_iter().collect();
        assert!(journal.is_news(&unpinned(2)) && !journal.is_news(&unpinned(3)));
        journal.add(unpinned(2));
        assert_eq!(journal.records(), [pinned(Q, 2), pinned(P, 4)]);
        assert!(!journal.is_news(&unpinned(2)) && journal.is_news(&pinned(P, 2)));
    }

    #[test]
    fn a_process_continued_by_others_may_be_stopped_by_them_again() {
        let process = numbered(7);
        let (stopped, continued) =
            (Record::StoppedByOther { process }, Record::ContinuedByOther { process });
        let mut journal = Journal::default();
        assert!(!journal.is_news(&continued));
        journal.add(stopped.clone());
        journal.add(continued);
        assert_eq!(journal.records(), []);
        assert!(journal.is_news(&stopped));
    }

    #[test]
    fn a_move_needs_undo_until_it_is_over() {
        let thread = numbered(1);
        let (found, set) = (CpuSet::first(2), CpuSet::first(1));
        let moves = || Record::MovesApart { moves: vec![Move { program: P, thread, found, set }] };
        let mut journal = Journal::default();
        assert!(!journal.is_news(&Record::MovedApart));
        journal.add(moves());
        assert!(journal.is_news(&Record::MovedApart));
        journal.add(Record::MovedApart);
        assert_eq!(journal.records(), []);
        assert!(journal.is_news(&moves()), "the next switch moves the same thread");
    }

    #[test]
    fn a_thread_may_take_a_mask_again_that_it_gave_up() {
        let mut journal: Journal = [mask(1, 2), mask(2, 2), mask(1, 8)].into_iter().collect();
        assert_eq!(journal.records(), [mask(2, 2), mask(1, 8)]);
        assert!(!journal.is_news(&mask(1, 8)) && journal.is_news(&mask(1, 2)));
        journal.add(mask(1, 2));
        assert_eq!(journal.records(), [mask(2, 2), mask(1, 2)]);
    }

    #[test]
    fn a_thread_of_a_program_that_was_gone_may_take_any_mask() {
        let mut journal = Journal::default();
        for cpus in [2, 2, 8] {
            journal.add(mask(1, cpus));
            assert_eq!(journal.records(), [mask(1, cpus)]);
            journal.add(Record::Gone { program: P });
            assert_eq!(journal.records(), []);
        }
    }

    #[test]
    fn ended_threads_keep_one_record_of_each_kind() {
        let attr = |policy| SchedAttr {
            policy,
            flags: 0,
            nice: 0,
            priority: 0,
            runtime: Nanos::ZERO,
            deadline: Nanos::ZERO,
            period: Nanos::ZERO,
        };
        let (found, batch) = (attr(SchedPolicy::Other), attr(SchedPolicy::Batch));
        let of = |program, pid, set| {
            let thread = numbered(pid);
            Record::Attr { program, thread, found, set }
        };
        let changes = |pid| [of(P, pid, batch), of(P, pid, found), of(Q, pid, batch)];
        let others = |pid| {
            let process = numbered(pid);
            [Record::Orphan { program: P, process }, Record::StoppedByOther { process }]
        };
        let mut journal: Journal = (0..5).flat_map(changes).collect();
        [3, 4].into_iter().flat_map(others).for_each(|record| journal.add(record));
        journal.forget_ended(|thread| thread.pid == 3);
        let left: Vec<Record> = [0, 3].into_iter().flat_map(changes).chain(others(3)).collect();
        assert_eq!(journal.records(), left);
        assert!(journal.is_news(&of(P, 4, batch)) && !journal.is_news(&of(P, 3, batch)));
    }
}
