//! `shortest-first`: one program at a time, the shortest first. An example of a whole policy.
//!
//! *Problem.* Under `fcfs` a short program waits for all long ones that came before it.
//!
//! *Idea.* The program with the shortest solo time runs first; programs without a known solo time
//! come last, in order of arrival. This gives the shortest mean turnaround where all come at once.
//!
//! *Algorithm.* When a program arrives or ends, and none runs, the shortest is started. None is
//! frozen. A start takes a moment to show in the world, so the policy remembers what it started.
//!
//! *To make it one that users can choose*: move the file to `crates/policy/src`, give it a
//! descriptor, and add its name in `kind.rs` and a line in `registry.rs`. Help, checks,
//! completions and reports follow from these.
//!
//! ```ignore
//! pub(crate) const SHORTEST_FIRST: Descriptor = Descriptor {
//!     reasons: &[read::<ShortestReason>],
//!     ..Descriptor::without_gangs("shortest-first", "one at a time, the shortest first", |_| {
//!         Ok(Box::new(ShortestFirst::default()))
//!     })
//! };
//! ```

use std::borrow::Cow;

use cosched_core::engine::{Entry, Limits, Setup};
use cosched_core::fake::Fake;
use cosched_core::{
    Cause, Engine, Nanos, Plan, Policy, Profile, Program, ProgramId, Settings, Step, Topology,
    Words, World,
};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
enum ShortestReason {
    Shortest { solo: Option<Nanos> },
}

impl Words for ShortestReason {
    fn in_general(&self) -> Cow<'static, str> {
        "it is the shortest program that is there".into()
    }
}

#[derive(Debug, Default)]
struct ShortestFirst {
    started: Option<ProgramId>,
}

impl Policy for ShortestFirst {
    fn decide(&mut self, _causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        // It has ended once the world no longer has it.
        self.started = self.started.filter(|id| world.program(*id).is_some());
        if self.started.is_some() {
            return;
        }
        let rank = |program: &&Program| {
            let solo = program.profile.solo.unwrap_or(Nanos::NEVER);
            (solo, program.arrived, program.id)
        };
        if let Some(shortest) = world.programs.iter().min_by_key(rank) {
            self.started = Some(shortest.id);
            plan.run(shortest.id, Settings::default());
            let solo = shortest.profile.solo;
            plan.because(Some(shortest.id), ShortestReason::Shortest { solo });
        }
    }
}

/// The real engine, on a scripted machine, carries the policy out.
#[test]
fn the_shortest_program_runs_first() {
    let solo = [300, 100, 200].map(Nanos::from_millis);
    let entry = |solo: &Nanos| {
        let profile = Profile { solo: Some(*solo), ..Profile::default() };
        Entry { profile, ..Entry::new(1) }
    };
    let topology = Topology::regular(1, 1, 1, 1, 1);
    let programs = solo.iter().map(entry).collect();
    let setup = Setup { cpus: topology.all(), topology, programs, limits: Limits::default() };
    let policy = Box::new(ShortestFirst::default());
    let (machine, outcome) = Engine::new(Fake::new(solo), policy, setup).run(&mut ());
    let started = machine.submitted.iter().filter_map(|(at, step)| match step {
        Step::Start(id, ..) => Some((id.slot, *at)),
        _ => None,
    });
    let at = Nanos::from_millis;
    assert_eq!(started.collect::<Vec<_>>(), [(1, at(0)), (2, at(100)), (0, at(300))]);
    let why = &outcome.unwrap().decisions[0].reasons[0].why;
    let shortest = ShortestReason::Shortest { solo: Some(solo[1]) };
    assert_eq!((why.code(), why.read()), ("shortest", Some(shortest)));
}
