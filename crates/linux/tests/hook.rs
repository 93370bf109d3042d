//! Hostile clients of a malleable program's hook server: whatever they do, cosched goes on, and an
//! honest client gets its thread limit.

#![allow(clippy::unwrap_used)]

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use cosched_linux::hook::{HookServer, Received, Reported, Uses};
use cosched_linux::kernel::procfs::Proc;
use cosched_page::{Hello, Page, Rule, SIZE, ThreadRequest};
use proptest::prelude::*;
use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, recv, recvmsg, send, socket_with,
};

/// A hook server without any use.
const NOTHING: Uses = Uses { threads: false, ..Uses::THREADS };

/// A process of the program, or one that pretends to be.
struct Process {
    socket: OwnedFd,
    memory: OwnedFd,
    table: Option<OwnedFd>,
    page: *mut Page,
}

impl Process {
    /// Connects and receives its page; `None`: it was rejected.
    fn enter(server: &mut HookServer, now: u64) -> Option<Process> {
        let socket = knock(server).ok()?;
        server.hear(now, |_| true);
        let mut bytes = [0; Hello::SIZE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        recvmsg(&socket, &mut parts, &mut control, RecvFlags::DONTWAIT).ok()?;
        let mut files = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        })?;
        let (memory, table) = (files.next()?, files.next());
        assert_eq!(Hello::read(&bytes), Some(Hello { threads: table.is_some() }));
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: memory of this size, wherever the kernel likes.
        let page =
            unsafe { mmap(std::ptr::null_mut(), SIZE, rights, MapFlags::SHARED, &memory, 0) };
        Some(Process { socket, memory, table, page: page.unwrap().cast() })
    }

    fn page(&self) -> &Page {
        // SAFETY: mapped as long as this lives, and all atomic words.
        unsafe { &*self.page }
    }

    /// Writes any word of the page, cosched's own included.
    fn scribble(&self, word: usize, value: u64) {
        // SAFETY: within the mapping, aligned, and atomic.
        let words = unsafe { &*self.page.cast::<[AtomicU64; SIZE / 8]>() };
        words[word % words.len()].store(value, Ordering::Relaxed);
    }

    fn ring(&self, length: usize) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let _ = send(&self.socket, &vec![7; length], flags);
    }

    fn request(&self, number: u32, threads: u16) {
        self.page().set_request(ThreadRequest { number, threads, blocked: true });
        self.ring(1);
    }

    fn is_hung_up(&self) -> bool {
        loop {
            match recv(&self.socket, &mut [0u8; 8][..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: mapped with this size.
        unsafe { munmap(self.page.cast(), SIZE).unwrap() };
    }
}

fn knock(server: &HookServer) -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(server.name().as_bytes())?)?;
    Ok(socket)
}

#[derive(Clone, Debug)]
enum Act {
    Enter,
    Knock,
    Leave(usize),
    Ring(usize, usize),
    Scribble(usize, usize, u64),
    Request(usize, u32, u16),
    Shorten(usize, u64),
    Hear(u64),
    ThreadLimit(Option<u16>),
    Release,
    Ticks,
}

fn act() -> impl Strategy<Value = Act> {
    let client = 0..4usize;
    prop_oneof![
        Just(Act::Enter),
        Just(Act::Knock),
        client.clone().prop_map(Act::Leave),
        (client.clone(), 0..64usize).prop_map(|(client, length)| Act::Ring(client, length)),
        (client.clone(), 0..16usize, any::<u64>())
            .prop_map(|(client, word, to)| Act::Scribble(client, word, to)),
        (client.clone(), any::<u32>(), any::<u16>())
            .prop_map(|(client, n, t)| Act::Request(client, n, t)),
        (client, 0..2 * SIZE as u64).prop_map(|(client, to)| Act::Shorten(client, to)),
        any::<u64>().prop_map(Act::Hear),
        any::<Option<u16>>().prop_map(Act::ThreadLimit),
        Just(Act::Release),
        Just(Act::Ticks),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn hostile_clients_do_not_affect_honest_ones(
        acts in prop::collection::vec(act(), 0..60),
        requested in 2u16..,
        thread_limit in 1u16..,
    ) {
        let mut server = HookServer::open(Uses::THREADS).unwrap();
        let honest = Process::enter(&mut server, 0).unwrap();
        let (mut liars, mut sockets) = (Vec::new(), Vec::new());
        for act in acts {
            let is_one = |client: &usize| *client < liars.len();
            match act {
                Act::Enter => liars.extend(Process::enter(&mut server, 0)),
                Act::Knock => sockets.extend(knock(&server)),
                Act::Leave(client) if is_one(&client) => drop(liars.remove(client)),
                Act::Ring(client, length) if is_one(&client) => liars[client].ring(length),
                Act::Scribble(client, word, to) if is_one(&client) => {
                    liars[client].scribble(word, to);
                }
                Act::Request(client, number, threads) if is_one(&client) => {
                    liars[client].request(number, threads);
                }
                Act::Shorten(client, to) if is_one(&client) => {
                    let same = to == SIZE as u64;
                    prop_assert_eq!(ftruncate(&liars[client].memory, to).is_ok(), same);
                }
                Act::Hear(now) => {
                    let heard = server.hear(now, |_| true);
                    prop_assert!(heard.requested != Some(0));
                }
                Act::ThreadLimit(thread_limit) => server.limit_threads(thread_limit, 1),
                Act::Release => server.release(),
                Act::Ticks => _ = server.reported(),
                _ => {}
            }
        }
        // All remaining messages are read; then the honest one sends a request.
        (0..20).for_each(|_| _ = server.hear(0, |_| true));
        honest.request(1, requested);
        let mut heard = Received::default();
        for _ in 0..20 {
            let more = server.hear(0, |_| true);
            heard.requested = heard.requested.max(more.requested);
            heard.blocked |= more.blocked;
        }
        prop_assert!(heard.requested >= Some(requested) && heard.blocked);
        server.limit_threads(Some(thread_limit), 2);
        prop_assert_eq!(honest.page().answered(), 1);
        let rule = honest.page().rule();
        prop_assert_eq!(
            rule,
            Rule { managed: true, thread_limit: Some(thread_limit), cpus: 2, ..Rule::default() }
        );
        prop_assert_eq!(rule.bound(requested.into()), i32::from(requested.min(thread_limit)));
    }
}

#[test]
fn a_program_requests_the_most_that_a_process_requests() {
    let mut server = HookServer::open(Uses::THREADS).unwrap();
    let [a, b] = [(); 2].map(|()| Process::enter(&mut server, 0).unwrap());
    a.request(1, 4);
    assert_eq!(server.hear(0, |_| true).requested, Some(4));
    b.request(1, 2);
    assert_eq!(server.hear(0, |_| true).requested, Some(4));
    drop(a);
    server.hear(0, |_| true);
    b.request(2, 3);
    assert_eq!(server.hear(0, |_| true).requested, Some(3));
}

#[test]
fn processes_of_other_programs_are_rejected() {
    let mut server = HookServer::open(Uses::THREADS).unwrap();
    let stranger = knock(&server).unwrap();
    server.hear(0, |pid| pid != std::process::id() as i32);
    assert!(!server.is_used());
    assert_eq!(recv(&stranger, &mut [0u8; 8][..], RecvFlags::DONTWAIT).unwrap().1, 0);
}

/// The client keeps its shared page.
#[test]
fn a_flooding_client_is_ignored_until_the_next_heartbeat() {
    let mut server = HookServer::open(Uses::THREADS).unwrap();
    let noisy = Process::enter(&mut server, 0).unwrap();
    let reported = (0..10_000).any(|_| {
        (0..8).for_each(|_| noisy.ring(1));
        server.hear(0, |_| true).too_much
    });
    assert!(reported && server.is_tired());
    noisy.request(1, 4);
    assert_eq!(server.hear(0, |_| true), Received::default());
    server.beat(1000);
    assert_eq!(server.hear(1000, |_| true).requested, Some(4));
    server.limit_threads(Some(2), 2);
    assert_eq!((noisy.page().answered(), noisy.page().rule().bound(4)), (1, 2));
    assert!(!noisy.is_hung_up() && !server.is_tired());
}

/// A process that connects without end does not keep messages of clients from being read.
#[test]
fn endless_connections_delay_others_by_one_heartbeat_at_most() {
    let mut server = HookServer::open(Uses::THREADS).unwrap();
    let own = Process::enter(&mut server, 0).unwrap();
    let (me, mut reported) = (std::process::id() as i32, 0);
    for _ in 0..100 {
        // Connections that are closed again still stand in the queue.
        (0..32).for_each(|_| _ = knock(&server));
        reported += u32::from(server.hear(0, |pid| pid != me).too_much);
    }
    assert!(reported == 1 && server.is_tired());
    assert!(knock(&server).is_err(), "no client was accepted, so there is no room");
    own.request(1, 4);
    assert_eq!(server.hear(0, |pid| pid != me).requested, Some(4));
    server.beat(1000);
    server.hear(1000, |pid| pid != me);
    assert!(!server.is_tired());
    assert!(Process::enter(&mut server, 1001).is_some());
}

#[test]
fn a_client_with_a_usual_rate_is_always_heard() {
    let mut server = HookServer::open(Uses::THREADS).unwrap();
    let busy = Process::enter(&mut server, 0).unwrap();
    for number in 1..50_000 {
        busy.request(number, 3);
        // One request per millisecond.
        let heard = server.hear(number.into(), |_| true);
        assert_eq!(heard.requested, Some(3));
        server.limit_threads(Some(2), 1);
        assert!(!busy.is_hung_up());
    }
}

#[test]
fn ticks_of_ended_processes_count_and_never_overflow() {
    let mut server = HookServer::open(Uses::THREADS).unwrap();
    assert_eq!(server.reported().ticks, 0);
    let [a, b] = [(); 2].map(|()| Process::enter(&mut server, 0).unwrap());
    a.page().tick(5);
    b.page().tick(7);
    drop(a);
    server.hear(0, |_| true);
    assert_eq!(server.reported().ticks, 12);
    b.page().tick(u64::MAX - 7);
    drop(b);
    server.hear(0, |_| true);
    assert_eq!(server.reported().ticks, u64::MAX);
}

#[test]
fn passages_are_counted_on_request_and_ticks_precede_them() {
    let mut server = HookServer::open(Uses { progress: true, ..NOTHING }).unwrap();
    let process = Process::enter(&mut server, 0).unwrap();
    assert!(process.page().rule().counts && !process.page().rule().managed);
    let nothing = Reported::default();
    assert_eq!(server.reported().since(nothing), None, "nothing is known of it");
    process.page().pass();
    let before = server.reported();
    assert_eq!(before.since(nothing), Some(1));
    process.page().pass();
    process.page().pass();
    assert_eq!(server.reported().since(before), Some(2));
    process.page().tick(50);
    let both = server.reported();
    assert_eq!(both.since(before), None, "ticks are no passages");
    process.page().tick(5);
    process.page().pass();
    assert_eq!(server.reported().since(both), Some(5));
    assert_eq!(both.since(server.reported()), Some(0), "a count that goes back is a lie");
    server.release();
    assert!(!process.page().rule().counts);
}

#[test]
fn a_detached_program_needs_no_more_requests() {
    let mut server = HookServer::open(Uses::THREADS).unwrap();
    let process = Process::enter(&mut server, 0).unwrap();
    assert!(process.page().rule().managed);
    process.request(1, 4);
    server.hear(0, |_| true);
    server.release();
    assert_eq!((process.page().answered(), process.page().rule()), (1, Rule::default()));
}

#[test]
fn a_program_with_our_barriers_is_informed_and_not_limited() {
    let mut server = HookServer::open(Uses { barriers: true, ..NOTHING }).unwrap();
    let process = Process::enter(&mut server, 0).unwrap();
    let rule = process.page().rule();
    assert!(rule.donate && !rule.managed && process.table.is_none());
    server.limit_threads(Some(1), 2);
    let rule = process.page().rule();
    assert!(rule.donate && rule.cpus == 2 && !rule.grouped);
    server.group();
    server.limit_threads(Some(1), 2);
    assert!(process.page().rule().grouped);
    assert_eq!(rule.bound(4), 4, "what is granted is not for it");
    server.release();
    assert!(!process.page().rule().donate);
}

#[test]
fn a_table_comes_with_the_page_until_the_program_is_detached() {
    let table = || memfd_create("table", MemfdFlags::CLOEXEC).unwrap();
    let mut server = HookServer::open(Uses { barriers: true, ..Uses::THREADS }).unwrap();
    assert!(Process::enter(&mut server, 0).unwrap().table.is_none());
    let inode = |file: &OwnedFd| fstat(file).unwrap().st_ino;
    let offered = table();
    let same = inode(&offered);
    server.offer(offered, Proc::default());
    let process = Process::enter(&mut server, 0).unwrap();
    assert_eq!(process.table.as_ref().map(inode), Some(same));
    server.release();
    assert!(!server.offers() && Process::enter(&mut server, 0).unwrap().table.is_none());
}
