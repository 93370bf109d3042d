//! Variants with options of their own: `--variant unguarded="faithful --no-guard"`.
//!
//! So one policy can be there several times, each time told something else. The words behind the
//! name are read by the definitions that `cosched run` has: what is an option of policies there is
//! one here. What is not said for a variant holds as it was said for all variants.

use clap::Parser;
use clap::builder::{PossibleValue, TypedValueParser};
use cosched_policy::Kind;
use cosched_workload::shell;

use crate::args::choices::{self, Offered};
use crate::args::{BarrierArgs, MeasureArgs, PolicyArgs, SchedulerArgs, named};
use crate::experiment::{Variant, VariantOptions};
use crate::how::{How, PolicyChoices};

/// The form of a variant with options.
const FORM: &str = "write NAME=\"POLICY OPTIONS\", such as unguarded=\"faithful --no-guard\"";
/// A name is the name of a folder, too, and a column's in tables.
const LONGEST_NAME: usize = 40;

/// A policy and its options, beyond those of all.
#[derive(Clone, Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct OwnOptions {
    /// What decides.
    #[arg(value_parser = choices::policy())]
    policy: Kind,
    #[command(flatten)]
    options: PolicyArgs,
    #[command(flatten)]
    measure: MeasureArgs,
    #[command(flatten)]
    waiting: BarrierArgs,
    #[command(flatten)]
    by: SchedulerArgs,
}

/// A variant on a command line; there are more than have a name.
pub(crate) fn variant() -> impl TypedValueParser<Value = Variant> {
    let policies = Kind::ALL.into_iter().map(Kind::name);
    let known = policies.chain(Variant::rivals()).map(PossibleValue::new);
    Offered { read: named::<Variant>, values: known.collect() }
}

/// Reads `NAME=POLICY OPTIONS`.
pub(crate) fn with_options(text: &str) -> Result<Variant, String> {
    let (name, own) = read(text)?;
    Variant::with_own(name, own)
}

/// The name of a variant, and its options.
fn read(text: &str) -> Result<(&str, VariantOptions), String> {
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
    let measure = own.measure.choices();
    let policy = PolicyChoices { scheduler: own.by.scheduler, ..own.options.choices() };
    let how = How { measure, waiting: own.waiting.barrier, ..policy.into() };
    Ok((name, VariantOptions { policy: own.policy, how, words: shell::join(words) }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cosched_core::Actuator;
    use cosched_workload::BarrierMode;

    use super::*;
    use crate::how::MeasureChoices;
    use crate::ui::failure::Failure;

    fn all() -> How {
        let quantum = Some(Duration::from_millis(20));
        let interval = Some(Duration::from_millis(100));
        let measure = MeasureChoices { interval, ..MeasureChoices::default() };
        How { measure, ..PolicyChoices { quantum, ..PolicyChoices::default() }.into() }
    }

    #[test]
    fn a_variants_options_override_those_of_all_variants() {
        let variant = with_options("finer=gang --quantum 5ms --fill").unwrap();
        assert_eq!((variant.to_string().as_str(), variant.kind()), ("finer", Kind::Gang));
        let how = variant.how(&all());
        assert_eq!(how.policy.quantum, Some(Duration::from_millis(5)));
        assert!(how.policy.fill);
        assert_eq!(how.measure.interval, Some(Duration::from_millis(100)), "as for all");
        let how = with_options("fixed=faithful --no-guard --actuators batch").unwrap().how(&all());
        assert_eq!(how.measure.actuators, Some(vec![Actuator::Batch]));
        assert!(how.measure.no_guard && !all().measure.no_guard);
        let how = with_options("donating=linux --barrier donate").unwrap().how(&all());
        assert_eq!((how.waiting, all().waiting), (Some(BarrierMode::Donate), None));
        let plain = "gang".parse::<Variant>().unwrap();
        assert_eq!(plain.how(&all()).policy.quantum, Some(Duration::from_millis(20)));
    }

    #[test]
    fn its_words_are_quoted_as_a_shell_would_have_them() {
        let variant = with_options("a=  gang   --placement   'spread'").unwrap();
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
            let error = with_options(text).unwrap_err();
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
            let error = with_options(text).unwrap_err();
            assert!(error.contains(said) && !error.contains('\n'), "{text}: {error}");
        }
    }

    #[test]
    fn an_option_that_its_policy_has_no_use_for_names_the_variant() {
        let variant = with_options("slow=linux --quantum 5ms").unwrap();
        let Err(Failure::Input(error)) = variant.check_use() else { panic!("not refused") };
        assert!(error.starts_with("--variant slow: --quantum is for policies"), "{error}");
        assert!(with_options("slow=gang --quantum 5ms").unwrap().check_use().is_ok());
    }
}
