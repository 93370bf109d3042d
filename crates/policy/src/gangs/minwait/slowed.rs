//! Programs' slowdowns: the goal `fair` gives turns by them.
//!
//! *Problem.* Equal turns make slowdowns alike only among programs that arrived together, are
//! equally long and gain equally much as fillers. A program of one second with five others of ten
//! seconds takes six times as long as alone, and the last of the others takes hardly longer than
//! all together.
//!
//! *Idea.* At every quantum the turn goes to the program with the largest slowdown, and not to the
//! one that has waited longest.
//!
//! *Algorithm.* In its turns a program makes as much progress as alone in this time. Between its
//! turns its work counts as the time that it would have taken in turn. Its work is the progress
//! that it reports, or else its CPU time outside the kernel. It is compared with a second of its
//! turns (before its first turn: with its CPU time alone, if that is known). The slowdown is the
//! time since the program's arrival over its progress. Where the solo time of every program is
//! known, the slowdown is the predicted one for a program that has the CPUs from now on. This is
//! the time since its arrival and what is left of its solo time, over its solo time. A short
//! program then does not wait for a long one that can make up for its wait.
//!
//! A first turn can be too short to tell a program's speed. So each program has a turn again after
//! some rounds, however little it seems to be slowed.
//!
//! *Costs.* A program that spins for its siblings between its turns has CPU time, and has made less
//! progress than is counted. The programs are read at the end of every quantum.
//!
//! *Source.* Ours. [`fair_progress`](crate::fair_progress) also compares progress with that alone.

use std::collections::BTreeMap;

use cosched_core::{Cause, Measure, Nanos, Plan, Program, ProgramId, Sample, World};

use super::WaitingUnit;
use crate::common::unit::Unit;
use crate::gangs::params::Params;

/// What is read of each program.
const MEASURES: [Measure; 3] = [Measure::CpuTime, Measure::UserTime, Measure::Progress];

/// The work of all programs so far.
#[derive(Debug)]
pub(super) struct Slowed {
    params: Params,
    each: BTreeMap<ProgramId, ProgramWork>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ProgramWork {
    /// The time of its last reading.
    until: Nanos,
    /// How long it had had a turn at the last reading.
    in_turn_for: Nanos,
    in_turn: IntervalWork,
    between: IntervalWork,
}

#[derive(Clone, Copy, Debug, Default)]
struct IntervalWork {
    seconds: f64,
    /// CPU time outside the kernel, seconds.
    cpu: f64,
    /// The progress that the program reported.
    progress: f64,
}

impl IntervalWork {
    fn add(&mut self, sample: &Sample) {
        self.seconds += sample.to.since(sample.from).as_secs_f64();
        self.cpu += sample.user_time.unwrap_or(sample.on_cpu).as_secs_f64();
        self.progress += sample.progress.unwrap_or_default() as f64;
    }
}

impl ProgramWork {
    fn add(&mut self, sample: &Sample, program: &Program, nearly_all: f64) {
        let length = sample.to.since(sample.from).as_secs_f64();
        let in_turn = program.ran.since(self.in_turn_for).as_secs_f64();
        if in_turn >= nearly_all * length {
            self.in_turn.add(sample);
        } else if in_turn <= (1.0 - nearly_all) * length {
            self.between.add(sample);
        }
        (self.until, self.in_turn_for) = (sample.to, program.ran);
    }

    /// Its progress between its turns, in seconds of its turns.
    fn filled(&self, program: &Program) -> f64 {
        let (turn, between) = (&self.in_turn, &self.between);
        let alone = program.profile.solo_cpu.zip(program.profile.solo);
        let seconds = if turn.progress > 0.0 {
            between.progress / turn.progress * turn.seconds
        } else if turn.cpu > 0.0 {
            between.cpu / turn.cpu * turn.seconds
        } else if let Some((cpu, solo)) = alone.filter(|(cpu, _)| *cpu > Nanos::ZERO) {
            between.cpu / cpu.as_secs_f64() * solo.as_secs_f64()
        } else {
            0.0
        };
        seconds.min(between.seconds)
    }
}

impl Slowed {
    pub(super) fn new(params: Params) -> Slowed {
        Slowed { params, each: BTreeMap::new() }
    }

    /// How long a program may wait for a turn among so many units, with quanta of this length.
    pub(super) fn longest_wait(&self, length: Nanos, units: usize) -> Nanos {
        length * (self.params.most_rounds * units as u64)
    }

    /// Begins to measure newcomers, takes in readings, and removes programs that are gone.
    pub(super) fn learn(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        self.each.retain(|id, _| world.program(*id).is_some());
        for cause in causes {
            if let Cause::Arrived(id) = cause {
                plan.measure(*id, MEASURES, Nanos::NEVER);
            }
        }
        for sample in world.samples.iter().filter(|sample| sample.thread.is_none()) {
            let Some(program) = world.program(sample.program) else { continue };
            let account = self.each.entry(program.id).or_default();
            if sample.to > account.until {
                account.add(sample, program, self.params.nearly_all);
            }
        }
    }

    /// Sets the slowdown of each of these.
    pub(super) fn judge(&self, queue: &mut [WaitingUnit<'_>], world: &World<'_>) {
        let programs = |unit: &Unit| -> Vec<&Program> {
            unit.ids().filter_map(|id| world.program(id)).collect()
        };
        let is_known = |program: &&Program| program.profile.solo.is_some();
        let known = queue.iter().all(|waits| programs(waits.unit).iter().all(is_known));
        for waits in queue {
            let each = programs(waits.unit);
            let each = each.iter().map(|program| self.slowdown(program, known, world.now));
            waits.slowdown = each.reduce(f64::max);
        }
    }

    fn slowdown(&self, program: &Program, known: bool, now: Nanos) -> f64 {
        let since_it_came = now.since(program.arrived).as_secs_f64();
        let account = self.each.get(&program.id);
        let filled = account.map_or(0.0, |account| account.filled(program));
        let come = program.ran.as_secs_f64() + filled;
        let solo = program.profile.solo.filter(|_| known);
        match solo.map(Nanos::as_secs_f64).filter(|solo| *solo > 0.0) {
            Some(solo) => (since_it_came + (solo - come).max(0.0)) / solo,
            None if come > 0.0 => since_it_came / come,
            None => f64::INFINITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::{ProgramState, Why};

    use super::*;
    use crate::common::testkit::{Lab, Scene, program};
    use crate::gangs::minwait::{Minwait, MinwaitReason};
    use crate::kind::Options;

    const SECOND: Nanos = Nanos::from_secs(1);

    /// Two programs of two threads after a second each of turns, and a reading of each.
    fn after_a_turn_each() -> (Slowed, Scene) {
        let mut scene = Scene::new(2, vec![program(0, 2), program(1, 2)]);
        let mut slowed = Slowed::new(Params::DEFAULT);
        for turn in 0..2 {
            scene.now = SECOND * (turn + 1);
            scene.programs[turn as usize].ran = SECOND;
            read(&mut slowed, &mut scene, turn as usize, 2.0, None);
        }
        (slowed, scene)
    }

    /// In the last second a program used this many seconds of CPU time, and reported this much
    /// progress.
    fn read(slowed: &mut Slowed, scene: &mut Scene, slot: usize, cpu: f64, progress: Option<u64>) {
        let (id, now) = (scene.programs[slot].id, scene.now);
        let sample = Sample::empty(id, now - SECOND, now);
        let user_time = Some(Nanos((cpu * 1e9) as u64));
        scene.samples = vec![Sample { user_time, progress, ..sample }];
        slowed.learn(&[Cause::Sampled(id)], &scene.world(), &mut Plan::default());
    }

    fn slowdown(slowed: &Slowed, scene: &Scene, slot: usize, known: bool) -> f64 {
        slowed.slowdown(&scene.programs[slot], known, scene.now)
    }

    /// Work without a turn counts as the time that it would have taken in turn.
    #[test]
    fn work_without_a_turn_counts_as_time_in_turn() {
        let (mut slowed, mut scene) = after_a_turn_each();
        assert_eq!(slowdown(&slowed, &scene, 0, false), 2.0);
        scene.now = SECOND * 3;
        read(&mut slowed, &mut scene, 0, 1.0, None);
        assert_eq!(slowdown(&slowed, &scene, 0, false), 2.0, "half a second's work");
        assert_eq!(slowdown(&slowed, &scene, 1, false), 3.0);
        scene.now = SECOND * 4;
        read(&mut slowed, &mut scene, 0, 100.0, None);
        assert_eq!(slowdown(&slowed, &scene, 0, false), 4.0 / 3.0, "no more than the time itself");
    }

    #[test]
    fn reported_progress_counts_instead_of_cpu_time() {
        let mut scene = Scene::new(2, vec![program(0, 2)]);
        let mut slowed = Slowed::new(Params::DEFAULT);
        (scene.now, scene.programs[0].ran) = (SECOND, SECOND);
        read(&mut slowed, &mut scene, 0, 2.0, Some(100));
        scene.now = SECOND * 2;
        read(&mut slowed, &mut scene, 0, 1.0, Some(0));
        assert_eq!(slowdown(&slowed, &scene, 0, false), 2.0, "it has spun");
    }

    #[test]
    fn with_known_times_alone_the_remaining_time_decides() {
        let (slowed, mut scene) = after_a_turn_each();
        scene.programs[0].profile.solo = Some(SECOND * 4);
        assert_eq!(slowdown(&slowed, &scene, 0, true), 5.0 / 4.0, "2 s ago it came, 3 s are left");
        assert_eq!(slowdown(&slowed, &scene, 1, true), 2.0, "unknown");
    }

    /// A short program has its turns before a long one, where solo times are known.
    #[test]
    fn a_short_program_comes_first_where_times_are_known() {
        let known = |slot, seconds| {
            let mut program = program(slot, 2);
            program.profile.solo = Some(Nanos::from_secs(seconds));
            program
        };
        let policy = Minwait::fair(&Options::default());
        let mut lab = Lab::new(policy, 2, vec![known(0, 100), known(1, 1)]);
        let mut turns = [0; 2];
        for _ in 0..10 {
            let running = |program: &Program| program.state == ProgramState::Running;
            turns[lab.scene.programs.iter().position(running).unwrap()] += 1;
            lab.wake();
        }
        assert!(turns[1] >= 8, "{turns:?}");
        let slowed =
            |why: &Why| matches!(why.read(), Some(MinwaitReason::SlowedMost { slowdown: Some(_) }));
        assert!(lab.plan.reasons.iter().any(|reason| slowed(&reason.why)), "{:?}", lab.plan);
    }

    /// A message tells users that weights have no effect under `fair`.
    #[test]
    fn weights_decide_nothing() {
        let with_weight = |slot, weight| {
            let mut program = program(slot, 2);
            program.profile.solo = Some(SECOND * 4);
            program.weight = weight;
            program
        };
        let policy = Minwait::fair(&Options::default());
        let mut lab = Lab::new(policy, 2, vec![with_weight(0, 1.0), with_weight(1, 3.0)]);
        let mut turns = [0; 2];
        for _ in 0..20 {
            let running = |program: &Program| program.state == ProgramState::Running;
            turns[lab.scene.programs.iter().position(running).unwrap()] += 1;
            let by_weight = lab.plan.reasons.iter().any(|reason| {
                matches!(
                    reason.why.read(),
                    Some(MinwaitReason::WaitedLongest { weight: Some(_), .. })
                )
            });
            assert!(!by_weight, "{:?}", lab.plan.reasons);
            lab.wake();
        }
        assert_eq!(turns, [10, 10]);
    }

    /// A program can seem to be slowed least because its first turn told a wrong speed.
    #[test]
    fn every_program_has_a_turn_again_after_some_rounds() {
        let known = |slot, seconds| {
            let mut program = program(slot, 2);
            program.profile.solo = Some(Nanos::from_secs(seconds));
            program
        };
        let policy = Minwait::fair(&Options::default());
        let mut lab = Lab::new(policy, 2, vec![known(0, 1_000_000), known(1, 1)]);
        // As where no program is paused.
        lab.scene.max_frozen = Nanos::NEVER;
        let mut since = 0;
        let mut longest = 0;
        for _ in 0..100 {
            let first = &lab.scene.programs[0];
            since = if first.state == ProgramState::Running { 0 } else { since + 1 };
            longest = longest.max(since);
            lab.wake();
        }
        assert!((10..=20).contains(&longest), "{longest} quanta");
    }
}
