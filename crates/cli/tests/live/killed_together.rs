//! Any of `cosched`, its sentinel and its shims are killed at the same moment. Either what is left
//! of them undoes everything, or the next command says that `recover` does.
//!
//! `COSCHED_KILLS` says how often with each command.

use std::time::{Duration, Instant};

use cosched_linux::process::tree::Process;
use rustix::process::Signal;

use super::kills::{kills, moment, start, wrongs};
use super::support::{Backend, Cosched, Marked, Place, eventually};
use super::turns;

/// How long after the end of every sentinel something may be seen that is on its way out.
const BOUND: Duration = Duration::from_secs(2);
/// Longer than any sentinel takes on a busy machine: it waits for programs that are starting.
const LONGEST_UNDOING: Duration = Duration::from_secs(30);
/// How long it takes, without a sentinel, until what is wrong stays so. Nothing undoes it then.
const SETTLED: Duration = Duration::from_millis(300);

/// What is killed, by the bits of a number: cosched, its sentinel, and each of three shims.
#[derive(Clone, Copy, Debug)]
struct Victims(u64);

impl Victims {
    /// Every combination in turn, but for the empty one.
    fn of(kill: u64) -> Victims {
        Victims(1 + kill * 7 % 31)
    }

    fn cosched(self) -> bool {
        self.0 & 1 != 0
    }

    fn sentinel(self) -> bool {
        self.0 & 2 != 0
    }

    fn shims(self) -> u64 {
        self.0 >> 2
    }

    /// The processes that there are of them, in an order that differs from kill to kill.
    fn found(self, marked: &Marked, cosched: &Cosched, kill: u64) -> Vec<Process> {
        let mut all = Vec::new();
        if self.cosched() {
            all.push(cosched.process());
        }
        if self.sentinel() {
            all.extend(marked.named("csentinel"));
        }
        let shims = marked.named("shim").into_iter().enumerate();
        all.extend(shims.filter(|(i, _)| self.shims() >> i & 1 != 0).map(|(_, shim)| shim));
        let middle = kill as usize % all.len().max(1);
        all.rotate_left(middle);
        all
    }
}

/// Waits for what is left of the helpers to undo everything; what is still wrong in the end. Where
/// the sentinel was killed, that is what no longer changes.
fn wrongs_in_the_end(place: &Place, cosched: i32, sentinel_killed: bool) -> Vec<String> {
    let since = Instant::now();
    let (mut at_work, mut changed, mut before) = (since, since, Vec::new());
    loop {
        let wrongs = wrongs(place, cosched);
        let marked = place.marked();
        let is_there = |name: &str| !marked.named(name).is_empty();
        if is_there("csentinel") && since.elapsed() < LONGEST_UNDOING {
            at_work = Instant::now();
        }
        // A helper that has just been forked may be another sentinel.
        let is_helped = || ["csentinel", "exe", "cosched"].into_iter().any(is_there);
        if wrongs != before || sentinel_killed && is_helped() {
            changed = Instant::now();
        }
        let is_settled = sentinel_killed && changed.elapsed() > SETTLED;
        if wrongs.is_empty() || is_settled || at_work.elapsed() > BOUND {
            return wrongs;
        }
        before = wrongs;
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn killed_together(start: impl Fn(&Place) -> Option<Cosched>) {
    let (mut recovered, mut undone) = (0, 0);
    for kill in 0..kills() {
        let place = Place::new();
        let Some(cosched) = start(&place) else { return };
        let (pid, victims) = (cosched.pid(), Victims::of(kill));
        std::thread::sleep(moment(kill));
        let marked = place.marked();
        for process in victims.found(&marked, &cosched, kill) {
            // It may have ended with the one before.
            let _ = process.signal(&Default::default(), Signal::KILL);
        }
        // Without the others, it goes on; then it is the last to be killed.
        let went_on = !victims.cosched();
        if went_on {
            std::thread::sleep(moment(kill) / 10);
        }
        cosched.kill();
        let left = wrongs_in_the_end(&place, pid, victims.sentinel());
        if !left.is_empty() {
            // A sentinel that was killed cannot have undone it.
            assert!(victims.sentinel(), "{victims:?} at {:?}: {left:?}", moment(kill));
            let offered = place.cosched(&["top", "--once"]).ended();
            let said = (&offered.stderr, &left, victims, moment(kill));
            assert!(offered.stderr.contains("cosched recover"), "{said:?}");
        }
        place.cosched(&["recover"]).ended().with(0);
        let after = wrongs_in_the_end(&place, pid, false);
        assert_eq!(after, Vec::<String>::new(), "{victims:?} at {:?}: {left:?}", moment(kill));
        match left.is_empty() {
            true => undone += 1,
            false => recovered += 1,
        }
        // The kernel ends a stopped program if its shim and cosched are killed; the others go on.
        let programs = marked.programs();
        let before: Vec<_> = programs.iter().map(|one| (*one, marked.ticks(*one))).collect();
        eventually("programs that go on", || {
            before.iter().all(|(one, ticks)| {
                !marked.lives(*one) || !marked.is_stopped(*one) && marked.ticks(*one) >= *ticks
            })
        });
        place.no_trace_is_left_of(pid);
    }
    eprintln!("{} kills: undone {undone} times, recovered {recovered} times", kills());
}

#[test]
fn all_is_undone_after_kills_of_any_of_them_by_cgroup_v2() {
    killed_together(|place| by(place, "cgroup-v2"));
}

#[test]
fn all_is_undone_after_kills_of_any_of_them_by_cgroup_v1() {
    killed_together(|place| by(place, "cgroup-v1"));
}

#[test]
fn all_is_undone_after_kills_of_any_of_them_by_signals() {
    killed_together(|place| by(place, "signals"));
}

#[test]
fn all_is_undone_after_kills_of_any_of_them_by_weight() {
    killed_together(|place| {
        turns::caller_has_groups().then(|| place.run(&turns::three(), "--quantum 5ms"))
    });
}

fn by(place: &Place, backend: &'static str) -> Option<Cosched> {
    Backend(backend).is_here().then(|| start(place, Backend(backend)))
}
