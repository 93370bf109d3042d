//! `auto` on the real kernel: it sees what programs do, chooses, and says so.
//!
//! Its choice depends on other users of the machine, so the choice is not tested here.

use cosched_core::Why;
use cosched_linux::kernel::affinity;
use cosched_policy::reasons::{AutoReason, Mode, ReasonCode, SharedReason};
use cosched_results::result::RunResult;

use super::support::{Place, User, eventually, program, skip};

/// Starts one process per argument, each of which computes until there is a file `stop`.
const BUSY: &str = "work() { while [ ! -e stop ]; do i=0; \
    while [ $i -lt 20000 ]; do i=$((i+1)); done; done; }\n\
    for one in $WIDTH; do work & done\nwait";

#[test]
fn auto_chooses_after_a_sample_and_says_so() {
    let cpus = affinity::get(0).unwrap().len();
    if cpus < 2 {
        return skip("with one CPU no program has two threads at work");
    }
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        let width = (0..cpus).map(|one| one.to_string()).collect::<Vec<_>>().join(" ");
        let script = format!("WIDTH='{width}'\n{BUSY}");
        let tables = ["a", "b", "c"].map(|name| program(name, "", &script));
        let cosched = place.run(&tables, "--policy auto --verbose");
        let said = |what: &str| place.read("cosched.stderr").contains(what);
        eventually("a choice", || {
            said("taking turns, because") || said("running together, because taking")
        });
        place.write("stop", "");
        let ended = cosched.ended().with(0);
        let result = ended.result();
        assert_eq!(result.policy, "auto");
        let whys: Vec<Why> =
            result.decisions.iter().flat_map(|d| &d.reasons).map(|r| r.why.clone()).collect();
        let chosen = |why: &Why| match why.read()? {
            AutoReason::Chosen { mode, reason_code, .. } => Some((mode, reason_code)),
            _ => None,
        };
        let choices: Vec<_> = whys.iter().filter_map(chosen).collect();
        assert_eq!(choices.first(), Some(&(Mode::Corun, ReasonCode::Begins)));
        assert!(choices.len() > 1, "{choices:?}");
        let by_probe = |(_, reason_code): &(Mode, ReasonCode)| {
            matches!(reason_code, ReasonCode::GangsFill | ReasonCode::GangsIdle)
        };
        let is_probe = |why: &&Why| matches!(why.read(), Some(AutoReason::SoloProbes { .. }));
        let probes = whys.iter().filter(is_probe).count();
        assert!(probes > 0 || !choices.iter().any(by_probe), "{choices:?}");
        place.nothing_is_left_of(&ended);

        let text = place.cosched(&["explain", "out", "--json"]).ended().with(0).stdout;
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let listed = json["choices"].as_array().unwrap().clone();
        assert_eq!(listed.len(), choices.len());
        assert_eq!(listed[0]["mode"], "corun");
        let text = place.cosched(&["explain", "out"]).ended().with(0).stdout;
        assert!(
            text.contains("From its measurements, cosched chose how the programs ran:"),
            "{text}"
        );
    }
}

#[test]
fn commands_without_options_work_for_root_and_ordinary_users() {
    for user in [User::Caller, User::ordinary()] {
        let place = Place::of(user);
        let words = ["run", "--json", "--", "true", ":::", "sh", "-c", "exit 3", ":::", "true"];
        let ended = place.cosched(&words).ended().with(1);
        let result: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(result["policy"], "turns");
        let by_weight =
            result["backends"]["pinning"].as_str().unwrap().ends_with("turns by weight");
        assert_eq!(by_weight, result["backends"]["freezing"] == "none", "{}", result["backends"]);
        let exits = result["programs"].as_array().unwrap().iter();
        let exits: Vec<_> = exits.map(|program| program["exit_status"].as_i64()).collect();
        assert_eq!(exits, [Some(0), Some(3), Some(0)]);
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn goals_are_refused_by_policies_that_do_not_choose() {
    let place = Place::new();
    let one = [program("a", "", "true")];
    place.run(&one, "--goal responsive").ended().with(0);
    let said = ["--goal is for policies that choose by themselves (turns, auto)", "'gang'"];
    place.run(&one, "--policy gang --goal fair").ended().with(2).saying(&said);
}

/// Programs that are faster with one thread are started with one if they are moldable.
#[test]
fn only_moldable_programs_start_with_their_fastest_count() {
    let cpus = u16::try_from(affinity::get(0).unwrap().len()).unwrap();
    if cpus < 2 {
        return skip("with one CPU no program has two threads");
    }
    let place = Place::new();
    // So short that other processes hardly disturb the measurement.
    let burns = "echo \"$OMP_NUM_THREADS\"
        burn() { i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; }
        [ \"$OMP_NUM_THREADS\" = 1 ] || for one in $(seq \"$OMP_NUM_THREADS\"); do burn & done
        wait";
    let tables = [
        program("a", &format!("moldable = true\nthreads = {cpus}"), burns),
        program("b", &format!("moldable = true\nthreads = {cpus}"), burns),
        program("rigid", &format!("threads = {cpus}"), "echo \"$OMP_NUM_THREADS\""),
    ];
    place.write("jobs.toml", tables.concat());
    let started_with = |out: &str| {
        let run = ["run", "jobs.toml", "-p", "auto", "--verbose", "--force", "--out", out];
        let ended = place.cosched(&run).ended().with(0);
        let threads = ["a", "b", "rigid"]
            .map(|name| place.read(&format!("{out}/{name}.stdout")).trim().parse::<u16>().unwrap());
        (threads, ended.stderr)
    };
    let (threads, said) = started_with("unknown");
    assert_eq!(threads, [cpus; 3]);
    assert!(said.contains("because not all solo times are known (missing: a with "), "{said}");
    // Of some, one count is known.
    eventually("solo times with one thread", || {
        place.cosched(&["profile", "jobs.toml", "--threads", "1"]).ended().with(0);
        let (_, said) = started_with("some");
        said.contains("(missing: a with 2") && !said.contains("with 1,")
    });
    let counts = format!("1,{cpus}");
    let profile = ["profile", "jobs.toml", "--threads", &counts];
    let mut known = None;
    // A time that other processes disturbed is not kept, and is measured again.
    eventually("all solo times", || {
        place.cosched(&profile).ended().with(0);
        let all_known = |said: &str| !said.contains("because not all solo times are");
        known = Some(started_with("known")).filter(|(_, said)| all_known(said));
        known.is_some()
    });
    let (threads, said) = known.unwrap();
    assert_eq!(threads, [1, 1, cpus]);
    assert!(
        said.contains(&format!("started with fewer threads: a with 1 of {cpus} threads, b with")),
        "{said}"
    );
    let result = RunResult::load(&place.path("known/run.json")).unwrap();
    let reasons = result.decisions.iter().flat_map(|decision| &decision.reasons);
    let molded = Some(SharedReason::Molded { threads: 1, requested: cpus });
    assert!(reasons.map(|r| r.why.read()).any(|why| why == molded));
}
