//! A comparison in one sentence: what cosched took, and the other variants beside it.

#[cfg(test)]
mod tests;

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
