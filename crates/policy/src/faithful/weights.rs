//! How programs of different weights share CPUs: by nice values.
//!
//! The kernel shares CPUs by thread, and gives a thread 1.25 times as much for each step of its
//! nice value. A program's threads together are to get what its weight says, so each of them weighs
//! the program's weight over the number of its threads. The heaviest stays as found, and the others
//! become nicer: that is allowed to everybody. (To take it back is not; where it could not be taken
//! back, the machine refuses it.)
//!
//! Without weights, nothing: then all threads of all programs are equals, as under the plain
//! kernel.

use cosched_core::Program;

/// What a step of the nice value is worth.
const STEP: f64 = 1.25;
/// The nicest.
const NICEST: f64 = 19.0;

/// For each program the nice value to add, where weights differ.
pub(super) fn nice_values(programs: &[Program]) -> Vec<Option<i8>> {
    let differ = programs.windows(2).any(|pair| pair[0].weight != pair[1].weight);
    let of_a_thread = |program: &Program| program.weight / f64::from(program.asked.max(1));
    let heaviest = programs.iter().map(of_a_thread).fold(0.0, f64::max);
    let nice = |program: &Program| (heaviest / of_a_thread(program)).ln() / STEP.ln();
    programs
        .iter()
        .map(|program| differ.then(|| nice(program).round().clamp(0.0, NICEST) as i8))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::program;

    #[test]
    fn a_program_of_half_the_weight_is_three_steps_nicer() {
        let light = Program { weight: 0.5, ..program(1, 4) };
        assert_eq!(nice_values(&[program(0, 4), light]), [Some(0), Some(3)]);
    }

    #[test]
    fn threads_share_what_their_program_has() {
        let many = Program { weight: 2.0, ..program(1, 8) };
        // 2 over 8 threads is half of 1 over 2.
        assert_eq!(nice_values(&[program(0, 2), many]), [Some(0), Some(3)]);
    }

    #[test]
    fn equal_weights_change_nothing_whatever_the_numbers_of_threads() {
        assert_eq!(nice_values(&[program(0, 1), program(1, 64)]), [None, None]);
        assert_eq!(nice_values(&[]), []);
    }

    #[test]
    fn no_nice_value_is_above_the_highest() {
        let light = Program { weight: 0.01, ..program(1, 1000) };
        assert_eq!(nice_values(&[program(0, 1), light])[1], Some(19));
    }
}
