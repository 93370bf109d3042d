//! Programs with a time limit are held back while the programs in turn fill the CPUs.
//!
//! *Problem.* Where a program keeps its turn until it ends, all others fill. A filler that is
//! behind `timeout` uses its time up while it gets no CPU, and is ended before its turn comes.
//!
//! *Idea.* A program with a time limit starts with its turn. But the program in turn may wait for
//! it, as a server waits for its client. Such a program in turn leaves CPUs idle, and idle CPUs
//! start the held program.
//!
//! *Algorithm.* A program with a time limit is not started while it has no turn. It starts as a
//! filler once enough CPUs for its threads are idle. At first, every program in turn counts with
//! its threads. Later its CPU time counts, and the time that its threads waited for a CPU:
//! otherwise processes outside the run would make it look idle. It is read every
//! [`Params::reading`], and a program is released only after [`Params::readings`] in a row. Fillers
//! with a time limit count like programs in turn, because they need their CPUs too. So held
//! programs start one by one, in the order of their arrival. If a turn lasts for
//! [`Params::longest`] without idle CPUs, one program is released all the same: the program in turn
//! may spin for it. A turn that its own time limit ends sooner cannot last that long. Programs of a
//! group are not held, because they need each other.
//!
//! *Costs.* A held program that could have used a few idle CPUs starts later.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cosched_core::{
    AtExpiry, Cause, Directive, Measure, Nanos, Plan, Program, ProgramId, ProgramState, Token,
    Turn, Wake, World,
};

use super::params::HeldParams as Params;

/// The wake-up at which CPU times are read. Tokens of other policies have smaller numbers.
const READING: Token = Token(200);

/// What is read of each program.
const MEASURES: [Measure; 1] = [Measure::CpuTime];

/// The programs that are held back, and what the others use.
#[derive(Debug)]
pub(crate) struct HeldPrograms {
    params: Params,
    /// In the order of their arrival.
    held: BTreeSet<(Nanos, ProgramId)>,
    /// The programs that need their CPUs, and whether each has its turn. They are measured.
    busy: BTreeMap<ProgramId, Turn>,
    /// How many CPUs `busy` left idle in the last readings. Empty after a change of `busy`.
    idle: VecDeque<f64>,
    /// When `busy` changed last.
    since: Nanos,
    /// A reading is due.
    is_timed: bool,
}

impl HeldPrograms {
    pub(crate) fn new(params: Params) -> HeldPrograms {
        HeldPrograms {
            params,
            held: BTreeSet::new(),
            busy: BTreeMap::new(),
            idle: VecDeque::new(),
            since: Nanos::ZERO,
            is_timed: false,
        }
    }

    pub(crate) fn holds(&self, id: ProgramId) -> bool {
        self.held.iter().any(|(_, held)| *held == id)
    }

    /// Holds programs back that a plan keeps from their turn, and returns those that start now as
    /// fillers. `busy` are the programs that have their turn or a time limit and run from now on.
    pub(crate) fn update(
        &mut self,
        causes: &[Cause],
        busy: BTreeMap<ProgramId, Turn>,
        world: &World<'_>,
        plan: &mut Plan,
    ) -> Vec<ProgramId> {
        self.held.retain(|(_, id)| world.program(*id).is_some() && !busy.contains_key(id));
        let waits = |(id, directive): &(ProgramId, Directive)| match directive {
            Directive::Freeze => world.program(*id).filter(|program| is_held(program)),
            _ => None,
        };
        let waiting = plan.programs.iter().filter_map(waits);
        self.held.extend(waiting.map(|program| (program.arrived, program.id)));
        if causes.contains(&Cause::Woke(READING)) {
            self.is_timed = false;
            self.read(world);
        }
        self.measure(if self.held.is_empty() { BTreeMap::new() } else { busy }, world, plan);
        let released = self.release(world);
        self.held.retain(|(_, id)| !released.contains(id));
        self.time(world, plan);
        released
    }

    /// Takes in what was read.
    fn read(&mut self, world: &World<'_>) {
        let samples = world.samples.iter().filter(|sample| sample.thread.is_none());
        let wanted: BTreeMap<ProgramId, f64> = samples
            .map(|sample| {
                let time = sample.on_cpu + sample.run_delay.unwrap_or_default();
                let length = sample.to.since(sample.from).as_secs_f64();
                (sample.program, time.as_secs_f64() / length.max(f64::MIN_POSITIVE))
            })
            .collect();
        let cpus = world.cpus.len() as f64;
        let present = self.busy.keys().filter_map(|id| world.program(*id));
        let used = present.map(|program| {
            wanted.get(&program.id).map_or(threads(program, world), |cpus_used| *cpus_used)
        });
        self.idle.push_back((cpus - used.sum::<f64>()).max(0.0));
        if self.idle.len() > self.params.readings {
            self.idle.pop_front();
        }
    }

    /// Measures these programs from now on.
    fn measure(&mut self, busy: BTreeMap<ProgramId, Turn>, world: &World<'_>, plan: &mut Plan) {
        if busy == self.busy {
            return;
        }
        for id in busy.keys().filter(|id| !self.busy.contains_key(id)) {
            plan.measure(*id, MEASURES, Nanos::NEVER);
        }
        let is_left = |id: &&ProgramId| !busy.contains_key(id) && world.program(**id).is_some();
        for id in self.busy.keys().filter(is_left) {
            plan.measure(*id, MEASURES, Nanos::ZERO);
        }
        (self.busy, self.since) = (busy, world.now);
        self.idle.clear();
        // The next interval begins now.
        self.is_timed &= self.held.is_empty();
    }

    /// The programs for which enough CPUs are idle, or one that was held for too long.
    fn release(&self, world: &World<'_>) -> Vec<ProgramId> {
        let present = || self.busy.keys().filter_map(|id| world.program(*id));
        let requested: f64 = present().map(|program| threads(program, world)).sum();
        let cpus = world.cpus.len() as f64;
        let is_read = self.idle.len() == self.params.readings;
        let least = self.idle.iter().copied().fold(cpus, f64::min);
        let (mut idle, part) =
            if is_read { (least, self.params.idle) } else { (cpus - requested, 1.0) };
        let mut released = Vec::new();
        let held = self.held.iter().filter_map(|(_, id)| world.program(*id));
        for program in held {
            let needed = threads(program, world);
            if idle >= part * needed {
                idle -= needed;
                released.push(program.id);
            }
        }
        let in_turn = present().filter(|program| self.busy[&program.id] == Turn::InTurn);
        let limit = in_turn.filter_map(|program| program.time_limit).max().unwrap_or_default();
        if released.is_empty() && world.now.since(self.since) >= limit.max(self.params.longest) {
            released.extend(self.held.first().map(|(_, id)| *id));
        }
        released
    }

    /// Requests the next reading as long as a program is held.
    fn time(&mut self, world: &World<'_>, plan: &mut Plan) {
        let is_needed = !self.held.is_empty();
        if is_needed != self.is_timed {
            self.is_timed = is_needed;
            let at = if is_needed { world.now + self.params.reading } else { Nanos::NEVER };
            plan.wake.push(Wake { token: READING, at, first: AtExpiry::Read });
        }
    }
}

/// Whether a program that has no turn is held back.
fn is_held(program: &Program) -> bool {
    program.state == ProgramState::New && program.time_limit.is_some() && program.group.is_none()
}

/// How many CPUs a program can fill.
fn threads(program: &Program, world: &World<'_>) -> f64 {
    usize::from(program.thread_count).clamp(1, world.cpus.len().max(1)) as f64
}

#[cfg(test)]
mod tests {
    use cosched_core::{GroupId, Sample, Settings};

    use super::*;
    use crate::common::testkit::{Lab, program};
    use crate::gangs::by_weight::ByWeightPolicy;
    use crate::gangs::fcfs::Fcfs;
    use Turn::{Filler, InTurn};

    const READINGS: Nanos = Nanos::from_millis(250);

    fn limited(slot: u16, threads: u16) -> Program {
        Program { time_limit: Some(Nanos::from_secs(8)), ..program(slot, threads) }
    }

    /// Programs on two CPUs, each with its turn until it ends.
    fn lab(programs: Vec<Program>) -> Lab<ByWeightPolicy> {
        let held = HeldPrograms::new(Params::default());
        Lab::new(ByWeightPolicy::holding(Box::new(Fcfs::default()), held), 2, programs)
    }

    /// The programs that the latest plan starts or gives another part.
    fn started(lab: &Lab<ByWeightPolicy>) -> Vec<(u16, Turn)> {
        let turn = |(id, directive): &(ProgramId, Directive)| match directive {
            Directive::Run(Settings { turn: Some(turn), .. }) => Some((id.slot, *turn)),
            _ => None,
        };
        let mut started: Vec<_> = lab.plan.programs.iter().filter_map(turn).collect();
        started.sort_by_key(|(slot, _)| *slot);
        started
    }

    /// The next reading: these programs used so many CPUs, and waited for so many.
    fn read(lab: &mut Lab<ByWeightPolicy>, used: &[(u16, f64, f64)]) -> Vec<(u16, Turn)> {
        let from = lab.scene.now;
        let time = |cpus: f64| Nanos((READINGS.0 as f64 * cpus) as u64);
        let sample = |(slot, cpus, waits): &(u16, f64, f64)| Sample {
            on_cpu: time(*cpus),
            run_delay: Some(time(*waits)),
            ..Sample::empty(ProgramId::first(*slot), from, from + READINGS)
        };
        lab.scene.samples = used.iter().map(sample).collect();
        lab.wake_reading();
        assert_eq!(lab.scene.now, from + READINGS);
        started(lab)
    }

    #[test]
    fn a_time_limit_begins_with_the_turn() {
        let mut lab = lab(vec![program(0, 2), limited(1, 2), program(2, 2), limited(3, 2)]);
        assert_eq!(started(&lab), [(0, InTurn), (2, Filler)]);
        for _ in 0..10 {
            assert_eq!(read(&mut lab, &[(0, 1.9, 0.0)]), []);
        }
        lab.exit(0);
        assert_eq!(started(&lab), [(1, InTurn)]);
        lab.exit(1);
        assert_eq!(started(&lab), [(2, InTurn)]);
        lab.exit(2);
        assert_eq!(started(&lab), [(3, InTurn)]);
        assert_eq!(lab.next_wake(), None, "no program is held");
        assert!(lab.plan.observe.iter().all(|observe| observe.period == Nanos::ZERO));
    }

    /// The program in turn may wait for a held one.
    #[test]
    fn idle_cpus_start_held_programs_one_by_one() {
        let mut lab = lab(vec![program(0, 2), limited(1, 2), limited(2, 2)]);
        assert_eq!(read(&mut lab, &[(0, 0.1, 0.0)]), []);
        assert_eq!(read(&mut lab, &[(0, 1.9, 0.0)]), [], "once is not enough");
        assert_eq!(read(&mut lab, &[(0, 0.1, 0.0)]), []);
        assert_eq!(read(&mut lab, &[(0, 1.0, 0.0)]), [(1, Filler)]);
        // The first one needs the CPUs now.
        for _ in 0..4 {
            assert_eq!(read(&mut lab, &[(0, 0.1, 0.0), (1, 0.4, 1.5)]), []);
        }
        assert_eq!(read(&mut lab, &[(0, 0.1, 0.0), (1, 0.1, 0.0)]), []);
        assert_eq!(read(&mut lab, &[(0, 0.1, 0.0), (1, 0.1, 0.0)]), [(2, Filler)]);
    }

    #[test]
    fn a_program_that_others_keep_from_cpus_is_not_idle() {
        let mut lab = lab(vec![program(0, 2), limited(1, 2)]);
        for _ in 0..4 {
            assert_eq!(read(&mut lab, &[(0, 0.3, 1.6)]), []);
        }
    }

    #[test]
    fn a_held_program_starts_at_once_if_it_fits() {
        let fits = lab(vec![program(0, 1), limited(1, 1), limited(2, 1)]);
        assert_eq!(started(&fits), [(0, InTurn), (1, Filler)]);
        let grouped = |slot| Program { group: Some(GroupId(1)), ..limited(slot, 2) };
        let grouped = lab(vec![program(0, 2), grouped(1), grouped(2)]);
        assert_eq!(started(&grouped), [(0, InTurn), (1, Filler), (2, Filler)]);
    }

    /// The program in turn may spin for a held one.
    #[test]
    fn a_long_turn_releases_one_held_program_at_a_time() {
        let longest = Params::default().longest;
        let released_after = |first: Program| {
            let mut lab = lab(vec![first, limited(1, 2), limited(2, 2)]);
            let mut times = Vec::new();
            while times.len() < 2 {
                let turns = read(&mut lab, &[(0, 2.0, 0.0), (1, 0.0, 2.0)]);
                times.extend(turns.iter().map(|(slot, _)| (*slot, lab.scene.now)));
            }
            times
        };
        assert_eq!(released_after(program(0, 2)), [(1, longest), (2, longest * 2 + READINGS)]);
        let slow = Program { time_limit: Some(longest * 3), ..program(0, 2) };
        assert_eq!(released_after(slow)[0], (1, longest * 3), "its own time limit ends its turn");
    }

    /// No program waits longer because a filler has a long time limit.
    #[test]
    fn time_limits_of_fillers_end_no_turn() {
        let longest = Params::default().longest;
        let filler = Program { time_limit: Some(longest * 3), ..limited(1, 2) };
        let mut lab = lab(vec![program(0, 2), filler, limited(2, 2)]);
        let mut times = Vec::new();
        while times.len() < 2 {
            let turns = read(&mut lab, &[(0, 2.0, 0.0), (1, 0.0, 2.0)]);
            times.extend(turns.iter().map(|(slot, _)| (*slot, lab.scene.now)));
        }
        assert_eq!(times, [(1, longest), (2, longest * 2 + READINGS)]);
    }

    #[test]
    fn programs_that_end_before_their_turn_are_forgotten() {
        let mut lab = lab(vec![program(0, 2), limited(1, 2)]);
        lab.exit(1);
        assert_eq!(lab.next_wake(), None);
        lab.arrive(limited(2, 2));
        assert_eq!(started(&lab), []);
        lab.exit(0);
        assert_eq!(started(&lab), [(2, InTurn)]);
    }
}
