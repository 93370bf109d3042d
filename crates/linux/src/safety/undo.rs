//! Undoing: whatever happens to cosched, programs get their original settings back.
//!
//! Every change to a program is announced in a *write-ahead log* before it is made: one line says
//! what will be changed, and the original setting. If cosched ends, in whatever way, a process
//! reads the log and [`restore`]s. This is cosched itself, the [sentinel](crate::safety::sentinel)
//! within a moment of cosched's death, or later `cosched recover`.
//!
//! What makes this safe:
//! - an announced change may not have been made. Undoing therefore checks first, and changes only
//!   what is as cosched would have set it. What other software has changed since stays;
//! - undoing twice, or by two processes at once, does no harm, for the same reason;
//! - a log says which cosched it belongs to by number and start time ([`Log::leftovers`]), and in
//!   which boot of the machine it was written: nothing outlives a reboot, but numbers are reused.
//!
//! The parts: [`Record`] is one announcement, [`Journal`] holds what is still to be undone,
//! [`Log`] keeps it in a file, [`restore`] does it.

mod cgroups;
mod changes;
mod ending;
mod forgotten;
mod guards;
mod held;
mod journal;
mod kept;
mod lines;
mod log;
mod lost;
mod namespace;
mod not_restored;
mod of_users;
mod owed;
mod place;
mod record;
mod restore;

pub use ending::logs_of_ending;
pub(crate) use forgotten::is_done_with;
pub use guards::{HeldUp, are_at_work, continue_sentinels, held_up_sentinels, stopped_sentinels};
pub use held::Held;
pub(crate) use held::lock_folders;
pub use journal::Journal;
pub use kept::{KeptLog, folders_of_shims, has_helpers, kept_by_shims, load_left};
pub(crate) use log::owner;
pub use log::{Log, LogError};
pub use lost::{LeftGroup, LostGroups, left_groups, lost_groups};
pub use not_restored::NotRestored;
pub use of_users::{LeftOfUser, left_of_users};
pub use place::{is_own_folder, log_folder, log_folders, own_log_folders, possible_log_folders};
pub use record::{CgroupKind, Move, Record};
pub(crate) use restore::thaw;
pub use restore::{Restored, restore};
