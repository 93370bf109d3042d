//! Masks, as they are seen while CPUs go offline and come back.
//!
//! The kernel remembers a thread's mask with the CPUs that are offline, but reports it without
//! them: the mask that is read back may differ from the one that was set. If all CPUs of a thread
//! go offline, it may run anywhere from then on, even once they are back. The offline CPUs follow
//! from what is left of our own mask, which changes in the same moment; what sysfs says comes
//! later. But in a cpuset the kernel forgets what is offline, so sysfs is read as well.

use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use cosched_core::{CpuSet, MAX_CPUS};

use super::{AffinityError, get};
use crate::kernel::procfs::status_field;
use crate::kernel::{files, topology};

/// The visible part of a thread's mask.
#[derive(Clone, Copy, Debug)]
pub struct VisibleMask {
    /// The CPUs on which the thread may run, without those that are offline.
    pub mask: CpuSet,
    /// Our own mask, without the CPUs that are offline.
    here: CpuSet,
    /// The CPUs that are offline.
    gone: CpuSet,
}

impl VisibleMask {
    /// Reads the mask of a thread.
    ///
    /// # Errors
    /// As [`get`].
    pub fn of(tid: i32) -> Result<VisibleMask, AffinityError> {
        let mut here = get(0)?;
        loop {
            let mask = get(tid)?;
            let before = std::mem::replace(&mut here, get(0)?);
            if before == here {
                return Ok(VisibleMask { mask, here, gone: gone(here) });
            }
        }
    }

    /// Such a mask while no CPU is offline.
    #[cfg(test)]
    pub(crate) fn whole(mask: CpuSet) -> VisibleMask {
        VisibleMask { mask, here: CpuSet::first(MAX_CPUS), gone: CpuSet::default() }
    }

    /// The same thread, if it may use every CPU that is there.
    pub fn freed(self) -> VisibleMask {
        VisibleMask { mask: CpuSet::first(MAX_CPUS).difference(&self.gone), ..self }
    }

    /// Whether a thread with this mask would be seen like that.
    pub fn shows(&self, mask: &CpuSet) -> bool {
        let left = mask.difference(&self.gone);
        let is_released = !mask.is_empty() && left.is_empty() && self.here.is_subset(&self.mask);
        self.mask == *mask || self.mask == left || is_released
    }

    /// Whether both may be one mask, seen at two times.
    pub fn is_as(&self, other: &VisibleMask) -> bool {
        let gone = self.gone.union(&other.gone);
        self.mask.difference(&gone) == other.mask.difference(&gone)
    }
}

/// The offline CPUs, where this is left of our own mask.
fn gone(here: CpuSet) -> CpuSet {
    static FIRST: OnceLock<CpuSet> = OnceLock::new();
    static LAST: Mutex<Option<(CpuSet, CpuSet)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, gone)) = last.filter(|(seen, _)| *seen == here) {
        return gone;
    }
    let online = topology::list(Path::new("/sys/devices/system/cpu/online")).ok().flatten();
    let gone = offline(&here, own(), online);
    // A CPU that we have no longer, though it is online, was taken from us; otherwise sysfs knows.
    let is_certain = FIRST.get_or_init(|| here).difference(&here).is_subset(&gone);
    *last = is_certain.then_some((here, gone));
    gone
}

/// The offline CPUs, by what is missing in our own mask, and by what sysfs says, as far as both are
/// known.
fn offline(here: &CpuSet, own: Option<CpuSet>, online: Option<CpuSet>) -> CpuSet {
    let unseen = own.map(|own| own.difference(here)).unwrap_or_default();
    let others = online.map(|online| CpuSet::first(MAX_CPUS).difference(&online));
    unseen.union(&others.unwrap_or_default())
}

/// Our own mask as the kernel remembers it, with offline CPUs.
fn own() -> Option<CpuSet> {
    let status = files::read(Path::new("/proc/thread-self/status")).ok()?;
    status_field(&status, "Cpus_allowed_list")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    /// A mask as seen on a machine of eight CPUs, all of which we may use.
    fn seen(mask: &str, gone: &str) -> VisibleMask {
        let gone = cpus(gone);
        VisibleMask { mask: cpus(mask), here: CpuSet::first(8).difference(&gone), gone }
    }

    #[test]
    fn a_mask_is_seen_without_offline_cpus() {
        assert!(seen("0-5", "6-7").shows(&cpus("0-7")));
        assert!(seen("4-5", "6-7").shows(&cpus("4-6")));
        assert!(seen("4-6", "7").shows(&cpus("4-6")));
        assert!(!seen("4-5", "7").shows(&cpus("4-6")), "the sixth is there");
        assert!(!seen("4-5", "").shows(&cpus("4-7")));
    }

    #[test]
    fn a_mask_of_offline_cpus_only_is_seen_as_all_cpus() {
        assert!(seen("0-5", "6-7").shows(&cpus("6-7")));
        assert!(seen("0-5,9", "6-7").shows(&cpus("6-7")), "also where we may not run");
        assert!(!seen("0-4", "6-7").shows(&cpus("6-7")));
        assert!(!seen("0-7", "").shows(&cpus("6-7")), "the rest is not known any more");
        assert!(!seen("0-7", "").shows(&CpuSet::EMPTY), "no thread has such a mask");
    }

    #[test]
    fn two_samples_of_a_mask_differ_only_by_offline_cpus() {
        assert!(seen("4-5", "6-7").is_as(&seen("4-7", "")));
        assert!(seen("4-6", "7").is_as(&seen("4-5,7", "6")));
        assert!(!seen("4-5", "6-7").is_as(&seen("3-7", "")));
    }

    #[test]
    fn cpus_taken_from_cosched_are_not_offline() {
        let offline = |here: &str, own: &str, online: &str| {
            let gone = offline(&cpus(here), Some(cpus(own)), Some(cpus(online)));
            gone.intersection(&CpuSet::first(8)).to_string()
        };
        assert_eq!(offline("0-7", "0-7", "0-7"), "");
        assert_eq!(offline("0-3", "0-7", "0-7"), "4-7", "sysfs comes later");
        assert_eq!(offline("0-3", "0-3", "0-3"), "4-7", "a cpuset forgets");
        assert_eq!(offline("0-3", "0-3", "0-7"), "", "it was taken from us");
        assert_eq!(offline("0-3", "0-4", "0-6"), "4,7");
    }

    #[test]
    fn our_own_mask_is_seen_as_the_kernel_reports_it() {
        let seen = VisibleMask::of(0).unwrap();
        assert_eq!(seen.mask, get(0).unwrap());
        assert!(seen.shows(&seen.mask) && seen.is_as(&seen));
        assert!(seen.mask.is_subset(&own().unwrap()) && !seen.mask.intersects(&seen.gone));
    }
}
