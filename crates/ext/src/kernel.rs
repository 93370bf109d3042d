//! Why the kernel did not take the scheduler, in words that lead to a remedy.

use std::{env, fs};

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Func, FuncProto};
use libbpf_rs::{Error, ErrorKind};

/// Functions of the kernel that the scheduler needs, and how many parameters each has. Some
/// kernels describe them with a further one, and then refuse every scheduler that calls them.
const FUNCTIONS: [(&str, usize); 10] = [
    ("scx_bpf_create_dsq", 2),
    ("scx_bpf_select_cpu_dfl", 4),
    ("scx_bpf_pick_idle_cpu", 2),
    ("scx_bpf_kick_cpu", 2),
    ("scx_bpf_dsq_nr_queued", 1),
    ("scx_bpf_nr_cpu_ids", 0),
    ("scx_bpf_task_cpu", 1),
    ("bpf_iter_scx_dsq_new", 3),
    ("bpf_iter_scx_dsq_next", 1),
    ("bpf_iter_scx_dsq_destroy", 1),
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
    let malformed = Btf::from_vmlinux().map(|types| malformed(&types)).unwrap_or_default();
    match error.kind() {
        _ if fs::metadata("/sys/kernel/sched_ext").is_err() => {
            "the kernel was built without sched_ext (remedy: Linux 6.12 or newer with \
             CONFIG_SCHED_CLASS_EXT=y)"
                .to_owned()
        }
        _ if !malformed.is_empty() => format!(
            "the kernel describes its functions wrongly: {} (remedy: a newer kernel)",
            malformed.join(", ")
        ),
        // The verifier's answer to a program that it refuses looks like it (EACCES).
        ErrorKind::PermissionDenied if !may_load() => {
            let file = env::current_exe().unwrap_or_else(|_| "cosched-ext".into());
            format!(
                "this user may not load a scheduler (remedy: run cosched as root, with the \
                 capabilities CAP_BPF and CAP_PERFMON, or let root give cosched-ext the right to: \
                 setcap cap_bpf,cap_perfmon+ep {})",
                file.display()
            )
        }
        _ => format!(
            "the kernel refuses the scheduler: {error:#} (the kernel's log, `dmesg`, may say why)"
        ),
    }
}

/// Whether this process has the capabilities for it.
fn may_load() -> bool {
    const CAP_PERFMON: u64 = 1 << 38;
    const CAP_BPF: u64 = 1 << 39;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let has = line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0);
    has & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON
}

/// The functions that the kernel lacks, or describes otherwise than they are.
fn malformed(types: &Btf<'_>) -> Vec<&'static str> {
    let parameters = |name: &str| {
        let function = types.type_by_name::<Func<'_>>(name)?;
        let form = FuncProto::try_from(function.next_type()?).ok()?;
        Some(form.len())
    };
    let is_wrong = |(name, count): &&(&str, usize)| parameters(name) != Some(*count);
    FUNCTIONS.iter().filter(is_wrong).map(|(name, _)| *name).collect()
}
