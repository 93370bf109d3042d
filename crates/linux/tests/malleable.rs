//! A malleable program on the machine: it sends a request, and the next settings are the answer.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use cosched_core::{
    Arena, Aspect, Directive, Happening, Machine, Measure, Nanos, Observe, ProgramId, Refusal,
    Settings, Step,
};
use cosched_linux::hook::{Hook, LIBRARY, Uses};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::topology::Sys;
use cosched_linux::machine::{Job, Linux};
use cosched_linux::process::launch::{LaunchOrder, OutputTo};
use cosched_linux::rights::usable::Usable;
use support::alone;

const PROGRAM: ProgramId = ProgramId::first(0);

/// A program that requests, one after another, the thread counts in its arguments, and prints what
/// it got. At a negative number it sleeps for so many microseconds.
const REQUESTS: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern int cosched_region(int) __attribute__((weak));
extern int cosched_cpus(void) __attribute__((weak));
extern void cosched_progress(uint64_t) __attribute__((weak));
int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        if (atoi(argv[i]) < 0) {
            usleep(-atoi(argv[i]));
            continue;
        }
        printf("%d ", cosched_region ? cosched_region(atoi(argv[i])) : -1);
        if (cosched_progress) cosched_progress(10);
    }
    printf("on %d\n", cosched_cpus ? cosched_cpus() : -1);
    return 0;
}
"#;

fn compiled(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (folder.join("requests.c"), folder.join("requests"));
    std::fs::write(&source, REQUESTS).unwrap();
    match Command::new("gcc").arg(&source).arg("-o").arg(&program).status() {
        Ok(status) => {
            assert!(status.success());
            Some(program)
        }
        Err(error) => {
            eprintln!("skipped: there is no gcc: {error}");
            None
        }
    }
}

/// A machine with the program, which has a hook server or not; its output goes to `out`.
fn machine(folder: &Path, program: PathBuf, counts: &[&str], malleable: bool) -> Linux {
    let library = std::env::current_exe().unwrap().with_file_name(LIBRARY);
    let argv = ["requests"].iter().chain(counts).map(|word| (*word).to_owned()).collect();
    let order =
        LaunchOrder { executable: program, argv, cwd: "/".into(), ..LaunchOrder::default() };
    let out = folder.join("out");
    // That of an earlier attempt: no output overwrites a file.
    let _ = std::fs::remove_file(&out);
    let stdout = OutputTo::File { path: out, append: false };
    let hook = malleable.then_some(Hook { library, uses: Uses::THREADS });
    alone::machine(folder, Job { stdout, hook, ..alone::job(order) }, None)
}

/// Answers every request by `answer` until the program has ended. Returns the requests.
fn obey(machine: &mut Linux, answer: impl Fn(u16) -> Directive) -> Vec<(u16, bool)> {
    let (mut events, mut requests) = (Vec::new(), Vec::new());
    loop {
        machine.wait(Nanos::NEVER, &mut events).unwrap();
        for event in events.drain(..) {
            match event.what {
                Happening::Requested { threads, blocked, .. } => {
                    requests.push((threads, blocked));
                    machine
                        .submit(&[match answer(threads) {
                            Directive::Run(settings) => Step::Apply(PROGRAM, settings, 1),
                            _ => Step::Release(PROGRAM),
                        }])
                        .unwrap();
                }
                Happening::Exited(..) => return requests,
                _ => {}
            }
        }
    }
}

/// What `run` returns when requests were heard in time. A program waits for an answer for
/// milliseconds only, and may have gone on or ended before a busy machine hears it: then it runs
/// again.
fn heard<T>(run: impl FnMut() -> Option<T>) -> T {
    std::iter::repeat_with(run)
        .take(50)
        .flatten()
        .next()
        .expect("requests were never heard in time")
}

fn with_limit(thread_limit: Option<u16>) -> Settings {
    Settings { thread_limit, ..Settings::default() }
}

#[test]
fn a_program_gets_its_thread_limit_at_start_and_per_request() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else { return };
    let cpus = Usable::find(&Sys::default().topology().unwrap(), &Proc::default()).unwrap().cpus;
    let expected = format!("2 2 2 1 2 on {}\n", cpus.len());
    heard(|| {
        let counts = ["4", "4", "8", "1", "3"];
        let mut machine = machine(folder.path(), program.clone(), &counts, true);
        machine.submit(&[Step::Start(PROGRAM, with_limit(Some(2)))]).unwrap();
        let requests = obey(&mut machine, |_| Directive::Run(with_limit(Some(2))));
        machine.close().unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), expected);
        requests.iter().any(|(_, blocked)| *blocked).then_some(())
    });
}

#[test]
fn without_a_limit_a_program_gets_what_it_requests() {
    for answer in [Directive::Run(Settings::default()), Directive::Release] {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = compiled(folder.path()) else { return };
        // A detached program sends no more requests.
        let most = if answer == Directive::Release { 1 } else { 2 };
        heard(|| {
            let counts = ["4", "8", "8"];
            let mut machine = machine(folder.path(), program.clone(), &counts, true);
            machine.submit(&[Step::Start(PROGRAM, Settings::default())]).unwrap();
            let requests = obey(&mut machine, |_| answer);
            machine.close().unwrap();
            let written = std::fs::read_to_string(folder.path().join("out")).unwrap();
            assert!(written.starts_with("4 8 8 on "), "{written}");
            (1..=most).contains(&requests.len()).then_some(())
        });
    }
}

/// A serial phase needs one CPU.
#[test]
fn a_lasting_request_for_one_thread_is_heard_and_waits_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else { return };
    heard(|| {
        let counts = ["4", "-50000", "1", "-50000"];
        let mut machine = machine(folder.path(), program.clone(), &counts, true);
        machine.submit(&[Step::Start(PROGRAM, Settings::default())]).unwrap();
        let requests = obey(&mut machine, |_| Directive::Run(Settings::default()));
        machine.close().unwrap();
        (requests.last() == Some(&(1, false))).then_some(())
    });
}

#[test]
fn a_rigid_program_has_no_library_and_refuses_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else { return };
    let mut machine = machine(folder.path(), program, &["4"], false);
    machine.submit(&[Step::Start(PROGRAM, with_limit(Some(2)))]).unwrap();
    let (mut events, mut refused) = (Vec::new(), false);
    'run: loop {
        machine.wait(Nanos::NEVER, &mut events).unwrap();
        for event in events.drain(..) {
            refused |=
                event.what == Happening::Refused(PROGRAM, Aspect::Threads, Refusal::NotSupported);
            if matches!(event.what, Happening::Exited(..)) {
                break 'run;
            }
        }
    }
    machine.close().unwrap();
    assert!(refused);
    assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "-1 on -1\n");
}

#[test]
fn progress_reported_by_a_program_is_in_its_samples() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled(folder.path()) else { return };
    let ticks = heard(|| ticks(machine(folder.path(), program.clone(), &["4", "5"], true)));
    assert!((10..=20).contains(&ticks), "{ticks}");
}

/// Starts the program. Returns how many ticks were read when its requests came; `None`: none.
fn ticks(mut machine: Linux) -> Option<u64> {
    let observe =
        Observe { program: Some(PROGRAM), measure: Measure::Progress, period: Nanos::NEVER };
    let start = Step::Start(PROGRAM, Settings::default());
    machine.submit(&[Step::Observe(observe), start]).unwrap();
    let (mut events, mut ticks) = (Vec::new(), 0);
    // The first request comes before the first ticks, the last after them.
    'run: loop {
        machine.wait(Nanos::NEVER, &mut events).unwrap();
        for event in events.drain(..) {
            match event.what {
                Happening::Requested { .. } => {
                    let mut arena = Arena::default();
                    machine.read(&[observe], &mut arena).unwrap();
                    let progress = arena.samples.iter().filter_map(|sample| sample.progress);
                    ticks += progress.sum::<u64>();
                    machine.submit(&[Step::Apply(PROGRAM, Settings::default(), 1)]).unwrap();
                }
                Happening::Exited(..) => break 'run,
                _ => {}
            }
        }
    }
    machine.close().unwrap();
    (ticks > 0).then_some(ticks)
}
