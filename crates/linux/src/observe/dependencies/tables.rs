//! The kernel's tables of sockets: which sockets listen, and which are connected with each other.
//!
//! `/proc/PID/net` shows all sockets of a process's network namespace, by inode number. To read
//! TCP's takes milliseconds: the kernel walks a table that is made for as many connections as the
//! machine has memory for, used or not. Each table is therefore read once for all programs that are
//! inspected together. TCP's is read only for sockets that are not UNIX', such as the one by which
//! a program with the hook is connected to cosched.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::kernel::files::{self, FileError};

/// The flag of a UNIX socket that accepts connections.
const UNIX_ACCEPTS: u32 = 0x1_0000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnixSocket {
    pub accepts: bool,
    /// A path, or `@` and an abstract name; empty: it has none.
    pub name: String,
}

/// One end of a TCP connection.
pub(super) type TcpEndpoint = (IpAddr, u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TcpState {
    Listens,
    /// It is connected, or will be as soon as the program accepts.
    Connected,
    /// It is being opened by its own side, or is closed.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpSocket {
    pub local: TcpEndpoint,
    pub remote: TcpEndpoint,
    pub doing: TcpState,
    /// 0: no process holds it, yet or any more.
    pub inode: u64,
}

/// The tables that were read, by network namespace: each once.
#[derive(Debug, Default)]
pub(crate) struct Tables(pub(super) BTreeMap<String, Network>);

/// The tables of one network namespace, as far as they were needed.
#[derive(Debug, Default)]
pub(super) struct Network {
    pub unix: BTreeMap<u64, UnixSocket>,
    pub tcp: Vec<TcpSocket>,
    was_read: [bool; 3],
}

impl Tables {
    /// Reads what is needed about these sockets. The process with this folder of `/proc` holds
    /// them.
    pub(super) fn read(&mut self, held: &BTreeSet<u64>, folder: &Path) -> Result<(), FileError> {
        let (net, network) = (folder.join("net"), self.0.entry(network_of(folder)).or_default());
        for (i, table) in ["unix", "tcp", "tcp6"].into_iter().enumerate() {
            if held.iter().all(|socket| network.has(*socket)) {
                break;
            }
            if std::mem::replace(&mut network.was_read[i], true) {
                continue;
            }
            let text = files::read_table(&net.join(table))?;
            match table {
                "unix" => network.unix = text.lines().filter_map(unix_line).collect(),
                _ => network.tcp.extend(text.lines().filter_map(tcp_line)),
            }
        }
        Ok(())
    }
}

impl Network {
    fn has(&self, socket: u64) -> bool {
        self.unix.contains_key(&socket) || self.tcp.iter().any(|one| one.inode == socket)
    }
}

/// The name of a process's network namespace; that of its folder, where it cannot be read.
pub(super) fn network_of(folder: &Path) -> String {
    let link = fs::read_link(folder.join("ns/net")).unwrap_or_else(|_| folder.to_owned());
    link.to_string_lossy().into_owned()
}

/// `address: references protocol FLAGS type state INODE NAME`
fn unix_line(line: &str) -> Option<(u64, UnixSocket)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
    let name = words.get(7..).unwrap_or_default().join(" ");
    Some((words.get(6)?.parse().ok()?, UnixSocket { accepts: flags & UNIX_ACCEPTS != 0, name }))
}

/// `0: LOCAL REMOTE STATE queues timer retransmissions user timeout INODE ...`
fn tcp_line(line: &str) -> Option<TcpSocket> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    // The kernel's numbers of TCP's states.
    let doing = match *words.get(3)? {
        "0A" => TcpState::Listens,
        // Established, being accepted, closed by the other side.
        "01" | "03" | "0C" | "08" => TcpState::Connected,
        _ => TcpState::Other,
    };
    let (local, remote) = (end(words.get(1)?)?, end(words.get(2)?)?);
    Some(TcpSocket { local, remote, doing, inode: words.get(9)?.parse().ok()? })
}

/// `0100007F:1F90`: the bytes of an address as words of this machine, and a port.
fn end(text: &str) -> Option<TcpEndpoint> {
    let (address, port) = text.split_once(':')?;
    let word = |i: usize| u32::from_str_radix(address.get(8 * i..8 * (i + 1))?, 16).ok();
    let bytes = |i| word(i).map(u32::to_ne_bytes);
    let address = match address.len() {
        8 => Ipv4Addr::from(bytes(0)?).into(),
        32 => {
            let all = [bytes(0)?, bytes(1)?, bytes(2)?, bytes(3)?].concat();
            Ipv6Addr::from(<[u8; 16]>::try_from(all).ok()?).to_canonical()
        }
        _ => return None,
    };
    Some((address, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_in_every_form_of_the_kernel() {
        if cfg!(target_endian = "big") {
            return;
        }
        let local = IpAddr::from([127, 0, 0, 1]);
        assert_eq!(end("0100007F:1F90"), Some((local, 8080)));
        assert_eq!(end("0000000000000000FFFF00000100007F:1F90"), Some((local, 8080)));
        assert_eq!(
            end("00000000000000000000000001000000:0001"),
            Some((Ipv6Addr::LOCALHOST.into(), 1))
        );
        assert_eq!(end("0100007F"), None);
        assert_eq!(end("01:1F90"), None);
    }
}
