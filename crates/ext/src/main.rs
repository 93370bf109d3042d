//! `cosched-ext`: loads cosched's scheduler into the kernel, and holds it there for one run.
//!
//! cosched starts this command with one end of a socket as its standard input. It loads the
//! scheduler (`bpf/scheduler.bpf.c`), attaches it, and sends one message with the descriptors of
//! the maps that cosched writes to and reads from. Then it waits for the end of the socket. The
//! kernel removes the scheduler when this process ends, however it ends, and schedules all threads
//! itself again. That is all the undo there is: neither of the two processes has to do anything
//! for it.
//!
//! `cosched-ext --check` only has the kernel check the scheduler, and says what it says.
//!
//! A process of its own keeps the libraries that load a scheduler (libbpf, libelf) out of cosched,
//! and lets an administrator give the right to load this scheduler, and nothing else, to users:
//! the object is part of this executable, and no argument changes it.

mod flags;
mod kernel;
mod message;

use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::{env, io};

use flags::KnownFlag;
use libbpf_rs::btf::Btf;
use libbpf_rs::{
    Link, Map, MapCore, Object, ObjectBuilder, OpenMapMut, OpenObject, PrintLevel, set_print,
};
use rustix::event::{PollFd, PollFlags, poll};

/// What the build made of `bpf/scheduler.bpf.c`; empty where there was no clang.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/scheduler.bpf.o"));
/// The name of the struct of callbacks in it.
const SCHEDULER: &str = "cosched";
/// With this variable set, all that libbpf and the kernel say of the scheduler is shown.
const VERBOSE: &str = "COSCHED_EXT_VERBOSE";
/// The maps that cosched gets, in this order.
const MAPS: [&str; 4] = ["control", "programs", "members", "slices"];

fn main() -> ExitCode {
    // The verifier's log is long, and says nothing to users.
    let print: fn(PrintLevel, String) = |_, text| eprint!("{text}");
    set_print(env::var_os(VERBOSE).map(|_| (PrintLevel::Info, print)));
    if env::args().nth(1).is_some_and(|first| first == "--check") {
        return check();
    }
    let stdin = io::stdin();
    let socket = stdin.as_fd();
    if !message::is_socket(socket) {
        eprintln!(
            "cosched-ext: this command is started by `cosched run --scheduler ext`, and does \
             nothing by itself; `cosched-ext --check` says whether that works here"
        );
        return ExitCode::from(2);
    }
    match hold(socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            // Without a receiver there is nobody to tell.
            let _ = message::send(socket, Some(&complaint), &[]);
            ExitCode::FAILURE
        }
    }
}

/// Says whether the kernel would take the scheduler.
fn check() -> ExitCode {
    let loaded = kernel::loaded().map_or(Ok(()), |other| Err(kernel::is_loaded(&other)));
    match loaded.and_then(|()| load()) {
        Ok((_, flags)) => {
            println!("{}", flags::taken_with(&flags));
            ExitCode::SUCCESS
        }
        Err(complaint) => {
            println!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

/// Loads the scheduler, and holds it until the socket ends.
fn hold(socket: BorrowedFd<'_>) -> Result<(), String> {
    let (mut object, _) = load()?;
    let _link = attach(&mut object)?;
    let by_name = |name: &&str| object.maps().find(|map| map.name() == *name);
    let maps: Vec<Map<'_>> = MAPS.iter().filter_map(by_name).collect();
    let maps: Vec<BorrowedFd<'_>> = maps.iter().map(Map::as_fd).collect();
    message::send(socket, None, &maps).map_err(|error| error.to_string())?;
    await_end(socket).map_err(|error| error.to_string())
}

/// Has the kernel check the scheduler, with those of our flags that it knows.
fn load() -> Result<(Object, Vec<KnownFlag>), String> {
    if OBJECT.is_empty() {
        return Err("cosched-ext was built without clang (remedy: install clang, and build it \
                    again)"
            .to_owned());
    }
    let open = ObjectBuilder::default().name(SCHEDULER).and_then(|it| it.open_memory(OBJECT));
    let loaded = open.and_then(|mut object| {
        let flags = flags::known(&Btf::from_vmlinux()?);
        add_flags(&mut object, &flags)?;
        Ok((object.load()?, flags))
    });
    loaded.map_err(|error| kernel::why(&error))
}

/// Adds to the scheduler's flags, which are its first field.
fn add_flags(object: &mut OpenObject, flags: &[KnownFlag]) -> libbpf_rs::Result<()> {
    let mut scheduler = object.maps_mut().find(|map| map.name() == SCHEDULER);
    let fields = scheduler.as_mut().and_then(OpenMapMut::initial_value_mut);
    let Some(first) = fields.and_then(|fields| fields.first_chunk_mut()) else {
        return Err(io::Error::other("the object has no scheduler").into());
    };
    let all = flags.iter().fold(u64::from_ne_bytes(*first), |all, flag| all | flag.value);
    *first = all.to_ne_bytes();
    Ok(())
}

fn attach(object: &mut Object) -> Result<Link, String> {
    let mut maps = object.maps_mut();
    let mut map = maps.find(|map| map.name() == SCHEDULER).ok_or("the object has no scheduler")?;
    map.attach_struct_ops().map_err(|error| kernel::why(&error))
}

/// cosched sends nothing: its end of the socket closes when it ends, however it ends.
fn await_end(socket: BorrowedFd<'_>) -> io::Result<()> {
    loop {
        match poll(&mut [PollFd::new(&socket, PollFlags::RDHUP)], None) {
            Err(rustix::io::Errno::INTR) => {}
            result => return result.map(drop).map_err(io::Error::from),
        }
    }
}
