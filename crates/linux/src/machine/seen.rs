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
            in_kernel: match &self.ext {
                Some(ext) => Some(ext.counts(slot as u16)),
                None => self.ext_counts.get(slot).copied(),
            },
        };
        spinning.enumerate().map(of).collect()
    }
}
