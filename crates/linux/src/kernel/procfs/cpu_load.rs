//! How busy CPUs are, whatever runs on them: the lines of `/proc/stat`.
//!
//! The kernel counts in clock ticks (1/100 s), so a difference of two readings that lie close
//! together is rough.

use cosched_core::CpuSet;

/// Of a second: what the kernel counts times in for user space.
const TICKS: f64 = 100.0;

/// How long CPUs were busy, and how long a virtual machine went without them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuLoad {
    /// CPU time of all processes and of the kernel, seconds.
    pub busy_seconds: f64,
    /// CPU time that the hypervisor gave to other guests (steal), seconds.
    pub stolen_seconds: f64,
}

impl CpuLoad {
    /// What has come since an earlier reading.
    pub fn since(self, earlier: CpuLoad) -> CpuLoad {
        CpuLoad {
            busy_seconds: (self.busy_seconds - earlier.busy_seconds).max(0.0),
            stolen_seconds: (self.stolen_seconds - earlier.stolen_seconds).max(0.0),
        }
    }
}

/// The sum over some CPUs. A line that is no CPU's, or is cut off, counts as nothing.
pub(super) fn parse(text: &str, cpus: &CpuSet) -> CpuLoad {
    let mut load = CpuLoad::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let number = words.next().and_then(|name| name.strip_prefix("cpu"));
        if !number.and_then(|cpu| cpu.parse().ok()).is_some_and(|cpu| cpus.contains(cpu)) {
            continue;
        }
        let times: Vec<f64> = words.map_while(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user already.
        if let [user, nice, system, _, _, irq, softirq, steal, ..] = times[..] {
            load.busy_seconds += (user + nice + system + irq + softirq) / TICKS;
            load.stolen_seconds += steal / TICKS;
        }
    }
    load
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "cpu  900 0 0 0 0 0 0 0 0 0\n\
        cpu0 100 20 30 4000 500 6 4 70 50 0\n\
        cpu1 200 0 0 0 0 0 0 0 0 0\n\
        cpu2 1 2 3\n\
        intr 806758 0 0\n";

    #[test]
    fn only_the_named_cpus_count_and_only_while_busy() {
        let of = |cpus: &str| parse(TEXT, &cpus.parse().unwrap());
        assert_eq!(of("0"), CpuLoad { busy_seconds: 1.6, stolen_seconds: 0.7 });
        assert_eq!(of("0-3").busy_seconds, 3.6);
        assert_eq!(of("2-3"), CpuLoad::default());
    }

    #[test]
    fn a_difference_is_never_negative() {
        let (early, late) = (parse(TEXT, &CpuSet::first(1)), parse(TEXT, &CpuSet::first(2)));
        assert_eq!(late.since(early), CpuLoad { busy_seconds: 2.0, stolen_seconds: 0.0 });
        assert_eq!(early.since(late), CpuLoad::default());
    }
}
