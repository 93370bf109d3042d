//! What other users' runs left on programs that are not theirs any more.
//!
//! A program that made itself root's, as `sudo` does, cannot be continued or bound by the user that
//! started it. Root can find it: the program's shim holds the undo log open until the program ends.
//! The user can have written anything to that log. Nothing is changed by it, therefore: what is
//! left is only named, and only if it is below the shim, which the user cannot fake for the
//! processes of others.

use std::collections::BTreeMap;
use std::fs::File;

use super::kept::{descriptors, is_log, own_file, shown_path};
use super::lines::length;
use super::log::{Log, owner};
use super::namespace;
use super::not_restored::NotRestored;
use super::owed::{Owed, ProgramUndo};
use super::place::own_uid;
use super::restore::owed_mask;
use crate::kernel::files;
use crate::kernel::procfs::{Proc, ProcState, status_field};
use crate::process::helper::Helper;
use crate::process::tree::Process;

/// How much of one user's logs is read, in bytes, and for how many shims.
const MOST_BYTES: u64 = 4 << 20;
const MOST_SHIMS: usize = 20;
/// How many open files of a shim are looked at: it has fewer.
const MOST_FILES: usize = 64;

/// Something that a run of another user left, and that this user cannot undo.
#[derive(Debug)]
pub struct LeftOfUser {
    /// The user's number.
    pub user: u32,
    /// What is left, with the command that undoes it.
    pub what: NotRestored,
}

/// What runs of other users left on programs that these users may not change any more. Empty unless
/// the caller is root.
pub fn left_of_users(proc: &Proc) -> Vec<LeftOfUser> {
    let (mut left, mut budgets) = (Vec::new(), BTreeMap::new());
    let all = if own_uid() == 0 { proc.processes().unwrap_or_default() } else { Vec::new() };
    for pid in all.into_iter().filter(|pid| Helper::Shim.may_be(*pid, proc)) {
        let user = proc.user(pid).filter(|user| *user != own_uid());
        let user = user.filter(|user| Helper::Shim.may_be_of(*user, pid, proc));
        let Some((user, shim)) = user.zip(Process::find(proc, pid).ok()) else { continue };
        let (bytes, shims) = budgets.entry(user).or_insert((MOST_BYTES, MOST_SHIMS));
        if *shims == 0 {
            continue;
        }
        *shims -= 1;
        for (shown, by) in descriptors(pid, proc).take(MOST_FILES) {
            // Whether a sentinel still has it is not asked: that takes a lock for a moment, and a
            // `recover` of that user would take the log for one in use.
            let lives = |owner: Process| owner.look(proc).is_some();
            if owner(&shown_path(shown)).is_some_and(lives) {
                continue;
            }
            let is_here = |file: &File| is_log(file) && !namespace::is_elsewhere(file, proc);
            let Some(file) = own_file(&by, user).filter(is_here) else { continue };
            let most = *bytes;
            *bytes = bytes.saturating_sub(length(&file));
            let Ok(journal) = Log::read_at_most(&file, most, proc) else { continue };
            let owed = Owed::of(&journal);
            for program in owed.programs.values().filter(|one| one.tree.shim == Some(shim)) {
                let mut members = program.tree.members(proc);
                members.retain(|process| !owed.stopped_by_others.contains(process));
                let found =
                    members.into_iter().flat_map(|one| of_process(one, program, user, proc));
                left.extend(found.map(|what| LeftOfUser { user, what }));
            }
        }
    }
    left
}

fn of_process(one: Process, program: &ProgramUndo, user: u32, proc: &Proc) -> Vec<NotRestored> {
    let rights = UsersRights::of(one.pid, user, proc);
    let mut left = Vec::new();
    let is_stopped = || one.look(proc).is_some_and(|stat| stat.state == ProcState::Stopped);
    if program.stopped_by_signal && !rights.may_signal && is_stopped() {
        left.push(NotRestored::OthersStopped { process: one });
    }
    if !rights.may_bind {
        for tid in proc.threads(one.pid).unwrap_or_default() {
            let Ok(stat) = proc.thread_stat(one.pid, tid) else { continue };
            let thread = Process::from(stat);
            if let Ok(Some([found, _])) = owed_mask(thread, &program.masks) {
                left.push(NotRestored::OthersMask { thread, found: Box::new(found) });
            }
        }
    }
    left
}

/// What a user without privileges may do to a process, by the kernel's rules.
#[derive(Debug, PartialEq)]
struct UsersRights {
    may_signal: bool,
    may_bind: bool,
}

impl UsersRights {
    fn of(pid: i32, user: u32, proc: &Proc) -> UsersRights {
        let status = files::read(&proc.folder(pid).join("status")).unwrap_or_default();
        UsersRights::by(&status, user)
    }

    fn by(status: &str, user: u32) -> UsersRights {
        let users = status_field(status, "Uid").unwrap_or_default().split_whitespace();
        let users: Vec<u32> = users.filter_map(|number| number.parse().ok()).collect();
        // A process that has ended needs nothing.
        let [real, effective, saved, _] = users[..] else {
            return UsersRights { may_signal: true, may_bind: true };
        };
        UsersRights {
            may_signal: [real, saved].contains(&user),
            may_bind: [real, effective].contains(&user),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_may_change_what_is_still_the_users_own() {
        let may = |users: &str| {
            let rights = UsersRights::by(&format!("Uid:\t{users}\n"), 1000);
            (rights.may_signal, rights.may_bind)
        };
        assert_eq!(may("1000\t1000\t1000\t1000"), (true, true));
        assert_eq!(may("1000\t0\t0\t0"), (true, true), "set-uid");
        assert_eq!(may("0\t0\t1000\t0"), (true, false));
        assert_eq!(may("0\t1000\t0\t1000"), (false, true));
        assert_eq!(may("0\t0\t0\t0"), (false, false));
        assert_eq!(UsersRights::by("", 1000), UsersRights { may_signal: true, may_bind: true });
    }
}
