//! The thread that serves visitors: it sleeps in one place, and no visitor can hold it up.
//!
//! Everything is non-blocking. A visitor that reads lines gets the newest snapshot whenever it has
//! taken the last one whole; a scraper gets one answer. What each visitor may take of us is
//! bounded: the number of visitors at each endpoint, how long a request may be, how long it may
//! take, and what waits to be sent.
//!
//! A port is open to every user of the machine, the run's own socket to one. Each endpoint
//! therefore has places of its own: visitors that fill those of the port do not block any at the
//! socket. Where a port is full, a new visitor takes the place of the one that has been there
//! longest. Visitors that only hold places therefore block no other.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cosched_linux::clients::user_requests::UserRequests;
use cosched_linux::kernel::background;
use cosched_linux::kernel::open_files::VISITORS;
use cosched_report::openmetrics;
use cosched_results::live::Snapshot;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::cpu::CpuTimes;
use super::handover::Handover;
use super::sockets::OwnSocket;
use super::{http, request};

/// How long a scraper may take, from its coming to its going.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long it may say nothing at all.
const SILENCE: Duration = Duration::from_secs(1);
/// How often it is looked whether one takes longer.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };
/// How long no visitor is let in when that has failed.
const PAUSE: Duration = Duration::from_millis(100);

/// What visitors get at an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// A line of JSON per snapshot.
    Lines,
    /// One answer over HTTP.
    Metrics,
}

pub(super) struct Endpoint {
    listener: Box<dyn Listener>,
    serves: Serves,
    /// Its names, which are removed with it.
    _names: Vec<OwnSocket>,
}

impl Endpoint {
    pub(super) fn new(
        listener: impl Listener + 'static,
        serves: Serves,
        names: Vec<OwnSocket>,
    ) -> Endpoint {
        Endpoint { listener: Box::new(listener), serves, _names: names }
    }
}

pub(super) trait Listener: AsFd + Send {
    fn never_block(&self) -> io::Result<()>;
    fn next(&self) -> io::Result<Box<dyn Connection>>;
}

pub(super) trait Connection: Read + Write + AsFd + Send {}

impl<C: Read + Write + AsFd + Send> Connection for C {}

/// The two kinds of listener have the same functions, and no trait for them.
macro_rules! listens {
    ($listener:ty) => {
        impl Listener for $listener {
            fn never_block(&self) -> io::Result<()> {
                self.set_nonblocking(true)
            }

            fn next(&self) -> io::Result<Box<dyn Connection>> {
                let (stream, _) = self.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Box::new(stream))
            }
        }
    };
}

listens!(UnixListener);
listens!(TcpListener);

/// The thread; it ends, and its endpoints are closed, when this is dropped.
pub(super) struct Server {
    handover: Arc<Handover>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(super) fn start(
        endpoints: Vec<Endpoint>,
        handover: &Arc<Handover>,
        user_requests: &Arc<UserRequests>,
        cpu: CpuTimes,
    ) -> io::Result<Server> {
        for endpoint in &endpoints {
            endpoint.listener.never_block()?;
        }
        let mut host = Host {
            endpoints,
            handover: Arc::clone(handover),
            user_requests: Arc::clone(user_requests),
            cpu,
            visitors: Vec::new(),
            newest: None,
        };
        handover.request(host.has_requests());
        let thread = background::spawn("onlookers", move || while host.serve() {})?;
        Ok(Server { handover: Arc::clone(handover), thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.handover.end();
        if let Some(thread) = self.thread.take() {
            // If it panicked, it has said so.
            let _ = thread.join();
        }
    }
}

struct Host {
    endpoints: Vec<Endpoint>,
    handover: Arc<Handover>,
    user_requests: Arc<UserRequests>,
    cpu: CpuTimes,
    visitors: Vec<Visitor>,
    /// The newest snapshot, as long as a visitor requests it: later it would be old.
    newest: Option<Snapshot>,
}

impl Host {
    /// Sleeps until something is to be done, and does it; says whether there will be more.
    fn serve(&mut self) -> bool {
        self.sleep();
        if self.handover.is_over() {
            return false;
        }
        if let Some(mut snapshot) = self.handover.take() {
            self.cpu.add_to(&mut snapshot, Instant::now());
            let line = snapshot.to_json() + "\n";
            self.visitors.iter_mut().for_each(|visitor| visitor.tell(&line));
            self.newest = Some(snapshot);
        }
        // A visitor that has asked gets an answer before a new one takes its place.
        self.attend();
        self.let_in();
        self.attend();
        if !self.has_requests() {
            self.newest = None;
        }
        self.handover.request(self.has_requests());
        true
    }

    /// Scrapers come without notice, and need what is newest.
    fn has_requests(&self) -> bool {
        !self.visitors.is_empty()
            || self.endpoints.iter().any(|endpoint| endpoint.serves == Serves::Metrics)
    }

    fn sleep(&mut self) {
        let open = |endpoint: &&Endpoint| {
            endpoint.serves == Serves::Metrics || !self.is_full(endpoint.serves)
        };
        let endpoints =
            self.endpoints.iter().filter(open).map(|endpoint| endpoint.listener.as_fd());
        let bell = self.handover.bell();
        let waits = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut fds: Vec<PollFd<'_>> = [bell].into_iter().chain(endpoints).map(waits).collect();
        let first = fds.len();
        fds.extend(self.visitors.iter().map(Visitor::wait));
        let hurried = self.visitors.iter().any(|visitor| visitor.serves == Serves::Metrics);
        // Nothing but an interruption can go wrong here, and signals do not come to this thread.
        let _ = poll(&mut fds, Some(&LOOK).filter(|_| hurried));
        let gone = |fd: &PollFd<'_>| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR);
        let gone: Vec<bool> = fds[first..].iter().map(gone).collect();
        let mut stays = gone.iter().map(|gone| !gone);
        self.visitors.retain(|_| stays.next().unwrap_or(true));
    }

    fn let_in(&mut self) {
        for at in 0..self.endpoints.len() {
            let serves = self.endpoints[at].serves;
            // Not more in one go, so that the visitors that are here are served however many come.
            for _ in 0..VISITORS {
                if self.is_full(serves) && serves == Serves::Lines {
                    break;
                }
                match self.endpoints[at].listener.next() {
                    Ok(stream) => self.welcome(Visitor::new(stream, serves)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    // That visitor has gone again.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    // There is no file left for them: they try to connect again and again.
                    Err(_) => {
                        std::thread::sleep(PAUSE);
                        break;
                    }
                }
            }
        }
    }

    fn is_full(&self, serves: Serves) -> bool {
        self.visitors.iter().filter(|visitor| visitor.serves == serves).count() >= VISITORS
    }

    /// Gives a client a place: that of the first one, if all are taken.
    fn welcome(&mut self, mut visitor: Visitor) {
        if self.is_full(visitor.serves) {
            // They stand in the order in which they came.
            let first = self.visitors.iter().position(|other| other.serves == visitor.serves);
            first.map(|first| self.visitors.remove(first));
        }
        if let Some(newest) = &self.newest {
            visitor.tell(&(newest.to_json() + "\n"));
        }
        self.visitors.push(visitor);
    }

    /// Reads from all clients, and answers them.
    fn attend(&mut self) {
        let (newest, user_requests) = (self.newest.as_ref(), &self.user_requests);
        self.visitors.retain_mut(|visitor| visitor.is_served(newest, user_requests));
    }
}

/// A client that watches the run.
struct Visitor {
    stream: Box<dyn Connection>,
    serves: Serves,
    since: Instant,
    /// What was received of a request.
    received: Vec<u8>,
    /// It says nothing more.
    silent: bool,
    unsent: Vec<u8>,
    answered: bool,
}

impl Visitor {
    fn new(stream: Box<dyn Connection>, serves: Serves) -> Visitor {
        Visitor {
            stream,
            serves,
            since: Instant::now(),
            received: Vec::new(),
            silent: false,
            unsent: Vec::new(),
            answered: false,
        }
    }

    fn wait(&self) -> PollFd<'_> {
        let mut events = PollFlags::empty();
        events.set(PollFlags::IN, self.listens());
        events.set(PollFlags::OUT, !self.unsent.is_empty());
        let stream: BorrowedFd<'_> = self.stream.as_fd();
        PollFd::from_borrowed_fd(stream, events)
    }

    /// Whether cosched still reads from it.
    fn listens(&self) -> bool {
        !self.silent && !self.answered && self.received.len() <= http::LONGEST
    }

    /// A further line for a client that reads lines; left out if the last one is not taken yet.
    fn tell(&mut self, line: &str) {
        if self.serves == Serves::Lines && self.unsent.is_empty() {
            self.unsent.extend_from_slice(line.as_bytes());
        }
    }

    /// Hears and sends what can be; says whether the visitor stays.
    fn is_served(&mut self, newest: Option<&Snapshot>, user_requests: &UserRequests) -> bool {
        if self.hear().is_err() {
            return false;
        }
        if self.serves == Serves::Lines {
            request::take(&mut self.received)
                .into_iter()
                .for_each(|request| user_requests.put(request));
        }
        if self.serves == Serves::Metrics && !self.answered {
            // Without a snapshot yet, the scraper waits for the first one.
            let answer = newest
                .and_then(|snapshot| http::answer(&self.received, || openmetrics::text(snapshot)));
            match answer {
                Some(answer) => (self.unsent, self.answered) = (answer, true),
                None if self.silent => return false,
                None => {}
            }
        }
        let stays = match self.serves {
            Serves::Lines => true,
            Serves::Metrics => self.since.elapsed() < self.patience(),
        };
        self.send().is_ok() && stays && !(self.answered && self.unsent.is_empty())
    }

    fn patience(&self) -> Duration {
        if self.received.is_empty() { SILENCE } else { PATIENCE }
    }

    fn hear(&mut self) -> io::Result<()> {
        let mut space = [0; 4096];
        if !self.listens() {
            return Ok(());
        }
        match self.stream.read(&mut space) {
            Ok(0) => self.silent = true,
            Ok(n) => self.received.extend_from_slice(&space[..n]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
