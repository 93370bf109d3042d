//! How programs of different weights share CPUs: by nice values.
//!
//! The kernel shares CPUs by thread, and gives a thread 1.25 times as much for each step of its
//! nice value. A program's threads together are to get its weight, so each of them weighs the
//! program's weight over the number of its threads. The heaviest threads keep their nice value, and
//! the others get a higher one, which every user may do. (Lowering it again needs a permission;
//! where it could not be lowered again, the machine refuses the change.)
//!
//! Without weights nothing changes: all threads of all programs are equals, as under the plain
//! kernel.

use cosched_core::Program;

use crate::common::nice::nice;

/// For each program the nice value to add, where weights differ.
pub(super) fn nice_values(programs: &[Program]) -> Vec<Option<i8>> {
    let differ = programs.windows(2).any(|pair| pair[0].weight != pair[1].weight);
    let of_a_thread = |program: &Program| program.weight / f64::from(program.thread_count.max(1));
    let heaviest = programs.iter().map(of_a_thread).fold(0.0, f64::max);
    let of = |program| differ.then(|| nice(of_a_thread(program), heaviest));
    programs.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::program;

    #[test]
    fn half_the_weight_is_three_nice_steps() {
        let light = Program { weight: 0.5, ..program(1, 4) };
        assert_eq!(nice_values(&[program(0, 4), light]), [Some(0), Some(3)]);
    }

    #[test]
    fn threads_share_the_weight_of_their_program() {
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
