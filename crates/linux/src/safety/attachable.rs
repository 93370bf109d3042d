//! Which running processes can be attached: those that the caller may change and that no other
//! cosched has.
//!
//! Everything is refused that would not work or would do harm: processes that are gone, kernel
//! threads, and the first process of the machine (all others descend from it). cosched and its
//! ancestors are refused, too (it would schedule itself), and so are processes of other users
//! without the permission to change them. Processes of another cosched are refused, since each
//! cosched would take the other's changes for original settings.

use rustix::process::geteuid;

use crate::kernel::files;
use crate::kernel::procfs::{Proc, status_field};
use crate::process::tree::{Process, Tree};
use crate::safety::undo::Held;

const CAP_SYS_NICE: u64 = 1 << 23;

/// Why a process cannot be attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unattachable {
    /// There is no such process.
    #[error("there is no such process")]
    Gone,
    /// It belongs to the kernel.
    #[error("it is a thread of the kernel, which schedules it as it needs")]
    Kernel,
    /// All other processes descend from it.
    #[error("everything on this machine descends from it; name the processes that are meant")]
    First,
    /// It is this cosched, or an ancestor of it.
    #[error(
        "this cosched descends from it, and would schedule itself; start cosched from elsewhere"
    )]
    Own,
    /// It belongs to another user.
    #[error("it belongs to another user; changing it takes CAP_SYS_NICE (run cosched as root)")]
    NotPermitted,
    /// It is a thread, and not a process.
    #[error("it is a thread of process {process}: name that")]
    Thread {
        /// Its process.
        process: i32,
    },
    /// The same process was named twice.
    #[error("it is named twice: name it once")]
    Repeated,
    /// It was named already, with an ancestor.
    #[error("it belongs to process {above}, which is named, too: name one of the two")]
    Twice {
        /// The other one.
        above: i32,
    },
    /// Another cosched has it, or one of its descendants.
    #[error(
        "another cosched (process {cosched}) schedules it or a descendant of it; `cosched detach` \
         detaches it first"
    )]
    Held {
        /// The other cosched.
        cosched: i32,
    },
}

/// The processes with these numbers, if all of them can be attached.
///
/// # Errors
/// The first process that cannot be attached, with the reason.
pub fn attachable(
    proc: &Proc,
    pids: &[i32],
    held: &[Held],
) -> Result<Vec<Process>, (i32, Unattachable)> {
    let mut found: Vec<(Process, Vec<Process>)> = Vec::new();
    for pid in pids {
        let process = one(proc, *pid).map_err(|why| (*pid, why))?;
        let below = Tree { main: Some(process), ..Tree::default() }.members(proc);
        for (other, theirs) in &found {
            if *other == process {
                return Err((*pid, Unattachable::Repeated));
            }
            if theirs.contains(&process) {
                return Err((*pid, Unattachable::Twice { above: other.pid }));
            }
            if below.contains(other) {
                return Err((other.pid, Unattachable::Twice { above: *pid }));
            }
        }
        if let Some(cosched) = holder(&below, held, proc) {
            return Err((*pid, Unattachable::Held { cosched }));
        }
        found.push((process, below));
    }
    Ok(found.into_iter().map(|(process, _)| process).collect())
}

/// The number of another cosched that has one of these processes, or is one.
pub(crate) fn holder(processes: &[Process], held: &[Held], proc: &Proc) -> Option<i32> {
    let taken = held.iter().find(|held| {
        processes.contains(&held.owner)
            || held.members(proc).iter().any(|had| processes.contains(had))
    });
    taken.map(|held| held.owner.pid)
}

fn one(proc: &Proc, pid: i32) -> Result<Process, Unattachable> {
    let stat = proc.stat(pid).map_err(|_| Unattachable::Gone)?;
    let status = files::read(&proc.folder(pid).join("status")).map_err(|_| Unattachable::Gone)?;
    if stat.has_ended() {
        return Err(Unattachable::Gone);
    }
    match status_field(&status, "Tgid").and_then(|number| number.parse().ok()) {
        Some(process) if process != pid => return Err(Unattachable::Thread { process }),
        _ => {}
    }
    if stat.is_of_kernel {
        return Err(Unattachable::Kernel);
    }
    if pid == 1 {
        return Err(Unattachable::First);
    }
    let mut own = std::process::id() as i32;
    while own > 0 {
        if own == pid {
            return Err(Unattachable::Own);
        }
        own = proc.stat(own).map_or(0, |stat| stat.ppid);
    }
    if !may_change(proc, &status) {
        return Err(Unattachable::NotPermitted);
    }
    Ok(Process::from(stat))
}

/// Whether a process is a thread of the kernel; not if it has ended.
pub fn is_of_kernel(proc: &Proc, pid: i32) -> bool {
    proc.stat(pid).is_ok_and(|stat| stat.is_of_kernel && !stat.has_ended())
}

/// Whether the caller may change a process, by the kernel's rule (`check_same_owner`). The caller's
/// effective user must be the process' real or effective one. Otherwise the caller needs the
/// capability to change the scheduling of any process.
fn may_change(proc: &Proc, status: &str) -> bool {
    let users = status_field(status, "Uid").unwrap_or_default();
    let mut users = users.split_whitespace().take(2).filter_map(|uid| uid.parse().ok());
    let own = geteuid().as_raw();
    users.any(|uid: u32| uid == own) || may_change_any(proc, std::process::id() as i32)
}

/// Whether a process has the capability to change the scheduling of all others, in any direction.
pub(crate) fn may_change_any(proc: &Proc, pid: i32) -> bool {
    let status = files::read(&proc.folder(pid).join("status")).unwrap_or_default();
    let capabilities = status_field(&status, "CapEff").unwrap_or("0");
    u64::from_str_radix(capabilities, 16).unwrap_or(0) & CAP_SYS_NICE != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::testkit::TestProcess;

    fn refused(pids: &[i32]) -> (i32, Unattachable) {
        attachable(&Proc::default(), pids, &[]).unwrap_err()
    }

    #[test]
    fn missing_first_and_own_processes_are_refused() {
        let own = std::process::id() as i32;
        assert_eq!(refused(&[i32::MAX]), (i32::MAX, Unattachable::Gone));
        assert_eq!(refused(&[own]), (own, Unattachable::Own));
        let parent = Proc::default().stat(own).unwrap().ppid;
        if parent > 1 {
            assert_eq!(refused(&[parent]), (parent, Unattachable::Own));
        }
        assert!(matches!(refused(&[1]).1, Unattachable::First | Unattachable::Own));
    }

    #[test]
    fn threads_of_the_kernel_are_told_by_their_lack_of_memory() {
        let proc = Proc::default();
        let own = std::process::id() as i32;
        assert!(!is_of_kernel(&proc, own) && !is_of_kernel(&proc, i32::MAX));
        // In a container it is not there.
        if proc.name(2).is_ok_and(|name| name == "kthreadd") {
            assert!(is_of_kernel(&proc, 2));
            assert_eq!(refused(&[2]), (2, Unattachable::Kernel));
        }
    }

    #[test]
    fn a_process_twice_or_with_its_descendant_is_refused() {
        let parent = TestProcess::parent_of(1);
        let (pid, below) = (parent.pid(), Proc::default().children(parent.pid()).unwrap()[0]);
        assert_eq!(refused(&[pid, pid]), (pid, Unattachable::Repeated));
        assert_eq!(refused(&[pid, below]), (below, Unattachable::Twice { above: pid }));
        assert_eq!(refused(&[below, pid]), (below, Unattachable::Twice { above: pid }));
        let found = attachable(&Proc::default(), &[below], &[]).unwrap();
        assert_eq!(found, [Process::find(&Proc::default(), below).unwrap()]);
    }

    #[test]
    fn a_thread_number_is_distinguished_from_a_process() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let (tid_sender, tid) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            tid_sender.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            let _ = receiver.recv();
        });
        let tid = tid.recv().unwrap();
        let process = std::process::id() as i32;
        assert_eq!(refused(&[tid]), (tid, Unattachable::Thread { process }));
        drop(sender);
        thread.join().unwrap();
    }
}
