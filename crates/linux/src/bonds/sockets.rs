//! Which sockets wait for connections.
//!
//! A descriptor shows a socket's inode number and nothing else; the tables of
//! `/proc/PID/net` show, for all sockets of the process' network namespace, the inode and the
//! state. Reading them may take long where there are many connections, so each namespace is read once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::network_of;
use crate::files::{self, FileError};

/// TCP's number for a listening socket.
const TCP_LISTEN: &str = "0A";
/// The flag of a UNIX socket that accepts connections.
const UNIX_ACCEPTS: u32 = 0x1_0000;

/// Inode numbers of listening sockets, by network namespace.
#[derive(Default)]
pub(super) struct Listeners(BTreeMap<String, BTreeSet<u64>>);

impl Listeners {
    /// The listening sockets that the process with this folder of `/proc` could hold.
    pub(super) fn of(&mut self, folder: &Path) -> Result<&BTreeSet<u64>, FileError> {
        let name = network_of(folder).unwrap_or_else(|| folder.display().to_string());
        if !self.0.contains_key(&name) {
            self.0.insert(name.clone(), read(&folder.join("net"))?);
        }
        Ok(&self.0[&name])
    }
}

fn read(net: &Path) -> Result<BTreeSet<u64>, FileError> {
    let mut inodes = BTreeSet::new();
    for (table, listening) in [("tcp", tcp as fn(&str) -> _), ("tcp6", tcp), ("unix", unix)] {
        let text = files::read_if_there(&net.join(table))?.unwrap_or_default();
        inodes.extend(text.lines().filter_map(listening));
    }
    Ok(inodes)
}

/// `0: local remote 0A queues timer retransmissions user timeout INODE ...`
fn tcp(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    (*words.get(3)? == TCP_LISTEN).then_some(words.get(9)?.parse().ok()?)
}

/// `address: references protocol FLAGS type state INODE path`
fn unix(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
    (flags & UNIX_ACCEPTS != 0).then_some(words.get(6)?.parse().ok()?)
}
