//! The runs: every training program with the kernel's own slice and with each of the others, round
//! by round.
//!
//! All runs of a program in a round follow each other, so that what is compared happened close
//! together; each round begins with the next slice. A round that is not complete does not count.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use cosched_core::engine::outcome::Ended;
use cosched_core::{Nanos, Profile};
use cosched_policy::{Fixed, IntervalShares, Kind, TrainingTimes};
use cosched_workload::{ProgramSpec, Repeat, Workload};

use super::trainees::Trainee;
use crate::alone;
use crate::how::{How, PolicyChoices};
use crate::session::{Request, Session};
use crate::ui::failure::Failure;
use crate::ui::pace::{Pace, order};
use crate::ui::say;

/// A run is cut into so many intervals, of which the first does not count.
const INTERVALS: f64 = 4.0;
/// Shorter intervals would tell threads as idle that only wait for their turn.
const SHORTEST_INTERVAL: f64 = 0.05;

/// Where training programs are run.
pub(super) struct Lab<'a> {
    pub(super) session: &'a Session,
    pub(super) slices: &'a [Nanos],
    /// About how long a run is to take.
    pub(super) seconds: f64,
}

/// What was found of a training program.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) command: Vec<String>,
    pub(super) threads: Option<u16>,
    /// Under plain Linux: the means over all rounds.
    pub(super) lock_contention: f64,
    pub(super) miss_ratio: Option<f64>,
    /// The least and the largest scaling factor of a round.
    pub(super) factors: (f64, f64),
    pub(super) times: TrainingTimes,
}

/// One run.
struct Run {
    seconds: f64,
    found: Vec<IntervalShares>,
}

/// What a program did in a round.
struct Round {
    /// With the kernel's own slice, and then with each of the others.
    seconds: Vec<f64>,
    /// With the kernel's own slice.
    found: Vec<IntervalShares>,
}

impl Lab<'_> {
    /// Runs everything; tells how many rounds are complete, and how it ended.
    pub(super) fn train(
        &self,
        trainees: Vec<Trainee>,
        rounds: u16,
    ) -> Result<(Vec<Program>, usize, Ended), Failure> {
        let mut scaled = Vec::new();
        // What runs take beside the programs' own time.
        let mut around = 0.0;
        for trainee in &trainees {
            say(format_args!(
                "{} once, to find how much work takes {} s",
                trainee.spec.name, self.seconds
            ));
            let began = Instant::now();
            match self.run(&trainee.spec, None)? {
                Err(ended) => return Ok((Vec::new(), 0, ended)),
                Ok(run) => {
                    around += began.elapsed().as_secs_f64() - run.seconds;
                    scaled.push(trainee.scaled(run.seconds, self.seconds));
                }
            }
        }
        let round = (self.slices.len() + 1) as f64 * (scaled.len() as f64 * self.seconds + around);
        let all = Duration::from_secs((f64::from(rounds) * round).ceil() as u64);
        say(format_args!("that will take about {}", humantime::format_duration(all)));
        let mut notes: Vec<Vec<Round>> = scaled.iter().map(|_| Vec::new()).collect();
        let mut pace = Pace::new(scaled.len(), rounds, rounds.into());
        for round in 0..rounds {
            let mut made = Vec::new();
            for trainee in &scaled {
                pace.begin(round, &trainee.spec.name);
                match self.compare(trainee, round)? {
                    Err(ended) => return Ok((programs(scaled, notes), usize::from(round), ended)),
                    Ok(one) => made.push(one),
                }
            }
            notes.iter_mut().zip(made).for_each(|(notes, one)| notes.push(one));
        }
        Ok((programs(scaled, notes), rounds.into(), Ended::Complete))
    }

    /// One program in one round.
    fn compare(&self, trainee: &Trainee, round: u16) -> Result<Result<Round, Ended>, Failure> {
        let arms = self.slices.len() + 1;
        let (mut seconds, mut found) = (vec![0.0; arms], Vec::new());
        for arm in order(arms, round) {
            let slice = arm.checked_sub(1).map(|slice| self.slices[slice]);
            match self.run(&trainee.spec, slice)? {
                Err(ended) => return Ok(Err(ended)),
                Ok(run) => {
                    seconds[arm] = run.seconds;
                    if slice.is_none() {
                        found = run.found;
                    }
                }
            }
        }
        Ok(Ok(Round { seconds, found }))
    }

    fn run(&self, spec: &ProgramSpec, slice: Option<Nanos>) -> Result<Result<Run, Ended>, Failure> {
        let alone = ProgramSpec {
            start: Nanos::ZERO,
            repeat: Repeat::Times(1),
            group: None,
            ..spec.clone()
        };
        let outputs = crate::out::hidden()?;
        let (sender, receiver) = channel();
        let interval = (self.seconds / INTERVALS).max(SHORTEST_INTERVAL);
        let policy = Fixed::new(slice, Nanos((interval * 1e9) as u64), sender);
        let workload = Workload { programs: vec![alone] };
        let how = How::from(PolicyChoices::default());
        let profiles = [Profile::default()];
        let request = Request {
            out: Some(outputs.path()),
            ..Request::new(&workload, Kind::Linux, &how, &profiles)
        };
        let mut ran = self.session.execute_under(&request, Box::new(policy))?;
        if let Some(trouble) = ran.troubles.pop() {
            return Err(trouble);
        }
        if ran.ended != Ended::Complete {
            return Ok(Err(ran.ended));
        }
        let program = &ran.result.programs[0];
        match program.turnaround_seconds.filter(|_| ran.all_succeeded()) {
            Some(seconds) => Ok(Ok(Run { seconds, found: receiver.try_iter().collect() })),
            None => Err(alone::failed(spec, program.exit_status, outputs.path())),
        }
    }
}

/// What the rounds tell of each program; those that were never seen at work (in runs too short) are
/// left out.
fn programs(trainees: Vec<Trainee>, notes: Vec<Vec<Round>>) -> Vec<Program> {
    let program = |(trainee, rounds): (Trainee, Vec<Round>)| {
        let shares: Vec<(f64, Option<f64>)> =
            rounds.iter().filter_map(|round| means(&round.found)).collect();
        let Some((lock_contention, miss_ratio)) = mean_of(&shares) else {
            if !rounds.is_empty() {
                say(format_args!(
                    "{}: left out, because its runs are too short to see what its threads wait \
                     for; give more \
                     --seconds, or a larger --work",
                    trainee.spec.name
                ));
            }
            return None;
        };
        let factor = |(locks, misses): (f64, Option<f64>)| 1.0 - locks.max(misses.unwrap_or(0.0));
        let factors = shares.iter().map(|shares| factor(*shares));
        let range = factors.fold((1.0f64, 0.0f64), |(low, high), f| (low.min(f), high.max(f)));
        let arms = rounds.first().map_or(0, |round| round.seconds.len());
        let arm = |arm: usize| rounds.iter().map(|round| round.seconds[arm]).collect();
        Some(Program {
            command: trainee.spec.command,
            threads: trainee.spec.threads,
            lock_contention,
            miss_ratio,
            factors: range,
            times: TrainingTimes {
                name: trainee.spec.name,
                factor: factor((lock_contention, miss_ratio)),
                kernel: arm(0),
                with: (1..arms).map(arm).collect(),
            },
        })
    };
    trainees.into_iter().zip(notes).filter_map(program).collect()
}

/// The means over intervals.
fn means(found: &[IntervalShares]) -> Option<(f64, Option<f64>)> {
    let shares: Vec<(f64, Option<f64>)> =
        found.iter().map(|found| (found.lock_contention, found.miss_ratio)).collect();
    mean_of(&shares)
}

fn mean_of(shares: &[(f64, Option<f64>)]) -> Option<(f64, Option<f64>)> {
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let locks = mean(shares.iter().map(|(locks, _)| *locks).collect())?;
    Some((locks, mean(shares.iter().filter_map(|(_, misses)| *misses).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(lock_contention: f64, miss_ratio: Option<f64>) -> IntervalShares {
        IntervalShares { lock_contention, miss_ratio, profiled: false }
    }

    fn round(seconds: &[f64], found: Vec<IntervalShares>) -> Round {
        Round { seconds: seconds.to_vec(), found }
    }

    fn trainee(name: &str) -> Trainee {
        let commands = vec![vec![name.to_owned()]];
        let workload = Workload::from_commands(commands, "/tmp".as_ref()).unwrap();
        Trainee { spec: workload.programs[0].clone() }
    }

    #[test]
    fn the_scaling_factor_comes_from_means_over_all_intervals() {
        let rounds = vec![
            round(&[1.0, 2.0], vec![found(0.2, Some(0.5)), found(0.4, Some(0.7))]),
            round(&[3.0, 4.0], vec![found(0.5, Some(0.4))]),
        ];
        let program = &programs(vec![trainee("cg")], vec![rounds])[0];
        assert!((program.lock_contention - 0.4).abs() < 1e-9);
        assert!((program.times.factor - 0.5).abs() < 1e-9, "misses are the larger: {program:?}");
        assert!((program.factors.0 - 0.4).abs() < 1e-9 && (program.factors.1 - 0.5).abs() < 1e-9);
        assert_eq!(
            (&program.times.kernel[..], &program.times.with[..]),
            (&[1.0, 3.0][..], &[vec![2.0, 4.0]][..])
        );
    }

    #[test]
    fn programs_never_seen_at_work_are_left_out() {
        let unseen = vec![round(&[1.0], vec![])];
        let seen = vec![round(&[1.0], vec![found(0.0, None)])];
        let all = programs(vec![trainee("a"), trainee("b")], vec![unseen, seen]);
        assert_eq!(all.iter().map(|one| &one.times.name[..]).collect::<Vec<_>>(), ["b"]);
        assert_eq!((all[0].times.factor, all[0].miss_ratio), (1.0, None));
    }
}
