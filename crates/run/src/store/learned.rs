//! What a policy has tried out on a program, and what came of it.
//!
//! Whether another actuator helps a program depends on the load, so on what runs
//! with it: a setting is kept per program *and co-runners*. What came of groups of threads also
//! depends on the CPUs between which they were divided, and on what they were sorted by: so each
//! [`Division`] has a setting of its own. A setting is trusted for [`RUNS`] runs; then it is
//! tried out anew, so that trials take a tenth of the runs, and what was learnt by chance does not
//! stay for ever.

use cosched_core::{Actuator, CpuSet, Learned};
use cosched_policy::SortBy;
use serde::{Deserialize, Serialize};

use super::{Key, LEARNED, Store, StoreError, json};

/// So many runs go by what earlier ones have shown.
const RUNS: u32 = 9;

/// What was learnt of one program with the same co-runners.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LearnedSetting {
    in_force: Actuator,
    tried: Vec<Actuator>,
    /// Whether groups of its threads have helped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<bool>,
    /// How many runs have gone by it without trying anything.
    uses: u32,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Division {
    between: Vec<String>,
    by: &'static str,
}

impl Division {
    pub(crate) fn new(sockets: &[CpuSet], sort: SortBy) -> Division {
        let between = sockets.iter().map(CpuSet::to_string).collect();
        Division { between, by: sort.name() }
    }
}

/// Names a program among others, whatever their order.
#[derive(Serialize)]
struct CoRunnersKey<'a> {
    program: &'a str,
    #[serde(rename = "beside")]
    others: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    division: Option<&'a Division>,
}

impl LearnedSetting {
    /// What a run makes of what was known before. It knows this now; whether by trials of its own,
    /// or it used the learned setting.
    fn after(before: Option<&LearnedSetting>, known: Learned, is_new: bool) -> LearnedSetting {
        let gone_by = before.filter(|_| !is_new);
        let uses = gone_by.map_or(0, |learned_setting| learned_setting.uses + 1);
        let (in_force, tried) = (known.in_force(), known.tried().collect());
        LearnedSetting { in_force, tried, groups: known.groups(), uses }
    }

    fn learned(&self) -> Learned {
        let known = Learned::new(self.in_force, &self.tried);
        self.groups.map_or(known, |helped| known.with_groups(helped))
    }

    /// What the next run may go by.
    fn trusted(&self) -> Learned {
        if self.uses < RUNS { self.learned() } else { Learned::default() }
    }
}

impl Store {
    /// What earlier runs have shown of the program in this place, with these co-runners: of ways to
    /// schedule its threads, and of groups if they are divided like this.
    pub(crate) fn learned(
        &self,
        programs: &[Key],
        place: usize,
        division: Option<&Division>,
    ) -> Learned {
        let known = |division| {
            let setting = self.learned_setting(&co_runners(programs, place, division));
            setting.map_or_else(Learned::default, |setting| setting.trusted())
        };
        let helped = division.and_then(|division| known(Some(division)).groups());
        let of_actuators = known(None);
        helped.map_or(of_actuators, |helped| of_actuators.with_groups(helped))
    }

    /// Keeps what a run has shown of it, by trials if it is new; of groups if there is a division.
    pub(crate) fn learn(
        &mut self,
        programs: &[Key],
        place: usize,
        division: Option<&Division>,
        known: Learned,
        is_new: bool,
    ) -> Result<(), StoreError> {
        let key = co_runners(programs, place, division);
        let text = json(&LearnedSetting::after(self.learned_setting(&key).as_ref(), known, is_new));
        self.write(LEARNED, &key, &text)?;
        self.learned.insert(key, text);
        Ok(())
    }

    /// One that cannot be understood, as those of a later cosched may be, is as good as none: the
    /// programs are tried out anew.
    fn learned_setting(&self, key: &str) -> Option<LearnedSetting> {
        self.learned.get(key).and_then(|text| serde_json::from_str(text).ok())
    }
}

fn co_runners(programs: &[Key], place: usize, division: Option<&Division>) -> String {
    let others = programs.iter().enumerate().filter(|(other, _)| *other != place);
    let mut others: Vec<&str> = others.map(|(_, key)| key.as_str()).collect();
    others.sort_unstable();
    json(&CoRunnersKey { program: programs[place].as_str(), others, division })
}

#[cfg(test)]
mod tests {
    use Actuator::{Batch, BatchSlice, None};

    use super::*;

    #[test]
    fn what_was_learnt_is_gone_by_for_some_runs_and_then_tried_anew() {
        for known in [
            Learned::new(Batch, &[Batch, BatchSlice]),
            Learned::default().with_groups(true),
            Learned::default().with_groups(false),
        ] {
            let mut learned_setting = LearnedSetting::after(Option::None, known, true);
            for _ in 0..RUNS {
                assert_eq!(learned_setting.trusted(), known);
                learned_setting =
                    LearnedSetting::after(Some(&learned_setting), learned_setting.trusted(), false);
            }
            assert!(learned_setting.trusted().is_empty());
            // Whatever comes of that is as good as new, the same as before, too.
            for found in [known, Learned::new(None, &[Batch])] {
                assert_eq!(
                    LearnedSetting::after(Some(&learned_setting), found, true).trusted(),
                    found
                );
            }
        }
    }
}
