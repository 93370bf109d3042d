//! What was seen of the programs over the run.

use cosched_core::Spinning;

use super::{Linux, Seen};

impl Linux {
    /// What was seen of each program.
    pub fn seen(&self) -> Vec<Seen> {
        let spinning = self.spin_watch.so_far().into_iter();
        let of = |(slot, spinning): (usize, Option<Spinning>)| Seen {
            threads: self.inspector.threads[slot],
            processes: self.inspector.processes[slot],
            units: self.within.most_units(slot),
            spinning,
            in_kernel: self.ext.as_ref().map(|ext| ext.counts(slot as u16)),
        };
        spinning.enumerate().map(of).collect()
    }
}
