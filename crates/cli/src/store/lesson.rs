//! What a policy has tried out on a program, and what came of it.
//!
//! Whether another way to schedule its threads helps a program depends on the load, so on what runs beside it: a lesson is
//! kept per program *and company*. It is trusted for [`RUNS`] runs; then it is tried out anew, so that trials take
//! a tenth of the runs, and what was learnt by chance does not stay for ever.

use cosched_core::{Actuator, Experience};
use serde::{Deserialize, Serialize};

use super::{Key, LESSONS, Store, StoreError};

/// So many runs go by what earlier ones have shown.
const RUNS: u32 = 9;

/// What was learnt of one program beside the same others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lesson {
    in_force: Actuator,
    tried: Vec<Actuator>,
    /// How many runs have gone by it without trying anything.
    uses: u32,
}

/// Names a program among others, whatever their order.
#[derive(Serialize)]
struct Company<'a> {
    program: &'a str,
    beside: Vec<&'a str>,
}

impl Lesson {
    /// What a run makes of what was known before, having learnt this.
    pub(crate) fn after(before: Option<&Lesson>, known: Experience) -> Lesson {
        let gone_by = before.filter(|lesson| lesson.trusted() == known);
        let uses = gone_by.map_or(0, |lesson| lesson.uses + 1);
        Lesson { in_force: known.in_force(), tried: known.tried().collect(), uses }
    }

    fn experience(&self) -> Experience {
        Experience::new(self.in_force, &self.tried)
    }

    /// What the next run may go by.
    fn trusted(&self) -> Experience {
        if self.uses < RUNS { self.experience() } else { Experience::default() }
    }
}

impl Store {
    /// What earlier runs have shown of the program in this place, beside the others.
    pub(crate) fn experience(&self, programs: &[Key], place: usize) -> Experience {
        let lesson = self.lesson(&company(programs, place));
        lesson.map_or_else(Experience::default, |lesson| lesson.trusted())
    }

    /// Keeps what a run has shown of it.
    pub(crate) fn learn(
        &mut self,
        programs: &[Key],
        place: usize,
        known: Experience,
    ) -> Result<(), StoreError> {
        let key = company(programs, place);
        let lesson = Lesson::after(self.lesson(&key).as_ref(), known);
        let text = serde_json::to_string(&lesson).expect("it has no map, so it can be JSON");
        self.write(LESSONS, &key, &text)?;
        self.lessons.insert(key, text);
        Ok(())
    }

    /// One that cannot be understood, as those of a later cosched may be, is as good as none: the programs are tried out anew.
    fn lesson(&self, key: &str) -> Option<Lesson> {
        self.lessons.get(key).and_then(|text| serde_json::from_str(text).ok())
    }
}

fn company(programs: &[Key], place: usize) -> String {
    let others = programs.iter().enumerate().filter(|(other, _)| *other != place);
    let mut beside: Vec<&str> = others.map(|(_, key)| key.as_str()).collect();
    beside.sort_unstable();
    serde_json::to_string(&Company { program: programs[place].as_str(), beside })
        .expect("it has no map, so it can be JSON")
}

#[cfg(test)]
mod tests {
    use Actuator::{Batch, BatchSlice, None};

    use super::*;

    #[test]
    fn what_was_learnt_is_gone_by_for_some_runs_and_then_tried_anew() {
        let known = Experience::new(Batch, &[Batch, BatchSlice]);
        let mut lesson = Lesson::after(Option::None, known);
        for _ in 0..RUNS {
            assert_eq!(lesson.trusted(), known);
            lesson = Lesson::after(Some(&lesson), lesson.trusted());
        }
        assert!(lesson.trusted().is_empty());
        // Whatever comes of that is as good as new, the same as before, too.
        for found in [known, Experience::new(None, &[Batch])] {
            assert_eq!(Lesson::after(Some(&lesson), found).trusted(), found);
        }
    }
}
