//! Training: a quantum with little interference for one program, so that its speed alone can be
//! measured.
//!
//! The program runs with as many co-runners as keep all traffic together below the threshold of
//! criterion 2. Then, if at most one of them is memory-intensive, programs that are not
//! memory-intensive run as well (criterion 3). CPUs that are left stay idle.
//!
//! *Source.* The FPS paper, section 4.3, algorithm 2. As printed it contradicts the text and
//! itself. We read it like this:
//!
//! - `SyswideWeak` and `self` are the two thresholds `SyswideLow` and `SelfLow`;
//! - fitness uses the traffic that is left *per CPU that is left*, as the text says;
//! - the first loop also ends when no CPU or no program is left;
//! - a program that does not fit ends it, as printed, and its traffic is not subtracted.
//!
//! Ours: a program has as many CPUs as it requests, and its traffic is compared per CPU. A program
//! that needs more CPUs than are left is skipped.

use super::contention::Thresholds;

/// A program that may run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Runner {
    /// How many CPUs it requests.
    pub(super) cpus: usize,
    /// The traffic that it would have alone, lines per microsecond.
    pub(super) required: f64,
    /// Whether it has the lead, or would take it.
    pub(super) black: bool,
}

/// The co-runners of `target` on this number of CPUs, as positions in `others`. Of equally fitting
/// ones, the first counts.
pub(super) fn co_runners(
    target: Runner,
    others: &[Runner],
    cpus: usize,
    thresholds: Thresholds,
) -> Vec<usize> {
    let mut cpus_left = cpus.saturating_sub(target.cpus);
    let of_colour = |black: bool| others.iter().filter(move |other| other.black == black);
    let whites_suffice = of_colour(false).map(|other| other.cpus).sum::<usize>() >= cpus_left;
    let mut waiting: Vec<usize> =
        (0..others.len()).filter(|&i| !(others[i].black && whites_suffice)).collect();
    let mut chosen = Vec::new();
    let mut left = thresholds.system() - target.required;
    // Criterion 2.
    while left > 0.0 {
        let share = left / cpus_left.max(1) as f64;
        let distance = |i: usize| (share - others[i].required / others[i].cpus as f64).abs();
        let fits = waiting.iter().enumerate().filter(|(_, i)| others[**i].cpus <= cpus_left);
        let best = fits.min_by(|(_, a), (_, b)| distance(**a).total_cmp(&distance(**b)));
        let Some((position, &best)) = best else { break };
        left -= others[best].required;
        if left > 0.0 {
            waiting.remove(position);
            chosen.push(best);
            cpus_left -= others[best].cpus;
        }
    }
    // Criterion 3.
    let is_intensive = |runner: &Runner| thresholds.is_intensive(runner.required);
    let running = chosen.iter().map(|&i| &others[i]).chain([&target]);
    if running.filter(|runner| is_intensive(runner)).count() <= 1 {
        for i in waiting {
            if !is_intensive(&others[i]) && others[i].cpus <= cpus_left {
                chosen.push(i);
                cpus_left -= others[i].cpus;
            }
        }
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair_progress::params::Params;

    fn runner(required: f64) -> Runner {
        Runner { cpus: 1, required, black: false }
    }

    /// The co-runners on four CPUs of the paper's machine: all together may have 40, and 4.8 is
    /// little.
    fn chosen_for(target: f64, others: &[f64]) -> Vec<usize> {
        let others: Vec<Runner> = others.iter().copied().map(runner).collect();
        co_runners(runner(target), &others, 4, Thresholds::of_peak(120.0, Params::DEFAULT))
    }

    /// Co-runners come close to the limit of criterion 2 and do not reach it.
    #[test]
    fn co_runners_approach_the_limit_of_criterion_2() {
        // 30 left for 3 CPUs: 10 each. 9 fits best; 21 for 2: 11 fits best; 10 for 1: 8 fits best.
        assert_eq!(chosen_for(10.0, &[1.0, 9.0, 25.0, 11.0, 8.0]), [1, 3, 4]);
    }

    #[test]
    fn fitness_is_per_remaining_cpu() {
        // By the whole remainder, 30, the program of 28 would come first and leave no room.
        assert_eq!(chosen_for(10.0, &[28.0, 10.0, 9.0, 8.0]), [1, 2, 3]);
    }

    /// A program with too much traffic for criterion 2 gets co-runners without much.
    #[test]
    fn high_traffic_gets_low_traffic_co_runners() {
        assert_eq!(chosen_for(50.0, &[30.0, 4.0, 20.0, 1.0, 0.0, 2.0]), [1, 3, 4]);
    }

    /// Programs beyond the limit of criterion 2 are not taken. Criterion 3 adds no program with
    /// much traffic either.
    #[test]
    fn programs_beyond_the_limit_are_not_taken() {
        // 6 and 6 come nearest to 10 and 12; 25 would be too much, and ends the loop.
        assert_eq!(chosen_for(10.0, &[25.0, 6.0, 6.0]), [1, 2]);
        // 2 are left, and neither 6 nor 7 fits; both have much traffic.
        assert_eq!(chosen_for(38.0, &[6.0, 7.0]), [0usize; 0]);
    }

    #[test]
    fn the_loop_ends_when_cpus_or_programs_run_out() {
        assert_eq!(chosen_for(0.0, &[1.0, 1.0, 1.0, 1.0, 1.0]).len(), 3);
        assert_eq!(chosen_for(0.0, &[]), [0usize; 0]);
    }

    #[test]
    fn black_programs_are_left_out_while_others_fill_the_cpus() {
        let black = Runner { black: true, ..runner(1.0) };
        let thresholds = Thresholds::of_peak(120.0, Params::DEFAULT);
        let enough = [black, runner(1.0), runner(1.0), runner(1.0)];
        let mut chosen = co_runners(runner(9.0), &enough, 4, thresholds);
        chosen.sort_unstable();
        assert_eq!(chosen, [1, 2, 3]);
        let mut chosen = co_runners(runner(9.0), &enough[..3], 4, thresholds);
        chosen.sort_unstable();
        assert_eq!(chosen, [0, 1, 2]);
    }

    /// Traffic is compared per CPU, and programs of several CPUs also have to fit.
    #[test]
    fn traffic_is_compared_per_cpu() {
        let wide = |cpus, required| Runner { cpus, ..runner(required) };
        let others = [wide(4, 1.0), wide(2, 20.0), runner(2.0)];
        assert_eq!(
            co_runners(runner(10.0), &others, 4, Thresholds::of_peak(120.0, Params::DEFAULT)),
            [1, 2]
        );
    }
}
