//! The valid records, sorted by what is to be done about them.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use cosched_core::{CpuSet, ProgramId};

use super::cgroups::Doomed;
use super::changes::Changes;
use super::journal::Journal;
use super::record::Record;
use crate::cgroup;
use crate::kernel::procfs::Proc;
use crate::kernel::sched_attr::SchedAttr;
use crate::process::tree::{Process, Tree};

#[derive(Debug, Default)]
pub(super) struct Owed {
    pub(super) programs: BTreeMap<ProgramId, ProgramUndo>,
    pub(super) stopped_by_others: HashSet<Process>,
    /// The cgroups, in the order in which they were made.
    pub(super) cgroups: Vec<Doomed>,
    /// Cgroups with the controllers that cosched has enabled in them.
    pub(super) controllers: Vec<(PathBuf, Vec<String>)>,
}

#[derive(Debug, Default)]
pub(super) struct ProgramUndo {
    pub(super) tree: Tree,
    pub(super) stopped_by_signal: bool,
    pub(super) masks: Changes<CpuSet>,
    pub(super) attrs: Changes<SchedAttr>,
    /// The masks that cosched gave to its threads without masks of their own.
    sets: Vec<CpuSet>,
}

impl ProgramUndo {
    pub(super) fn has_changed_threads(&self) -> bool {
        !self.masks.is_empty() || !self.attrs.is_empty()
    }
}

impl Owed {
    pub(super) fn of(journal: &Journal) -> Owed {
        let mut owed = Owed::default();
        journal.records().iter().for_each(|record| owed.add(record));
        // Only now all sets are known: a thread with a mask of its own was bound to the CPUs that
        // this mask and one of the sets have in common.
        for record in journal.records() {
            if let Record::UserMask { program, thread, mask } = record {
                let program = owed.program(*program);
                for set in program.sets.clone() {
                    let common = set.intersection(mask);
                    // If they have no CPU in common, the thread was left where it was.
                    if !common.is_empty() {
                        program.masks.add(Some(*thread), *mask, common);
                    }
                }
            }
        }
        owed
    }

    fn add(&mut self, record: &Record) {
        match record {
            Record::CgroupDir { kind, dir, origin } => {
                self.cgroups.push(Doomed::new(*kind, dir, origin))
            }
            Record::Controllers { dir, added } => {
                self.controllers.push((dir.clone(), added.clone()))
            }
            Record::StoppedByOther { process } => {
                self.stopped_by_others.insert(*process);
            }
            Record::Program { program, shim, stopped_by_signal } => {
                let program = self.program(*program);
                program.tree.shim = Some(*shim);
                program.stopped_by_signal |= *stopped_by_signal;
            }
            Record::Main { program, process } => self.program(*program).tree.main = Some(*process),
            Record::Orphan { program, process } => {
                self.program(*program).tree.orphans.push(*process);
            }
            Record::Pinned { program, found, set } => {
                let program = self.program(*program);
                program.masks.add(None, *found, *set);
                program.sets.push(*set);
            }
            Record::Attr { program, thread, found, set } => {
                self.program(*program).attrs.add(Some(*thread), *found, *set);
            }
            Record::MovesApart { moves } => {
                for one in moves {
                    self.program(one.program).masks.add(Some(one.thread), one.found, one.set);
                }
            }
            // The first is handled after all others; the rest is not valid any more.
            Record::UserMask { .. }
            | Record::Boot { .. }
            | Record::PidNamespace { .. }
            | Record::Unpinned { .. }
            | Record::MovedApart
            | Record::CgroupRemoved { .. }
            | Record::ContinuedByOther { .. }
            | Record::Gone { .. } => {}
        }
    }

    /// Adds the processes in the programs' cgroups. Each belongs to the program, also where neither
    /// its shim nor its first process leads there any more. After a process is moved out, its
    /// program would be unknown.
    pub(super) fn take_in_members_of_cgroups(&mut self, proc: &Proc) {
        for (id, program) in &mut self.programs {
            let dirs = self.cgroups.iter().map(|cgroup| cgroup.dir.child(&cgroup::name_of(*id)));
            // Processes of another PID namespace read as 0; a removed cgroup holds no process.
            let pids = dirs.flat_map(|dir| dir.procs_recursive().unwrap_or_default());
            let found =
                pids.filter(|pid| *pid != 0).filter_map(|pid| Process::find(proc, pid).ok());
            for process in found {
                if !program.tree.orphans.contains(&process) {
                    program.tree.orphans.push(process);
                }
            }
        }
    }

    fn program(&mut self, id: ProgramId) -> &mut ProgramUndo {
        self.programs.entry(id).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::safety::undo::Move;

    const P: ProgramId = ProgramId::first(0);

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    fn numbered(pid: i32) -> Process {
        Process { pid, start_time: 1 }
    }

    fn owed(records: impl IntoIterator<Item = Record>) -> ProgramUndo {
        Owed::of(&records.into_iter().collect()).programs.remove(&P).unwrap()
    }

    #[test]
    fn own_masks_are_restored_and_others_get_the_programs_mask() {
        let (own, other) = (numbered(1), numbered(2));
        let masks = owed([
            Record::UserMask { program: P, thread: own, mask: cpus("1-3") },
            Record::Pinned { program: P, found: cpus("0-3"), set: cpus("0-1") },
            Record::Pinned { program: P, found: cpus("0-3"), set: cpus("2-3") },
            Record::Pinned { program: P, found: cpus("0-3"), set: cpus("0") },
        ])
        .masks;
        assert_eq!(masks.original(own, cpus("1")), Some(cpus("1-3")));
        assert_eq!(masks.original(own, cpus("2-3")), Some(cpus("1-3")));
        assert_eq!(masks.original(other, cpus("2-3")), Some(cpus("0-3")));
        assert_eq!(masks.original(own, cpus("0")), None);
        assert!(masks.sets().all(|set| !set.is_empty()), "it was not bound to nothing");
    }

    #[test]
    fn a_thread_gets_its_mask_back_unless_others_have_bound_it() {
        let thread = numbered(1);
        let given = [
            Record::Pinned { program: P, found: cpus("0-7"), set: cpus("0-3") },
            Record::UserMask { program: P, thread, mask: cpus("0-7") },
            Record::Pinned { program: P, found: cpus("0-7"), set: cpus("4-7") },
        ];
        let mut journal: Journal = given.into_iter().collect();
        let original = |journal: &Journal, present| {
            Owed::of(journal).programs[&P].masks.original(thread, cpus(present))
        };
        let found = Some(cpus("0-7"));
        assert_eq!(["0-3", "4-7", "2"].map(|mask| original(&journal, mask)), [found, found, None]);
        journal.add(Record::UserMask { program: P, thread, mask: cpus("2") });
        for present in ["0-3", "4-7", "2", "0-7"] {
            assert_eq!(original(&journal, present), None, "{present}: not from us since");
        }
        let masks = &Owed::of(&journal).programs[&P].masks;
        assert_eq!(masks.original(numbered(2), cpus("4-7")), Some(cpus("0-7")), "born with it");
    }

    #[test]
    fn undo_of_a_move_keeps_masks_that_threads_set_themselves() {
        let [moved, own, born] = [1, 2, 3].map(numbered);
        let of =
            |thread, found, set| Move { program: P, thread, found: cpus(found), set: cpus(set) };
        let moves = vec![of(moved, "0-1", "1"), of(own, "1", "1")];
        let masks = owed([Record::MovesApart { moves }]).masks;
        assert_eq!(masks.original(moved, cpus("1")), Some(cpus("0-1")));
        assert_eq!(masks.original(own, cpus("1")), None);
        assert_eq!(masks.original(born, cpus("1")), Some(cpus("0-1")));
    }

    #[test]
    fn a_moved_thread_and_its_children_get_the_mask_that_was_found() {
        let (thread, child) = (numbered(1), numbered(2));
        let one = Move { program: P, thread, found: cpus("1-3"), set: cpus("1") };
        let masks = owed([Record::MovesApart { moves: vec![one] }]).masks;
        assert_eq!(masks.original(thread, cpus("1")), Some(cpus("1-3")));
        assert_eq!(masks.original(child, cpus("1")), Some(cpus("1-3")), "born in that moment");
        assert_eq!(masks.original(thread, cpus("2")), None, "its owner has changed it since");
    }

    /// A program that was ever stopped by signals is continued, in whatever order the records are.
    #[test]
    fn a_program_once_stopped_by_signals_is_continued() {
        let shim = numbered(1);
        let record = |stopped_by_signal| Record::Program { program: P, shim, stopped_by_signal };
        for order in [[true, false], [false, true]] {
            assert!(owed(order.map(record)).stopped_by_signal);
        }
    }
}
