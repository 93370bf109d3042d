//! The times of section 2.3 of the paper on Tidon, of real programs: how long barriers took, what
//! threads spun there, and what programs lacked of their shares.

use std::process::Command;

use cosched_core::BarrierTimes;
use cosched_linux::kernel::affinity;

use super::support::{Ended, Place, program, skip};

/// Two threads pass 20 barriers. One of them sets out for each only 20 ms after the other one is
/// about to wait there.
const UNEVEN: &str = r#"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
enum { ROUNDS = 20 };
static pthread_barrier_t all;
static atomic_int waiting;
static void *late(void *nothing) {
    for (int round = 1; round <= ROUNDS; round++) {
        while (atomic_load(&waiting) < round) usleep(200);
        usleep(20000);
        pthread_barrier_wait(&all);
    }
    return nothing;
}
int main(void) {
    pthread_t other;
    pthread_barrier_init(&all, 0, 2);
    pthread_create(&other, 0, late, 0);
    for (int round = 1; round <= ROUNDS; round++) {
        atomic_store(&waiting, round);
        pthread_barrier_wait(&all);
    }
    pthread_join(other, 0);
    return 0;
}
"#;

/// Compiles it; `None`, with a message, where there is no gcc.
fn uneven(place: &Place) -> Option<()> {
    let source = place.write("uneven.c", UNEVEN);
    let mut compiler = Command::new("gcc");
    let made = compiler.arg("-pthread").arg(source).arg("-o").arg(place.path("uneven")).status();
    if !made.is_ok_and(|status| status.success()) {
        skip("there is no gcc");
        return None;
    }
    Some(())
}

/// The run of that program in a wait mode; its times, and how long barriers took on average.
fn waited(place: &Place, mode: &str) -> (Ended, BarrierTimes, f64) {
    let tables = [program("a", &format!("barrier = '{mode}'"), "exec ./uneven")];
    let ended = place.run(&tables, "--policy linux").ended().with(0);
    let barrier = ended.result().programs[0].barrier.clone().unwrap();
    let stats = barrier.statistics.unwrap();
    assert_eq!((stats.barriers, stats.waits()), (20, 20), "{stats:?}");
    (ended, stats.times.unwrap(), stats.mean_latency_seconds().unwrap())
}

/// The first thread waits for at least 20 ms, unless it loses its CPU just before it arrives.
/// Rounds follow each other, so all latencies together are no longer than the run.
#[test]
fn latency_is_the_imbalance_in_every_wait_mode() {
    for mode in ["block", "spin", "yield", "donate"] {
        let place = Place::new();
        let Some(()) = uneven(&place) else { return };
        let (ended, times, mean) = waited(&place, mode);
        assert!(mean > 0.010 && times.longest_latency_seconds >= 0.020, "{mode}: {times:?}");
        let took = ended.result().programs[0].turnaround_seconds.unwrap();
        assert!(times.latency_seconds < took, "{mode}: {times:?} in {took} s");
        // The second of two threads arrives 20 ms after the first one, and at the end.
        let completion = times.completion_seconds.unwrap();
        let most = 20.0 * times.longest_latency_seconds;
        assert!(completion > 20.0 * 0.010 && completion <= most, "{mode}: {times:?}");
        if mode == "block" {
            let explained = place.cosched(&["explain", "out", "--program", "a"]).ended().with(0);
            assert!(explained.stdout.contains("a barrier took "), "{}", explained.stdout);
        }
    }
}

/// The program does nothing but wait, so that its CPU time is what it spins. A thread that sleeps
/// at once makes one check per wait. Two rounds are timed for seventeen each, and no time between
/// two checks counts from 50 us on.
#[test]
fn waiting_threads_spin_or_not_by_wait_mode() {
    let most = (2 * 17 + 3 * 20) as f64 * 50e-6;
    for mode in ["block", "spin", "yield"] {
        let place = Place::new();
        let Some(()) = uneven(&place) else { return };
        let (ended, times, _) = waited(&place, mode);
        let usage = ended.result().programs[0].usage;
        let used = usage.user_seconds + usage.system_seconds;
        assert!(times.spun_seconds < times.latency_seconds, "{mode}: {times:?}");
        match mode {
            "spin" => {
                assert!(times.spun_seconds > 4.0 * most, "{times:?}");
                assert!(times.spun_seconds > used / 2.0, "{times:?} of {used} s");
                assert!(times.spun_seconds < 1.5 * used, "{times:?} of {used} s");
            }
            _ => assert!(times.spun_seconds < most, "{mode}: {times:?}"),
        }
    }
}

/// Two programs with a thread for each CPU, of which one sleeps and the other computes: all CPU
/// time is divided between them, and what each lacks is what it did not use.
#[test]
fn shares_add_up_to_the_machine_and_lag_is_what_was_not_received() {
    let place = Place::new();
    let cpus = affinity::get(0).unwrap().len();
    let keys = |weight| format!("threads = {cpus}\nweight = {weight}");
    let computes = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let tables =
        [program("sleeps", &keys(3), "exec sleep 0.4"), program("computes", &keys(1), computes)];
    let ended = place.run(&tables, "--policy linux").ended().with(0);
    let result = ended.result();
    let (mut all, mut first) = (0.0, f64::INFINITY);
    for program in &result.programs {
        let fair = program.fair_share.unwrap();
        let used = program.usage.user_seconds + program.usage.system_seconds;
        assert!((fair.share_seconds - fair.lag_seconds - used).abs() < 1e-5, "{fair:?} {used}");
        all += fair.share_seconds;
        first = first.min(program.turnaround_seconds.unwrap());
    }
    let machine = cpus as f64 * result.total_seconds;
    assert!((all - machine).abs() < 1e-4, "{all} s of {machine} s");
    let sleeps = result.programs[0].fair_share.unwrap();
    let least = 0.75 * cpus as f64 * first;
    assert!(sleeps.share_seconds > least - 1e-4, "{sleeps:?}");
    assert!(sleeps.lag_seconds > sleeps.share_seconds / 2.0, "it slept: {sleeps:?}");
}
