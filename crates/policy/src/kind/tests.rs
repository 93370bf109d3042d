use cosched_core::Molding;
use cosched_workload::{Place, Position};

use super::*;
use crate::common::reasons::SharedReason;
use crate::common::testkit::options;

/// A demand of a program of jobs.toml, with its command in line 2 and its threads in line 3.
fn demand(name: &str, threads: u16, misses: Option<f64>) -> Demand<'_> {
    let place = |line| Place {
        file: Some("jobs.toml".into()),
        position: Some(Position { line, column: 11 }),
        program: Some((1, Some(name.to_owned()))),
    };
    let places = Box::leak(Box::new(Places {
        command: place(2),
        threads: place(3),
        model: Default::default(),
    }));
    Demand {
        name,
        places,
        threads,
        is_simulated: false,
        misses_per_kilo_instruction: misses,
        memory_gigabytes_per_second: misses,
    }
}

/// The text of the only error.
fn only(checked: Result<(), Vec<Unfit>>) -> String {
    let errors = checked.unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:?}");
    errors[0].to_string()
}

#[test]
fn everything_that_is_unknown_of_any_program_is_named() {
    let demands = [demand("a", 3, None), demand("known", 1, Some(1.0)), demand("b", 1, None)];
    for kind in [Kind::Cgreedy, Kind::Bandwidth] {
        let errors = kind.check(&demands, 2).unwrap_err();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 3, "{errors:?}");
        assert!(errors[0].contains("requests 3 threads"), "{errors:?}");
        assert!(errors[1].contains("'a', which") && errors[2].contains("'b', which"), "{errors:?}");
    }
}

/// An unknown name is answered with the known ones.
#[test]
fn every_policy_is_found_by_its_name() {
    for kind in Kind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let error = "fifo".parse::<Kind>().unwrap_err().to_string();
    let (what, known) = error.split_once("; choose from ").unwrap();
    assert_eq!(what, "there is no policy 'fifo'");
    let near = "gagn".parse::<Kind>().unwrap_err().to_string();
    let what = "there is no policy 'gagn' (did you mean 'gang'?); choose from linux, ";
    assert!(near.starts_with(what), "{near}");
    assert_eq!(known.split(", ").collect::<Vec<_>>(), Kind::ALL.map(|kind| kind.to_string()));
    assert!(known.starts_with("linux, linux-groups, fcfs, "), "baselines come first: {known}");
}

/// Policies that must make gangs refuse such programs.
#[test]
fn programs_larger_than_the_machine_do_not_fit_gangs() {
    let demands = [demand("small", 2, Some(1.0)), demand("large", 3, Some(1.0))];
    for kind in Kind::ALL {
        let unfit = kind.check(&demands, 2);
        assert_eq!(unfit.is_err(), kind.insists_on_gangs(), "{kind}");
        assert_eq!(kind.check(&demands, 3), Ok(()), "{kind}");
    }
    let error = only(Kind::Gang.check(&demands, 2));
    assert!(error.starts_with("jobs.toml:3:11: program 1 (large): 'large' requests 3"), "{error}");
    assert!(error.contains("there are 2 CPUs") && error.contains("`threads`"), "{error}");
    assert!(error.contains("does not: turns, linux, linux-groups, fcfs, "), "{error}");
    let errors = Kind::Gang.check(&demands, 1).unwrap_err();
    assert_eq!(errors.len(), 2, "each program that is too large: {errors:?}");
    let error = errors[0].to_string();
    assert!(error.contains("there is 1 CPU to use"), "{error}");
}

#[test]
fn cgreedy_without_misses_names_the_program_and_both_remedies() {
    let demands = [demand("known", 1, Some(0.0)), demand("unknown", 1, None)];
    let error = only(Kind::Cgreedy.check(&demands, 2));
    for part in
        ["jobs.toml:2:11", "'unknown'", "`misses_per_kilo_instruction`", "`cosched profile`"]
    {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(Kind::Greedy.check(&demands, 2), Ok(()));
}

#[test]
fn bandwidth_without_traffic_or_table_names_the_remedy() {
    let error = only(Kind::Bandwidth.check(&[demand("unknown", 1, None)], 2));
    for part in ["jobs.toml:2:11", "'unknown'", "`memory_gigabytes_per_second`"] {
        assert!(error.contains(part), "{error}");
    }
    let Err(unfit) = Kind::Bandwidth.build(&Options::default()) else { panic!("no table needed") };
    assert!(unfit.to_string().contains("--slowdowns"), "{unfit}");
}

#[test]
fn fill_is_accepted_by_greedy_and_cgreedy_only() {
    let filling = Options { fill: true, ..options() };
    for kind in Kind::ALL {
        assert_eq!(kind.build(&filling).is_ok(), kind.takes(OptionGroup::Fill), "{kind}");
        assert!(kind.build(&options()).is_ok(), "{kind}");
    }
}

#[test]
fn impossible_quanta_are_refused_with_the_range() {
    for quantum in [Nanos::ZERO, Nanos::from_secs(365 * 86_400)] {
        let options = Options { quantum, ..Options::default() };
        let Err(unfit) = Kind::Gang.build(&options) else { panic!("{quantum} was taken") };
        assert_eq!(unfit, Unfit::Quantum { asked: quantum });
        assert!(unfit.to_string().contains("choose from 1 ms to 60 s ("), "{unfit}");
    }
}

#[test]
fn a_lower_thread_count_is_reported_under_every_goal() {
    use crate::common::testkit::{Lab, program};
    for kind in [Kind::Turns, Kind::Auto] {
        for (goal, turns) in
            Goal::ALL.into_iter().flat_map(|goal| [(goal, None), (goal, Some(Turns::Freeze))])
        {
            let policy = kind.build(&Options { goal, turns, ..Options::default() }).unwrap();
            let mut molded = program(0, 1);
            molded.profile.molded = Some(Molding { requested: 2, solo: Nanos::from_secs(1) });
            let lab = Lab::new(policy, 2, vec![molded, program(1, 2)]);
            let expected = Some(SharedReason::Molded { threads: 1, requested: 2 });
            let mut reasons = lab.plan.reasons.iter();
            assert!(reasons.any(|reason| reason.why.read() == expected), "{kind} {goal}");
        }
    }
}
