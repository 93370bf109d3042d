//! Variants with options of their own: `--variant unguarded="faithful --no-guard"`.
//!
//! So one policy can be there several times, each time told something else. The words behind the
//! name are read by the definitions that `cosched run` has: what is an option of policies there is
//! one here. What is not said for a variant holds as it was said for all variants.

use clap::Parser;
use cosched_policy::Kind;

use crate::args::choices;
use crate::args::{BarrierArgs, HowArgs, MeasureArgs, PolicyArgs};
use crate::ui::failure::Failure;

/// The form of a variant with options.
const FORM: &str = "write NAME=\"POLICY OPTIONS\", such as unguarded=\"faithful --no-guard\"";
/// A name is the name of a folder, too, and a column's in tables.
const LONGEST_NAME: usize = 40;

/// A policy and its options, beyond those of all.
#[derive(Clone, Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
pub(super) struct OwnOptions {
    /// What decides.
    #[arg(value_parser = choices::policy())]
    pub(super) policy: Kind,
    #[command(flatten)]
    options: PolicyArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    waiting: BarrierArgs,
    /// All of it as words of a shell.
    #[arg(skip)]
    pub(super) words: String,
}

/// The name of a variant, and its options.
pub(super) fn read(text: &str) -> Result<(&str, OwnOptions), String> {
    let (name, line) = text.split_once('=').ok_or(FORM)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !begins || !name.chars().all(fits) || name.len() > LONGEST_NAME {
        return Err(format!(
            "'{name}' cannot be a name; a name has up to {LONGEST_NAME} letters, digits, '-' and \
             '_'; {FORM}"
        ));
    }
    let words = shell_words::split(line)
        .map_err(|_| format!("'{line}' has an unclosed quote: close it"))?;
    let own = OwnOptions::try_parse_from(&words).map_err(|error| {
        let message = error.to_string();
        // The first paragraph says what is wrong; what follows is how commands are used.
        let wrong: Vec<&str> = message.lines().take_while(|line| !line.is_empty()).collect();
        format!("{}; {FORM}", wrong.join(" ").trim_start_matches("error: "))
    })?;
    Ok((name, OwnOptions { words: shell_words::join(words), ..own }))
}

impl OwnOptions {
    /// Refuses an option that the policy does not support.
    pub(super) fn check_use(&self) -> Result<(), Failure> {
        let how = HowArgs { measure: self.measure.clone(), ..self.options.clone().into() };
        how.check_use(&[self.policy])
    }

    /// What it is told, where all are told this.
    pub(super) fn over(&self, all: &HowArgs) -> HowArgs {
        let PolicyArgs { placement, quantum, fill, slowdowns, max_frozen, goal, turns, fair } =
            self.options.clone();
        let MeasureArgs { interval, actuators, no_guard, relearn, quanta, shuffle, usual_class } =
            self.measure.clone();
        HowArgs {
            policy: PolicyArgs {
                placement: placement.or(all.policy.placement),
                quantum: quantum.or(all.policy.quantum),
                fill: fill || all.policy.fill,
                slowdowns: slowdowns.or_else(|| all.policy.slowdowns.clone()),
                max_frozen: max_frozen.or(all.policy.max_frozen),
                goal: goal.or(all.policy.goal),
                turns: turns.or(all.policy.turns),
                fair: fair.over(&all.policy.fair),
            },
            measure: MeasureArgs {
                interval: interval.or(all.measure.interval),
                actuators: actuators.or_else(|| all.measure.actuators.clone()),
                no_guard: no_guard || all.measure.no_guard,
                // What is known from earlier runs is of groups as they are for all.
                relearn: relearn || all.measure.relearn || shuffle.given().is_some(),
                quanta: quanta.or_else(|| all.measure.quanta.clone()),
                shuffle: shuffle.or(&all.measure.shuffle),
                usual_class: usual_class.or(all.measure.usual_class),
            },
            waiting: BarrierArgs { barrier: self.waiting.barrier.or(all.waiting.barrier) },
            ..all.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cosched_core::Actuator;
    use cosched_workload::Barrier;

    use super::*;
    use crate::experiment::Variant;

    fn all() -> HowArgs {
        let quantum = Some(Duration::from_millis(20));
        let interval = Some(Duration::from_millis(100));
        let measure = MeasureArgs { interval, ..MeasureArgs::default() };
        HowArgs { measure, ..PolicyArgs { quantum, ..PolicyArgs::default() }.into() }
    }

    #[test]
    fn a_variants_options_override_those_of_all_variants() {
        let variant = Variant::with_options("finer=gang --quantum 5ms --fill").unwrap();
        assert_eq!((variant.to_string().as_str(), variant.kind()), ("finer", Kind::Gang));
        let how = variant.how(&all());
        assert_eq!(how.policy.quantum, Some(Duration::from_millis(5)));
        assert!(how.policy.fill);
        assert_eq!(how.measure.interval, Some(Duration::from_millis(100)), "as for all");
        let how = Variant::with_options("fixed=faithful --no-guard --actuators batch")
            .unwrap()
            .how(&all());
        assert_eq!(how.measure.actuators, Some(vec![Actuator::Batch]));
        assert!(how.measure.no_guard && !all().measure.no_guard);
        let how = Variant::with_options("donating=linux --barrier donate").unwrap().how(&all());
        assert_eq!((how.waiting.barrier, all().waiting.barrier), (Some(Barrier::Donate), None));
        let plain = "gang".parse::<Variant>().unwrap();
        assert_eq!(plain.how(&all()).policy.quantum, Some(Duration::from_millis(20)));
    }

    #[test]
    fn its_words_are_quoted_as_a_shell_would_have_them() {
        let variant = Variant::with_options("a=  gang   --placement   'spread'").unwrap();
        assert_eq!(variant.words(), Some("gang --placement spread"));
        assert_eq!("gang".parse::<Variant>().unwrap().words(), None);
    }

    #[test]
    fn a_name_must_be_a_new_one_and_fit_a_folder() {
        for (text, said) in [
            ("gang", "write NAME="),
            ("gang=gang --fill", "'gang' is already the name of a variant"),
            ("linux-2=linux", "'linux-2' is already the name of a variant"),
            ("passive=linux", "'passive' is already the name of a variant"),
            ("=gang", "'' cannot be a name"),
            ("../a=gang", "'../a' cannot be a name"),
            ("-a=gang", "'-a' cannot be a name"),
            ("a b=gang", "'a b' cannot be a name"),
        ] {
            let error = Variant::with_options(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn what_no_policy_knows_is_refused_in_one_line() {
        for (text, said) in [
            ("a=gagn", "'gagn'"),
            ("a=", "required"),
            ("a=gang --quantum", "--quantum"),
            ("a=gang --quantum 5", "write a time with its unit"),
            ("a=gang --runs 3", "unexpected argument '--runs'"),
            ("a=gang --help", "unexpected argument '--help'"),
            ("a=gang 'x", "unclosed quote"),
        ] {
            let error = Variant::with_options(text).unwrap_err();
            assert!(error.contains(said) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn an_option_that_its_policy_has_no_use_for_names_the_variant() {
        let variant = Variant::with_options("slow=linux --quantum 5ms").unwrap();
        let Err(Failure::Input(error)) = variant.check_use() else { panic!("not refused") };
        assert!(error.starts_with("--variant slow: --quantum is for policies"), "{error}");
        assert!(Variant::with_options("slow=gang --quantum 5ms").unwrap().check_use().is_ok());
    }
}
