//! Threads of a real process, and the undo log as the sentinel would read it.

use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::*;
use crate::safety::undo;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// A process that sleeps, with what its scheduling is kept with.
struct Sleeper {
    child: Child,
    scheduling: Scheduling,
    log: Log,
    _folder: TempDir,
}

impl Sleeper {
    fn start() -> Sleeper {
        Sleeper::of("sleep", &["1000"])
    }

    fn of(command: &str, arguments: &[&str]) -> Sleeper {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(command).args(arguments).stdout(Stdio::null()).spawn().unwrap();
        Sleeper {
            child,
            scheduling: Scheduling::new(ProgramId::first(0), &Proc::default()),
            log: Log::create(folder.path(), &Proc::default()).unwrap(),
            _folder: folder,
        }
    }

    fn main(&self) -> Process {
        Process::find(&Proc::default(), self.child.id() as i32).unwrap()
    }

    fn apply(&mut self, settings: Settings) -> Vec<(Aspect, Refusal)> {
        let main = self.main();
        self.log.note(Record::Main { program: ProgramId::first(0), process: main }).unwrap();
        let tree = Tree { main: Some(main), ..Tree::default() };
        self.scheduling.apply(&settings, &tree, &Proc::default(), &mut self.log).unwrap()
    }

    fn attr(&self) -> SchedAttr {
        sched_attr::get(self.child.id() as i32).unwrap()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Linux 6.12 has them.
fn slices_are_here() -> bool {
    let here = sched_attr::default_slice().unwrap().is_some();
    if !here {
        eprintln!("skipped: this kernel has no slices per thread (Linux 6.12 has)");
    }
    here
}

fn slice(length: Nanos) -> Settings {
    Settings { slice: Some(length), ..Settings::default() }
}

#[test]
fn a_slice_and_a_class_are_set_and_undone() {
    if !slices_are_here() {
        return;
    }
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    assert_eq!(sleeper.apply(slice(MS(20))), []);
    assert_eq!(sleeper.attr(), SchedAttr { runtime: MS(20), ..found });
    let batch = Settings { class: Some(Class::Batch), ..slice(MS(30)) };
    assert_eq!(sleeper.apply(batch), []);
    assert_eq!(sleeper.attr(), SchedAttr { runtime: MS(30), policy: SchedPolicy::Batch, ..found });
    assert_eq!(sleeper.apply(Settings::default()), []);
    assert_eq!(sleeper.attr(), found);
}

/// Rows of the table above the kernel's limit get the longest slice that the kernel allows.
#[test]
fn slices_above_the_kernels_limit_are_cut_and_reported() {
    if !slices_are_here() {
        return;
    }
    let mut sleeper = Sleeper::start();
    assert_eq!(sleeper.apply(slice(MS(250))), [(Aspect::Slice, Refusal::OutOfRange)]);
    assert_eq!(sleeper.attr().runtime, LONGEST_SLICE);
}

/// The scheduler in the kernel grants longer slices, and gives them itself. Once it has ended, the
/// kernel gives what it can.
#[test]
fn a_threads_own_slice_is_set_unless_ext_has_the_thread() {
    if !slices_are_here() {
        return;
    }
    let mut sleeper = Sleeper::start();
    let (main, scheduling) = (sleeper.main(), &mut sleeper.scheduling);
    assert_eq!(scheduling.note_slice(main, Some(MS(250))), None);
    let own = |scheduling: &Scheduling| {
        let (requested, mut refused) = scheduling.possible(&slice(MS(20)));
        (scheduling.requested_of(main, requested, &mut refused).slice, refused)
    };
    scheduling.schedule_by_ext(true);
    assert_eq!(own(scheduling), (None, vec![]));
    scheduling.schedule_by_ext(false);
    let cut = (Some(LONGEST_SLICE), vec![(Aspect::Slice, Refusal::OutOfRange)]);
    assert_eq!(own(scheduling), cut);
    assert_eq!(scheduling.note_slice(main, None), Some(MS(250)));
    assert_eq!(own(scheduling), (Some(MS(20)), vec![]));
}

#[test]
fn nice_values_set_by_the_user_stay() {
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    let nicer = SchedAttr { nice: 5, ..found };
    sched_attr::set(sleeper.child.id() as i32, &nicer).unwrap();
    sleeper.apply(Settings { class: Some(Class::Batch), ..Settings::default() });
    assert_eq!(sleeper.attr(), SchedAttr { policy: SchedPolicy::Batch, ..nicer });
    let nicest = SchedAttr { nice: 9, ..sleeper.attr() };
    sched_attr::set(sleeper.child.id() as i32, &nicest).unwrap();
    sleeper.apply(Settings { class: Some(Class::Batch), ..Settings::default() });
    assert_eq!(sleeper.attr().nice, 9);
}

#[test]
fn what_a_program_leaves_running_is_restored_with_or_by_the_log() {
    for by_log in [false, true] {
        let mut sleeper = Sleeper::start();
        let found = sleeper.attr();
        sleeper.apply(Settings { class: Some(Class::Batch), ..Settings::default() });
        assert_ne!(sleeper.attr(), found);
        // A tree that does not lead to it any more: its root has ended.
        let gone = Process { pid: i32::MAX, start_time: 1 };
        if by_log {
            let program = ProgramId::first(0);
            sleeper.log.note(Record::Main { program, process: gone }).unwrap();
            undo::restore(sleeper.log.journal(), &Proc::default());
        } else {
            let tree = Tree { main: Some(gone), ..Tree::default() };
            let (proc, settings) = (Proc::default(), Settings::default());
            sleeper.scheduling.apply(&settings, &tree, &proc, &mut sleeper.log).unwrap();
        }
        assert_eq!(sleeper.attr(), found, "by the log: {by_log}");
    }
}

#[test]
fn a_real_time_thread_is_unchanged_and_reported() {
    let mut sleeper = Sleeper::start();
    let plain = sleeper.attr().in_default_class();
    let real_time = SchedAttr { policy: SchedPolicy::RoundRobin, priority: 1, nice: 0, ..plain };
    if sched_attr::set(sleeper.child.id() as i32, &real_time).is_err() {
        return eprintln!("skipped: this user may not have real-time threads");
    }
    let found = sleeper.attr();
    let batch = Settings { class: Some(Class::Batch), ..Settings::default() };
    assert_eq!(sleeper.apply(batch), [(Aspect::Class, Refusal::RealTime)]);
    assert_eq!(sleeper.apply(Settings::default()), []);
    assert_eq!(sleeper.attr(), found);
}

#[test]
fn the_log_restores_the_original_class() {
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    for class in [Class::Batch, Class::Fair, Class::Batch] {
        sleeper.apply(Settings { class: Some(class), ..Settings::default() });
    }
    if slices_are_here() {
        sleeper.apply(Settings { class: Some(Class::Batch), ..slice(MS(20)) });
    }
    assert_ne!(sleeper.attr(), found);
    let restored = undo::restore(sleeper.log.journal(), &Proc::default());
    assert!(restored.failed.is_empty(), "{restored:?}");
    assert_eq!(sleeper.attr(), found);
}

#[test]
fn steps_are_added_to_the_original_nice_value_and_undone() {
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    sched_attr::set(sleeper.child.id() as i32, &SchedAttr { nice: 5, ..found }).unwrap();
    sleeper.scheduling.least_nice = -20;
    let three = Settings { nice: Some(3), ..Settings::default() };
    if sleeper.apply(three).is_empty() {
        assert_eq!(sleeper.attr().nice, 8);
    }
    let refused = sleeper.apply(Settings::default());
    // An ordinary user may not take them back; `least_nice` prevents that case.
    assert_eq!(sleeper.attr().nice, if refused.is_empty() { 5 } else { 8 });
}

#[test]
fn nice_is_not_raised_where_it_cannot_be_restored() {
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    sleeper.scheduling.least_nice = found.nice + 1;
    let three = Settings { nice: Some(3), ..Settings::default() };
    assert_eq!(sleeper.apply(three), [(Aspect::Nice, Refusal::NotPermitted)]);
    assert_eq!(sleeper.attr(), found);
}

/// Sets the batch class, then lets a thread of the program (or its user) change its nice value.
fn batch_and_reniced(sleeper: &mut Sleeper) -> SchedAttr {
    let found = sleeper.attr();
    assert_eq!(sleeper.apply(Settings { class: Some(Class::Batch), ..Settings::default() }), []);
    let reniced = SchedAttr { nice: found.nice + 3, ..sleeper.attr() };
    sched_attr::set(sleeper.child.id() as i32, &reniced).unwrap();
    SchedAttr { nice: reniced.nice, ..found }
}

#[test]
fn a_reniced_thread_gets_its_class_back_and_keeps_its_nice() {
    for by_log in [false, true] {
        let mut sleeper = Sleeper::start();
        let expected = batch_and_reniced(&mut sleeper);
        match by_log {
            false => assert_eq!(sleeper.apply(Settings::default()), []),
            true => _ = undo::restore(sleeper.log.journal(), &Proc::default()),
        }
        assert_eq!(sleeper.attr(), expected, "by the log: {by_log}");
    }
}

#[test]
fn a_nice_value_set_between_two_changes_survives_sigkill() {
    let mut sleeper = Sleeper::start();
    let expected = batch_and_reniced(&mut sleeper);
    for class in [None, Some(Class::Batch)] {
        sleeper.apply(Settings { class, ..Settings::default() });
    }
    assert_eq!(sleeper.attr().policy, SchedPolicy::Batch);
    undo::restore(sleeper.log.journal(), &Proc::default());
    assert_eq!(sleeper.attr(), expected);
}

/// A real-time class hides the nice value and the slice.
#[test]
fn nice_and_slice_are_restored_after_a_real_time_class() {
    for by_log in [false, true] {
        let mut sleeper = Sleeper::start();
        let runtime = if slices_are_here() { MS(7) } else { sleeper.attr().runtime };
        let found = SchedAttr { nice: 5, runtime, ..sleeper.attr() };
        sched_attr::set(sleeper.child.id() as i32, &found).unwrap();
        let real_time = Settings { class: Some(Class::RoundRobin(1)), ..Settings::default() };
        if !sleeper.apply(real_time).is_empty() {
            return eprintln!("skipped: this user may not have real-time threads");
        }
        assert_eq!(sleeper.attr().policy, SchedPolicy::RoundRobin);
        match by_log {
            false => assert_eq!(sleeper.apply(Settings::default()), []),
            true => _ = undo::restore(sleeper.log.journal(), &Proc::default()),
        }
        assert_eq!(sleeper.attr(), found, "by the log: {by_log}");
    }
}

#[test]
fn a_thread_of_the_idle_class_is_not_raised() {
    let mut sleeper = Sleeper::start();
    let found = SchedAttr { policy: SchedPolicy::Idle, ..sleeper.attr() };
    sched_attr::set(sleeper.child.id() as i32, &found).unwrap();
    let found = sleeper.attr();
    let batch = Settings { class: Some(Class::Batch), ..Settings::default() };
    assert_eq!(sleeper.apply(batch), []);
    assert_eq!(sleeper.attr(), found);
}

/// The process had the class that the others are given.
#[test]
fn a_class_chosen_before_by_a_process_is_kept() {
    for by_log in [false, true] {
        let mut sleeper = Sleeper::of("sh", &["-c", "sleep 1000 & wait"]);
        let second = loop {
            let children = Proc::default().children(sleeper.child.id() as i32).unwrap();
            if let Some(child) = children.first() {
                break *child;
            }
            std::thread::yield_now();
        };
        let own = SchedAttr { policy: SchedPolicy::Batch, ..sched_attr::get(second).unwrap() };
        sched_attr::set(second, &own).unwrap();
        let found = (sleeper.attr(), sched_attr::get(second).unwrap());
        assert_eq!(
            sleeper.apply(Settings { class: Some(Class::Batch), ..Settings::default() }),
            []
        );
        assert_eq!(sleeper.attr().policy, SchedPolicy::Batch);
        match by_log {
            false => assert_eq!(sleeper.apply(Settings::default()), []),
            true => _ = undo::restore(sleeper.log.journal(), &Proc::default()),
        }
        let left = (sleeper.attr(), sched_attr::get(second).unwrap());
        Process::find(&Proc::default(), second)
            .unwrap()
            .signal(&Proc::default(), rustix::process::Signal::KILL)
            .unwrap();
        assert_eq!(left, found, "by the log: {by_log}");
    }
}

/// Not a test: it runs in a process of its own, with this thread and that of the harness.
#[test]
#[ignore = "sleeps for the next one"]
fn a_thread_that_sleeps() {
    std::thread::sleep(std::time::Duration::from_secs(1000));
}

#[test]
fn processes_outside_the_tree_are_restored_with_new_threads() {
    let exe = std::env::current_exe().unwrap();
    let arguments = [
        "--exact",
        "control::scheduling::tests::a_thread_that_sleeps",
        "--ignored",
        "--test-threads=2",
    ];
    for by_log in [false, true] {
        let mut sleeper = Sleeper::of(exe.to_str().unwrap(), &arguments);
        let proc = Proc::default();
        let main = sleeper.main();
        let born = loop {
            let threads = siblings(main, &proc);
            if let Some(thread) = threads.into_iter().find(|thread| *thread != main) {
                break thread;
            }
            std::thread::yield_now();
        };
        let found = (sleeper.attr(), sched_attr::get(born.pid).unwrap());
        sleeper.apply(Settings { class: Some(Class::Batch), ..Settings::default() });
        assert_eq!(sched_attr::get(born.pid).unwrap().policy, SchedPolicy::Batch);
        // As if its creator had had the settings when it was born.
        sleeper.scheduling.threads.remove(&born);
        let gone = Process { pid: i32::MAX, start_time: 1 };
        if by_log {
            let records = sleeper.log.journal().records().iter();
            let known = records
                .filter(|record| matches!(record, Record::Attr { thread, .. } if *thread == main));
            undo::restore(&known.cloned().collect(), &proc);
        } else {
            let tree = Tree { main: Some(gone), ..Tree::default() };
            let settings = Settings::default();
            sleeper.scheduling.apply(&settings, &tree, &proc, &mut sleeper.log).unwrap();
        }
        let left = (sleeper.attr(), sched_attr::get(born.pid).unwrap());
        assert_eq!(left, found, "by the log: {by_log}");
    }
}

impl Sleeper {
    /// Children beside those that are known, once there is one, which may take a signal.
    fn new_children(&self, known: &[i32]) -> Vec<i32> {
        loop {
            let mut children = Proc::default().children(self.child.id() as i32).unwrap();
            children.retain(|child| !known.contains(child));
            if !children.is_empty() {
                return children;
            }
            if !known.is_empty() {
                let _ = self.main().signal(&Proc::default(), rustix::process::Signal::USR1);
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

/// The kernel hands class and slice on to what a process starts, from its first instruction on. A
/// process that has asked for the opposite keeps the slice to itself, and its child gets one when
/// it is found.
#[test]
fn newcomers_inherit_or_are_given_class_and_slice() {
    if !slices_are_here() {
        return;
    }
    for keeps_to_itself in [false, true] {
        let script = "trap : USR1; while :; do sleep 1000 & wait; done";
        let mut sleeper = Sleeper::of("sh", &["-c", script]);
        let first = sleeper.new_children(&[]);
        if keeps_to_itself {
            let own = sleeper.attr().reset_on_fork();
            sched_attr::set(sleeper.child.id() as i32, &own).unwrap();
        }
        let found = [sleeper.attr(), sched_attr::get(first[0]).unwrap()];
        let settings = Settings { class: Some(Class::Batch), ..slice(MS(20)) };
        assert_eq!(sleeper.apply(settings), []);
        let born = sleeper.new_children(&first)[0];
        let attr = || sched_attr::get(born).unwrap();
        assert_eq!(attr().policy, SchedPolicy::Batch);
        assert_eq!(attr().runtime == MS(20), !keeps_to_itself, "at its birth");
        assert_eq!(sleeper.apply(settings), []);
        assert_eq!((attr().policy, attr().runtime), (SchedPolicy::Batch, MS(20)));
        assert_eq!(sleeper.apply(Settings::default()), []);
        let left = [sleeper.attr(), sched_attr::get(first[0]).unwrap(), attr()];
        let all = Proc::default().children(sleeper.child.id() as i32).unwrap();
        drop(sleeper);
        for child in all.into_iter().filter_map(|pid| Process::find(&Proc::default(), pid).ok()) {
            let _ = child.signal(&Proc::default(), rustix::process::Signal::KILL);
        }
        assert_eq!(left, [found[0], found[1], found[1]], "{keeps_to_itself}");
    }
}

#[test]
fn a_table_with_the_kernels_own_slice_restores_classes() {
    let Some(own) = sched_attr::default_slice().unwrap() else { return };
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    let batch = Settings { class: Some(Class::Batch), ..slice(own) };
    assert_eq!((sleeper.apply(batch), sleeper.apply(batch)), (vec![], vec![]));
    assert_eq!(sleeper.attr().policy, SchedPolicy::Batch);
    assert_eq!(sleeper.apply(Settings::default()), []);
    assert_eq!(sleeper.attr(), found);
}
