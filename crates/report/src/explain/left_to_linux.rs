//! Runs under `linux`: what the run shows about the causes of extra time, where no decision of
//! cosched has a reason.

use cosched_results::result::{ProgramResult, RunResult};

use crate::disturbance;
use crate::history::{History, changes};
use crate::words;

/// The policy that leaves scheduling to the kernel.
const POLICY: &str = "linux";
/// The CPUs of a run were full if its programs and other processes used this part of them.
const FULL: f64 = 0.8;

/// The most likely cause of extra time, and what to try; `None` under other policies.
pub(super) fn sentence(history: &History<'_>) -> Option<String> {
    let result = history.result;
    if result.policy != POLICY {
        return None;
    }
    let cpus = result.machine.cpus;
    let most = most_threads(history);
    let others = disturbance::others(result).unwrap_or_default();
    let disturbed = disturbance::is_disturbed(result);
    let unknown = words::cpu_use(result).is_empty();
    let full = unknown || result.metrics.cpu_utilisation + others / cpus as f64 >= FULL;
    let of_cpus = words::count(cpus, "CPU", "CPUs");
    let nothing = "cosched scheduled nothing";
    Some(match (most > cpus, disturbed, full) {
        (true, _, true) => {
            let (and, are) = match disturbed {
                true => (" and other processes", "Both are the most likely causes"),
                false => ("", "That is the most likely cause"),
            };
            let left = (cpus as f64 - others).max(0.0);
            format!(
                "{nothing}: Linux shared {of_cpus} among up to {most} threads{and}, so each \
                 thread got about {:.0} % of a CPU. {are} of extra time. {}",
                100.0 * left / most as f64,
                remedy(result)
            )
        }
        (true, _, false) => format!(
            "{nothing}: Linux shared {of_cpus} among up to {most} threads. They left CPUs idle, \
             so the most likely cause of extra time is waiting for each other or for files.{}",
            // No tool watches simulated threads.
            match result.machine.is_simulated() {
                true => "",
                false => " `cosched stat` shows where threads wait.",
            }
        ),
        (false, true, _) => format!(
            "{nothing}. Other processes are the most likely cause of extra time. Run it again \
             while they are idle (the system's `top` shows what uses CPUs)."
        ),
        (false, false, _) => format!(
            "{nothing}, and each of up to {} had a CPU. The most likely cause of extra time is \
             shared caches and memory.",
            words::count(most, "thread", "threads")
        ),
    })
}

/// What to type next if threads lack CPUs.
fn remedy(result: &RunResult) -> &'static str {
    match result.programs.len() {
        1 => "Start it with one thread per CPU.",
        _ => "`cosched compare` with the same programs shows whether taking turns is faster.",
    }
}

/// The most threads that the running programs had together.
fn most_threads(history: &History<'_>) -> usize {
    let spans = history.running().map(|(run, slot)| (run.from, run.to, slot));
    let threads = |slot: &usize| threads(&history.result.programs[*slot]);
    let sums = changes(spans).into_iter().map(|(_, slots)| slots.iter().map(threads).sum());
    sums.max().unwrap_or_default()
}

/// The threads of a program: as they were seen, else as it requested them.
fn threads(program: &ProgramResult) -> usize {
    program.threads_seen.map_or(program.threads.into(), |seen| seen as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    fn text(run: &RunResult) -> String {
        sentence(&History::of(run)).unwrap_or_default()
    }

    #[test]
    fn more_threads_than_cpus_are_the_likely_cause() {
        let mut run = testkit::linux();
        run.programs[1].threads_seen = Some(4);
        assert_eq!(
            text(&run),
            "cosched scheduled nothing: Linux shared 2 CPUs among up to 6 threads, so each thread \
             got about 33 % of a CPU. That is the most likely cause of extra time. \
             `cosched compare` with the same programs shows whether taking turns is faster."
        );
        run.others_cpu_seconds = Some(0.3);
        assert!(text(&run).contains("6 threads and other processes, so each"), "{}", text(&run));
        assert!(text(&run).contains("got about 25 % of a CPU. Both are"), "{}", text(&run));
        run.programs.pop();
        run.programs[0].threads = 4;
        assert!(text(&run).ends_with("Start it with one thread per CPU."), "{}", text(&run));
    }

    #[test]
    fn a_lack_of_cpus_is_no_cause_where_cpus_are_idle_or_enough() {
        let mut run = testkit::linux();
        run.metrics.cpu_utilisation = 0.4;
        run.programs[0].usage.user_seconds = 0.5;
        assert!(text(&run).contains("They left CPUs idle"), "{}", text(&run));
        assert!(text(&run).ends_with("`cosched stat` shows where threads wait."), "{}", text(&run));
        let mut simulated = run.clone();
        simulated.machine.kernel = "simulated".to_owned();
        assert!(text(&simulated).ends_with("for each other or for files."), "{}", text(&simulated));
        run.programs.iter_mut().for_each(|program| program.threads = 1);
        assert!(text(&run).contains("each of up to 2 threads had a CPU"), "{}", text(&run));
        run.others_cpu_seconds = Some(0.6);
        assert!(text(&run).contains("Other processes are the most likely"), "{}", text(&run));
        assert_eq!(text(&testkit::gang()), "");
    }
}
