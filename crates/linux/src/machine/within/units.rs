//! The groups of units, and what is read of their processes.

use std::collections::BTreeSet;
use std::io;

use rustix::io::Errno;

use crate::cgroup::{
    Dir, Hierarchies, Hierarchy, PASSED_ON, REST, UNIT, Version, Weight, WeightSwitch,
    grant_real_time, is_part_of_program, make_part_of_program, real_time_budget,
};
use crate::kernel::files::{FileError, unless_gone};
use crate::kernel::procfs::{Proc, ProcState};
use crate::observe::dependencies::{self, Dependencies, HandedOut, SharedKey, Tables};
use crate::process::tree::Process;

/// The most threads of a process or a unit that are looked at.
const MOST_LOOKS: usize = 32;
/// The most processes that are looked through at once for what ties them.
const MOST_TIED: usize = 64;
/// The most units of a program, which each get as small a part of its budget for real-time threads.
pub(super) const MOST_UNITS: usize = 32;
/// How often the processes of a program are moved until none is left to move.
const MOST_MOVES: usize = 20;

/// Where the units of a program are.
#[derive(Debug)]
pub(super) struct UnitHome<'a> {
    /// The program's group.
    pub(super) dir: &'a Dir,
    /// How many units it may have.
    pub(super) most: usize,
    pub(super) proc: &'a Proc,
}

impl UnitHome<'_> {
    /// Whether the program has made groups itself, where a group has processes or groups below.
    pub(super) fn is_divided_by_program(&self) -> bool {
        self.dir.version() == Version::V2 && has_own_groups(self.dir)
    }
}

/// Processes that wait for each other, and by what.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) processes: Vec<Process>,
    pub(super) keys: BTreeSet<SharedKey>,
}

/// The parts of a program that were found in one look.
#[derive(Debug)]
pub(super) struct FoundParts {
    pub(super) parts: Vec<Part>,
    /// Whether no further process may be a part.
    pub(super) are_all: bool,
}

/// A part that takes turns with others.
#[derive(Debug)]
pub(super) struct ProcessUnit {
    pub(super) dir: Dir,
    pub(super) number: u32,
    /// How many processes were taken in.
    pub(super) taken_in: usize,
    weight: WeightSwitch,
    keys: BTreeSet<SharedKey>,
}

impl ProcessUnit {
    /// Makes a group below that of the program, and moves the processes there.
    pub(super) fn make(
        UnitHome { dir: home, proc, .. }: &UnitHome<'_>,
        number: u32,
        part: Part,
    ) -> Result<ProcessUnit, FileError> {
        if home.version() == Version::V2 {
            make_room(home, proc)?;
        }
        let dir = make_part_of_program(home, &format!("{UNIT}{number}"))?;
        grant_real_time(&dir, real_time_budget(home).map(|all| all / MOST_UNITS as i64));
        match WeightSwitch::open(&dir) {
            Ok(weight) => {
                let mut unit =
                    ProcessUnit { dir, number, taken_in: 0, weight, keys: BTreeSet::new() };
                unit.add(part, proc);
                Ok(unit)
            }
            Err(error) => {
                let _ = dir.remove();
                Err(error)
            }
        }
    }

    /// Takes further processes in. One that has ended, or may not be moved, is left where it is.
    pub(super) fn add(&mut self, part: Part, proc: &Proc) {
        part.processes.iter().for_each(|process| _ = move_to(&self.dir, *process, proc));
        self.taken_in += part.processes.len();
        self.keys.extend(part.keys);
    }

    /// Takes in another unit, with all that it has.
    pub(super) fn unite(&mut self, mut other: ProcessUnit, proc: &Proc) {
        let pids = other.dir.procs_recursive().unwrap_or_default();
        let processes = pids.iter().filter_map(|pid| Process::find(proc, *pid).ok()).collect();
        self.add(Part { processes, keys: std::mem::take(&mut other.keys) }, proc);
        // What could not be moved gets CPU time where it is.
        let _ = other.weigh(Weight::Times(1));
        let _ = other.dir.remove();
    }

    pub(super) fn is_tied_to(&self, part: &Part) -> bool {
        !self.keys.is_disjoint(&part.keys)
    }

    pub(super) fn weigh(&mut self, weight: Weight) -> Result<(), Errno> {
        self.weight.set(weight)
    }

    pub(super) fn forget_weight(&mut self) {
        self.weight.forget();
    }

    /// Whether its last process has ended; its group is then removed.
    pub(super) fn is_over(&self) -> bool {
        // One that cannot be read just now is not over.
        let is_empty =
            self.dir.procs_recursive().map_or_else(|error| error.is_gone(), |pids| pids.is_empty());
        if is_empty {
            // If its last process is still on its way out, it goes with the program's group.
            let _ = self.dir.remove();
        }
        is_empty
    }

    /// Whether a thread of it is on a CPU, or waits for one.
    pub(super) fn wants_cpu(&self, proc: &Proc) -> bool {
        let (threads, is_all) = self.dir.threads_below();
        let is_running = |tid: &i32| runs(proc, *tid, *tid);
        // Where not all are looked at, one of the others may.
        threads.len() > MOST_LOOKS || !is_all || threads.iter().any(is_running)
    }
}

/// The processes of a program's group that are in no unit, in order of their numbers.
pub(super) fn loose(home: &Dir) -> Vec<i32> {
    let mut pids = home.procs().unwrap_or_default();
    if let Some(rest) = rest(home) {
        pids.extend(rest.procs().unwrap_or_default());
    }
    pids.sort_unstable();
    pids
}

/// The group that [`make_room`] has made, not one of the program's own.
fn rest(home: &Dir) -> Option<Dir> {
    let rest = home.child(REST);
    (home.version() == Version::V2 && is_part_of_program(&rest)).then_some(rest)
}

/// How many of the first threads of a process are on a CPU, or wait for one.
pub(super) fn running(process: Process, proc: &Proc) -> u32 {
    let threads = proc.threads(process.pid).unwrap_or_default();
    let running = threads.iter().take(MOST_LOOKS).filter(|tid| runs(proc, process.pid, **tid));
    running.count() as u32
}

fn runs(proc: &Proc, pid: i32, tid: i32) -> bool {
    proc.thread_stat(pid, tid).is_ok_and(|stat| stat.state == ProcState::Running)
}

/// Groups the first of these processes by what they wait for. The others have to wait for the next
/// look, since it takes long to read what a process holds.
pub(super) fn tied(mut processes: Vec<Process>, proc: &Proc, handed_out: &HandedOut) -> FoundParts {
    let are_all = processes.len() <= MOST_TIED;
    processes.truncate(MOST_TIED);
    let mut tables = Tables::default();
    let all: Vec<Dependencies> = processes
        .iter()
        .map(|process| {
            let found = dependencies::ties(proc, process.pid, handed_out, &mut tables);
            // One that has ended, or hides its files, is tied to nothing that is known.
            Dependencies { shared: found.unwrap_or_default(), ..Dependencies::default() }
        })
        .collect();
    let groups = dependencies::groups(&all);
    let mut parts: Vec<(Option<cosched_core::GroupId>, Part)> = Vec::new();
    for ((process, found), group) in processes.into_iter().zip(all).zip(groups) {
        let same = parts.iter_mut().find(|(other, _)| group.is_some() && *other == group);
        match same {
            Some((_, part)) => {
                part.processes.push(process);
                part.keys.extend(found.shared);
            }
            None => parts.push((group, Part { processes: vec![process], keys: found.shared })),
        }
    }
    FoundParts { parts: parts.into_iter().map(|(_, part)| part).collect(), are_all }
}

/// Moves the processes of a program's group of version 2 to a child, and enables the `cpu`
/// controller for its children: a group with processes may not. A program that has made groups
/// itself is left alone.
fn make_room(home: &Dir, proc: &Proc) -> Result<(), FileError> {
    let passed_on = home.read(PASSED_ON)?;
    let found = rest(home);
    if found.is_some() && passed_on.split_whitespace().any(|name| name == "cpu") {
        return Ok(());
    }
    if has_own_groups(home) {
        return Err(FileError::io("divide", home.path(), io::Error::from(Errno::BUSY)));
    }
    let rest = found.map_or_else(|| make_part_of_program(home, REST), Ok)?;
    let enabled = move_all(home, &rest, proc).and_then(|()| home.write(PASSED_ON, "+cpu"));
    if enabled.is_err() {
        move_all(&rest, home, proc)?;
        let _ = rest.remove();
    }
    enabled
}

fn has_own_groups(home: &Dir) -> bool {
    home.children().unwrap_or_default().iter().any(|dir| !is_part_of_program(dir))
}

fn move_all(from: &Dir, to: &Dir, proc: &Proc) -> Result<(), FileError> {
    for _ in 0..MOST_MOVES {
        let pids = from.procs()?;
        if pids.is_empty() {
            break;
        }
        let found: Vec<Process> =
            pids.iter().filter_map(|pid| Process::find(proc, *pid).ok()).collect();
        // One that has got its number since the first list may be in another group.
        let still = from.procs()?;
        for process in found.into_iter().filter(|one| still.binary_search(&one.pid).is_ok()) {
            move_to(to, process, proc)?;
        }
    }
    Ok(())
}

/// Moves a process to a group. One that has ended is left alone, and so is another one that has its
/// number by now. If that has got the number in this very moment, it is moved back.
fn move_to(group: &Dir, process: Process, proc: &Proc) -> Result<(), FileError> {
    if process.look(proc).is_none() || unless_gone(group.add(process.pid))?.is_none() {
        return Ok(());
    }
    let now = Process::find(proc, process.pid).ok();
    let is_another = now.is_some_and(|now| now != process);
    if is_another && group.procs()?.binary_search(&process.pid).is_ok() {
        move_back(group, process.pid, proc);
    }
    Ok(())
}

/// Moves a process from a group to that of its parent, where it has just begun.
fn move_back(group: &Dir, pid: i32, proc: &Proc) {
    let parent = proc.stat(pid).and_then(|stat| Hierarchies::of(stat.ppid, proc));
    // One that has ended needs nothing.
    let trees = parent.unwrap_or_default();
    let has_group = |tree: &&Hierarchy| {
        tree.own.version() == group.version() && group.path().starts_with(&tree.mount)
    };
    if let Some(tree) = trees.all().iter().find(has_group) {
        let _ = tree.own.add(pid);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;

    fn processes(count: usize) -> Vec<Process> {
        (1..).map(|pid| Process { pid, start_time: 7 }).take(count).collect()
    }

    #[test]
    fn only_some_processes_are_looked_through_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let looked_at = |count| {
            let found = tied(processes(count), &Proc::new(folder.path()), &HandedOut::default());
            let seen = found.parts.into_iter().flat_map(|part| part.processes);
            (seen.collect::<Vec<Process>>(), found.are_all)
        };
        assert_eq!(looked_at(MOST_TIED), (processes(MOST_TIED), true));
        assert_eq!(looked_at(1000), (processes(MOST_TIED), false));
    }

    /// A folder that stands for `/proc`, with a process of this start time, and its parent.
    fn made_up(process: Process) -> (TempDir, Proc) {
        let root = tempfile::tempdir().unwrap();
        let proc = Proc::new(root.path());
        let Process { pid, start_time } = process;
        let stat = format!(
            "{pid} (a) R 5 42 7 0 0 0 1 2 3 4 55 66 5 6 20 0 1 0 {start_time} 11 12 \
             0 0 0 0 0 0 0 0 0 0 0 0 0 0 3"
        );
        let mount = root.path().join("cpu");
        let mounts = format!("30 23 0:26 / {} rw - cgroup cgroup rw,cpu", mount.display());
        for (file, text) in [
            (&*format!("{pid}/stat"), &*stat),
            ("5/cgroup", "1:cpu:/parent\n"),
            ("self/mountinfo", &*mounts),
            ("cpu/parent/cgroup.procs", ""),
            ("cpu/unit/cgroup.procs", ""),
        ] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (root, proc)
    }

    fn group(root: &TempDir, name: &str) -> Dir {
        Dir::new(root.path().join("cpu").join(name), Version::V1)
    }

    #[test]
    fn a_process_with_the_number_of_an_ended_one_stays() {
        let process = Process { pid: 12, start_time: 7 };
        let (root, proc) = made_up(process);
        let unit = group(&root, "unit");
        let moved = |process| {
            move_to(&unit, process, &proc).unwrap();
            unit.procs().unwrap()
        };
        assert_eq!(moved(Process { start_time: 6, ..process }), [0; 0]);
        assert_eq!(moved(process), [12]);
    }

    #[test]
    fn a_process_moved_by_mistake_returns_to_its_parent() {
        let (root, proc) = made_up(Process { pid: 12, start_time: 7 });
        move_back(&group(&root, "unit"), 12, &proc);
        assert_eq!(group(&root, "parent").procs().unwrap(), [12]);
    }
}
