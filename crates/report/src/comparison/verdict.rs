//! A comparison in one sentence: what cosched took, and the other variants beside it.

use cosched_results::statistics::{Estimate, FEWEST_TO_COMPARE, Verdict, comparison};

use super::{Compared, Comparison, judged};
use crate::{disturbance, words};

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
/// Less than these seconds are mostly the milliseconds in which programs start and end.
const SHORTEST: f64 = 0.05;

impl Comparison {
    /// What a user needs to know first; `None` where there is only one variant. Fewer rounds than
    /// verdicts take are only measured times.
    ///
    /// The others are held against the variant that is cosched's, whatever the first variant is.
    pub fn verdict(&self) -> Option<String> {
        self.in_one_sentence(true)
    }

    /// The verdict below lines that tell which rounds were disturbed.
    pub fn verdict_below_lines(&self) -> Option<String> {
        self.in_one_sentence(false)
    }

    fn in_one_sentence(&self, with_disturbance: bool) -> Option<String> {
        let own = self.own()?;
        let others: Vec<&Compared> =
            self.variants.iter().filter(|variant| variant.name != own.name).collect();
        let alone = !is_plain(own) && others.iter().all(|other| is_plain(other));
        let name = match alone {
            true => "cosched",
            false => plain(&own.name).unwrap_or(&own.name),
        };
        let own_total = seconds(own.total_seconds.value);
        let mut parts = vec![format!("{} {own_total}", with_variant(name, own))];
        parts.extend(others.iter().map(|other| self.beside(own, name, other)));
        if others.is_empty() {
            return None;
        }
        if self.is_too_short() {
            return Some(format!(
                "The programs are too short to compare: no variant takes {} ms, and starting them \
                 takes a part of that. Give them more work.",
                1e3 * SHORTEST
            ));
        }
        let figures = parts.join("; ") + &self.caveats(own, with_disturbance);
        let busy = if with_disturbance { self.busy() } else { String::new() };
        Some(match self.has_verdicts() {
            true => format!("{busy}Verdict: {figures}."),
            false => format!(
                "{busy}{} in {}: {figures}. {}.",
                if self.simulated { "Simulated" } else { "Measured" },
                words::count(self.rounds, "round", "rounds"),
                self.what_a_verdict_takes(),
            ),
        })
    }

    /// How to get a verdict. Enough rounds may have been requested where it was interrupted.
    fn what_a_verdict_takes(&self) -> String {
        match self.interrupted {
            true => format!(
                "It ended early, after {}; a verdict takes {FEWEST_TO_COMPARE} or more. {}",
                words::count(self.rounds, "complete round", "complete rounds"),
                match self.can_continue {
                    true => "The same command with `--resume` continues",
                    false => "With `--out DIR` a comparison can be continued later",
                }
            ),
            false => format!(
                "A verdict takes {FEWEST_TO_COMPARE} rounds or more (`--runs {FEWEST_TO_COMPARE}`)"
            ),
        }
    }

    /// Says that other processes took CPUs in at least half of the rounds, as these decide then.
    fn busy(&self) -> String {
        match self.disturbed_rounds.len() {
            n if disturbance::decides(n, self.rounds) => format!(
                "The machine was busy in {n} of {}, {}. ",
                words::count(self.rounds, "round", "rounds"),
                disturbance::NOT_FOR_IDLE
            ),
            _ => String::new(),
        }
    }

    /// Whether differences are of how programs start and end, and not of how they run.
    fn is_too_short(&self) -> bool {
        let is_short = |variant: &Compared| variant.total_seconds.value < SHORTEST;
        !self.simulated && self.variants.iter().all(is_short)
    }

    fn has_verdicts(&self) -> bool {
        self.rounds >= FEWEST_TO_COMPARE
    }

    /// The variant that is cosched's: what a user gets without naming a policy, else the first
    /// policy, else the last variant.
    fn own(&self) -> Option<&Compared> {
        let named = |name: &&str| self.variants.iter().find(|variant| variant.name == **name);
        let usual = USUAL.iter().find_map(named);
        let own = usual.or_else(|| self.variants.iter().find(|variant| !is_plain(variant)));
        own.or(self.variants.last())
    }

    /// A sentence for each variant compared with the first one, and for cosched's variant compared
    /// with what users do without it.
    pub fn sentences(&self) -> Vec<String> {
        let Some((first, others)) = self.variants.split_first() else { return Vec::new() };
        if self.is_too_short() {
            return Vec::new();
        }
        let others = others.iter().map(|other| (other, first));
        let own = self.own().filter(|own| !is_plain(own) && own.name != first.name);
        let is_usual = |variant: &&Compared| {
            variant.name != first.name && ["linux", "fcfs"].contains(&variant.name.as_str())
        };
        let usual = self.variants.iter().filter(is_usual);
        let further = own.into_iter().flat_map(|own| usual.clone().map(move |other| (own, other)));
        let pairs = others.chain(further);
        let is_busy = !self.busy().is_empty();
        let pairs = pairs.filter_map(|(variant, other)| self.pair(variant, other));
        pairs.filter_map(|pair| pair.sentence(is_busy)).collect()
    }

    /// Another variant beside cosched's.
    fn beside(&self, own: &Compared, own_name: &str, other: &Compared) -> String {
        let name = plain(&other.name).unwrap_or(&other.name);
        let name = with_variant(name, other);
        let seconds = seconds(other.total_seconds.value);
        if own.failed != other.failed {
            return format!("{name} {seconds}, but other programs failed than with {own_name}");
        }
        match self.has_verdicts() {
            true => format!("{name} {seconds}, {}", self.difference(own, own_name, other)),
            false => format!("{name} {seconds}"),
        }
    }

    fn difference(&self, own: &Compared, own_name: &str, other: &Compared) -> String {
        // A pair that has a line is shown as it is there.
        let own_is_first = own.against.is_none();
        let pair = if own_is_first { self.pair(other, own) } else { self.pair(own, other) };
        let interval = pair.as_ref().and_then(|pair| pair.ratio.interval);
        // The interval holds 1 where nothing is clear: a factor would contradict the words.
        let pair = pair.filter(|pair| pair.verdict != Verdict::NoDifference);
        let (Some(VariantPair { ratio, .. }), Some((low, high))) = (pair, interval) else {
            return format!("no clear difference from {own_name}");
        };
        let factor = if own_is_first { ratio.value } else { 1.0 / ratio.value };
        let by_seconds = other.total_seconds.value / own.total_seconds.value;
        let is_that_of_seconds = match factor > 1.0 {
            true => is_near(by_seconds, factor),
            false => is_near(1.0 / by_seconds, 1.0 / factor),
        };
        let what = match (is_that_of_seconds, factor > 1.0) {
            (false, true) => format!("slower than {own_name}"),
            (false, false) => format!("faster than {own_name}"),
            (true, true) => format!("{} slower than {own_name}", times(factor)),
            (true, false) => format!("{} faster than {own_name}", times(1.0 / factor)),
        };
        let interval = by_rounds(ratio.value, (low, high));
        match is_that_of_seconds {
            true => what,
            false if own_is_first => format!("{what}: {interval}"),
            false => format!("{what}, which took {interval}"),
        }
    }

    /// The total time of a variant relative to that of another one: what the document has of it,
    /// else computed from the rounds.
    fn pair<'a>(&self, variant: &'a Compared, other: &'a Compared) -> Option<VariantPair<'a>> {
        let failed_alike = variant.failed == other.failed;
        let known = variant.against.as_ref().filter(|against| against.variant == other.name);
        let (ratio, verdict, failed_alike) = match known {
            Some(against) => (against.total_ratio, against.verdict, against.failed_alike),
            None => {
                let seconds = |of: &'a Compared| &of.samples.total_seconds;
                let ratio = comparison(seconds(variant), seconds(other))?;
                (ratio, judged(ratio, failed_alike, self.simulated), failed_alike)
            }
        };
        let (variant, other) = (&variant.name, &other.name);
        (ratio.value > 0.0).then_some(VariantPair { variant, other, ratio, verdict, failed_alike })
    }

    /// What makes the sentence less sure.
    fn caveats(&self, own: &Compared, with_disturbance: bool) -> String {
        let mut caveats = Vec::new();
        let disturbed = with_disturbance && self.busy().is_empty();
        if disturbed && !self.disturbed_rounds.is_empty() {
            caveats.push(format!(
                "; {} of {} {} disturbed",
                self.disturbed_rounds.len(),
                words::count(self.rounds, "round", "rounds"),
                if self.disturbed_rounds.len() == 1 { "was" } else { "were" }
            ));
        }
        if own.failed > 0 {
            caveats.push("; programs failed".to_owned());
        }
        caveats.concat()
    }
}

/// Two variants, and what their total times show.
struct VariantPair<'a> {
    variant: &'a str,
    other: &'a str,
    /// The total time of `variant` divided by that of `other`.
    ratio: Estimate,
    verdict: Verdict,
    failed_alike: bool,
}

impl VariantPair<'_> {
    /// The pair in a line; `None` with too few rounds for a verdict. On a busy machine it is only
    /// told what was measured.
    fn sentence(&self, is_busy: bool) -> Option<String> {
        let VariantPair { variant, other, ratio, .. } = self;
        let (low, high) = ratio.interval?;
        let range = by_rounds(ratio.value, (low, high));
        let what = match self.verdict {
            _ if !self.failed_alike => {
                return Some(format!(
                    "{variant} and {other} cannot be compared, because different programs \
                     failed: {range}."
                ));
            }
            Verdict::Better if is_busy => "was better in these rounds than",
            Verdict::Worse if is_busy => "was worse in these rounds than",
            Verdict::Better => "is better than",
            Verdict::Worse => "is worse than",
            Verdict::NoDifference => "shows no clear difference from",
            Verdict::TooFewRounds => return None,
        };
        Some(format!("{variant} {what} {other}: {range}."))
    }
}

/// A ratio that is no ratio of the medians in the table.
fn by_rounds(ratio: f64, (low, high): (f64, f64)) -> String {
    format!("{ratio:.2} of its total time round by round ({low:.2} to {high:.2})")
}

/// A name, with the name that the table has, and the policy that decided instead.
fn with_variant(name: &str, variant: &Compared) -> String {
    let decided = variant.decided_by.as_ref().map(|other| format!("{other} decided"));
    let variant = Some(&variant.name).filter(|variant| *variant != name).cloned();
    let more: Vec<String> = variant.into_iter().chain(decided).collect();
    if more.is_empty() { name.to_owned() } else { format!("{name} ({})", more.join("; ")) }
}

/// Whether two factors look alike beside each other: within a digit, or two percent.
fn is_near(one: f64, other: f64) -> bool {
    let digit = if other < 1.15 { 0.02 } else { 0.1 };
    (one - other).abs() <= f64::max(digit, 0.02 * other)
}

/// Whether a variant needs no cosched: by its name, such as `linux-2`, or by the policy that its
/// options begin with.
fn is_plain(variant: &Compared) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    let again = variant.name.rsplit_once('-').filter(|(_, number)| is_number(number));
    let name = again.map_or(variant.name.as_str(), |(name, _)| name);
    let options = variant.options.as_deref();
    let policy = options.and_then(|options| options.split_whitespace().next());
    plain(policy.unwrap_or(name)).is_some()
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
    use crate::{VariantRuns, testkit};

    const SEVEN: [f64; 7] = [4.0, 4.1, 4.2, 4.05, 4.15, 4.1, 4.1];

    fn variant(name: &str, factor: f64, totals: &[f64]) -> VariantRuns {
        let run = |total: &f64| RunResult { total_seconds: total * factor, ..testkit::gang() };
        VariantRuns { name: name.into(), runs: totals.iter().map(run).collect() }
    }

    fn said(variants: &[VariantRuns]) -> String {
        Comparison::of(variants).unwrap().verdict().unwrap()
    }

    #[test]
    fn the_verdict_holds_the_others_against_cosched() {
        let mut one_by_one = variant("fcfs", 1.0, &SEVEN);
        one_by_one.runs.reverse();
        let variants = [variant("linux", 2.5, &SEVEN), one_by_one, variant("turns", 1.0, &SEVEN)];
        assert_eq!(
            said(&variants),
            "Verdict: cosched (turns) 4.1 s; together (linux) 10.2 s, 2.5x slower than cosched; \
             one by one (fcfs) 4.1 s, no clear difference from cosched."
        );
        let variants = [variant("linux", 0.9, &SEVEN), variant("turns", 1.0, &SEVEN)];
        assert_eq!(
            said(&variants),
            "Verdict: cosched (turns) 4.1 s; together (linux) 3.7 s, 1.11x faster than cosched."
        );
    }

    #[test]
    fn the_verdict_names_the_policy_that_decided_instead() {
        let mut turns = variant("turns", 1.0, &SEVEN);
        turns.runs.iter_mut().for_each(|run| run.decided_by = Some("auto".into()));
        let said = said(&[variant("linux", 2.5, &SEVEN), turns]);
        assert!(said.starts_with("Verdict: cosched (turns; auto decided) 4.1 s; "), "{said}");
    }

    /// Rounds differ by more than the variants, so the ratio is not that of the medians: these are
    /// equal here for `linux` and `fcfs`.
    #[test]
    fn the_verdict_has_the_ratios_of_the_lines() {
        let own = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
        let linux: Vec<f64> = [2.0, 3.5, 5.0, 4.5, 9.0, 10.0, 13.0].into();
        let fcfs: Vec<f64> = [9.0, 8.0, 9.0, 5.0, 4.0, 5.0, 3.0].into();
        let variants = |first: &str| {
            let mut all = vec![
                variant("linux", 1.0, &linux),
                variant("fcfs", 1.0, &fcfs),
                variant("turns", 1.0, &own),
            ];
            all.sort_by_key(|variant| variant.name != first);
            Comparison::of(&all).unwrap()
        };
        let compared = variants("linux");
        assert_eq!(
            compared.verdict().unwrap(),
            "Verdict: cosched (turns) 4.0 s; together (linux) 5.0 s, slower than cosched, which \
             took 0.57 of its total time round by round (0.50 to 0.89); one by one (fcfs) 5.0 s, \
             no clear difference from cosched."
        );
        let line =
            "turns is better than linux: 0.57 of its total time round by round (0.50 to 0.89).";
        assert!(compared.sentences().contains(&line.to_owned()), "{:?}", compared.sentences());
        let compared = variants("turns");
        let line =
            "linux is worse than turns: 1.74 of its total time round by round (1.12 to 2.00).";
        assert!(compared.sentences().contains(&line.to_owned()), "{:?}", compared.sentences());
        let same = "slower than cosched: 1.74 of its total time round by round (1.12 to 2.00)";
        let verdict = compared.verdict().unwrap();
        assert!(verdict.contains(same), "{verdict}");
    }

    #[test]
    fn cosched_has_a_line_against_each_usual_way() {
        let variants = [
            variant("linux", 2.5, &SEVEN),
            variant("fcfs", 1.5, &SEVEN),
            variant("turns", 1.0, &SEVEN),
        ];
        assert_eq!(
            Comparison::of(&variants).unwrap().sentences(),
            [
                "fcfs is better than linux: 0.60 of its total time round by round (0.60 to 0.60).",
                "turns is better than linux: 0.40 of its total time round by round (0.40 to 0.40).",
                "turns is better than fcfs: 0.67 of its total time round by round (0.67 to 0.67).",
            ]
        );
    }

    #[test]
    fn plain_linux_under_another_name_is_not_cosched() {
        let variants = [variant("linux", 1.0, &SEVEN), variant("linux-2", 1.0, &SEVEN)];
        assert_eq!(
            said(&variants),
            "Verdict: linux-2 4.1 s; together (linux) 4.1 s, no clear difference from linux-2."
        );
        let variants = [variant("gang", 1.0, &SEVEN), variant("calm", 1.0, &SEVEN)];
        let mut compared = Comparison::of(&variants).unwrap();
        compared.variants[1].options = Some("linux --nice 5".into());
        let verdict = compared.verdict().unwrap();
        assert!(verdict.starts_with("Verdict: cosched (gang) 4.1 s; calm 4.1 s, "), "{verdict}");
    }

    #[test]
    fn few_rounds_are_measured_without_a_verdict() {
        let totals = [4.0, 4.1, 4.2, 4.05, 4.15, 4.1];
        let variants = |rounds: usize| {
            let variant = |name, factor| variant(name, factor, &totals[..rounds]);
            [variant("linux", 2.5), variant("fcfs", 1.15), variant("turns", 1.0)]
        };
        assert_eq!(
            said(&variants(1)),
            "Measured in 1 round: cosched (turns) 4.0 s; together (linux) 10.0 s; one by one \
             (fcfs) 4.6 s. A verdict takes 7 rounds or more (`--runs 7`)."
        );
        assert!(
            said(&variants(6))
                .starts_with("Measured in 6 rounds: cosched (turns) 4.1 s; together (linux) ")
        );
        for (can_continue, how) in [
            (true, "The same command with `--resume` continues."),
            (false, "With `--out DIR` a comparison can be continued later."),
        ] {
            let all = Comparison::of(&variants(6)).unwrap();
            let interrupted = Comparison { interrupted: true, can_continue, ..all };
            let said = interrupted.verdict().unwrap();
            let end = ". It ended early, after 6 complete rounds; a verdict takes 7 or more. ";
            assert!(said.ends_with(&format!("{end}{how}")), "{said}");
        }
        let simulated = Comparison { simulated: true, ..Comparison::of(&variants(1)).unwrap() };
        assert!(
            simulated
                .verdict()
                .unwrap()
                .starts_with("Simulated in 1 round: cosched (turns) 4.0 s; ")
        );
    }

    #[test]
    fn programs_of_no_length_get_no_verdict() {
        let variants = |seconds: f64| {
            let totals = [seconds; 7];
            [variant("linux", 2.0, &totals), variant("turns", 1.0, &totals)]
        };
        let short = Comparison::of(&variants(0.004)).unwrap();
        let verdict = short.verdict().unwrap();
        assert!(verdict.starts_with("The programs are too short to compare: "), "{verdict}");
        assert!(short.sentences().is_empty(), "{:?}", short.sentences());
        let simulated = Comparison { simulated: true, ..short };
        assert!(simulated.verdict().unwrap().starts_with("Verdict: "));
        assert!(said(&variants(0.04)).starts_with("Verdict: "));
    }

    #[test]
    fn several_policies_keep_their_names() {
        let variants = [
            variant("linux", 1.0, &SEVEN),
            variant("gang", 3.0, &SEVEN),
            variant("auto", 1.0, &SEVEN),
        ];
        assert_eq!(
            said(&variants),
            "Verdict: auto 4.1 s; together (linux) 4.1 s, no clear difference from auto; \
             gang 12.3 s, 3.0x slower than auto."
        );
        assert_eq!(Comparison::of(&variants[..1]).unwrap().verdict(), None);
    }

    #[test]
    fn failures_and_disturbed_rounds_are_part_of_it() {
        let mut variants = [variant("linux", 2.5, &SEVEN), variant("turns", 1.0, &SEVEN)];
        variants[0].runs[1].others_cpu_seconds = Some(10.0);
        let disturbed = "2.5x slower than cosched; 1 of 7 rounds was disturbed.";
        assert!(said(&variants).ends_with(disturbed), "{}", said(&variants));
        let mut busy = variants.clone();
        for run in &mut busy[1].runs[..3] {
            run.others_cpu_seconds = Some(10.0);
        }
        assert!(said(&busy).starts_with("Verdict: "), "{}", said(&busy));
        busy[1].runs[3].others_cpu_seconds = Some(10.0);
        assert_eq!(
            said(&busy),
            "The machine was busy in 4 of 7 rounds, so these figures cannot be carried over to an \
             idle machine. Verdict: cosched (turns) 4.1 s; together (linux) 10.2 s, 2.5x slower \
             than cosched."
        );
        let line = &Comparison::of(&busy).unwrap().sentences()[0];
        let below = Comparison::of(&busy).unwrap().verdict_below_lines().unwrap();
        assert!(below.starts_with("Verdict: ") && !below.contains("disturbed"), "{below}");
        assert!(line.starts_with("turns was better in these rounds than linux"), "{line}");
        variants[0].runs[1].programs[0].exit = Some(cosched_core::Exit::Code(1));
        assert!(
            said(&variants)
                .contains("together (linux) 10.2 s, but other programs failed than with cosched")
        );
        variants[1].runs[1].programs[0].exit = Some(cosched_core::Exit::Code(1));
        assert!(
            said(&variants).ends_with("was disturbed; programs failed."),
            "{}",
            said(&variants)
        );
    }
}
