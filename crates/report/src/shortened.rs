//! Quanta that are shorter than requested, so that no program is paused for longer than allowed.

use cosched_core::Nanos;
use cosched_core::format::span;
use cosched_policy::gangs::quantum::SHORTEST;
use cosched_policy::reasons::SharedReason;
use cosched_results::result::RunResult;

use crate::history::nanos;

/// Quanta that the limit on frozen time shortens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// The requested length.
    pub requested: Nanos,
    /// The shortest length in effect.
    pub given: Nanos,
    /// How long a program may be paused at a stretch.
    pub max_frozen: Nanos,
    /// Whether that is the limit of the run, and not of a program that runs tests.
    pub by_run: bool,
}

impl Shortened {
    /// The shortest quanta of a run, if they were shortened. The kept part of a long run may begin
    /// after the reason was given: then the planned lengths tell.
    fn of(result: &RunResult) -> Option<Shortened> {
        let requested = nanos(result.quantum_seconds?);
        let of_run = nanos(result.max_frozen_seconds?);
        let reasons = result.decisions.iter().flat_map(|made| &made.reasons);
        let given = reasons.filter_map(|reason| match reason.why.read()? {
            SharedReason::QuantumShortened { given, max_frozen, .. } => {
                Some((given, max_frozen.unwrap_or(of_run)))
            }
            // Turns are also short for other reasons, such as probes.
            SharedReason::Quantum { gangs, length, .. } => {
                let waits = requested.0.saturating_mul(u64::from(gangs.saturating_sub(1)));
                // A tenth of the limit is kept for switches.
                (waits > of_run.0 / 10 * 9).then_some((length, of_run))
            }
            _ => None,
        });
        let (given, max_frozen) = given.min().filter(|(given, _)| *given < requested)?;
        Some(Shortened { requested, given, max_frozen, by_run: max_frozen >= of_run })
    }

    /// What ends the shortening. Quanta grow at least as much as the limit does.
    fn remedy(self) -> String {
        let requested = span(self.requested);
        if !self.by_run {
            return format!(
                "for the program that runs tests, `freezable = true` in a jobs file allows turns \
                 of {requested}"
            );
        }
        match self.given > SHORTEST {
            true => {
                let times = self.requested.0 as f64 / self.given.0 as f64;
                let enough = rounded_up(self.max_frozen.as_secs_f64() * times);
                format!("`--max-frozen {enough}` allows turns of {requested}")
            }
            false => "a longer `--max-frozen`, or fewer programs at a time".to_owned(),
        }
    }

    /// Before a run (`are`), or after it (`were`).
    pub fn in_words(self, are: &str) -> String {
        let [requested, given, longest] = [self.requested, self.given, self.max_frozen].map(span);
        let option = if self.by_run { " (`--max-frozen`)" } else { "" };
        format!(
            "turns {are} shortened from {requested} to {given}, so that no program is paused for \
             longer than {longest} at a stretch{option}. Remedy: {}",
            self.remedy()
        )
    }
}

/// A sentence, if the quanta of a run were shortened.
pub fn sentence(result: &RunResult) -> Option<String> {
    Some(crate::words::capitalised(&Shortened::of(result)?.in_words("were")) + ".")
}

/// A time of two digits that is no shorter, as options take it: `1.3s`, `230ms`, `12s`.
fn rounded_up(seconds: f64) -> String {
    let (value, unit) = if seconds < 0.99 { (seconds * 1e3, "ms") } else { (seconds, "s") };
    let step = 10f64.powf(value.log10().floor() - 1.0);
    let digits = usize::from(step < 0.99);
    // A value that has two digits already is not raised by its rounding error.
    let steps = (value / step - 1e-6).ceil();
    format!("{:.digits$}{unit}", steps * step)
}

#[cfg(test)]
mod tests {
    use cosched_core::Quantum;

    use super::*;
    use crate::by_hand::{ms, run};

    /// Twelve gangs: 11 quanta of others, each with half a millisecond for its switch, fit into
    /// 900 ms. With 1.23 s they would last 100 ms.
    const TWELVE: Shortened = Shortened {
        requested: ms(100),
        given: Nanos(81_318_181),
        max_frozen: Nanos::from_secs(1),
        by_run: true,
    };

    #[test]
    fn twelve_gangs_are_told_their_quantum_and_the_remedy() {
        assert_eq!(
            TWELVE.in_words("are"),
            "turns are shortened from 100 ms to 81.3 ms, so that no program is paused for longer \
             than 1.00 s at a stretch (`--max-frozen`). Remedy: `--max-frozen 1.3s` allows turns \
             of 100 ms"
        );
        let tests = Shortened { max_frozen: ms(100), by_run: false, ..TWELVE };
        let said = tests.in_words("are");
        assert!(said.contains("`freezable = true`") && !said.contains("--max-frozen"), "{said}");
        let shortest = Shortened { given: SHORTEST, ..TWELVE };
        assert!(shortest.in_words("are").ends_with("or fewer programs at a time"));
    }

    #[test]
    fn a_run_tells_its_shortest_quantum_once() {
        let mut run = run();
        run.quantum_seconds = Some(0.2);
        let known = Shortened::of(&run).unwrap();
        assert_eq!((known.given, known.max_frozen, known.by_run), (ms(100), ms(1000), true));
        assert!(sentence(&run).unwrap().ends_with("`--max-frozen 2.0s` allows turns of 200 ms."));
        let planned = |run: &mut RunResult, gangs| {
            for reason in run.decisions.iter_mut().flat_map(|made| &mut made.reasons) {
                reason.why = Quantum { round: 1, gang: 0, gangs, length: ms(100) }.into();
            }
        };
        // Five quanta of 200 ms of others: a second.
        planned(&mut run, 6);
        assert_eq!(Shortened::of(&run), Some(known), "by the planned lengths");
        planned(&mut run, 2);
        assert_eq!(Shortened::of(&run), None, "no wait of a second: probes have short turns, too");
        planned(&mut run, 7);
        run.quantum_seconds = Some(0.1);
        assert_eq!(sentence(&run), None);
    }

    #[test]
    fn times_are_rounded_up_to_two_digits() {
        let rounded = [0.6, 0.2301, 0.995, 1.2297, 9.91, 11.3, 123.0].map(rounded_up);
        assert_eq!(rounded, ["600ms", "240ms", "1.0s", "1.3s", "10.0s", "12s", "130s"]);
    }
}
