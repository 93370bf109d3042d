//! Which choices a policy or a command supports: an option without effect is refused, not ignored.
//! The weights of a jobs file, which may be meant for other policies, too, are told.

use cosched_core::format::list;
use cosched_policy::{Kind, OptionGroup, Turns};

use cosched_workload::ProgramSpec;

use super::{How, MeasureChoices, Optional};
use crate::ui::failure::{self, Failure};

impl MeasureChoices {
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

/// The refusal of an option, without its dashes, that a command does not support.
pub fn useless(command: &str, option: &str) -> Failure {
    Failure::Input(format!("`cosched {command}` does not support --{option}: leave it out"))
}

/// The first of a list that is in it before.
pub fn twice<T: PartialEq>(list: &[T]) -> Option<&T> {
    list.iter().enumerate().find(|(i, one)| list[..*i].contains(one)).map(|(_, one)| one)
}

/// Refuses an option that none of these policies supports.
fn refuse(option: &str, kinds: &[Kind], supports: impl Fn(Kind) -> bool, what: &str) -> Failure {
    let asked = Kind::ALL.into_iter().filter(|kind| kinds.contains(kind));
    let asked: Vec<String> = asked.map(|kind| format!("'{kind}'")).collect();
    let uses = Kind::ALL.into_iter().filter(|kind| supports(*kind)).map(Kind::name);
    let (asked, uses) = (asked.join(", "), uses.collect::<Vec<_>>().join(", "));
    Failure::Input(format!(
        "--{option} is for policies that {what} ({uses}), not for {asked}: leave it out"
    ))
}

/// What is said of weights that have no effect in any of these runs. `None`: they have one, or all
/// are equal.
pub fn unused_weights<'a>(
    programs: &[ProgramSpec],
    runs: impl IntoIterator<Item = (Kind, &'a How)>,
) -> Option<String> {
    let uses = |(kind, how): (Kind, &How)| {
        let ignored_by_goal = kind.takes(OptionGroup::Goal) && !how.goal().uses_weights();
        kind.descriptor().weights && !ignored_by_goal
    };
    let differ = programs.windows(2).any(|two| two[0].weight != two[1].weight);
    let runs: Vec<(Kind, &How)> = runs.into_iter().collect();
    if !differ || runs.iter().any(|run| uses(*run)) {
        return None;
    }
    let mut names: Vec<String> = Vec::new();
    for (kind, how) in runs {
        let name = match kind.descriptor().weights {
            true => format!("the goal {}", how.goal()),
            false => format!("the policy {kind}"),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Some(format!("the weights of the programs have no effect with {}", list(&names)))
}

/// What is said of policies that choose the threads of malleable programs, where there are none.
pub fn without_malleable(kinds: &[Kind], has_malleable: bool) -> Option<String> {
    let idle = kinds.iter().filter(|kind| kind.descriptor().limits_threads);
    let mut names: Vec<&str> = idle.map(|kind| kind.name()).collect();
    names.dedup();
    let base = |name: &&str| name.rsplit('-').next().unwrap_or(name).to_owned();
    (!names.is_empty() && !has_malleable).then(|| {
        format!(
            "no program is malleable, so {} will schedule as {} would",
            list(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()),
            list(&names.iter().map(base).collect::<Vec<_>>())
        )
    })
}

impl How {
    /// Refuses options that were given and that none of these policies supports.
    ///
    /// # Errors
    /// When such options were given, or an actuator is there twice: all of these.
    pub fn check_use(&self, kinds: &[Kind]) -> Result<(), Failure> {
        let checks = [self.measure.check(), self.check_quantum(kinds), self.check_turns(kinds)];
        let options = self.given().map(|option| self.check_option(option, kinds));
        let checks = checks.into_iter().chain(self.check_constants(kinds)).chain(options);
        failure::all(checks).map(drop)
    }

    /// Refuses turns by weight where none of these policies can take them.
    fn check_turns(&self, kinds: &[Kind]) -> Result<(), Failure> {
        let by_weight = |kind: Kind| kind.descriptor().by_weight;
        if self.policy.turns == Some(Turns::Weight) && !kinds.iter().any(|kind| by_weight(*kind)) {
            return Err(refuse("turns weight", kinds, by_weight, "take turns by weight"));
        }
        Ok(())
    }

    /// Refuses an option that none of these policies supports, or that has no effect with the
    /// others.
    fn check_option(&self, option: &str, kinds: &[Kind]) -> Result<(), Failure> {
        let Some(group) = OptionGroup::of(option) else { return Ok(()) };
        if !kinds.iter().any(|kind| kind.takes(group)) {
            return Err(refuse(option, kinds, |kind| kind.takes(group), group.what()));
        }
        let mut takers = kinds.iter().filter(|kind| kind.takes(group));
        let pauses_none = self.policy.turns == Some(Turns::Weight)
            && takers.all(|kind| kind.descriptor().by_weight);
        match pauses_none && group == OptionGroup::Pauses {
            true => Err(Failure::Input(format!(
                "--{option} has no effect with --turns weight, which pauses no program: leave \
                 it out, or use --turns freeze, which pauses programs"
            ))),
            false => Ok(()),
        }
    }

    /// Refuses a quantum that the goal of all these policies leaves without effect.
    fn check_quantum(&self, kinds: &[Kind]) -> Result<(), Failure> {
        let (Some(quantum), Some(goal)) = (self.policy.quantum, self.policy.goal) else {
            return Ok(());
        };
        let mut uses = kinds.iter().filter(|kind| kind.takes(OptionGroup::Quantum));
        match goal.ignores(quantum.into()) {
            Some(why) if uses.all(|kind| kind.takes(OptionGroup::Goal)) => {
                Err(Failure::Input(format!(
                    "--quantum has no effect with --goal {goal}, which {why}: leave it out, or \
                     choose another goal"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses `--set` for a command that runs programs on this machine: constants are tried out in
    /// simulations only.
    ///
    /// # Errors
    /// When `--set` was given.
    pub fn check_no_constants(&self, command: &str) -> Result<(), Failure> {
        match self.policy.set.is_given() {
            false => Ok(()),
            true => Err(Failure::Input(format!(
                "`cosched {command}` does not support --set: constants of policies can be set in \
                 simulations only; leave it out, or use `cosched sim`"
            ))),
        }
    }

    /// Refuses each constant that was set and that none of these policies uses.
    fn check_constants(&self, kinds: &[Kind]) -> impl Iterator<Item = Result<(), Failure>> {
        let unused = |(name, _): &(&str, &str)| !kinds.iter().any(|kind| kind.uses_constant(name));
        self.policy.set.iter().filter(unused).map(|(name, _)| {
            let option = format!("set {name}");
            Err(refuse(&option, kinds, |kind| kind.uses_constant(name), "use this constant"))
        })
    }

    /// Refuses every option that was given, except those that the command supports. All are named
    /// without their dashes.
    ///
    /// # Errors
    /// When options were given that the command does not support: all of these.
    pub fn check_use_by(&self, command: &str, used: &[&str]) -> Result<(), Failure> {
        let unused = self.given().filter(|option| !used.contains(option));
        let refused = unused.map(|option| Err(useless(command, option)));
        failure::all([self.check_own_barriers(command)].into_iter().chain(refused)).map(drop)
    }

    /// Refuses `--barrier` for a command that does not support it.
    ///
    /// # Errors
    /// When `--barrier` was given.
    pub fn check_own_barriers(&self, command: &str) -> Result<(), Failure> {
        match self.waiting {
            None => Ok(()),
            Some(_) => Err(useless(command, "barrier")),
        }
    }

    /// The options that were given, without their dashes.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        self.each().filter(|(_, choice)| choice.is_given()).map(|(option, _)| option)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cosched_policy::Goal;
    use cosched_workload::Workload;

    use super::*;
    use crate::how::PolicyChoices;

    #[test]
    fn a_quantum_that_a_goal_ignores_is_refused() {
        let check = |goal, milliseconds, kinds: &[Kind]| {
            let quantum = Some(Duration::from_millis(milliseconds));
            let choices = PolicyChoices { quantum, goal, ..PolicyChoices::default() };
            How::from(choices).check_use(kinds).err().map(|failure| failure.text().to_owned())
        };
        let text = check(Some(Goal::Throughput), 50, &[Kind::Turns]).unwrap();
        assert!(text.contains("the turn until it ends"), "{text}");
        assert!(check(Some(Goal::Responsive), 200, &[Kind::Linux, Kind::Turns]).is_some());
        for (goal, milliseconds, kinds) in [
            (Some(Goal::Responsive), 10, &[Kind::Turns][..]),
            (Some(Goal::Fair), 200, &[Kind::Turns]),
            (Some(Goal::Throughput), 200, &[Kind::Turns, Kind::Gang]),
            (None, 200, &[Kind::Turns]),
        ] {
            assert_eq!(check(goal, milliseconds, kinds), None);
        }
    }

    #[test]
    fn policies_for_malleable_programs_say_that_none_is() {
        let kinds = [Kind::Turns, Kind::AdaptiveGreedy];
        let note = without_malleable(&kinds, false).unwrap();
        let expected = "no program is malleable, so adaptive-greedy will schedule as greedy would";
        assert_eq!(note, expected);
        assert_eq!(without_malleable(&kinds, true), None);
        assert_eq!(without_malleable(&[Kind::Greedy], false), None);
    }

    #[test]
    fn weights_without_effect_are_told() {
        let note = |weights: [f64; 2], runs: &[(Kind, Option<Goal>)]| {
            let text = weights
                .map(|weight| format!("[[program]]\ncommand = ['a']\nweight = {weight:?}\n"));
            let workload = Workload::parse(&text.concat(), "/tmp/jobs.toml".as_ref()).unwrap();
            let of = |goal| How::from(PolicyChoices { goal, ..PolicyChoices::default() });
            let runs: Vec<(Kind, How)> =
                runs.iter().map(|(kind, goal)| (*kind, of(*goal))).collect();
            unused_weights(&workload.programs, runs.iter().map(|(kind, how)| (*kind, how)))
        };
        let (fcfs, by_order) = ((Kind::Fcfs, None), (Kind::Turns, Some(Goal::Throughput)));
        assert_eq!(
            note([1.0, 2.0], &[fcfs, by_order]).unwrap(),
            "the weights of the programs have no effect with the policy fcfs and the goal \
             throughput"
        );
        assert_eq!(note([2.0, 2.0], &[fcfs]), None);
        assert_eq!(note([1.0, 2.0], &[fcfs, (Kind::Turns, None)]), None);
        assert_eq!(note([1.0, 2.0], &[(Kind::Gang, Some(Goal::Throughput))]), None);
    }

    #[test]
    fn turns_by_weight_refuse_options_of_pauses() {
        let refusal = |turns, kinds: &[Kind]| {
            let max_frozen = Some(Duration::from_secs(2));
            let choices = PolicyChoices { max_frozen, turns, ..PolicyChoices::default() };
            How::from(choices).check_use(kinds).err().map(|failure| failure.text().to_owned())
        };
        for kinds in [&[Kind::Turns][..], &[Kind::Linux, Kind::Turns, Kind::Gang]] {
            let text = refusal(Some(Turns::Weight), kinds).unwrap();
            let expected = "--max-frozen has no effect with --turns weight, which pauses no";
            assert!(text.starts_with(expected) && text.contains("--turns freeze"), "{text}");
            for turns in [None, Some(Turns::Freeze)] {
                assert_eq!(refusal(turns, kinds), None);
            }
        }
        assert_eq!(refusal(Some(Turns::Weight), &[Kind::Turns, Kind::Auto]), None, "auto pauses");
    }
}
