//! What a policy has tried out on a program, and what came of it.
//!
//! Whether another way to schedule its threads helps a program depends on the load, so on what runs
//! beside it: a lesson is kept per program *and company*. What came of groups of threads also
//! depends on the CPUs between which they were divided, and on what they were sorted by: so of each
//! [`Division`] there is a lesson of its own. A lesson is trusted for [`RUNS`] runs; then it is
//! tried out anew, so that trials take a tenth of the runs, and what was learnt by chance does not
//! stay for ever.

use cosched_core::{Actuator, CpuSet, Experience};
use cosched_policy::SortBy;
use serde::{Deserialize, Serialize};

use super::{Key, LESSONS, Store, StoreError};

/// So many runs go by what earlier ones have shown.
const RUNS: u32 = 9;

/// What was learnt of one program beside the same others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lesson {
    in_force: Actuator,
    tried: Vec<Actuator>,
    /// Whether groups of its threads have helped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<bool>,
    /// How many runs have gone by it without trying anything.
    uses: u32,
}

/// How threads are divided into groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Division {
    between: Vec<String>,
    by: &'static str,
}

impl Division {
    /// Between these CPUs, sorted by this.
    pub(crate) fn new(sockets: &[CpuSet], sort: SortBy) -> Division {
        let between = sockets.iter().map(CpuSet::to_string).collect();
        Division { between, by: sort.name() }
    }
}

/// Names a program among others, whatever their order.
#[derive(Serialize)]
struct Company<'a> {
    program: &'a str,
    beside: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    division: Option<&'a Division>,
}

impl Lesson {
    /// What a run makes of what was known before. It knows this now; whether by trials of its own,
    /// or it went by the lesson.
    fn after(before: Option<&Lesson>, known: Experience, is_new: bool) -> Lesson {
        let gone_by = before.filter(|_| !is_new);
        let uses = gone_by.map_or(0, |lesson| lesson.uses + 1);
        let (in_force, tried) = (known.in_force(), known.tried().collect());
        Lesson { in_force, tried, groups: known.groups(), uses }
    }

    fn experience(&self) -> Experience {
        let known = Experience::new(self.in_force, &self.tried);
        self.groups.map_or(known, |helped| known.with_groups(helped))
    }

    /// What the next run may go by.
    fn trusted(&self) -> Experience {
        if self.uses < RUNS { self.experience() } else { Experience::default() }
    }
}

impl Store {
    /// What earlier runs have shown of the program in this place, beside the others: of ways to
    /// schedule its threads, and of groups if they are divided like this.
    pub(crate) fn experience(
        &self,
        programs: &[Key],
        place: usize,
        division: Option<&Division>,
    ) -> Experience {
        let known = |division| {
            let lesson = self.lesson(&company(programs, place, division));
            lesson.map_or_else(Experience::default, |lesson| lesson.trusted())
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
        known: Experience,
        is_new: bool,
    ) -> Result<(), StoreError> {
        let key = company(programs, place, division);
        let lesson = Lesson::after(self.lesson(&key).as_ref(), known, is_new);
        let text = serde_json::to_string(&lesson).expect("it has no map, so it can be JSON");
        self.write(LESSONS, &key, &text)?;
        self.lessons.insert(key, text);
        Ok(())
    }

    /// One that cannot be understood, as those of a later cosched may be, is as good as none: the
    /// programs are tried out anew.
    fn lesson(&self, key: &str) -> Option<Lesson> {
        self.lessons.get(key).and_then(|text| serde_json::from_str(text).ok())
    }
}

fn company(programs: &[Key], place: usize, division: Option<&Division>) -> String {
    let others = programs.iter().enumerate().filter(|(other, _)| *other != place);
    let mut beside: Vec<&str> = others.map(|(_, key)| key.as_str()).collect();
    beside.sort_unstable();
    serde_json::to_string(&Company { program: programs[place].as_str(), beside, division })
        .expect("it has no map, so it can be JSON")
}

#[cfg(test)]
mod tests {
    use Actuator::{Batch, BatchSlice, None};

    use super::*;

    #[test]
    fn what_was_learnt_is_gone_by_for_some_runs_and_then_tried_anew() {
        for known in [
            Experience::new(Batch, &[Batch, BatchSlice]),
            Experience::default().with_groups(true),
            Experience::default().with_groups(false),
        ] {
            let mut lesson = Lesson::after(Option::None, known, true);
            for _ in 0..RUNS {
                assert_eq!(lesson.trusted(), known);
                lesson = Lesson::after(Some(&lesson), lesson.trusted(), false);
            }
            assert!(lesson.trusted().is_empty());
            // Whatever comes of that is as good as new, the same as before, too.
            for found in [known, Experience::new(None, &[Batch])] {
                assert_eq!(Lesson::after(Some(&lesson), found, true).trusted(), found);
            }
        }
    }
}
