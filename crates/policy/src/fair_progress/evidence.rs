//! What a phase's segments have shown, for the figures of the FPS paper's section 7: where its
//! speed alone came from (figure 9), and how much its segments differ (eq. 10).

use cosched_core::estimates::{EstimateSource, EstimateSources, PhaseSpeeds};

use super::contention::Criterion;

/// The segments of a phase that had little interference.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Evidence {
    /// By what made them valid.
    valid: EstimateSources,
    /// What made the first of them valid.
    first: Option<EstimateSource>,
    /// Their speeds.
    speeds: PhaseSpeeds,
}

impl Evidence {
    pub(super) fn add(&mut self, source: EstimateSource, speed: f64) {
        self.valid.add(source, 1);
        self.first.get_or_insert(source);
        self.speeds.add(speed);
    }

    pub(super) fn first(&self) -> Option<EstimateSource> {
        self.first
    }

    pub(super) fn speeds(&self) -> PhaseSpeeds {
        self.speeds
    }

    /// The sources of this phase's segments, if its speed alone is known; so many of them suffered.
    pub(super) fn sources(&self, suffered: u32) -> EstimateSources {
        let mut sources = self.valid;
        self.first.into_iter().for_each(|first| sources.add(first, suffered));
        sources
    }
}

/// Why a segment is valid, if it is.
pub(super) fn source(
    criterion: Option<Criterion>,
    trained: bool,
    sequential: bool,
) -> Option<EstimateSource> {
    criterion.map(|criterion| match criterion {
        _ if trained && sequential => EstimateSource::Sequential,
        _ if trained => EstimateSource::Predicted,
        Criterion::OwnLow => EstimateSource::OwnLow,
        Criterion::SystemLow => EstimateSource::SystemLow,
        Criterion::OnlyOne => EstimateSource::OnlyOne,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three segments by chance, one in training, and four that suffered: those have their speed
    /// from the first one.
    #[test]
    fn segments_that_suffered_have_the_source_of_their_phase() {
        let mut phase = Evidence::default();
        let sources = [(false, false), (false, false), (true, false), (true, true)];
        for (trained, sequential) in sources {
            phase.add(source(Some(Criterion::SystemLow), trained, sequential).unwrap(), 1.0);
        }
        let expected = EstimateSources {
            system_low: 6,
            predicted: 1,
            sequential: 1,
            ..EstimateSources::default()
        };
        assert_eq!(phase.sources(4), expected);
        assert_eq!(source(None, true, true), None);
    }
}
