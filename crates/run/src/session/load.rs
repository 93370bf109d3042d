//! How much CPU time other processes take, while a run lasts and before one begins.

use std::thread::sleep;
use std::time::{Duration, Instant};

use cosched_core::CpuSet;
use cosched_linux::kernel::clock::own_cpu_seconds;
use cosched_linux::kernel::procfs::{CpuLoad, Proc};
use cosched_report::disturbance;
use cosched_results::result::RunResult;

use super::here::Session;
use crate::ui::Talk;

/// How long it is watched whether a machine is busy: thirty clock ticks for each CPU.
const WATCHED: Duration = Duration::from_millis(300);

/// The load of some CPUs since a moment.
pub struct Load {
    proc: Proc,
    cpus: CpuSet,
    found: CpuLoad,
}

impl Load {
    /// From now on; `None`: the kernel does not tell.
    pub fn begin(cpus: CpuSet) -> Option<Load> {
        let proc = Proc::own().ok()?;
        Some(Load { found: proc.cpu_load(&cpus).ok()?, cpus, proc })
    }

    /// What has come since then.
    pub fn so_far(&self) -> Option<CpuLoad> {
        Some(self.proc.cpu_load(&self.cpus).ok()?.since(self.found))
    }
}

/// Adds to a result what other processes have used: what neither its programs nor cosched have.
/// That is unknown if a program was detached: no process accounts for what it uses.
pub(super) fn tell(load: CpuLoad, own_cpu_seconds: f64, result: &mut RunResult) {
    if (0..result.programs.len()).any(|slot| result.was_detached(slot)) {
        return;
    }
    let of_all = result.machine.cpus as f64 * result.total_seconds;
    let own = result.metrics.cpu_utilisation * of_all + own_cpu_seconds;
    // CPUs are counted in ticks, so a short run may seem to have more than there were.
    let others = (load.busy_seconds - own).clamp(0.0, (of_all - own).max(0.0));
    result.others_cpu_seconds = Some(to_microseconds(others));
    result.stolen_cpu_seconds = Some(to_microseconds(load.stolen_seconds));
}

impl Session {
    /// Does something in this process. Returns how many CPUs other processes used meanwhile, in
    /// words, if that matters.
    pub fn while_watched<T>(&self, work: impl FnOnce() -> T) -> (T, Option<String>) {
        let cpus = self.usable.cpus;
        let (load, began, own) = (Load::begin(cpus), Instant::now(), own_cpu_seconds());
        let done = work();
        let used = load.and_then(|load| load.so_far()).map(|found| {
            let used = found.busy_seconds - (own_cpu_seconds() - own);
            // CPUs are counted in ticks, so more may seem to be used than there are.
            (used / began.elapsed().as_secs_f64()).clamp(0.0, cpus.len() as f64)
        });
        let used = used.filter(|used| disturbance::is_busy(*used, cpus.len()));
        (done, used.map(|used| disturbance::of_cpus(used, cpus.len())))
    }

    /// Says so if other processes use the CPUs now. Returns how many they use, in words.
    pub fn tell_if_busy(&self, talk: Talk) -> Option<String> {
        let used = self.while_watched(|| sleep(WATCHED)).1?;
        talk.tell(format_args!(
            "the machine is busy: other processes use {used}. Times will be disturbed; wait until \
             it is idle (the system's `top` shows what uses CPUs)"
        ));
        Some(used)
    }
}

fn to_microseconds(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}
