//! Fixed thread counts for a workload: the result of `cosched advise`, from the times of its
//! programs alone.
//!
//! *Problem.* The thread counts that finish a workload first cannot be found program by program: a
//! further thread of one program takes a CPU from the others, as long as there are others.
//!
//! *Idea.* The time that each program takes alone is known for each thread count. Seen from far
//! enough, gangs that take turns progress evenly. With `t` quanta in a round, a program progresses
//! at a `t`-th of its speed alone. That holds until a program arrives or ends and `t` changes. All
//! ends can be computed quickly from this, so many thread counts can be compared.
//!
//! *Algorithm.* All combinations of counts are tried if there are at most [`EXHAUSTIVE`]. Otherwise
//! common limits are tried, and then changes of single programs' counts as long as they help. The
//! first criterion is the shortest total time. Among combinations without a significant difference
//! in it, the smallest largest slowdown counts (against alone, with all requested threads). Among
//! those that are equal in this too, the fewest threads count.
//!
//! *Significant differences.* Times alone are medians of several runs, and runs differ. Programs
//! are measured in rounds, so the whole prediction is made once more from the times of each round.
//! A combination that is slower than another by no more than a standard error of their difference
//! over the rounds is not slower. That is the *one-standard-error rule* by which regression trees
//! are pruned (Breiman, Friedman, Olshen and Stone, 1984): of models that are as good as the best,
//! take the simplest. Fewer threads are the simpler choice here, since a thread too many causes
//! costs that no prediction includes: turns and switches. The smallest of many noisy figures is
//! also small by chance, and this rule keeps chance from deciding. With one run no spread is
//! visible, and the prediction alone decides.
//!
//! *Limits.* The prediction leaves out shared caches and memory, quanta (the last one of a program
//! is a whole one), and the cost of switches. Predictions are therefore lower bounds, by some per
//! cent where nothing is shared; they are good for comparing counts with each other. Programs that
//! arrive later, and that run several times, are included.
//!
//! Ours. The thesis chooses each program's *ideal* count by itself: the fewest threads with 80 % of
//! its best speedup (section 5.2), whatever its co-runners are.

use cosched_core::{Nanos, Speedup};
use cosched_results::statistics::median_error;

use crate::descriptor::RoundLength;

/// If there are more combinations than this, not all are tried.
const EXHAUSTIVE: u64 = 20_000;
/// Figures that differ by a smaller part are equal: the difference is rounding.
pub(crate) const ROUNDING: f64 = 1e-9;
/// The largest number of passes over single counts.
const SWEEPS: usize = 6;

/// A program as input of advice.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// When it arrives.
    pub arrives: Nanos,
    /// How often it runs, one run after another.
    pub runs: u32,
    /// How many threads it has without advice.
    pub requested: u16,
    /// Its solo time, by thread count.
    pub speedup: Speedup,
    /// CPU time of a run alone with all requested threads, where that is known.
    pub cpu: Option<Nanos>,
    /// Its solo time by the runs of each round in which it was measured.
    pub rounds: Vec<Speedup>,
}

impl Candidate {
    /// The thread counts with a known solo time, up to a number of CPUs. None is above the number
    /// that it requests. Where none is known, it has as many as it can have.
    fn counts(&self, cpus: usize) -> Vec<u16> {
        let most = self.most(cpus);
        let known = self.speedup.times().iter().map(|(threads, _)| *threads);
        let counts: Vec<u16> = known.filter(|threads| *threads <= most).collect();
        if counts.is_empty() { vec![most] } else { counts }
    }

    /// The largest number of threads that it can have.
    pub(crate) fn most(&self, cpus: usize) -> u16 {
        self.requested.min(u16::try_from(cpus).unwrap_or(u16::MAX)).max(1)
    }

    pub(crate) fn alone(&self, threads: u16) -> f64 {
        1.0 / self.speedup.speed(threads)
    }
}

/// The predicted course of a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// From the start to the last end.
    pub total_seconds: f64,
    /// For each program, the time from its arrival to its last end.
    pub turnaround_seconds: Vec<f64>,
    /// Each turnaround relative to the solo time with all requested threads.
    pub slowdowns: Vec<f64>,
}

impl Prediction {
    /// The mean of all turnarounds.
    pub fn mean_turnaround_seconds(&self) -> f64 {
        self.turnaround_seconds.iter().sum::<f64>() / self.turnaround_seconds.len().max(1) as f64
    }

    /// The largest slowdown over the smallest.
    pub fn unfairness(&self) -> f64 {
        let least = self.slowdowns.iter().copied().fold(f64::INFINITY, f64::min);
        self.worst() / least
    }

    fn worst(&self) -> f64 {
        self.slowdowns.iter().copied().fold(0.0, f64::max)
    }
}

/// The course of programs with these thread counts under a policy with rounds of this length.
pub fn predict(
    round: RoundLength,
    programs: &[Candidate],
    counts: &[u16],
    cpus: usize,
) -> Prediction {
    let alone: Vec<f64> = programs.iter().zip(counts).map(|(p, n)| p.alone(*n)).collect();
    let arrives: Vec<f64> = programs.iter().map(|p| p.arrives.as_secs_f64()).collect();
    let mut left: Vec<f64> = programs.iter().map(|p| f64::from(p.runs)).collect();
    let mut ends = vec![0.0; programs.len()];
    let mut now = 0.0;
    loop {
        let present: Vec<usize> =
            (0..programs.len()).filter(|i| left[*i] > 0.0 && arrives[*i] <= now).collect();
        let next = arrives.iter().copied().filter(|at| *at > now).fold(f64::INFINITY, f64::min);
        if present.is_empty() {
            if next.is_infinite() {
                break;
            }
            now = next;
            continue;
        }
        let sizes: Vec<usize> =
            present.iter().map(|i| usize::from(counts[*i]).min(cpus.max(1))).collect();
        let turns = round(&sizes, cpus).max(1.0);
        let until = |i: usize| left[i] * alone[i] * turns;
        let first = present.iter().copied().min_by(|a, b| until(*a).total_cmp(&until(*b)));
        let Some(first) = first else { break };
        let span = until(first).min(next - now);
        for &i in &present {
            left[i] -= span / (alone[i] * turns);
        }
        now += span;
        if now < next {
            left[first] = 0.0;
        }
        for i in present {
            if left[i] <= 1e-9 {
                (left[i], ends[i]) = (0.0, now);
            }
        }
    }
    let turnaround_seconds: Vec<f64> =
        ends.iter().zip(&arrives).map(|(end, at)| end - at).collect();
    let slowdown = |(program, time): (&Candidate, &f64)| {
        time / (program.alone(program.most(cpus)) * f64::from(program.runs))
    };
    Prediction {
        total_seconds: ends.iter().copied().fold(0.0, f64::max),
        slowdowns: programs.iter().zip(&turnaround_seconds).map(slowdown).collect(),
        turnaround_seconds,
    }
}

/// The thread counts that finish the workload first, and among those the fairest.
pub fn advise(round: RoundLength, programs: &[Candidate], cpus: usize) -> Vec<u16> {
    let choices: Vec<Vec<u16>> = programs.iter().map(|program| program.counts(cpus)).collect();
    let combinations =
        choices.iter().try_fold(1u64, |all, known| all.checked_mul(known.len() as u64));
    let tried = match combinations.filter(|all| *all <= EXHAUSTIVE) {
        Some(all) => (0..all).map(|code| combination(&choices, code)).collect(),
        None => searched(round, programs, &choices, cpus),
    };
    best(round, programs, tried, cpus)
}

fn combination(choices: &[Vec<u16>], mut code: u64) -> Vec<u16> {
    let mut counts = Vec::with_capacity(choices.len());
    for known in choices {
        counts.push(known[(code % known.len() as u64) as usize]);
        code /= known.len() as u64;
    }
    counts
}

/// The combinations to compare, where there are too many to compare all.
fn searched(
    round: RoundLength,
    programs: &[Candidate],
    choices: &[Vec<u16>],
    cpus: usize,
) -> Vec<Vec<u16>> {
    let limited = |limit: u16| -> Vec<u16> {
        let most = |known: &Vec<u16>| {
            known.iter().copied().filter(|n| *n <= limit).max().unwrap_or(known[0])
        };
        choices.iter().map(most).collect()
    };
    let mut limits: Vec<u16> = choices.iter().flatten().copied().collect();
    limits.sort_unstable();
    limits.dedup();
    let mut tried: Vec<Vec<u16>> = limits.into_iter().map(limited).collect();
    let total = |counts: &[u16]| predict(round, programs, counts, cpus).total_seconds;
    let mut now = best(round, programs, tried.clone(), cpus);
    let mut shortest = total(&now);
    for _ in 0..SWEEPS {
        let before = shortest;
        for i in 0..now.len() {
            for count in &choices[i] {
                let mut other = now.clone();
                other[i] = *count;
                let time = total(&other);
                if time < shortest {
                    (now, shortest) = (other, time);
                }
            }
        }
        tried.push(now.clone());
        if shortest >= before {
            break;
        }
    }
    tried
}

struct CombinationFigure {
    value: f64,
    /// The figure by the times of each round.
    rounds: Vec<f64>,
}

impl CombinationFigure {
    /// Whether it is not larger than another, as far as the rounds show.
    fn is_as_small_as(&self, other: &CombinationFigure) -> bool {
        let pairs = self.rounds.iter().zip(&other.rounds);
        let differences: Vec<f64> = pairs.map(|(mine, theirs)| mine - theirs).collect();
        let error = median_error(&differences).unwrap_or(0.0);
        self.value - other.value <= error + ROUNDING * other.value
    }
}

/// A combination and its predictions.
struct Judged {
    counts: Vec<u16>,
    total: CombinationFigure,
    worst: CombinationFigure,
}

impl Judged {
    fn threads(&self) -> u64 {
        self.counts.iter().map(|n| u64::from(*n)).sum()
    }
}

/// The combinations with the smallest figure, as far as the rounds show.
fn smallest(all: Vec<Judged>, figure: fn(&Judged) -> &CombinationFigure) -> Vec<Judged> {
    let least =
        (0..all.len()).min_by(|a, b| figure(&all[*a]).value.total_cmp(&figure(&all[*b]).value));
    let Some(least) = least else { return all };
    let kept: Vec<bool> =
        all.iter().map(|one| figure(one).is_as_small_as(figure(&all[least]))).collect();
    all.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(one, _)| one).collect()
}

fn best(round: RoundLength, programs: &[Candidate], tried: Vec<Vec<u16>>, cpus: usize) -> Vec<u16> {
    let count = programs.iter().map(|program| program.rounds.len()).min().unwrap_or(0);
    let in_round = |program: &Candidate, round: usize| Candidate {
        speedup: program.rounds[round],
        rounds: Vec::new(),
        ..*program
    };
    let rounds: Vec<Vec<Candidate>> = (0..count)
        .map(|round| programs.iter().map(|program| in_round(program, round)).collect())
        .collect();
    let judged = |counts: Vec<u16>| {
        let of = |programs: &[Candidate]| predict(round, programs, &counts, cpus);
        let (all, each) = (of(programs), rounds.iter().map(|round| of(round)));
        let each: Vec<(f64, f64)> = each.map(|p| (p.total_seconds, p.worst())).collect();
        let (totals, worsts) = each.into_iter().unzip();
        Judged {
            total: CombinationFigure { value: all.total_seconds, rounds: totals },
            worst: CombinationFigure { value: all.worst(), rounds: worsts },
            counts,
        }
    };
    let soon = smallest(tried.into_iter().map(judged).collect(), |one| &one.total);
    let fair = smallest(soon, |one| &one.worst);
    let simplest = fair
        .into_iter()
        .min_by(|a, b| a.threads().cmp(&b.threads()).then(a.total.value.total_cmp(&b.total.value)));
    simplest.map(|one| one.counts).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const GREEDY: RoundLength = crate::gangs::greedy::turns;

    /// A program that arrives at the start and runs once; milliseconds by threads, ascending.
    pub(crate) fn candidate(times: &[(u16, u64)]) -> Candidate {
        let known: Vec<_> = times.iter().map(|(n, ms)| (*n, Nanos::from_millis(*ms))).collect();
        let requested = times.last().map_or(1, |(n, _)| *n);
        let speedup = Speedup::new(&known).unwrap();
        Candidate {
            arrives: Nanos::ZERO,
            runs: 1,
            requested,
            speedup,
            cpu: None,
            rounds: Vec::new(),
        }
    }

    /// A program that was measured with one and with two threads, with these times per round.
    fn measured(one: [u64; 5], two: [u64; 5]) -> Candidate {
        let middle = |times: [u64; 5]| {
            let mut sorted = times;
            sorted.sort_unstable();
            sorted[2]
        };
        let rounds = one.into_iter().zip(two).map(|(a, b)| candidate(&[(1, a), (2, b)]).speedup);
        Candidate { rounds: rounds.collect(), ..candidate(&[(1, middle(one)), (2, middle(two))]) }
    }

    fn total(counts: &[u16], programs: &[Candidate]) -> f64 {
        predict(GREEDY, programs, counts, 2).total_seconds
    }

    /// Each of the four scripts is hardly faster with two threads.
    #[test]
    fn four_scripts_that_hardly_scale_get_one_thread_each() {
        // Measured: 3.5 s one after another with two threads, 2.75 s with one thread each.
        let script = candidate(&[(1, 1375), (2, 875)]);
        let four = vec![script; 4];
        assert!((total(&[2; 4], &four) - 3.5).abs() < 1e-9);
        assert!((total(&[1; 4], &four) - 2.75).abs() < 1e-9);
        assert_eq!(advise(GREEDY, &four, 2), [1; 4]);
        assert_eq!(advise(GREEDY, &four[..1], 2), [2]);
    }

    #[test]
    fn superlinear_programs_take_turns_with_all_threads() {
        let superlinear = candidate(&[(1, 1000), (2, 400)]);
        assert_eq!(advise(GREEDY, &vec![superlinear; 4], 2), [2; 4]);
    }

    #[test]
    fn the_last_program_left_runs_at_full_speed() {
        let (short, long) = (candidate(&[(1, 100)]), candidate(&[(2, 400)]));
        let both = predict(GREEDY, &[short, long], &[1, 2], 2);
        assert!((both.turnaround_seconds[0] - 0.2).abs() < 1e-9, "{both:?}");
        assert!((both.total_seconds - 0.5).abs() < 1e-9, "{both:?}");
        assert!((both.unfairness() - 2.0 / 1.25).abs() < 1e-9, "{both:?}");
    }

    #[test]
    fn later_arrivals_and_repeated_runs_are_predicted() {
        let mut late = candidate(&[(2, 100)]);
        (late.arrives, late.runs) = (Nanos::from_millis(300), 2);
        let both =
            predict(|sizes, _| sizes.len() as f64, &[candidate(&[(2, 400)]), late], &[2, 2], 2);
        // Alone until 0.3 s; 0.1 s of each take 0.2 s; then the second run.
        assert!((both.turnaround_seconds[0] - 0.5).abs() < 1e-9, "{both:?}");
        assert!((both.total_seconds - 0.6).abs() < 1e-9, "{both:?}");
        assert!((both.slowdowns[1] - 1.5).abs() < 1e-9, "{both:?}");
    }

    #[test]
    fn of_equally_early_ends_the_fairest_is_taken() {
        // The long program decides on the end; the short one can have either count.
        let programs = [candidate(&[(1, 1000)]), candidate(&[(1, 500), (2, 260)])];
        let advised = advise(GREEDY, &programs, 4);
        assert_eq!(advised, [1, 2]);
        assert!(predict(GREEDY, &programs, &advised, 4).unfairness() < 1.01);
    }

    #[test]
    fn fewer_threads_win_where_runs_show_no_difference() {
        // Taking turns with two threads: 1.22 s; running together with one: 1.24 s. Single runs
        // differ by a tenth.
        let noisy = measured([1240, 1180, 1350, 1210, 1290], [610, 640, 590, 670, 600]);
        assert_eq!(advise(GREEDY, &vec![noisy; 2], 2), [1, 1]);
        // With the same times, and no noise, 2 % are a difference.
        let calm = measured([1240; 5], [610; 5]);
        assert_eq!(advise(GREEDY, &vec![calm.clone(); 2], 2), [2, 2]);
        // Measured once, there is no spread, and the prediction decides.
        let once = Candidate { rounds: Vec::new(), ..calm };
        assert_eq!(advise(GREEDY, &vec![once; 2], 2), [2, 2]);
    }

    /// Noise that slows all runs of a round by the same factor does not change the decision.
    #[test]
    fn noise_common_to_a_round_hides_no_difference() {
        let slow = [100, 150, 120, 200, 110];
        let program = measured(slow.map(|part| 12 * part), slow.map(|part| 5 * part));
        assert_eq!(advise(GREEDY, &vec![program; 2], 2), [2, 2]);
    }

    #[test]
    fn one_run_that_took_twice_as_long_decides_nothing() {
        let program = measured([1000, 1010, 2000, 990, 1005], [400, 410, 405, 800, 395]);
        assert_eq!(advise(GREEDY, &vec![program; 2], 2), [2, 2]);
        let program = measured([1000, 1010, 2000, 990, 1005], [700, 710, 350, 705, 695]);
        assert_eq!(advise(GREEDY, &vec![program; 2], 2), [1, 1]);
    }

    /// With many programs, not every combination is tried.
    #[test]
    fn the_search_comes_close_to_an_exhaustive_one() {
        let curve = |serial: f64| {
            let time = |n: u16| (n, (1000.0 * (serial + (1.0 - serial) / f64::from(n))) as u64);
            candidate(&[1, 2, 3, 4, 5, 6, 7, 8].map(time))
        };
        let four = [0.02, 0.3, 0.6, 0.9].map(curve);
        let choices = vec![(1..=8).collect::<Vec<u16>>(); 4];
        let exhaustive = predict(GREEDY, &four, &advise(GREEDY, &four, 8), 8).total_seconds;
        let tried = searched(GREEDY, &four, &choices, 8);
        let found = best(GREEDY, &four, tried, 8);
        let searched = predict(GREEDY, &four, &found, 8).total_seconds;
        assert!(searched <= 1.05 * exhaustive, "{searched} {exhaustive}");
        let forty: Vec<Candidate> = (0..40).map(|i| curve(f64::from(i) / 40.0)).collect();
        assert_eq!(advise(GREEDY, &forty, 8).len(), 40);
    }
}
