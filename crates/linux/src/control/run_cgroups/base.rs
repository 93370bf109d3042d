//! The cgroup of a run in one tree.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;

use super::{Role, RunCgroupsError};
use crate::cgroup::{Dir, Hierarchy, Mark, RUN};
use crate::kernel::files::FileError;
use crate::safety::undo::{CgroupKind, Log, Record};

/// The most names that are tried.
const MOST_NAMES: u32 = 100;

#[derive(Debug)]
pub(super) struct Base {
    pub(super) roles: Vec<Role>,
    pub(super) dir: Dir,
    _mark: Option<Mark>,
}

impl Base {
    pub(super) fn make(
        tree: &Hierarchy,
        role: Role,
        log: &mut Log,
    ) -> Result<Base, RunCgroupsError> {
        let dir = make_dir(tree, role.kind_in(tree), log)?;
        let mark = Mark::set(&dir, log.path());
        Ok(Base { roles: vec![role], dir, _mark: mark })
    }

    pub(super) fn is_in(&self, tree: &Hierarchy) -> bool {
        self.dir.path().parent() == Some(tree.own.path())
    }
}

/// Makes the run's cgroup in a tree. A container that shares the tree may have a cosched with the
/// same number, so a name that is taken is left alone.
fn make_dir(tree: &Hierarchy, kind: CgroupKind, log: &mut Log) -> Result<Dir, RunCgroupsError> {
    let pid = std::process::id();
    let others = (2..=MOST_NAMES).map(|number| format!("{RUN}{pid}-{number}"));
    for name in [format!("{RUN}{pid}")].into_iter().chain(others) {
        let dir = tree.own.child(&name);
        if dir.path().symlink_metadata().is_ok() {
            continue;
        }
        let (path, origin) = (dir.path().to_owned(), tree.own.path().to_owned());
        log.note(Record::CgroupDir { kind, dir: path.clone(), origin })?;
        // A user who can read the folder, even for a moment, can lock it.
        let made = DirBuilder::new().mode(Mark::MODE).create(&path);
        let Err(source) = made else { return Ok(dir) };
        // It is not ours to undo.
        log.note(Record::CgroupRemoved { dir: path.clone() })?;
        if source.kind() != std::io::ErrorKind::AlreadyExists {
            return Err(FileError::io("make cgroup", &path, source).into());
        }
    }
    Err(RunCgroupsError::NotHere {
        wish: "a cgroup of its own",
        why: format!("all names for one are taken in {}", tree.own.path().display()),
        remedy: "`cosched recover` removes those of killed runs",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::Version;
    use crate::kernel::procfs::Proc;

    #[test]
    fn a_group_of_another_run_is_left_alone() {
        let (folder, logs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let taken = folder.path().join(format!("{RUN}{}", std::process::id()));
        std::fs::create_dir(&taken).unwrap();
        let own = Dir::new(folder.path(), Version::V2);
        let tree = Hierarchy { mount: folder.path().to_owned(), own, controllers: Vec::new() };
        let proc = Proc::default();
        let mut log = Log::create(logs.path(), &proc).unwrap();
        let made = make_dir(&tree, CgroupKind::V2, &mut log).unwrap();
        assert_eq!(made.path(), taken.with_file_name(format!("{RUN}{}-2", std::process::id())));
        let journal = Log::load(log.path(), &proc).unwrap();
        let groups = journal.records().iter().filter_map(|record| match record {
            Record::CgroupDir { dir, .. } => Some(dir.as_path()),
            _ => None,
        });
        assert_eq!(groups.collect::<Vec<_>>(), [made.path()]);
    }
}
