//! How far programs come together, by what they tell of it themselves.
//!
//! *Problem.* A thread that spins for a sibling is as busy as one that computes. What tells them apart is only the program's
//! own progress: ticks, parallel regions begun, barriers passed. But a tick is something else in every program.
//!
//! *Idea.* A program that comes forward at the rate `t` beside others and at the rate `a` alone keeps `t / a` of its speed. The
//! sum of that over all programs is the *weighted speedup* (Snavely and Tullsen, ASPLOS 2000): as many programs' worth of
//! work is done at a time. In turns each keeps the share of the time that its turns are. So both ways can be compared, whatever a tick is.
//!
//! *What is certain.* Ticks come whole: whoever told `n` of them has come `n - 1` to `n + 1` far. So each part is known from the
//! least to the most that it can be, and so is the sum. What decides has to be so for all that is possible; where it is not,
//! the evidence is not there, as in short moments and for slow ticks.
//!
//! *Who tells nothing* keeps at most the part of its CPU time outside the kernel: of that, some may be spent spinning. So
//! one program that comes forward slowly may show that all suffer, also where the others tell nothing, but that
//! nobody suffers is only known where all of them tell. Whoever was not seen both alone and together at about the same
//! time keeps something between nothing and all.
//!
//! Loading is no work. So what is told counts from the second interval on in which a program tells anything.

use cosched_core::Nanos;

/// What was seen longer before or after may have been another phase of the program.
const LIKE: Nanos = Nanos::from_secs(10);
/// So many ticks are expected of each program, if a moment is to tell anything.
const ENOUGH: f64 = 30.0;

/// What a program did in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    /// How long it was: all of it side by side, the time of its turns otherwise.
    pub(super) seconds: f64,
    /// CPU time outside the kernel, seconds.
    pub(super) outside: f64,
    /// How far it came, where it tells.
    pub(super) ticks: Option<f64>,
    /// When it ended.
    pub(super) at: Nanos,
}

/// From the least to the most that something can be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Bounds {
    pub(super) least: f64,
    pub(super) most: f64,
}

impl Bounds {
    /// A part that may be anything from nothing to all.
    const UNKNOWN: Bounds = Bounds { least: 0.0, most: 1.0 };

    fn plus(self, other: Bounds) -> Bounds {
        Bounds { least: self.least + other.least, most: self.most + other.most }
    }
}

/// The part of its speed alone that a program keeps beside others, and whether it has told that itself.
fn kept(beside: Option<Stretch>, alone: Option<Stretch>) -> (Bounds, bool) {
    let (Some(beside), Some(alone)) = (beside, alone) else { return (Bounds::UNKNOWN, false) };
    let apart = beside.at.since(alone.at).max(alone.at.since(beside.at));
    if apart > LIKE || beside.seconds <= 0.0 || alone.seconds <= 0.0 {
        return (Bounds::UNKNOWN, false);
    }
    let part = |beside_ticks: f64, alone_ticks: f64| match alone_ticks > 0.0 {
        true => (beside_ticks / beside.seconds / (alone_ticks / alone.seconds)).clamp(0.0, 1.0),
        false => 1.0,
    };
    match (beside.ticks, alone.ticks) {
        (Some(slow), Some(fast)) => (
            Bounds { least: part(slow - 1.0, fast + 1.0), most: part(slow + 1.0, fast - 1.0) },
            fast > 1.0,
        ),
        _ => (Bounds { least: 0.0, most: part(beside.outside, alone.outside) }, false),
    }
}

/// The weighted speedup of programs that did this beside others, and that alone; `None`: none of them tells.
pub(super) fn weighted_speedup(
    programs: impl Iterator<Item = (Option<Stretch>, Option<Stretch>)>,
) -> Option<Bounds> {
    let each: Vec<(Bounds, bool)> = programs.map(|(beside, alone)| kept(beside, alone)).collect();
    let tells = each.iter().any(|(_, tells)| *tells);
    let sum = || each.iter().fold(Bounds::default(), |sum, (kept, _)| sum.plus(*kept));
    tells.then(sum)
}

/// How long all have to run side by side, so that their progress tells whether they come `in_turns` far so, too: as long as the slowest of them
/// needs. `None`: one does not tell.
pub(super) fn moment(alone: impl Iterator<Item = Option<Stretch>>, in_turns: f64) -> Option<Nanos> {
    let rates: Option<Vec<f64>> = alone
        .map(|stretch| {
            let stretch = stretch.filter(|stretch| stretch.seconds > 0.0)?;
            stretch.ticks.filter(|ticks| *ticks > 1.0).map(|ticks| ticks / stretch.seconds)
        })
        .collect();
    let rates = rates.filter(|_| in_turns > 0.0)?;
    let slowest = rates.iter().copied().reduce(f64::min)?;
    let seconds = ENOUGH / slowest * rates.len() as f64 / in_turns;
    Some(Nanos((seconds * 1e9) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(seconds: f64, ticks: Option<f64>) -> Option<Stretch> {
        Some(Stretch { seconds, outside: seconds, ticks, at: Nanos::ZERO })
    }

    fn speedup(programs: &[(Option<Stretch>, Option<Stretch>)]) -> Option<Bounds> {
        weighted_speedup(programs.iter().copied())
    }

    #[test]
    fn the_parts_that_programs_keep_are_added_up_whatever_a_tick_is() {
        let fine = (stretch(1.0, Some(2500.0)), stretch(0.1, Some(1000.0)));
        let coarse = (stretch(1.0, Some(50.0)), stretch(1.0, Some(200.0)));
        let found = speedup(&[fine, coarse]).unwrap();
        assert!(found.least > 0.48 && found.most < 0.52 && found.least < found.most, "{found:?}");
    }

    #[test]
    fn few_ticks_leave_everything_open() {
        let slow = (stretch(0.1, Some(1.0)), stretch(0.01, Some(1.0)));
        assert_eq!(speedup(&[slow, slow]), None, "one tick may be none");
        let two = (stretch(0.1, Some(3.0)), stretch(0.03, Some(2.0)));
        let found = speedup(&[two]).unwrap();
        assert!(found.least < 0.25 && found.most == 1.0, "{found:?}");
    }

    #[test]
    fn who_tells_nothing_keeps_at_most_its_cpu_time() {
        let silent = |outside| {
            let beside = stretch(1.0, None).map(|all| Stretch { outside, ..all });
            (beside, stretch(1.0, None))
        };
        assert_eq!(speedup(&[silent(0.25)]), None);
        let told = (stretch(1.0, Some(100.0)), stretch(1.0, Some(1000.0)));
        let found = speedup(&[told, silent(0.25)]).unwrap();
        assert!((0.09..0.11).contains(&found.least), "{found:?}");
        assert!((0.34..0.36).contains(&found.most), "{found:?}");
        let unseen = (None, stretch(1.0, Some(9.0)));
        assert!(speedup(&[told, unseen]).unwrap().most > 1.0);
    }

    #[test]
    fn what_was_seen_at_another_time_is_not_compared() {
        let later = stretch(1.0, Some(100.0)).map(|all| Stretch { at: LIKE + Nanos(1), ..all });
        assert_eq!(speedup(&[(later, stretch(1.0, Some(100.0)))]), None);
    }

    #[test]
    fn a_moment_is_as_long_as_the_slowest_needs() {
        let rates = [stretch(1.0, Some(3000.0)), stretch(0.5, Some(600.0))];
        // A second program beside it, so half as fast: 600 ticks a second.
        assert_eq!(moment(rates.into_iter(), 1.0), Some(Nanos::from_millis(50)));
        assert_eq!(moment([rates[0], stretch(1.0, None)].into_iter(), 1.0), None);
    }
}
