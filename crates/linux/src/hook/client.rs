//! One client of a hook server, which is a process of the program: its page and its socket.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use cosched_page::{Hello, Page, Rule, SIZE};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, recv, send, sendmsg,
};

/// More messages than that are left for the next time.
const AT_ONCE: usize = 16;

/// A page that is mapped in cosched.
#[derive(Debug)]
struct Shared(*const Page);

impl Shared {
    fn new() -> io::Result<(Shared, OwnedFd)> {
        let memory = memfd_create("cosched", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, SIZE as u64)?;
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: maps memory of our own, of this size, wherever the kernel likes.
        let address =
            unsafe { mmap(std::ptr::null_mut(), SIZE, rights, MapFlags::SHARED, &memory, 0)? };
        let shared = Shared(address.cast::<Page>());
        shared.page().prepare();
        Ok((shared, memory))
    }

    fn page(&self) -> &Page {
        // SAFETY: it is mapped as long as this lives, is at least as long and as aligned as a page,
        // and cannot get shorter, since its memory is sealed. All words of it are atomic and may be
        // any number, so others may write to it.
        unsafe { &*self.0 }
    }
}

// SAFETY: the mapping belongs to the process, not to a thread, and its words are atomic.
unsafe impl Send for Shared {}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped with this size, and no reference outlives this. The call fails only for
        // addresses that are none.
        let _ = unsafe { munmap(self.0.cast_mut().cast(), SIZE) };
    }
}

#[derive(Debug)]
pub(super) struct Client {
    socket: OwnedFd,
    shared: Shared,
    /// The number of the last request that was read.
    heard: u32,
    pub(super) requested: u16,
    /// It waits for the answer to the last request.
    waits: bool,
}

/// The progress that processes have reported since they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// The program's own ticks.
    pub ticks: u64,
    /// Regions begun and barriers passed, where they are counted.
    pub passages: u64,
}

impl Reported {
    pub(super) fn plus(self, other: Reported) -> Reported {
        Reported {
            ticks: self.ticks.saturating_add(other.ticks),
            passages: self.passages.saturating_add(other.passages),
        }
    }

    /// The progress since `before`: by ticks or, where none was ever reported, by counted passages.
    /// `None`: nothing was reported yet, or the first ticks were reported in between. A count that
    /// goes back is a lie, and also `None`.
    pub fn since(self, before: Reported) -> Option<u64> {
        match (self.ticks, before.ticks, self.passages) {
            (0, _, 0) => None,
            (0, _, passages) => Some(passages.saturating_sub(before.passages)),
            (_, 0, _) if before.passages > 0 => None,
            (ticks, before, _) => Some(ticks.saturating_sub(before)),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    pub(super) messages: usize,
    /// Whether it has requested threads, and whether it waits.
    pub(super) blocked: Option<bool>,
    pub(super) gone: bool,
}

impl Client {
    /// Gives the process at the other end of a socket a page with this rule, and the table of
    /// threads if there is one.
    pub(super) fn welcome(
        socket: OwnedFd,
        rule: Rule,
        table: Option<BorrowedFd<'_>>,
        now: u64,
    ) -> io::Result<Client> {
        let (shared, memory) = Shared::new()?;
        shared.page().set_rule(rule);
        shared.page().beat(now);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let files: Vec<BorrowedFd<'_>> = [memory.as_fd()].into_iter().chain(table).collect();
        control.push(SendAncillaryMessage::ScmRights(&files));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let hello = Hello { threads: table.is_some() }.bytes();
        sendmsg(&socket, &[IoSlice::new(&hello)], &mut control, flags)?;
        Ok(Client { socket, shared, heard: 0, requested: 0, waits: false })
    }

    /// Reads its messages. Their content does not matter, only that the page has something new.
    pub(super) fn hear(&mut self) -> News {
        let mut news = News::default();
        while news.messages < AT_ONCE {
            match recv(&self.socket, &mut [0u8; 1][..], RecvFlags::DONTWAIT) {
                Ok((_, 0)) => news.gone = true,
                Ok(_) => {
                    news.messages += 1;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(_) => news.gone = true,
            }
            break;
        }
        let request = self.page().request();
        if request.number != self.heard && request.threads > 0 {
            self.heard = request.number;
            self.requested = request.threads;
            self.waits = request.blocked;
            news.blocked = Some(request.blocked);
        }
        news
    }

    /// Sets the rule, which also answers a request. A process that cannot be notified reads the
    /// page by itself.
    pub(super) fn set(&mut self, rule: Rule) {
        self.page().set_rule(rule);
        if std::mem::take(&mut self.waits) {
            self.page().answer(self.heard);
            let _ = send(&self.socket, &[1], SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
        }
    }

    /// Its page. Counts in it may go back, if the process lies.
    pub(super) fn page(&self) -> &Page {
        self.shared.page()
    }

    /// The progress that it has reported. May go back, if it lies.
    pub(super) fn reported(&self) -> Reported {
        let page = self.page();
        let stats = page.barrier_stats();
        // Even where cosched has not requested that passages are counted, some of them may be.
        let passages = match page.passages() {
            0 => stats.barriers.saturating_add(stats.seen),
            counted => counted,
        };
        Reported { ticks: page.progress(), passages }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
