//! Running together or taking turns: the decision by solo probes.
//!
//! *Where turns lose.* While one gang runs, all other programs do nothing. If the gang's threads
//! sleep, wait for files or yield, CPUs are idle that another program would have used. That can be
//! measured. It compares two figures: the CPUs that the programs keep busy outside the kernel
//! alone, weighted with their shares of the turns, and those that they keep busy together.
//!
//! *Where turns win.* A thread that spins for a sibling without a CPU is as busy as one that
//! computes. Neither CPU time nor instructions show the difference. It happens only to programs
//! with several active threads, and never when taking turns.
//!
//! *Therefore* multi-threaded programs take turns where no loss can be measured. If their threads
//! wait for each other, that saves a multiple; if not, it costs some per cent.
//!
//! *How much may be lost* depends on whether anything can be gained. A program with threads that
//! sleep alone waits by sleeping, and wastes little. A program with threads that yield wastes
//! little too: alone, it spends more time in the kernel than together with others. A program with
//! threads that do neither never waits, or spins. Where two such programs run together, each may
//! take CPUs from threads for which the other one spins, so more may be lost to avoid that.

use super::ReasonCode;

use super::params::Params;
use crate::gangs::minwait::Share;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Alone {
    /// How many active threads it has.
    pub(super) width: f64,
    /// How many CPUs it keeps busy outside the kernel.
    pub(super) rate: f64,
}

/// A program that competes for CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rival {
    /// How many threads it requests: 1 to all CPUs.
    pub(super) threads: usize,
    /// What it does alone; `None`: not measured, and assumed to be all that it requests.
    pub(super) alone: Option<Alone>,
}

impl Rival {
    fn rate(&self) -> f64 {
        self.alone.map_or(self.threads as f64, |alone| alone.rate)
    }

    /// Whether its threads may spin for each other, if all programs running together keep this part
    /// of the CPUs busy outside the kernel.
    fn may_spin(&self, together: f64, params: &Params) -> bool {
        let threads = self.threads as f64;
        let spins = |alone: Alone| {
            alone.width >= params.awake * threads
                && alone.rate >= params.yields * together * threads
        };
        self.threads > 1 && self.alone.is_some_and(spins)
    }
}

/// The prediction for taking turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Expected {
    /// How many CPUs the programs keep busy outside the kernel when taking turns.
    pub(super) in_turns: f64,
    /// The part of their joint work that may be lost.
    pub(super) most_lost: f64,
    /// Whether they should take turns.
    pub(super) is_enough: bool,
}

/// The reason for no decision, by the thread counts of the programs alone.
pub(super) fn is_settled(threads: &[usize], cpus: usize) -> Option<ReasonCode> {
    match () {
        () if threads.len() < 2 => Some(ReasonCode::OneCompetes),
        () if threads.iter().sum::<usize>() <= cpus => Some(ReasonCode::EnoughCpus),
        () if threads.iter().all(|threads| *threads < 2) => Some(ReasonCode::AllSingleThreaded),
        () => None,
    }
}

/// The prediction for turns on this number of CPUs. `turns` has the rivals' shares of the CPUs, and
/// `together` how many CPUs are busy outside the kernel when running together.
pub(super) fn expected(
    rivals: &[Rival],
    turns: &[Share],
    cpus: usize,
    together: f64,
    params: &Params,
) -> Expected {
    // Threads share the CPUs that are backfilled.
    let share =
        |rival: &Rival, share: &Share| share.assigned + share.backfilled / rival.threads as f64;
    let in_turns: f64 =
        rivals.iter().zip(turns).map(|(rival, turns)| rival.rate() * share(rival, turns)).sum();
    let in_turns = in_turns.min(cpus as f64);
    let busy = together / cpus as f64;
    let spin = rivals.iter().filter(|rival| rival.may_spin(busy, params)).count();
    let most_lost = if spin > 1 { params.most_lost } else { 0.0 };
    Expected { in_turns, most_lost, is_enough: in_turns >= (1.0 - most_lost) * together }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gangs::minwait::shares;

    fn rivals(all: &[(usize, f64, f64)]) -> Vec<Rival> {
        let rival = |&(threads, width, rate): &(usize, f64, f64)| Rival {
            threads,
            alone: Some(Alone { width, rate }),
        };
        all.iter().map(rival).collect()
    }

    fn expects(all: &[(usize, f64, f64)], cpus: usize, together: f64) -> Expected {
        let sizes: Vec<usize> = all.iter().map(|(threads, ..)| *threads).collect();
        expected(&rivals(all), &shares(&sizes, cpus, 1), cpus, together, &Params::DEFAULT)
    }

    #[test]
    fn programs_that_fill_the_cpus_alone_take_turns() {
        let full = (24, 23.5, 23.5);
        assert!(expects(&[full; 4], 24, 24.0).is_enough);
        let packed = [(12, 11.9, 11.9), (12, 11.8, 11.8), (24, 23.9, 23.9)];
        assert!(expects(&packed, 24, 24.0).is_enough);
    }

    #[test]
    fn programs_that_leave_cpus_idle_alone_run_together() {
        let some_sleep = expects(&[(2, 1.5, 1.5); 4], 2, 1.95);
        assert!(!some_sleep.is_enough && some_sleep.most_lost == 0.0, "{some_sleep:?}");
        assert!((some_sleep.in_turns - 1.5).abs() < 1e-9);
        let yield_much = expects(&[(2, 2.0, 1.2); 4], 2, 1.9);
        assert!(!yield_much.is_enough && yield_much.most_lost == 0.0, "{yield_much:?}");
    }

    #[test]
    fn more_may_be_lost_where_two_programs_may_spin() {
        let two = expects(&[(24, 24.0, 24.0), (12, 11.9, 11.9), (24, 9.0, 9.0)], 24, 24.0);
        assert_eq!(two.most_lost, Params::DEFAULT.most_lost);
        let one = expects(&[(24, 24.0, 24.0), (24, 21.0, 21.0), (1, 1.0, 1.0)], 24, 24.0);
        assert_eq!(one.most_lost, 0.0);
    }

    #[test]
    fn backfilled_cpus_are_not_idle() {
        let some = rivals(&[(1, 1.0, 1.0), (2, 2.0, 2.0), (2, 2.0, 2.0)]);
        let lending = shares(&[1, 2, 2], 2, 1);
        let none: Vec<Share> =
            lending.iter().map(|share| Share { backfilled: 0.0, ..*share }).collect();
        let in_turns =
            |shares: &[Share]| expected(&some, shares, 2, 2.0, &Params::DEFAULT).in_turns;
        assert!((in_turns(&lending) - 2.0).abs() < 1e-9);
        assert!((in_turns(&none) - 5.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn thread_counts_alone_may_decide() {
        assert_eq!(is_settled(&[2], 2), Some(ReasonCode::OneCompetes));
        assert_eq!(is_settled(&[3, 5], 8), Some(ReasonCode::EnoughCpus));
        assert_eq!(is_settled(&[1; 5], 2), Some(ReasonCode::AllSingleThreaded));
        assert_eq!(is_settled(&[1, 2], 2), None);
    }
}
