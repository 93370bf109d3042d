//! The thread counts with which all programs together make most progress, and none at another's
//! expense.
//!
//! *Problem.* One more thread makes its program faster, and may leave no room for another program:
//! the round is then a quantum longer for every program.
//!
//! *Idea.* A program that is `s` times as fast as with one thread and has one quantum in a round of
//! `t` makes progress at the rate `s / t`. The best counts are those with rates that have the
//! largest product. A product takes all of them into account: twice as fast for one weighs as much
//! as half as fast for another (the solution of Nash's bargaining problem). Its logarithm is `sum
//! of ln s - programs * ln t`, where the policy gives `t` for these counts.
//!
//! *Algorithm.* Every common limit (1, 2, 4, ..., all CPUs, and an even share of them) is tried on
//! all programs, from the lowest. A limit has to be better than a lower one by more than a tie,
//! since threads that gain nothing cost synchronisation. Starting with the best limit, and with the
//! counts in force, single programs' counts are changed as long as that helps, where there are few
//! programs. At last, the counts in force stay unless the new ones are better by more than
//! [`Params::worthwhile`].
//!
//! Ours: the thesis names no algorithm (section 4.2).

use crate::gangs::params::ThreadLimitParams as Params;

pub(super) struct LimitInput<'a> {
    /// The most threads of each program, from 1.
    pub(super) most: &'a [u16],
    pub(super) cpus: usize,
    /// The speed of a program with a count.
    pub(super) speed: &'a dyn Fn(usize, u16) -> f64,
    /// How many quanta a round has with these counts, or how many it would take to serve every
    /// program once.
    pub(super) turns: &'a dyn Fn(&[u16]) -> f64,
    /// How many programs wait for a round, including those with counts that cannot be chosen.
    pub(super) programs: usize,
    pub(super) params: &'a Params,
}

impl LimitInput<'_> {
    fn worth(&self, counts: &[u16]) -> f64 {
        let speeds = counts.iter().enumerate().map(|(i, count)| (self.speed)(i, *count).ln());
        speeds.sum::<f64>() - self.programs as f64 * (self.turns)(counts).ln()
    }

    /// The best counts; `now` are those in force, if they are known for all.
    pub(super) fn best(&self, now: Option<&[u16]>) -> Vec<u16> {
        let mut found = self.limited(1);
        let mut worth = self.worth(&found);
        for limit in self.limits() {
            let counts = self.limited(limit);
            let other = self.worth(&counts);
            if other > worth + self.params.tie {
                (found, worth) = (counts, other);
            }
        }
        self.refine(&mut found, &mut worth);
        let Some(now) = now else { return found };
        // Counts in force may be above the present requests.
        let now: Vec<u16> =
            now.iter().zip(self.most).map(|(n, most)| (*n).clamp(1, *most)).collect();
        let (mut kept, mut others) = (now.clone(), self.worth(&now));
        if worth <= others + self.params.worthwhile {
            return now;
        }
        self.refine(&mut kept, &mut others);
        if others >= worth { kept } else { found }
    }

    /// The request of each program, up to a limit.
    fn limited(&self, limit: u16) -> Vec<u16> {
        self.most.iter().map(|most| limit.clamp(1, *most)).collect()
    }

    /// The limits, ascending, from 2.
    fn limits(&self) -> Vec<u16> {
        let cpus = u16::try_from(self.cpus).unwrap_or(u16::MAX).max(1);
        let even = cpus / u16::try_from(self.programs.max(1)).unwrap_or(u16::MAX);
        let powers = (1..16).map(|power| 1u16 << power).filter(|limit| *limit < cpus);
        let mut limits: Vec<u16> = powers.chain([even, cpus]).filter(|limit| *limit > 1).collect();
        limits.sort_unstable();
        limits.dedup();
        limits
    }

    /// Moves threads from one program to another, if that helps: where all CPUs are taken, no
    /// single count can rise.
    fn give(&self, counts: &mut [u16], from: usize, worth: &mut f64) {
        for to in (0..counts.len()).filter(|to| *to != from) {
            for threads in [counts[from] / 2, 1] {
                let had = (counts[from], counts[to]);
                let moved = (had.0.saturating_sub(threads), had.1.saturating_add(threads));
                if threads == 0 || moved.0 == 0 || moved.1 > self.most[to] {
                    continue;
                }
                (counts[from], counts[to]) = moved;
                let other = self.worth(counts);
                match other > *worth + self.params.tie {
                    true => *worth = other,
                    false => (counts[from], counts[to]) = had,
                }
            }
        }
    }

    /// Changes one count after the other as long as that helps.
    fn refine(&self, counts: &mut [u16], worth: &mut f64) {
        if counts.len() > self.params.few {
            return;
        }
        for _ in 0..self.params.sweeps {
            let before = *worth;
            for i in 0..counts.len() {
                let had = counts[i];
                let (mut best, mut best_worth) = (had, *worth);
                for count in candidates(had, self.most[i], self.params.many_threads) {
                    counts[i] = count;
                    let other = self.worth(counts);
                    if other > best_worth + self.params.tie {
                        (best, best_worth) = (count, other);
                    }
                }
                (counts[i], *worth) = (best, best_worth);
                self.give(counts, i, worth);
            }
            if *worth <= before {
                break;
            }
        }
    }
}

/// Counts to try, ascending: all of them, unless there are `many`.
fn candidates(now: u16, most: u16, many: u16) -> Vec<u16> {
    if most <= many {
        return (1..=most).filter(|count| *count != now).collect();
    }
    let near = [now / 2, now.saturating_sub(1), now.saturating_add(1), now.saturating_mul(2), most];
    near.into_iter().filter(|count| (1..=most).contains(count) && *count != now).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The best counts for programs that request `most` each, with a share of work that only one
    /// thread can do. Programs run at once if they fit together.
    fn best(most: &[u16], serial: &[f64], cpus: usize) -> Vec<u16> {
        let amdahl = |i: usize, n: u16| 1.0 / (serial[i] + (1.0 - serial[i]) / f64::from(n));
        let turns = |counts: &[u16]| {
            let all: u16 = counts.iter().sum();
            (f64::from(all) / cpus as f64).max(1.0)
        };
        let (speed, programs) = (&amdahl, most.len());
        LimitInput { most, cpus, speed, turns: &turns, programs, params: &Params::DEFAULT }
            .best(None)
    }

    #[test]
    fn a_program_alone_gets_its_request_as_far_as_it_helps() {
        assert_eq!(best(&[4], &[0.1], 4), [4]);
        assert_eq!(best(&[4], &[1.0], 4), [1]);
    }

    /// Threads that gain less than they cost are not given.
    #[test]
    fn every_program_gets_one_thread_where_more_cost_more() {
        assert_eq!(best(&[2; 4], &[0.3; 4], 2), [1; 4]);
        assert_eq!(best(&[2; 4], &[0.0; 4], 2), [1; 4], "no worse, and less to synchronise");
    }

    #[test]
    fn cpus_are_not_left_idle_where_there_are_enough() {
        assert_eq!(best(&[8; 2], &[0.0; 2], 8), [4; 2]);
        let unequal = best(&[8; 2], &[0.0, 0.9], 8);
        assert!(unequal[0] > 4 && unequal[1] < 4, "{unequal:?}");
    }

    #[test]
    fn counts_in_force_stay_unless_they_are_clearly_worse() {
        let speed = |_: usize, n: u16| f64::from(n).powf(0.99);
        let turns = |counts: &[u16]| (f64::from(counts.iter().sum::<u16>()) / 2.0).max(1.0);
        let (turns, params) = (&turns, &Params::DEFAULT);
        let choice =
            LimitInput { most: &[2; 2], cpus: 2, speed: &speed, turns, programs: 2, params };
        assert_eq!(choice.best(None), [1; 2]);
        assert_eq!(choice.best(Some(&[2, 2])), [2; 2]);
        let speed = |_: usize, n: u16| f64::from(n).sqrt();
        let choice = LimitInput { speed: &speed, ..choice };
        assert_eq!(choice.best(Some(&[2, 2])), [1; 2]);
    }

    #[test]
    fn a_program_that_requests_less_gets_less() {
        let turns = |_: &[u16]| 1.0;
        let speed = |_: usize, n: u16| f64::from(n);
        let (turns, params) = (&turns, &Params::DEFAULT);
        let choice = LimitInput { most: &[1], cpus: 4, speed: &speed, turns, programs: 1, params };
        assert_eq!(choice.best(Some(&[4])), [1]);
    }

    #[test]
    fn many_programs_are_decided_by_common_limits_only() {
        let most = [8; 200];
        assert_eq!(best(&most, &[0.05; 200], 8), [1; 200]);
    }
}
