//! `shortest-first`: one program at a time, the shortest first. An example of a whole policy.
//!
//! *Problem.* Under `fcfs` a short program waits for all long ones that came before it.
//!
//! *Idea.* The program with the shortest solo time runs first; programs without a known solo time
//! come last, in order of arrival. This gives the shortest mean turnaround where all come at once.
//!
//! *Algorithm.* When a program arrives or ends, and none runs, the shortest is started, and its
//! group with it: these programs wait for each other. The others wait for their start, and are told
//! why. A start shows in the world a moment later, so the policy remembers it.
//!
//! *To make it one that users can choose*: `docs/dev/internals.md` has the steps. Its descriptor:
//!
//! ```ignore
//! pub(crate) const SHORTEST_FIRST: Descriptor = Descriptor {
//!     in_order: true,
//!     reasons: &[ReasonSet::of::<ShortestReason>()],
//!     ..Descriptor::without_gangs("shortest-first", "one at a time, the shortest first", |_| {
//!         Ok(Box::new(ShortestFirst::default()))
//!     })
//! };
//! ```

use cosched_core::engine::{Limits, ProgramSetup, Repeat, Setup};
use cosched_core::fake::Fake;
use cosched_core::{
    Cause, Engine, GroupId, Nanos, Plan, Policy, Profile, Program, ProgramId, Reason, Settings,
    Step, Topology, Wording, Words, World,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
enum ShortestReason {
    Shortest { solo: Option<Nanos> },
    Waits,
}

impl Words for ShortestReason {
    fn words(&self) -> Wording {
        match self {
            ShortestReason::Shortest { .. } => Wording::new(
                "it is the shortest program that is there, or in its group",
                "shortest",
            ),
            ShortestReason::Waits => Wording::new("it waits for a shorter program", "waits"),
        }
    }
}

#[derive(Debug, Default)]
struct ShortestFirst {
    started: Vec<ProgramId>,
    told: Vec<ProgramId>,
}

impl Policy for ShortestFirst {
    fn decide(&mut self, _causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        // A program leaves the world when its command ends.
        self.started.retain(|id| world.program(*id).is_some());
        self.told.retain(|id| world.program(*id).is_some());
        let waits = |program: &&Program| !self.started.contains(&program.id);
        let mut waiting: Vec<_> = world.programs.iter().filter(waits).collect();
        let solo = |program: &Program| program.profile.solo.unwrap_or(Nanos::NEVER);
        // A program that is repeated comes after those that have not run yet, or they never would.
        waiting.sort_by_key(|p| (p.id.generation, solo(p), p.arrived, p.id));
        for program in waiting {
            let joins = |id: &ProgramId| world.program(*id).and_then(|p| p.group) == program.group;
            let is_joined = program.group.is_some() && self.started.iter().any(joins);
            if self.started.is_empty() || is_joined {
                self.started.push(program.id);
                plan.run(program.id, Settings::default());
                let solo = program.profile.solo;
                plan.because(Some(program.id), ShortestReason::Shortest { solo });
            } else if !self.told.contains(&program.id) {
                self.told.push(program.id);
                plan.freeze(program.id);
                plan.because(Some(program.id), ShortestReason::Waits);
            }
        }
    }
}

const SOLO: [Nanos; 3] = [Nanos(300), Nanos(100), Nanos(200)];

/// The real engine, on a scripted machine, carries the policy out. Returns what started when, and
/// what the first decision says of each program.
fn run(groups: [Option<u16>; 3], repeat: Repeat) -> (Vec<(u16, u64)>, Vec<Reason>) {
    let entry = |(solo, group): (Nanos, Option<u16>)| {
        let profile = Profile { solo: Some(solo), ..Profile::default() };
        ProgramSetup { profile, repeat, group: group.map(GroupId), ..ProgramSetup::new(1) }
    };
    let topology = Topology::regular(1, 1, 1, 1, 1);
    let programs = SOLO.into_iter().zip(groups).map(entry).collect();
    let setup = Setup { cpus: topology.all(), topology, programs, limits: Limits::default() };
    let policy = Box::new(ShortestFirst::default());
    let (machine, outcome) = Engine::new(Fake::new(SOLO), policy, setup).run(&mut ());
    let started = machine.submitted.iter().filter_map(|(at, step)| match step {
        Step::Start(id, ..) => Some((id.slot, at.0)),
        _ => None,
    });
    (started.collect(), outcome.expect("the run ends").decisions[0].reasons.clone())
}

#[test]
fn the_shortest_program_runs_first() {
    let (started, reasons) = run([None; 3], Repeat::Times(1));
    assert_eq!(started, [(1, 0), (2, 100), (0, 300)]);
    let of = |reason: &Reason| (reason.program.map(|id| id.slot), reason.why.read());
    let shortest = ShortestReason::Shortest { solo: Some(SOLO[1]) };
    let waits = || Some(ShortestReason::Waits);
    let expected = [(Some(1), Some(shortest)), (Some(2), waits()), (Some(0), waits())];
    assert_eq!(reasons.iter().map(of).collect::<Vec<_>>(), expected);
}

#[test]
fn programs_of_one_group_start_together() {
    let (started, _) = run([Some(7), Some(7), None], Repeat::Times(1));
    assert_eq!(started, [(0, 0), (1, 0), (2, 300)]);
}

#[test]
fn repeated_programs_do_not_keep_others_from_running() {
    let (started, _) = run([None; 3], Repeat::UntilAllFinish);
    assert_eq!(started, [(1, 0), (2, 100), (0, 300)]);
}
