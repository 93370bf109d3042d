use cosched_core::engine::{Beat, Engine, Limits, ProgramSetup, Setup, Watch};
use cosched_core::fake::Fake;
use cosched_core::{
    Actuator, Cause, Nanos, Output, Plan, Policy, SchedulingChange, Settings, Token, Topology,
    World,
};
use cosched_workload::Repeat;

use super::*;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// All CPUs to one program after another, 100 ms each, with reasons.
#[derive(Default)]
struct InTurn(u64);

impl Policy for InTurn {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let gangs = world.programs.len() as u16;
        if gangs == 0 || causes.iter().all(|cause| matches!(cause, Cause::Settled { .. })) {
            return;
        }
        self.0 += 1;
        let gang = (self.0 % u64::from(gangs)) as u16;
        let length = MS(100);
        plan.begin(cosched_core::Quantum { round: self.0, gang, gangs, length });
        for (i, program) in world.programs.iter().enumerate() {
            if i == usize::from(gang) {
                plan.run(program.id, Settings::default());
                plan.because(Some(program.id), Why::new("in-gang"));
            } else {
                plan.freeze(program.id);
                plan.because(Some(program.id), other_gang(i as u16));
            }
        }
        plan.wake_at(world.now + length, Token(0));
    }
}

fn other_gang(gang: u16) -> Why {
    Why::new("other-gang").with("gang", gang)
}

/// A turn of 50 ms for the first program, and then all run.
struct OneTurn;

impl Policy for OneTurn {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let is_over = causes.iter().any(|cause| matches!(cause, Cause::Woke(_)));
        if !is_over && world.now > Nanos::ZERO {
            return;
        }
        for program in &world.programs[..if is_over { world.programs.len() } else { 1 }] {
            plan.run(program.id, Settings::default());
        }
        if !is_over {
            plan.begin(cosched_core::Quantum { round: 1, gang: 0, gangs: 2, length: MS(50) });
            plan.wake_at(MS(50), Token(0));
        }
    }
}

#[test]
fn a_quantum_ends_if_all_run_from_then_on() {
    let two = vec![ProgramSetup::new(1); 2];
    let seen = seen(&[MS(400); 2], two, OneTurn, MS(20), true);
    let of = |from: f64, to: f64| {
        let within = seen.iter().filter(move |it| it.at_seconds > from && it.at_seconds < to);
        within.map(|snapshot| snapshot.quantum.is_some()).collect::<Vec<bool>>()
    };
    assert!(of(0.0, 0.05).contains(&true) && !of(0.0, 0.05).contains(&false));
    assert!(of(0.15, 9.0).contains(&false) && !of(0.15, 9.0).contains(&true));
}

struct Looker {
    board: Board,
    looks: bool,
    seen: Vec<Snapshot>,
}

impl Watch for Looker {
    fn decided(&mut self, world: &World<'_>, plan: &Plan) {
        self.board.decided(world.now, plan);
    }

    fn beat(&mut self, beat: &Beat<'_>) {
        self.seen.push(self.board.snapshot(beat, 0.5));
    }

    fn looks(&self) -> bool {
        self.looks
    }
}

fn about(names: &[&str]) -> About {
    About {
        pid: 7,
        policy: "in-turn".into(),
        placement: None,
        quantum: Some(MS(100)),
        started_at: "2026-01-01T00:00:00Z".into(),
        names: names.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// Every snapshot of a run of programs that each need this long.
fn looked_at(work: &[Nanos], entries: Vec<ProgramSetup>, heartbeat: Nanos) -> Vec<Snapshot> {
    seen(work, entries, InTurn::default(), heartbeat, true)
}

fn seen(
    work: &[Nanos],
    entries: Vec<ProgramSetup>,
    policy: impl Policy,
    heartbeat: Nanos,
    looks: bool,
) -> Vec<Snapshot> {
    let topology = Topology::regular(1, 1, 1, 2, 1);
    let board = Board::new(about(&["a", "b", "c"][..work.len()]), entries.clone());
    let mut looker = Looker { board, looks, seen: Vec::new() };
    let limits = Limits { heartbeat, ..Limits::default() };
    let setup = Setup { cpus: topology.all(), topology, programs: entries, limits };
    let mut fake = Fake::new(work.iter().copied());
    (fake.freeze_latency, fake.thaw_latency) = (MS(2), MS(1));
    Engine::new(fake, policy, setup).run(&mut looker).1.unwrap();
    looker.seen
}

/// Two CPUs, of which each program has one as long as both are there.
#[test]
fn a_snapshot_has_the_share_and_the_lag_so_far() {
    let seen = looked_at(&[MS(300); 2], vec![ProgramSetup::new(2); 2], MS(20));
    let both = |it: &&Snapshot| it.programs.iter().all(|one| one.state != LiveState::Ended);
    let of_both: Vec<&Snapshot> = seen.iter().filter(both).collect();
    assert!(of_both.len() > 10);
    for snapshot in of_both {
        for program in &snapshot.programs {
            let share = program.share_seconds.unwrap();
            assert!((share - snapshot.at_seconds).abs() < 2e-6, "{share} {}", snapshot.at_seconds);
        }
    }
    let mut program = seen[5].programs[0].clone();
    (program.share_seconds, program.cpu_seconds) = (Some(0.75), Some(1.0));
    assert_eq!(program.lag_seconds(), Some(-0.25));
    program.cpu_seconds = None;
    assert_eq!(program.lag_seconds(), None);
}

/// The times between snapshots, in milliseconds.
fn gaps(seen: &[Snapshot]) -> Vec<f64> {
    let gap = |pair: &[Snapshot]| (pair[1].at_seconds - pair[0].at_seconds) * 1000.0;
    seen.windows(2).map(|pair| gap(pair).round()).collect()
}

fn two(work: u64) -> Vec<Snapshot> {
    looked_at(&[MS(work); 2], vec![ProgramSetup::new(2); 2], MS(50))
}

/// At every moment of a program's life, its times of running and waiting since its arrival add up.
#[test]
fn run_and_waiting_times_are_right_at_every_moment() {
    let seen = two(600);
    assert!(seen.len() > 8);
    for snapshot in &seen {
        for program in snapshot.programs.iter().filter(|program| program.state != LiveState::Ended)
        {
            let sum = program.running_seconds + program.waiting_seconds;
            assert!((sum - snapshot.at_seconds).abs() < 2e-6, "{program:?}");
        }
    }
}

#[test]
fn counters_never_fall() {
    let mut twice = ProgramSetup::new(2);
    twice.repeat = Repeat::Times(3);
    let seen = looked_at(&[MS(150), MS(700)], vec![twice, ProgramSetup::new(2)], MS(20));
    assert_eq!(seen.iter().map(|s| s.programs[0].generation).max(), Some(2));
    for pair in seen.windows(2) {
        for (before, after) in pair[0].programs.iter().zip(&pair[1].programs) {
            let falls = before.running_seconds > after.running_seconds
                || before.waiting_seconds > after.waiting_seconds
                || (before.turns, before.completions) > (after.turns, after.completions);
            assert!(!falls, "{before:?} {after:?}");
        }
        assert!(pair[0].switches <= pair[1].switches && pair[0].at_seconds < pair[1].at_seconds);
    }
}

#[test]
fn reasons_stand_with_the_programs_that_they_are_about() {
    for snapshot in &two(600) {
        let quantum = snapshot.quantum.unwrap();
        assert_eq!(quantum.length_seconds, Some(0.1));
        assert!(quantum.began_seconds <= snapshot.at_seconds);
        if snapshot.programs.iter().any(|program| program.state == LiveState::Ended) {
            continue;
        }
        for (i, program) in snapshot.programs.iter().enumerate() {
            let gang = i as u16;
            let in_gang = gang == quantum.gang;
            let why = if in_gang { Why::new("in-gang") } else { other_gang(gang) };
            assert_eq!(program.why, Some(why));
        }
    }
}

/// Programs that have not arrived and programs that have ended are in the snapshot.
#[test]
fn waiting_and_ended_programs_are_listed_too() {
    let late = ProgramSetup { arrives: MS(150), ..ProgramSetup::new(1) };
    let seen = looked_at(&[MS(50), MS(600)], vec![late, ProgramSetup::new(2)], MS(50));
    let states = |at: usize| seen[at].programs.iter().map(|p| p.state).collect::<Vec<_>>();
    assert_eq!(states(0), [LiveState::Expected, LiveState::Running]);
    assert_eq!(states(seen.len() - 1)[0], LiveState::Ended);
    let last = &seen[seen.len() - 1].programs[0];
    assert_eq!((last.completions, last.exit), (1, Some(Exit::Code(0))));
    assert_eq!(last.running_seconds, 0.05);
}

#[test]
fn heartbeats_are_on_time_while_a_viewer_is_connected() {
    let beside_quanta = looked_at(&[MS(1000); 2], vec![ProgramSetup::new(2); 2], MS(70));
    assert_eq!(gaps(&beside_quanta), vec![70.0; beside_quanta.len() - 1]);
    assert!(beside_quanta.len() > 20);
}

/// While no viewer is connected, a heartbeat waits until the engine is awake anyway, but not for
/// ever.
#[test]
fn without_a_viewer_heartbeats_wait_for_the_engine() {
    // Each quantum is followed by a beat, and the engine does not wake between them.
    let entries = vec![ProgramSetup::new(2); 2];
    let beside_quanta = seen(&[MS(1000); 2], entries, InTurn::default(), MS(90), false);
    assert!(gaps(&beside_quanta).iter().all(|gap| (90.0..110.0).contains(gap)));
    // Only the program's end happens: the engine wakes for every second beat.
    let quiet = gaps(&seen(&[MS(1000)], vec![ProgramSetup::new(2)], Once, MS(30), false));
    assert!(quiet.iter().filter(|gap| **gap == 60.0).count() > 10, "{quiet:?}");
}

#[test]
fn a_slice_and_a_trial_stay_until_the_next_choice() {
    /// Chooses a slice and tries an actuator at the start, and gives another reason later.
    struct Tries(u32);
    impl Policy for Tries {
        fn decide(&mut self, _: &[Cause], world: &World<'_>, plan: &mut Plan) {
            let [program] = world.programs else { return };
            let chosen = Chosen {
                slice: MS(30),
                lock_contention: 0.25,
                miss_ratio: None,
                io_wait: Some(0.5),
            };
            let (actuator, against) = (Actuator::Batch, Actuator::None);
            self.0 += 1;
            if self.0 == 1 {
                let trial = SchedulingChange::Trial { actuator, against };
                for change in [SchedulingChange::Slice(chosen), trial] {
                    plan.output(program.id, Output::Scheduled(change));
                }
            }
            plan.because(Some(program.id), Why::new("in-gang"));
            plan.aside(program.id, Why::new("tries-threads").with("threads", 1_u16));
            plan.run(program.id, Settings::default());
            plan.wake_at(world.now + MS(50), Token(0));
        }
    }
    let seen = seen(&[MS(400)], vec![ProgramSetup::new(2)], Tries(0), MS(60), true);
    let last = &seen[seen.len() - 2].programs[0];
    assert_eq!(last.why, Some(Why::new("in-gang")));
    let (lock_contention, miss_ratio, io_wait) = (0.25, None, Some(0.5));
    let slice = ChosenSlice { slice_seconds: 0.03, lock_contention, miss_ratio, io_wait };
    assert_eq!(last.slice, Some(slice));
    assert_eq!((last.actuator, last.tried), (Some(Actuator::None), Some(Actuator::Batch)));
    let json = seen[seen.len() - 2].to_json();
    assert!(json.contains(r#""actuator":"none","tried":"batch""#), "{json}");
    assert!(json.contains(r#""io_wait":0.5"#), "{json}");
}

/// A program's progress is what the policy said last. The times of training are added up.
#[test]
fn progress_is_what_was_said_last_and_training_adds_up() {
    let least = Advance { progress: MS(700), coverage: Some(0.5), slowdown: Some(2.0) };
    let more = Advance { progress: MS(900), coverage: None, slowdown: None };
    let first = Forward {
        progress_seconds: 0.7,
        slowdown: Some(2.0),
        speed_known: 0.5,
        ..Forward::default()
    };
    assert_eq!(Forward::default().advanced(least), first);
    let trained = Forward { trainings: 2, training_idle_seconds: 0.1, ..first };
    let twice = first.trained(2, Some(0.025)).trained(2, Some(0.025));
    assert_eq!(twice, trained);
    assert_eq!(
        trained.advanced(more),
        Forward { progress_seconds: 0.9, slowdown: None, ..trained }
    );
}

struct Once;

impl Policy for Once {
    fn decide(&mut self, _: &[Cause], world: &World<'_>, plan: &mut Plan) {
        world.programs.iter().for_each(|program| plan.run(program.id, Settings::default()));
    }
}

#[test]
fn a_snapshot_is_one_line_and_can_be_read_again() {
    let snapshot = two(300).pop().unwrap();
    let line = snapshot.to_json();
    assert!(!line.contains('\n') && line.starts_with("{\"schema\":\"cosched-live/2\","), "{line}");
    assert_eq!(Snapshot::from_json(&line).unwrap(), snapshot);
    let other = line.replace("live/2", "live/3");
    assert!(Snapshot::from_json(&other).unwrap_err().to_string().contains("'cosched-live/3'"));
    let earlier = line.replace("live/2", "live/1").replace("barrier_statistics", "meetings");
    assert_eq!(Snapshot::from_json(&earlier).unwrap().programs, snapshot.programs);
    assert!(Snapshot::from_json("{}").is_err());
}

#[test]
fn states_have_their_json_names() {
    for state in LiveState::ALL {
        assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.name()));
    }
}

/// The names of all fields of a JSON document.
fn keys(value: &serde_json::Value, found: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            found.push(key.clone());
            keys(value, found);
        }),
        serde_json::Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

#[test]
fn every_field_and_state_is_documented() {
    let documentation = include_str!("../../../../docs/json.md");
    let mut names = Vec::new();
    keys(&serde_json::from_str(&two(300)[0].to_json()).unwrap(), &mut names);
    names.extend(LiveState::ALL.map(|state| state.name().to_owned()));
    for name in names {
        assert!(documentation.contains(&format!("`{name}`")), "{name}");
    }
}
