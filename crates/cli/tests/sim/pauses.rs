//! What pauses and turns could break is avoided on simulated machines too.

use super::result;

fn jobs(first: &str) -> String {
    let table = |command: &str| {
        format!(
            "[[program]]\ncommand = {command}\nthreads = 8\n[program.model]\n\
             [[program.model.phase]]\ninstructions = 4e10\nbarriers = 100\n"
        )
    };
    [table(first), table("'a'"), table("'b'")].concat()
}

/// Hypothesis' deadline for one example is 200 ms, and turns are 250 ms here.
#[test]
fn a_test_runner_is_paused_for_at_most_100_ms() {
    for policy in ["gang", "greedy --turns freeze", "minwait --turns freeze"] {
        let options = format!("--machine e5410-8 --quantum 250ms --policy {policy}");
        let longest = |command: &str| {
            let run = result(&jobs(command), &options);
            assert!(run.deviations.is_empty(), "{policy}: {:?}", run.deviations);
            run.programs[0].longest_frozen_seconds
        };
        let tests = longest("['python3', '-m', 'pytest']");
        assert!(tests > 0.05 && tests <= 0.1, "{policy}: {tests}");
        let user = longest("['python3', '-m', 'pytest']\nfreezable = true");
        assert!(user > 0.2, "{policy}: {user}");
        assert!(longest("'solver'") > 0.2, "{policy}");
    }
}

#[test]
fn a_simulated_time_limit_begins_with_the_turn() {
    let starts = |options: &str| {
        let options = format!("--machine e5410-8 --policy turns {options}");
        let run = result(
            &jobs("['timeout', '60', 'c']").replace("'a'", "['timeout', '9', 'a']"),
            &options,
        );
        run.programs.iter().map(|program| program.timeline[0].0 > 1.0).collect::<Vec<_>>()
    };
    assert_eq!(starts("--goal throughput"), [false, true, false], "only the second is held");
    assert_eq!(starts("--goal balanced"), [false; 3]);
}
