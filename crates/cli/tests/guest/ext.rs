//! `--scheduler ext`: cosched's scheduler in the kernel, on a kernel that can have one.
//!
//! The guest's clock counts instructions, and it is booted twice: what the tests print, all figures
//! included, has to be the same the second time.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::sched_attr::{self, SchedPolicy};
use cosched_linux::process::tree::Process;
use cosched_results::result::{InKernel, RunResult};
use rustix::process::Signal;

use super::guest_is_one_of;
use super::support::{Cosched, Place, eventually};

/// Steps of a round that takes some milliseconds: the first thread has four times the work.
const ROUND: &str = "4 8000 2000";

fn is_guest() -> bool {
    guest_is_one_of(&["ext"]).is_some()
}

/// A `[[program]]` of the example `threads`.
fn program(place: &Place, name: &str, words: &str) -> String {
    let words: Vec<String> = words.split(' ').map(|word| format!("'{word}'")).collect();
    let command = place.example("threads");
    let command = command.display();
    format!("[[program]]\nname = '{name}'\ncommand = ['{command}', {}]\n", words.join(", "))
}

/// A run of these programs under the scheduler in the kernel, with further options.
fn start(place: &Place, programs: &[(&str, &str)], options: &str) -> Cosched {
    let tables: Vec<String> =
        programs.iter().map(|(name, words)| program(place, name, words)).collect();
    place.run(&tables, &format!("--scheduler ext --policy linux {options}"))
}

fn run(place: &Place, programs: &[(&str, &str)], options: &str) -> RunResult {
    let ended = start(place, programs, options).ended().with(0);
    let result = ended.result();
    assert!(result.deviations.is_empty(), "{:?}", result.deviations);
    assert_eq!(state(), "disabled", "after the run");
    place.nothing_is_left_of(&ended);
    result
}

fn counts(result: &RunResult, slot: usize) -> InKernel {
    result.programs[slot].in_kernel.unwrap()
}

/// The share of the first of two programs in the CPU time of both.
fn share(result: &RunResult) -> f64 {
    let used = |slot| counts(result, slot).cpu_seconds;
    used(0) / (used(0) + used(1))
}

/// What a program says at its end: its rounds and its class.
fn said(place: &Place, name: &str) -> (u64, i32) {
    let text = place.read(&format!("out/{name}.stdout"));
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["rounds", rounds, "class", class] = words[..] else { panic!("{name}: {text:?}") };
    (rounds.parse().unwrap(), class.parse().unwrap())
}

/// Whether the kernel has a scheduler of sched_ext: `enabled` or `disabled`.
fn state() -> String {
    fs::read_to_string("/sys/kernel/sched_ext/state").unwrap().trim().to_owned()
}

/// The process that holds the scheduler in the kernel.
fn loader() -> Option<Process> {
    let proc = Proc::default();
    let mut all = proc.processes().unwrap().into_iter();
    let found = all.find(|pid| proc.name(*pid).is_ok_and(|name| name == "cosched-ext"))?;
    Process::find(&proc, found).ok()
}

/// The classes of all threads of the programs that run in a place.
fn classes(place: &Place) -> Vec<SchedPolicy> {
    let proc = Proc::default();
    let programs = place.marked().named("threads");
    let threads = programs.iter().flat_map(|process| proc.threads(process.pid).unwrap_or_default());
    threads.filter_map(|tid| sched_attr::get(tid).ok()).map(|attr| attr.policy).collect()
}

/// The CPU time of each program that runs in a place, in seconds.
fn cpu_times(place: &Place) -> Vec<f64> {
    let proc = Proc::default();
    let programs = place.marked().named("threads");
    let stats = programs.iter().map(|process| proc.stat(process.pid).unwrap());
    stats.map(|stat| (stat.utime + stat.stime) as f64 / 100.0).collect()
}

fn all_are(place: &Place, class: SchedPolicy) -> bool {
    let classes = classes(place);
    !classes.is_empty() && classes.iter().all(|found| *found == class)
}

/// Section 3.2 of the paper on Tidon: the named thread comes next, with the rest of the slice; and
/// section 3.3: shares stay as they are. Traps 1 and 4 of such schedulers: a rest that is not told
/// by the clock, or a new slice, would take time from the rival.
#[test]
fn a_donated_cpu_goes_to_the_named_thread_and_shares_stay() {
    if !is_guest() {
        return;
    }
    let mut without = None;
    for barrier in ["own", "donate", "tidon"] {
        let place = Place::new();
        let rounds = format!("rounds {ROUND} 8");
        let programs = [("rounds", rounds.as_str()), ("rival", "spin 2 8")];
        let result = run(&place, &programs, &format!("--barrier {barrier}"));
        let (made, class) = said(&place, "rounds");
        let counts = counts(&result, 0);
        let share = share(&result);
        println!("{barrier}: {made} rounds, share {share:.3}, {counts:?}");
        assert_eq!(class, 7, "SCHED_EXT");
        // The rival starts and ends a little later.
        let without = *without.get_or_insert(share);
        assert!((share - without).abs() < 0.01, "{barrier}: share {share}, 2 % of a half");
        assert!((share - 0.5).abs() < 0.04, "{barrier}: share {share}");
        assert_eq!(counts.followed, counts.handed_over, "{barrier}");
        assert_eq!(counts.handed_over > 0, barrier != "own", "{barrier}: {counts:?}");
    }
}

/// The named thread has to be of the same program, or a program could favour another one.
#[test]
fn a_cpu_is_not_handed_to_a_thread_of_another_program() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let result = run(&place, &[("strangers", "strangers 2"), ("rival", "spin 3 3")], "");
    let (named, _) = said(&place, "strangers");
    let counts = counts(&result, 0);
    println!("{named} stranger is named: {counts:?}");
    assert_eq!(named, 1, "the rival is there");
    assert!(counts.donations > 100, "{counts:?}");
    assert_eq!(counts.handed_over, 0, "{counts:?}");
}

#[test]
fn programs_share_alike_and_take_turns_by_weight() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let result = run(&place, &[("one", "spin 1 4"), ("three", "spin 3 4")], "");
    println!("one thread beside three: {:.3}", share(&result));
    // A single thread cannot make up for moments in which it had no CPU.
    assert!((share(&result) - 0.5).abs() < 0.05, "a thread of four: {}", share(&result));
    let place = Place::new();
    let tables = ["a", "b"].map(|name| program(&place, name, "spin 2 2"));
    let options = "--scheduler ext --policy turns --quantum 200ms";
    let ended = place.run(&tables, options).ended().with(0);
    let result = ended.result();
    println!("two programs in turns: {:.3}", share(&result));
    assert!(result.decisions.len() > 6, "no turns: {:?}", result.decisions);
    assert!((share(&result) - 0.5).abs() < 0.1, "{}", share(&result));
}

/// Slices end by a timer: without it they would end at ticks, 4 ms apart. The kernel's own
/// scheduler grants 100 ms at most.
#[test]
fn slices_have_any_length() {
    if !is_guest() {
        return;
    }
    for slice in [0.5, 150.0, 250.0] {
        let place = Place::new();
        let row = format!(
            "schema = 'cosched-quanta/1'\n[[row]]\nup_to = 1.0\nslice_milliseconds = {slice}\n"
        );
        place.write("quanta.toml", row);
        // The first half of the time does not count: until the first choice, slices have 3 ms.
        let programs = [("a", "stretches 12"), ("b", "bound 1 12")];
        let options = "--scheduler ext --policy faithful --no-guard --quanta quanta.toml";
        let tables = programs.map(|(name, words)| program(&place, name, words));
        let ended = place.run(&tables, options).ended().with(0);
        assert!(ended.result().deviations.is_empty(), "{}", ended.stderr);
        let kept = said(&place, "a").0 as f64 / 1000.0;
        println!("slices of {slice} ms: a thread keeps a CPU for {kept:.2} ms");
        let (least, most) = (0.9 * slice, 1.1 * slice + 0.1);
        assert!((least..most).contains(&kept), "{slice} ms: {kept} ms");
    }
}

/// Faithful scheduling, sections III-C and V-E2: each stage of a pipeline has the slice of its row.
/// One of two threads on a CPU computes; the other one waits at a lock for most of the time.
#[test]
fn threads_of_one_program_have_slices_of_their_own() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    place.write(
        "quanta.toml",
        "schema = 'cosched-quanta/1'\n[[row]]\nup_to = 0.7\nslice_milliseconds = 20\n\
         [[row]]\nup_to = 1.0\nslice_milliseconds = 5\n",
    );
    let tables =
        [("a", "stages 10"), ("b", "bound 1 10")].map(|(name, words)| program(&place, name, words));
    let options = "--scheduler ext --policy faithful --no-guard --actuators batch-stages \
                   --interval 500ms --quanta quanta.toml";
    let ended = place.run(&tables, options).ended().with(0);
    let result = ended.result();
    assert!(result.deviations.is_empty(), "{:?}", result.deviations);
    let said = place.read("out/a.stdout");
    let words: Vec<&str> = said.split_whitespace().collect();
    let ["stretches", computes, waits, "rounds", ..] = words[..] else { panic!("{said:?}") };
    let [computes, waits] = [computes, waits].map(|kept| kept.parse::<f64>().unwrap() / 1000.0);
    println!("the thread that computes keeps a CPU for {computes:.2} ms, the other {waits:.2} ms");
    assert!((4.5..5.6).contains(&computes), "{computes} ms");
    assert!((18.0..22.1).contains(&waits), "{waits} ms");
}

/// Trap 2: an ordinary thread takes a CPU. The thread that ran there must not stay in that CPU's
/// own queue while another CPU could have it.
#[test]
fn a_thread_displaced_by_an_ordinary_one_runs_elsewhere() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let rounds = "rounds 2 2000 2000 2";
    run(&place, &[("rounds", rounds)], "");
    let (alone_made, _) = said(&place, "rounds");
    let place = Place::new();
    let cosched = start(&place, &[("rounds", rounds)], "");
    eventually("the program runs in the class", || all_are(&place, SchedPolicy::Ext));
    let mut ordinary = place.start("/bin/taskset".as_ref(), &["-c", "0", "sh", "-c", SPIN]);
    let ended = cosched.ended().with(0);
    ordinary.kill().unwrap();
    ordinary.wait().unwrap();
    let (made, _) = said(&place, "rounds");
    let used = ended.result().programs[0].in_kernel.unwrap().cpu_seconds;
    println!(
        "{alone_made} rounds on two CPUs, {made} on what an ordinary thread left of them, in \
         {used:.2} s of CPU time"
    );
    // The other CPU is left for two seconds. Threads that stayed in the queue of the first one had
    // a tenth of a second: what the kernel keeps there for the class.
    assert!(used > 1.5, "{used}");
    place.nothing_is_left_of(&ended);
}

const SPIN: &str = "while :; do :; done";

/// Traps 3, 5 and 6: wake-ups as a CPU goes idle, a first thread that ends before the others, and
/// threads that come and go.
#[test]
fn threads_come_and_go() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    run(&place, &[("rounds", "rounds 2 100 100 1")], "--barrier block");
    let (made, _) = said(&place, "rounds");
    println!("{made} rounds of threads that sleep");
    // Lost wake-ups would cost half a millisecond each, or a tick of 4 ms.
    assert!(made > 10_000, "{made}");
    let place = Place::new();
    let programs = [("headless", "headless 2"), ("burst", "burst 400"), ("rival", "spin 1 2")];
    let result = run(&place, &programs, "");
    assert_eq!(said(&place, "headless").1, 7, "as its first thread had it");
    for program in &result.programs {
        let counted = program.usage.cpu().as_secs_f64();
        let in_kernel = program.in_kernel.unwrap().cpu_seconds;
        println!("{}: {counted} s, {in_kernel} s in the kernel's account", program.name);
        assert!((counted - in_kernel).abs() < 0.25 * counted, "{}", program.name);
    }
}

/// A thread that is bound to a CPU beside another program gets some of it, though its program has
/// other CPUs; and no thread of many waits until the kernel ends the scheduler.
#[test]
fn bound_threads_and_many_threads_get_their_turns() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    // Two of the other program's threads can only be on the second CPU.
    let programs = [("bound", "bound 2 2"), ("other", "bound 2 2"), ("third", "spin 1 2")];
    run(&place, &programs, "");
    let least = ["bound", "other"].map(|name| said(&place, name).0);
    println!("the thread with least of each: {least:?} ms");
    assert!(least.iter().all(|least| *least > 100), "{least:?}");
    let place = Place::new();
    let row = "schema = 'cosched-quanta/1'\n[[row]]\nup_to = 1.0\nslice_milliseconds = 900\n";
    place.write("quanta.toml", row);
    let tables = ["a", "b"].map(|name| program(&place, name, "spin 40 12"));
    let options = "--scheduler ext --policy faithful --no-guard --quanta quanta.toml";
    let ended = place.run(&tables, options).ended().with(0);
    assert!(!ended.stderr.contains("has ended ("), "{}", ended.stderr);
    let counts = counts(&ended.result(), 0);
    println!("40 threads with slices of 0.9 s: {counts:?}");
}

/// Nice values are weights of programs: a step is a quarter more or less.
#[test]
fn nice_values_weigh_programs() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let light = program(&place, "light", "spin 2 4");
    let heavy = program(&place, "heavy", "spin 2 4") + "weight = 4\n";
    let options = "--scheduler ext --policy linux-weights";
    let ended = place.run(&[light, heavy], options).ended().with(0);
    let share = share(&ended.result());
    println!("weights 1 and 4: {share:.3}");
    // 6 steps of nice: 0.8 to the 6th, 0.26, beside 1.
    assert!((share - 0.208).abs() < 0.02, "{share}");
}

/// The kernel would end a scheduler that does not expect CPUs to come and go.
#[test]
fn the_scheduler_survives_the_loss_of_a_cpu() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let cosched = start(&place, &[("rounds", &format!("rounds {ROUND} 3"))], "");
    eventually("the program runs in the class", || all_are(&place, SchedPolicy::Ext));
    for online in ["0", "1"] {
        fs::write("/sys/devices/system/cpu/cpu1/online", online).unwrap();
    }
    assert_eq!(state(), "enabled");
    let ended = cosched.ended().with(0);
    assert_eq!(said(&place, "rounds").1, 7, "{}", ended.stderr);
    place.nothing_is_left_of(&ended);
}

/// A cosched that says nothing more cannot end a turn: after half a second no turn is valid, and
/// programs share alike.
#[test]
fn turns_lapse_when_cosched_is_stuck() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let tables = ["a", "b"].map(|name| program(&place, name, "spin 2 60"));
    let options = "--scheduler ext --policy turns --quantum 30s";
    let cosched = place.run(&tables, options);
    eventually("all threads are in the class", || {
        classes(&place).len() == 4 && all_are(&place, SchedPolicy::Ext)
    });
    let used = || cpu_times(&place);
    let grown = |seconds| {
        let before = used();
        sleep(Duration::from_secs(seconds));
        let grown = used().into_iter().zip(before).map(|(now, before)| now - before);
        grown.collect::<Vec<f64>>()
    };
    let in_a_turn = grown(2);
    cosched.signal(Signal::STOP);
    sleep(Duration::from_secs(1));
    let stuck = grown(2);
    println!("seconds of CPU time in 2 s: {in_a_turn:.2?} in a turn, {stuck:.2?} while stuck");
    assert!(in_a_turn.iter().any(|used| *used < 0.5), "{in_a_turn:?}");
    assert!(stuck.iter().all(|used| (1.5..2.5).contains(used)), "{stuck:?}");
    cosched.signal(Signal::CONT);
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended());
}

/// Trap 7: a thread that chooses a class itself keeps it.
#[test]
fn a_thread_that_chooses_its_class_keeps_it() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    run(&place, &[("leaves", "leaves 1"), ("rival", "spin 1 1")], "");
    assert_eq!(said(&place, "leaves").1, 3, "SCHED_BATCH");
}

/// Commands besides `run`. A program that runs already is in the class until cosched is ended.
#[test]
fn exec_and_attach_have_the_scheduler_too() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let command = place.example("threads");
    let command = command.to_str().unwrap();
    let words = ["exec", "--scheduler", "ext", "--", command, "leaves", "1"];
    let ended = place.cosched(&words).ended().with(0);
    assert_eq!(ended.stdout.trim(), "rounds 0 class 3", "{}", ended.stderr);
    let words = ["exec", "--scheduler", "ext", "--", command, "spin", "2", "2"];
    let cosched = place.cosched(&words);
    eventually("the program runs in the class", || all_are(&place, SchedPolicy::Ext));
    let own = sched_attr::get(0).unwrap().policy;
    assert_eq!(own, SchedPolicy::Other, "all else stays where it is");
    let ended = cosched.ended().with(0);
    assert_eq!(ended.stdout.trim(), "rounds 0 class 7", "{}", ended.stderr);
    let mut running = place.start(command.as_ref(), &["spin", "3", "60"]);
    eventually("three threads", || classes(&place).len() == 3);
    assert!(all_are(&place, SchedPolicy::Other));
    let pid = running.id().to_string();
    let cosched =
        place.cosched(&["attach", "--scheduler", "ext", "--policy", "linux", "--out", "out", &pid]);
    eventually("the program runs in the class", || all_are(&place, SchedPolicy::Ext));
    cosched.signal(Signal::INT);
    let ended = cosched.ended().with(130);
    assert!(all_are(&place, SchedPolicy::Other), "{:?}", classes(&place));
    assert!(counts(&ended.result(), 0).starts > 0);
    running.kill().unwrap();
    running.wait().unwrap();
    println!("exec and attach: in the class, and as found");
}

/// Trap 8 and promise 1: whichever process is killed, the kernel has its own scheduler back, and
/// every thread its class.
#[test]
fn kills_leave_the_kernels_scheduler_and_every_class() {
    if !is_guest() {
        return;
    }
    for (kills_cosched, kills_loader) in [(false, true), (true, false), (true, true)] {
        let place = Place::new();
        let programs = [("rounds", &*format!("rounds {ROUND} 20")), ("rival", "spin 3 20")];
        let cosched = start(&place, &programs, "--barrier donate");
        eventually("all threads are in the class", || {
            classes(&place).len() == 7 && all_are(&place, SchedPolicy::Ext)
        });
        let loader = loader().unwrap();
        if kills_loader {
            loader.signal(&Proc::default(), Signal::KILL).unwrap();
        }
        if kills_cosched {
            cosched.kill();
            eventually("every thread has its class", || all_are(&place, SchedPolicy::Other));
            eventually("the scheduler is gone", || state() == "disabled");
            println!("cosched killed, its loader {}: as found", also(kills_loader));
            continue;
        }
        eventually("the scheduler is gone", || state() == "disabled");
        eventually("every thread has its class", || all_are(&place, SchedPolicy::Other));
        eventually("the user is told", || cosched.said().contains("Linux goes on with its own"));
        println!("the loader killed: as found");
        cosched.signal(Signal::INT);
        let ended = cosched.ended();
        place.nothing_is_left_of(&ended);
    }
}

fn also(killed: bool) -> &'static str {
    if killed { "too" } else { "not" }
}

#[test]
fn the_doctor_names_the_flags_that_the_kernel_knows() {
    if !is_guest() {
        return;
    }
    let ended = Place::new().cosched(&["doctor", "--json"]).ended().with(0);
    for flag in ["SCX_OPS_ENQ_MIGRATION_DISABLED", "SCX_OPS_ALWAYS_ENQ_IMMED"] {
        assert!(ended.stdout.contains(flag), "{}", ended.stdout);
    }
    println!("the doctor names both flags");
}

#[test]
fn a_second_scheduler_is_refused_by_its_name() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let first = start(&place, &[("rival", "spin 1 20")], "");
    eventually("the first is loaded", || state() == "enabled");
    let other = Place::new();
    let refused = start(&other, &[("late", "spin 1 1")], "").ended().with(2);
    assert!(refused.stderr.contains("another scheduler is loaded: cosched"), "{}", refused.stderr);
    assert!(!other.path("out/late.stdout").exists(), "nothing was started");
    first.signal(Signal::TERM);
    place.nothing_is_left_of(&first.ended());
    println!("{}", refused.stderr.trim());
}

/// The kernel ends a scheduler that lets a thread wait for 10 s, and looks every 5 s. Real-time
/// threads take both CPUs here, and the reserve for the class is taken away.
#[test]
fn a_stall_ends_the_scheduler_and_the_run_goes_on() {
    if !is_guest() {
        return;
    }
    let place = Place::new();
    let reserve = |cpu: i32| format!("/sys/kernel/debug/sched/ext_server/cpu{cpu}/runtime");
    let settings = ["/proc/sys/kernel/sched_rt_runtime_us".to_owned(), reserve(0), reserve(1)];
    let found = settings.each_ref().map(|file| fs::read_to_string(file).unwrap());
    for (file, off) in settings.iter().zip(["-1", "0", "0"]) {
        fs::write(file, off).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    let cosched = start(&place, &[("rounds", &format!("rounds {ROUND} 22"))], "");
    eventually("the program runs in the class", || all_are(&place, SchedPolicy::Ext));
    let greedy = ["0", "1"].map(|cpu| {
        // What ends it comes before it.
        let spins = format!("exec timeout 17 chrt -f 10 taskset -c {cpu} sh -c '{SPIN}'");
        place.start("/bin/chrt".as_ref(), &["-f", "20", "sh", "-c", &spins])
    });
    for mut greedy in greedy {
        greedy.wait().unwrap();
    }
    let ended = cosched.ended().with(0);
    for (file, found) in settings.iter().zip(found) {
        fs::write(file, found.trim()).unwrap();
    }
    assert!(ended.stderr.contains("a thread waited for a CPU for too long"), "{}", ended.stderr);
    assert_eq!((state().as_str(), said(&place, "rounds").1), ("disabled", 0));
    place.nothing_is_left_of(&ended);
}
