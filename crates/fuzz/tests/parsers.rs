//! No parser of foreign bytes panics or hangs, whatever it gets. What it accepts is usable.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use cosched_fuzz::damaged;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::safety::undo::Log;
use cosched_page::{Hello, Page, SIZE};
use cosched_results::live::Snapshot;
use cosched_results::result::RunResult;
use cosched_sim::Hardware;
use cosched_workload::Workload;
use proptest::prelude::*;

/// The files of a folder of the repository that end like this.
fn samples(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let samples: Vec<Vec<u8>> = files
        .filter(|file| file.to_string_lossy().ends_with(ending))
        .map(|file| fs::read(file).unwrap())
        .collect();
    assert!(!samples.is_empty());
    samples
}

const SNAPSHOT: &str = concat!(
    r#"{"schema":"cosched-live/2","pid":7,"policy":"gang","placement":null,"#,
    r#""quantum_seconds":0.1,"started_at":"2026-01-01T00:00:00Z","at_seconds":1.5,"#,
    r#""cpus":"0-1","quantum":null,"switches":3,"deviations":0,"own_cpu_seconds":0.01,"#,
    r#""programs":[]}"#,
);

const LOG: &str = concat!(
    r#"{"boot":{"id":"x"}}
{"program":{"program":{"slot":0,"generation":0},"shim":{"pid":7,"start_time":8},"#,
    r#""cgroups":[],"own_session":false,"stopped_by_signal":true}}
{"main":{"program":{"slot":0,"generation":0},"process":{"pid":7,"start_time":8}}}
{"pinned":{"program":{"slot":0,"generation":0},"found":"0-1","set":"0"}}
{"moves-apart":{"moves":[]}}
"moved-apart"
{"gone":{"program":{"slot":0,"generation":0}}}
"#,
);

/// Files and programs that others wait for.
const JOBS: &str = r#"[[program]]
name = "a"
command = "cat"
stdin = "/dev/null"
stdout = "a.txt"
stderr = "a.txt"
repeat = 2

[[program]]
name = "b"
command = ["cat", "$HOME"]
cwd = "."
stdin = "a.txt"
after = ["a"]

[[program]]
name = "c"
command = "cat"
after = ["b", { program = "a", exit = "any" }, { program = "d", exit = 0 }]

[[program]]
name = "d"
command = "cat"
start = "1s"
after = []
"#;

fn workloads() -> Vec<Vec<u8>> {
    let mut all = samples("workloads", ".toml");
    all.push(JOBS.into());
    all
}

/// What a program of another version, or a hostile one, may have made of the shared page.
#[repr(C, align(128))]
struct Memory([AtomicU64; SIZE / 8]);

impl Default for Memory {
    fn default() -> Memory {
        Memory(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

const _: () = assert!(size_of::<Memory>() == SIZE && size_of::<Page>() <= SIZE);
const _: () = assert!(align_of::<Memory>() >= align_of::<Page>());

/// Any word, and often one of the largest or smallest.
fn word() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(1 << 63), Just(1 << 32)]
}

proptest! {
    #[test]
    fn damaged_jobs_files_are_refused_with_the_file(bytes in damaged(workloads())) {
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        match Workload::parse(&text, Path::new("jobs.toml")) {
            Err(error) => prop_assert!(error.to_string().contains("jobs.toml"), "{error}"),
            Ok(workload) => for program in &workload.programs {
                prop_assert!(!workload.comes_after(program, program), "{}", program.name);
                let known = |name: &str| workload.programs.iter().any(|other| other.name == name);
                prop_assert!(program.after.iter().all(|after| known(&after.program)));
            },
        }
    }

    #[test]
    fn damaged_machine_files_are_refused_or_have_cpus(
        bytes in damaged(samples("machines", ".toml")),
    ) {
        let Ok(text) = String::from_utf8(bytes) else { return Ok(()) };
        if let Ok(machine) = Hardware::parse(&text, "machine.toml") {
            prop_assert!(!machine.topology.cpus().is_empty());
        }
    }

    #[test]
    fn damaged_results_are_refused_or_read_back_the_same(
        bytes in damaged(samples("crates/cli/tests/recordings", ".json")),
    ) {
        let path = Path::new("run.json");
        if let Ok(run) = RunResult::read(&bytes, path) {
            let again = RunResult::read(run.to_json().as_bytes(), path);
            prop_assert!(again.is_ok(), "{:?}", again.err());
        }
    }

    #[test]
    fn damaged_snapshots_never_crash(bytes in damaged(vec![SNAPSHOT.into()])) {
        _ = Snapshot::from_json(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn damaged_undo_logs_give_no_extra_records(bytes in damaged(vec![LOG.into()])) {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &bytes).unwrap();
        let journal = Log::load(file.path(), &Proc::default()).unwrap();
        let lines = bytes.split(|byte| *byte == b'\n').count();
        prop_assert!(journal.records().len() <= lines);
    }

    #[test]
    fn damaged_hellos_are_refused_or_unchanged(
        bytes in damaged(vec![Hello { threads: true }.bytes().to_vec()]),
    ) {
        if let Some(hello) = Hello::read(&bytes) {
            prop_assert_eq!(&hello.bytes()[..], &bytes[..]);
        }
    }

    #[test]
    fn a_page_of_any_words_is_read_without_harm(words in prop::collection::vec(word(), SIZE / 8)) {
        let memory = Memory::default();
        memory.0.iter().zip(&words).for_each(|(to, word)| to.store(*word, Ordering::Relaxed));
        // SAFETY: the memory is as large and as aligned as a page, and lives longer. A page has
        // only numbers that other threads may change, as the memory has.
        let page: &Page = unsafe { &*(&raw const memory).cast() };
        _ = (page.request(), page.progress(), page.barrier_stats(), page.passages(), page.moves());
        for requested in [1, 8, i32::MAX] {
            prop_assert!((1..=requested).contains(&page.rule().bound(requested)));
        }
    }
}

#[test]
fn undamaged_samples_are_accepted() {
    for text in workloads() {
        Workload::parse(&String::from_utf8(text).unwrap(), Path::new("jobs.toml")).unwrap();
    }
    for text in samples("crates/cli/tests/recordings", ".json") {
        RunResult::read(&text, Path::new("run.json")).unwrap();
    }
    Snapshot::from_json(SNAPSHOT).unwrap();
    let lines = LOG.lines();
    for line in lines {
        serde_json::from_str::<cosched_linux::safety::undo::Record>(line).unwrap();
    }
}
