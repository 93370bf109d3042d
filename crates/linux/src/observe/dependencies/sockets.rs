//! Which processes may be waiting at the sockets of a program.
//!
//! A listening socket alone says little: the processes of one parallel program also find each other
//! by sockets (MPI, a fork server, a notebook's kernels). It serves others if an outside process is
//! connected to it. If none is connected yet, it serves others if an outside process could know its
//! address. A port that the kernel has chosen, and a socket in a folder of the program's own, are
//! known only to processes that the program informs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, StatxFlags, statx};
use rustix::io::Errno;

use super::tables::{Network, Tables, TcpEndpoint, TcpState, network_of};
use crate::kernel::files;
use crate::kernel::procfs::Proc;

/// The ports that the kernel chooses from unless it is told otherwise.
const CHOSEN_BY_THE_KERNEL: RangeInclusive<u16> = 32768..=60999;

/// The sockets of one program, by network namespace.
#[derive(Default)]
pub(super) struct ProgramSockets(BTreeMap<String, SocketHolders>);

/// Each socket, and the folder of `/proc` of a process that holds it.
#[derive(Default)]
struct SocketHolders(BTreeMap<u64, PathBuf>);

/// The other ends of a program's sockets.
#[derive(Debug, Default)]
pub(super) struct Contacts {
    pub listens: bool,
    /// Others can know the address of one of its listening sockets.
    pub known: bool,
    /// Its own processes are connected with each other by one of its listening sockets.
    pub within: bool,
    /// Connections that it has accepted from others.
    pub strangers: BTreeSet<Stranger>,
    /// The other ends of its TCP connections, as far as they are on this machine, by inode number.
    pub peers: BTreeSet<u64>,
}

/// A connection that was accepted from another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stranger {
    ends: (TcpEndpoint, TcpEndpoint),
    /// The other end; `None`: it is not on this machine, or not in this network namespace.
    pub inode: Option<u64>,
}

impl Contacts {
    /// Whether it waits for others that can know its address, and is not connected with itself.
    pub(super) fn awaits_others(&self) -> bool {
        self.known && !self.within
    }
}

impl ProgramSockets {
    /// The process with this folder of `/proc` holds these sockets.
    pub(super) fn add(&mut self, held: BTreeSet<u64>, folder: &Path) {
        let own = self.0.entry(network_of(folder)).or_default();
        for socket in held {
            own.0.entry(socket).or_insert_with(|| folder.to_owned());
        }
    }

    /// What the kernel's tables say about the program with these processes.
    pub(super) fn contacts(&self, tables: &Tables, proc: &Proc, pids: &[i32]) -> Contacts {
        let mut contacts = Contacts::default();
        for (namespace, own) in &self.0 {
            let Some(network) = tables.0.get(namespace) else { continue };
            own.add_unix(network, pids, &mut contacts);
            own.add_tcp(network, proc, &mut contacts);
        }
        contacts
    }
}

impl SocketHolders {
    fn has(&self, inode: u64) -> bool {
        self.0.contains_key(&inode)
    }

    fn add_unix(&self, network: &Network, pids: &[i32], contacts: &mut Contacts) {
        for (inode, folder) in &self.0 {
            if let Some(socket) = network.unix.get(inode).filter(|socket| socket.accepts) {
                contacts.listens = true;
                contacts.known |= is_known_name(&socket.name, folder, pids);
            }
        }
    }

    fn add_tcp(&self, network: &Network, proc: &Proc, contacts: &mut Contacts) {
        let all = &network.tcp;
        let listening: BTreeSet<u16> = all
            .iter()
            .filter(|socket| socket.doing == TcpState::Listens && self.has(socket.inode))
            .map(|socket| socket.local.1)
            .collect();
        if !listening.is_empty() {
            contacts.listens = true;
            let chosen = chosen_by_the_kernel(proc);
            contacts.known |= listening.iter().any(|port| !chosen.contains(port));
        }
        let by_ends: BTreeMap<(TcpEndpoint, TcpEndpoint), u64> =
            all.iter().map(|socket| ((socket.local, socket.remote), socket.inode)).collect();
        for socket in all.iter().filter(|socket| socket.doing == TcpState::Connected) {
            let accepted = listening.contains(&socket.local.1);
            // No process holds a connection that is not accepted yet.
            let waits = accepted && socket.inode == 0;
            if !waits && !self.has(socket.inode) {
                continue;
            }
            let inode = by_ends.get(&(socket.remote, socket.local)).copied();
            contacts.peers.extend(inode.filter(|inode| *inode != 0));
            match inode {
                Some(0) => {}
                Some(inode) if self.has(inode) => contacts.within |= accepted,
                _ if accepted => {
                    let ends = (socket.local, socket.remote);
                    contacts.strangers.insert(Stranger { ends, inode });
                }
                _ => {}
            }
        }
    }
}

fn chosen_by_the_kernel(proc: &Proc) -> RangeInclusive<u16> {
    let path = proc.root().join("sys/net/ipv4/ip_local_port_range");
    let text = files::read_if_there(&path).ok().flatten().unwrap_or_default();
    let mut ends = text.split_ascii_whitespace().map(str::parse);
    match (ends.next(), ends.next()) {
        (Some(Ok(first)), Some(Ok(last))) => first..=last,
        _ => CHOSEN_BY_THE_KERNEL,
    }
}

/// Whether others may know this name of a UNIX socket. `pids` are the program's processes.
fn is_known_name(name: &str, folder: &Path, pids: &[i32]) -> bool {
    match name.strip_prefix('@') {
        // The kernel chooses five digits. Names with the number of a process are made for that
        // process.
        Some(name) => {
            let made_up = name.split(|letter: char| !letter.is_ascii_digit());
            let chosen = name.len() == 5 && name.bytes().all(|letter| letter.is_ascii_hexdigit());
            !chosen
                && !made_up.filter_map(|number| number.parse().ok()).any(|pid| pids.contains(&pid))
        }
        None => !name.is_empty() && may_be_found(Path::new(name), folder),
    }
}

/// Whether processes of others may find the socket with this path. They cannot if its folder has
/// been removed, or is a temporary one, as mkdtemp(3) makes them, that only its owner may enter. A
/// socket that is missing in its folder may have another name by now.
fn may_be_found(socket: &Path, process: &Path) -> bool {
    let root = process.join("root");
    let (path, is_absolute) = match socket.strip_prefix("/") {
        Ok(below) => (root.join(below), true),
        Err(_) => (process.join("cwd").join(socket), false),
    };
    let mode = |path: &Path| {
        let file = statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::MODE);
        file.map(|file| Mode::from_raw_mode(file.stx_mode.into()))
    };
    let Some((own, above)) = path.parent().and_then(|own| Some((own, own.parent()?))) else {
        return true;
    };
    // A relative path may have been bound in another working directory. Links in a path below
    // another root are followed in this one.
    if is_absolute && mode(own) == Err(Errno::NOENT) && is_same(&root, Path::new("/")) {
        return false;
    }
    let is_closed = mode(own).is_ok_and(|mode| !mode.intersects(Mode::RWXG | Mode::RWXO));
    let is_temporary = mode(above).is_ok_and(|mode| mode.contains(Mode::SVTX));
    !(is_closed && is_temporary)
}

/// Whether both are the same folder.
fn is_same(a: &Path, b: &Path) -> bool {
    let id = |path: &Path| std::fs::metadata(path).map(|folder| (folder.dev(), folder.ino())).ok();
    id(a).is_some_and(|a| id(b) == Some(a))
}
