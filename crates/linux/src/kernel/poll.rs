//! Waiting for everything at once: one epoll set with a timer, the signals, and the programs'
//! reports.
//!
//! cosched has one thread and sleeps in one place, so that it costs nothing while nothing happens.
//! The timer is a `timerfd` on an absolute time: unlike a time-out of `epoll_wait` it has no slack
//! (50 us by default) and is not rounded to milliseconds. Signals arrive as data (`signalfd`), so
//! no handler ever interrupts half a change.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::kernel::signals::{INTERRUPTIONS, is_ignored, mask, pending, set_of};

/// What became ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ready {
    /// A signal arrived: its number.
    Signal(i32),
    /// A source can be read, or its other end is closed: the key it was added with.
    Source(u64),
}

const TIMER: u64 = u64::MAX;
const SIGNALS: u64 = u64::MAX - 1;

/// The set of everything that cosched waits for.
#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    signals: OwnedFd,
    armed: Option<Timespec>,
}

impl Poll {
    /// Waits for these signals, which no longer interrupt the calling thread. Ignored signals stay
    /// ignored.
    ///
    /// # Errors
    /// When the kernel has no more descriptors.
    pub fn new(signals: &[i32]) -> io::Result<Poll> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let signals = signal_fd(signals)?;
        let poll = Poll { epoll, timer, signals, armed: None };
        poll.add(poll.timer.as_fd(), TIMER)?;
        poll.add(poll.signals.as_fd(), SIGNALS)?;
        Ok(poll)
    }

    /// Adds a source under a key below `u64::MAX - 1`.
    ///
    /// # Errors
    /// When the descriptor cannot be waited for.
    pub fn add(&self, source: BorrowedFd<'_>, key: u64) -> io::Result<()> {
        let data = epoll::EventData::new_u64(key);
        Ok(epoll::add(&self.epoll, source, data, epoll::EventFlags::IN)?)
    }

    /// Takes a source out.
    ///
    /// # Errors
    /// When it was not in.
    pub fn remove(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Sleeps until something is ready or `until` (absolute, CLOCK_MONOTONIC) has come; appends
    /// what is ready.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub fn wait(&mut self, until: Timespec, out: &mut Vec<Ready>) -> io::Result<()> {
        self.arm(until)?;
        self.take(None, out)
    }

    /// Appends what is ready now, without sleeping; no source twice.
    ///
    /// # Errors
    /// When the kernel refuses to look.
    pub fn look(&mut self, out: &mut Vec<Ready>) -> io::Result<()> {
        self.take(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }), out)
    }

    fn take(&mut self, timeout: Option<&Timespec>, out: &mut Vec<Ready>) -> io::Result<()> {
        let mut space = [MaybeUninit::<epoll::Event>::uninit(); 32];
        let ready = match epoll::wait(&self.epoll, &mut space, timeout) {
            Ok((ready, _)) => ready,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in ready.iter() {
            match event.data.u64() {
                // The timer stays ready until it is set again, which the next wait does first.
                TIMER => self.armed = None,
                SIGNALS => self.read_signals(out)?,
                key if out.contains(&Ready::Source(key)) => {}
                key => out.push(Ready::Source(key)),
            }
        }
        Ok(())
    }

    fn arm(&mut self, until: Timespec) -> io::Result<()> {
        if self.armed == Some(until) {
            return Ok(());
        }
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: until };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
        self.armed = Some(until);
        Ok(())
    }

    fn read_signals(&self, out: &mut Vec<Ready>) -> io::Result<()> {
        let mut record = [0u8; size_of::<libc::signalfd_siginfo>()];
        loop {
            match rustix::io::read(&self.signals, &mut record) {
                Ok(n) if n == record.len() => {
                    let number = u32::from_ne_bytes([record[0], record[1], record[2], record[3]]);
                    out.push(Ready::Signal(number as i32));
                }
                Ok(_) | Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Has the signals that ask cosched to end wait for a [`Poll`] that is made later. Called before
/// anything is made that has to be removed at the end.
///
/// # Errors
/// When the kernel refuses to block them.
pub fn hold_interruptions() -> io::Result<()> {
    block(&INTERRUPTIONS.map(|(signal, _)| signal)).map(drop)
}

/// Whether a signal that asks cosched to end waits for a [`Poll`], which will then read it.
pub fn is_interrupted() -> bool {
    pending().is_ok_and(|set| {
        // SAFETY: the set, which the kernel has filled, is only read.
        INTERRUPTIONS.iter().any(|(signal, _)| unsafe { libc::sigismember(&set, *signal) } == 1)
    })
}

fn block(signals: &[i32]) -> io::Result<libc::sigset_t> {
    // A signal that the caller ignores (`nohup`) stays ignored, which it would not be if it was
    // waited for.
    let set = set_of(signals.iter().copied().filter(|signal| !is_ignored(*signal)))?;
    mask(libc::SIG_BLOCK, &set)?;
    Ok(set)
}

fn signal_fd(signals: &[i32]) -> io::Result<OwnedFd> {
    let set = block(signals)?;
    // SAFETY: the set, which lives on this stack frame, is only read. The new descriptor has no
    // other owner.
    unsafe {
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::clock::Clock;
    use cosched_core::Nanos;

    #[test]
    fn wait_returns_empty_only_at_the_requested_time() {
        let (clock, mut poll) = (Clock::start(), Poll::new(&[]).unwrap());
        let until = clock.now() + Nanos::from_millis(2);
        let mut out = Vec::new();
        poll.wait(clock.absolute(until), &mut out).unwrap();
        assert!(clock.now() >= until && out.is_empty());
    }

    #[test]
    fn a_source_is_named_by_its_key() {
        let (clock, mut poll) = (Clock::start(), Poll::new(&[]).unwrap());
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        poll.add(reader.as_fd(), 42).unwrap();
        drop(writer);
        let mut out = Vec::new();
        poll.wait(clock.absolute(clock.now() + Nanos::from_secs(60)), &mut out).unwrap();
        assert_eq!(out, [Ready::Source(42)]);
    }

    #[test]
    fn a_poll_finds_what_is_ready_and_does_not_wait() {
        let mut poll = Poll::new(&[]).unwrap();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        poll.add(reader.as_fd(), 42).unwrap();
        let mut out = Vec::new();
        poll.look(&mut out).unwrap();
        assert_eq!(out, []);
        drop(writer);
        poll.look(&mut out).unwrap();
        assert_eq!(out, [Ready::Source(42)]);
    }

    #[test]
    fn an_interruption_is_noticed_before_it_is_read() {
        let signal = libc::SIGUSR2;
        let (clock, mut poll) = (Clock::start(), Poll::new(&[signal]).unwrap());
        assert!(!is_interrupted());
        // SAFETY: sends a signal to this thread only, which has just blocked it.
        unsafe { libc::pthread_kill(libc::pthread_self(), signal) };
        assert!(is_interrupted());
        let mut out = Vec::new();
        poll.wait(clock.absolute(clock.now() + Nanos::from_secs(60)), &mut out).unwrap();
        assert_eq!(out, [Ready::Signal(signal)]);
        assert!(!is_interrupted());
    }

    #[test]
    fn signals_are_read_as_data() {
        let (clock, mut poll) = (Clock::start(), Poll::new(&[libc::SIGUSR2]).unwrap());
        // SAFETY: sends a signal to this thread only, which has just blocked it.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2) };
        let mut out = Vec::new();
        poll.wait(clock.absolute(clock.now() + Nanos::from_secs(60)), &mut out).unwrap();
        assert_eq!(out, [Ready::Signal(libc::SIGUSR2)]);
    }
}
