//! Threads of a real process, and the undo log as the sentinel would read it.

use std::process::{Child, Command};

use tempfile::TempDir;

use super::*;
use crate::undo;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// A process that sleeps, and what its scheduling is kept with.
struct Sleeper {
    child: Child,
    scheduling: Scheduling,
    log: Log,
    _folder: TempDir,
}

impl Sleeper {
    fn start() -> Sleeper {
        let folder = tempfile::tempdir().unwrap();
        Sleeper {
            child: Command::new("sleep").arg("1000").spawn().unwrap(),
            scheduling: Scheduling::new(ProgramId::first(0)),
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
    let here = sched_attr::slice_supported().unwrap();
    if !here {
        eprintln!("skipped: this kernel has no slices per thread (Linux 6.12 has)");
    }
    here
}

fn slice(length: Nanos) -> Settings {
    Settings { slice: Some(length), ..Settings::default() }
}

#[test]
fn a_slice_and_a_class_are_given_and_taken_back() {
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

#[test]
fn rows_of_the_table_beyond_what_the_kernel_grants_get_the_longest_and_it_is_told() {
    if !slices_are_here() {
        return;
    }
    let mut sleeper = Sleeper::start();
    assert_eq!(sleeper.apply(slice(MS(250))), [(Aspect::Slice, Refusal::OutOfRange)]);
    assert_eq!(sleeper.attr().runtime, LONGEST_SLICE);
}

#[test]
fn a_nice_value_of_the_users_stays_and_a_later_one_too() {
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
fn what_a_program_leaves_running_gets_back_what_was_found_with_the_program_or_from_the_log() {
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
            undo::restore(sleeper.log.book(), &Proc::default());
        } else {
            let tree = Tree { main: Some(gone), ..Tree::default() };
            let (proc, settings) = (Proc::default(), Settings::default());
            sleeper.scheduling.apply(&settings, &tree, &proc, &mut sleeper.log).unwrap();
        }
        assert_eq!(sleeper.attr(), found, "by the log: {by_log}");
    }
}

#[test]
fn a_real_time_thread_is_left_alone_and_told() {
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
fn whoever_reads_the_log_puts_back_what_was_found() {
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    for class in [Class::Batch, Class::Fair, Class::Batch] {
        sleeper.apply(Settings { class: Some(class), ..Settings::default() });
    }
    if slices_are_here() {
        sleeper.apply(Settings { class: Some(Class::Batch), ..slice(MS(20)) });
    }
    assert_ne!(sleeper.attr(), found);
    let restored = undo::restore(sleeper.log.book(), &Proc::default());
    assert!(restored.failed.is_empty(), "{restored:?}");
    assert_eq!(sleeper.attr(), found);
}

#[test]
fn steps_are_added_to_the_nice_value_that_was_found_and_taken_away_again() {
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    sched_attr::set(sleeper.child.id() as i32, &SchedAttr { nice: 5, ..found }).unwrap();
    sleeper.scheduling.least_nice = -20;
    let three = Settings { nice: Some(3), ..Settings::default() };
    if sleeper.apply(three).is_empty() {
        assert_eq!(sleeper.attr().nice, 8);
    }
    let refused = sleeper.apply(Settings::default());
    // An ordinary user may not take them back; that is why `least_nice` asks first.
    assert_eq!(sleeper.attr().nice, if refused.is_empty() { 5 } else { 8 });
}

#[test]
fn nobody_is_made_nicer_who_could_not_be_put_back() {
    let mut sleeper = Sleeper::start();
    let found = sleeper.attr();
    sleeper.scheduling.least_nice = found.nice + 1;
    let three = Settings { nice: Some(3), ..Settings::default() };
    assert_eq!(sleeper.apply(three), [(Aspect::Nice, Refusal::NotPermitted)]);
    assert_eq!(sleeper.attr(), found);
}
