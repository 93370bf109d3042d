//! Programs that get fewer threads than they request check themselves.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use support::{Host, Workshop, command, eventually, good, library, run};

/// What the examples print with so many threads in every region.
fn regions(threads: u16) -> String {
    format!("{threads} {threads} {threads} sum 1501500\n")
}

/// The text without what languages put between.
fn tidied(text: String) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ") + "\n"
}

#[test]
fn the_c_example_gets_its_limit_or_without_cosched_its_request() {
    let workshop = Workshop::new();
    let Some(program) = workshop.linked("regions.c") else { return };
    let host = Host::with_limit(2);
    assert_eq!(run(&program, &[], Some(&host)), regions(2));
    assert_eq!(host.requests(), [(4, true)]);
    eventually("the ticks", || host.ticks() == 3);
    assert_eq!(run(&program, &[], None), regions(4));
}

#[test]
fn the_fortran_example_gets_its_thread_limit() {
    let workshop = Workshop::new();
    let with = ["-fopenmp", "-lcosched_hook"];
    let Some(program) = workshop.compile("gfortran", "regions.f90", "program", &with) else {
        return;
    };
    let host = Host::with_limit(3);
    assert_eq!(tidied(run(&program, &[], Some(&host))), regions(3));
    assert_eq!(host.requests(), [(4, true)]);
    assert_eq!(tidied(run(&program, &[], None)), regions(4));
}

#[test]
fn the_python_example_gets_its_thread_limit() {
    let python = Path::new("/usr/bin/python3");
    if !python.exists() {
        eprintln!("skipped: there is no {}", python.display());
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/regions.py");
    let arguments = [script.to_str().unwrap()];
    let host = Host::with_limit(2);
    assert_eq!(run(python, &arguments, Some(&host)), regions(2));
    eventually("the ticks", || host.ticks() == 3);
    assert_eq!(run(python, &arguments, None), regions(4));
}

/// The program checks itself, with regions that request four threads.
fn keeps_its_meaning_under_any_thread_limit(program: &Path) {
    for allowed in 1..=5 {
        let host = Host::with_limit(allowed);
        let most = allowed.min(4).to_string();
        run(program, &["4", &most], Some(&host));
        assert!(host.requests().iter().all(|(threads, _)| *threads <= 4), "{allowed} allowed");
    }
    run(program, &["4", "4"], None);
}

#[test]
fn regions_of_gccs_openmp_keep_their_meaning_under_any_limit() {
    let workshop = Workshop::new();
    let Some(program) = workshop.openmp("openmp.c", &[]) else { return };
    keeps_its_meaning_under_any_thread_limit(&program);
}

#[test]
fn regions_of_llvms_openmp_keep_their_meaning_under_any_limit() {
    let workshop = Workshop::new();
    let Some(program) = workshop.llvm("openmp.c") else { return };
    keeps_its_meaning_under_any_thread_limit(&program);
}

#[test]
fn llvms_openmp_reports_barriers_unless_another_tool_is_there() {
    let workshop = Workshop::new();
    let Some(program) = workshop.llvm("rounds.c") else { return };
    let host = Host::with_limit(2);
    run(&program, &["50"], Some(&host));
    eventually("the barriers", || host.stats().seen == 150);
    assert_eq!(host.stats().barriers, 0, "none of them is ours");
    let mut command = command(&program, &["50"], Some(&host));
    good(command.env("OMP_TOOL_LIBRARIES", "/nowhere.so").output().unwrap());
    assert_eq!(host.stats().seen, 150, "another tool comes first");
    let host = Host::with_limit(1);
    run(&program, &["50"], Some(&host));
    assert_eq!(host.stats().seen, 0, "a single thread waits for no other");
    let host = Host::donating();
    run(&program, &["50"], Some(&host));
    eventually("the barriers", || host.stats().barriers == 150);
    assert_eq!(host.stats().seen, 0, "they are ours");
}

/// The linker found the names of the OpenMP runtime in our library, and left out the runtime
/// itself.
#[test]
fn a_program_linked_only_to_the_hook_library_has_its_runtime() {
    let workshop = Workshop::new();
    let with = ["-fopenmp", "-Wl,--as-needed", "-lcosched_hook"];
    let Some(program) = workshop.compile("gcc", "bare.c", "program", &with) else { return };
    run(&program, &["2"], Some(&Host::with_limit(2)));
    run(&program, &["4"], None);
}

#[test]
fn thread_private_data_stays_from_region_to_region() {
    let workshop = Workshop::new();
    let Some(program) = workshop.openmp("threadprivate.c", &[]) else { return };
    let host = Host::with_limit(2);
    run(&program, &["4"], Some(&host));
    assert!(host.is_idle());
}

#[test]
fn a_plugin_with_its_own_runtime_is_served_by_that_runtime() {
    let workshop = Workshop::new();
    let Some(opens) = workshop.compile("gcc", "opens.c", "opens", &[]) else { return };
    let shared = ["-fopenmp", "-shared", "-fPIC"];
    let plugin = workshop.compile("gcc", "plugin.c", "plugin.so", &shared).unwrap();
    let host = Host::with_limit(2);
    let plugin = plugin.to_str().unwrap();
    run(&opens, &[plugin, "team", "2"], Some(&host));
    assert_eq!(host.requests(), [(4, true)]);
    run(&opens, &[plugin, "team", "4"], None);
}

#[test]
fn the_runtime_of_a_library_is_looked_up_once() {
    let workshop = Workshop::new();
    let Some(counts) = workshop.compile("gcc", "counts.c", "counts", &["-rdynamic"]) else {
        return;
    };
    let shared = ["-fopenmp", "-shared", "-fPIC"];
    let wide = workshop.compile("gcc", "wide.c", "wide.so", &shared).unwrap();
    run(&counts, &[wide.to_str().unwrap(), "2"], Some(&Host::with_limit(2)));
}

#[test]
fn openblas_uses_the_thread_limit_and_keeps_the_programs_count() {
    let workshop = Workshop::new();
    let Some(opens) = workshop.compile("gcc", "opens.c", "opens", &[]) else { return };
    let shared = ["-shared", "-fPIC"];
    workshop.compile("gcc", "openblas.c", "libopenblas.so", &shared).unwrap();
    let run_path = format!("-Wl,-rpath,{}", workshop.path("").display());
    let with = [&shared[..], &["-lopenblas", &run_path]].concat();
    let above = workshop.compile("gcc", "multiplies.c", "multiplies.so", &with).unwrap();
    let host = Host::with_limit(2);
    let above = above.to_str().unwrap();
    run(&opens, &[above, "multiply", "2"], Some(&host));
    assert!(host.requests().contains(&(4, true)));
    run(&opens, &[above, "multiply", "4"], None);
    // The work of the parent's other threads is not the child's.
    run(&opens, &[above, "multiply_in_child", "2"], Some(&host));
}

#[test]
fn a_child_of_a_fork_asks_for_itself() {
    let workshop = Workshop::new();
    let Some(program) = workshop.linked("lives.c") else { return };
    let host = Host::with_limit(2);
    run(&program, &["fork", "2"], Some(&host));
    eventually("both processes' ticks", || host.ticks() == 5);
    assert!(host.requests().iter().all(|(threads, blocked)| [4, 5].contains(threads) && *blocked));
}

#[test]
fn signals_do_not_interrupt_the_connection_to_cosched() {
    let workshop = Workshop::new();
    let Some(program) = workshop.linked("lives.c") else { return };
    // Late by many signals, and by less than a program waits.
    run(&program, &["signals", "2"], Some(&Host::that_is_late(Duration::from_millis(100), 2)));
}

#[test]
fn a_program_that_closes_all_files_keeps_those_it_opens_later() {
    let workshop = Workshop::new();
    let Some(program) = workshop.linked("lives.c") else { return };
    run(&program, &["files", "2"], Some(&Host::with_limit(2)));
}

#[test]
fn every_region_gets_its_request_when_cosched_is_gone() {
    let workshop = Workshop::new();
    let Some(program) = workshop.linked("lives.c") else { return };
    let host = Host::with_limit(2);
    let mut command = command(&program, &["waits", "2"], Some(&host));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "connected\n");
    drop(host);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_library_loaded_and_unloaded_leaves_nothing_open() {
    let workshop = Workshop::new();
    let Some(program) = workshop.compile("gcc", "lives.c", "lives", &["-ldl", "-lcosched_hook"])
    else {
        return;
    };
    let copy = workshop.path("copy.so");
    std::fs::copy(library(), &copy).unwrap();
    let host = Host::with_limit(2);
    let mut command = command(&program, &["unloads", "2", copy.to_str().unwrap()], Some(&host));
    good(command.env_remove("LD_PRELOAD").output().unwrap());
}

#[test]
fn a_missing_hook_server_does_not_affect_a_program() {
    let workshop = Workshop::new();
    let Some(program) = workshop.linked("regions.c") else { return };
    for server in ["", "cosched-none", &"x".repeat(500)] {
        let mut command = command(&program, &[], None);
        command.env("LD_PRELOAD", library()).env("COSCHED_HOOK", server);
        assert_eq!(good(command.output().unwrap()), regions(4));
    }
}
