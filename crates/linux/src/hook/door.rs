//! Where the processes of one program connect, and what is heard from all of them.
//!
//! The name is abstract: nothing of it is left when cosched is killed, and it is gone with cosched.
//! It has a part that no process can guess, so no process can take it first.
//!
//! Everybody on the machine can read that name and knock, and a process of the program can ring
//! without end. Both cost cosched time, so only so much of each is listened to in a second. What
//! comes beyond that waits until the next heartbeat, when it is heard as ever; who cannot wait has
//! what it wants, or what it was granted last. Knocking does not keep those from being heard who
//! are inside already.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use cosched_page::{Meetings, Rule};
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::time::Timespec;

use super::guest::{Guest, Told};
use crate::procfs::Proc;
use crate::runstate::numbers_alike;

const LISTENER: u64 = 0;
/// How many connections may wait to be taken.
const BACKLOG: i32 = 64;
/// How many processes of a program may be connected at a time; others have what they want.
const MOST_GUESTS: usize = 64;
/// How many knocks are listened to in a second: for each it has to be found out who that is.
const MOST_KNOCKS: usize = 500;
/// How many messages: far more than come of programs that ask when their regions change.
const MOST_MESSAGES: usize = 5000;
const SECOND: u64 = 1000;

/// What was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// How many threads the program wants, if a process of it has asked: the most that one of them
    /// wants.
    pub wanted: Option<u16>,
    /// Whether a process waits for the answer.
    pub blocked: bool,
    /// More came in a second than is listened to, for the first time.
    pub too_much: bool,
}

/// How much of something is listened to in a second.
#[derive(Debug)]
struct Patience {
    most: usize,
    /// What has come since when, milliseconds.
    came: usize,
    since: u64,
    /// It was too much: nothing is listened to until the next heartbeat.
    is_over: bool,
}

impl Patience {
    fn new(most: usize) -> Patience {
        Patience { most, came: 0, since: 0, is_over: false }
    }

    /// So much has come. Says whether that ends it.
    fn spend(&mut self, came: usize, now: u64) -> bool {
        if now.saturating_sub(self.since) >= SECOND {
            (self.since, self.came) = (now, 0);
        }
        self.came += came;
        let ends = !self.is_over && self.came > self.most;
        self.is_over |= ends;
        ends
    }

    /// Says whether there was none left, and there is now.
    fn renew(&mut self, now: u64) -> bool {
        let was_over = std::mem::take(&mut self.is_over);
        if was_over {
            (self.since, self.came) = (now, 0);
        }
        was_over
    }
}

/// What cosched does for a program by its door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uses {
    /// It decides how many threads parallel regions have.
    pub threads: bool,
    /// The barriers are the hook's.
    pub barriers: bool,
    /// It counts regions and barriers, which tells how far the program has come.
    pub progress: bool,
}

impl Uses {
    /// Of a malleable program.
    pub const THREADS: Uses = Uses { threads: true, barriers: false, progress: false };

    /// What holds where nothing is granted.
    fn rule(self) -> Rule {
        let Uses { threads, barriers, progress } = self;
        Rule { managed: threads, donate: barriers, counts: progress, ..Rule::default() }
    }
}

/// The door of one program.
#[derive(Debug)]
pub struct Door {
    uses: Uses,
    /// The program has a CPU group of its own.
    grouped: bool,
    /// The states of threads, for barriers, where they are written down.
    table: Option<OwnedFd>,
    name: String,
    epoll: OwnedFd,
    listener: OwnedFd,
    guests: BTreeMap<u64, Guest>,
    next: u64,
    rule: Rule,
    is_released: bool,
    knocks: Patience,
    messages: Patience,
    /// It was told that too much came.
    is_flooded: bool,
    /// What processes that have gone had told.
    told: Told,
    meetings: Meetings,
}

impl Door {
    /// Opens one at which no rule holds yet but what it is there for.
    ///
    /// # Errors
    /// When there are no more descriptors.
    pub fn open(uses: Uses) -> io::Result<Door> {
        let secret = RandomState::new().hash_one(std::process::id());
        let name = format!("cosched-{}-{secret:016x}", std::process::id());
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
        listen(&listener, BACKLOG)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        listen_to(&epoll, LISTENER, &listener)?;
        Ok(Door {
            uses,
            grouped: false,
            table: None,
            name,
            epoll,
            listener,
            guests: BTreeMap::new(),
            next: LISTENER + 1,
            rule: uses.rule(),
            is_released: false,
            knocks: Patience::new(MOST_KNOCKS),
            messages: Patience::new(MOST_MESSAGES),
            is_flooded: false,
            told: Told::default(),
            meetings: Meetings::default(),
        })
    }

    /// The name of its socket.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is there for.
    pub fn uses(&self) -> Uses {
        self.uses
    }

    /// Whether a process that comes gets a table.
    pub fn offers(&self) -> bool {
        self.table.is_some()
    }

    /// Every process that comes from now on gets this table of the states of threads, if it numbers
    /// threads as this process does.
    pub fn offer(&mut self, table: OwnedFd) {
        self.table = Some(table);
    }

    /// Whether a process is connected.
    pub fn is_used(&self) -> bool {
        !self.guests.is_empty()
    }

    /// Whether too much has come, so that nothing more of that kind is heard before the next
    /// heartbeat.
    pub fn is_tired(&self) -> bool {
        self.knocks.is_over || self.messages.is_over
    }

    /// Takes in who knocks and hears what the others have to say; `now` is in milliseconds of the
    /// monotonic clock. Only processes come in that `admits` knows as the program's.
    pub fn hear(&mut self, now: u64, admits: impl Fn(i32) -> bool) -> Heard {
        let (mut heard, mut knocks, mut messages) = (Heard::default(), 0, 0);
        for key in self.ready() {
            if key == LISTENER {
                knocks += self.welcome(now, &admits);
                continue;
            }
            let Some(guest) = self.guests.get_mut(&key) else { continue };
            let news = guest.hear();
            messages += news.messages;
            if let Some(blocked) = news.asked {
                heard.blocked |= blocked;
                heard.wanted = heard.wanted.max(Some(guest.wanted));
            }
            if news.gone {
                self.dismiss(key);
            }
        }
        heard.wanted = heard.wanted.map(|wanted| wanted.max(self.wanted()));
        let no_more_knocks = self.knocks.spend(knocks, now);
        let no_more_messages = self.messages.spend(messages, now);
        // What is not listened to any more stays where it is, and causes no wake-up.
        if no_more_knocks {
            let _ = epoll::delete(&self.epoll, &self.listener);
        }
        if no_more_messages {
            let deaf = |guest: &Guest| _ = epoll::delete(&self.epoll, guest);
            self.guests.values().for_each(deaf);
        }
        let too_much = no_more_knocks || no_more_messages;
        heard.too_much = too_much && !self.is_flooded;
        self.is_flooded |= too_much;
        heard
    }

    fn ready(&self) -> Vec<u64> {
        let mut space = [std::mem::MaybeUninit::<epoll::Event>::uninit(); 32];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // What cannot be heard now is heard the next time.
        let ready = epoll::wait(&self.epoll, &mut space, Some(&at_once));
        ready
            .map(|(ready, _)| ready.iter().map(|event| event.data.u64()).collect())
            .unwrap_or_default()
    }

    /// The most that a process wants.
    fn wanted(&self) -> u16 {
        self.guests.values().map(|guest| guest.wanted).max().unwrap_or_default()
    }

    /// Lets in who knocks; how many did.
    fn welcome(&mut self, now: u64, admits: &impl Fn(i32) -> bool) -> usize {
        let mut knocked = 0;
        while knocked < BACKLOG as usize {
            match accept_with(&self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
                Ok(socket) => {
                    knocked += 1;
                    let room = self.guests.len() < MOST_GUESTS;
                    if let Some(peer) = peer(&socket).filter(|peer| room && admits(*peer)) {
                        // One that cannot be let in finds its socket closed, and has what it wants.
                        let _ = self.let_in(socket, peer, now);
                    }
                }
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(Errno::AGAIN) => break,
                // No more files, say: who knocks would be heard again and again, and not let in.
                // That is too much.
                Err(_) => return MOST_KNOCKS + 1,
            }
        }
        knocked
    }

    fn let_in(&mut self, socket: OwnedFd, peer: i32, now: u64) -> io::Result<()> {
        let table = self.table.as_ref().filter(|_| numbers_alike(&Proc::default(), peer));
        let guest = Guest::welcome(socket, self.rule, table.map(AsFd::as_fd), now)?;
        if !self.messages.is_over {
            listen_to(&self.epoll, self.next, &guest)?;
        }
        self.guests.insert(self.next, guest);
        self.next += 1;
        Ok(())
    }

    fn dismiss(&mut self, key: u64) {
        if let Some(guest) = self.guests.remove(&key) {
            self.told = self.told.plus(guest.told());
            self.meetings = self.meetings + guest.meetings();
        }
    }

    /// The program has a CPU group of its own. Holds from the next grant on.
    pub fn group(&mut self) {
        self.grouped = true;
    }

    /// From now on every process may have `grant` threads at a region, or as many as it wants if
    /// that is `None`. The program has `cpus` CPUs. Processes that wait are answered.
    pub fn grant(&mut self, grant: Option<u16>, cpus: u16) {
        let Door { grouped, uses, .. } = *self;
        self.set(Rule { grouped, grant, cpus, ..uses.rule() });
    }

    /// From now on every process has what it wants, no process has to ask, and barriers are as they
    /// would be without cosched.
    pub fn release(&mut self) {
        self.table = None;
        self.is_released = true;
        self.set(Rule::default());
    }

    fn set(&mut self, rule: Rule) {
        self.rule = rule;
        self.guests.values_mut().for_each(|guest| guest.set(rule));
    }

    /// cosched is alive: milliseconds of the monotonic clock. What was too much before is heard
    /// from now on.
    pub fn beat(&mut self, now: u64) {
        self.guests.values().for_each(|guest| guest.beat(now));
        // What cannot be listened to (there is no memory, say) has what it wants.
        if self.knocks.renew(now) {
            let _ = listen_to(&self.epoll, LISTENER, &self.listener);
        }
        if self.messages.renew(now) {
            self.guests.iter().for_each(|(key, guest)| _ = listen_to(&self.epoll, *key, guest));
        }
    }

    /// What the threads of all processes that ever came have done at barriers of cosched.
    pub fn meetings(&self) -> Meetings {
        self.guests.values().map(Guest::meetings).fold(self.meetings, |sum, its| sum + its)
    }

    /// How many moves of threads between CPUs have begun in the processes that are there; `None`:
    /// one is under way.
    pub fn moves(&self) -> Option<u32> {
        self.guests
            .values()
            .map(Guest::moves)
            .try_fold(0, |sum: u32, its| Some(sum.wrapping_add(its?)))
    }

    /// All that was ever told of progress.
    pub fn told(&self) -> Told {
        self.guests.values().map(Guest::told).fold(self.told, Told::plus)
    }
}

/// Readable when a process knocks or has something to say.
impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// From now on it is told when there is something to be read there.
fn listen_to(epoll: &OwnedFd, key: u64, source: impl AsFd) -> io::Result<()> {
    let data = epoll::EventData::new_u64(key);
    Ok(epoll::add(epoll, source, data, epoll::EventFlags::IN)?)
}

/// The process at the other end; `None`: it is in another world, where processes are numbered
/// differently.
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
