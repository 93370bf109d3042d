//! Load control: waiting threads spin, and as many sleep as the machine has surplus threads.
//!
//! CPUs of 1 GHz, on which switches cost nothing. The load is looked at every 7 ms, as in the paper
//! on faithful scheduling (sections I and VI).

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::{Happening, Nanos, Usage};
use cosched_sim::model::Mix;
use cosched_sim::{Kernel, Model};
use stage::{Stage, computes, ideal};

const LOOKS: Option<Nanos> = Some(Nanos::from_millis(7));

/// Two threads at a barrier: one comes after 1 ms of computing, the other after 39 ms.
fn uneven(load_control: Option<Nanos>) -> Model {
    let model = Model::barriers(2, 1, 20e6, Mix::computing(1.0), Nanos::NEVER);
    Model { imbalance: 0.95, load_control, ..model }
}

/// What each program has used, after everything on these CPUs has ended, and when it ended.
fn played(cpus: &str, programs: Vec<Model>) -> Vec<(Usage, Nanos)> {
    let count = programs.len();
    let programs = programs.into_iter().map(|model| (0, model, Default::default()));
    let mut stage = Stage::with(ideal(cpus), Kernel::EEVDF, programs, 1);
    stage.until(Nanos::from_secs(20));
    let ended = |slot| {
        stage.events.iter().find_map(|event| match event.what {
            Happening::Exited(id, _, usage) if id.slot == slot => Some((usage, event.at)),
            _ => None,
        })
    };
    (0..count as u16).map(|slot| ended(slot).unwrap()).collect()
}

#[test]
fn a_waiter_spins_while_every_thread_has_a_cpu() {
    let [(usage, at)] = played("core:2", vec![uneven(LOOKS)])[..] else { unreachable!() };
    assert_eq!((usage.voluntary_switches, at), (0, Nanos::from_millis(39)));
}

/// The third thread is surplus from the first look on.
#[test]
fn a_waiter_sleeps_once_a_thread_is_surplus() {
    let beside = |load_control| {
        let found = played("core:2", vec![uneven(load_control), computes(60)]);
        (found[0].0.voluntary_switches, found[0].1)
    };
    let ((asleep, soon), (spinning, late)) = (beside(LOOKS), beside(None));
    assert_eq!((asleep, spinning), (1, 0));
    assert!(soon < late, "its CPU goes to threads with work: {soon} {late}");
}

#[test]
fn when_load_falls_a_sleeper_spins_again() {
    let found = played("core:2", vec![uneven(LOOKS), computes(12)]);
    let (usage, at) = found[0];
    let spun = usage.user_seconds - 40e-3;
    assert_eq!(usage.voluntary_switches, 1);
    assert!(spun > 7e-3, "spun for {spun} s until {at}");
}

/// Where as many threads spin as there are CPUs for them, the others are left asleep.
#[test]
fn a_lock_goes_to_a_spinning_thread_and_wakes_none() {
    let lock = |spin, load_control| {
        let model = Model::lock(8, 2_000, 1e3, 5e3, Mix::computing(1.0), spin);
        played("core:4", vec![Model { load_control, ..model }])[0].0.voluntary_switches
    };
    let (controlled, blocking) = (lock(Nanos::ZERO, LOOKS), lock(Nanos::ZERO, None));
    assert!(controlled > 0 && 10 * controlled < blocking, "{controlled} {blocking}");
}
