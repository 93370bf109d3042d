//! A comparison in one sentence: what cosched took, and the other variants beside it.

use cosched_results::statistics::{FEWEST_TO_COMPARE, Verdict, comparison};

use super::{Compared, Comparison, NEGLIGIBLE};

/// What users do without cosched, as a sentence calls it.
const PLAIN: [(&str, &str); 6] = [
    ("linux", "together"),
    ("fcfs", "one by one"),
    ("passive", "passive"),
    ("llvm", "llvm"),
    ("one-thread", "one thread each"),
    ("split", "split"),
];
/// The policies that a user gets without naming one, the first that is there.
const USUAL: [&str; 2] = ["turns", "auto"];
/// Fewer rounds than verdicts take show only differences that are larger than this.
const CLEAR: f64 = 0.2;

impl Comparison {
    /// What a user needs to know first; `None` where there is only one variant.
    ///
    /// The others are held against the variant that is cosched's, whatever the first variant is.
    pub fn verdict(&self) -> Option<String> {
        let is_plain = |variant: &&Compared| plain(&variant.name).is_some();
        let named = |name: &&str| self.variants.iter().find(|variant| variant.name == **name);
        let usual = USUAL.iter().find_map(named);
        let own = usual.or_else(|| self.variants.iter().rev().find(|variant| !is_plain(variant)));
        let own = own.or(self.variants.last())?;
        let others: Vec<&Compared> =
            self.variants.iter().filter(|variant| variant.name != own.name).collect();
        let alone = !is_plain(&own) && others.iter().all(is_plain);
        let name = match alone {
            true => "cosched",
            false => plain(&own.name).unwrap_or(&own.name),
        };
        let mut parts = vec![format!("{name} {}", seconds(own.total_seconds.value))];
        parts.extend(others.iter().map(|other| self.beside(own, name, other)));
        (!others.is_empty()).then(|| format!("Verdict: {}{}.", parts.join("; "), self.caveats(own)))
    }

    /// Another variant beside cosched's.
    fn beside(&self, own: &Compared, own_name: &str, other: &Compared) -> String {
        let name = plain(&other.name).unwrap_or(&other.name);
        let what = self.difference(own, own_name, other);
        format!("{name} {}, {what}", seconds(other.total_seconds.value))
    }

    fn difference(&self, own: &Compared, own_name: &str, other: &Compared) -> String {
        if own.failed != other.failed {
            return format!("but other programs failed than with {own_name}");
        }
        let ratio = comparison(&other.samples.total_seconds, &own.samples.total_seconds);
        let Some(ratio) = ratio.filter(|ratio| ratio.value > 0.0) else {
            return format!("no difference from {own_name}");
        };
        // The pairs of rounds decide whether there is a difference. Its size is that of the seconds
        // beside it.
        let shown = other.total_seconds.value / own.total_seconds.value;
        let agrees = (shown > 1.0) == (ratio.value > 1.0);
        let shown = if agrees { shown } else { ratio.value };
        let apart = (ratio.value - 1.0).abs();
        let verdict = ratio.verdict();
        match self.rounds >= FEWEST_TO_COMPARE {
            true if verdict == Verdict::NoDifference => format!("no difference from {own_name}"),
            true if self.simulated && apart < NEGLIGIBLE => {
                format!("no difference from {own_name}")
            }
            false if apart < CLEAR => format!("no clear difference from {own_name}"),
            _ if ratio.value > 1.0 => format!("{} slower than {own_name}", times(shown)),
            _ => format!("{} faster than {own_name}", times(1.0 / shown)),
        }
    }

    /// What makes the sentence less sure.
    fn caveats(&self, own: &Compared) -> String {
        let mut caveats = Vec::new();
        if !self.disturbed_rounds.is_empty() {
            caveats.push(format!(
                "{} of {} rounds disturbed",
                self.disturbed_rounds.len(),
                self.rounds
            ));
        }
        if self.rounds < FEWEST_TO_COMPARE && !self.simulated {
            caveats.push(format!("a first impression: certainty takes {FEWEST_TO_COMPARE} rounds"));
        }
        if own.failed > 0 {
            caveats.push("programs failed".to_owned());
        }
        match caveats.is_empty() {
            true => String::new(),
            false => format!(" ({})", caveats.join("; ")),
        }
    }
}

/// A variant that needs no cosched, as a sentence calls it.
fn plain(variant: &str) -> Option<&'static str> {
    PLAIN.iter().find(|(name, _)| *name == variant).map(|(_, words)| *words)
}

/// "2.5 s", or with a further digit below a second.
fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}

/// "2.5x", or with a further digit where it would be "1.0x".
fn times(ratio: f64) -> String {
    if ratio < 1.15 { format!("{ratio:.2}x") } else { format!("{ratio:.1}x") }
}

#[cfg(test)]
mod tests {
    use cosched_results::result::RunResult;

    use super::*;
    use crate::{Variant, testkit};

    const SEVEN: [f64; 7] = [4.0, 4.1, 4.2, 4.05, 4.15, 4.1, 4.1];

    fn variant(name: &str, factor: f64, totals: &[f64]) -> Variant {
        let run = |total: &f64| RunResult { total_seconds: total * factor, ..testkit::gang() };
        Variant { name: name.into(), runs: totals.iter().map(run).collect() }
    }

    fn said(variants: &[Variant]) -> String {
        Comparison::of(variants).unwrap().verdict().unwrap()
    }

    #[test]
    fn the_verdict_holds_the_others_against_cosched() {
        let mut one_by_one = variant("fcfs", 1.0, &SEVEN);
        one_by_one.runs.reverse();
        let variants = [variant("linux", 2.5, &SEVEN), one_by_one, variant("turns", 1.0, &SEVEN)];
        assert_eq!(
            said(&variants),
            "Verdict: cosched 4.1 s; together 10.2 s, 2.5x slower than cosched; \
             one by one 4.1 s, no difference from cosched."
        );
        let variants = [variant("linux", 0.9, &SEVEN), variant("turns", 1.0, &SEVEN)];
        assert_eq!(
            said(&variants),
            "Verdict: cosched 4.1 s; together 3.7 s, 1.11x faster than cosched."
        );
    }

    #[test]
    fn few_rounds_show_only_large_differences() {
        let variants = [
            variant("linux", 2.5, &[4.0]),
            variant("fcfs", 1.15, &[4.0]),
            variant("turns", 1.0, &[4.0]),
        ];
        assert_eq!(
            said(&variants),
            "Verdict: cosched 4.0 s; together 10.0 s, 2.5x slower than cosched; \
             one by one 4.6 s, no clear difference from cosched \
             (a first impression: certainty takes 7 rounds)."
        );
    }

    #[test]
    fn several_policies_keep_their_names() {
        let variants = [
            variant("linux", 1.0, &[4.0]),
            variant("gang", 3.0, &[4.0]),
            variant("auto", 1.0, &[4.0]),
        ];
        assert_eq!(
            said(&variants),
            "Verdict: auto 4.0 s; together 4.0 s, no clear difference from auto; \
             gang 12.0 s, 3.0x slower than auto (a first impression: certainty takes 7 rounds)."
        );
        assert_eq!(Comparison::of(&variants[..1]).unwrap().verdict(), None);
    }

    #[test]
    fn failures_and_disturbed_rounds_are_part_of_it() {
        let mut variants = [variant("linux", 2.5, &[4.0, 4.0]), variant("turns", 1.0, &[4.0, 4.0])];
        variants[0].runs[1].others_cpu_seconds = Some(10.0);
        let disturbed = "2.5x slower than cosched (1 of 2 rounds disturbed; a first impression: \
                         certainty takes 7 rounds).";
        assert!(said(&variants).ends_with(disturbed), "{}", said(&variants));
        variants[0].runs[1].programs[0].exit = Some(cosched_core::Exit::Code(1));
        assert!(
            said(&variants)
                .contains("together 10.0 s, but other programs failed than with cosched")
        );
        variants[1].runs[1].programs[0].exit = Some(cosched_core::Exit::Code(1));
        assert!(said(&variants).ends_with("; programs failed)."), "{}", said(&variants));
    }
}
