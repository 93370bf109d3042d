//! Masks, seen while CPUs come and go.
//!
//! The kernel remembers a thread's mask with the CPUs that are offline, and tells it without them: what was set is not
//! always what is read back. Where all CPUs of a thread go offline, it may run anywhere from then on, also once they are
//! back. Which CPUs are offline is seen by what is left of our own mask: that changes in the same moment, while
//! what sysfs says of CPUs comes later.

use std::path::Path;
use std::sync::OnceLock;

use cosched_core::CpuSet;

use super::{AffinityError, get};
use crate::files;

/// The mask of a thread, as far as it is seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The CPUs on which the thread may run, without those that are offline.
    pub mask: CpuSet,
    /// The same of our own mask.
    here: CpuSet,
    /// What that is without.
    gone: CpuSet,
}

impl Seen {
    /// Looks at a thread.
    ///
    /// # Errors
    /// As [`get`].
    pub fn of(tid: i32) -> Result<Seen, AffinityError> {
        let mut here = get(0)?;
        loop {
            let mask = get(tid)?;
            let before = std::mem::replace(&mut here, get(0)?);
            if before == here {
                return Ok(Seen { mask, here, gone: own().difference(&here) });
            }
        }
    }

    /// Whether a thread with this mask looks like that.
    pub fn shows(&self, mask: &CpuSet) -> bool {
        let left = mask.difference(&self.gone);
        self.mask == *mask
            || self.mask == left
            || left.is_empty() && self.here.is_subset(&self.mask)
    }

    /// Whether both may be the same mask, seen at two times.
    pub fn is_as(&self, other: &Seen) -> bool {
        let gone = self.gone.union(&other.gone);
        self.mask.difference(&gone) == other.mask.difference(&gone)
    }
}

/// Our own mask, with what is offline.
fn own() -> &'static CpuSet {
    static OWN: OnceLock<CpuSet> = OnceLock::new();
    OWN.get_or_init(|| {
        let status = files::read(Path::new("/proc/thread-self/status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.and_then(|list| list.parse().ok()).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    /// On a machine of eight CPUs, all of which we may use.
    fn seen(mask: &str, gone: &str) -> Seen {
        let gone = cpus(gone);
        Seen { mask: cpus(mask), here: CpuSet::first(8).difference(&gone), gone }
    }

    #[test]
    fn a_mask_is_seen_without_what_is_offline() {
        assert!(seen("0-5", "6-7").shows(&cpus("0-7")));
        assert!(seen("4-5", "6-7").shows(&cpus("4-6")));
        assert!(seen("4-6", "7").shows(&cpus("4-6")));
        assert!(!seen("4-5", "7").shows(&cpus("4-6")), "the sixth is there");
        assert!(!seen("4-5", "").shows(&cpus("4-7")));
    }

    #[test]
    fn a_mask_of_what_is_offline_alone_is_seen_as_anywhere() {
        assert!(seen("0-5", "6-7").shows(&cpus("6-7")));
        assert!(seen("0-5,9", "6-7").shows(&cpus("6-7")), "also where we may not run");
        assert!(!seen("0-4", "6-7").shows(&cpus("6-7")));
        assert!(!seen("0-7", "").shows(&cpus("6-7")), "nobody knows any more");
    }

    #[test]
    fn two_looks_at_one_mask_differ_by_what_was_offline_at_one_of_them() {
        assert!(seen("4-5", "6-7").is_as(&seen("4-7", "")));
        assert!(seen("4-6", "7").is_as(&seen("4-5,7", "6")));
        assert!(!seen("4-5", "6-7").is_as(&seen("3-7", "")));
    }

    #[test]
    fn our_own_mask_is_seen_as_it_is_told() {
        let own = Seen::of(0).unwrap();
        assert_eq!(own.mask, get(0).unwrap());
        assert!(own.shows(&own.mask) && own.is_as(&own));
    }
}
