//! Where the processes of one program connect, and what is heard from all of them.
//!
//! The name is abstract: nothing of it is left when cosched is killed, and it is gone with cosched. It has a part that
//! nobody can guess, so that nobody has it first.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use cosched_page::Rule;
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
/// How much may come in in a second: far more than programs that ask when their regions change.
const MOST_PER_SECOND: usize = 5000;

/// What was heard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// How many threads the program wants, if a process of it has asked: the most that one of them wants.
    pub wanted: Option<u16>,
    /// Whether somebody waits for the answer.
    pub blocked: bool,
    /// It knocked without end and is not heard any more; everything of it has what it wants.
    pub shut: bool,
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
    /// The states of threads, for barriers, where they are written down.
    table: Option<OwnedFd>,
    name: String,
    epoll: OwnedFd,
    /// `None`: it is shut.
    listener: Option<OwnedFd>,
    guests: BTreeMap<u64, Guest>,
    next: u64,
    rule: Rule,
    /// What has come in since when.
    came: usize,
    since: u64,
    /// What processes that have gone had told.
    told: Told,
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
        let data = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, data, epoll::EventFlags::IN)?;
        Ok(Door {
            uses,
            table: None,
            name,
            epoll,
            listener: Some(listener),
            guests: BTreeMap::new(),
            next: LISTENER + 1,
            rule: uses.rule(),
            came: 0,
            since: 0,
            told: Told::default(),
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

    /// Whether whoever comes gets a table.
    pub fn offers(&self) -> bool {
        self.table.is_some()
    }

    /// Whoever comes from now on gets this table of the states of threads, if it numbers threads as this process does.
    pub fn offer(&mut self, table: OwnedFd) {
        self.table = Some(table);
    }

    /// Whether a process is connected.
    pub fn is_used(&self) -> bool {
        !self.guests.is_empty()
    }

    /// Takes in who knocks and hears what the others have to say; `now` is in milliseconds of the monotonic clock. Only
    /// processes come in that `admits` knows as the program's.
    pub fn hear(&mut self, now: u64, admits: impl Fn(i32) -> bool) -> Heard {
        let mut heard = Heard::default();
        for key in self.ready() {
            if key == LISTENER {
                self.came += self.welcome(now, &admits);
                continue;
            }
            let Some(guest) = self.guests.get_mut(&key) else { continue };
            let news = guest.hear();
            self.came += news.messages;
            if let Some(blocked) = news.asked {
                heard.blocked |= blocked;
                heard.wanted = heard.wanted.max(Some(guest.wanted));
            }
            if news.gone {
                self.dismiss(key);
            }
        }
        heard.wanted = heard.wanted.map(|wanted| wanted.max(self.wanted()));
        if now.saturating_sub(self.since) >= 1000 {
            (self.since, self.came) = (now, 0);
        }
        if self.came > MOST_PER_SECOND {
            self.shut();
            return Heard { shut: true, ..Heard::default() };
        }
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
        while let Some(listener) = self.listener.as_ref().filter(|_| knocked < BACKLOG as usize) {
            match accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
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
                // No more files, say: who knocks would be heard for ever, and not let in.
                Err(_) => self.listener = None,
            }
        }
        knocked
    }

    fn let_in(&mut self, socket: OwnedFd, peer: i32, now: u64) -> io::Result<()> {
        let table = self.table.as_ref().filter(|_| numbers_alike(&Proc::default(), peer));
        let guest = Guest::welcome(socket, self.rule, table.map(AsFd::as_fd), now)?;
        let data = epoll::EventData::new_u64(self.next);
        epoll::add(&self.epoll, &guest, data, epoll::EventFlags::IN)?;
        self.guests.insert(self.next, guest);
        self.next += 1;
        Ok(())
    }

    fn dismiss(&mut self, key: u64) {
        if let Some(guest) = self.guests.remove(&key) {
            self.told = self.told.plus(guest.told());
        }
    }

    fn shut(&mut self) {
        self.table = None;
        self.guests.clear();
        self.listener = None;
        self.came = 0;
    }

    /// From now on every process may have so many threads at a region, as many as it wants if `None`, and the program has so
    /// many CPUs. Whoever waits is answered.
    pub fn grant(&mut self, grant: Option<u16>, cpus: u16) {
        self.set(Rule { grant, cpus, ..self.uses.rule() });
    }

    /// From now on everybody has what it wants, nobody has to ask, and barriers are as they would be without cosched.
    pub fn release(&mut self) {
        self.table = None;
        self.set(Rule::default());
    }

    fn set(&mut self, rule: Rule) {
        self.rule = rule;
        self.guests.values_mut().for_each(|guest| guest.set(rule));
    }

    /// cosched is alive: milliseconds of the monotonic clock.
    pub fn beat(&self, now: u64) {
        self.guests.values().for_each(|guest| guest.beat(now));
    }

    /// All that was ever told of progress.
    pub fn told(&self) -> Told {
        self.guests.values().map(Guest::told).fold(self.told, Told::plus)
    }
}

/// Readable when somebody knocks or has something to say.
impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// The process at the other end; `None`: it is in another world, where processes are numbered differently.
fn peer(socket: &OwnedFd) -> Option<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the call writes at most as many bytes as it is told, into a structure of plain numbers.
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
