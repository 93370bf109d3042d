//! Which sockets wait for connections.
//!
//! A descriptor shows a socket's inode number and nothing else; the tables of
//! `/proc/PID/net` show, for all sockets of the process' network namespace, the inode and the
//! state. Each namespace is read once, and TCP's tables only for a socket that is none of UNIX': to read them takes
//! milliseconds of the kernel's time even where there is hardly a connection, since it goes over the whole hash table. (Every
//! program that has the [hook](crate::hook) inside holds a UNIX socket.)

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::network_of;
use crate::files::{self, FileError};

/// TCP's number for a listening socket.
const TCP_LISTEN: &str = "0A";
/// The flag of a UNIX socket that accepts connections.
const UNIX_ACCEPTS: u32 = 0x1_0000;

/// The sockets of network namespaces, as far as they were looked at.
#[derive(Default)]
pub(super) struct Sockets(BTreeMap<String, Tables>);

struct Tables {
    /// Those of UNIX by inode number, and whether they accept connections.
    unix: BTreeMap<u64, bool>,
    /// Those of TCP that listen.
    tcp: Option<BTreeSet<u64>>,
}

impl Sockets {
    /// Whether one of these, which the process with this folder of `/proc` holds, waits for connections.
    pub(super) fn listen(
        &mut self,
        folder: &Path,
        held: &BTreeSet<u64>,
    ) -> Result<bool, FileError> {
        let name = network_of(folder).unwrap_or_else(|| folder.display().to_string());
        let net = folder.join("net");
        if !self.0.contains_key(&name) {
            let unix = read(&net.join("unix"))?.lines().filter_map(unix).collect();
            self.0.insert(name.clone(), Tables { unix, tcp: None });
        }
        let Some(tables) = self.0.get_mut(&name) else { return Ok(false) };
        if held.iter().any(|inode| tables.unix.get(inode) == Some(&true)) {
            return Ok(true);
        }
        if held.iter().all(|inode| tables.unix.contains_key(inode)) {
            return Ok(false);
        }
        if tables.tcp.is_none() {
            let both = read(&net.join("tcp"))? + &read(&net.join("tcp6"))?;
            tables.tcp = Some(both.lines().filter_map(tcp).collect());
        }
        Ok(tables.tcp.as_ref().is_some_and(|listening| !listening.is_disjoint(held)))
    }
}

fn read(table: &Path) -> Result<String, FileError> {
    Ok(files::read_if_there(table)?.unwrap_or_default())
}

/// `0: local remote 0A queues timer retransmissions user timeout INODE ...`
fn tcp(line: &str) -> Option<u64> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    (*words.get(3)? == TCP_LISTEN).then_some(words.get(9)?.parse().ok()?)
}

/// `address: references protocol FLAGS type state INODE path`
fn unix(line: &str) -> Option<(u64, bool)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
    Some((words.get(6)?.parse().ok()?, flags & UNIX_ACCEPTS != 0))
}
