//! Commands that get what is missing.

use rustix::process::geteuid;

/// All capabilities that an ordinary user may lack, at once: a second `setcap` would take away what
/// the first one has granted.
pub(crate) const GRANT_CAPABILITIES: &str =
    "sudo setcap cap_sys_nice,cap_bpf,cap_perfmon+ep \"$(command -v cosched)\"";

/// Events may then be counted and sampled, in own programs outside the kernel.
pub(crate) const ALLOW_EVENTS: &str = "sudo sysctl kernel.perf_event_paranoid=2";

/// A remedy as this user types it: root needs no sudo.
pub(crate) fn as_typed(remedy: &str) -> String {
    match geteuid().is_root() {
        true => remedy.replace("sudo ", ""),
        false => remedy.to_owned(),
    }
}
