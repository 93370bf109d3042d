//! Which choices a policy or a command supports: an option without effect is refused, not ignored.

use cosched_policy::{Kind, Turns};

use super::{How, MeasureChoices};
use crate::ui::failure::Failure;

const FILL: &str = "--fill";
const GOAL: &str = "--goal";
const BARRIER: &str = "--barrier";

/// An option that was given: its name, the policies that support it, and what these policies do.
type Given = (&'static str, fn(Kind) -> bool, &'static str);

impl MeasureChoices {
    /// The first option that was given and that none of these policies supports.
    fn unused(&self, kinds: &[Kind]) -> Option<Given> {
        let slices = "measure programs and give slices";
        let shuffle = self.shuffle.given();
        let all: [(bool, Given); 6] = [
            (self.interval.is_some(), ("--interval", Kind::measures, "measure programs")),
            (self.actuators.is_some(), ("--actuators", Kind::gives_slices, slices)),
            (self.no_guard, ("--no-guard", Kind::measures, "measure programs")),
            (self.relearn, ("--relearn", Kind::measures, "measure programs")),
            (self.quanta.is_some(), ("--quanta", Kind::gives_slices, slices)),
            (
                shuffle.is_some(),
                (
                    shuffle.unwrap_or_default(),
                    Kind::shuffles,
                    "move threads between groups of CPUs",
                ),
            ),
        ];
        let used = |(_, used, _): &Given| kinds.iter().any(|kind| used(*kind));
        let mut given = all.into_iter().filter(|(given, _)| *given).map(|(_, option)| option);
        given.find(|option| !used(option))
    }

    /// Refuses what would be tried twice.
    fn check(&self) -> Result<(), Failure> {
        match self.actuators.as_deref().and_then(twice) {
            Some(actuator) => Err(Failure::Input(format!(
                "--actuators: {actuator} is there twice; name each once"
            ))),
            None => Ok(()),
        }
    }
}

/// What policies do that support an option of those that make gangs. With turns by weight they
/// pause no program, and bind none on some machines.
pub(crate) fn of_gangs(option: &str) -> &'static str {
    match option {
        "--turns" => "take turns",
        "--max-frozen" | "--freezer" => "can pause programs",
        "--placement" | "--pinning" => "can bind programs to CPUs",
        _ => "have quanta",
    }
}

pub(crate) fn useless(command: &str, option: &str) -> Failure {
    Failure::Input(format!("`cosched {command}` does not support {option}: leave it out"))
}

/// The first of a list that is in it before.
pub(crate) fn twice<T: PartialEq>(list: &[T]) -> Option<&T> {
    list.iter().enumerate().find(|(i, one)| list[..*i].contains(one)).map(|(_, one)| one)
}

impl How {
    /// Refuses an option that was given and that none of these policies supports.
    pub(crate) fn check_use(&self, kinds: &[Kind]) -> Result<(), Failure> {
        self.measure.check()?;
        let refuse = |option: &str, used: fn(Kind) -> bool, what: &str| {
            let asked = Kind::ALL.into_iter().filter(|kind| kinds.contains(kind));
            let asked: Vec<String> = asked.map(|kind| format!("'{kind}'")).collect();
            let uses = Kind::ALL.into_iter().filter(|kind| used(*kind)).map(Kind::name);
            let (asked, uses) = (asked.join(", "), uses.collect::<Vec<_>>().join(", "));
            Failure::Input(format!(
                "{option} is for policies that {what} ({uses}), not for {asked}: leave it out"
            ))
        };
        if let Some((option, used, what)) = self.measure.unused(kinds) {
            return Err(refuse(option, used, what));
        }
        if self.policy.turns == Some(Turns::Weight)
            && !kinds.iter().any(|kind| kind.takes_turns_by_weight())
        {
            let takes = Kind::takes_turns_by_weight;
            return Err(refuse("--turns weight", takes, "take turns by weight"));
        }
        let of_some = [Some(FILL), Some(GOAL), self.policy.fair.given()];
        match self.given().iter().find(|option| !of_some.contains(&Some(**option))) {
            Some(option) if !kinds.iter().any(|kind| kind.makes_gangs()) => {
                Err(refuse(option, Kind::makes_gangs, of_gangs(option)))
            }
            _ if self.policy.slowdowns.is_some()
                && !kinds.iter().any(|kind| kind.takes_slowdowns()) =>
            {
                Err(refuse("--slowdowns", Kind::takes_slowdowns, "predict slowdowns"))
            }
            _ if self.policy.fair.given().is_some()
                && !kinds.iter().any(|kind| kind.equalises()) =>
            {
                let option = self.policy.fair.given().unwrap_or_default();
                Err(refuse(option, Kind::equalises, "keep slowdowns equal"))
            }
            _ if self.policy.goal.is_some() && !kinds.iter().any(|kind| kind.chooses()) => {
                Err(refuse(GOAL, Kind::chooses, "choose by themselves"))
            }
            _ if self.policy.fill && !kinds.iter().any(|kind| kind.backfills()) => {
                Err(refuse(FILL, Kind::backfills, "give idle CPUs away"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses every option that was given, except those that the command supports.
    pub(crate) fn check_use_by(&self, command: &str, used: &[&str]) -> Result<(), Failure> {
        self.check_own_barriers(command)?;
        match self.given().into_iter().find(|option| !used.contains(option)) {
            Some(option) => Err(useless(command, option)),
            None => Ok(()),
        }
    }

    /// The first option given that only policies which measure or predict support.
    pub(crate) fn given_to_measure(&self) -> Option<&'static str> {
        let slowdowns = self.policy.slowdowns.is_some().then_some("--slowdowns");
        self.measure.unused(&[]).map(|(option, ..)| option).or(slowdowns)
    }

    /// Refuses `--barrier` for a command that does not support it.
    pub(crate) fn check_own_barriers(&self, command: &str) -> Result<(), Failure> {
        match self.waiting {
            None => Ok(()),
            Some(_) => Err(useless(command, BARRIER)),
        }
    }

    /// The options that were given; without --grace, which every command that runs programs
    /// supports, and --barrier, which does not depend on the policy.
    fn given(&self) -> Vec<&'static str> {
        let all = [
            ("--quantum", self.policy.quantum.is_some()),
            ("--max-frozen", self.policy.max_frozen.is_some()),
            ("--placement", self.policy.placement.is_some()),
            ("--freezer", self.freezer.is_some()),
            ("--pinning", self.pinning.is_some()),
            (FILL, self.policy.fill),
            (GOAL, self.policy.goal.is_some()),
            ("--turns", self.policy.turns.is_some()),
        ];
        let given = all.into_iter().filter(|(_, given)| *given).map(|(option, _)| option);
        given.chain(self.policy.fair.given()).collect()
    }
}
