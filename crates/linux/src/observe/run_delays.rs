//! How long the threads of a program were ready and had no CPU, by the kernel's account for each
//! (`schedstat`).
//!
//! Clocks show how long threads were on a CPU. In the rest of its time a thread may have slept, or
//! others may have had its CPU. A policy that needs the cost of co-runners to a program has to
//! distinguish these. The account is exact, and all users may read that of their own processes. The
//! wait of a thread that ended between two samples is missed.

use std::collections::BTreeMap;

use cosched_core::Nanos;

use crate::kernel::procfs::Proc;
use crate::process::tree::Process;

#[derive(Debug, Default)]
pub(crate) struct RunDelays(BTreeMap<i32, u64>);

impl RunDelays {
    /// How long the threads of these processes have waited since the last sample, in total; `None`
    /// where the kernel does not say.
    pub(crate) fn next(&mut self, members: &[Process], proc: &Proc) -> Option<Nanos> {
        let mut now = BTreeMap::new();
        for process in members {
            for thread in proc.threads(process.pid).unwrap_or_default() {
                if let Ok(delay) = proc.run_delay(process.pid, thread) {
                    now.insert(thread, delay.0);
                }
            }
        }
        let before = |thread: &i32| self.0.get(thread).copied().unwrap_or_default();
        let waited = now.iter().map(|(thread, delay)| delay.saturating_sub(before(thread)));
        let waited = Nanos(waited.sum());
        self.0 = now;
        (!self.0.is_empty()).then_some(waited)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_since_the_last_sample_are_added_over_threads() {
        let root = tempfile::tempdir().unwrap();
        let proc = Proc::new(root.path());
        let write = |pid: i32, thread: i32, delay: u64| {
            let folder = root.path().join(format!("{pid}/task/{thread}"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("schedstat"), format!("5000 {delay} 7\n")).unwrap();
        };
        let members = [7, 8].map(|pid| Process { pid, start_time: 1 });
        let mut delays = RunDelays::default();
        assert_eq!(delays.next(&members, &proc), None, "there is no process");
        write(7, 7, 100);
        write(8, 8, 10);
        assert_eq!(delays.next(&members, &proc), Some(Nanos(110)));
        write(7, 7, 130);
        write(7, 9, 4);
        assert_eq!(delays.next(&members, &proc), Some(Nanos(34)));
        std::fs::remove_dir_all(root.path().join("8")).unwrap();
        assert_eq!(delays.next(&members, &proc), Some(Nanos::ZERO), "what has ended is missed");
    }
}
