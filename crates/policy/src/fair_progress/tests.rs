//! The whole policy, on a machine that has two formulas.

use cosched_core::{GroupId, ProgramState, Says, Why};

mod bench;

use super::*;
use crate::common::testkit::{Lab, options, program, unit};
use crate::reasons::words;
use bench::*;

/// Equal weights give equal progress. Without training, progress is less equal.
#[test]
fn equal_weights_give_equal_progress() {
    let mut trained = Bench::new(fair(None), 4, singles(8), &MIXED);
    trained.quanta(600);
    assert!(trained.unfairness() < 1.05, "{:?}", trained.done);
    let mut untrained = Bench::new(fair(Some(0.0)), 4, singles(8), &MIXED);
    untrained.quanta(600);
    assert!(untrained.unfairness() > trained.unfairness(), "{:?}", untrained.done);
}

#[test]
fn twice_the_weight_is_twice_the_progress() {
    let mut programs = singles(8);
    programs[0].weight = 2.0;
    programs[5].weight = 0.5;
    let mut bench = Bench::new(fair(None), 4, programs, &MIXED);
    bench.quanta(800);
    let ratio = bench.done[0] / bench.done[5];
    assert!((3.7..4.3).contains(&ratio), "{ratio}: {:?}", bench.done);
}

/// Training quanta leave CPUs idle.
#[test]
fn training_quanta_are_short_and_keep_the_limit() {
    let loud = [60.0, 55.0, 50.0, 45.0, 60.0, 55.0, 50.0, 45.0];
    let mut bench = Bench::new(fair(Some(0.02)), 4, singles(8), &loud);
    let (mut idle, mut used, mut trained) = (0.0, 0.0, 0);
    for _ in 0..400 {
        let length =
            bench.lab.next_wake().map_or(0.0, |end| (end - bench.lab.scene.now).as_secs_f64());
        let running = bench.lab.running().len();
        if bench.is_training() {
            assert!((length - 0.025).abs() < 1e-9, "{length}");
            assert!(
                running <= 2,
                "hardly any program fits together with a high-traffic one: {running}"
            );
            idle += length * (4 - running) as f64;
            trained += 1;
        }
        used += length * running as f64;
        bench.quantum();
    }
    assert!(trained >= 8, "{trained}");
    assert!(idle / used < 0.02 + 0.075 / used, "{}", idle / used);
}

#[test]
fn with_a_limit_of_zero_no_program_is_trained() {
    let mut bench = Bench::new(fair(Some(0.0)), 4, singles(8), &[60.0; 8]);
    for _ in 0..100 {
        assert!(!bench.is_training());
        assert_eq!(bench.lab.running().len(), 4);
        bench.quantum();
    }
}

#[test]
fn once_every_phase_is_known_there_is_no_more_training() {
    let mut bench = Bench::new(fair(None), 4, singles(8), &[60.0; 8]);
    bench.quanta(100);
    for _ in 0..50 {
        assert!(!bench.is_training());
        bench.quantum();
    }
}

#[test]
fn quanta_end_with_a_pause_in_which_everything_is_read() {
    let mut bench = Bench::new(fair(None), 2, singles(3), &[0.0; 3]);
    let wake = bench.lab.plan.wake[0];
    assert_eq!((wake.at, wake.first), (MS(100), AtExpiry::FreezeAndRead));
    let observed = bench.lab.plan.observe.len();
    assert_eq!(observed, 3 * (MEASURES.len() + 1));
    bench.quantum();
    assert_eq!(bench.lab.plan.wake[0].first, AtExpiry::FreezeAndRead);
}

/// Where phases are not distinguished, no program is sampled for the phase that it is in.
#[test]
fn without_phase_detection_positions_are_not_sampled() {
    let looks = |phases| {
        let bench = Bench::new(FairOptions { phases, ..fair(None) }, 2, singles(3), &[0.0; 3]);
        let observed = bench.lab.plan.observe.iter();
        observed.filter(|observe| observe.measure == Measure::InstructionPointers).count()
    };
    assert_eq!((looks(true), looks(false)), (3, 0));
}

/// The common part of two tests: six seconds of programs that tick 80 times a second alone. Two of
/// them disturb each other, and nothing is known of traffic.
fn six_seconds(by_corunners: bool, training_limit: Option<f64>) -> Bench {
    let blind = FairOptions { peak: None, by_corunners, ..fair(training_limit) };
    let bench = Bench::new(blind, 2, singles(4), &[60.0, 50.0, 2.0, 0.0]);
    let mut bench = Bench { measured: Measured::Ticks(80.0), ..bench };
    while bench.lab.scene.now < Nanos::from_secs(6) {
        bench.quantum();
    }
    bench
}

/// With few ticks, programs that slow each other are kept apart, and progress gets equal within
/// some seconds.
#[test]
fn progress_by_ticks_is_equal_after_some_seconds() {
    let (plain, ours) = (six_seconds(false, Some(0.0)), six_seconds(true, Some(0.02)));
    assert!(plain.unfairness() > 1.15, "{:?}", plain.done);
    assert!(ours.unfairness() < 1.06, "{:?}", ours.done);
    let all = |bench: &Bench| bench.done.iter().sum::<f64>();
    assert!(all(&ours) > all(&plain), "{:?} {:?}", ours.done, plain.done);
}

#[test]
fn training_that_cannot_finish_in_the_limit_is_not_begun() {
    let trained = |limit| six_seconds(true, limit).ran.iter().filter(|ran| ran.len() == 1).count();
    // Twenty ticks take a quarter of a second, and 2 % of twelve CPU seconds are less.
    assert_eq!(trained(Some(0.02)), 0);
    assert!(trained(None) >= 4 * 3, "{}", trained(None));
}

/// While every program has CPUs there are no quanta. The first quantum begins with a measurement
/// pause.
#[test]
fn without_contention_there_are_no_quanta() {
    let mut bench = Bench::new(fair(None), 4, singles(3), &[0.0; 5]);
    assert_eq!((bench.lab.running(), bench.lab.next_wake()), (vec![0, 1, 2], None));
    bench.lab.pass(MS(500));
    bench.lab.arrive(program(3, 1));
    assert_eq!((bench.lab.running().len(), bench.lab.next_wake()), (4, None));
    bench.lab.arrive(program(4, 1));
    assert_eq!(bench.lab.running(), [0, 1, 2, 3], "the newcomer waits for the pause");
    assert_eq!(bench.lab.next_wake(), Some(MS(500) + Nanos(1)));
    bench.quantum();
    assert!(bench.lab.running().contains(&4) || bench.lab.running().len() == 4);
    assert_eq!(bench.lab.quantum().map(|(.., length)| length), Some(MS(100)));
    bench.lab.exit(0);
    assert_eq!(bench.lab.next_wake(), None, "there is room for every program again");
    assert_eq!(bench.lab.running(), [1, 2, 3, 4]);
}

#[test]
fn cpus_freed_in_a_quantum_go_to_programs_behind() {
    let mut bench = Bench::new(fair(None), 2, singles(5), &[0.0; 5]);
    bench.quantum();
    let before = bench.lab.running();
    let wake = bench.lab.next_wake();
    bench.lab.pass(MS(30));
    bench.lab.exit(before[0]);
    assert_eq!(bench.lab.running().len(), 2);
    assert!(bench.lab.running().contains(&before[1]));
    assert_eq!(bench.lab.next_wake(), wake, "the quantum ends when it would have");
}

#[test]
fn a_newcomer_starts_at_zero_and_delays_others_little() {
    let mut bench = Bench::new(fair(None), 2, singles(4), &[0.0; 5]);
    bench.quanta(100);
    bench.lab.arrive(program(4, 1));
    bench.ran.clear();
    bench.quanta(10);
    for slot in 0..5 {
        let turns = bench.ran.iter().filter(|ran| ran.contains(&slot)).count();
        assert!((3..=5).contains(&turns), "{slot}: {turns}");
    }
}

/// Programs of several CPUs make equal progress, and small programs that fill gaps make more.
#[test]
fn programs_of_several_cpus_make_equal_progress() {
    let programs = [2, 1, 4, 1, 3].iter().zip(0..).map(|(cpus, slot)| program(slot, *cpus));
    let mut bench = Bench::new(fair(None), 4, programs.collect(), &[10.0, 30.0, 5.0, 1.0, 8.0]);
    for _ in 0..600 {
        let cpus = bench.lab.cpus_in_use();
        assert!(cpus.windows(2).all(|two| two[0] != two[1]), "{cpus:?}");
        bench.quantum();
    }
    let [two, one, four, other, three] = bench.done[..] else { panic!("five programs") };
    let wide = [two, four, three];
    let least = wide.iter().copied().fold(f64::INFINITY, f64::min);
    assert!(wide.iter().all(|done| done / least < 1.05), "{:?}", bench.done);
    assert!(one >= least && other >= least, "{:?}", bench.done);
}

#[test]
fn no_program_is_frozen_beyond_the_limit_however_far_ahead() {
    let mut programs = singles(6);
    programs[0].weight = 0.001;
    let mut bench = Bench::new(fair(None), 2, programs, &[0.0; 6]);
    for _ in 0..200 {
        let now = bench.lab.scene.now;
        assert!(
            bench.lab.scene.programs.iter().all(|p| p.waiting(now) < bench.lab.scene.max_frozen)
        );
        bench.quantum();
    }
}

#[test]
fn nothing_is_trained_where_times_alone_are_known() {
    let optimal = FairOptions { optimal: true, ..fair(None) };
    let mut bench = Bench::new(optimal, 4, singles(8), &[60.0; 8]);
    for _ in 0..50 {
        assert!(!bench.is_training());
        bench.quantum();
    }
}

/// A program that is trained by its ticks runs alone.
#[test]
fn ticks_are_enough_for_equal_progress() {
    let blind = FairOptions { peak: None, ..fair(None) };
    let untrained = FairOptions { training_limit: Some(0.0), ..blind.clone() };
    let of = |fair| {
        let bench = Bench::new(fair, 2, singles(4), &[60.0, 50.0, 2.0, 0.0]);
        Bench { measured: Measured::Ticks(300.0), ..bench }
    };
    let mut bench = of(blind);
    for _ in 0..600 {
        assert!(!bench.is_training() || bench.lab.running().len() == 1);
        bench.quantum();
    }
    assert!(bench.unfairness() < 1.05, "{:?}", bench.done);
    let mut untrained = of(untrained);
    untrained.quanta(600);
    assert!(untrained.unfairness() > 1.15, "{:?}", untrained.done);
}

/// Where nothing is measured, the table tells which program is behind.
#[test]
fn a_table_of_slowdowns_replaces_measurement() {
    let mut programs = singles(4);
    for (program, traffic) in programs.iter_mut().zip([10.0, 10.0, 0.0, 0.0]) {
        program.profile.memory_gigabytes_per_second = Some(traffic);
    }
    let turns = |options: Options| {
        let lab = Lab::new(FairProgress::new(&options), 2, programs.clone());
        let bench = Bench::new(fair(None), 2, singles(4), &[0.0; 4]);
        let mut bench = Bench { measured: Measured::Nothing, lab, ..bench };
        bench.quanta(300);
        [0, 1, 2, 3].map(|slot| bench.ran.iter().filter(|ran| ran.contains(&slot)).count())
    };
    let [loud, other, quiet, last] = turns(Options { fair: fair(None), ..options() });
    assert!(loud.min(other) > quiet.max(last) + 10, "{loud} {other} {quiet} {last}");
    let plain = turns(Options { fair: fair(None), slowdowns: None, ..options() });
    assert!(plain.iter().all(|turns| turns.abs_diff(150) <= 2), "{plain:?}");
}

/// Without training, the speed with co-runners that disturb little is closer to the speed alone
/// than the mean over all of them.
#[test]
fn quiet_co_runners_tell_more_than_the_mean_of_all() {
    let of = |by_corunners| {
        let blind = FairOptions { peak: None, by_corunners, ..fair(Some(0.0)) };
        let bench = Bench::new(blind, 2, singles(4), &[60.0, 50.0, 2.0, 0.0]);
        let mut bench = Bench { measured: Measured::Ticks(300.0), ..bench };
        bench.quanta(600);
        bench.unfairness()
    };
    let (by_mean, by_corunners) = (of(false), of(true));
    assert!(by_corunners - 1.0 < 0.4 * (by_mean - 1.0), "{by_corunners} {by_mean}");
}

/// A program that was stopped from outside makes no progress, and takes turns with the others
/// afterwards.
#[test]
fn a_stop_from_outside_brings_no_progress() {
    let mut bench = Bench::new(fair(Some(0.0)), 2, singles(4), &[0.0; 4]);
    bench.quanta(10);
    let before = bench.progress(0);
    bench.lab.set_state(0, ProgramState::StoppedByOther);
    bench.quanta(40);
    assert!((bench.progress(0) - before).abs() < 1e-9, "{before} {}", bench.progress(0));
    let least =
        [1, 2, 3].map(|slot| bench.progress(slot)).into_iter().fold(f64::INFINITY, f64::min);
    assert!(least > before + 2.0, "{least}");
    bench.lab.set_state(0, ProgramState::Running);
    assert!((bench.progress(0) - least).abs() < 1e-9, "{} {least}", bench.progress(0));
    bench.ran.clear();
    bench.quanta(12);
    for slot in 0..4 {
        assert!((5..=7).contains(&bench.turns(slot)), "{slot}: {}", bench.turns(slot));
    }
}

/// A program's lead does not grow while it is stopped.
#[test]
fn a_program_stopped_while_ahead_keeps_its_lead() {
    let mut bench = Bench::new(fair(Some(0.0)), 2, singles(4), &[0.0; 4]);
    bench.quanta(1);
    let [first, ..] = bench.ran[0][..] else { panic!("two ran") };
    bench.lab.set_state(first, ProgramState::StoppedByOther);
    bench.lab.set_state(first, ProgramState::Running);
    assert!((bench.progress(first) - 0.1).abs() < 1e-9, "{}", bench.progress(first));
}

#[test]
fn a_newcomer_does_not_catch_up_with_stopped_programs() {
    let mut bench = Bench::new(fair(Some(0.0)), 2, singles(4), &[0.0; 5]);
    bench.quanta(4);
    bench.lab.set_state(0, ProgramState::StoppedByOther);
    bench.quanta(40);
    bench.lab.arrive(program(4, 1));
    bench.ran.clear();
    bench.quanta(10);
    assert!((4..=6).contains(&bench.turns(4)), "{:?}", bench.ran);
}

/// While a program is repeated, the other programs keep their progress.
#[test]
fn a_repeated_program_gets_no_more_than_its_share() {
    let mut bench = Bench::new(fair(Some(0.0)), 2, singles(4), &[0.0; 4]);
    let others = |bench: &Bench| [1, 2, 3].map(|slot| bench.progress(slot));
    while bench.lab.scene.now < Nanos::from_secs(10) {
        // Its run takes 45 ms more than a number of whole quanta.
        if bench.lab.running().contains(&0) && bench.turns(0) % 2 == 1 {
            bench.pass(MS(45));
            let (before, own) = (others(&bench), bench.progress(0));
            bench.repeat(0);
            assert_eq!(others(&bench), before);
            assert!((bench.progress(0) - own - 0.045).abs() < 1e-9, "{own} {}", bench.progress(0));
        }
        bench.quantum();
    }
    let runs = bench.lab.scene.programs[0].id.generation;
    assert!(runs > 15, "{runs}");
    assert!(bench.unfairness() < 1.05, "{:?}", bench.done);
}

/// The programs of a group are trained until their speed without others is known.
#[test]
fn a_group_is_trained_together() {
    let mut programs = singles(4);
    for program in &mut programs[..2] {
        program.group = Some(GroupId(0));
    }
    let blind = FairOptions { peak: None, ..fair(None) };
    let mut bench = Bench::new(blind, 3, programs, &[60.0, 50.0, 40.0, 30.0]);
    let mut trained = 0;
    for _ in 0..100 {
        let is_of_group = bench.is_training() && bench.lab.running().contains(&0);
        trained += u32::from(is_of_group);
        assert!(!is_of_group || bench.lab.running() == [0, 1]);
        bench.quantum();
    }
    assert!((1..=2).contains(&trained), "{trained}");
    assert_eq!(bench.lab.policy.known.coverage(&bench.lab.policy.sorted.units[0]), 1.0);
}

#[test]
fn no_training_where_a_disturbing_program_always_runs() {
    let trained = |peak, traffic: f64| {
        let mut programs = singles(4);
        programs[3].freezable = false;
        let options = FairOptions { peak, ..fair(None) };
        let mut bench = Bench::new(options, 2, programs, &[60.0, 50.0, 40.0, traffic]);
        let mut trained = 0;
        for _ in 0..100 {
            trained += u32::from(bench.is_training());
            bench.quantum();
        }
        trained
    };
    assert_eq!(trained(None, 1.0), 0, "of no traffic it is known that it is little");
    assert_eq!(trained(Some(PEAK), 60.0), 0);
    assert!(trained(Some(PEAK), 1.0) >= 3);
}

/// The reasons in the latest plan why these programs wait.
fn waits(bench: &Bench) -> Vec<(u16, Why)> {
    let is_wait = |why: &Why| words(why).says == Says::Waits;
    let reasons = bench.lab.plan.reasons.iter().filter(|reason| is_wait(&reason.why));
    reasons.filter_map(|reason| Some((reason.program?.slot, reason.why.clone()))).collect()
}

#[test]
fn programs_without_progress_wait_in_a_queue() {
    let mut bench = Bench::new(fair(Some(0.0)), 2, singles(4), &[0.0; 4]);
    let queued = |ahead| Why::from(SharedReason::Queued { ahead });
    assert_eq!(waits(&bench), [(2, queued(2)), (3, queued(3))]);
    bench.quantum();
    let later = waits(&bench);
    let is_ahead = |why: &Why| matches!(why.read(), Some(FairReason::MoreProgress { .. }));
    assert!(later.iter().all(|(_, why)| is_ahead(why)), "{later:?}");
    assert_eq!(later.len(), 2);
}

/// A program that waits on after training is told why, and is not frozen again.
#[test]
fn waiting_on_after_training_is_explained() {
    let blind = FairOptions { peak: None, ..fair(None) };
    let mut bench = Bench::new(blind, 2, singles(5), &[60.0, 50.0, 40.0, 30.0, 20.0]);
    let mut last: BTreeMap<u16, Why> = waits(&bench).into_iter().collect();
    let mut anew = 0;
    for _ in 0..60 {
        let waiting: Vec<u16> = (0..5).filter(|slot| !bench.lab.running().contains(slot)).collect();
        bench.quantum();
        for (slot, why) in waits(&bench) {
            let id = ProgramId::first(slot);
            let is_anew = waiting.contains(&slot);
            anew += u32::from(is_anew);
            assert!(!is_anew || bench.lab.plan.directive(id).is_none(), "frozen twice");
            last.insert(slot, why);
        }
        let trains = bench.is_training();
        for slot in (0..5).filter(|slot| !bench.lab.running().contains(slot)) {
            let awaits = last[&slot].read() == Some(FairReason::AwaitsTraining);
            assert_eq!(awaits, trains, "{slot}: {last:?}");
        }
    }
    assert!(anew > 3, "{anew}");
}
