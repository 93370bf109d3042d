//! A process that falsely says that it is cosched: a program accepts nothing from it, and continues
//! with the threads that it requests.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use cosched_page::{Hello, SIZE, ThreadTable};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, accept, bind, listen, sendmsg, socket_with,
};
use support::{Workshop, command, good, library};

/// Memory of a size, sealed or not, that begins with these words.
fn memory(size: u64, sealed: bool, words: &[u64]) -> OwnedFd {
    let memory = memfd_create("liar", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&memory, size).unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    if size > 0 {
        rustix::io::pwrite(&memory, &bytes, 0).unwrap();
    }
    if sealed {
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW).unwrap();
    }
    memory
}

/// Sends this to the first client, and keeps the connection until the program has ended.
fn host(name: &str, hello: Vec<u8>, files: Vec<OwnedFd>) -> OwnedFd {
    let kind = SocketType::SEQPACKET;
    let listener = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
    bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap()).unwrap();
    listen(&listener, 8).unwrap();
    let taken = listener.try_clone().unwrap();
    std::thread::spawn(move || {
        let socket = accept(&taken).unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&files));
        }
        sendmsg(&socket, &[IoSlice::new(&hello)], &mut control, SendFlags::NOSIGNAL).unwrap();
        std::mem::forget(socket);
    });
    listener
}

#[test]
fn a_program_accepts_nothing_from_a_false_cosched() {
    let workshop = Workshop::new();
    let Some(program) = workshop.linked("regions.c") else { return };
    let hello = Hello::default().bytes().to_vec();
    let word = |at: usize| u64::from_ne_bytes(hello[at..at + 8].try_into().unwrap());
    // Magic, form, a heartbeat of the future, and one thread for every program.
    let page = [word(0), word(8), u64::MAX, 1 << 32 | 1];
    let size = SIZE as u64;
    let longer = [&hello[..], &[0]].concat();
    let cases: Vec<(Vec<u8>, Vec<OwnedFd>)> = vec![
        (vec![0; 16], vec![memory(size, true, &page)]),
        (longer, vec![memory(size, true, &page)]),
        (hello[..8].to_vec(), vec![memory(size, true, &page)]),
        (hello.clone(), vec![]),
        (hello.clone(), vec![memory(size, false, &page)]),
        (hello.clone(), vec![memory(0, true, &page)]),
        (hello.clone(), vec![memory(size - 1, true, &page)]),
        (hello.clone(), vec![memory(size, true, &[0, 0, u64::MAX, 1 << 32 | 1])]),
        (
            hello.clone(),
            vec![memory(size, true, &[page[0], page[1] + (1 << 32), u64::MAX, 1 << 32 | 1])],
        ),
        (hello.clone(), vec![std::fs::File::open("/dev/null").unwrap().into()]),
    ];
    for (i, (bytes, files)) in cases.into_iter().enumerate() {
        let name = format!("cosched-liar-{}-{i}", std::process::id());
        let _listener = host(&name, bytes, files);
        let mut command = command(&program, &[], None);
        command.env("LD_PRELOAD", library()).env("COSCHED_HOOK", &name);
        assert_eq!(good(command.output().unwrap()), "4 4 4 sum 1501500\n", "case {i}");
    }
    // A message with nothing wrong is accepted: the cases above were refused for their faults. It
    // is also accepted where a table of threads is promised and missing, or is a file that could be
    // cut.
    let promised = Hello { threads: true }.bytes().to_vec();
    let file = memory(ThreadTable::SIZE as u64, true, &[]);
    let fine = [(hello, None), (promised.clone(), None), (promised, Some(file))];
    for (i, (bytes, table)) in fine.into_iter().enumerate() {
        let name = format!("cosched-liar-{}-fine-{i}", std::process::id());
        let files = [memory(size, true, &page)].into_iter().chain(table).collect();
        let _listener = host(&name, bytes, files);
        let mut command = command(&program, &[], None);
        command.env("LD_PRELOAD", library()).env("COSCHED_HOOK", &name);
        assert_eq!(good(command.output().unwrap()), "1 1 1 sum 1501500\n", "case {i}");
    }
}
