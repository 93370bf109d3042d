//! Malleable programs: they request threads at the beginning of each region, run it with the
//! threads that they get, and do the same work with any number.

#![allow(clippy::unwrap_used)]

mod stage;

use cosched_core::engine::{Engine, Limits, ProgramSetup, Setup};
use cosched_core::{Event, Happening, Nanos, Profile, ProgramId, Settings, Speedup, Step};
use cosched_policy::{Kind, Options};
use cosched_sim::{Costs, Hardware, Kernel, Model, Sim, SimulatedJob};
use proptest::prelude::*;
use stage::{Stage, ideal};

const FIRST: ProgramId = ProgramId::first(0);

fn model(text: &str, threads: u16) -> Model {
    Model::read(&text.parse().unwrap(), threads).unwrap()
}

/// Regions of this many milliseconds of work each, with a serial share.
fn regions(count: u32, millis: f64, serial: f64) -> String {
    let instructions = millis * 1e6;
    format!(
        "malleable = true\n[[phase]]\nrepeat = {count}\ninstructions = {instructions:e}\nserial = \
         {serial}"
    )
}

fn allowed(threads: u16) -> Settings {
    Settings { thread_limit: Some(threads), ..Settings::default() }
}

/// The requests: the time in microseconds, the threads, and whether the answer is waited for.
fn requests(events: &[Event]) -> Vec<(u64, u16, bool)> {
    let requested = |event: &Event| match event.what {
        Happening::Requested { threads, blocked, .. } => {
            Some((event.at.0 / 1000, threads, blocked))
        }
        _ => None,
    };
    events.iter().filter_map(requested).collect()
}

#[test]
fn without_a_limit_a_region_has_what_it_requests_at_once() {
    let two_kinds = "malleable = true\n[[phase]]\nrepeat = 3\ninstructions = 4e6\n\
        [[phase]]\nthreads = 2\ninstructions = 4e6";
    let mut stage = Stage::new(ideal("core:4"), Kernel::EEVDF, vec![(0, model(two_kinds, 4))]);
    stage.until(Nanos::from_millis(10));
    assert_eq!(requests(&stage.events), [(0, 4, false), (3000, 2, false)], "each kind once");
    assert_eq!(stage.ends(), [(0, 5000)], "three regions on four CPUs, one on two");
}

/// Regions after an answered request use the present limit.
#[test]
fn a_request_waits_for_its_answer() {
    let program = model(&regions(4, 8.0, 0.0), 4);
    let programs = [(0, program, allowed(4))];
    let mut stage = Stage::with(ideal("core:4"), Kernel::EEVDF, programs, 1);
    stage.until(Nanos::from_millis(5));
    assert_eq!(requests(&stage.events), [(0, 4, true)]);
    stage.submit(&[Step::Apply(FIRST, allowed(2), 1)]);
    // The second region begins at 9 ms, the third at 13 ms.
    stage.until(Nanos::from_millis(11));
    stage.submit(&[Step::Apply(FIRST, allowed(4), 2)]);
    stage.until(Nanos::from_millis(30));
    assert_eq!(requests(&stage.events).len(), 1, "it requests the same number again");
    assert_eq!(stage.ends(), [(0, 17_000)]);
}

/// A limit above the request gives no more, and a limit of zero gives one thread.
#[test]
fn a_limit_above_the_request_gives_no_more() {
    for (threads, end) in [(9, 2000), (0, 8000)] {
        let program = model(&regions(1, 8.0, 0.0), 4);
        let programs = [(0, program, allowed(threads))];
        let mut stage = Stage::with(ideal("core:4"), Kernel::EEVDF, programs, 1);
        stage.until(Nanos(1));
        stage.submit(&[Step::Apply(FIRST, allowed(threads), 1)]);
        stage.until(Nanos::from_millis(20));
        assert_eq!(stage.ends(), [(0, end)]);
    }
}

#[test]
fn threads_that_a_region_does_not_need_do_not_spin() {
    let text = format!("spin = 'forever'\n{}", regions(1, 8.0, 0.0));
    let programs = [(0, model(&text, 4), allowed(1))];
    let mut stage = Stage::with(ideal("core:4"), Kernel::EEVDF, programs, 1);
    stage.until(Nanos(1));
    stage.submit(&[Step::Apply(FIRST, allowed(1), 1)]);
    stage.until(Nanos::from_millis(20));
    let used = stage.events.iter().find_map(|event| match event.what {
        Happening::Exited(_, _, usage) => Some(usage.user_seconds),
        _ => None,
    });
    assert!((used.unwrap() - 0.008).abs() < 1e-5, "{used:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_instruction_is_done_once_under_any_limits(
        thread_limits in prop::collection::vec((0u64..30, 1u16..7), 0..10),
        threads in 1u16..6,
        requested in 1u16..6,
        barriers in 0u32..4,
        serial in prop_oneof![Just(0.0), Just(0.25), Just(1.0)],
        sections in 0u32..3,
        cpus in 1usize..5,
        spin in prop_oneof![Just("0s"), Just("20us")],
        seed in any::<u64>(),
    ) {
        let requested = requested.min(threads);
        let text = format!(
            "malleable = true\nspin = '{spin}'\nrepeat = 3\n[[phase]]\nrepeat = 2\ninstructions = \
             4e6\n\
             serial = {serial}\nbarriers = {barriers}\nthreads = {requested}\n\
             critical = {{ sections = {}, instructions = 1000 }}\n[[phase]]\ninstructions = 2e6",
            if serial < 1.0 { sections } else { 0 },
        );
        let programs = [(0, model(&text, threads), allowed(1))];
        let hardware = Hardware::words(&format!("core:{cpus} switch_nanos=0")).unwrap();
        let mut stage = Stage::with(hardware, Kernel::EEVDF, programs, seed);
        let mut at = Nanos::ZERO;
        for (epoch, (after, thread_limit)) in thread_limits.into_iter().enumerate() {
            at += Nanos::from_millis(after);
            stage.until(at);
            stage.submit(&[Step::Apply(FIRST, allowed(thread_limit), epoch as u64)]);
        }
        // Every request is answered.
        while stage.ends().is_empty() {
            prop_assert!(
                at < Nanos::from_secs(10),
                "it does not end: {:?}",
                requests(&stage.events)
            );
            stage.submit(&[Step::Apply(FIRST, allowed(2), 99)]);
            at += Nanos::from_millis(1);
            stage.until(at);
        }
        let done = stage.events.iter().find_map(|event| match event.what {
            Happening::Exited(_, _, usage) => usage.counts.instructions,
            _ => None,
        });
        let expected = 3.0 * (2.0 * 4e6 + 2e6);
        prop_assert!((done.unwrap() as f64 - expected).abs() < 2.0, "{done:?} of {expected}");
    }
}

/// The duration through the engine, on CPUs of 1 GHz with the costs of cosched's own steps,
/// seconds. `alone` has the solo times of programs, where they are known.
fn seconds(kind: Kind, cpus: usize, models: &[Model], alone: &[Option<Speedup>]) -> f64 {
    seconds_asking(kind, cpus, models, alone, None)
}

/// Like [`seconds`], for programs with a workload that says how many threads they request.
fn seconds_asking(
    kind: Kind,
    cpus: usize,
    models: &[Model],
    alone: &[Option<Speedup>],
    requested: Option<u16>,
) -> f64 {
    let hardware = Hardware::words(&format!("core:{cpus} gigahertz=1")).unwrap();
    let entry = |(i, model): (usize, &Model)| {
        let speedup = alone.get(i).copied().flatten();
        let profile = Profile { speedup, ..Profile::default() };
        ProgramSetup {
            malleable: model.is_malleable(),
            profile,
            ..ProgramSetup::new(requested.unwrap_or(model.threads))
        }
    };
    let setup = Setup {
        cpus: hardware.topology.all(),
        topology: hardware.topology.clone(),
        programs: models.iter().enumerate().map(entry).collect(),
        limits: Limits::default(),
    };
    let jobs =
        models.iter().map(|model| SimulatedJob { model: model.clone(), weight: 1.0 }).collect();
    let sim = Sim::new(hardware, Kernel::EEVDF, jobs, Costs::MEASURED, 1);
    let policy = kind.build(&Options::default()).unwrap();
    let (_, outcome) = Engine::new(sim, policy, setup).run(&mut ());
    outcome.unwrap().total.as_secs_f64()
}

/// The shortest time that fixed thread counts give under any policy that makes gangs.
fn best_fixed(cpus: u16, texts: &[String]) -> f64 {
    let most = texts.len() as u32;
    let counts = (0..u32::from(cpus).pow(most)).map(|code| {
        (0..most).map(move |i| 1 + (code / u32::from(cpus).pow(i) % u32::from(cpus)) as u16)
    });
    let time = |kind: Kind, counts: &[u16]| {
        let rigid = texts.iter().map(|text| text.replace("malleable = true", ""));
        let models: Vec<Model> =
            rigid.zip(counts).map(|(text, threads)| model(&text, *threads)).collect();
        seconds(kind, usize::from(cpus), &models, &[])
    };
    let times = counts.flat_map(|counts| {
        let counts: Vec<u16> = counts.collect();
        [Kind::Greedy, Kind::Minwait].map(|kind| time(kind, &counts))
    });
    times.fold(f64::INFINITY, f64::min)
}

const BOTH: [(Kind, Kind); 2] =
    [(Kind::AdaptiveGreedy, Kind::Greedy), (Kind::AdaptiveMinwait, Kind::Minwait)];

/// Programs that hardly scale take at most a twentieth longer than with the best fixed thread
/// counts.
#[test]
fn programs_that_hardly_scale_come_near_the_best_counts() {
    // Four that are 1.57 times as fast on both CPUs, as four numpy scripts were.
    let texts = vec![regions(100, 13.75, 0.274); 4];
    let best = best_fixed(2, &texts);
    let models: Vec<Model> = texts.iter().map(|text| model(text, 2)).collect();
    for (adaptive, uniform) in BOTH {
        let (adaptive, uniform) =
            (seconds(adaptive, 2, &models, &[]), seconds(uniform, 2, &models, &[]));
        assert!(adaptive <= 1.05 * best, "{adaptive} against {best}");
        assert!(adaptive <= 0.85 * uniform, "{adaptive} against {uniform}");
    }
}

/// With known solo times, programs of unequal scaling come near the best fixed thread counts.
#[test]
fn unequal_scaling_with_known_times_comes_near_the_best() {
    let serial = [0.0, 0.6, 0.3];
    let texts: Vec<String> = serial.map(|serial| regions(100, 20.0, serial)).to_vec();
    let best = best_fixed(4, &texts);
    let models: Vec<Model> = texts.iter().map(|text| model(text, 4)).collect();
    let alone = serial.map(|serial| {
        let time = |n: u16| (n, Nanos((2e9 * (serial + (1.0 - serial) / f64::from(n))) as u64));
        Speedup::new(&[1, 2, 3, 4].map(time))
    });
    for (adaptive, uniform) in BOTH {
        let informed = seconds(adaptive, 4, &models, &alone);
        let (uninformed, uniform) =
            (seconds(adaptive, 4, &models, &[]), seconds(uniform, 4, &models, &[]));
        assert!(informed <= 1.1 * best, "{adaptive}: {informed} against {best}");
        assert!(
            informed < uninformed && uninformed <= 1.01 * uniform,
            "{adaptive}: {informed} {uninformed} {uniform}"
        );
    }
}

#[test]
fn programs_that_gain_nothing_lose_less_than_a_hundredth() {
    for (count, cpus, millis) in [(1, 2, 5000.0), (4, 2, 1000.0), (2, 4, 4000.0)] {
        let text = regions(50, millis / 50.0, 0.0);
        let models = vec![model(&text, cpus as u16); count];
        for (adaptive, uniform) in BOTH {
            let lost = seconds(adaptive, cpus, &models, &[]) / seconds(uniform, cpus, &models, &[]);
            assert!(lost < 1.01, "{adaptive}: {lost} with {count} on {cpus}");
        }
    }
}

#[test]
fn small_regions_leave_cpus_to_other_programs() {
    // Half a second alone on four CPUs, a second and a half on one, and so on, with a program that
    // uses all.
    let changing = "malleable = true\nrepeat = 3\n[[phase]]\nrepeat = 50\ninstructions = 40e6\n\
        [[phase]]\nthreads = 1\nrepeat = 150\ninstructions = 10e6";
    let models = [model(changing, 4), model(&regions(300, 40.0, 0.0), 4)];
    for (adaptive, uniform) in BOTH {
        let (adaptive, uniform) =
            (seconds(adaptive, 4, &models, &[]), seconds(uniform, 4, &models, &[]));
        assert!(adaptive <= 0.85 * uniform, "{adaptive} against {uniform}");
    }
}

/// The thesis' adaptive schedulers: two programs that fill the machine for half a second and then
/// have one thread for a second and a half, three times. Fixed counts let them take turns for 12 s.
/// With gangs cut from requests, their phases of one thread run together: some 7.5 s.
#[test]
fn programs_share_a_gang_while_they_request_little() {
    let changing = "malleable = true\nrepeat = 3\n[[phase]]\nrepeat = 50\ninstructions = 40e6\n\
        [[phase]]\nthreads = 1\nrepeat = 150\ninstructions = 10e6";
    let models = vec![model(changing, 4); 2];
    for (adaptive, uniform) in
        [(Kind::RequestGreedy, Kind::Greedy), (Kind::RequestMinwait, Kind::Minwait)]
    {
        let (adaptive, uniform) =
            (seconds(adaptive, 4, &models, &[]), seconds(uniform, 4, &models, &[]));
        assert!((11.9..12.5).contains(&uniform), "{uniform}");
        assert!((7.4..8.4).contains(&adaptive), "{adaptive}");
    }
}

#[test]
fn a_program_may_request_more_threads_than_its_entry() {
    let changing = "malleable = true\nrepeat = 30\n[[phase]]\nrepeat = 5\ninstructions = 8e6\n\
        [[phase]]\nthreads = 1\nrepeat = 3\ninstructions = 5e6";
    let models = vec![model(changing, 8); 3];
    for (kind, _) in BOTH {
        let all = seconds_asking(kind, 4, &models, &[], Some(2));
        assert!(all > 0.0, "{kind}: {all}");
    }
}

/// A policy without thread limits runs malleable programs like other programs.
#[test]
fn malleable_programs_run_under_any_policy() {
    let (text, rigid) =
        (regions(20, 50.0, 0.1), regions(20, 50.0, 0.1).replace("malleable = true", ""));
    for kind in [Kind::Linux, Kind::Fcfs, Kind::Gang, Kind::Greedy, Kind::Minwait] {
        let times =
            [text.as_str(), &rigid].map(|text| seconds(kind, 2, &vec![model(text, 2); 3], &[]));
        assert!((times[0] / times[1] - 1.0).abs() < 0.01, "{kind}: {times:?}");
    }
}
