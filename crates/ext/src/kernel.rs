//! Why the kernel did not take the scheduler, in words that lead to a remedy.

use std::{env, fs};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto};
use libbpf_rs::{Error, ErrorKind};

/// Functions of the kernel that the scheduler calls, and how many parameters each has. Some kernels
/// describe them with a further one, and then refuse every scheduler that calls them. Where there
/// are two names, one is enough; the second one is that of Linux 6.12.
const FUNCTIONS: [(&[&str], usize); 16] = [
    (&["scx_bpf_create_dsq"], 2),
    (&["scx_bpf_select_cpu_dfl"], 4),
    (&["scx_bpf_pick_idle_cpu"], 2),
    (&["scx_bpf_test_and_clear_cpu_idle"], 1),
    (&["scx_bpf_kick_cpu"], 2),
    (&["scx_bpf_dsq_nr_queued"], 1),
    (&["scx_bpf_nr_cpu_ids"], 0),
    (&["scx_bpf_task_cpu"], 1),
    (&["scx_bpf_dsq_insert", "scx_bpf_dispatch"], 4),
    (&["scx_bpf_dsq_move_to_local", "scx_bpf_consume"], 1),
    (&["scx_bpf_dsq_move", "scx_bpf_dispatch_from_dsq"], 4),
    (&["scx_bpf_dsq_move_set_slice", "scx_bpf_dispatch_from_dsq_set_slice"], 2),
    (&["bpf_cpumask_test_cpu"], 2),
    (&["bpf_iter_scx_dsq_new"], 3),
    (&["bpf_iter_scx_dsq_next"], 1),
    (&["bpf_iter_scx_dsq_destroy"], 1),
];

/// The name of the scheduler that is loaded, if one is.
pub(crate) fn loaded() -> Option<String> {
    let name = fs::read_to_string("/sys/kernel/sched_ext/root/ops").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

pub(crate) fn is_loaded(other: &str) -> String {
    format!(
        "another scheduler is loaded: {other} (remedy: end what has loaded it, or leave \
         `--scheduler ext` out)"
    )
}

pub(crate) fn why(error: &Error) -> String {
    if let Some(other) = loaded() {
        return is_loaded(&other);
    }
    let types = Btf::from_vmlinux();
    let malformed = types.map(|types| malformed(|name| parameters(&types, name)));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    NotTaken {
        has_class: fs::metadata("/sys/kernel/sched_ext").is_ok(),
        malformed: malformed.unwrap_or_default(),
        // The verifier's answer to a program that it refuses looks like it (EACCES).
        lacks_rights: error.kind() == ErrorKind::PermissionDenied && !may_load(&status),
    }
    .complaint(error)
}

/// What is known of a scheduler that the kernel did not take.
struct NotTaken {
    has_class: bool,
    malformed: Vec<&'static str>,
    lacks_rights: bool,
}

impl NotTaken {
    fn complaint(&self, error: &Error) -> String {
        if !self.has_class {
            return "the kernel was built without sched_ext (remedy: Linux 6.12 or newer with \
                    CONFIG_SCHED_CLASS_EXT=y)"
                .to_owned();
        }
        if !self.malformed.is_empty() {
            let functions = self.malformed.join(", ");
            return format!(
                "the kernel describes its functions wrongly: {functions} (remedy: a newer kernel)"
            );
        }
        if self.lacks_rights {
            let file = env::current_exe().unwrap_or_else(|_| "cosched-ext".into());
            return format!(
                "this user may not load a scheduler (remedy: run cosched as root, with the \
                 capabilities CAP_BPF and CAP_PERFMON, or let root give cosched-ext the right to: \
                 setcap cap_bpf,cap_perfmon+ep {})",
                file.display()
            );
        }
        format!(
            "the kernel refuses the scheduler: {error:#} (the kernel's log, `dmesg`, may say why)"
        )
    }
}

/// Whether a process with this `/proc/PID/status` has the capabilities for it.
fn may_load(status: &str) -> bool {
    const CAP_PERFMON: u64 = 1 << 38;
    const CAP_BPF: u64 = 1 << 39;
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let has = line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    has & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON
}

/// How many parameters a function has, as the kernel describes it.
fn parameters(types: &Btf<'_>, name: &str) -> Option<usize> {
    let function = types.type_by_name::<Func<'_>>(name)?;
    let form = FuncProto::try_from(function.next_type()?).ok()?;
    Some(form.len())
}

/// The functions that the kernel lacks, or describes otherwise than they are.
fn malformed(parameters: impl Fn(&str) -> Option<usize>) -> Vec<&'static str> {
    let wrong = |(names, count): &(&[&'static str], usize)| {
        let is_right = |name: &&&str| parameters(name) == Some(*count);
        let is_known = |name: &&&str| parameters(name).is_some();
        match names.iter().any(|name| is_right(&name)) {
            true => None,
            false => names.iter().find(is_known).or(names.first()).copied(),
        }
    };
    FUNCTIONS.iter().filter_map(wrong).collect()
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn denied() -> Error {
        io::Error::from(io::ErrorKind::PermissionDenied).into()
    }

    /// Debian's 7.2 kernels show a hidden argument.
    #[test]
    fn functions_that_are_described_wrongly_are_named() {
        let described = |name: &str| {
            FUNCTIONS.iter().find(|(names, _)| names.contains(&name)).map(|found| found.1)
        };
        let kicks = |name: &str| usize::from(name == "scx_bpf_kick_cpu");
        let hidden = |name: &str| described(name).map(|count| count + kicks(name));
        assert_eq!(malformed(hidden), ["scx_bpf_kick_cpu"]);
        let old = |name: &str| described(name).filter(|_| name != "scx_bpf_dsq_insert");
        assert!(malformed(old).is_empty(), "6.12 has scx_bpf_dispatch");
        let neither = |name: &str| old(name).filter(|_| name != "scx_bpf_dispatch");
        assert_eq!(malformed(neither), ["scx_bpf_dsq_insert"]);
        let missing = |name: &str| described(name).filter(|_| name != "scx_bpf_task_cpu");
        let refused =
            NotTaken { has_class: true, malformed: malformed(missing), lacks_rights: false };
        let complaint = refused.complaint(&denied());
        assert!(complaint.contains("wrongly: scx_bpf_task_cpu (remedy: a newer"), "{complaint}");
    }

    #[test]
    fn a_missing_capability_leads_to_setcap() {
        let status = |set: u64| format!("CapPrm:\t{:016x}\nCapEff:\t{set:016x}\n", u64::MAX);
        assert!(may_load(&status(0b11 << 38)));
        for lacks in [0b10 << 38, 0b01 << 38, 0] {
            assert!(!may_load(&status(lacks)), "{lacks:x}");
        }
        assert!(!may_load(""));
        let complaint = |lacks_rights| {
            NotTaken { has_class: true, malformed: vec![], lacks_rights }.complaint(&denied())
        };
        assert!(complaint(true).contains("setcap cap_bpf,cap_perfmon+ep"), "{}", complaint(true));
        assert!(complaint(false).contains("refuses the scheduler"), "{}", complaint(false));
    }

    #[test]
    fn a_kernel_without_the_class_is_named_before_all_else() {
        let refused =
            NotTaken { has_class: false, malformed: malformed(|_| None), lacks_rights: true };
        assert!(refused.complaint(&denied()).contains("CONFIG_SCHED_CLASS_EXT"));
    }
}
