//! What a machine has seen of programs by itself, for their results.

use cosched_linux::machine::Seen;
use cosched_results::result::{InKernel, RunResult};

/// Notes what was seen of each program.
pub(super) fn tell(seen: Vec<Seen>, result: &mut RunResult) {
    for (program, seen) in result.programs.iter_mut().zip(seen) {
        (program.threads_seen, program.processes_seen) = (seen.threads, seen.processes);
        (program.units_seen, program.spinning) = (seen.units, seen.spinning);
        program.in_kernel = seen.in_kernel.map(|counts| InKernel {
            cpu_seconds: counts.used.as_secs_f64(),
            starts: counts.starts,
            donations: counts.donations,
            handed_over: counts.handed_over,
            followed: counts.followed,
        });
    }
}
