//! Every policy with every freezer: programs run to their ends, one gang at a time, and get their
//! original settings back.

use cosched_core::{Exit, Refusal};
use cosched_results::result::{ProgramResult, RunResult, TimelineEntry};

use cosched_linux::cgroup::{Hierarchies, Hierarchy};
use cosched_linux::kernel::procfs::Proc;

use super::support::{Backend, Place, STAMPS, blocks, eventually, program, skip};

const POLICIES: [&str; 15] = [
    "linux",
    "linux-groups",
    "fcfs",
    "linux-weights",
    "gang",
    "greedy",
    "cgreedy",
    "bandwidth",
    "minwait",
    "fair-progress",
    "adaptive-greedy",
    "adaptive-minwait",
    "request-greedy",
    "request-minwait",
    "balance",
];
/// A made-up table of slowdowns: no events are counted here.
const SLOWDOWNS: &str =
    "machine = 'made up'\ngigabytes_per_second = [5.0]\npairs = [[2.0]]\ntriples = [[[3.0]]]\n";
/// The error of a time that is rounded to microseconds.
const ROUNDING: f64 = 3e-6;

/// Three programs that request one CPU, the whole machine, and one CPU.
fn three(cpus: usize) -> Vec<String> {
    let keys = |threads: usize| {
        format!(
            "threads = {threads}\nmisses_per_kilo_instruction = \
             {threads}\nmemory_gigabytes_per_second = {threads}"
        )
    };
    let work = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let script = |name: &str| {
        format!("echo {name} $OMP_NUM_THREADS $OPENBLAS_NUM_THREADS; {work}; echo {name} bad >&2")
    };
    vec![
        program("one", &keys(1), &script("one")),
        program("all", &keys(cpus), &script("all")),
        program("two", &keys(1), &script("two")),
    ]
}

fn cpus() -> usize {
    cosched_linux::kernel::affinity::get(0).unwrap().len()
}

/// What must hold of any complete run.
fn is_sound(result: &RunResult, policy: &str) {
    assert_eq!((result.schema.as_str(), result.policy.as_str()), ("cosched-run/3", policy));
    assert_eq!(result.interrupted_by, None);
    assert_eq!(result.machine.cpus, cpus());
    for program in &result.programs {
        let turnaround = program.turnaround_seconds.unwrap();
        let parts = program.running_seconds + program.waiting_seconds;
        assert!((turnaround - parts).abs() <= ROUNDING, "{turnaround} is not {parts}");
        assert!(program.arrived_seconds + turnaround <= result.total_seconds + ROUNDING);
        assert!(program.started_seconds.unwrap() <= turnaround);
        is_in_order(program);
        let spans: f64 = program.timeline.iter().map(|span| span.1 - span.0).sum();
        let slack = ROUNDING * program.timeline.len() as f64;
        assert!((spans - program.running_seconds).abs() <= slack, "{program:?}");
        assert!(program.usage.user_seconds + program.usage.system_seconds > 0.0);
    }
}

/// A program's spans follow one another.
fn is_in_order(program: &ProgramResult) {
    assert!(!program.timeline.is_empty());
    for span in &program.timeline {
        assert!(span.0 <= span.1 + ROUNDING, "{span:?}");
    }
    for pair in program.timeline.windows(2) {
        assert!(pair[0].1 <= pair[1].0 + ROUNDING, "{pair:?}");
    }
}

/// Whether two programs were ever allowed to run at the same time.
fn overlap(a: &ProgramResult, b: &ProgramResult) -> bool {
    let both = |a: &TimelineEntry, b: &TimelineEntry| a.0.max(b.0) + ROUNDING < a.1.min(b.1);
    a.timeline.iter().any(|one| b.timeline.iter().any(|other| both(one, other)))
}

/// A run in which every freeze was confirmed in time, which a busy machine does not always allow.
fn without_deviations(mut attempt: impl FnMut() -> (Place, RunResult)) -> (Place, RunResult) {
    for _ in 0..10 {
        let (place, result) = attempt();
        if result.deviations.is_empty() {
            return (place, result);
        }
        let late = |why: Refusal| why == Refusal::TimedOut || why == Refusal::FrozenTooLong;
        assert!(result.deviations.iter().all(|d| late(d.why)), "{:?}", result.deviations);
    }
    panic!("freezing was late in every one of ten runs");
}

fn every_policy_on(backend: Backend) {
    if !backend.is_here() {
        return;
    }
    for policy in POLICIES {
        let place = Place::new();
        let freezes =
            !["linux", "linux-groups", "linux-weights", "fcfs", "balance"].contains(&policy);
        // This one reads every program between two quanta, which takes longer than 10 ms where
        // machines are emulated.
        let quantum = if policy == "fair-progress" { "100ms" } else { "10ms" };
        let how = format!(" --quantum {quantum} --freezer {}", backend.0);
        let options = format!("--policy {policy}{}", if freezes { &how } else { "" });
        let options = match policy {
            "bandwidth" | "fair-progress" => {
                let table = place.write("slowdowns.toml", SLOWDOWNS);
                format!("{options} --slowdowns {}", table.display())
            }
            _ => options,
        };
        let ended = place.run(&three(cpus()), &options).ended();
        if policy == "linux-groups" && ended.stderr.contains("not available here") {
            skip("programs get no CPU groups here");
            continue;
        }
        let ended = ended.with(0);
        let result = ended.result();
        is_sound(&result, policy);
        assert_eq!(result.backends.freezing, if freezes { backend.0 } else { "none" });
        let verdict = format!("{policy}: ");
        assert!(ended.stdout.lines().any(|line| line.starts_with(&verdict)), "{}", ended.stdout);
        let names: Vec<&str> = result.programs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["one", "all", "two"]);
        for program in &result.programs {
            let (name, threads) = (&program.name, program.threads);
            assert_eq!((program.exit_status, program.exit), (Some(0), Some(Exit::Code(0))));
            let stdout = place.read(&format!("out/{name}.stdout"));
            assert_eq!(stdout, format!("{name} {threads} {threads}\n"), "{policy}");
            assert_eq!(place.read(&format!("out/{name}.stderr")), format!("{name} bad\n"));
            assert!(ended.stdout.contains(name.as_str()), "{name} is not in the table");
        }
        place.nothing_is_left_of(&ended);
    }
}

#[test]
fn every_policy_works_with_cgroup_v2() {
    every_policy_on(Backend("cgroup-v2"));
}

#[test]
fn every_policy_works_with_cgroup_v1() {
    every_policy_on(Backend("cgroup-v1"));
}

#[test]
fn every_policy_works_with_signals() {
    every_policy_on(Backend("signals"));
}

#[test]
fn a_frozen_program_does_not_run_and_gangs_do_not_overlap() {
    for backend in Backend::here() {
        let (place, result) = without_deviations(|| {
            let place = Place::new();
            let keys = format!("threads = {}", cpus());
            let tables = ["a", "b", "c"].map(|name| program(name, &keys, STAMPS));
            let options = format!("--policy gang --quantum 20ms --freezer {}", backend.0);
            let result = place.run(&tables, &options).ended().with(0).result();
            (place, result)
        });
        is_sound(&result, "gang");
        let [a, b, c] = result.programs.as_slice() else { panic!() };
        assert!(!overlap(a, b) && !overlap(a, c) && !overlap(b, c));
        let outputs = ["a", "b", "c"].map(|name| place.read(&format!("out/{name}.stdout")));
        for (program, blocks) in result.programs.iter().zip(blocks(&outputs)) {
            let turns = program.timeline.len();
            assert!(
                blocks <= turns,
                "{} ran {blocks} times in {turns} turns on {backend:?}",
                program.name
            );
            assert!(turns > 1, "{} was never frozen", program.name);
        }
    }
}

#[test]
fn without_a_policy_that_freezes_programs_run_together() {
    if cpus() < 2 {
        return skip("one CPU: no two programs run at once");
    }
    let place = Place::new();
    // Neither begins before the other is there.
    let script = |name, other| {
        format!("touch {name}; while [ ! -e {other} ]; do sleep 0.01; done; {STAMPS}")
    };
    let tables = [("a", "b"), ("b", "a")]
        .map(|(name, other)| program(name, "threads = 1", &script(name, other)));
    let result = place.run(&tables, "--policy linux").ended().with(0).result();
    assert!(overlap(&result.programs[0], &result.programs[1]));
    assert!(result.programs.iter().all(|program| program.timeline.len() == 1));
    let outputs = ["a", "b"].map(|name| place.read(&format!("out/{name}.stdout")));
    assert!(blocks(&outputs).iter().all(|blocks| *blocks > 1));
}

#[test]
fn under_fcfs_each_program_starts_after_the_previous_one() {
    let place = Place::new();
    let tables = ["a", "b", "c"].map(|name| program(name, "threads = 1", STAMPS));
    let result = place.run(&tables, "--policy fcfs").ended().with(0).result();
    let outputs = ["a", "b", "c"].map(|name| place.read(&format!("out/{name}.stdout")));
    assert_eq!(blocks(&outputs), [1, 1, 1]);
    let ends = result.programs.iter().map(|program| program.turnaround_seconds.unwrap());
    assert!(ends.collect::<Vec<_>>().is_sorted());
}

#[test]
fn programs_that_share_a_quantum_have_separate_cpus() {
    if cpus() < 2 {
        return skip("one CPU: no two programs fit into a quantum");
    }
    let place = Place::new();
    let script = "grep Cpus_allowed_list /proc/self/status";
    let tables = ["a", "b"].map(|name| program(name, "threads = 1", script));
    let result = place.run(&tables, "--policy greedy").ended().with(0).result();
    let [a, b] = ["a", "b"].map(|name| place.read(&format!("out/{name}.stdout")));
    assert!(a != b && !a.is_empty() && !b.is_empty(), "{a}{b}");
    for (program, line) in result.programs.iter().zip([a, b]) {
        let cpus = program.timeline[0].2.unwrap();
        assert_eq!(line, format!("Cpus_allowed_list:\t{cpus}\n"));
    }
}

#[test]
fn a_cpuset_binds_like_masks_and_is_removed() {
    let trees = Hierarchies::find(&Proc::default()).unwrap();
    let usable = |tree: &Hierarchy| tree.own.try_in_child(|_| Ok(())).is_ok();
    if cpus() < 2 || !trees.v1("cpuset").is_some_and(usable) {
        return skip("no cpuset of version 1, or a single CPU");
    }
    let place = Place::new();
    let script = "sleep 0.1; grep Cpus_allowed_list /proc/self/status";
    let tables = ["a", "b"].map(|name| program(name, "threads = 1", script));
    let options = "--policy greedy --quantum 20ms --pinning cpuset";
    let ended = place.run(&tables, options).ended().with(0);
    let result = ended.result();
    assert_eq!(result.backends.pinning, "cpuset");
    for program in &result.programs {
        let bound = program.timeline.last().unwrap().2.unwrap();
        let line = place.read(&format!("out/{}.stdout", program.name));
        assert_eq!(line, format!("Cpus_allowed_list:\t{bound}\n"));
    }
    assert_ne!(place.read("out/a.stdout"), place.read("out/b.stdout"));
    place.nothing_is_left_of(&ended);
}

#[test]
fn what_a_program_leaves_running_gets_its_cpus_back() {
    for backend in Backend::here() {
        let place = Place::new();
        // Each is bound to one CPU; the first ends long before the other, the second with the run.
        let daemon = |work: &str| format!("(setsid sleep 1000 &); {work}");
        let tables = [
            program("a", "threads = 1", &daemon("sleep 0.1")),
            program("b", "threads = 1", &daemon("sleep 0.4")),
        ];
        let options = format!("--policy greedy --quantum 20ms --freezer {}", backend.0);
        let ended = place.run(&tables, &options).ended().with(0);
        assert!(ended.result().programs.iter().all(|program| program.left_running), "{backend:?}");
        let left = place.marked().programs();
        assert_eq!(left.len(), 2);
        let found = cosched_linux::kernel::affinity::get(0).unwrap();
        for process in left {
            assert_eq!(place.marked().cpus(process), Some(found), "{backend:?}");
            assert!(!place.marked().is_held(process));
        }
        eventually("the helpers' end", || place.marked().all().len() == 2);
        place.no_trace_is_left_of(ended.pid);
    }
}

#[test]
fn no_program_is_frozen_for_a_whole_long_quantum() {
    let place = Place::new();
    let keys = format!("threads = {}", cpus());
    let work = "i=0; while [ $i -lt 10 ]; do sleep 0.1; i=$((i+1)); done";
    let tables = ["a", "b"].map(|name| program(name, &keys, work));
    let options = "--policy gang --quantum 60s --max-frozen 100ms";
    let result = place.run(&tables, options).ended().with(0).result();
    // Either would have ended first if quanta were as long as requested.
    for (one, other) in [(0, 1), (1, 0)] {
        let [one, other] = [&result.programs[one], &result.programs[other]];
        assert!(one.started_seconds.unwrap() < other.turnaround_seconds.unwrap());
        assert!(one.timeline.len() > 2, "{:?}", one.timeline);
    }
}

/// Eleven quanta of others and their switches have 900 ms: 81.3 ms each. Late wake-ups may shorten
/// them further.
#[test]
fn shortened_turns_are_told_before_and_after_the_run() {
    let place = Place::new();
    let tables: Vec<_> = (0..12).map(|i| program(&format!("p{i}"), "threads = 1", ":")).collect();
    let ended = place.run(&tables, "--policy gang --quantum 100ms").ended().with(0);
    let before = "turns are shortened from 100 ms to 81.3 ms, so that no program is paused for";
    let ended = ended.saying(&[before, "Remedy: `--max-frozen 1.3s` allows turns of 100 ms"]);
    assert!(ended.stdout.contains("Turns were shortened from 100 ms to"), "{}", ended.stdout);
    let story = place.cosched(&["explain", "out"]).ended().with(0).stdout;
    assert_eq!(story.matches("urns were shortened from 100 ms to").count(), 1, "{story}");
    let long = "--policy gang --quantum 100ms --max-frozen 1.3s --force";
    let ended = place.run(&tables, long).ended().with(0);
    assert!(!ended.stderr.contains("shortened"), "{}", ended.stderr);
}

#[test]
fn a_repeated_program_runs_again_until_all_have_run_once() {
    let place = Place::new();
    let short =
        program("short", "threads = 1\nrepeat = 'until-all-finish'", "echo again; sleep 0.02");
    let thrice = program("thrice", "threads = 1\nrepeat = 3", "echo again");
    let long = program("long", "threads = 1", "sleep 0.6");
    let tables = [short, thrice, long];
    let ended = place.run(&tables, "--policy gang --quantum 20ms").ended().with(0);
    let result = ended.result();
    let completions = |i: usize| result.programs[i].completions.len();
    assert!(completions(0) > 1);
    assert_eq!((completions(1), completions(2)), (3, 1));
    assert_eq!(place.read("out/thrice.stdout"), "again\n".repeat(3));
    // The run in which it was ended, because all had run once, may have printed its word.
    let said = place.read("out/short.stdout").lines().count();
    assert!(said >= completions(0) && said <= completions(0) + 1, "{said}");
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_late_program_does_not_start_early() {
    let place = Place::new();
    let tables = [
        program("late", "threads = 1\nstart = '300ms'", ":"),
        program("early", "threads = 1", ":"),
    ];
    let result = place.run(&tables, "--policy gang").ended().with(0).result();
    assert_eq!(result.programs[0].arrived_seconds, 0.3);
    assert!(result.programs[0].started_seconds.unwrap() >= 0.3);
}
