//! The hook server of one program: where its processes connect, and what all of them have reported.
//!
//! The name is abstract: it disappears with cosched, even when cosched is killed. It has a part
//! that no process can guess, so no process can take it first.
//!
//! Every process on the machine can read that name and connect, and a process of the program can
//! send without end. Both cost cosched time, so only a limited part of each is read per second. The
//! rest waits until the next heartbeat. A process that cannot wait gets its request, or its last
//! limit. Connections do not keep the messages of connected processes from being read.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use cosched_page::{BarrierCounts, Page, Rule};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::time::Timespec;

use super::client::{Client, Reported};
use crate::kernel::procfs::Proc;

const LISTENER: u64 = 0;
/// How many connections may wait to be taken.
const BACKLOG: i32 = 64;
/// How many processes of a program may be connected at a time; others get what they request.
const MOST_CLIENTS: usize = 64;
/// How many connections are accepted per second: for each, its process has to be found out.
const MOST_CONNECTIONS: usize = 500;
/// How many messages are read per second: far more than programs send that request threads when
/// their regions change.
const MOST_MESSAGES: usize = 5000;
const SECOND: u64 = 1000;

/// What was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// How many threads the program requests, if a process of it has a request: the largest one.
    pub requested: Option<u16>,
    /// Whether a process waits for the answer.
    pub blocked: bool,
    /// More arrived within a second than is read, for the first time.
    pub too_much: bool,
}

/// How much of something is read per second.
#[derive(Debug)]
struct RateLimit {
    most: usize,
    /// What has arrived since when, milliseconds.
    came: usize,
    since: u64,
    /// It was too much: nothing is read until the next heartbeat.
    is_over: bool,
}

impl RateLimit {
    fn new(most: usize) -> RateLimit {
        RateLimit { most, came: 0, since: 0, is_over: false }
    }

    /// Counts what has arrived. Returns whether it became too much now.
    fn spend(&mut self, came: usize, now: u64) -> bool {
        if now.saturating_sub(self.since) >= SECOND {
            (self.since, self.came) = (now, 0);
        }
        self.came += came;
        let ends = !self.is_over && self.came > self.most;
        self.is_over |= ends;
        ends
    }

    /// Allows input again. Returns whether it was too much before.
    fn renew(&mut self, now: u64) -> bool {
        let was_over = std::mem::take(&mut self.is_over);
        if was_over {
            (self.since, self.came) = (now, 0);
        }
        was_over
    }
}

/// The uses of a hook server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses {
    /// It decides how many threads parallel regions have.
    pub threads: bool,
    /// The barriers are the hook's.
    pub barriers: bool,
    /// It counts regions and barriers as the progress of the program.
    pub progress: bool,
    /// Waiting threads sleep or spin by the load of the machine.
    pub load: bool,
}

impl Uses {
    /// The uses for a malleable program.
    pub const THREADS: Uses = Uses { threads: true, barriers: false, progress: false, load: false };

    /// The rule where no limit is set.
    fn rule(self) -> Rule {
        let Uses { threads, barriers, progress, .. } = self;
        Rule { managed: threads, donate: barriers, counts: progress, ..Rule::default() }
    }
}

/// The hook server of one program.
#[derive(Debug)]
pub struct HookServer {
    uses: Uses,
    /// Whether the program has a CPU group of its own.
    grouped: bool,
    /// Whether cosched's scheduler in the kernel has its threads.
    directed: bool,
    /// The states of threads, for barriers, where they are written down.
    table: Option<(OwnedFd, Proc)>,
    name: String,
    epoll: OwnedFd,
    listener: OwnedFd,
    clients: BTreeMap<u64, Client>,
    next: u64,
    rule: Rule,
    connections: RateLimit,
    messages: RateLimit,
    /// Whether its processes sent too much.
    is_flooded: bool,
    /// What processes that have ended had reported.
    reported: Reported,
    barrier_stats: BarrierCounts,
}

impl HookServer {
    /// Opens a hook server. Its rule says only what it is used for.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn open(uses: Uses) -> io::Result<HookServer> {
        let secret = RandomState::new().hash_one(std::process::id());
        let name = format!("cosched-{}-{secret:016x}", std::process::id());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        listen(&listener, BACKLOG)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        listen_to(&epoll, LISTENER, &listener)?;
        Ok(HookServer {
            uses,
            grouped: false,
            directed: false,
            table: None,
            name,
            epoll,
            listener,
            clients: BTreeMap::new(),
            next: LISTENER + 1,
            rule: uses.rule(),
            connections: RateLimit::new(MOST_CONNECTIONS),
            messages: RateLimit::new(MOST_MESSAGES),
            is_flooded: false,
            reported: Reported::default(),
            barrier_stats: BarrierCounts::default(),
        })
    }

    /// The name of its socket.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is used for.
    pub fn uses(&self) -> Uses {
        self.uses
    }

    /// Whether a process that connects gets a table.
    pub fn offers(&self) -> bool {
        self.table.is_some()
    }

    /// Gives this table of thread states to every process that connects from now on, if it numbers
    /// threads as this process does, which this `/proc` tells.
    pub fn offer(&mut self, table: OwnedFd, proc: Proc) {
        self.table = Some((table, proc));
    }

    /// Whether a process is connected.
    pub fn is_used(&self) -> bool {
        !self.clients.is_empty()
    }

    /// Whether too much has arrived, so that nothing more of that kind is read before the next
    /// heartbeat.
    pub fn is_tired(&self) -> bool {
        self.connections.is_over || self.messages.is_over
    }

    /// Accepts processes that connect, and reads messages. `now` is in milliseconds of the
    /// monotonic clock. Only processes are accepted that belong to the program according to
    /// `admits`.
    pub fn hear(&mut self, now: u64, admits: impl Fn(i32) -> bool) -> Received {
        let (mut heard, mut connections, mut messages) = (Received::default(), 0, 0);
        for key in self.ready() {
            if key == LISTENER {
                connections += self.welcome(now, &admits);
                continue;
            }
            let Some(client) = self.clients.get_mut(&key) else { continue };
            let news = client.hear();
            messages += news.messages;
            if let Some(blocked) = news.blocked {
                heard.blocked |= blocked;
                heard.requested = heard.requested.max(Some(client.requested));
            }
            if news.gone {
                self.dismiss(key);
            }
        }
        heard.requested = heard.requested.map(|requested| requested.max(self.requested()));
        let no_more_connections = self.connections.spend(connections, now);
        let no_more_messages = self.messages.spend(messages, now);
        // What is not read any more stays where it is, and causes no wake-up.
        if no_more_connections {
            let _ = epoll::delete(&self.epoll, &self.listener);
        }
        if no_more_messages {
            let deaf = |client: &Client| _ = epoll::delete(&self.epoll, client);
            self.clients.values().for_each(deaf);
        }
        let too_much = no_more_connections || no_more_messages;
        heard.too_much = too_much && !self.is_flooded;
        self.is_flooded |= too_much;
        heard
    }

    fn ready(&self) -> Vec<u64> {
        let mut space = [std::mem::MaybeUninit::<epoll::Event>::uninit(); 32];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // What cannot be read now is read the next time.
        let ready = epoll::wait(&self.epoll, &mut space, Some(&at_once));
        ready
            .map(|(ready, _)| ready.iter().map(|event| event.data.u64()).collect())
            .unwrap_or_default()
    }

    /// The largest request of a process.
    fn requested(&self) -> u16 {
        self.clients.values().map(|client| client.requested).max().unwrap_or_default()
    }

    /// Accepts processes that connect. Returns how many did.
    fn welcome(&mut self, now: u64, admits: &impl Fn(i32) -> bool) -> usize {
        let mut connected = 0;
        while connected < BACKLOG as usize {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    connected += 1;
                    let room = self.clients.len() < MOST_CLIENTS;
                    if let Some(peer) = peer(&socket).filter(|peer| room && admits(*peer)) {
                        // A process that cannot be accepted finds its socket closed, and gets its
                        // request.
                        let _ = self.let_in(socket, peer, now);
                    }
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => break,
                // There are no more descriptors, say: the process would try again and again. That
                // is too much.
                Err(_) => return MOST_CONNECTIONS + 1,
            }
        }
        connected
    }

    fn let_in(&mut self, socket: OwnedFd, peer: i32, now: u64) -> io::Result<()> {
        let offered = self.table.as_ref().filter(|(_, proc)| proc.numbers_alike(peer));
        let table = offered.map(|(table, _)| table);
        let client = Client::welcome(socket, self.rule, table.map(AsFd::as_fd), now)?;
        if !self.messages.is_over {
            listen_to(&self.epoll, self.next, &client)?;
        }
        self.clients.insert(self.next, client);
        self.next += 1;
        Ok(())
    }

    fn dismiss(&mut self, key: u64) {
        if let Some(client) = self.clients.remove(&key) {
            self.reported = self.reported.plus(client.reported());
            self.barrier_stats = self.barrier_stats + client.page().barrier_stats();
        }
    }

    /// Notes that the program has a CPU group of its own. Holds from the next limit on.
    pub fn group(&mut self) {
        self.grouped = true;
    }

    /// Notes whether cosched's scheduler in the kernel has its threads. Holds from the next limit
    /// on.
    pub fn direct(&mut self, directed: bool) {
        self.directed = directed;
    }

    /// Sets the limit of a region in every process to `thread_limit` threads, or to none if it is
    /// `None`. The program has `cpus` CPUs. Waiting processes get an answer.
    pub fn limit_threads(&mut self, thread_limit: Option<u16>, cpus: u16) {
        let HookServer { grouped, directed, uses, .. } = *self;
        self.set(Rule { grouped, directed, thread_limit, cpus, ..uses.rule() });
    }

    /// Detaches the program: every process gets its request without an answer, and barriers are as
    /// without cosched.
    pub fn release(&mut self) {
        self.table = None;
        self.set(Rule::default());
    }

    fn set(&mut self, rule: Rule) {
        self.rule = rule;
        self.clients.values_mut().for_each(|client| client.set(rule));
    }

    /// Notes that cosched is alive; `now` is in milliseconds of the monotonic clock. Input that was
    /// too much before is read from now on.
    pub fn beat(&mut self, now: u64) {
        self.clients.values().for_each(|client| client.page().beat(now));
        // A process that cannot be read (there is no memory, say) gets its request.
        if self.connections.renew(now) {
            let _ = listen_to(&self.epoll, LISTENER, &self.listener);
        }
        if self.messages.renew(now) {
            self.clients.iter().for_each(|(key, client)| _ = listen_to(&self.epoll, *key, client));
        }
    }

    /// The pages of its processes.
    pub fn pages(&self) -> impl Iterator<Item = &Page> {
        self.clients.values().map(Client::page)
    }

    /// What the threads of all processes so far have done at barriers of cosched.
    pub fn barrier_stats(&self) -> BarrierCounts {
        let of_each = self.clients.values().map(|client| client.page().barrier_stats());
        of_each.fold(self.barrier_stats, |sum, its| sum + its)
    }

    /// How many moves of threads between CPUs have begun in the processes that are there; `None`:
    /// one is under way.
    pub fn moves(&self) -> Option<u32> {
        let mut of_each = self.clients.values().map(|client| client.page().moves());
        of_each.try_fold(0, |sum: u32, its| Some(sum.wrapping_add(its?)))
    }

    /// All reported progress.
    pub fn reported(&self) -> Reported {
        self.clients.values().map(Client::reported).fold(self.reported, Reported::plus)
    }
}

/// Readable when a process connects or sends a message.
impl AsFd for HookServer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

fn listen_to(epoll: &OwnedFd, key: u64, source: impl AsFd) -> io::Result<()> {
    let data = epoll::EventData::new_u64(key);
    Ok(epoll::add(epoll, source, data, epoll::EventFlags::IN)?)
}

/// The process at the other end; `None`: it is in another PID namespace, with different process
/// numbers.
fn peer(socket: &OwnedFd) -> Option<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the call writes at most as many bytes as it is told, into a structure of plain
    // numbers.
    let result = unsafe {
        let place = (&raw mut peer).cast();
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            place,
            &mut length,
        )
    };
    Some(peer.pid).filter(|pid| result == 0 && *pid > 0)
}
