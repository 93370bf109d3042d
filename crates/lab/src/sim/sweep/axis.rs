//! The settings that a sweep varies: `key=a,b,c`.

use std::time::Duration;

use cosched_policy::{Kind, OptionGroup, Params, Placement};
use cosched_sim::Kernel;

use crate::how::set::SetTo;
use crate::sim::options::RunOptions;
use crate::sim::simulator::Scene;
use crate::ui::failure::{self, Failure};
use crate::values::{kernel, max_frozen, named, quantum};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) key: AxisKey,
    values: Vec<AxisValue>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisKey {
    Quantum,
    Policy,
    Placement,
    Kernel,
    Machine,
    Seed,
    MaxFrozen,
    Constant(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
enum AxisValue {
    Quantum(Duration),
    Policy(Kind),
    Placement(Placement),
    Kernel(Kernel),
    Machine(String),
    Seed(u64),
    MaxFrozen(Duration),
    Constant(SetTo),
}

impl AxisKey {
    /// All but the constants.
    const ALL: [AxisKey; 7] = [
        AxisKey::Quantum,
        AxisKey::Policy,
        AxisKey::Placement,
        AxisKey::Kernel,
        AxisKey::Machine,
        AxisKey::Seed,
        AxisKey::MaxFrozen,
    ];

    fn named(name: &str) -> Option<AxisKey> {
        let constant = || Params::default().list().into_iter().find(|param| param.name == name);
        let key = AxisKey::ALL.into_iter().find(|key| key.name() == name);
        key.or_else(|| constant().map(|param| AxisKey::Constant(param.name)))
    }

    /// As it is written.
    pub(super) fn name(self) -> &'static str {
        match self {
            AxisKey::Quantum => "quantum",
            AxisKey::Policy => "policy",
            AxisKey::Placement => "placement",
            AxisKey::Kernel => "kernel",
            AxisKey::Machine => "machine",
            AxisKey::Seed => "seed",
            AxisKey::MaxFrozen => "max-frozen",
            AxisKey::Constant(name) => name,
        }
    }

    /// Whether a policy supports it.
    fn is_for(self, kind: Kind) -> bool {
        match self {
            AxisKey::Constant(name) => kind.uses_constant(name),
            _ => OptionGroup::of(self.name()).is_none_or(|group| kind.takes(group)),
        }
    }

    /// The values. In a machine's words the two commas of `signal_nanos=1,2,3` do not divide, nor
    /// do those in parentheses.
    fn split(self, values: &str) -> Vec<&str> {
        let (mut all, mut from, mut depth) = (Vec::new(), 0, 0);
        for (at, sign) in values.char_indices() {
            let word = values[from..at].rsplit(char::is_whitespace).next().unwrap_or_default();
            let divides = self != AxisKey::Machine
                || depth == 0
                    && !(word.starts_with("signal_nanos=") && word.matches(',').count() < 2);
            match sign {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if divides => {
                    all.push(&values[from..at]);
                    from = at + 1;
                }
                _ => {}
            }
        }
        all.push(&values[from..]);
        all
    }

    fn read(self, text: &str) -> Result<AxisValue, String> {
        match self {
            AxisKey::Quantum => quantum(text).map(AxisValue::Quantum),
            AxisKey::Policy => named(text).map(AxisValue::Policy),
            AxisKey::Placement => named(text).map(AxisValue::Placement),
            AxisKey::Kernel => kernel(text).map(AxisValue::Kernel),
            AxisKey::Machine => Ok(AxisValue::Machine(text.to_owned())),
            AxisKey::Seed => {
                text.parse().map(AxisValue::Seed).map_err(|_| "write a whole number".to_owned())
            }
            AxisKey::MaxFrozen => max_frozen(text).map(AxisValue::MaxFrozen),
            AxisKey::Constant(name) => named(&format!("{name}={text}")).map(AxisValue::Constant),
        }
    }

    fn is_given(self, args: &RunOptions) -> bool {
        match self {
            AxisKey::Quantum => args.how.policy.quantum.is_some(),
            AxisKey::Policy => args.policy.is_some(),
            AxisKey::Placement => args.how.policy.placement.is_some(),
            AxisKey::Kernel => args.kernel.is_some(),
            AxisKey::Machine => args.machine.is_some(),
            AxisKey::Seed => args.seed.is_some(),
            AxisKey::MaxFrozen => args.how.policy.max_frozen.is_some(),
            AxisKey::Constant(name) => args.how.policy.set.value(name).is_some(),
        }
    }

    /// The value in a scene, as text; `None` where the policy does not support it.
    pub(super) fn of(self, scene: &Scene) -> Option<String> {
        if !self.is_for(scene.policy) {
            return None;
        }
        let time = |time: cosched_core::Nanos| {
            humantime::format_duration(Duration::from_nanos(time.0)).to_string()
        };
        Some(match self {
            AxisKey::Quantum => time(scene.how.options(scene.policy).quantum),
            AxisKey::Policy => scene.policy.to_string(),
            AxisKey::Placement => scene.how.placement().to_string(),
            AxisKey::Kernel => scene.kernel.name().to_owned(),
            AxisKey::Machine => scene.machine.clone(),
            AxisKey::Seed => scene.seed.to_string(),
            AxisKey::MaxFrozen => time(scene.how.max_frozen()),
            AxisKey::Constant(name) => scene.how.policy.set.value(name)?.to_owned(),
        })
    }
}

impl Axis {
    fn read(text: &str) -> Result<Axis, Failure> {
        let wrong = |what: String| Failure::Input(format!("--sweep {text}: {what}"));
        let keys = || {
            let keys = AxisKey::ALL.map(AxisKey::name).join(", ");
            format!("{keys}, and the constants of `cosched sim params`")
        };
        let Some((name, values)) = text.split_once('=') else {
            return Err(wrong(format!("write it as key=a,b,c; the keys are {}", keys())));
        };
        let key = AxisKey::named(name);
        let key =
            key.ok_or_else(|| wrong(format!("there is no key '{name}'; the keys are {}", keys())))?;
        let mut read: Vec<AxisValue> = Vec::new();
        for value in key.split(values) {
            let value = value.trim();
            let new = key.read(value).map_err(|error| wrong(format!("'{value}': {error}")))?;
            if value.is_empty() || read.contains(&new) {
                return Err(wrong(format!(
                    "'{value}': write every value once, separated by commas"
                )));
            }
            read.push(new);
        }
        Ok(Axis { key, values: read })
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// Gives the setting one of its values.
    pub(super) fn apply(&self, position: usize, given: &mut RunOptions) {
        match self.values[position].clone() {
            AxisValue::Quantum(quantum) => given.how.policy.quantum = Some(quantum),
            AxisValue::Policy(policy) => given.policy = Some(policy),
            AxisValue::Placement(placement) => given.how.policy.placement = Some(placement),
            AxisValue::Kernel(kernel) => given.kernel = Some(kernel),
            AxisValue::Machine(machine) => given.machine = Some(machine),
            AxisValue::Seed(seed) => given.seed = Some(seed),
            AxisValue::MaxFrozen(longest) => given.how.policy.max_frozen = Some(longest),
            AxisValue::Constant(set) => given.how.policy.set.put(set),
        }
    }
}

/// What is to be varied.
pub(super) fn axes(args: &RunOptions) -> Result<Vec<Axis>, Failure> {
    let axes: Vec<Axis> = failure::all(args.sweep.iter().map(|text| Axis::read(text)))?;
    failure::all(axes.iter().zip(&args.sweep).enumerate().map(|(at, (axis, text))| {
        let name = axis.key.name();
        if axes[..at].iter().any(|other| other.key == axis.key) {
            return Err(Failure::Input(format!(
                "--sweep {text}: {name} has a --sweep already; put all its values into one"
            )));
        }
        match axis.key.is_given(args) {
            false => Ok(()),
            true => Err(Failure::Input(format!(
                "--sweep {text}: --{name} is given as well; leave one of them out"
            ))),
        }
    }))
    .map(drop::<Vec<()>>)?;
    Ok(axes)
}

/// Settings that none of the policies has a use for are a misunderstanding.
pub(super) fn check_use(axes: &[Axis], kinds: &[Kind]) -> Result<(), Failure> {
    let is_used = |axis: &&Axis| kinds.iter().any(|kind| axis.key.is_for(*kind));
    let refused = |useless: &Axis| {
        let name = useless.key.name();
        let uses = Kind::ALL.into_iter().filter(|kind| useless.key.is_for(*kind)).map(Kind::name);
        Err(Failure::Input(format!(
            "--sweep {name}=...: is for policies that {} ({})",
            OptionGroup::of(name).map_or("use it", OptionGroup::what),
            uses.collect::<Vec<_>>().join(", ")
        )))
    };
    failure::all(axes.iter().filter(|axis| !is_used(axis)).map(refused)).map(drop::<Vec<()>>)
}

/// A scene by its settings.
pub(super) fn name(scene: &Scene) -> String {
    let part = |key: AxisKey| key.of(scene).map(|value| format!("{}={value}", key.name()));
    let constants = scene.how.policy.set.iter().map(|(name, _)| AxisKey::Constant(name));
    AxisKey::ALL.into_iter().chain(constants).filter_map(part).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commas_within_a_machine_in_words_do_not_divide() {
        let machines = |text: &str| Axis::read(&format!("machine={text}")).unwrap().values;
        let of = |machines: &[&str]| {
            machines.iter().map(|name| AxisValue::Machine((*name).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(machines("opteron-64,e5410-8"), of(&["opteron-64", "e5410-8"]));
        let words =
            ["core:4 signal_nanos=1,2,3", "core:8 signal_nanos=4,5,6 gigahertz=2", "core:2"];
        assert_eq!(machines(&words.join(",")), of(&words));
        let indexes = ["core:2(indexes=0,1) pu:2", "core:4"];
        assert_eq!(machines(&indexes.join(",")), of(&indexes));
        assert_eq!(Axis::read("seed=1,2,3").unwrap().len(), 3);
    }
}
