//! Task colours: which programs may run during the training of another.
//!
//! If the same programs were the best co-runners again and again, they would get ahead. A program
//! is therefore black if it has made the most progress, or would have after a training quantum.
//! Black programs stay out, unless the others could not fill the CPUs.
//!
//! *Source.* The FPS paper, section 4.3. Ours: where programs have several CPUs, "fewer than the
//! CPUs" compares the CPUs that the others request with those that the trained program leaves.

/// The black programs, from the progress of each, and what it would gain in the next quantum.
pub(super) fn black(progress_and_gain: &[(f64, f64)]) -> Vec<bool> {
    let most = progress_and_gain.iter().map(|(progress, _)| *progress).fold(f64::MIN, f64::max);
    let is_black = |(progress, gain): &(f64, f64)| *progress >= most || progress + gain > most;
    progress_and_gain.iter().map(is_black).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_leader_and_a_program_that_would_lead_are_black() {
        let found = black(&[(5.0, 0.1), (4.0, 0.5), (4.6, 0.5), (1.0, 1.0)]);
        assert_eq!(found, [true, false, true, false]);
    }

    #[test]
    fn while_all_are_equal_all_are_black() {
        assert_eq!(black(&[(0.0, 0.1), (0.0, 0.1)]), [true, true]);
        assert_eq!(black(&[]), [false; 0]);
    }
}
