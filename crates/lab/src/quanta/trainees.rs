//! The training programs: those of a workload file, each with several thread counts.

use cosched_workload::{ProgramSpec, Workload};

/// The option by which kernels are told how much to do.
const WORK: &str = "--work";

/// A training program with a thread count.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trainee {
    pub(super) spec: ProgramSpec,
}

/// Every program with every thread count; those that name theirs have that one only. `loads` are
/// threads per CPU.
pub(super) fn trainees(
    workload: &Workload,
    only: &[String],
    loads: &[u16],
    cpus: usize,
) -> Vec<Trainee> {
    let chosen = |spec: &&ProgramSpec| {
        only.is_empty() || only.iter().any(|part| spec.name.contains(part.as_str()))
    };
    let with_counts = |spec: &ProgramSpec| -> Vec<Trainee> {
        let counts = match spec.threads {
            Some(count) => vec![count],
            None => loads.iter().map(|load| load.saturating_mul(cpus as u16)).collect(),
        };
        let with = |count: u16| Trainee {
            spec: ProgramSpec {
                name: format!("{}-{count}t", spec.name),
                threads: Some(count),
                ..spec.clone()
            },
        };
        counts.into_iter().map(with).collect()
    };
    workload.programs.iter().filter(chosen).flat_map(with_counts).collect()
}

impl Trainee {
    /// The same with so much work that a run takes about `target` seconds, if one with the present
    /// work takes `taken`. A program that is not told its work stays as it is.
    pub(super) fn scaled(&self, taken: f64, target: f64) -> Trainee {
        let mut scaled = self.clone();
        let command = &mut scaled.spec.command;
        let number = command.iter().position(|word| word == WORK).map(|place| place + 1);
        let text = number.and_then(|place| command.get_mut(place));
        if let Some((text, work)) =
            text.and_then(|text| text.parse::<f64>().ok().map(|n| (text, n)))
        {
            *text = format!("{:.4}", (work * target / taken).max(0.0001));
        }
        scaled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        let text = "[[program]]\ncommand = ['cg', '--work', '2']\n\
                    [[program]]\ncommand = ['queue', 'fast']\nthreads = 3";
        Workload::parse(text, "/tmp/jobs.toml".as_ref()).unwrap()
    }

    /// A program that names its threads gets no other thread count.
    #[test]
    fn every_program_is_paired_with_every_load() {
        let names = |only: &[String], loads: &[u16]| -> Vec<(String, Option<u16>)> {
            trainees(&workload(), only, loads, 2)
                .into_iter()
                .map(|trainee| (trainee.spec.name, trainee.spec.threads))
                .collect()
        };
        let named = |name: &str, threads| (name.to_owned(), Some(threads));
        assert_eq!(
            names(&[], &[1, 4]),
            [named("cg-2t", 2), named("cg-8t", 8), named("queue-3t", 3)]
        );
        assert_eq!(names(&["que".to_owned()], &[1]), [named("queue-3t", 3)]);
        assert!(names(&["none".to_owned()], &[1]).is_empty());
    }

    #[test]
    fn work_is_scaled_so_that_a_run_is_as_long_as_asked() {
        let all = trainees(&workload(), &[], &[1], 2);
        assert_eq!(all[0].scaled(4.0, 1.0).spec.command, ["cg", "--work", "0.5000"]);
        assert_eq!(all[0].scaled(1e9, 0.1).spec.command[2], "0.0001", "never nothing at all");
        assert_eq!(all[1].scaled(4.0, 1.0), all[1], "what is not told its work stays as it is");
    }
}
