//! The kernel's tables of sockets: who listens, who is connected with whom.
//!
//! `/proc/PID/net` shows all sockets of a process's network namespace, by inode number. To read TCP's takes milliseconds:
//! the kernel walks a table that is made for as many connections as the machine has memory for, whether they are
//! there or not.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::files::{self, FileError};

/// The flag of a UNIX socket that accepts connections.
const UNIX_ACCEPTS: u32 = 0x1_0000;

/// A UNIX socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnixSocket {
    pub accepts: bool,
    /// A path, or `@` and an abstract name; empty: it has none.
    pub name: String,
}

/// One end of a TCP connection.
pub(super) type End = (IpAddr, u16);

/// What a TCP socket does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Listens,
    /// It is connected, or will be as soon as the program accepts that.
    Connected,
    /// It is being opened by its own side, or closed.
    Other,
}

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpSocket {
    pub local: End,
    pub remote: End,
    pub doing: Doing,
    /// 0: no process holds it, yet or any more.
    pub inode: u64,
}

/// All UNIX sockets, by inode number. `net` is a folder `/proc/PID/net`.
pub(super) fn unix(net: &Path) -> Result<BTreeMap<u64, UnixSocket>, FileError> {
    let text = files::read_if_there(&net.join("unix"))?.unwrap_or_default();
    Ok(text.lines().filter_map(unix_line).collect())
}

/// All TCP sockets. An IPv4 address in IPv6's form counts as what it is.
pub(super) fn tcp(net: &Path) -> Result<Vec<TcpSocket>, FileError> {
    let mut all = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = files::read_if_there(&net.join(table))?.unwrap_or_default();
        all.extend(text.lines().filter_map(tcp_line));
    }
    Ok(all)
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
        "0A" => Doing::Listens,
        // Established, being accepted, closed by the other side.
        "01" | "03" | "0C" | "08" => Doing::Connected,
        _ => Doing::Other,
    };
    let (local, remote) = (end(words.get(1)?)?, end(words.get(2)?)?);
    Some(TcpSocket { local, remote, doing, inode: words.get(9)?.parse().ok()? })
}

/// `0100007F:1F90`: the bytes of an address as words of this machine, and a port.
fn end(text: &str) -> Option<End> {
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
    fn addresses_are_read_whichever_way_the_kernel_writes_them() {
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
