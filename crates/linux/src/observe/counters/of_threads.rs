//! How often each thread of a program misses the last-level cache.
//!
//! What a program's threads miss together says nothing of a single one: a thread that computes in
//! its registers and one that walks through memory can use the same CPU time. Each thread therefore
//! has a counter of its own, which nothing inherits. It is opened when the thread is first seen, so
//! the misses of the interval before are unknown.
//!
//! A counter is an open file. There may be only as many as leave room for what a run cannot do
//! without.

use std::collections::HashMap;
use std::io;

use super::event::{Counter, CounterReading};
use super::{CounterEvent, CounterLack, Events};

/// The counters of threads, by thread.
#[derive(Debug)]
pub(crate) struct ThreadMisses {
    event: CounterEvent,
    counters: HashMap<i32, (Counter, CounterReading)>,
    /// How many more there may be.
    room: usize,
    /// Whether this machine counts no misses.
    is_impossible: bool,
    /// Whether a thread went without a counter because there was no room.
    is_full: bool,
}

impl Default for ThreadMisses {
    fn default() -> ThreadMisses {
        ThreadMisses::new(Events::HARDWARE, 0)
    }
}

impl ThreadMisses {
    /// Has no more than this number of counters at once.
    pub(crate) fn new(events: Events, room: usize) -> ThreadMisses {
        ThreadMisses {
            event: events.llc_misses,
            counters: HashMap::new(),
            room,
            is_impossible: false,
            is_full: false,
        }
    }

    /// The misses of a thread since the last call; `None` at its first, and where they cannot be
    /// counted.
    pub(crate) fn next(&mut self, thread: i32) -> Option<u64> {
        if let Some((counter, before)) = self.counters.get_mut(&thread) {
            let now = counter.read().ok()?;
            return now.since(std::mem::replace(before, now)).count_of_one();
        }
        if self.is_impossible {
            return None;
        }
        if self.room == 0 {
            self.is_full = true;
            return None;
        }
        match Counter::only(self.event, thread) {
            Ok(counter) => {
                let now = counter.read().ok()?;
                self.room -= 1;
                self.counters.insert(thread, (counter, now));
            }
            Err(error) => self.learn(error),
        }
        None
    }

    /// A thread that has ended, or of another user, says nothing of others.
    fn learn(&mut self, error: io::Error) {
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE) => (self.room, self.is_full) = (0, true),
            _ => self.is_impossible = matches!(CounterLack::from(error), CounterLack::Hardware),
        }
    }

    /// Closes the counter of a thread that has ended.
    pub(crate) fn forget(&mut self, thread: i32) {
        self.room += usize::from(self.counters.remove(&thread).is_some());
    }

    /// Whether a thread goes without a counter because there is no room. Returns true only once.
    pub(crate) fn has_filled_up(&mut self) -> bool {
        std::mem::take(&mut self.is_full)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use super::super::tests::{PAGES, SOFTWARE, UNKNOWN, counters, touch};
    use super::*;

    /// A thread that touches pages, or computes, each time that it is told to.
    fn worker(touches: bool) -> (i32, Sender<()>, Receiver<i32>) {
        let ((tell, told), (order, orders)) = (channel(), channel::<()>());
        thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get()).unwrap();
            for () in orders {
                match touches {
                    true => touch(),
                    false => _ = std::hint::black_box((0..50_000_000u64).sum::<u64>()),
                }
                tell.send(0).unwrap();
            }
        });
        let tid = told.recv().unwrap();
        (tid, order, told)
    }

    /// Page faults stand in for misses. By CPU time, the thread that computes would have some.
    #[test]
    fn each_thread_has_its_own_misses() {
        if counters().is_none() {
            return;
        }
        let workers = [true, false].map(worker);
        let mut misses = ThreadMisses::new(SOFTWARE, 2);
        let mut next = || workers.each_ref().map(|(tid, ..)| misses.next(*tid));
        assert_eq!(next(), [None, None], "counting begins");
        for (_, order, done) in &workers {
            order.send(()).unwrap();
            done.recv().unwrap();
        }
        let [touched, computed] = next().map(|count| count.unwrap() as usize);
        assert!((PAGES..PAGES + PAGES / 4).contains(&touched), "{touched}");
        assert!(computed < PAGES / 100, "{computed}");
        // A thread that slept since has missed nothing, which is known.
        assert!(next()[0].is_some_and(|count| count < 100));
    }

    #[test]
    fn a_thread_without_room_goes_without_until_another_ends() {
        if counters().is_none() {
            return;
        }
        let workers = [true, false].map(worker);
        let mut misses = ThreadMisses::new(SOFTWARE, 1);
        let tids = [workers[0].0, workers[1].0];
        let next = |misses: &mut ThreadMisses| tids.map(|tid| misses.next(tid));
        assert_eq!(next(&mut misses), [None, None]);
        assert!(misses.has_filled_up() && !misses.has_filled_up());
        assert!(matches!(next(&mut misses), [Some(_), None]));
        misses.forget(tids[0]);
        assert_eq!(misses.next(tids[1]), None);
        assert!(misses.next(tids[1]).is_some());
    }

    #[test]
    fn a_machine_without_the_event_is_not_asked_again() {
        let mut misses = ThreadMisses::new(Events { llc_misses: UNKNOWN, ..SOFTWARE }, 1);
        let own = rustix::thread::gettid().as_raw_nonzero().get();
        // One that has ended says nothing of the machine.
        misses.learn(io::Error::from_raw_os_error(libc::ESRCH));
        assert!(!misses.is_impossible);
        assert_eq!([misses.next(own), misses.next(own)], [None, None]);
        assert!(misses.is_impossible && misses.counters.is_empty());
    }
}
