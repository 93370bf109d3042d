//! Masks of a real process. Any machine with two CPUs will do: which mask "was found" is for the
//! caller to say.

use std::process::{Child, Command};

use tempfile::TempDir;

use super::*;
use crate::safety::undo;

/// A process that sleeps, and what its masks are kept with.
struct Sleeper {
    child: Child,
    masks: Masks,
    log: Log,
    _folder: TempDir,
}

impl Sleeper {
    /// It was started with the test's own mask, and would have had `found` but for cosched.
    fn start(found: CpuSet) -> Sleeper {
        let folder = tempfile::tempdir().unwrap();
        Sleeper {
            child: Command::new("sleep").arg("1000").spawn().unwrap(),
            masks: Masks::new(ProgramId::first(0), found, None),
            log: Log::create(folder.path(), &Proc::default()).unwrap(),
            _folder: folder,
        }
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn bind(&mut self, cpus: Option<CpuSet>) -> Result<(), Refusal> {
        self.bind_while(cpus, &|| Some(0))
    }

    /// The program says this of moves of its own.
    fn bind_while(
        &mut self,
        cpus: Option<CpuSet>,
        moves: &dyn Fn() -> Option<u32>,
    ) -> Result<(), Refusal> {
        let (tree, proc) = (self.tree(), Proc::default());
        let place = ThreadSource { tree: &tree, proc: &proc, moves };
        refusal(self.masks.bind(cpus, place, &mut self.log))
    }

    /// Its only thread gets CPUs of its own.
    fn rule(&mut self, cpus: Option<CpuSet>) -> Result<(), Refusal> {
        let (tree, proc) = (self.tree(), Proc::default());
        let thread = Process::find(&proc, self.pid()).unwrap();
        let place = ThreadSource { tree: &tree, proc: &proc, moves: &|| Some(0) };
        refusal(self.masks.bind_one(thread, cpus, place, &mut self.log))
    }

    fn tree(&self) -> Tree {
        let main = Process::find(&Proc::default(), self.pid()).unwrap();
        Tree { main: Some(main), ..Tree::default() }
    }

    fn cpus(&self) -> CpuSet {
        affinity::get(self.pid()).unwrap()
    }

    /// Other software binds it.
    fn is_bound_to(&self, cpus: CpuSet) {
        affinity::set(self.pid(), &cpus).unwrap();
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn refusal(result: Result<(), PinError>) -> Result<(), Refusal> {
    match result {
        Ok(()) => Ok(()),
        Err(PinError::Refused(why)) => Err(why),
        Err(PinError::Log(error)) => panic!("{error}"),
    }
}

/// All CPUs, the first, and another; `None`, with the reason said, where there are not so many.
fn two_cpus() -> Option<(CpuSet, CpuSet, CpuSet)> {
    let all = affinity::get(0).unwrap();
    let one = |n| all.iter().skip(n).take(1).collect::<CpuSet>();
    if all.len() < 2 {
        eprintln!("skipped: with one CPU nothing can be bound otherwise");
        return None;
    }
    Some((all, one(0), one(1)))
}

#[test]
fn a_bound_program_moves_and_gets_its_original_cpus_back() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    for target in [first, second, all, second] {
        assert_eq!(program.bind(Some(target)), Ok(()));
        assert_eq!(program.cpus(), target);
    }
    assert_eq!(program.bind(None), Ok(()));
    assert_eq!(program.cpus(), all);
}

#[test]
fn a_mask_set_by_another_process_is_not_widened() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    assert_eq!(program.bind(Some(first)), Ok(()));
    program.is_bound_to(second);
    assert_eq!(program.bind(Some(all)), Ok(()));
    assert_eq!(program.cpus(), second);
    assert_eq!(program.bind(None), Ok(()));
    assert_eq!(program.cpus(), second);
}

/// The library moves a thread by a mask that the thread has for a moment.
#[test]
fn a_mask_of_a_moment_is_not_given_back_as_the_threads_own() {
    let Some((all, first, second)) = two_cpus() else { return };
    let every = VisibleMask::of(0).unwrap().freed().mask;
    let count = std::cell::Cell::new(0);
    let under_way = || None;
    let between = || Some(count.replace(count.get() + 1));
    let over = || Some(1);
    let moments: [(&dyn Fn() -> Option<u32>, bool); 3] =
        [(&under_way, true), (&between, true), (&over, false)];
    for (moves, is_of_a_moment) in moments {
        let mut program = Sleeper::start(every);
        program.is_bound_to(second);
        let bound = program.bind_while(Some(first), moves);
        assert_eq!(bound, if is_of_a_moment { Ok(()) } else { Err(Refusal::NoCpuLeft) });
        assert_eq!(program.bind(None), Ok(()));
        assert_eq!(program.cpus(), if is_of_a_moment { all } else { second });
    }
}

#[test]
fn a_thread_bound_by_another_process_stays_and_is_reported() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    program.is_bound_to(second);
    assert_eq!(program.bind(Some(first)), Err(Refusal::NoCpuLeft));
    assert_eq!(program.cpus(), second);
}

#[test]
fn a_thread_bound_by_others_to_its_next_cpus_stays() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    assert_eq!(program.bind(Some(first)), Ok(()));
    program.is_bound_to(second);
    assert_eq!(program.bind(Some(second)), Ok(()));
    assert_eq!(program.bind(Some(first)), Err(Refusal::NoCpuLeft));
    assert_eq!(program.cpus(), second);
}

#[test]
fn a_mask_set_by_another_process_is_narrowed_and_restored() {
    let Some((all, first, second)) = two_cpus() else { return };
    // Its own mask is wider than what was found.
    let mut program = Sleeper::start(first);
    program.is_bound_to(all);
    assert_eq!(program.bind(Some(second)), Ok(()));
    assert_eq!(program.cpus(), second);
    // Remembered, though it now has the mask that cosched gave it.
    assert_eq!(program.bind(Some(first)), Ok(()));
    assert_eq!(program.cpus(), first);
    assert_eq!(program.bind(None), Ok(()));
    assert_eq!(program.cpus(), all);
}

#[test]
fn a_thread_keeps_its_own_cpus_until_they_are_taken_back() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    for own in [first, second] {
        assert_eq!(program.rule(Some(own)), Ok(()));
        assert_eq!(program.cpus(), own);
        assert_eq!(program.bind(None), Ok(()), "for all of the program nothing changes");
        assert_eq!(program.cpus(), own);
    }
    assert_eq!(program.rule(None), Ok(()));
    assert_eq!(program.cpus(), all);
}

#[test]
fn a_threads_own_cpus_are_among_those_of_its_program() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    assert_eq!(program.rule(Some(first)), Ok(()));
    assert_eq!(program.bind(Some(second)), Ok(()));
    assert_eq!(program.cpus(), second);
    assert_eq!(program.bind(None), Ok(()));
    assert_eq!(program.cpus(), first);
    program.masks.forget_rules(&Proc::default());
    assert_eq!(program.cpus(), all);
}

#[test]
fn a_thread_bound_meanwhile_by_another_process_is_left_there() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    assert_eq!(program.rule(Some(first)), Ok(()));
    program.is_bound_to(second);
    assert!(!program.masks.is_ours(program.pid(), &VisibleMask::of(program.pid()).unwrap()));
    assert_eq!(program.rule(Some(first)), Err(Refusal::ChangedByOther));
    program.masks.forget_rules(&Proc::default());
    assert_eq!(program.bind(None), Ok(()));
    assert_eq!(program.cpus(), second);
}

/// A thread gets a slice of its own and no CPUs: its mask is not looked at.
#[test]
fn a_thread_without_own_cpus_is_not_refused_any() {
    let Some((both, first, second)) = two_cpus() else { return };
    let mut sleeper = Sleeper::start(both);
    sleeper.is_bound_to(first);
    assert_eq!(sleeper.rule(None), Ok(()));
    assert_eq!(sleeper.rule(Some(second)), Err(Refusal::ChangedByOther));
    assert_eq!(sleeper.cpus(), first);
}

/// Another process has bound the thread elsewhere since.
#[test]
fn recovery_keeps_masks_that_other_processes_set() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    let (id, pid) = (ProgramId::first(0), program.pid());
    let of_another = Record::Pinned { program: id, found: all, set: second };
    program.log.note(of_another).unwrap();
    assert_eq!(program.rule(Some(first)), Ok(()));
    program.is_bound_to(second);
    let masks = Masks::new(id, all, None);
    let mut pinning = Pinning::Masks(Box::new(std::mem::replace(&mut program.masks, masks)));
    let (tree, proc) = (program.tree(), Proc::default());
    let place = ThreadSource { tree: &tree, proc: &proc, moves: &|| Some(0) };
    let owner = pinning.owner(pid, place, &mut program.log).unwrap();
    assert_eq!(owner, MaskOwner::User);
    assert_eq!(undo::restore(program.log.journal(), &Proc::default()).masks, 0);
    assert_eq!(program.cpus(), second);
}

#[test]
fn recovery_restores_a_thread_that_another_process_released() {
    let Some((all, first, second)) = two_cpus() else { return };
    for alone in [true, false] {
        let mut program = Sleeper::start(all);
        assert_eq!(program.rule(Some(first)), Ok(()));
        program.is_bound_to(second);
        assert_eq!(program.rule(Some(first)), Err(Refusal::ChangedByOther));
        program.is_bound_to(all);
        let given = if alone { program.rule(Some(second)) } else { program.bind(Some(second)) };
        assert_eq!((given, program.cpus()), (Ok(()), second));
        assert_eq!(undo::restore(program.log.journal(), &Proc::default()).masks, 1);
        assert_eq!(program.cpus(), all);
        program.is_bound_to(second);
        let bound_again = VisibleMask::of(program.pid()).unwrap();
        assert!(program.masks.is_ours(program.pid(), &bound_again), "nothing tells it from ours");
    }
}

#[test]
fn recovery_restores_single_threads_and_leaves_masks_of_others() {
    let Some((all, first, second)) = two_cpus() else { return };
    let mut program = Sleeper::start(all);
    assert_eq!(program.rule(Some(first)), Ok(()));
    // No process of the program is known by the log but the thread itself.
    assert_eq!(undo::restore(program.log.journal(), &Proc::default()).masks, 1);
    assert_eq!(program.cpus(), all);
    assert_eq!(program.rule(Some(first)), Ok(()));
    program.is_bound_to(second);
    assert_eq!(program.bind(None), Ok(()));
    assert_eq!(undo::restore(program.log.journal(), &Proc::default()).masks, 0);
    assert_eq!(program.cpus(), second);
}
