//! What was seen of the programs over the run.

use super::{Linux, Seen};

impl Linux {
    /// What was seen of each program.
    pub fn seen(&self) -> Vec<Seen> {
        let of = |slot: usize| Seen {
            threads: self.inspector.threads[slot],
            processes: self.inspector.processes[slot],
            units: self.within.most_units(slot),
        };
        (0..self.config.jobs.len()).map(of).collect()
    }
}
