//! Removing cgroups: thaw, disable controllers, move all processes back, remove.
//!
//! Programs may have made cgroups of their own below, so each of these steps goes over the whole
//! subtree. A thaw alone leaves the cgroups that programs made as they are.
//! Programs may also fork, or be about to end, meanwhile; each step may be repeated.

use std::path::Path;
use std::time::{Duration, Instant};

use super::record::CgroupKind;
use crate::cgroup::{Dir, PASSED_ON, Version, even_out, is_part_of_program};
use crate::kernel::files::FileError;

/// How long to wait for ended processes to leave a cgroup.
const LEAVING: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(1);

/// A cgroup to be removed, and where its processes go.
#[derive(Debug)]
pub(super) struct Doomed {
    pub(super) kind: CgroupKind,
    pub(super) dir: Dir,
    pub(super) origin: Dir,
}

impl Doomed {
    pub(super) fn new(kind: CgroupKind, dir: &Path, origin: &Path) -> Doomed {
        let at = |path: &Path| Dir::new(path, kind.version());
        Doomed { kind, dir: at(dir), origin: at(origin) }
    }

    /// Thaws the programs. What a program froze itself stays frozen: a container, say, or programs
    /// of a run of its own.
    pub(super) fn thaw(&self) -> Result<(), FileError> {
        let own = thaw(self.kind, &self.dir);
        own.and(each_child(&self.dir, |program| thaw(self.kind, program)))
    }

    /// Thaws everything in the subtree: it is to be removed.
    pub(super) fn thaw_all(&self) -> Result<(), FileError> {
        each(&self.dir, &mut |dir| thaw(self.kind, dir))
    }

    /// Disables every controller in the subtree: it is to be removed. The cgroups above can disable
    /// theirs only then. A program may have enabled some, such as one that makes a run of its own.
    pub(super) fn pass_nothing_on(&self) -> Result<(), FileError> {
        match self.kind {
            CgroupKind::V2 => pass_nothing_on(&self.dir),
            _ => Ok(()),
        }
    }

    pub(super) fn even_out(&self) -> Result<(), FileError> {
        if !matches!(self.kind, CgroupKind::V2 | CgroupKind::V1Cpu) {
            return Ok(());
        }
        let part = |dir: &Dir| match is_part_of_program(dir) {
            true => unless_gone(even_out(dir)),
            // It is the program's own.
            false => Ok(()),
        };
        each_child(&self.dir, |program| {
            unless_gone(even_out(program)).and(each_child(program, part))
        })
    }

    /// Moves every process of the subtree to its original cgroup, and counts them. The first
    /// process that may not be moved (it belongs to root, say) is the error; all others are moved
    /// nevertheless.
    pub(super) fn evacuate(&self, moved: &mut usize) -> Result<(), FileError> {
        each(&self.dir, &mut |dir| {
            // A process of another PID namespace reads as 0, which would mean the caller itself.
            let mut all = Ok(());
            for pid in unless_gone(dir.procs())?.into_iter().filter(|pid| *pid != 0) {
                match self.origin.add(pid) {
                    Ok(()) => *moved += 1,
                    // It has ended. If the original cgroup is gone, the removal fails and shows
                    // that.
                    Err(error) if error.is_gone() => {}
                    Err(error) => all = all.and(Err(error)),
                }
            }
            all
        })
    }

    /// Removes the subtree, moving out processes that are born in it meanwhile.
    pub(super) fn remove(&self) -> Result<(), FileError> {
        let until = Instant::now() + LEAVING;
        loop {
            let Err(error) = remove_all(&self.dir) else { return Ok(()) };
            let mut moved = 0;
            let evacuated = self.evacuate(&mut moved);
            // Those that have just ended still keep a cgroup busy.
            let is_leaving = evacuated.is_ok() && error.errno() == Some(libc::EBUSY);
            if Instant::now() >= until || moved == 0 && !is_leaving {
                return evacuated.and(Err(error));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// Disables the controllers that [`enable_controller`](crate::cgroup::enable_controller) enabled.
/// Nothing is written where it was announced and not done: the cgroup may not be the user's.
pub(super) fn pass_on_no_more(dir: &Path, added: &[String]) -> Result<(), FileError> {
    let dir = Dir::new(dir, Version::V2);
    let Some(list) = dir.read_if_there(PASSED_ON)? else { return Ok(()) };
    let is_passed_on = |name: &&String| list.split_whitespace().any(|passed| passed == *name);
    let words: Vec<String> =
        added.iter().filter(is_passed_on).map(|name| format!("-{name}")).collect();
    match words.is_empty() {
        true => Ok(()),
        false => unless_gone(dir.write(PASSED_ON, &words.join(" "))),
    }
}

/// From the bottom up; the first error is returned.
fn pass_nothing_on(dir: &Dir) -> Result<(), FileError> {
    let children = unless_gone(dir.children())?;
    let below = children.iter().map(pass_nothing_on).fold(Ok(()), Result::and);
    let list = dir.read_if_there(PASSED_ON)?.unwrap_or_default();
    let all: Vec<String> = list.split_whitespace().map(str::to_owned).collect();
    below.and(pass_on_no_more(dir.path(), &all))
}

fn thaw(kind: CgroupKind, dir: &Dir) -> Result<(), FileError> {
    let (file, text) = match kind {
        CgroupKind::V2 => ("cgroup.freeze", "0"),
        CgroupKind::V1Freezer => ("freezer.state", "THAWED"),
        CgroupKind::V1Cpuset | CgroupKind::V1Cpu => return Ok(()),
    };
    unless_gone(dir.write(file, text))
}

/// From the top down, so that a cgroup is thawed after those above it. What fails keeps nothing
/// else from being done; the first error is returned.
fn each(dir: &Dir, act: &mut impl FnMut(&Dir) -> Result<(), FileError>) -> Result<(), FileError> {
    let own = act(dir);
    own.and(each_child(dir, |child| each(child, &mut *act)))
}

/// From the bottom up, as far as cgroups are empty; the first error is returned.
fn remove_all(dir: &Dir) -> Result<(), FileError> {
    each_child(dir, remove_all).and_then(|()| unless_gone(dir.remove()))
}

/// Does it for every cgroup directly below, whatever fails; the first error is returned.
fn each_child(dir: &Dir, act: impl FnMut(&Dir) -> Result<(), FileError>) -> Result<(), FileError> {
    unless_gone(dir.children())?.iter().map(act).fold(Ok(()), Result::and)
}

/// Nothing, if the cgroup was removed: before its file was opened, or afterwards.
fn unless_gone<T: Default>(result: Result<T, FileError>) -> Result<T, FileError> {
    match result {
        Err(error) if error.is_gone() || error.errno() == Some(libc::ENODEV) => Ok(T::default()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cgroup::{can_be_idle, live, make_part_of_program};

    #[test]
    fn controllers_are_disabled_only_where_they_are_enabled() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join(PASSED_ON);
        let added = ["cpu", "io"].map(str::to_owned);
        for (passed_on, written) in [("memory io\n", "-io"), ("memory\n", "memory\n")] {
            fs::write(&file, passed_on).unwrap();
            pass_on_no_more(root.path(), &added).unwrap();
            assert!(fs::read_to_string(&file).unwrap().starts_with(written), "{passed_on}");
        }
        fs::remove_file(&file).unwrap();
        pass_on_no_more(root.path(), &added).unwrap();
        assert!(!file.exists());
    }

    #[test]
    fn controllers_are_disabled_in_the_groups_of_programs_too() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("run/p0-0/own");
        fs::create_dir_all(&inner).unwrap();
        let files = ["run", "run/p0-0"].map(|dir| root.path().join(dir).join(PASSED_ON));
        files.iter().for_each(|file| fs::write(file, "cpu io\n").unwrap());
        let doomed = |kind| Doomed::new(kind, &root.path().join("run"), root.path());
        doomed(CgroupKind::V1Cpu).pass_nothing_on().unwrap();
        assert_eq!(fs::read_to_string(&files[1]).unwrap(), "cpu io\n");
        doomed(CgroupKind::V2).pass_nothing_on().unwrap();
        assert!(files.iter().all(|file| fs::read_to_string(file).unwrap().starts_with("-cpu -io")));
        assert!(!inner.join(PASSED_ON).exists());
    }

    #[test]
    fn what_a_program_froze_is_thawed_only_when_all_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let run = root.path().join("run");
        fs::create_dir_all(run.join("p0-0/own")).unwrap();
        let files = ["", "p0-0", "p0-0/own"].map(|dir| run.join(dir).join("cgroup.freeze"));
        files.iter().for_each(|file| fs::write(file, "1").unwrap());
        let frozen = || files.each_ref().map(|file| fs::read_to_string(file).unwrap() == "1");
        Doomed::new(CgroupKind::V1Cpu, &run, root.path()).thaw_all().unwrap();
        assert_eq!(frozen(), [true; 3], "this hierarchy freezes nothing");
        let doomed = Doomed::new(CgroupKind::V2, &run, root.path());
        doomed.thaw().unwrap();
        assert_eq!(frozen(), [false, false, true]);
        doomed.thaw_all().unwrap();
        assert_eq!(frozen(), [false; 3]);
        // One that cannot be thawed keeps no other one frozen.
        fs::remove_file(&files[0]).unwrap();
        fs::create_dir(&files[0]).unwrap();
        fs::write(&files[1], "1").unwrap();
        assert!(doomed.thaw().is_err());
        assert_eq!(fs::read_to_string(&files[1]).unwrap(), "0");
    }

    #[test]
    fn processes_are_moved_to_the_origin_but_never_number_0() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("job")).unwrap();
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        fs::write(root.path().join("job/cgroup.procs"), "0\n12\n").unwrap();
        let doomed = Doomed::new(CgroupKind::V2, &root.path().join("job"), root.path());
        let mut moved = 0;
        doomed.evacuate(&mut moved).unwrap();
        assert_eq!(moved, 1);
        assert_eq!(fs::read_to_string(root.path().join("cgroup.procs")).unwrap(), "12");
    }

    /// Beside processes that may not be moved, such as those of root.
    #[test]
    fn all_that_can_be_emptied_and_removed_is() {
        let root = tempfile::tempdir().unwrap();
        let job = root.path().join("job");
        for name in ["a", "b", "c"] {
            fs::create_dir_all(job.join(name)).unwrap();
        }
        fs::write(root.path().join("cgroup.procs"), "").unwrap();
        // In a file system, a folder stands for a list that cannot be read.
        fs::create_dir(job.join("a/cgroup.procs")).unwrap();
        for name in ["b", "c"] {
            fs::write(job.join(name).join("cgroup.procs"), "12\n").unwrap();
        }
        fs::write(job.join("cgroup.procs"), "").unwrap();
        let doomed = Doomed::new(CgroupKind::V2, &job, root.path());
        let mut moved = 0;
        assert!(doomed.evacuate(&mut moved).is_err());
        assert_eq!(moved, 2);
        for file in ["b/cgroup.procs", "c/cgroup.procs"] {
            fs::remove_file(job.join(file)).unwrap();
        }
        let held = job.join("a/held");
        fs::create_dir(&held).unwrap();
        fs::write(held.join("file"), "").unwrap();
        assert!(remove_all(&doomed.dir).is_err());
        assert_eq!(
            [job.join("b").exists(), job.join("c").exists(), held.exists()],
            [false, false, true]
        );
    }

    /// The program has named a group as cosched names some.
    #[test]
    fn groups_that_a_program_made_keep_their_weight() {
        let Some(run) = live::v1("cpu", "weights") else { return };
        let program = run.dir().create_child("p0-0").unwrap();
        let own = ["rest", "unit-2"].map(|name| program.create_child(name).unwrap());
        let Ok(part) = make_part_of_program(&program, "unit-1") else {
            return eprintln!("skipped: this kernel keeps no marks of cgroups");
        };
        let all = [&program, &part, &own[0], &own[1]];
        if !can_be_idle(&program) {
            return eprintln!("skipped: this kernel has no idle cgroups");
        }
        all.into_iter().for_each(|dir| dir.write("cpu.idle", "1").unwrap());
        let doomed = Doomed::new(CgroupKind::V1Cpu, run.dir().path(), Path::new("/"));
        doomed.even_out().unwrap();
        let idle = all.map(|dir| dir.read("cpu.idle").unwrap());
        assert_eq!(idle, ["0\n", "0\n", "1\n", "1\n"]);
    }

    #[test]
    fn a_removed_cgroup_needs_nothing() {
        let doomed = Doomed::new(CgroupKind::V2, Path::new("/not/there"), Path::new("/not"));
        doomed.thaw().unwrap();
        let mut moved = 0;
        doomed.evacuate(&mut moved).unwrap();
        assert_eq!(moved, 0);
        doomed.remove().unwrap();
    }
}
