//! What may be changed about the scheduling of threads.

use cosched_core::format;
use rustix::time::{ClockId, clock_getres};

use super::{Ability, Right, available, missing, tried};
use crate::control::ext::loader::ExtError;
use crate::kernel::affinity;
use crate::kernel::files;
use crate::kernel::procfs::Proc;
use crate::kernel::remedy::GRANT_CAPABILITIES;
use crate::kernel::sched_attr::{self, SchedAttr, SchedPolicy, default_slice, on_scratch_thread};
use crate::kernel::topology::Sys;

pub(super) fn affinity() -> Right {
    // Setting the present mask again changes nothing.
    let cpus = affinity::get(0).and_then(|cpus| affinity::set(0, &cpus).map(|()| cpus));
    tried(Ability::Affinity, cpus.map(|cpus| format::cpus(&cpus)), None)
}

/// Whether threads can have slices of their own.
pub fn slices() -> Right {
    let remedy = Some("Linux 6.12 or newer");
    match default_slice() {
        Ok(Some(slice)) => {
            available(Ability::Slices, format!("0.1 to 100 ms; the kernel's own choice is {slice}"))
        }
        Ok(None) => missing(Ability::Slices, "the kernel takes slices and ignores them", remedy),
        Err(error) => missing(Ability::Slices, error.to_string(), remedy),
    }
}

pub(super) fn negative_nice() -> Right {
    let granted = on_scratch_thread(|| {
        let plain = sched_attr::get(0)?.in_default_class();
        let nice = (plain.nice - 1).max(-20);
        sched_attr::set(0, &SchedAttr { nice, ..plain })?;
        Ok(format!("nice {nice} was granted"))
    });
    tried(Ability::NegativeNice, granted, Some(GRANT_CAPABILITIES))
}

/// Whether threads may get a real-time class.
pub fn real_time() -> Right {
    let granted = on_scratch_thread(|| {
        let plain = sched_attr::get(0)?.in_default_class();
        let policy = SchedPolicy::RoundRobin;
        sched_attr::set(0, &SchedAttr { policy, priority: 1, nice: 0, ..plain })
    });
    let detail = granted.map(|()| "SCHED_RR was granted; used only on request");
    tried(Ability::RealTime, detail, Some(GRANT_CAPABILITIES))
}

pub(super) fn autogroup(proc: &Proc) -> Right {
    let path = proc.root().join("sys/kernel/sched_autogroup_enabled");
    match files::value_if_there::<u8>(&path, "0 or 1") {
        Ok(Some(1)) => available(Ability::Autogroup, "on"),
        Ok(Some(_)) => {
            missing(Ability::Autogroup, "off", Some("sudo sysctl kernel.sched_autogroup_enabled=1"))
        }
        Ok(None) => missing(Ability::Autogroup, "this kernel was built without it", None),
        Err(error) => missing(Ability::Autogroup, error.to_string(), None),
    }
}

/// Whether cosched's scheduler can be loaded into the kernel, as `check` finds.
pub(super) fn sched_ext(
    sys: &Sys,
    release: &str,
    check: impl FnOnce() -> Result<String, ExtError>,
) -> Right {
    if sys.root().join("kernel/sched_ext").is_dir() {
        return match check() {
            Ok(said) => {
                let hz = ticks_per_second();
                let detail = format!(
                    "{said}; its slices end by timers and not at the kernel's ticks (HZ={hz})"
                );
                available(Ability::SchedExt, detail)
            }
            Err(error) => missing(Ability::SchedExt, error.to_string(), None),
        };
    }
    match is_at_least(release, (6, 12)) {
        true => missing(
            Ability::SchedExt,
            format!("Linux {release} was built without it"),
            Some(
                "a kernel that was built with CONFIG_SCHED_CLASS_EXT=y (and CONFIG_BPF_JIT, \
                 CONFIG_DEBUG_INFO_BTF)",
            ),
        ),
        false => missing(
            Ability::SchedExt,
            format!("Linux {release} is too old for it"),
            Some("Linux 6.12 or newer, built with CONFIG_SCHED_CLASS_EXT=y"),
        ),
    }
}

/// How often the kernel looks at what it schedules (HZ): its coarse clocks go forward then.
fn ticks_per_second() -> u64 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    let nanos = tick.tv_sec as u64 * 1_000_000_000 + tick.tv_nsec as u64;
    1_000_000_000 / nanos.max(1)
}

/// Whether a release such as `6.12.3-amd64` is this version or a later one.
fn is_at_least(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= version
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn autogroup_is_read_from_its_switch() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("sys/kernel");
        fs::create_dir_all(&folder).unwrap();
        let proc = Proc::new(root.path());
        assert_eq!(autogroup(&proc).remedy, None);
        for (text, on) in [("1\n", true), ("0\n", false)] {
            fs::write(folder.join("sched_autogroup_enabled"), text).unwrap();
            assert_eq!(autogroup(&proc).available, on);
        }
    }

    #[test]
    fn sched_ext_asks_for_a_newer_kernel_only_where_it_is_older() {
        let root = tempfile::tempdir().unwrap();
        let sys = Sys::new(root.path());
        for (release, too_old) in
            [("6.18.0-rc1", false), ("7.0", false), ("6.9.12", true), ("5.15.0-1", true)]
        {
            let remedy = sched_ext(&sys, release, || Ok(String::new())).remedy.unwrap();
            assert_eq!(remedy.contains("or newer"), too_old, "{release}: {remedy}");
            assert!(remedy.contains("CONFIG_SCHED_CLASS_EXT"), "{remedy}");
        }
        fs::create_dir_all(root.path().join("kernel/sched_ext")).unwrap();
        let taken = || Ok("the kernel takes it with SCX_OPS_X".to_owned());
        let found = sched_ext(&sys, "6.18.0", taken);
        assert!(found.available && found.detail.contains("SCX_OPS_X; its slices"), "{found:?}");
        for why in ["another scheduler is loaded: x", "wrongly: scx_bpf_x (remedy: a newer one)"] {
            let refused = || Err(ExtError::Refused(why.to_owned()));
            let found = sched_ext(&sys, "6.18.0", refused);
            assert!(!found.available && found.detail.contains(why), "{found:?}");
        }
    }

    #[test]
    fn the_kernels_ticks_are_of_a_frequency_that_it_can_have() {
        let hz = ticks_per_second();
        assert!([100, 200, 250, 256, 300, 500, 512, 1000, 1024, 1200].contains(&hz), "{hz}");
    }

    #[test]
    fn trying_priorities_leaves_the_caller_unchanged() {
        let before = sched_attr::get(0).unwrap();
        negative_nice();
        real_time();
        assert_eq!(sched_attr::get(0).unwrap(), before);
    }
}
