//! What root is told of the runs of other users.

use std::collections::BTreeSet;

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::safety::undo::left_of_users;

use super::Recovered;
use crate::ui::say;

/// The most lines for one user, which can start any number of programs.
const MOST_LINES: usize = 20;

impl Recovered {
    /// Names what only root can undo after the runs of other users. The logs of other users are not
    /// trusted, so it is left to root to do it.
    pub(super) fn tell_of_users(&mut self, proc: &Proc) {
        let left = left_of_users(proc);
        self.is_complete &= left.is_empty();
        for user in left.iter().map(|one| one.user).collect::<BTreeSet<u32>>() {
            let of_user: Vec<_> = left.iter().filter(|one| one.user == user).collect();
            for one in of_user.iter().take(MOST_LINES) {
                say(format_args!("after a run of user {user}: {}", one.what));
            }
            if of_user.len() > MOST_LINES {
                say(format_args!("user {user}: {} more like these", of_user.len() - MOST_LINES));
            }
        }
    }
}
