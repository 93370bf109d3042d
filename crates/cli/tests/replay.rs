//! `cosched sim --from`, from outside: known figures of a run are reproduced, unknown ones are
//! reported, and runs that cannot be replayed are refused.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cosched_results::result::RunResult;
use serde_json::Value;

/// The machine of the recordings, whatever machine the tests run on.
const TWO_CPUS: &str = "package:1 core:2";

fn cosched(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.current_dir(folder).env("XDG_DATA_HOME", folder).args(arguments).output().unwrap()
}

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name)
}

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The JSON of a replay of a file.
fn replay(run: &Path, options: &[&str]) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let all = [&["sim", "--json", "--from", run.to_str().unwrap()], options].concat();
    let output = cosched(&all, folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Changes a recording, and replays it.
fn changed(name: &str, change: impl Fn(&mut Value), options: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut run: Value = serde_json::from_slice(&std::fs::read(recording(name)).unwrap()).unwrap();
    change(&mut run);
    std::fs::write(folder.path().join("run.json"), run.to_string()).unwrap();
    let all = [&["sim", "--from", "."], options].concat();
    cosched(&all, folder.path())
}

fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", messages(output));
    assert!(output.stdout.is_empty());
    messages(output)
}

const JOBS: &str = "[[program]]\ncommand = 'solver'\nthreads = 4\nweight = 2\n[program.model]\n\
    [[program.model.phase]]\nrepeat = 40\ninstructions = 1e8\nserial = 0.3\nbarriers = 1\n\
    [[program]]\ncommand = 'pair'\nthreads = 2\nstart = '150ms'\n\
    misses_per_kilo_instruction = 1\n[program.model]\n\
    [[program.model.phase]]\ninstructions = 2e9\n\
    [[program]]\ncommand = 'sleeper'\nthreads = 1\n[program.model]\n\
    [[program.model.phase]]\nrepeat = 50\ninstructions = 1e6\nsleep = '20ms'\n";

/// A simulated run of three programs, in a folder.
fn simulated(folder: &Path, policy: &str, more: &[&str]) {
    std::fs::write(folder.join("jobs.toml"), JOBS).unwrap();
    let options = ["sim", "jobs.toml", "--machine", "e5410-8", "--policy", policy, "--out", "run"];
    let output = cosched(&[&options, more].concat(), folder);
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
}

#[test]
fn a_recordings_model_file_replays_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let run = recording("barriers-fcfs.json");
    let from = ["sim", "--from", run.to_str().unwrap(), "--machine", TWO_CPUS];
    let file = cosched(&[&from[..], &["--jobs-file"]].concat(), folder.path());
    assert_eq!(file.status.code(), Some(0), "{}", messages(&file));
    std::fs::write(folder.path().join("jobs.toml"), &file.stdout).unwrap();
    let again = ["sim", "jobs.toml", "--machine", TWO_CPUS, "--policy", "fcfs", "--json"];
    let output = cosched(&again, folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let model = replay(&run, &["--machine", TWO_CPUS]);
    assert_eq!(result["total_seconds"], model["model"]["total_seconds"]);
}

#[test]
fn the_printed_command_simulates_the_recorded_machine() {
    let folder = tempfile::tempdir().unwrap();
    simulated(folder.path(), "fcfs", &["--kernel", "cfs"]);
    let file = cosched(&["sim", "--from", "run", "--jobs-file"], folder.path());
    std::fs::write(folder.path().join("model.toml"), &file.stdout).unwrap();
    let command = "cosched sim FILE --machine e5410-8 --kernel cfs";
    assert!(messages(&file).contains(command), "{}", messages(&file));
    assert!(String::from_utf8_lossy(&file.stdout).contains(command));
    let words = command.replace("FILE", "model.toml");
    let words: Vec<&str> = words.split(' ').skip(1).chain(["--json"]).collect();
    let output = cosched(&words, folder.path());
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["machine"]["model"], "e5410-8");
    // Of a recording only the number of CPUs is known.
    let run = recording("barriers-fcfs.json");
    let file = cosched(&["sim", "--from", run.to_str().unwrap(), "--jobs-file"], folder.path());
    assert!(messages(&file).contains("--machine 'package:1 core:2'`"), "{}", messages(&file));
}

#[test]
fn the_recorded_policy_is_simulated_in_one_column() {
    let shown = |options: &[&str]| {
        let output = changed("barriers-gang.json", |_| {}, options);
        assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let same = shown(&["--policy", "gang"]);
    assert_eq!(same.matches("gang simulated").count(), 1, "{same}");
    assert!(same.contains("another policy with --policy"), "{same}");
    for options in [&["--policy", "fcfs"] as &[_], &["--policy", "gang", "--quantum", "20ms"]] {
        let other = shown(options);
        assert_eq!(other.matches(" simulated").count(), 2, "{other}");
        assert!(!other.contains("--policy"), "{other}");
    }
}

#[test]
fn a_disturbed_recording_is_called_so() {
    let disturb = |run: &mut Value| run["others_cpu_seconds"] = 5.0.into();
    for (change, is_reported) in [(true, true), (false, false)] {
        let output = changed(
            "single-fcfs.json",
            |run| {
                if change {
                    disturb(run)
                }
            },
            &[],
        );
        let said = String::from_utf8_lossy(&output.stdout).contains("other processes used");
        assert_eq!(said, is_reported, "{}", messages(&output));
    }
}

#[test]
fn simple_runs_are_reproduced_under_every_policy() {
    for policy in ["linux", "linux-groups", "fcfs", "gang", "greedy", "minwait"] {
        let folder = tempfile::tempdir().unwrap();
        simulated(folder.path(), policy, &[]);
        let found = replay(&folder.path().join("run"), &["--policy", "gang"]);
        for figure in ["total", "mean_turnaround", "cpu_utilisation"] {
            let error = found["error_percent"][figure].as_f64().unwrap();
            assert!(error.abs() < 5.0, "{policy}: {figure} is {error} % off");
        }
        assert_eq!(found["recorded"]["policy"], policy);
        assert_eq!(found["machine"], "e5410-8");
    }
}

#[test]
fn another_policy_gets_the_answer_of_the_recorded_workload() {
    let folder = tempfile::tempdir().unwrap();
    simulated(folder.path(), "fcfs", &[]);
    for policy in ["linux", "gang", "minwait"] {
        let known = tempfile::tempdir().unwrap();
        simulated(known.path(), policy, &[]);
        let known = RunResult::load(&known.path().join("run/run.json")).unwrap();
        let found = replay(&folder.path().join("run"), &["--policy", policy]);
        let (answer, expected) =
            (found["answer"]["total_seconds"].as_f64().unwrap(), known.total_seconds);
        assert!((answer / expected - 1.0).abs() < 0.1, "{policy}: {answer} instead of {expected}");
    }
}

#[test]
fn recorded_settings_are_used_unless_options_override_them() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--quantum", "20ms", "--max-frozen", "300ms", "--placement", "spread"];
    simulated(folder.path(), "gang", &more);
    let run = folder.path().join("run");
    let found = replay(&run, &["--policy", "minwait"]);
    for part in ["model", "answer"] {
        assert_eq!(found[part]["quantum_seconds"], 0.02, "{part}");
        assert_eq!(found[part]["max_frozen_seconds"], 0.3, "{part}");
        assert_eq!(found[part]["placement"], "spread", "{part}");
    }
    let found = replay(&run, &["--policy", "minwait", "--quantum", "50ms"]);
    assert_eq!(found["model"]["quantum_seconds"], 0.02);
    assert_eq!(found["answer"]["quantum_seconds"], 0.05);

    let options = ["sim", "--from", "run", "--policy", "gang", "--out", "answer"];
    assert_eq!(cosched(&options, folder.path()).status.code(), Some(0));
    let answer = RunResult::load(&folder.path().join("answer/run.json")).unwrap();
    let recorded = RunResult::load(&run.join("run.json")).unwrap();
    for (ours, theirs) in answer.programs.iter().zip(&recorded.programs) {
        assert_eq!((&ours.name, ours.threads), (&theirs.name, theirs.threads));
        assert_eq!((&ours.terms, ours.arrived_seconds), (&theirs.terms, theirs.arrived_seconds));
    }
}

#[test]
fn a_repeated_program_is_repeated_in_the_replay() {
    let folder = tempfile::tempdir().unwrap();
    let jobs = JOBS.replace("'pair'\n", "'pair'\nrepeat = 3\n");
    let jobs = jobs.replace("'sleeper'\n", "'sleeper'\nrepeat = 'until-all-finish'\n");
    std::fs::write(folder.path().join("jobs.toml"), jobs).unwrap();
    let options = "sim jobs.toml --machine e5410-8 --policy gang --out run";
    let options: Vec<&str> = options.split(' ').collect();
    assert_eq!(cosched(&options, folder.path()).status.code(), Some(0));
    let options = ["sim", "--from", "run", "--policy", "gang", "--out", "answer"];
    assert_eq!(cosched(&options, folder.path()).status.code(), Some(0));
    let [recorded, answer] = ["run", "answer"]
        .map(|name| RunResult::load(&folder.path().join(name).join("run.json")).unwrap());
    let runs =
        |run: &RunResult| run.programs.iter().map(|p| p.completions.len()).collect::<Vec<_>>();
    assert_eq!(runs(&recorded), runs(&answer));
    assert!((answer.total_seconds / recorded.total_seconds - 1.0).abs() < 0.05);
}

#[test]
fn real_runs_are_reproduced_within_the_documented_error() {
    for policy in ["fcfs", "gang", "greedy", "minwait"] {
        for workload in ["single", "barriers"] {
            let run = recording(&format!("{workload}-{policy}.json"));
            let found = replay(&run, &["--policy", policy, "--machine", TWO_CPUS]);
            for figure in ["total", "mean_turnaround"] {
                let error = found["error_percent"][figure].as_f64().unwrap();
                assert!(error.abs() < 10.0, "{workload}, {policy}: {figure} is {error} % off");
            }
            // The model of the requested policy, which is the recorded one, is the same run.
            let totals = ["model", "answer"].map(|part| found[part]["total_seconds"].as_f64());
            assert_eq!(totals[0], totals[1]);
        }
    }
}

#[test]
fn time_wasted_by_spinning_is_reported_and_removed() {
    let run = recording("barriers-linux.json");
    let found = replay(&run, &["--policy", "gang", "--machine", TWO_CPUS]);
    let assumed = found["assumptions"].as_array().unwrap();
    let of = |assumption: &&Value| {
        assumption.as_str().unwrap().contains("CPU time beyond what it can use alone")
    };
    let spinning = assumed.iter().find(of).unwrap().as_str().unwrap();
    for program in ["barriers-1", "barriers-2", "barriers-3"] {
        assert!(spinning.contains(program), "{spinning}");
    }
    // A replay with plain Linux prints a warning, whatever was recorded.
    let gangs = recording("barriers-gang.json");
    let warned = |policy| {
        let found = replay(&gangs, &["--policy", policy, "--machine", TWO_CPUS]);
        found["assumptions"].to_string().contains("no thread spins")
    };
    assert_eq!(["linux", "linux-groups", "minwait"].map(warned), [true, true, false]);
    // The model of the record is then far too fast, and says so.
    assert!(found["error_percent"]["total"].as_f64().unwrap() < -30.0);
    // The result with gangs is known from the run of the same round.
    let gang = RunResult::load(&recording("barriers-gang.json")).unwrap();
    let answer = found["answer"]["total_seconds"].as_f64().unwrap();
    assert!((answer / gang.total_seconds - 1.0).abs() < 0.15, "{answer}, {}", gang.total_seconds);
}

#[test]
fn missing_solo_times_are_derived_from_running_or_cpu_time() {
    let basis = |name: &str| {
        let unknown = |run: &mut Value| {
            for program in run["programs"].as_array_mut().unwrap() {
                program["solo_seconds"] = Value::Null;
            }
        };
        let output = changed(name, unknown, &["--policy", "gang", "--machine", TWO_CPUS, "--json"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(found["assumptions"].to_string().contains("solo time not known"));
        found["programs"][0]["alone_from"].as_str().unwrap().to_owned()
    };
    assert_eq!(basis("single-gang.json"), "running");
    assert_eq!(basis("single-linux.json"), "cpu-time");
}

/// What a program lost to other processes is no sleep of it: the same work has the same model.
#[test]
fn in_a_disturbed_run_cpu_time_counts_for_all_programs() {
    let disturb = |run: &mut Value| {
        run["others_cpu_seconds"] = 5.0.into();
        for (i, program) in run["programs"].as_array_mut().unwrap().iter_mut().enumerate() {
            program["solo_seconds"] = Value::Null;
            program["usage"]["user_seconds"] = 0.3.into();
            program["usage"]["system_seconds"] = 0.0.into();
            program["running_seconds"] = (0.35 * (i + 1) as f64).into();
        }
    };
    for name in ["single-linux.json", "single-gang.json"] {
        let options = ["--policy", "minwait", "--machine", TWO_CPUS, "--json"];
        let output = changed(name, disturb, &options);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        for program in found["programs"].as_array().unwrap() {
            assert_eq!(
                (&program["alone_from"], &program["cpu_seconds"]),
                (&"cpu-time".into(), &0.3.into())
            );
            assert_eq!(program["alone_seconds"], found["programs"][0]["alone_seconds"]);
        }
    }
}

#[test]
fn a_model_that_does_not_fit_is_called_so_at_the_end() {
    let last = |name: &str, policy: &str| {
        let options = ["--policy", policy, "--machine", TWO_CPUS];
        let output = changed(name, |_| {}, &options);
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().last().unwrap().to_owned()
    };
    let misfit = last("barriers-linux.json", "minwait");
    assert!(
        misfit.starts_with("The model's times are up to ") && misfit.contains(" % off"),
        "{misfit}"
    );
    assert!(misfit.ends_with("so its figures for minwait say little."), "{misfit}");
    let fits = last("barriers-gang.json", "minwait");
    assert!(!fits.contains("say little"), "{fits}");
}

#[test]
fn reduced_thread_counts_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let half = "[[program]]\ncommand = 'half'\nmoldable = true\n[program.model]\nspin = '1ms'\n\
        [[program.model.phase]]\nrepeat = 50\ninstructions = 2e7\nserial = 0.27\n";
    std::fs::write(folder.path().join("jobs.toml"), half.repeat(2)).unwrap();
    let options = ["sim", "jobs.toml", "--machine", TWO_CPUS, "--out", "run"];
    let output = cosched(&options, folder.path());
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("half with 1 of 2 and half-2 with"));
    let run = folder.path().join("run");
    let made = RunResult::load(&run.join("run.json")).unwrap();
    let found = replay(&run, &["--policy", "fcfs"]);
    let alone = found["programs"][0]["alone_seconds"].as_f64().unwrap();
    let fewer = made.programs[0].molded_solo_seconds.unwrap();
    assert!((alone / fewer - 1.0).abs() < 0.01, "{alone} s, {fewer} s with one thread");
    assert!(fewer > 1.3 * made.programs[0].solo_seconds.unwrap());
    assert!(found["error_percent"]["total"].as_f64().unwrap().abs() < 1.0);
    assert!(found["assumptions"].to_string().contains("started with fewer threads than requested"));

    assert!(cosched(&["sim", "--from", "run", "--out", "again"], folder.path()).status.success());
    let again = RunResult::load(&folder.path().join("again/run.json")).unwrap();
    let [made, again] = [made, again].map(|run| run.programs[0].slowdown.unwrap());
    assert!((again / made - 1.0).abs() < 0.02, "{again}, {made}: both against all threads");
}

#[test]
fn runs_that_cannot_be_replayed_are_refused_with_a_remedy() {
    let gang = ["--policy", "gang", "--machine", TWO_CPUS];
    let folder = tempfile::tempdir().unwrap();
    let output = cosched(&["sim", "--from", ".", "--policy", "gang"], folder.path());
    let text = refused(&output);
    assert!(text.contains("run.json: cannot be read"), "{text}");
    std::fs::write(folder.path().join("run.json"), "{\"schema\": \"cosched-run/1\", \"pol")
        .unwrap();
    let text = refused(&cosched(&["sim", "--from", ".", "--policy", "gang"], folder.path()));
    assert!(text.contains("run.json: is damaged"), "{text}");

    let change = |change: fn(&mut Value)| refused(&changed("single-gang.json", change, &gang));
    let text = change(|run| run["interrupted_by"] = "SIGINT".into());
    assert!(text.contains("--from .: the run was interrupted (SIGINT)"), "{text}");
    let text = change(|run| run["policy"] = "lottery".into());
    assert!(text.contains("'lottery'"), "{text}");
    let text = change(|run| {
        for program in run["programs"].as_array_mut().unwrap() {
            program["completions"] = Value::Array(Vec::new());
        }
    });
    assert!(text.contains("nothing to replay"), "{text}");

    let text = change(|run| run["programs"][0]["running_seconds"] = 1e250.into());
    assert!(text.contains("run.json") && text.contains("programs[0].running_seconds"), "{text}");
    let text = change(|run| run["programs"][0]["command"][0] = "a\0".into());
    assert!(text.contains("run.json: programs[0].command[0] has a NUL"), "{text}");
    let options = ["--policy", "gang", "--machine", "opteron-64"];
    let text = refused(&changed("single-gang.json", |_| {}, &options));
    assert!(text.contains("2 CPUs") && text.contains("package:1 core:2"), "{text}");
    let options = ["--policy", "linux", "--quantum", "20ms", "--machine", TWO_CPUS];
    assert!(refused(&changed("single-gang.json", |_| {}, &options)).contains("--quantum"));
    let options = ["--policy", "gang", "--sweep", "seed=1,2"];
    assert!(refused(&changed("single-gang.json", |_| {}, &options)).contains("--sweep"));
    // cgreedy pairs programs by their misses.
    let unknown = |run: &mut Value| {
        for program in run["programs"].as_array_mut().unwrap() {
            program["terms"] = Value::Null;
        }
    };
    let options = ["--policy", "cgreedy", "--machine", TWO_CPUS];
    let text = refused(&changed("single-gang.json", unknown, &options));
    assert!(text.contains("--from .") && text.contains("single-1, single-2"), "{text}");
    let again = "record the run again: cosched run JOBS.toml --policy gang --out DIR";
    assert!(text.contains(again) && !text.contains("command line"), "{text}");
}

/// Such a file was in the folder of the run, which the replay does not look for.
#[test]
fn a_command_that_looks_like_a_variable_is_replayed() {
    let options = ["--policy", "gang", "--machine", TWO_CPUS];
    let change = |run: &mut Value| run["programs"][0]["command"][0] = "$HOME/a".into();
    let output = changed("single-gang.json", change, &options);
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
}

/// A policy may need figures that the record lacks. The error says how to record the run again, and
/// then replay works.
#[test]
fn a_record_without_needed_figures_is_refused_until_remade() {
    let folder = tempfile::tempdir().unwrap();
    simulated(folder.path(), "gang", &[]);
    let asked = ["sim", "--from", "run", "--policy", "cgreedy"];
    let text = refused(&cosched(&asked, folder.path()));
    assert!(text.contains("does not hold for solver, sleeper. Set `misses_per_kilo_"), "{text}");
    assert!(
        text.contains("cosched sim JOBS.toml --machine e5410-8 --policy gang --out DIR"),
        "{text}"
    );
    let jobs = JOBS.replace("misses_per_kilo_instruction = 1\n", "");
    let jobs = jobs.replace("[program.model]", "misses_per_kilo_instruction = 1\n[program.model]");
    std::fs::write(folder.path().join("jobs.toml"), jobs).unwrap();
    let again = ["sim", "jobs.toml", "--machine", "e5410-8", "--policy", "gang", "--out", "more"];
    assert_eq!(cosched(&again, folder.path()).status.code(), Some(0));
    let asked = ["sim", "--from", "more", "--policy", "cgreedy"];
    assert_eq!(cosched(&asked, folder.path()).status.code(), Some(0));
}

#[test]
fn a_binding_by_the_command_is_reported_as_dropped() {
    let options = ["--policy", "gang", "--machine", TWO_CPUS];
    let assumed = |change: fn(&mut Value)| {
        let output = changed("single-gang.json", change, &options);
        String::from_utf8(output.stdout).unwrap()
    };
    let bound = "single-1: started by taskset";
    let split = assumed(|run| {
        run["programs"][0]["command"] = serde_json::json!(["taskset", "--cpu-list", "0", "a"]);
    });
    assert!(split.contains(bound), "{split}");
    assert!(!assumed(|_| {}).contains(bound));
}

#[test]
fn a_rivals_run_is_named_by_its_variant() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("jobs.toml"), JOBS).unwrap();
    let compare = ["compare", "jobs.toml", "--machine", "e5410-8", "--runs", "1", "--out", "c"];
    let variants = ["--policies", "linux,one-thread"];
    assert!(cosched(&[&compare[..], &variants].concat(), folder.path()).status.success());
    let assumed = |run| {
        let output = cosched(&["sim", "--from", run, "--policy", "gang"], folder.path());
        assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let assumption = "Assumed: the run is one of variant 'one-thread' of a comparison; the replay \
               is of programs that are started as in that variant, with one thread each.";
    assert!(assumed("c/one-thread").contains(assumption), "{}", assumed("c/one-thread"));
    assert!(!assumed("c/linux").contains("of a comparison"));
}

/// An unknown machine is named in the error. A stored machine file that is damaged is left out.
#[test]
fn unknown_machines_are_refused_and_damaged_ones_not_used() {
    let options = ["--policy", "gang", "--machine", "foo"];
    let text = refused(&changed("single-gang.json", |_| {}, &options));
    assert!(text.contains("there is no machine 'foo'") && !text.contains("--from"), "{text}");

    let folder = tempfile::tempdir().unwrap();
    let ran =
        cosched(&["run", "--policy", "linux", "--out", "r", "--", "sleep", "0.1"], folder.path());
    assert_eq!(ran.status.code(), Some(0), "{}", messages(&ran));
    let kept = folder.path().join("cosched/machine.toml");
    std::fs::create_dir(folder.path().join("cosched")).unwrap();
    std::fs::write(kept, "rubbish").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cosched"));
    command.args(["sim", "--from", "r", "--policy", "gang"]).current_dir(folder.path());
    let output = command.env("XDG_DATA_HOME", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("machine.toml") && text.contains("sim measure"), "{text}");
}

/// A program that never started is left out.
#[test]
fn failed_programs_are_replayed_as_far_as_they_ran() {
    let fail = |run: &mut Value| {
        let programs = run["programs"].as_array_mut().unwrap();
        programs[0]["exit"] = serde_json::json!({"signal": 9});
        programs[0]["exit_status"] = serde_json::json!(137);
        programs[1]["completions"] = Value::Array(Vec::new());
        programs[1]["started_seconds"] = Value::Null;
        programs[1]["turnaround_seconds"] = Value::Null;
    };
    let options = ["--policy", "gang", "--machine", TWO_CPUS];
    let output = changed("single-gang.json", fail, &options);
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("single-1: failed; it is replayed"), "{text}");
    assert!(text.contains("single-2: could not be started"), "{text}");
    assert!(text.contains("single-3 s") && !text.contains("single-2 s"), "{text}");
}
