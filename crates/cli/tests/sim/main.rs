//! `cosched sim`, from outside: the same table and document as a real run, and errors that say
//! where.

#![allow(clippy::unwrap_used)]

mod after;
mod constants;
mod escapes;
mod mistakes;
mod pauses;
mod shares;
mod sweep;

use std::path::Path;
use std::process::{Command, Output};

use cosched_core::Why;
use cosched_policy::reasons::ShufflingReason;
use cosched_results::result::{RunResult, Simulation};

const WORKLOAD: &str = "[[program]]\ncommand = 'a'\nthreads = 24\n\
    [program.model]\nspin = 'forever'\n[[program.model.phase]]\n\
    instructions = 1e10\nbarriers = 1000\n\
    [[program]]\ncommand = 'b'\nthreads = 12\nmisses_per_kilo_instruction = 1\n\
    [program.model]\n[[program.model.phase]]\ninstructions = 1e10\nbarriers = 10\n";

fn sim(folder: &Path, workload: &str, options: &str) -> Output {
    std::fs::write(folder.join("jobs.toml"), workload).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder).args(["sim", "jobs.toml"]).args(options.split_whitespace());
    command.output().unwrap()
}

fn result(workload: &str, options: &str) -> RunResult {
    let folder = tempfile::tempdir().unwrap();
    let output = sim(folder.path(), workload, &format!("{options} --out out"));
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{messages}");
    RunResult::load(&folder.path().join("out/run.json")).unwrap()
}

fn refused(workload: &str, options: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = sim(folder.path(), workload, options);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

const ONE_THREAD: &str = "[[program]]\ncommand = 'a'\nthreads = 1\n[program.model]\n\
    [[program.model.phase]]\ninstructions = 1e8\n";

#[test]
fn a_simulated_run_has_a_real_ones_document_and_is_repeatable() {
    let options = "--machine dunnington-24 --kernel cfs --policy gang --quantum 20ms";
    let first = result(WORKLOAD, options);
    assert_eq!(first, result(WORKLOAD, options));
    assert_eq!((first.policy.as_str(), first.machine.cpus), ("gang", 24));
    assert!(first.programs.iter().all(|program| program.slowdown.unwrap() > 1.0));
    assert!(first.deviations.is_empty());
}

#[test]
fn the_document_of_a_simulated_run_says_how_to_repeat_it() {
    let options = "--machine e5-2670-16 --kernel cfs --policy linux --seed 7";
    let run = result(&WORKLOAD.replace("threads = 24", "threads = 8"), options);
    let (machine, kernel) = ("e5-2670-16".to_owned(), "cfs".to_owned());
    assert_eq!(
        run.simulation,
        Some(Simulation { machine, kernel, seed: 7, set: Default::default() })
    );
    assert_eq!(run.machine.kernel, "simulated");
}

#[test]
fn a_model_with_a_barrier_key_reports_the_cost_of_waiting() {
    for barrier in ["spin", "donate"] {
        let named = format!("spin = 'forever'\nbarrier = '{barrier}'");
        let workload = WORKLOAD.replacen("spin = 'forever'", &named, 1);
        let options = "--machine dunnington-24 --kernel cfs --policy linux";
        let run = result(&workload, options);
        let (usage, waits) = (run.programs[0].usage, run.programs[0].usage.waits.unwrap());
        let received = waits.useful_seconds + waits.spun_seconds;
        assert!((received - usage.user_seconds).abs() < 1e-5, "{usage:?}");
        assert_eq!((waits.barriers, waits.donations > 0), (1000, barrier == "donate"));
        assert_eq!(run.programs[1].usage.waits, None);
        let folder = tempfile::tempdir().unwrap();
        let table = String::from_utf8(sim(folder.path(), &workload, options).stdout).unwrap();
        assert!(table.contains("spun s") && table.contains("latency us"), "{table}");
    }
}

#[test]
fn options_for_real_programs_are_not_offered() {
    let folder = tempfile::tempdir().unwrap();
    let help = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
        let output = command.args(words.split_whitespace()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    for words in ["sim --help", "sim calibrate --help", "sim slowdowns --help"] {
        for option in ["--freezer", "--pinning", "--grace", "--prog", ":::"] {
            assert!(!help(words).contains(option), "{words}: {option}");
        }
    }
    assert!(help("run --help").contains("--freezer"));
    assert!(!help("sim slowdowns --help").contains("--quantum"), "no program takes turns there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder.path()).args(["sim", "--machine", "e5410-8", "--policy", "gang"]);
    let output = command.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        messages.contains("[program.model]") && !messages.contains("cosched run"),
        "{messages}"
    );
}

#[test]
fn a_missing_machine_is_answered_with_how_to_name_one() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), WORKLOAD).unwrap();
    for sweep in [&[][..], &["--sweep", "seed=1,2"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
        command.current_dir(folder.path()).args([&["sim", "jobs.toml"], sweep].concat());
        let output = command.output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{messages}");
        for remedy in ["--machine", "opteron-64", "`cosched sim measure`"] {
            assert!(messages.contains(remedy), "{remedy} is not in: {messages}");
        }
    }
}

#[test]
fn the_default_policy_is_turns() {
    let unnamed = result(WORKLOAD, "--machine e5410-8");
    assert_eq!(unnamed.policy, "turns");
    let named = result(WORKLOAD, "--machine e5410-8 --policy turns");
    assert_eq!(unnamed.total_seconds, named.total_seconds);

    let folder = tempfile::tempdir().unwrap();
    let sweep = "--machine e5410-8 --sweep quantum=20ms,50ms --json --no-solo";
    let table = String::from_utf8(sim(folder.path(), WORKLOAD, sweep).stdout).unwrap();
    let table: serde_json::Value = serde_json::from_str(&table).unwrap();
    let points = table["points"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert!(points.iter().all(|point| point["policy"] == "turns"), "{table}");
}

#[test]
fn machine_descriptions_with_commas_can_be_swept() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), WORKLOAD).unwrap();
    let machines = "machine=core:24 signal_nanos=1,2,3,Package:2 L3Cache:1(size=8MB) Core:12";
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder.path()).args(["sim", "jobs.toml", "--policy", "fcfs", "--json"]);
    let output = command.args(["--no-solo", "--sweep", machines]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(table.to_string().contains("core:24 signal_nanos=1,2,3\""), "{table}");
    let mut points = table["points"].as_array().unwrap().iter();
    assert!(points.all(|point| point["ratio_to_solo_sum"].is_null()), "--no-solo: {table}");
}

#[test]
fn without_solo_times_no_profile_command_is_suggested() {
    let folder = tempfile::tempdir().unwrap();
    let output = sim(folder.path(), WORKLOAD, "--machine dunnington-24 -p gang --no-solo");
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(said.contains("\ngang: ") && !said.contains("this command measures"), "{said}");
    assert!(said.lines().all(|line| !line.trim().is_empty()), "{said}");
}

#[test]
fn spinning_programs_end_sooner_in_gangs_than_running_together() {
    let both = WORKLOAD.replace("threads = 12", "threads = 24").replace(
        "[program.model]\n[[program.model.phase]]\ninstructions = 1e10\nbarriers = 10",
        "[program.model]\nspin = 'forever'\n[[program.model.phase]]\ninstructions = \
         1e10\nbarriers = 1000",
    );
    let total =
        |policy| result(&both, &format!("--machine dunnington-24 -p {policy}")).total_seconds;
    assert!(total("gang") < 0.7 * total("linux"));
}

#[test]
fn a_program_that_has_to_join_a_cgroup_starts_later() {
    const MACHINE: &str = "name = 'mine'\ntopology = 'core:24'\ngigahertz = 1.0\ncache_mib = 8\n\
        memory_nanos = 80\nbus = [{ of = 'machine', bytes_per_nano = 10 }]\nswitch_nanos = 0\n\
        wake_nanos = 0\nsignal_nanos = [0, 0, 0]\n[own]\nstart_nanos = 1000000\n\
        join_nanos = 20000000\nfreeze_nanos = 0\nthaw_nanos = 0\n";
    let started = |policy: &str| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine.toml"), MACHINE).unwrap();
        let options = format!("--machine ./mine.toml --policy {policy} --out out");
        assert_eq!(sim(folder.path(), WORKLOAD, &options).status.code(), Some(0));
        let run = RunResult::load(&folder.path().join("out/run.json")).unwrap();
        (run.programs[0].started_seconds.unwrap() * 1e3).round()
    };
    assert_eq!(["linux", "fcfs"].map(started), [1.0, 1.0]);
    assert_eq!(["linux-groups", "gang", "minwait"].map(started), [21.0, 21.0, 21.0]);
}

#[test]
fn errors_are_reported_before_anything_is_simulated() {
    let machine = "--machine dunnington-24 --policy gang";
    let message = refused("[[program]]\ncommand = 'a'\n", machine);
    assert!(message.contains("jobs.toml:2:11") && message.contains("[program.model]"), "{message}");
    let message = refused(&WORKLOAD.replace("spin =", "spins ="), machine);
    assert!(message.contains("jobs.toml:5:") && message.contains("spins"), "{message}");
    let message =
        refused(&WORKLOAD.replace("spin =", "startup_instructions = -1\nspin ="), machine);
    assert!(
        message.contains("jobs.toml:5:24") && message.contains("startup_instructions is -1"),
        "{message}"
    );
    let message = refused(WORKLOAD, "--machine cray --policy gang");
    assert!(message.contains("cray") && message.contains("opteron-64"), "{message}");
    let message = refused(WORKLOAD, "--machine e5410-8 --policy gang");
    assert!(message.contains("24 threads"), "{message}");
}

/// The bytes of run.json.
fn document(workload: &str, options: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let output = sim(folder.path(), workload, &format!("{options} --out out"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::read(folder.path().join("out/run.json")).unwrap()
}

/// A number for some bytes (FNV-1a).
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Everything that a model can contain, several times.
const MANY: &str = "[[program]]\ncommand = 'cg'\nthreads = 8\n\
    misses_per_kilo_instruction = 9\nrepeat = 2\n\
    [program.model]\nspin = '300us'\nimbalance = 0.1\n\
    [[program.model.phase]]\nrepeat = 3\ninstructions = 2e9\n\
    serial = 0.01\nbarriers = 50\ncycles_per_instruction = 0.8\nmisses_per_kilo_instruction = 3.0\n\
    misses_without_cache = 12.0\nfootprint_mib = 24\nmisses_in_flight = 4\n\
    critical = { sections = 100, instructions = 300 }\nsleep = '10ms'\n\
    [[program]]\ncommand = 'ep'\nthreads = 5\nmisses_per_kilo_instruction = 0.1\nstart = '30ms'\n\
    [program.model]\n[[program.model.phase]]\ninstructions = 9e9\nbarriers = 3\n\
    [[program]]\ncommand = 'stream'\nthreads = 6\nmisses_per_kilo_instruction = 30\nweight = 2\n\
    [program.model]\nspin = 'forever'\n[[program.model.phase]]\ninstructions = 3e9\nbarriers = 40\n\
    misses_per_kilo_instruction = 30\nmisses_in_flight = 8\n";

#[test]
fn a_run_has_the_same_bytes_on_every_machine() {
    // A hash that changes on purpose: run this test, find out what has changed and why, and take
    // over the new value.
    let goldens: [(&str, &str); 5] = [
        ("--machine r905-24 --kernel cfs --policy gang --quantum 20ms", "00b46f7e97e5ba99"),
        (
            "--machine opteron-64 --kernel eevdf --policy greedy --placement spread --seed 7",
            "2d9aa1e8894fcbcf",
        ),
        ("--machine chiplets-128 --kernel balance --policy linux", "9e2ca2fe51170e59"),
        ("--machine e5-2670-16 --kernel rr --policy linux-groups", "90f0bbf8455ef13a"),
        (
            "--machine e5410-8 --kernel eevdf --policy minwait --quantum 7ms --max-frozen 300ms",
            "6097ed4276c31786",
        ),
    ];
    let mut found = Vec::new();
    for (options, _) in goldens {
        let first = document(MANY, options);
        assert_eq!(first, document(MANY, options), "{options}: two runs differ");
        found.push((options, format!("{:016x}", hash(&first))));
    }
    let expected = goldens.map(|(options, hash)| (options, hash.to_owned()));
    assert_eq!(found, expected);
}

#[test]
fn watch_overwrites_only_files_that_it_made() {
    let folder = tempfile::tempdir().unwrap();
    let workload = &WORKLOAD.replace("1e10", "1e8");
    let watching = |file: &str| {
        let output = sim(
            folder.path(),
            workload,
            &format!("--machine dunnington-24 --policy gang --watch {file}"),
        );
        (output.status.code(), String::from_utf8(output.stderr).unwrap(), output.stdout)
    };
    let (code, message, shown) = watching("jobs.toml");
    assert!(message.contains("was not made by `cosched sim --watch`"), "{message}");
    assert!(code == Some(2) && shown.is_empty(), "{message}");
    assert_eq!(std::fs::read_to_string(folder.path().join("jobs.toml")).unwrap(), *workload);
    assert_eq!([watching("w").0, watching("w").0], [Some(0), Some(0)]);
}

/// A file that cannot be created is refused before the simulation. If the disk is full, the result
/// is still printed.
#[test]
fn unwritable_files_are_refused_and_a_full_disk_costs_no_result() {
    let folder = tempfile::tempdir().unwrap();
    let watching = |file: &str| {
        let options = format!("--machine dunnington-24 --policy gang --watch {file}");
        sim(folder.path(), &WORKLOAD.replace("1e10", "1e8"), &options)
    };
    for (file, code, is_shown) in [("no/where", 2, false), ("/dev/full", 1, true)] {
        let output = watching(file);
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{messages}");
        assert!(
            messages.contains(file) && messages.contains("another place with --watch"),
            "{messages}"
        );
        assert!(!messages.contains(".tmp"), "{messages}");
        assert_eq!(!output.stdout.is_empty(), is_shown, "{file}");
    }
}

#[test]
fn a_file_size_limit_is_reported_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), WORKLOAD.replace("1e10", "1e8")).unwrap();
    let script =
        "ulimit -f 0; exec \"$0\" sim jobs.toml --machine dunnington-24 --policy gang --watch w";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_cosched")]).current_dir(folder.path());
    let output = command.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(
        messages.contains("w: cannot be written: File too large") && !messages.contains(".tmp"),
        "{messages}"
    );
    assert!(!output.stdout.is_empty());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// The rows of `--watch` for a program with threads that compete for a lock, with half as many
/// threads more than CPUs, on Solaris.
fn watched(policy: &str) -> (RunResult, Vec<serde_json::Value>) {
    let workload = "[[program]]\ncommand = 'a'\nthreads = 36\n[program.model]\nadaptive = '10us'\n\
        [[program.model.phase]]\nrepeat = 20\ninstructions = 2e10\nbarriers = 1\n\
        critical = { sections = 20, instructions = 120000, nested = 20000 }\n";
    let folder = tempfile::tempdir().unwrap();
    let options = "--machine r905-24 --kernel solaris-ts --no-solo --out out --watch seconds.jsonl";
    let output = sim(folder.path(), workload, &format!("{options} --policy {policy}"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = std::fs::read_to_string(folder.path().join("seconds.jsonl")).unwrap();
    let rows = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (RunResult::load(&folder.path().join("out/run.json")).unwrap(), rows)
}

/// There are no sibling preemptions from the time at which the policy has chosen a slice.
#[test]
fn faithful_ends_sibling_preemption_on_solaris() {
    let preemptions = |rows: &[serde_json::Value], from: f64| -> u64 {
        let later = rows.iter().filter(|row| row["from_seconds"].as_f64().unwrap() >= from);
        later.map(|row| row["by_sibling"].as_u64().unwrap()).sum()
    };
    let (run, rows) = watched("linux");
    let last = rows.last().unwrap()["to_seconds"].as_f64().unwrap();
    assert!((last - run.total_seconds).abs() < 1e-3, "{last} of {}", run.total_seconds);
    assert!(last > 6.0 && preemptions(&rows, 4.0) > 0);
    let (run, rows) = watched("faithful --no-guard");
    assert!(run.deviations.is_empty(), "{:?}", run.deviations);
    assert_eq!(preemptions(&rows, 4.0), 0);
}

/// Eight programs that stream and eight that compute, four seconds each alone.
fn streams_and_computing() -> String {
    let program = |name: String, instructions, misses| {
        format!(
            "[[program]]\nname = '{name}'\ncommand = 'x'\nthreads = \
             1\n[program.model]\n[[program.model.phase]]\n\
             instructions = {instructions}\n\
             misses_per_kilo_instruction = {misses}\nmisses_in_flight = 8\n"
        )
    };
    let pair = |i| program(format!("s{i}"), "3.2e9", 60) + &program(format!("c{i}"), "9.3e9", 0);
    (0..8).map(pair).collect()
}

#[test]
fn fair_progress_evens_slowdowns_the_more_it_trains() {
    let workload = streams_and_computing();
    let unfairness = |options: &str| {
        let run = result(&workload, &format!("--machine e5410-8 --kernel cfs --policy {options}"));
        let slowdowns = || run.programs.iter().map(|program| program.slowdown.unwrap());
        slowdowns().fold(0.0, f64::max) / slowdowns().fold(f64::INFINITY, f64::min)
    };
    let linux = unfairness("linux");
    let [none, unlimited] = ["0", "unlimited"]
        .map(|limit| unfairness(&format!("fair-progress --training-limit {limit}")));
    let optimal = unfairness("fair-progress --optimal");
    let all =
        format!("linux {linux}, without training {none}, with {unlimited}, optimal {optimal}");
    assert!(linux > 1.3 && unlimited < none && unlimited - 1.0 < 0.5 * (linux - 1.0), "{all}");
    assert!(optimal < 1.1, "{all}");
}

/// Taking turns by weight binds programs only on machines with several last-level caches.
#[test]
fn a_placement_is_reported_only_where_programs_are_bound() {
    for (options, placement) in [
        ("--machine core:2 --policy turns", None),
        ("--machine core:2 --policy turns --turns freeze", Some("packed")),
        ("--machine package:2 --policy turns", Some("packed")),
        ("--machine core:2 --policy gang", Some("packed")),
    ] {
        let found = result(ONE_THREAD, options).placement;
        assert_eq!(found.as_deref(), placement, "{options}");
    }
}

/// Other policies refuse them, and real runs refuse those that only a simulator can fulfil.
#[test]
fn options_of_fair_progress_are_refused_elsewhere() {
    let message = refused(WORKLOAD, "--machine dunnington-24 --policy minwait --training-limit 2");
    assert!(
        message.contains("--training-limit is for policies that keep slowdowns equal"),
        "{message}"
    );
    for (option, what) in [
        ("--training-limit 2", "keep slowdowns equal (fair-progress)"),
        ("--quantum 50ms", "have quanta (gang,"),
        ("--max-frozen 2s", "can pause programs (gang,"),
        ("--placement spread", "can bind programs to CPUs (gang,"),
        ("--turns freeze", "take turns (gang,"),
    ] {
        let message =
            refused(WORKLOAD, &format!("--machine dunnington-24 --policy linux {option}"));
        assert!(message.contains(&format!("is for policies that {what}")), "{message}");
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.args(["run", "--policy", "fair-progress", "--optimal", "--prog", "true"]);
    let output = command.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{messages}");
    assert!(messages.contains("--optimal works only on simulated machines"), "{messages}");
}

/// Threads with similar waits get one package. A machine with one package is refused.
#[test]
fn shuffling_groups_similar_waiters_and_needs_two_packages() {
    let workload = "[[program]]\ncommand = 'a'\nthreads = 8\n\
        [program.model]\nadaptive = '10us'\nimbalance = 0.9\n\
        [[program.model.phase]]\nrepeat = 20\ninstructions = 2e9\nbarriers = 1\n\
        critical = { sections = 20, instructions = 1000000, lines = 8 }\n";
    let run = result(workload, "--no-solo --policy shuffling --no-guard --machine e5410-8");
    assert!(run.deviations.is_empty(), "{:?}", run.deviations);
    let reasons = run.decisions.iter().flat_map(|decision| &decision.reasons);
    let shuffled = |why: &Why| match why.read()? {
        ShufflingReason::Shuffled { threads, groups, before, after, .. } => {
            Some((threads, groups, before, after))
        }
        _ => None,
    };
    let shuffled: Vec<_> = reasons.filter_map(|reason| shuffled(&reason.why)).collect();
    let Some((8, 2, before, after)) = shuffled.first().copied() else { panic!("{shuffled:?}") };
    assert!(after < before, "{shuffled:?}");
    let one_package = "--no-solo --machine core:8 --policy";
    assert!(refused(workload, &format!("{one_package} shuffling")).contains("--groups"));
    result(workload, &format!("{one_package} shuffling --groups 0-3,4-7"));
    let useless = refused(workload, &format!("{one_package} linux --groups 0-3,4-7"));
    assert!(useless.contains("--groups is for policies"), "{useless}");
}

/// Packed threads share a bus, and those that Linux spreads do not.
#[test]
fn a_slowdown_below_1_is_explained() {
    let workload = "[[program]]\ncommand = 'a'\nthreads = 8\n[program.model]\n\
        [[program.model.phase]]\ninstructions = 1e9\nmisses_per_kilo_instruction = 3\n";
    let folder = tempfile::tempdir().unwrap();
    for (policy, is_faster) in [("linux", true), ("gang", false)] {
        let options = format!("--machine dunnington-24 --policy {policy}");
        let table = String::from_utf8(sim(folder.path(), workload, &options).stdout).unwrap();
        let told = table.contains("A slowdown below 1: solo runs bind threads to CPUs as `--pl");
        assert_eq!(told, is_faster, "{table}");
    }
}
