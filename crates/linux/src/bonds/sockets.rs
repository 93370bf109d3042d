//! Which sockets wait for connections.
//!
//! A descriptor shows a socket's inode number and nothing else; the tables of
//! `/proc/PID/net` show, for all sockets of the process' network namespace, the inode and the
//! state. To read TCP's takes long: the kernel walks a table that is made for as many connections as the machine has memory
//! for, whether they are there or not. So each is read once for each namespace, and TCP's only for sockets that are not
//! UNIX', such as the one by which a program with the hook inside is connected to cosched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::network_of;
use crate::files::{self, FileError};

/// TCP's number for a listening socket.
const TCP_LISTEN: &str = "0A";
/// The flag of a UNIX socket that accepts connections.
const UNIX_ACCEPTS: u32 = 0x1_0000;

/// What is known of sockets, by network namespace.
#[derive(Default)]
pub(super) struct Listeners(BTreeMap<String, Tables>);

/// Whether each socket waits for connections, by inode number; `None`: not read yet.
#[derive(Default)]
struct Tables {
    unix: Option<BTreeMap<u64, bool>>,
    tcp: Option<BTreeMap<u64, bool>>,
}

impl Listeners {
    /// Whether one of these sockets waits for connections. The process with this folder of `/proc` holds them.
    pub(super) fn are_among(
        &mut self,
        sockets: &BTreeSet<u64>,
        folder: &Path,
    ) -> Result<bool, FileError> {
        let name = network_of(folder).unwrap_or_else(|| folder.display().to_string());
        let (net, tables) = (folder.join("net"), self.0.entry(name).or_default());
        let unix = read_once(&mut tables.unix, &net, &["unix"], unix)?;
        if sockets.iter().any(|socket| unix.get(socket) == Some(&true)) {
            return Ok(true);
        }
        if sockets.iter().all(|socket| unix.contains_key(socket)) {
            return Ok(false);
        }
        let tcp = read_once(&mut tables.tcp, &net, &["tcp", "tcp6"], tcp)?;
        Ok(sockets.iter().any(|socket| tcp.get(socket) == Some(&true)))
    }
}

fn read_once<'a>(
    known: &'a mut Option<BTreeMap<u64, bool>>,
    net: &Path,
    tables: &[&str],
    line: fn(&str) -> Option<(u64, bool)>,
) -> Result<&'a BTreeMap<u64, bool>, FileError> {
    if known.is_none() {
        let mut found = BTreeMap::new();
        for table in tables {
            let text = files::read_if_there(&net.join(table))?.unwrap_or_default();
            found.extend(text.lines().filter_map(line));
        }
        *known = Some(found);
    }
    Ok(known.get_or_insert_default())
}

/// `0: local remote STATE queues timer retransmissions user timeout INODE ...`
fn tcp(line: &str) -> Option<(u64, bool)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    Some((words.get(9)?.parse().ok()?, *words.get(3)? == TCP_LISTEN))
}

/// `address: references protocol FLAGS type state INODE path`
fn unix(line: &str) -> Option<(u64, bool)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
    Some((words.get(6)?.parse().ok()?, flags & UNIX_ACCEPTS != 0))
}
