//! How much co-runners slowed a program down.
//!
//! A program's turnaround is its solo time, its waiting, the time in which another process stopped
//! it, and a rest: the interference (the thesis on gang scheduling, eq. 4.1). A program that ran
//! for less than its solo time has a negative rest. No co-runner makes a program faster, so a
//! negative rest says something about the solo time: a small one is noise, a large one means that
//! the profile is out of date or that its measurement was disturbed.

use cosched_results::result::ProgramResult;

/// What is known of a program's interference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Interference {
    /// Its solo time is not known, or it did not finish its work.
    Unknown,
    /// Its solo time is known. It ran longer, or so little shorter that this is noise.
    Known {
        /// Its solo time, seconds.
        solo: f64,
        /// How long it ran, seconds.
        ran: f64,
    },
    /// It ran for less than its solo time, so its profile does not hold.
    Impossible {
        /// Its solo time, seconds.
        solo: f64,
        /// How long it ran, seconds.
        ran: f64,
    },
}

impl Interference {
    /// The interference of a program.
    pub fn of(program: &ProgramResult) -> Interference {
        let Some(ran) = program.ran_seconds() else { return Interference::Unknown };
        match (program.rejected_solo_seconds, program.alone_as_started_seconds()) {
            (Some(solo), _) if ran < solo => Interference::Impossible { solo, ran },
            (None, Some(solo)) => Interference::Known { solo, ran },
            _ => Interference::Unknown,
        }
    }

    /// The parts of the time in which it ran, seconds, where they are known: what its work takes
    /// without co-runners, and what co-runners cost. Neither is negative.
    pub fn parts(self) -> Option<(f64, f64)> {
        match self {
            Interference::Known { solo, ran } => Some((solo.min(ran), (ran - solo).max(0.0))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::Exit;

    use super::*;
    use crate::by_hand::{A, run};
    use crate::testkit::reject_solo;

    /// The program `a` took 250 ms, of which it waited 103.
    fn of_solo(solo: f64) -> Interference {
        let mut a = run().programs.swap_remove(A);
        a.solo_seconds = Some(solo);
        Interference::of(&a)
    }

    #[test]
    fn interference_is_never_negative() {
        let (solo, lost) = of_solo(0.14).parts().unwrap();
        assert!(solo == 0.14 && (lost - 0.007).abs() < 1e-9);
        let (solo, lost) = of_solo(0.15).parts().unwrap();
        assert!((solo - 0.147).abs() < 1e-9 && lost == 0.0, "noise: {solo} {lost}");
        let mut run = run();
        reject_solo(&mut run, A, 0.2);
        let rejected = Interference::of(&run.programs[A]);
        assert!(matches!(rejected, Interference::Impossible { .. }));
        run.programs[A].rejected_solo_seconds = Some(0.14);
        let elsewhere = Interference::of(&run.programs[A]);
        assert_eq!(elsewhere, Interference::Unknown, "it was rejected by another run");
    }

    #[test]
    fn a_program_that_failed_has_no_interference() {
        let mut a = run().programs.swap_remove(A);
        a.exit = Some(Exit::Signal(9));
        assert_eq!(Interference::of(&a), Interference::Unknown);
    }
}
