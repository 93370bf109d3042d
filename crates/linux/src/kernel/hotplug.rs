//! Learning that CPUs go offline and come back: the kernel's announcements of devices.
//!
//! CPUs can be switched off and on while programs run: by hand, by a virtual machine's host, to
//! save energy. The kernel announces it to every process that listens on a netlink socket for
//! "uevents", which needs no permission. A message is a line such as
//! `offline@/devices/system/cpu/cpu7`, and then pairs of keys and values, each ended by a zero
//! byte. The state of the CPUs is *read* afterwards: announcements may be lost when there are many,
//! and a mask says more.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

/// The multicast group of the kernel's own announcements.
const OF_THE_KERNEL: u32 = 1;
/// No announcement is longer.
const LONGEST: usize = 8192;

#[derive(Debug)]
pub(crate) struct Hotplug {
    socket: OwnedFd,
}

impl Hotplug {
    /// Begins to receive announcements, where the kernel or a container lets us.
    pub(crate) fn listen() -> Result<Hotplug, Errno> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(netlink::KOBJECT_UEVENT),
        )?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, OF_THE_KERNEL))?;
        Ok(Hotplug { socket })
    }

    /// Reads all announcements. Returns whether CPUs may have gone offline or come back.
    pub(crate) fn take(&self) -> bool {
        let mut message = [0u8; LONGEST];
        let mut found = false;
        loop {
            match rustix::net::recv(&self.socket, &mut message[..], RecvFlags::empty()) {
                Ok((length, _)) => found |= is_about_cpus(&message[..length.min(LONGEST)]),
                // Some announcements were lost.
                Err(Errno::NOBUFS) => found = true,
                Err(Errno::INTR) => {}
                Err(_) => return found,
            }
        }
    }
}

impl AsFd for Hotplug {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn is_about_cpus(message: &[u8]) -> bool {
    let mut words = message.split(|byte| *byte == 0);
    let action = words.next().and_then(|line| line.split(|byte| *byte == b'@').next());
    let switched = action.is_some_and(|action| action == b"online" || action == b"offline");
    switched && words.any(|word| word == b"SUBSYSTEM=cpu")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_about_cpus_online_and_offline_count() {
        let message = |action: &str, subsystem: &str| {
            let device =
                format!("{action}@/devices/system/{subsystem}/{subsystem}7\0ACTION={action}\0");
            is_about_cpus(format!("{device}SUBSYSTEM={subsystem}\0SEQNUM=9\0").as_bytes())
        };
        assert!(message("offline", "cpu") && message("online", "cpu"));
        assert!(!message("change", "cpu") && !message("offline", "memory"));
        assert!(!is_about_cpus(b"") && !is_about_cpus(b"libudev\0\xfe\xed"));
    }

    #[test]
    fn no_event_is_reported_while_nothing_happens() {
        match Hotplug::listen() {
            Ok(hotplug) => assert!(!hotplug.take()),
            Err(errno) => eprintln!("skipped: no announcements of devices here: {errno}"),
        }
    }
}
