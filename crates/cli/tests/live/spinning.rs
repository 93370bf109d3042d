//! `explain` names spin loops that cosched has found in samples of a program's code.

use std::process::Command;

use super::support::{Place, program, skip};

/// Two threads of a pipeline hand numbers on by a flag, and wait for it with a pause. Without an
/// argument, they compute and wait for nothing. Each needs so much CPU time that it is looked at.
const SOURCE: &str = r"
#include <pthread.h>
#include <time.h>
#define ENOUGH 3
static int flag, waits;
static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}
static void work(void) {
    for (volatile int i = 0; i < 20000; i++)
        ;
}
static void *stage(void *own) {
    while (used() < ENOUGH) {
        while (waits && __atomic_load_n(&flag, __ATOMIC_ACQUIRE) == !own)
            __builtin_ia32_pause();
        work();
        __atomic_store_n(&flag, !own, __ATOMIC_RELEASE);
    }
    waits = 0;
    return 0;
}
int main(int words, char **word) {
    pthread_t thread;
    waits = words > 1;
    pthread_create(&thread, 0, stage, word);
    stage(0);
    return pthread_join(thread, 0);
}
";

#[test]
fn explain_names_the_spin_loop_of_a_pipeline() {
    if !cfg!(target_arch = "x86_64") {
        return skip("the instruction pointer cannot be sampled here");
    }
    let place = Place::new();
    let source = place.write("stages.c", SOURCE);
    let mut compiler = Command::new("gcc");
    compiler.args(["-O1", "-pthread", "-o"]).args([place.path("stages"), source]);
    match compiler.status() {
        Ok(status) => assert!(status.success()),
        Err(_) => return skip("there is no gcc"),
    }
    let doctor = place.cosched(&["doctor", "--json"]).ended().stdout;
    let doctor: serde_json::Value = serde_json::from_str(&doctor).unwrap();
    let rights = doctor["rights"].as_array().unwrap();
    let samples = rights.iter().find(|right| right["name"] == "code-samples").unwrap();
    if samples["available"] != true {
        return skip("the instruction pointer cannot be sampled here");
    }
    let tables =
        [program("pipeline", "", "exec ./stages wait"), program("sums", "", "exec ./stages")];
    let ended = place.run(&tables, "--policy linux").ended().with(0);
    let [pipeline, sums] = &ended.result().programs[..] else { panic!("two programs") };
    let spinning = pipeline.spinning.as_ref().unwrap();
    assert!(spinning.share > 0.1 && spinning.share <= 1.0, "{spinning:?}");
    let sums = sums.spinning.as_ref().unwrap();
    assert!(sums.samples > 0 && sums.loops.is_empty(), "{sums:?}");
    let explained =
        |name| place.cosched(&["explain", "out", "--program", name]).ended().with(0).stdout;
    let (pipeline, sums) = (explained("pipeline"), explained("sums"));
    assert!(pipeline.contains("went to spin loops (stages +0x"), "{pipeline}");
    assert!(!sums.contains("spin loops"), "{sums}");
}
