//! What a machine has seen of programs by itself, for their results.

use cosched_linux::machine::Seen;
use cosched_results::result::RunResult;

/// Notes what was seen of each program.
pub(super) fn tell(seen: Vec<Seen>, result: &mut RunResult) {
    for (program, seen) in result.programs.iter_mut().zip(seen) {
        (program.threads_seen, program.processes_seen) = (seen.threads, seen.processes);
        (program.units_seen, program.spinning) = (seen.units, seen.spinning);
    }
}
