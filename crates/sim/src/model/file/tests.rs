use super::*;
use crate::model::{Mix, Op};

fn read(text: &str) -> Result<Model, ModelError> {
    Model::read(&text.parse().unwrap(), 4)
}

#[test]
fn phases_become_loops_of_operations() {
    let text = "spin = '300us'\nimbalance = 0.1\nrepeat = 2\n\
        [[phase]]\ninstructions = 1e9\nserial = 0.2\nbarriers = 10\n\
        misses_per_kilo_instruction = 3\n\
        [[phase]]\nrepeat = 5\nsleep = '1ms'";
    let model = read(text).unwrap();
    assert_eq!(model.spin, Nanos::from_micros(300));
    let expected = [
        Op::Only { threads: (0, 1), next: 1 },
        Op::Compute { instructions: 2e8, mix: 0 },
        Op::Barrier(0),
        Op::Compute { instructions: 2e7, mix: 0 },
        Op::Barrier(0),
        Op::Repeat { from: 3, times: 10, counter: 2 },
        Op::Sleep(Nanos::from_millis(1)),
        Op::Repeat { from: 6, times: 5, counter: 1 },
        Op::Repeat { from: 0, times: 2, counter: 0 },
    ];
    assert_eq!(model.script, expected);
    assert_eq!(model.mixes[0].misses_without_cache, 0.003);
}

#[test]
fn errors_have_the_path_of_their_key() {
    for (text, expected) in [
        ("imbalance = 2\n[[phase]]\ninstructions = 9", "imbalance"),
        ("[[phase]]\ninstructions = 9\n[[phase]]\ninstructions = -5", "phase[1].instructions"),
        ("[[phase]]\ninstructions = 'x'", "phase[0].instructions"),
        ("[[phase]]\ncritical = { sections = 1 }", "phase[0].critical.instructions"),
        ("spin = '1s'", "phase"),
        ("quux = 1\n[[phase]]\ninstructions = 9", "quux"),
    ] {
        let error = read(text).unwrap_err();
        assert_eq!(error.path(), expected, "{error}");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
    }
}

/// What only follows from a mistake is not among them.
#[test]
fn all_mistakes_of_a_model_are_found_at_once() {
    let text = "spin = 'long'\nquux = 1\nbarrier = 'give'\n\
        [[phase]]\nrepeat = 3\ninstructions = 'x'\nserial = 2.0\n\
        [[phase]]\ninstructions = 1e6\ncritical = { sections = 3 }\n\
        [[phase]]\npipeline = { items = 0, stages = [{ threads = 'x', instructions = 1 }, 7, \
        { threads = 0 }] }\n[[phase]]\nsleep = 'late'";
    let paths = |text: &str| -> Vec<String> {
        let mut paths: Vec<String> = Model::read_all(&text.parse().unwrap(), 4)
            .unwrap_err()
            .iter()
            .map(|mistake| mistake.path().to_owned())
            .collect();
        paths.sort();
        paths
    };
    let expected = [
        "barrier",
        "phase[0].instructions",
        "phase[0].serial",
        "phase[1].critical.instructions",
        "phase[2].pipeline.items",
        "phase[2].pipeline.stages[0].threads",
        "phase[2].pipeline.stages[1]",
        "phase[2].pipeline.stages[2].instructions",
        "phase[2].pipeline.stages[2].threads",
        "phase[3].sleep",
        "quux",
        "spin",
    ];
    assert_eq!(paths(text), expected);
    assert_eq!(paths("phase = 3\nrepeat = 0"), ["phase", "repeat"]);
    let many: String = (0..200).map(|i| format!("key{i} = 1\n")).collect();
    assert_eq!(paths(&many).len(), 50);
    let error = read("[[phase]]\npipeline = 3\nserial = 'x'").unwrap_err().to_string();
    assert!(error.ends_with("expected a number") || error.ends_with("expected a table"), "{error}");
}

#[test]
fn waiting_at_barriers_can_be_set() {
    let barrier =
        |text: &str| read(&format!("{text}\n[[phase]]\ninstructions = 9")).unwrap().barrier;
    assert_eq!(barrier(""), None);
    assert_eq!(barrier("barrier = 'spin'"), Some(AtBarrier::Spin));
    assert_eq!(barrier("barrier = 'donate'"), Some(AtBarrier::Donate));
}

#[test]
fn load_control_looks_as_often_as_a_model_says() {
    let looks = |text: &str| read(&format!("{text}\n[[phase]]\ninstructions = 9"));
    assert_eq!(looks("").unwrap().load_control, None);
    let often = looks("load_control = '7ms'").unwrap().load_control;
    assert_eq!(often, Some(Nanos::from_millis(7)));
    let refused = looks("load_control = '0s'").unwrap_err().to_string();
    assert!(refused.contains("load_control is 0") && refused.contains("7ms"), "{refused}");
}

#[test]
fn critical_sections_are_a_part_of_a_threads_work() {
    let text = "[[phase]]\ninstructions = 4000\ncritical = { sections = 2, instructions = 100 }";
    let model = read(text).unwrap();
    assert_eq!(model.script[0], Op::Compute { instructions: 400.0, mix: 0 });
    assert_eq!(model.script[2], Op::Compute { instructions: 100.0, mix: 0 });
    assert_eq!(model.script[4], Op::Repeat { from: 0, times: 2, counter: 3 });
}

#[test]
fn the_data_that_a_lock_guards_comes_after_the_lock() {
    let text = "[[phase]]\ninstructions = 4000\n\
        critical = { sections = 2, instructions = 100, lines = 6 }";
    let model = read(text).unwrap();
    assert_eq!(model.script[1..3], [Op::Acquire(0), Op::Fetch { lock: 0, lines: 6 }]);
    assert_eq!(model.script[5], Op::Repeat { from: 0, times: 2, counter: 3 });
    let many = read(&text.replace("= 6", "= 1000001")).unwrap_err().to_string();
    assert!(many.contains("phase.critical.lines is 1000001"), "{many}");
}

#[test]
fn threads_can_be_made_after_a_serial_start() {
    let text = "repeat = 3\nstartup_instructions = 5e5\n[[phase]]\ninstructions = 4000";
    let model = read(text).unwrap();
    let expected = [
        Op::Compute { instructions: 5e5, mix: 0 },
        Op::Create,
        Op::Compute { instructions: 1000.0, mix: 1 },
        Op::Repeat { from: 2, times: 3, counter: 0 },
    ];
    assert_eq!(model.script, expected);
    assert_eq!(model.mixes[0], Mix::computing(1.0));
}

/// The parallel part of a malleable phase is a region that requests threads.
#[test]
fn the_parallel_part_of_a_malleable_phase_is_a_region() {
    let text = "malleable = true\n[[phase]]\ninstructions = 1e9\nserial = 0.2\nbarriers = 10\n\
        [[phase]]\nthreads = 2\nrepeat = 3\ninstructions = 4000";
    let model = read(text).unwrap();
    let expected = [
        Op::Only { threads: (0, 1), next: 1 },
        Op::Compute { instructions: 2e8, mix: 0 },
        Op::Barrier(0),
        Op::Region { threads: 4, next: 3 },
        Op::Share { instructions: 8e7, mix: 0 },
        Op::TeamBarrier,
        Op::Repeat { from: 4, times: 10, counter: 2 },
        Op::Region { threads: 2, next: 1 },
        Op::Share { instructions: 4000.0, mix: 1 },
        Op::Repeat { from: 7, times: 3, counter: 1 },
    ];
    assert_eq!(model.script, expected);
    assert!(model.is_malleable());
    let error_of = |text: &str| read(text).unwrap_err().to_string();
    assert!(error_of("[[phase]]\nthreads = 2\ninstructions = 9").contains("not malleable"));
    let many = "malleable = true\n[[phase]]\nthreads = 5\ninstructions = 9";
    assert!(error_of(many).contains("phase.threads is 5"), "{}", error_of(many));
}

#[test]
fn phases_that_take_no_time_are_not_repeated() {
    let checked =
        |text: &str| Model::read(&text.parse().unwrap(), 2).map(drop).map_err(|e| e.to_string());
    for idle in [
        "repeat = 9\n[[phase]]",
        "[[phase]]\nrepeat = 9",
        "[[phase]]\ninstructions = 1\n[[phase]]\nrepeat = 9",
    ] {
        let error = checked(idle).unwrap_err();
        assert!(error.contains("phase.instructions") && error.contains("repeated"), "{error}");
    }
    for busy in [
        "[[phase]]",
        "repeat = 9\n[[phase]]\n[[phase]]\nsleep = '1us'",
        "[[phase]]\nrepeat = 9\nbarriers = 1",
    ] {
        checked(busy).unwrap();
    }
}

#[test]
fn errors_name_the_key_and_the_allowed_values() {
    let error_of = |text: &str| read(text).unwrap_err().to_string();
    assert!(error_of("").contains("phase"));
    assert!(error_of("[[phase]]\ninstruction = 5").contains("instruction"));
    assert_eq!(
        error_of("[[phase]]\ninstructions = 5\nserial = 2.0"),
        "phase.serial is 2, but must be from 0 to 1"
    );
    assert_eq!(
        error_of("startup_instructions = -1\n[[phase]]"),
        "startup_instructions is -1, but must be from 0 to 1e18"
    );
    assert_eq!(
        error_of("barrier = 'give'\n[[phase]]"),
        "barrier is \"give\", but must be \"spin\" (as long as `spin` says, then sleep) \
         or \"donate\""
    );
    assert!(error_of("spin = 'long'\n[[phase]]").contains("such as \"300us\""));
    assert!(
        error_of("[[phase]]\nmisses_per_kilo_instruction = 3\nmisses_without_cache = 1")
            .contains("at least misses_per_kilo_instruction")
    );
    assert_eq!(
        error_of("[[phase]]\nsleep = 'forever'"),
        "phase.sleep is \"forever\", but must be at most 1 day"
    );
    assert!(error_of("[[phase]]\nsleep = '146000d'").contains("at most 1 day"));
    let endless = "misses_per_kilo_instruction = 1e300\nmisses_in_flight = 1e-300";
    assert!(error_of(&format!("[[phase]]\n{endless}")).contains("misses_in_flight is 1e-300"));
    assert!(error_of("[[phase]]\nmisses_per_kilo_instruction = 1e300").contains("from 0 to 10000"));
    assert!(error_of("[[phase]]\nmisses_per_kilo_instruction = inf").contains("is inf"));
    assert!(error_of("[[phase]]\nmisses_without_cache = 1e300").contains("at most 10000"));
    assert!(error_of("[[phase]]\ncycles_per_instruction = nan").contains("is NaN"));
    assert!(error_of("[[phase]]\nfootprint_mib = 1e300").contains("footprint_mib is 1e300"));
    let critical = "critical = { sections = 2, instructions = 900 }";
    assert!(error_of(&format!("[[phase]]\ninstructions = 4000\n{critical}")).contains("critical"));
}
