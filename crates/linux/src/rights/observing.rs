//! What may be observed: scheduling inside the kernel, hardware counters, pressure.

use super::{Ability, Right, available, missing, tried};
use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::{Proc, status_field};
use crate::kernel::remedy::{ALLOW_EVENTS, GRANT_CAPABILITIES};
use crate::kernel::topology::Sys;
use crate::observe::counters::{self, Events};
use crate::observe::pointers::SampleClock;

const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// Whether BPF looks possible. To be sure, a program would have to be loaded. cosched's programs
/// attach to tracepoints by their types, so no tracefs needs to be mounted.
pub(super) fn bpf(proc: &Proc, sys: &Sys) -> Result<Right, FileError> {
    let status_path = proc.root().join("self/status");
    let status = files::read(&status_path)?;
    let capabilities = status_field(&status, "CapEff").unwrap_or("0");
    let capabilities = u64::from_str_radix(capabilities, 16)
        .map_err(|_| FileError::malformed(&status_path, "capabilities", capabilities))?;
    let has = |needed| capabilities & needed == needed;
    let needs = [
        (
            has(CAP_SYS_ADMIN) || has(CAP_BPF | CAP_PERFMON),
            "CAP_BPF and CAP_PERFMON are missing",
            GRANT_CAPABILITIES,
        ),
        (
            sys.root().join("kernel/btf/vmlinux").exists(),
            "the kernel does not describe its types",
            "a kernel built with CONFIG_DEBUG_INFO_BTF",
        ),
    ];
    let unmet = needs.into_iter().find(|(is_met, ..)| !is_met);
    Ok(match unmet {
        Some((_, detail, remedy)) => missing(Ability::Bpf, detail, Some(remedy)),
        None => available(Ability::Bpf, "looks possible: the capabilities and BTF are there"),
    })
}

/// Above this level of `perf_event_paranoid`, nothing may be counted or sampled.
const MOST_PARANOID: i32 = 2;

fn paranoid(proc: &Proc) -> Result<Option<i32>, FileError> {
    files::value_if_there(&proc.root().join("sys/kernel/perf_event_paranoid"), "a number")
}

fn paranoid_in_words(proc: &Proc) -> String {
    match paranoid(proc) {
        Ok(Some(level)) => format!("perf_event_paranoid is {level}"),
        Ok(None) => "this kernel has no performance events".to_owned(),
        Err(error) => error.to_string(),
    }
}

pub(super) fn code_samples(proc: &Proc) -> Right {
    let is_high = paranoid(proc).is_ok_and(|level| level > Some(MOST_PARANOID));
    let detail = |what: &str| format!("{what}; {}", paranoid_in_words(proc));
    match SampleClock::here() {
        Some(_) => available(Ability::CodeSamples, detail("code of own programs is sampled")),
        None => missing(
            Ability::CodeSamples,
            detail("the kernel takes no samples for this user"),
            is_high.then_some(ALLOW_EVENTS),
        ),
    }
}

pub(super) fn pmu(proc: &Proc) -> Right {
    let detail = |what: &str| format!("{what}; {}", paranoid_in_words(proc));
    match counters::check(Events::HARDWARE) {
        Ok(()) => available(
            Ability::Pmu,
            detail("instructions and cache misses of own programs are counted"),
        ),
        Err(lack) => missing(Ability::Pmu, detail(&lack.to_string()), lack.remedy().as_deref()),
    }
}

pub(super) fn psi(proc: &Proc) -> Right {
    // A kernel with accounting switched off has the file and refuses to fill it.
    let found = files::read(&proc.root().join("pressure/cpu")).map(|_| "/proc/pressure is there");
    tried(Ability::Psi, found, Some("a kernel built with CONFIG_PSI, started with psi=1"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn put(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn bpf_names_its_first_missing_requirement() {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys) = (Proc::new(root.path()), Sys::new(root.path()));
        let look = || bpf(&proc, &sys).unwrap();
        put(root.path(), "self/status", "CapEff:\t0000000000000000\n");
        assert!(look().remedy.unwrap().contains(",cap_bpf,"));
        put(root.path(), "self/status", "CapEff:\t000000c000000000\n");
        assert!(look().detail.contains("types"));
        put(root.path(), "kernel/btf/vmlinux", "");
        assert!(look().available, "tracepoints are found by BTF, without tracefs");
        put(root.path(), "self/status", "CapEff:\t0000008000000000\n");
        assert!(!look().available);
    }

    #[test]
    fn pressure_is_available_if_it_can_be_read() {
        let root = tempfile::tempdir().unwrap();
        let proc = Proc::new(root.path());
        assert!(!psi(&proc).available);
        put(root.path(), "pressure/cpu", "some avg10=0.00\n");
        assert!(psi(&proc).available);
    }

    #[test]
    fn counters_are_reported_with_the_level_of_caution() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "sys/kernel/perf_event_paranoid", "3\n");
        assert!(pmu(&Proc::new(root.path())).detail.ends_with("perf_event_paranoid is 3"));
    }
}
