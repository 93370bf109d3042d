//! The cost of training and its limit, which trades fairness against throughput.
//!
//! *Source.* The FPS paper, section 5, eq. 5: the CPU time that training left idle, over the CPU
//! time that was used.

/// Seconds of CPU time since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Overhead {
    wasted: f64,
    working: f64,
}

impl Overhead {
    /// Adds CPU seconds that a program has used.
    pub(super) fn worked(&mut self, seconds: f64) {
        self.working += seconds;
    }

    /// Adds a training quantum with this length and idle CPUs.
    pub(super) fn trained(&mut self, idle: usize, seconds: f64) {
        self.wasted += idle as f64 * seconds;
    }

    /// The overhead by equation 5.
    pub(super) fn share(&self) -> f64 {
        if self.wasted == 0.0 { 0.0 } else { self.wasted / self.working.max(f64::MIN_POSITIVE) }
    }

    /// Whether this many more idle seconds keep to the limit.
    pub(super) fn affords(&self, seconds: f64, limit: Option<f64>) -> bool {
        limit.is_none_or(|limit| self.wasted + seconds <= limit * self.working)
    }

    /// Whether more may be left idle; `None`: there is no limit. With a limit of 0 nothing is ever
    /// trained.
    pub(super) fn allows(&self, limit: Option<f64>) -> bool {
        limit.is_none_or(|limit| self.share() < limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_idle_time_in_training_over_work_time() {
        let mut overhead = Overhead::default();
        // A whole quantum on four CPUs, then a quarter of one with two programs.
        overhead.worked(4.0 * 0.1);
        overhead.worked(2.0 * 0.025);
        overhead.trained(2, 0.025);
        assert!((overhead.share() - 0.05 / 0.45).abs() < 1e-12);
    }

    /// Training resumes when the programs have done enough work.
    #[test]
    fn training_stops_at_the_limit_and_resumes_after_work() {
        let mut overhead = Overhead::default();
        overhead.worked(1.0);
        overhead.trained(2, 0.025);
        assert!(!overhead.allows(Some(0.02)) && overhead.allows(None));
        overhead.worked(2.0);
        assert!(overhead.allows(Some(0.02)));
    }

    /// Training that would exceed the limit before it is done is refused in advance.
    #[test]
    fn training_that_would_exceed_the_limit_is_predicted() {
        let mut overhead = Overhead::default();
        overhead.worked(10.0);
        assert!(overhead.affords(0.2, Some(0.02)) && overhead.affords(9.0, None));
        overhead.trained(1, 0.1);
        assert!(overhead.affords(0.1, Some(0.02)) && !overhead.affords(0.11, Some(0.02)));
    }

    #[test]
    fn a_limit_of_zero_means_no_training_at_all() {
        assert!(!Overhead::default().allows(Some(0.0)));
        assert!(Overhead::default().allows(Some(0.001)));
    }
}
