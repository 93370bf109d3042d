//! Pipelines: stages with threads of their own, and bounded queues between them.
//!
//! Each item goes through all stages in their order. A stage's threads share the items evenly; if
//! there is a remainder, its first threads take one more each. A thread that finds the queue before
//! it empty, or the one after it full, waits as the program waits at barriers.

use serde::Deserialize;

use super::Op;
use super::file::ScriptWriter;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pipeline {
    /// How many items go through it, each time.
    items: Option<u32>,
    /// How many items fit between two stages.
    #[serde(default = "super::once")]
    capacity: u32,
    stages: Option<Vec<PipelineStage>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PipelineStage {
    /// How many of the program's threads work in this stage.
    threads: Option<u16>,
    /// Instructions for each item.
    instructions: Option<f64>,
}

impl Pipeline {
    /// Writes the script of each thread, from the first stage's on.
    pub(super) fn write(&self, writer: &mut ScriptWriter, mix: u16) {
        let Some((items, stages)) = self.checked(writer) else { return };
        let mut from = 0;
        for (number, (threads, instructions)) in stages.iter().copied().enumerate() {
            let before = writer.queues.len() as u16;
            let pop = (number > 0).then(|| Op::Pop(before - 1));
            let push = (number + 1 < stages.len()).then(|| {
                writer.queues.push(self.capacity);
                Op::Push(before)
            });
            let compute = Op::Compute { instructions, mix };
            let body: Vec<Op> = pop.into_iter().chain([compute]).chain(push).collect();
            let (each, over) = (items / u32::from(threads), items % u32::from(threads));
            let split = from + over as u16;
            let (more, last) = (each.saturating_add(1), from + threads);
            for (range, times) in [((from, split), more), ((split, last), each)] {
                if range.0 < range.1 && times > 0 {
                    stage_of(writer, range, &body, times);
                }
            }
            from += threads;
        }
    }

    /// The number of items, and of each stage its threads and its instructions for an item.
    /// `None`: the phase has a mistake.
    fn checked(&self, writer: &mut ScriptWriter) -> Option<(u32, Vec<(u16, f64)>)> {
        let mistakes = &mut writer.mistakes;
        let one = |x: f64| x >= 1.0;
        let what = "how many items go through the pipeline";
        let items = mistakes.required("phase.pipeline.items", self.items, what);
        if let Some(items) = items {
            mistakes.check("phase.pipeline.items", f64::from(items), "1 or more", one);
        }
        mistakes.check("phase.pipeline.capacity", f64::from(self.capacity), "1 or more", one);
        let what = "what each stage does: stages = [{ threads = 1, instructions = 1e6 }]";
        let given = mistakes.required("phase.pipeline.stages", self.stages.as_ref(), what);
        let mut stages = Vec::new();
        for (number, stage) in given.into_iter().flatten().enumerate() {
            mistakes.stage = Some(number);
            let (key, what) = ("phase.pipeline.stages.threads", "how many threads it has");
            let threads = mistakes.required(key, stage.threads, what);
            if let Some(threads) = threads {
                mistakes.check(key, f64::from(threads), "1 or more", one);
            }
            let key = "phase.pipeline.stages.instructions";
            let instructions =
                mistakes.required(key, stage.instructions, "how many each item takes there");
            if let Some(instructions) = instructions {
                mistakes
                    .check(key, instructions, "above 0 and at most 1e18", |x| x > 0.0 && x <= 1e18);
            }
            stages.extend(threads.zip(instructions));
        }
        mistakes.stage = None;
        let (all, own) =
            (stages.iter().map(|(threads, _)| u32::from(*threads)).sum::<u32>(), writer.threads);
        mistakes.check_fit(
            "phase.pipeline.stages.threads, in all stages together,",
            f64::from(all),
            "the number of the program's threads",
            |_| all == u32::from(own),
        );
        items.filter(|_| mistakes.is_phase_right()).map(|items| (items, stages))
    }
}

/// These threads execute this body this often.
fn stage_of(writer: &mut ScriptWriter, threads: (u16, u16), body: &[Op], times: u32) {
    let next = body.len() as u16 + u16::from(times > 1);
    writer.script.push(Op::Only { threads, next });
    let from = writer.script.len() as u32;
    writer.script.extend(body);
    writer.repeat(from, times, 2);
}

#[cfg(test)]
mod tests {
    use super::super::{Model, ModelError};
    use super::*;

    fn read(stages: &str, threads: u16) -> Result<Model, ModelError> {
        let text =
            format!("[[phase]]\npipeline = {{ items = 5, capacity = 3, stages = [{stages}] }}");
        Model::read(&text.parse().unwrap(), threads)
    }

    /// The first threads of a stage take the items that are left over.
    #[test]
    fn every_stage_of_a_pipeline_has_its_threads() {
        let stages = "{ threads = 1, instructions = 10 }, { threads = 2, instructions = 30 }";
        let model = read(stages, 3).unwrap();
        let compute = |instructions| Op::Compute { instructions, mix: 0 };
        let expected = [
            Op::Only { threads: (0, 1), next: 3 },
            compute(10.0),
            Op::Push(0),
            Op::Repeat { from: 1, times: 5, counter: 2 },
            Op::Only { threads: (1, 2), next: 3 },
            Op::Pop(0),
            compute(30.0),
            Op::Repeat { from: 5, times: 3, counter: 2 },
            Op::Only { threads: (2, 3), next: 3 },
            Op::Pop(0),
            compute(30.0),
            Op::Repeat { from: 9, times: 2, counter: 2 },
            Op::Barrier(0),
        ];
        assert_eq!(model.script, expected);
        assert_eq!(model.queues, [3]);
    }

    /// A pipeline needs as many threads as the program has, and valid numbers of instructions.
    #[test]
    fn a_pipeline_needs_exactly_the_programs_threads() {
        let error_of = |stages| read(stages, 3).unwrap_err().to_string();
        let message = error_of("{ threads = 2, instructions = 10 }");
        assert!(
            message.contains("is 2, but must be the number of the program's threads"),
            "{message}"
        );
        let message = error_of("{ threads = 3, instructions = 0 }");
        assert!(message.contains("stages.instructions is 0"), "{message}");
        let message = error_of("{ threads = 3, instructions = 1e300 }");
        assert!(message.contains("is 1e300, but must be above 0 and at most 1e18"), "{message}");
    }

    #[test]
    fn the_largest_number_of_items_is_accepted() {
        let text = "[[phase]]\npipeline = { items = 4294967295, stages = [{ threads = 1, \
                    instructions = 10 }] }";
        let model = Model::read(&text.parse().unwrap(), 1).unwrap();
        let times = model.script.iter().filter_map(|op| match op {
            Op::Repeat { times, .. } => Some(*times),
            _ => None,
        });
        assert_eq!(times.collect::<Vec<_>>(), [u32::MAX]);
    }
}
