//! Side by side or in gangs: what follows from what each program does alone.
//!
//! *Progress* decides where programs tell enough of it: whatever is done with the CPUs, the way in which they come further is the better one
//! ([`progress`](super::progress) tells how that is compared). Otherwise, CPU time has to do:
//!
//! *Where gangs lose.* While one gang runs, the others do nothing. If its threads sleep, wait for files, or ask the kernel
//! again and again whether they may go on, CPUs do nothing useful that somebody else would have used. That can be measured:
//! what the programs do outside the kernel alone, shared out over the turns that they would take, against what they do side by
//! side.
//!
//! *Where gangs win.* Threads that spin for a sibling without a CPU are as busy as those that compute, and their
//! program gets nothing done. **Neither CPU time nor instructions show that.** But it happens
//! only to programs that have several threads at work at once, and nothing of it happens in gangs.
//!
//! *So* what can be measured decides, and where it sees no loss, programs with several threads take turns: if their
//! threads wait for each other that saves a multiple, and if not it costs some per cent (docs/benchmarks.md).
//!
//! *What shows it* is where in their code programs are: threads that spin in their [runtime](cosched_core::Sample::in_runtime) do no
//! work, and what is left is. Where that is seen of all programs with several threads, it tells what gangs win, and
//! they have to win something. That has to be for less waiting: that more is done outside the kernel may mean as
//! well that a program which is being loaded had less of the CPUs.
//!
//! *Among programs of others,* threads that wait for each other do so alone as well, whenever one of them has lost its CPU to
//! somebody else. So where they hardly did more than wait side by side, that they wait alone tells nothing against turns: whether
//! they are as busy there decides, as where waiting is not seen.
//!
//! *How much may be lost* otherwise depends on whether anything can be won. A program whose threads sleep when it is alone waits by
//! sleeping, and wastes little beside others. So does one whose threads yield, which shows in the kernel alone, more than
//! in company. One whose threads do neither never waits, or spins. Where two such programs
//! meet, each may keep CPUs from those for whom the other spins, so that more may be lost to avoid that.

use cosched_core::{Ground, Manner, Speedups};

use super::goal::NOISE;
use super::interval::Interval;
use super::progress::Bounds;
use crate::minwait::Share;

/// A program that competes for CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rival {
    /// How many CPUs it uses alone; what it asks for where that was not seen. 1 to all.
    pub(super) threads: usize,
    /// How many of them it keeps busy outside the kernel.
    pub(super) rate: f64,
    /// On how many more its threads are seen to wait.
    pub(super) waiting: f64,
    /// Alone, hardly any of the threads that it asks for ever sleeps.
    pub(super) never_sleeps: bool,
    /// It is seen whether they wait.
    pub(super) shows_waits: bool,
}

/// What programs do side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Beside {
    /// How many CPUs they keep at work outside the kernel.
    pub(super) useful: f64,
    /// On how many more their threads wait; `None`: that was not seen of all, and counts as work.
    pub(super) waiting: Option<f64>,
}

impl Beside {
    /// What they did, of so many CPUs, where it was seen or not whether they wait.
    pub(super) fn of(did: &Interval, cpus: usize, is_seen: bool) -> Beside {
        let busy = Beside { useful: did.busy(cpus), waiting: None };
        let useful = did.useful(cpus);
        if is_seen { Beside { useful, waiting: Some(busy.useful - useful) } } else { busy }
    }

    /// How many CPUs are busy outside the kernel, whatever for.
    pub(super) fn busy(&self) -> f64 {
        self.useful + self.waiting.unwrap_or_default()
    }

    /// Whether they did hardly more than wait.
    fn mostly_waits(&self) -> bool {
        self.waiting.is_some_and(|waiting| waiting > 0.0 && waiting >= MOSTLY * self.busy())
    }

    /// The same as if it was not seen whether anybody waits.
    pub(super) fn with_all_at_work(self) -> Beside {
        Beside { useful: self.busy(), waiting: None }
    }

    /// What is to be compared with it of another interval.
    pub(super) fn alike(&self, did: &Interval, cpus: usize) -> f64 {
        if self.waiting.is_some() { did.useful(cpus) } else { did.busy(cpus) }
    }
}

/// Programs that spend such a part of their time waiting hardly do more than that.
pub(super) const MOSTLY: f64 = 0.5;
/// Where it is seen how long threads wait, such a part of the CPUs less has to be spent on that in turns.
pub(super) const SAVED: f64 = 0.05;
/// Whoever is outside the kernel for less than this part of what all are side by side gives CPUs away when it waits.
const YIELDS: f64 = 0.85;

impl Rival {
    /// Whether its threads may keep CPUs from others while they wait, where all keep this part of the CPUs busy outside the
    /// kernel side by side.
    fn may_spin(&self, outside: f64) -> bool {
        let yields = self.rate + self.waiting < YIELDS * outside * self.threads as f64;
        self.never_sleeps && self.threads > 1 && !yields
    }
}

/// What is known of whether programs spin for threads that others keep from their CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spinning {
    /// How much they do is seen.
    Seen,
    /// The same, and they hardly do more, but others have CPUs, too, for which they may do so in any way.
    AmongOthers,
    /// They may: some spin, or never wait, and it takes two of these.
    Possible,
    /// They do not.
    Excluded,
}

/// The same of these, where this was done side by side on so many CPUs, of which others had some or not.
pub(super) fn spinning(rivals: &[Rival], beside: Beside, cpus: usize, others: bool) -> Spinning {
    let outside = beside.busy() / cpus as f64;
    let may_spin = rivals.iter().filter(|rival| rival.may_spin(outside)).count();
    let all_show = rivals.iter().all(|rival| rival.threads < 2 || rival.shows_waits);
    match all_show && beside.waiting.is_some() {
        true if others && beside.mostly_waits() => Spinning::AmongOthers,
        true => Spinning::Seen,
        false if may_spin > 1 => Spinning::Possible,
        false => Spinning::Excluded,
    }
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) manner: Manner,
    pub(super) ground: Ground,
    /// How many CPUs are expected to be busy outside the kernel in gangs.
    pub(super) in_gangs: Option<f64>,
    /// How far they come in both ways, where that decided.
    pub(super) speedups: Option<Speedups>,
}

impl Verdict {
    /// Where nothing could be measured, nothing is changed.
    pub(super) const UNSEEN: Verdict = Verdict::new(Manner::SideBySide, Ground::GangsIdle);

    /// Without figures.
    pub(super) const fn new(manner: Manner, ground: Ground) -> Verdict {
        Verdict { manner, ground, in_gangs: None, speedups: None }
    }
}

/// Whether there is nothing to decide, by thread counts alone.
pub(super) fn is_settled(rivals: &[Rival], cpus: usize) -> Option<Ground> {
    let threads: usize = rivals.iter().map(|rival| rival.threads).sum();
    match () {
        () if rivals.len() < 2 => Some(Ground::OneCompetes),
        () if threads <= cpus => Some(Ground::EnoughCpus),
        () if rivals.iter().all(|rival| rival.threads < 2) => Some(Ground::NobodyWide),
        () => None,
    }
}

/// What is better on so many CPUs, where these are the rivals' shares in turns, this was done side by side, this is known of
/// whether they spin, and this part of what is done may be lost.
pub(super) fn judge(
    rivals: &[Rival],
    turns: &[Share],
    cpus: usize,
    beside: Beside,
    spinning: Spinning,
    most_lost: f64,
) -> Verdict {
    if let Some(ground) = is_settled(rivals, cpus) {
        return Verdict::new(Manner::SideBySide, ground);
    }
    // On CPUs that are lent, threads share them.
    let share = |rival: &Rival, share: &Share| share.seated + share.lent / rival.threads as f64;
    let sum = |of: fn(&Rival) -> f64| -> f64 {
        rivals.iter().zip(turns).map(|(rival, turns)| of(rival) * share(rival, turns)).sum()
    };
    let (useful, waiting) = (sum(|rival| rival.rate), sum(|rival| rival.waiting));
    if spinning == Spinning::AmongOthers {
        let fills = useful + waiting >= (1.0 - most_lost) * beside.busy();
        return match fills {
            true => Verdict::new(Manner::InGangs, Ground::MuchWaiting),
            false => Verdict::new(Manner::SideBySide, Ground::GangsIdle),
        };
    }
    let in_gangs = if beside.waiting.is_some() { useful } else { useful + waiting };
    let saves = beside.waiting.is_some_and(|beside| beside - waiting >= SAVED * cpus as f64);
    let is_seen = spinning == Spinning::Seen;
    let fills = in_gangs >= (1.0 - most_lost) * beside.useful && (saves || most_lost >= 0.0);
    let (manner, ground) = match fills {
        true if is_seen && saves => (Manner::InGangs, Ground::MuchWaiting),
        true => (Manner::InGangs, Ground::GangsFill),
        false if is_seen && in_gangs >= (1.0 - NOISE) * beside.useful => {
            (Manner::SideBySide, Ground::LittleWaiting)
        }
        false => (Manner::SideBySide, Ground::GangsIdle),
    };
    // Threads that somebody else keeps on one CPU look as if they had several at work.
    let in_gangs = Some(in_gangs.min(cpus as f64));
    Verdict { in_gangs, ..Verdict::new(manner, ground) }
}

/// The weighted speedup that is expected in turns. What is done on CPUs that are lent may be nothing.
pub(super) fn speedup_in_turns(turns: &[Share]) -> f64 {
    turns.iter().map(|share| share.seated).sum()
}

/// What is better by the weighted speedups, if that is so for all that they can be. Turns have to bring `worth` times as much.
pub(super) fn by_progress(side_by_side: Bounds, in_turns: f64, worth: f64) -> Option<Verdict> {
    let (manner, ground, side_by_side) = match () {
        () if in_turns >= worth * side_by_side.most => {
            (Manner::InGangs, Ground::FurtherInTurns, side_by_side.most)
        }
        () if in_turns < worth * side_by_side.least => {
            (Manner::SideBySide, Ground::FurtherTogether, side_by_side.least)
        }
        () => return None,
    };
    let speedups = Some(Speedups { side_by_side, in_turns });
    Some(Verdict { speedups, ..Verdict::new(manner, ground) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::minwait::shares;

    fn rivals(all: &[(usize, f64)]) -> Vec<Rival> {
        let rival = |&(threads, rate): &(usize, f64)| {
            let never_sleeps = rate >= 0.93 * threads as f64;
            Rival { threads, rate, waiting: 0.0, never_sleeps, shows_waits: false }
        };
        all.iter().map(rival).collect()
    }

    fn busy(useful: f64) -> Beside {
        Beside { useful, waiting: None }
    }

    fn turns(rivals: &[Rival], cpus: usize) -> Vec<Share> {
        let sizes: Vec<usize> = rivals.iter().map(|rival| rival.threads).collect();
        shares(&sizes, cpus, 1)
    }

    fn chosen(all: &[(usize, f64)], cpus: usize, side_by_side: f64) -> (Manner, Ground) {
        let rivals = rivals(all);
        let turns = turns(&rivals, cpus);
        let beside = busy(side_by_side);
        let verdict = judge(&rivals, &turns, cpus, beside, Spinning::Excluded, 0.07);
        (verdict.manner, verdict.ground)
    }

    #[test]
    fn wide_programs_that_fill_the_cpus_alone_take_turns() {
        let full = (24, 23.5);
        assert_eq!(chosen(&[full; 4], 24, 24.0), (Manner::InGangs, Ground::GangsFill));
        let packed = [(12, 11.9), (12, 11.8), (24, 23.9)];
        assert_eq!(chosen(&packed, 24, 24.0), (Manner::InGangs, Ground::GangsFill));
    }

    #[test]
    fn where_turns_would_leave_cpus_idle_nobody_takes_any() {
        let side_by_side = |ground| (Manner::SideBySide, ground);
        assert_eq!(chosen(&[(2, 1.5); 4], 2, 1.95), side_by_side(Ground::GangsIdle));
        assert_eq!(chosen(&[(1, 1.0); 5], 2, 2.0), side_by_side(Ground::NobodyWide));
        assert_eq!(chosen(&[(2, 2.0)], 2, 2.0), side_by_side(Ground::OneCompetes));
        assert_eq!(chosen(&[(3, 3.0), (5, 4.0)], 8, 7.0), side_by_side(Ground::EnoughCpus));
    }

    #[test]
    fn cpus_that_are_lent_are_not_idle() {
        let some = rivals(&[(1, 1.0), (2, 2.0), (2, 2.0)]);
        let lending = turns(&some, 2);
        let judged = |turns| judge(&some, turns, 2, busy(2.0), Spinning::Excluded, 0.07);
        let in_gangs = |turns| judged(turns).in_gangs.unwrap();
        assert!((in_gangs(&lending) - 2.0).abs() < 1e-9);
        let none = lending.iter().map(|share| Share { lent: 0.0, ..*share });
        assert!((in_gangs(&none.collect::<Vec<_>>()) - 5.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn programs_that_may_spin_have_several_threads_that_never_sleep_and_meet_others_like_that() {
        let spin = |all: &[(usize, f64)]| spinning(&rivals(all), busy(24.0), 24, false);
        assert_eq!(spin(&[(24, 24.0), (12, 11.9), (24, 9.0)]), Spinning::Possible);
        assert_eq!(spin(&[(24, 24.0), (24, 21.0), (1, 1.0), (1, 1.0)]), Spinning::Excluded);
    }

    #[test]
    fn where_it_is_seen_whether_threads_wait_turns_have_to_bring_something() {
        let shows = |threads, rate, waiting| Rival {
            threads,
            rate,
            waiting,
            never_sleeps: true,
            shows_waits: true,
        };
        let judged = |rate, waiting, useful, waits| {
            let some = [shows(2, rate, waiting), shows(2, rate, waiting), shows(1, 1.0, 0.0)];
            let beside = Beside { useful, waiting: Some(waits) };
            let spinning = spinning(&some, beside, 2, false);
            assert_eq!(spinning, Spinning::Seen);
            let verdict = judge(&some, &turns(&some, 2), 2, beside, spinning, -0.03);
            (verdict.manner, verdict.ground)
        };
        let little = (Manner::SideBySide, Ground::LittleWaiting);
        assert_eq!(judged(2.0, 0.0, 2.0, 0.0), little);
        assert_eq!(judged(1.9, 0.1, 1.8, 0.2), (Manner::InGangs, Ground::MuchWaiting));
        assert_eq!(judged(1.8, 0.2, 1.8, 0.2), little, "they do so alone, too");
        assert_eq!(judged(1.9, 0.0, 1.5, 0.0), little, "whatever else made it less side by side");
        assert_eq!(judged(1.5, 0.0, 1.9, 0.1), (Manner::SideBySide, Ground::GangsIdle));
        let hidden = Rival { shows_waits: false, ..shows(2, 2.0, 0.0) };
        let both = [hidden, shows(2, 1.0, 1.0)];
        let beside = Beside { useful: 1.5, waiting: Some(0.5) };
        assert_eq!(spinning(&both, beside, 2, false), Spinning::Possible, "that one, too");
        let shown = [shows(2, 2.0, 0.0); 2];
        assert_eq!(
            spinning(&shown, busy(2.0), 2, false),
            Spinning::Possible,
            "not seen side by side"
        );
    }

    #[test]
    fn programs_whose_threads_yield_to_each_other_alone_do_not_spin() {
        // Four numpy scripts on two CPUs: 1.49 of these are busy outside the kernel side by side.
        let numpy =
            Rival { threads: 2, rate: 1.2, waiting: 0.0, never_sleeps: true, shows_waits: false };
        assert_eq!(spinning(&[numpy; 4], busy(1.49), 2, false), Spinning::Excluded);
        let storm = Rival { rate: 1.31, ..numpy };
        let found = spinning(&[storm; 4], busy(1.08), 2, false);
        assert_eq!(found, Spinning::Possible, "each barrier wakes somebody, also in company");
    }

    #[test]
    fn what_may_be_lost_depends_on_the_goal() {
        let some = rivals(&[(2, 1.7); 2]);
        let turns = turns(&some, 2);
        let manner =
            |most_lost| judge(&some, &turns, 2, busy(2.0), Spinning::Possible, most_lost).manner;
        assert_eq!(manner(0.07), Manner::SideBySide);
        assert_eq!(manner(0.25), Manner::InGangs);
    }

    #[test]
    fn progress_decides_only_where_it_leaves_nothing_open() {
        let decided = |least, most, worth| {
            let verdict = by_progress(Bounds { least, most }, 1.0, worth);
            verdict.map(|verdict| (verdict.manner, verdict.ground))
        };
        let together = Some((Manner::SideBySide, Ground::FurtherTogether));
        let in_turns = Some((Manner::InGangs, Ground::FurtherInTurns));
        assert_eq!(decided(0.2, 0.5, 1.03), in_turns);
        assert_eq!(decided(0.99, 1.01, 1.03), together, "turns have to bring something");
        assert_eq!(decided(0.9, 1.1, 1.03), None);
        assert_eq!(decided(1.2, 1.3, 0.75), in_turns);
        let four = turns(&rivals(&[(4, 4.0), (4, 4.0), (2, 2.0), (2, 2.0)]), 4);
        assert!((speedup_in_turns(&four) - 4.0 / 3.0).abs() < 1e-9);
        let lent = turns(&rivals(&[(3, 3.0), (3, 3.0)]), 4);
        assert!((speedup_in_turns(&lent) - 1.0).abs() < 1e-9, "a lent CPU may bring nothing");
    }
}
