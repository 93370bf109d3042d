//! Values that are chosen from a list: help, man pages and completions show the same one that the
//! parser knows.

use std::error::Error;
use std::ffi::OsStr;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Arg, Command};
use cosched_lab::sim::THIS;
use cosched_linux::control::ext::SchedulerBackend;
use cosched_linux::control::run_cgroups::{FreezerBackend, PinningBackend};
use cosched_policy::Kind;
use cosched_sim::{Hardware, Kernel};

use crate::args::{self, named};

/// A value that is chosen by its name.
pub(crate) fn listed<T, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(all.map(name)).try_map(|name| name.parse::<T>())
}

/// A policy, each with what it does.
pub(crate) fn policy() -> impl TypedValueParser<Value = Kind> {
    let known = |kind: Kind| PossibleValue::new(kind.name()).help(kind.descriptor().description);
    Offered { read: named::<Kind>, values: Kind::ALL.map(known).into() }
}

pub(crate) fn freezer() -> impl TypedValueParser<Value = FreezerBackend> {
    use FreezerBackend::{CgroupV1, CgroupV2, Signals};
    described(
        FreezerBackend::name,
        [
            (CgroupV2, "cgroup.freeze, in a cgroup v2 that this user may write to"),
            (CgroupV1, "The freezer controller of cgroup v1"),
            (Signals, "SIGSTOP and SIGCONT; works without any rights"),
        ],
    )
}

pub(crate) fn pinning() -> impl TypedValueParser<Value = PinningBackend> {
    use PinningBackend::{Affinity, Cpuset};
    described(
        PinningBackend::name,
        [
            (Affinity, "The CPU mask of every thread; works without any rights"),
            (
                Cpuset,
                "The cpuset controller of either cgroup version; the kernel then refuses to bind \
                 threads to other CPUs",
            ),
        ],
    )
}

pub(crate) fn scheduler() -> impl TypedValueParser<Value = SchedulerBackend> {
    use SchedulerBackend::{Ext, Kernel};
    described(
        SchedulerBackend::name,
        [
            (Kernel, "The kernel's own"),
            (Ext, "cosched's own in the kernel; `cosched doctor --all` says whether it works here"),
        ],
    )
}

/// A value that is chosen by its name, each with what it means.
fn described<T: Copy + Send + Sync + 'static, const N: usize>(
    name: fn(T) -> &'static str,
    all: [(T, &'static str); N],
) -> impl TypedValueParser<Value = T> {
    let known = all.map(|(one, meaning)| PossibleValue::new(name(one)).help(meaning));
    PossibleValuesParser::new(known).try_map(move |chosen| {
        let named = all.into_iter().find(|(one, _)| name(*one) == chosen);
        named.map(|(one, _)| one).ok_or("there is no such value")
    })
}

/// A policy with runs that can be predicted; of the others it is told that they cannot.
pub(crate) fn policy_of_advice() -> impl TypedValueParser<Value = Kind> {
    Offered { read: named::<Kind>, values: Kind::predictable().map(PossibleValue::new).collect() }
}

/// A policy for programs that keep their place; of the others it is told why they cannot.
pub(crate) fn policy_in_place() -> impl TypedValueParser<Value = Kind> {
    let can = Kind::ALL.into_iter().filter(|kind| kind.descriptor().attaches).map(Kind::name);
    Offered { read: named::<Kind>, values: can.map(PossibleValue::new).collect() }
}

/// Values that completions offer, of more that can be read.
#[derive(Clone)]
pub(crate) struct Offered<T> {
    pub(crate) read: fn(&str) -> Result<T, String>,
    pub(crate) values: Vec<PossibleValue>,
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
        Some(Box::new(self.values.iter().cloned()))
    }
}

/// The kernel of a simulated machine.
pub(crate) fn kernel() -> impl TypedValueParser<Value = Kernel> {
    PossibleValuesParser::new(Kernel::NAMES).try_map(|name| args::kernel(&name))
}

/// A simulated machine, which need not be one of those that come along.
pub(crate) fn machine() -> impl TypedValueParser<Value = String> {
    let known = Hardware::names().chain([THIS]).map(PossibleValue::new);
    Offered { read: named::<String>, values: known.collect() }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};
    use cosched_policy::Kind;

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
        assert_eq!(offered("exec", "policy"), ["linux", "faithful", "shuffling", "balance"]);
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
    fn unknown_policies_are_refused_in_the_same_words() {
        let said = "there is no policy 'gagn' (did you mean 'gang'?); choose from linux, ";
        for line in ["run --policy", "exec --policy", "compare --policies", "sim params"] {
            let words = ["cosched"].into_iter().chain(line.split(' ')).chain(["gagn"]);
            let refusal = Cli::try_parse_from(words).unwrap_err().to_string();
            assert!(refusal.contains(said), "{refusal}");
        }
        let help = Cli::command().find_subcommand_mut("run").unwrap().render_long_help();
        assert!(help.to_string().contains(Kind::Gang.descriptor().description));
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
