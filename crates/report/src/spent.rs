//! How the time of a run was spent: how long programs ran together, and how long they took turns.
//!
//! Each moment counts once, by what most limits the programs that are there. A moment in which one
//! program is paused counts as taking turns, even if two others run.

use cosched_core::Nanos;
use cosched_results::result::RunResult;

use crate::history::{Activity, History, nanos};
use crate::words;

/// The time of a run, by what the programs did. Time in which all wait to be started counts
/// nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// All programs that were there ran.
    pub together: Nanos,
    /// Some had their turn, and the others were paused, or got what was left.
    pub turns: Nanos,
    /// One ran, and the others waited to be started, in a run without turns.
    pub queued: Nanos,
    /// Only one program was there.
    pub alone: Nanos,
    /// None was there: the next one was still to come.
    pub empty: Nanos,
}

/// What begins (1) or ends (-1) at a time.
#[derive(Clone, Copy, Debug, Default)]
struct PresenceChange {
    at: Nanos,
    present: i32,
    frozen: i32,
    unstarted: i32,
    in_turn: i32,
}

impl Spent {
    /// How the time of a run was spent, from when its spans are kept one by one.
    pub fn of(result: &RunResult) -> Spent {
        let changes = changes(result);
        let mut spent = Spent::default();
        let mut now = PresenceChange { at: kept_from(result), ..PresenceChange::default() };
        let by_weight = result.programs.iter().any(|program| !program.turns.is_empty());
        for change in changes {
            let time = change.at - now.at;
            let started = now.present - now.unstarted;
            let takes_turns = by_weight && (1..started).contains(&now.in_turn);
            match now.present {
                ..=0 => spent.empty += time,
                1 => spent.alone += time,
                _ if now.frozen > 0 || takes_turns => spent.turns += time,
                _ if started == 0 => {}
                _ if started == 1 => spent.queued += time,
                _ => spent.together += time,
            }
            now = PresenceChange {
                at: change.at,
                present: now.present + change.present,
                frozen: now.frozen + change.frozen,
                unstarted: now.unstarted + change.unstarted,
                in_turn: now.in_turn + change.in_turn,
            };
        }
        if spent.turns > Nanos::ZERO {
            // Their first turns are still to come.
            spent.turns += std::mem::take(&mut spent.queued);
        }
        spent
    }

    /// The parts in percent, the largest first; `None` where there is no time to divide.
    pub fn in_words(&self) -> Option<String> {
        let mut parts = [
            (self.together, "running together"),
            (self.turns, "taking turns"),
            (self.queued, "one after another"),
            (self.alone, "one program alone"),
            (self.empty, "no program there"),
        ];
        parts.sort_by_key(|(time, _)| Nanos::NEVER - *time);
        let shares: Vec<String> = percent(&parts.map(|(time, _)| time))
            .into_iter()
            .zip(parts)
            .filter(|(share, _)| *share > 0)
            .map(|(share, (_, what))| format!("{what} {share} %"))
            .collect();
        (!shares.is_empty()).then(|| shares.join(", "))
    }
}

/// These times in percent of their sum, as whole numbers that add up to 100: those with the largest
/// fractions are rounded up.
fn percent(times: &[Nanos]) -> Vec<u64> {
    let all: u128 = times.iter().map(|time| u128::from(time.0)).sum();
    let Some(of) = std::num::NonZeroU128::new(all) else { return vec![0; times.len()] };
    let scaled = times.iter().map(|time| 100 * u128::from(time.0));
    let mut shares: Vec<(u64, u128)> =
        scaled.map(|scaled| ((scaled / of) as u64, scaled % of)).collect();
    let missing = 100 - shares.iter().map(|(whole, _)| *whole).sum::<u64>();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(shares[*at].1));
    for at in order.into_iter().take(missing as usize) {
        shares[at].0 += 1;
    }
    shares.into_iter().map(|(whole, _)| whole).collect()
}

/// How the time of several programs was spent, as the end of a sentence with the total time; empty
/// where there is nothing to say. The time that is divided may begin later than the run.
pub fn clause(run: &RunResult) -> String {
    let shares = Spent::of(run).in_words().filter(|_| run.programs.len() > 1);
    shares.map_or(String::new(), |shares| match words::since(run) {
        Some(since) => format!("; {since}: {shares}"),
        None => format!(": {shares}"),
    })
}

/// A run in one sentence: how long it took, and how the time was spent.
pub fn verdict(run: &RunResult) -> String {
    let simulated = if run.machine.is_simulated() { "simulated " } else { "" };
    let (one, many) = (format!("{simulated}program"), format!("{simulated}programs"));
    let programs = words::count(run.programs.len(), &one, &many);
    // Programs may have ended before, or go on.
    let (what, until) = match &run.interrupted_by {
        None => (programs, String::new()),
        Some(signal) => (format!("A run of {programs}"), format!(", until {signal} ended it")),
    };
    format!(
        "{what} took {} on {} under {}{}{until}{}.",
        words::span(nanos(run.total_seconds)),
        words::count(run.machine.cpus, "CPU", "CPUs"),
        run.policy_in_words(),
        words::cpu_use(run),
        clause(run),
    )
}

fn kept_from(result: &RunResult) -> Nanos {
    nanos(result.kept_from_seconds.unwrap_or_default())
}

fn changes(result: &RunResult) -> Vec<PresenceChange> {
    let history = History::of(result);
    let kept_from = kept_from(result);
    let mut changes = Vec::new();
    let mut add = |from: Nanos, to: Nanos, what: PresenceChange| {
        let from = from.max(kept_from);
        if from < to {
            changes.push(PresenceChange { at: from, ..what });
            changes.push(PresenceChange {
                at: to,
                present: -what.present,
                frozen: -what.frozen,
                unstarted: -what.unstarted,
                in_turn: -what.in_turn,
            });
        }
    };
    for (slot, program) in result.programs.iter().enumerate() {
        // A program that repeats as a co-runner runs on after it was done.
        let last = program.timeline.last().map_or(Nanos::ZERO, |span| nanos(span.1));
        let end = history.done(slot).max(last);
        for phase in history.phases(slot).iter().take_while(|phase| phase.from < end) {
            let is = |state| i32::from(phase.state == state);
            let (frozen, unstarted) = (is(Activity::Frozen), is(Activity::Unstarted));
            add(
                phase.from,
                phase.to.min(end),
                PresenceChange { present: 1, frozen, unstarted, ..PresenceChange::default() },
            );
        }
        for (from, to) in &program.turns {
            let in_turn = PresenceChange { in_turn: 1, ..PresenceChange::default() };
            add(nanos(*from), nanos(*to), in_turn);
        }
    }
    changes.sort_by_key(|change| change.at);
    changes
}

#[cfg(test)]
mod tests {
    use cosched_results::result::TimelineEntry;

    use super::*;
    use crate::testkit;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    #[test]
    fn a_moment_with_a_paused_program_is_one_of_taking_turns() {
        // a runs 0 to 150 and 300 to 450 ms, b 150 to 300 and 450 to 600 ms.
        let spent = Spent::of(&testkit::gang());
        let turns = Spent { turns: MS(450), alone: MS(150), ..Spent::default() };
        assert_eq!(spent, turns);
        assert_eq!(spent.in_words().unwrap(), "taking turns 75 %, one program alone 25 %");
    }

    #[test]
    fn the_parts_add_up_to_a_hundred_percent() {
        let share = |times: &[u64]| percent(&times.iter().map(|ms| MS(*ms)).collect::<Vec<_>>());
        assert_eq!(share(&[685, 275, 40]), [69, 27, 4]);
        assert_eq!(share(&[1, 1, 1]), [34, 33, 33]);
        assert_eq!(share(&[0, 0]), [0, 0]);
    }

    #[test]
    fn programs_that_all_run_run_together() {
        let spent = Spent::of(&testkit::linux());
        assert_eq!(spent.in_words().unwrap(), "running together 100 %");
    }

    #[test]
    fn time_before_the_next_program_comes_is_not_that_of_one_alone() {
        let mut run = testkit::linux();
        run.programs.truncate(2);
        let end = run.programs[0].turnaround_seconds.unwrap();
        run.programs[1].arrived_seconds = 2.0 * end;
        run.programs[1].started_seconds = Some(2.0 * end);
        for span in &mut run.programs[1].timeline {
            (span.0, span.1) = (span.0 + 2.0 * end, span.1 + 2.0 * end);
        }
        let spent = Spent::of(&run);
        assert_eq!((spent.together, spent.empty), (Nanos::ZERO, nanos(end)), "{spent:?}");
    }

    #[test]
    fn a_program_that_repeats_as_a_co_runner_counts() {
        let mut run = testkit::linux();
        run.programs[0].turnaround_seconds = Some(0.2);
        assert_eq!(Spent::of(&run).in_words().unwrap(), "running together 100 %");
    }

    #[test]
    fn turns_by_weight_count_where_others_are_not_in_turn() {
        let mut run = testkit::linux();
        run.programs[0].turns = vec![(0.0, 0.2), (0.4, 0.6)];
        run.programs[1].turns = vec![(0.2, 0.4), (0.4, 0.6)];
        let spent = Spent::of(&run);
        assert_eq!((spent.turns, spent.together), (MS(400), MS(200)));
    }

    #[test]
    fn a_verdict_has_the_total_time_and_how_it_was_spent() {
        assert_eq!(
            verdict(&testkit::linux()),
            "2 programs took 600 ms on 2 CPUs under linux: running together 100 %."
        );
        let mut one = testkit::linux();
        one.programs.truncate(1);
        assert_eq!(verdict(&one), "1 program took 600 ms on 2 CPUs under linux.");
        one.interrupted_by = Some("SIGINT".into());
        let until = "A run of 1 program took 600 ms on 2 CPUs under linux, until SIGINT ended it.";
        assert_eq!(verdict(&one), until);
    }

    /// No program seems to be there before the kept part of a long run.
    #[test]
    fn shares_of_a_long_run_are_of_its_kept_part() {
        let mut run = testkit::linux();
        run.programs[0].turns = vec![(0.4, 0.5)];
        run.programs[1].turns = vec![(0.5, 0.6)];
        run.kept_from_seconds = Some(0.4);
        assert_eq!(Spent::of(&run), Spent { turns: MS(200), ..Spent::default() });
        assert_eq!(
            verdict(&run),
            "2 programs took 600 ms on 2 CPUs under linux; since 0 s: taking turns 100 %."
        );
        let said = words::kept_from(&run).unwrap();
        assert!(
            said.ends_with("Sums are of the whole run, unless they say \"since 0 s\"."),
            "{said}"
        );
    }

    #[test]
    fn without_spans_there_are_no_words() {
        let mut run = testkit::linux();
        for program in &mut run.programs {
            program.timeline = Vec::<TimelineEntry>::new();
            program.turnaround_seconds = Some(0.0);
            program.started_seconds = Some(0.0);
        }
        assert_eq!(Spent::of(&run).in_words(), None);
    }
}
