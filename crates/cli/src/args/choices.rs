//! Values that are chosen from a list: help, man pages and completions show the same one that the
//! parser knows.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use cosched_core::Actuator;
use cosched_lab::sim::THIS;
use cosched_policy::advice::predicts;
use cosched_policy::{Goal, GroupBy, Kind, Placement, SortBy, Turns};
use cosched_sim::{Hardware, Kernel};
use cosched_workload::BarrierMode;

use crate::args::{self, named};

/// A policy, each with what it does.
pub(crate) fn policy() -> impl TypedValueParser<Value = Kind> {
    let known =
        Kind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.descriptor().description));
    PossibleValuesParser::new(known).try_map(|name| name.parse::<Kind>())
}

/// A policy with runs that can be predicted.
pub(crate) fn policy_of_advice() -> impl TypedValueParser<Value = Kind> {
    let can: Vec<&str> =
        Kind::ALL.into_iter().filter(|kind| predicts(*kind)).map(Kind::name).collect();
    let read = |name: &str| {
        let kind = named::<Kind>(name)?;
        let known = Kind::ALL.into_iter().filter(|kind| predicts(*kind)).map(Kind::name);
        let known = known.collect::<Vec<_>>().join(", ");
        let refusal = || format!("cosched cannot predict policy '{kind}'; choose from {known}");
        if predicts(kind) { Ok(kind) } else { Err(refusal()) }
    };
    Offered { read, values: can }
}

/// A policy for programs that keep their place; of the others it is told why they cannot.
pub(crate) fn policy_in_place() -> impl TypedValueParser<Value = Kind> {
    let can = Kind::ALL.into_iter().filter(|kind| kind.descriptor().attaches).map(Kind::name);
    Offered { read: named::<Kind>, values: can.collect() }
}

/// Values that completions offer, of more that can be read.
#[derive(Clone)]
pub(crate) struct Offered<T> {
    pub(crate) read: fn(&str) -> Result<T, String>,
    pub(crate) values: Vec<&'static str>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Offered<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.read.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.values.iter().map(PossibleValue::new)))
    }
}

/// What can be done to the threads of a program.
pub(crate) fn actuator() -> impl TypedValueParser<Value = Actuator> {
    PossibleValuesParser::new(Actuator::ALL.map(Actuator::name))
        .try_map(|name| name.parse::<Actuator>())
}

/// What CPUs of a group share.
pub(crate) fn group_by() -> impl TypedValueParser<Value = GroupBy> {
    PossibleValuesParser::new(GroupBy::ALL.map(GroupBy::name))
        .try_map(|name| name.parse::<GroupBy>())
}

/// What threads are sorted by.
pub(crate) fn sort_by() -> impl TypedValueParser<Value = SortBy> {
    PossibleValuesParser::new(SortBy::ALL.map(SortBy::name)).try_map(|name| name.parse::<SortBy>())
}

/// What is to be achieved before anything else.
pub(crate) fn goal() -> impl TypedValueParser<Value = Goal> {
    PossibleValuesParser::new(Goal::ALL.map(Goal::name)).try_map(|name| name.parse::<Goal>())
}

/// How programs take turns.
pub(crate) fn turns() -> impl TypedValueParser<Value = Turns> {
    PossibleValuesParser::new(Turns::ALL.map(Turns::name)).try_map(|name| name.parse::<Turns>())
}

/// Where the threads of a program go.
pub(crate) fn placement() -> impl TypedValueParser<Value = Placement> {
    PossibleValuesParser::new(Placement::ALL.map(Placement::name))
        .try_map(|name| name.parse::<Placement>())
}

/// How programs wait at barriers.
pub(crate) fn barrier() -> impl TypedValueParser<Value = BarrierMode> {
    PossibleValuesParser::new(BarrierMode::ALL.map(BarrierMode::name))
        .try_map(|name| name.parse::<BarrierMode>())
}

/// The kernel of a simulated machine.
pub(crate) fn kernel() -> impl TypedValueParser<Value = Kernel> {
    PossibleValuesParser::new(Kernel::NAMES).try_map(|name| args::kernel(&name))
}

/// A simulated machine, which need not be one of those that come along.
pub(crate) fn machine() -> impl TypedValueParser<Value = String> {
    Offered { read: named::<String>, values: Hardware::names().chain([THIS]).collect() }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::commands::Cli;

    /// What completions offer for an option.
    fn offered(command: &str, option: &str) -> Vec<String> {
        let cli = Cli::command();
        let mut arguments = cli.find_subcommand(command).unwrap().get_arguments();
        let argument = arguments.find(|argument| argument.get_id() == option).unwrap();
        let values = argument.get_possible_values();
        values.iter().map(|value| value.get_name().to_owned()).collect()
    }

    #[test]
    fn completions_offer_only_what_a_command_takes() {
        assert_eq!(offered("exec", "policy"), ["linux", "faithful", "shuffling"]);
        assert_eq!(offered("attach", "policy"), offered("exec", "policy"));
        for known in ["gang", "linux", "split"] {
            assert!(offered("compare", "policies").contains(&known.to_owned()), "{known}");
        }
        for command in ["sim", "compare"] {
            let machines = offered(command, "machine");
            assert!(machines.contains(&"this".to_owned()), "{machines:?}");
            assert!(machines.contains(&"opteron-64".to_owned()), "{machines:?}");
        }
    }

    #[test]
    fn what_is_not_offered_is_understood_all_the_same() {
        let words = ["cosched", "compare", "--policies", "linux,linux-2", "--machine", "core:4"];
        assert!(Cli::try_parse_from([&words[..], &["jobs.toml"]].concat()).is_ok());
        // That it cannot be had, and why, is told later.
        let words = ["cosched", "exec", "--policy", "gang", "--", "true"];
        assert!(Cli::try_parse_from(words).is_ok());
    }

    #[test]
    fn numbers_out_of_bounds_are_refused_with_their_bounds() {
        for (words, expected) in [
            (
                "sim jobs.toml --policy gang --machine this --seed -1",
                "from 0 to 18446744073709551615",
            ),
            ("compare --policies linux --runs x -- true", "write a whole number from 1 to"),
            ("compare --policies linux --machine this --seed -1", "write a whole number from 0"),
            ("profile --runs 1001 -- true", "write a whole number from 1 to 1000"),
            ("stat --count 0 --pid 1", "write a whole number from 1 to"),
            ("detach -1", "write a whole number from 1 to"),
            ("explain run --at -1", "a time in a run is 0 s or later"),
            ("run --policy gang --max-frozen 1us -- true", "choose from 1ms to a day"),
            (
                "sim jobs.toml --policy gang --machine this --max-frozen 1ns",
                "choose from 1ms to a day",
            ),
        ] {
            let words = ["cosched"].into_iter().chain(words.split_whitespace());
            let refusal = Cli::try_parse_from(words).unwrap_err().to_string();
            assert!(refusal.contains(expected) && !refusal.contains("tip:"), "{refusal}");
        }
    }
}
