//! Programs with fluctuating phases: training in sequence.
//!
//! A training quantum for a predicted phase is wasted if another phase comes. For a program with
//! too many such failures, prediction is given up for a while. The program is then trained for
//! several whole quanta in sequence, which are likely to contain most of its phases.
//!
//! *Source.* The FPS paper, section 4.4; trigger and length from there and from table 3. Ours:
//! training *failed* if no phase got its first valid segment by it; after a sequence the count
//! begins again.

use super::params::Params;

/// The results of a program's training.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sequence {
    trained: u32,
    failed: u32,
    left: u32,
    params: Params,
}

impl Sequence {
    pub(super) fn new(params: Params) -> Sequence {
        Sequence { params, ..Sequence::default() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.left > 0
    }

    /// Counts a training quantum that is over. A quantum of a sequence is neither a success nor a
    /// failure.
    pub(super) fn trained(&mut self, useful: bool) {
        if self.left > 0 {
            self.left -= 1;
            return;
        }
        self.trained += 1;
        self.failed += u32::from(!useful);
        let ratio = f64::from(self.failed) / f64::from(self.trained);
        let Params { failed, failure_ratio, sequence, .. } = self.params;
        if self.failed > failed && ratio > failure_ratio {
            *self = Sequence { left: sequence, ..Sequence::new(self.params) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(useful: &[bool]) -> Sequence {
        let mut sequence = Sequence::default();
        useful.iter().for_each(|useful| sequence.trained(*useful));
        sequence
    }

    /// For a sequence to begin, the failures must also be more than 60 percent.
    #[test]
    fn a_sequence_begins_after_more_than_5_failures() {
        assert!(!after(&[false; 5]).is_on());
        assert!(after(&[false; 6]).is_on());
        let four_useful = [[true; 4].as_slice(), &[false; 6]].concat();
        assert!(!after(&four_useful).is_on(), "6 of 10 are not more than 60 %");
        assert!(after(&[four_useful.as_slice(), &[false]].concat()).is_on());
    }

    #[test]
    fn a_sequence_has_six_quanta_and_then_counting_restarts() {
        let mut sequence = after(&[false; 6]);
        for quantum in 0..6 {
            assert!(sequence.is_on(), "{quantum}");
            sequence.trained(true);
        }
        assert_eq!(sequence, Sequence::default());
    }
}
