//! The run cgroups: found, chosen, made, and given to the programs.
//!
//! A run gets one cgroup below the caller's own in every tree that it uses, and inside it one per
//! program. Each is announced in the undo log before it is made. The process that undoes the run
//! therefore finds them all under a few names.

mod backend;
mod base;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use cosched_core::{CpuSet, ProgramId};

use crate::cgroup::{self, Dir, EnableError, Hierarchies, Hierarchy, Mark, PASSED_ON, Version};
use crate::control::autogroup;
use crate::kernel::files::FileError;
use crate::kernel::procfs::Proc;
use crate::safety::undo::{CgroupKind, Log, LogError, Record};
pub use backend::{FreezerBackend, PinningBackend, ShareBackend};
use base::Base;

/// What the caller requests; `None`: the best available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// How to freeze.
    pub freezer: Option<FreezerBackend>,
    /// How to bind.
    pub pinning: Option<PinningBackend>,
    /// Whether each program gets its own share of the CPUs.
    pub shares: bool,
    /// Whether programs take turns by weight instead of being frozen.
    pub by_weight: ByWeight,
}

/// Whether programs take turns by weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByWeight {
    /// They do not.
    #[default]
    No,
    /// They do where CPU groups are available.
    IfPossible,
    /// They do, or the run fails.
    Always,
    /// They do, without CPU groups: the scheduler in the kernel knows the programs.
    InKernel,
}

/// Why a request cannot be met.
#[derive(Debug, thiserror::Error)]
pub enum RunCgroupsError {
    /// There is no tree for the request.
    #[error("not available here: {wish} ({why}); {remedy}")]
    NotHere {
        /// The request.
        wish: &'static str,
        /// What prevents it.
        why: String,
        /// What would help.
        remedy: &'static str,
    },
    /// A cgroup could not be made.
    #[error(transparent)]
    File(#[from] FileError),
    /// A cgroup cannot enable controllers.
    #[error(transparent)]
    Enable(#[from] EnableError),
    /// The change could not be announced.
    #[error(transparent)]
    Log(#[from] LogError),
}

impl RunCgroupsError {
    /// Whether this host, or this user's permissions, lack it: another backend may be used.
    fn is_lack(&self) -> bool {
        matches!(self, RunCgroupsError::NotHere { .. } | RunCgroupsError::Enable(_))
    }
}

const DELEGATE: &str = "`cosched doctor` names a remedy; or leave the option out";

/// Cgroups besides the programs': the run's, one for other processes in cosched's cgroup, and one
/// to try out.
const OWN_CGROUPS: usize = 3;

/// Each program gets at most one part in so many of the run's budget for real-time threads.
const LEAST_PARTS: usize = 8;

/// The cgroups of a run.
#[derive(Debug)]
pub struct RunCgroups {
    freezer: FreezerBackend,
    pinning: PinningBackend,
    share: Option<ShareBackend>,
    /// Whether programs take turns by weight; `Err`: why not, where it was requested.
    by_weight: Result<bool, String>,
    programs: usize,
    bases: Vec<Base>,
    /// The mark of the leaf into which cosched has stepped down.
    leaf: Option<Mark>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Freezer,
    Cpuset,
    Share,
}

impl Role {
    fn controller(self) -> &'static str {
        match self {
            Role::Freezer => "freezer",
            Role::Cpuset => "cpuset",
            Role::Share => "cpu",
        }
    }

    fn kind_in(self, tree: &Hierarchy) -> CgroupKind {
        match (tree.own.version(), self) {
            (Version::V2, _) => CgroupKind::V2,
            (Version::V1, Role::Freezer) => CgroupKind::V1Freezer,
            (Version::V1, Role::Cpuset) => CgroupKind::V1Cpuset,
            (Version::V1, Role::Share) => CgroupKind::V1Cpu,
        }
    }
}

/// The cgroups of one program.
#[derive(Debug, Default)]
pub(crate) struct ProgramCgroups {
    pub(crate) freezer: Option<Dir>,
    pub(crate) cpuset: Option<Dir>,
    pub(crate) share: Option<Dir>,
    /// All of these cgroups, each once.
    pub(crate) all: Vec<Dir>,
}

impl ProgramCgroups {
    /// The cgroup in which the program's first process can start. Not one that binds: before Linux
    /// 6.3 the kernel forgot the CPUs of processes that start there.
    pub(crate) fn born_in(&self) -> Option<PathBuf> {
        let can_bear =
            |dir: &&Dir| dir.version() == Version::V2 && self.cpuset.as_ref() != Some(*dir);
        self.all.iter().find(can_bear).map(|dir| dir.path().to_owned())
    }

    /// The `cgroup.procs` files of all others, into which the process has to write itself.
    pub(crate) fn procs(&self) -> Vec<PathBuf> {
        let born_in = self.born_in();
        let others = self.all.iter().filter(|dir| Some(dir.path()) != born_in.as_deref());
        others.map(|dir| dir.path().join("cgroup.procs")).collect()
    }
}

impl RunCgroups {
    /// Chooses the backends and makes the run cgroups, with room for so many programs.
    pub(crate) fn prepare(
        proc: &Proc,
        wishes: Wishes,
        programs: usize,
        all: &CpuSet,
        log: &mut Log,
    ) -> Result<RunCgroups, RunCgroupsError> {
        let trees = Hierarchies::find(proc)?.with_room_for(programs + OWN_CGROUPS);
        let pinning = wishes.pinning.unwrap_or(PinningBackend::Affinity);
        let mut run_cgroups = RunCgroups {
            freezer: FreezerBackend::Signals,
            pinning,
            share: None,
            by_weight: Ok(false),
            programs,
            bases: Vec::new(),
            leaf: None,
        };
        if wishes.by_weight == ByWeight::InKernel {
            run_cgroups.by_weight = Ok(true);
        } else if wishes.by_weight != ByWeight::No {
            run_cgroups.by_weight = match run_cgroups.claim_weights(&trees, all, log) {
                Ok(()) => Ok(true),
                Err(error) if wishes.by_weight == ByWeight::IfPossible && error.is_lack() => {
                    Err(error.to_string())
                }
                Err(error) => return Err(error),
            };
        }
        // Programs in turn by weight are not frozen.
        if run_cgroups.by_weight != Ok(true) {
            let (freezer, tree) = choose_freezer(&trees, wishes.freezer, log)?;
            run_cgroups.freezer = freezer;
            tree.map(|tree| run_cgroups.claim(tree, Role::Freezer, log)).transpose()?;
        }
        if pinning == PinningBackend::Cpuset {
            let dir = run_cgroups.claim_controller(&trees, Role::Cpuset, log)?;
            cgroup::bind_to(&dir, all, None)?;
        }
        if wishes.shares && run_cgroups.share.is_none() {
            run_cgroups.share = Some(run_cgroups.claim_share(&trees, proc, log)?);
        }
        Ok(run_cgroups)
    }

    /// How programs are frozen.
    pub fn freezer(&self) -> FreezerBackend {
        self.freezer
    }

    /// How programs are bound.
    pub fn pinning(&self) -> PinningBackend {
        self.pinning
    }

    /// Whether programs take turns by weight.
    pub fn is_by_weight(&self) -> bool {
        self.by_weight == Ok(true)
    }

    /// Whether the programs belong to a program of another cosched, with cgroups for it.
    pub(crate) fn is_nested(&self) -> bool {
        self.bases.iter().any(|base| base.dir.path().parent().is_some_and(is_in_run))
    }

    /// Why programs do not take turns by weight, where it was requested.
    pub fn no_weights(&self) -> Option<&str> {
        self.by_weight.as_ref().err().map(String::as_str)
    }

    /// Whether the kernel shares the CPUs among the sessions of programs.
    pub(crate) fn shares_by_session(&self) -> bool {
        self.share == Some(ShareBackend::Autogroup)
    }

    /// How programs get shares, if they do.
    pub fn share(&self) -> Option<ShareBackend> {
        self.share
    }

    /// Makes the cgroups of a program. The run's are announced, so these need no announcement.
    pub(crate) fn cgroups_of(
        &self,
        id: ProgramId,
        own_share: bool,
        all: &CpuSet,
    ) -> Result<ProgramCgroups, FileError> {
        let mut cgroups = ProgramCgroups::default();
        let name = cgroup::name_of(id);
        for base in &self.bases {
            if base.roles == [Role::Share] && !own_share {
                continue;
            }
            let dir = base.dir.create_child(&name)?;
            if base.roles.contains(&Role::Freezer) {
                cgroups.freezer = Some(dir.clone());
            }
            if base.roles.contains(&Role::Cpuset) {
                cgroup::bind_to(&dir, all, None)?;
                cgroups.cpuset = Some(dir.clone());
            }
            if base.roles.contains(&Role::Share) {
                let of_run = cgroup::real_time_budget(&base.dir);
                let parts = self.programs.max(LEAST_PARTS) as i64;
                cgroup::grant_real_time(&dir, of_run.map(|all| all / parts));
                cgroups.share = Some(dir.clone());
            }
            cgroups.all.push(dir);
        }
        Ok(cgroups)
    }

    /// Makes the run's cgroup in a tree, or gives the existing one another role.
    fn claim(
        &mut self,
        tree: &Hierarchy,
        role: Role,
        log: &mut Log,
    ) -> Result<Dir, RunCgroupsError> {
        if let Some(base) = self.bases.iter_mut().find(|base| base.is_in(tree)) {
            base.roles.push(role);
            return Ok(base.dir.clone());
        }
        let base = Base::make(tree, role, log)?;
        let dir = base.dir.clone();
        self.bases.push(base);
        Ok(dir)
    }

    /// Claims a tree with a controller: version 2 if it has the controller, else version 1.
    fn claim_controller(
        &mut self,
        trees: &Hierarchies,
        role: Role,
        log: &mut Log,
    ) -> Result<Dir, RunCgroupsError> {
        let controller = role.controller();
        let v2 = trees.v2().filter(|tree| tree.controllers.iter().any(|c| c == controller));
        if let Some(tree) = v2 {
            let leaf = pass_on(&tree.own, controller, log)?;
            self.leaf = self.leaf.take().or(leaf);
            let dir = self.claim(tree, role, log)?;
            let added = vec![controller.to_owned()];
            log.note(Record::Controllers { dir: dir.path().to_owned(), added })?;
            dir.write(PASSED_ON, &format!("+{controller}"))?;
            return Ok(dir);
        }
        let not_here = |why| RunCgroupsError::NotHere { wish: controller, why, remedy: DELEGATE };
        let Some(tree) = trees.v1(controller) else {
            let why = format!("no cgroup tree with the {controller} controller is open to you");
            return Err(not_here(why));
        };
        try_out(tree, role, log)?.map_err(|why| not_here(why.to_string()))?;
        let dir = self.claim(tree, role, log)?;
        if role == Role::Share {
            cgroup::share_real_time(&tree.own, &dir);
        }
        Ok(dir)
    }

    /// Claims what turns by weight need: a CPU group for each program that can be idle.
    fn claim_weights(
        &mut self,
        trees: &Hierarchies,
        all: &CpuSet,
        log: &mut Log,
    ) -> Result<(), RunCgroupsError> {
        let wish = "turns by weight";
        let claimed = self.claim_controller(trees, Role::Share, log);
        let dir = claimed.map_err(|error| match error {
            RunCgroupsError::NotHere { why, .. } => {
                let remedy = "`cosched doctor` names a remedy";
                RunCgroupsError::NotHere { wish, why, remedy }
            }
            other => other,
        })?;
        if !cgroup::can_be_idle(&dir) {
            return Err(RunCgroupsError::NotHere {
                wish,
                why: "this kernel has no idle CPU groups (cpu.idle)".to_owned(),
                remedy: "use Linux 5.15 or later, or `--turns freeze`",
            });
        }
        cgroup::weigh_as_threads(&dir, all.len())?;
        self.share = Some(ShareBackend::Cgroup);
        Ok(())
    }

    fn claim_share(
        &mut self,
        trees: &Hierarchies,
        proc: &Proc,
        log: &mut Log,
    ) -> Result<ShareBackend, RunCgroupsError> {
        match self.claim_controller(trees, Role::Share, log) {
            Ok(_) => Ok(ShareBackend::Cgroup),
            Err(error) if error.is_lack() && autogroup::is_in_effect(trees, proc) => {
                Ok(ShareBackend::Autogroup)
            }
            Err(error) => Err(error),
        }
    }
}

/// How to freeze, and in which tree.
fn choose_freezer<'a>(
    trees: &'a Hierarchies,
    wish: Option<FreezerBackend>,
    log: &mut Log,
) -> Result<(FreezerBackend, Option<&'a Hierarchy>), RunCgroupsError> {
    let backends = [
        (FreezerBackend::CgroupV2, trees.v2(), "freezing by cgroup v2"),
        (FreezerBackend::CgroupV1, trees.v1("freezer"), "freezing by cgroup v1"),
    ];
    for (backend, tree, name) in backends {
        if wish.is_some_and(|wish| wish != backend) {
            continue;
        }
        let why = match tree.map(|tree| try_out(tree, Role::Freezer, log)).transpose()? {
            Some(Ok(())) => return Ok((backend, tree)),
            Some(Err(why)) => why.to_string(),
            None if backend == FreezerBackend::CgroupV2 => trees.no_v2().to_owned(),
            None => "no such cgroup tree is mounted".to_owned(),
        };
        if wish.is_some() {
            return Err(RunCgroupsError::NotHere { wish: name, why, remedy: DELEGATE });
        }
    }
    Ok((FreezerBackend::Signals, None))
}

/// Finds out whether the caller may use a tree. That makes a cgroup for a moment, so it is
/// announced: a cosched that is killed at that moment leaves the cgroup behind.
fn try_out(tree: &Hierarchy, role: Role, log: &mut Log) -> Result<Result<(), FileError>, LogError> {
    let (dir, kind) = (tree.own.probe().path().to_owned(), role.kind_in(tree));
    log.note(Record::CgroupDir { kind, dir: dir.clone(), origin: tree.own.path().to_owned() })?;
    let mut mark = None;
    let outcome = tree.own.try_in_child(|probe| {
        mark = Mark::set(probe, log.path());
        Ok(())
    });
    drop(mark);
    log.note(Record::CgroupRemoved { dir })?;
    Ok(outcome)
}

/// Enables a controller for the children of the caller's v2 cgroup, and announces all changes.
/// Returns the mark of the leaf into which this process had to step down.
fn pass_on(own: &Dir, controller: &str, log: &mut Log) -> Result<Option<Mark>, RunCgroupsError> {
    let passed = own.read(PASSED_ON)?;
    let leaf = cgroup::leaf_below(own);
    if !passed.split_whitespace().any(|c| c == controller) {
        let (dir, origin) = (leaf.path().to_owned(), own.path().to_owned());
        log.note(Record::CgroupDir { kind: CgroupKind::V2, dir, origin })?;
        let added = vec![controller.to_owned()];
        log.note(Record::Controllers { dir: own.path().to_owned(), added })?;
    }
    cgroup::enable_controller(own, controller)?;
    Ok(Mark::set(&leaf, log.path()))
}

/// Whether a cgroup is that of a run, or below one.
fn is_in_run(dir: &Path) -> bool {
    dir.iter().filter_map(OsStr::to_str).any(|name| cgroup::is_numbered(name, cgroup::RUN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_below_a_program_of_another_one_is_nested() {
        for inside in ["cosched-31/p0-0", "cosched-31-2/p0-0", "a.scope/cosched-31/p0-0/own"] {
            assert!(is_in_run(&Path::new("/sys/fs/cgroup").join(inside)), "{inside}");
        }
        for other in ["a.scope", "cosched-31.scope", "cosched-self-31", "cosched"] {
            assert!(!is_in_run(&Path::new("/sys/fs/cgroup").join(other)), "{other}");
        }
    }

    /// It joins its other cgroups later.
    #[test]
    fn a_program_starts_in_its_v2_cgroup_unless_that_binds() {
        let dir = |path: &str, version| Dir::new(path, version);
        let (freezer, share) = (dir("/v2/p", Version::V2), dir("/cpu/p", Version::V1));
        let all = vec![share, freezer.clone()];
        let none = ProgramCgroups::default();
        assert_eq!((none.born_in(), none.procs().len()), (None, 0));
        let mut cgroups = ProgramCgroups { freezer: Some(freezer.clone()), all, ..none };
        assert_eq!(cgroups.born_in(), Some("/v2/p".into()));
        assert_eq!(cgroups.procs(), [PathBuf::from("/cpu/p/cgroup.procs")]);
        cgroups.cpuset = Some(freezer);
        assert_eq!(cgroups.born_in(), None);
        let both = ["/cpu/p/cgroup.procs", "/v2/p/cgroup.procs"].map(PathBuf::from);
        assert_eq!(cgroups.procs(), both);
    }
}
