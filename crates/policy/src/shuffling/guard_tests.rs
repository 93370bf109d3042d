//! The guard with a program that has a speed for each place of its threads.

use cosched_core::{Learned, Quality, Reason, Sample};

use super::tests::{A, INTERVAL, Stage, cpus, sample};
use super::*;

/// A program of four threads with a given speed, and the CPUs of its threads.
struct Guarded {
    stage: Stage,
    on: BTreeMap<u32, String>,
    /// The CPUs of its threads at each change so far.
    states: Vec<BTreeMap<u32, String>>,
    whys: Vec<ShufflingReason>,
}

/// Threads 0 and 2 wait long.
const WAITS: [f64; 4] = [0.80, 0.10, 0.80, 0.10];

impl Guarded {
    fn new() -> Guarded {
        Guarded::with(ShufflingOptions::default())
    }

    fn with(options: ShufflingOptions) -> Guarded {
        let (stage, on) = (Stage::with(4, options), BTreeMap::new());
        let mut guarded = Guarded { stage, on, states: Vec::new(), whys: Vec::new() };
        guarded.look();
        guarded
    }

    /// Takes in what the latest plan says.
    fn look(&mut self) {
        for (slot, cpus) in self.stage.moves() {
            match cpus.is_empty() {
                true => self.on.remove(&slot),
                false => self.on.insert(slot, cpus),
            };
        }
        if self.states.last() != Some(&self.on) {
            self.states.push(self.on.clone());
        }
        let own = |reason: &&Reason| reason.program == Some(A);
        self.whys.extend(
            self.stage
                .lab
                .plan
                .reasons
                .iter()
                .filter(own)
                .filter_map(|one| one.why.read::<ShufflingReason>()),
        );
    }

    /// Whether the threads that wait long share a socket, and no other thread is there.
    fn is_shuffled(&self) -> bool {
        let on = |slot: u32| self.on.get(&slot).map(String::as_str);
        on(0).is_some() && on(0) == on(2) && on(1) == on(3) && on(0) != on(1)
    }

    /// Runs for this many seconds, in which the threads wait like this, and the program's speed is
    /// `speed`.
    fn runs(&mut self, seconds: u64, waits: &[f64], speed: impl Fn(&Guarded) -> f64) {
        let end = self.stage.lab.scene.now + Nanos::from_secs(seconds);
        let mut interval_ends = self.stage.lab.scene.now + INTERVAL;
        while self.stage.lab.scene.now < end {
            let from = self.stage.lab.scene.now;
            let wake = self.stage.lab.next_wake().filter(|at| *at <= interval_ends);
            let to = wake.unwrap_or(interval_ends);
            let user_time = Nanos(((to - from).0 as f64 * speed(self)) as u64);
            let whole = Sample {
                user_time: Some(user_time),
                quality: Quality::Exact,
                ..Sample::empty(A, from, to)
            };
            let each =
                waits.iter().enumerate().map(|(slot, wait)| sample(slot as u32, *wait, from, to));
            self.stage.lab.scene.samples = std::iter::once(whole).chain(each).collect();
            if wake.is_some() {
                self.stage.lab.wake_reading();
            } else {
                self.stage.lab.pass(to - from);
                self.stage.lab.tell(&[Cause::Sampled(A)]);
            }
            interval_ends = to + INTERVAL;
            self.look();
        }
    }

    fn tried(&self) -> usize {
        self.whys.iter().filter(|why| matches!(why, ShufflingReason::GroupsTried { .. })).count()
    }

    fn kept(&self) -> usize {
        self.whys.iter().filter(|why| matches!(why, ShufflingReason::GroupsKept { .. })).count()
    }

    fn put_back(&self) -> usize {
        self.whys.iter().filter(|why| matches!(why, ShufflingReason::GroupsPutBack { .. })).count()
    }
}

/// Groups that make a program faster are kept, and this is reported.
#[test]
fn groups_that_make_a_program_faster_are_kept() {
    let mut guarded = Guarded::new();
    guarded.runs(60, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    assert!(guarded.is_shuffled(), "{:?}", guarded.on);
    assert!(matches!(guarded.whys[0], ShufflingReason::GroupsTried { threads: 4, groups: 2 }));
    let reported = guarded
        .whys
        .iter()
        .filter(|why| matches!(why, ShufflingReason::Shuffled { threads: 4, .. }));
    assert_eq!((reported.count(), guarded.put_back()), (1, 0), "{:?}", guarded.whys);
}

/// Groups that do not help are undone, and tried less and less often.
#[test]
fn groups_that_do_not_help_are_undone() {
    let mut guarded = Guarded::new();
    let slower = |it: &Guarded| if it.is_shuffled() { 0.9 } else { 1.0 };
    guarded.runs(600, &WAITS, slower);
    let mut longest_trial = 0..20;
    while !guarded.on.is_empty() && longest_trial.next().is_some() {
        guarded.runs(1, &WAITS, slower);
    }
    assert_eq!((guarded.on.len(), guarded.kept()), (0, 0), "{:?}", guarded.on);
    let is_shuffle = |why: &&ShufflingReason| matches!(why, ShufflingReason::Shuffled { .. });
    assert_eq!(guarded.whys.iter().find(is_shuffle), None, "no thread was moved for good");
    let pauses = guarded.whys.iter().filter_map(|why| match *why {
        ShufflingReason::GroupsPutBack { groups: 0, pause, .. } => Some(pause.0 / 1_000_000_000),
        _ => None,
    });
    let pauses: Vec<u64> = pauses.collect();
    assert!(pauses.len() > 3 && pauses.is_sorted() && pauses.contains(&160), "{pauses:?}");
}

#[test]
fn groups_that_turn_slow_are_undone() {
    let mut guarded = Guarded::new();
    guarded.runs(60, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    guarded.runs(300, &WAITS, |it| if it.is_shuffled() { 0.8 } else { 1.0 });
    assert_eq!(guarded.on.len(), 0);
    assert!(
        guarded
            .whys
            .iter()
            .any(|why| matches!(why, ShufflingReason::GroupsPutBack { groups: 0, .. }))
    );
}

#[test]
fn new_groups_are_compared_with_the_present_ones() {
    let mut guarded = Guarded::new();
    guarded.runs(60, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    let before = guarded.on.clone();
    // Now 0 and 3 wait long. A group of these would be slower than the present groups.
    let others = [0.80, 0.10, 0.10, 0.80];
    guarded.runs(200, &others, |it| match it.on.len() {
        0 => 1.0,
        _ if it.is_shuffled() => 1.2,
        _ => 1.1,
    });
    assert_eq!(guarded.on, before);
    assert!(
        guarded
            .whys
            .iter()
            .any(|why| matches!(why, ShufflingReason::GroupsPutBack { groups: 2, .. }))
    );
    guarded.runs(300, &others, |it| if it.is_shuffled() { 1.0 } else { 1.2 });
    assert!(!guarded.is_shuffled() && guarded.on.len() < 5, "{:?}", guarded.on);
}

/// When a trial loses its CPUs, no thread stays where the trial had put it.
#[test]
fn a_trial_that_loses_its_cpus_is_void_and_undone() {
    let mut guarded = Guarded::new();
    guarded.runs(1, &WAITS, |_| 1.0);
    while guarded.on.is_empty() {
        guarded.runs(1, &WAITS, |_| 1.0);
    }
    guarded.stage.lab.scene.cpus = cpus("0,2");
    guarded.stage.lab.tell(&[Cause::MachineChanged]);
    guarded.look();
    assert_eq!(guarded.on.len(), 0, "{:?}", guarded.on);
    guarded.runs(60, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    assert!(guarded.on.values().all(|cpus| cpus == "0" || cpus == "2") && guarded.is_shuffled());
}

/// A program's groups are made again when it waits again.
#[test]
fn a_program_that_stops_waiting_is_released() {
    let mut guarded = Guarded::new();
    guarded.runs(20, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    guarded.runs(60, &[0.01; 4], |_| 1.0);
    assert_eq!(guarded.on.len(), 0);
    assert!(guarded.whys.iter().any(|why| matches!(why, ShufflingReason::Unbound { .. })));
    guarded.runs(60, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    assert!(guarded.is_shuffled());
}

#[test]
fn released_threads_first_return_to_their_place() {
    let mut guarded = Guarded::new();
    guarded.runs(60, &WAITS, |it| if it.is_shuffled() { 0.9 } else { 1.0 });
    let origins = [(0, "0-1"), (1, "0-1"), (2, "2-3"), (3, "2-3")];
    let origins = origins.map(|(slot, cpus)| (slot, cpus.to_owned())).into();
    let steps = guarded.states.windows(2).filter(|step| step[1].is_empty());
    let steps: Vec<_> = steps.map(|step| step[0].clone()).collect();
    assert!(steps.len() > 3 && steps.iter().all(|before| *before == origins), "{steps:?}");
}

#[test]
fn groups_that_prove_themselves_again_are_not_reported() {
    let mut guarded = Guarded::new();
    guarded.runs(300, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    let reported =
        guarded.whys.iter().filter(|why| matches!(why, ShufflingReason::Shuffled { .. })).count();
    assert!(guarded.kept() > 1 && reported == 1, "{:?}", guarded.whys);
}

/// A program of which earlier runs have shown whether groups help it.
fn known(helped: bool, options: ShufflingOptions) -> Guarded {
    let mut guarded = Guarded::with(options);
    let learned = Learned::default().with_groups(helped);
    guarded.stage.lab.scene.programs[0].profile.learned = learned;
    guarded
}

/// Learned groups are applied at once, and compared with no groups only later.
#[test]
fn learned_groups_are_applied_at_once() {
    let mut guarded = known(true, ShufflingOptions::default());
    guarded.runs(9, &WAITS, |_| 1.0);
    assert!(guarded.is_shuffled() && guarded.tried() == 0, "{:?}", guarded.whys);
    assert!(
        guarded.whys.contains(&ShufflingReason::GroupsRecalled { helped: true }),
        "{:?}",
        guarded.whys
    );
    guarded.runs(25, &WAITS, |it| if it.is_shuffled() { 0.8 } else { 1.0 });
    assert_eq!((guarded.tried(), guarded.on.len()), (1, 0), "it was true of another time");
}

#[test]
fn groups_known_not_to_help_are_tried_only_later() {
    let mut guarded = known(false, ShufflingOptions::default());
    guarded.runs(9, &WAITS, |_| 1.0);
    assert_eq!((guarded.tried(), guarded.on.len()), (0, 0), "{:?}", guarded.whys);
    guarded.runs(25, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    assert!(guarded.is_shuffled(), "{:?}", guarded.whys);
}

#[test]
fn relearn_ignores_earlier_runs() {
    let options = ShufflingOptions { relearn: true, ..ShufflingOptions::default() };
    let mut guarded = known(false, options);
    guarded.runs(9, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    assert!(guarded.is_shuffled() && guarded.tried() == 1, "{:?}", guarded.whys);
}

#[test]
fn a_repeated_program_starts_with_its_last_runs_result() {
    let mut guarded = Guarded::new();
    guarded.runs(20, &WAITS, |it| if it.is_shuffled() { 1.2 } else { 1.0 });
    assert_eq!((guarded.tried(), guarded.kept()), (1, 1), "{:?}", guarded.whys);
    guarded.stage.begins_again();
    guarded.on.clear();
    guarded.look();
    guarded.runs(9, &WAITS, |_| 1.0);
    assert!(
        guarded.whys.contains(&ShufflingReason::GroupsRecalled { helped: true }),
        "{:?}",
        guarded.whys
    );
    assert!(guarded.is_shuffled() && guarded.tried() == 1, "{:?}", guarded.whys);
}

#[test]
fn intermittent_contention_causes_no_more_trials() {
    let mut guarded = Guarded::new();
    let slower = |it: &Guarded| if it.is_shuffled() { 0.9 } else { 1.0 };
    for _ in 0..30 {
        guarded.runs(4, &WAITS, slower);
        guarded.runs(4, &[0.01; 4], slower);
    }
    // Each takes 3 s of 240.
    assert!((2..=8).contains(&guarded.tried()), "{:?}", guarded.whys);
}

/// Groups that helped are applied again when contention comes back.
#[test]
fn groups_that_helped_return_with_contention() {
    let mut guarded = Guarded::new();
    let faster = |it: &Guarded| if it.is_shuffled() { 1.2 } else { 1.0 };
    guarded.runs(20, &WAITS, faster);
    guarded.runs(5, &[0.01; 4], faster);
    assert_eq!(guarded.on.len(), 0);
    guarded.runs(2, &WAITS, faster);
    assert!(guarded.is_shuffled() && guarded.tried() == 1, "{:?}", guarded.whys);
}
