//! What the tests share: a place, programs, a running `cosched`, and what may be left of it.

mod backend;
mod cosched;
mod locker;
mod marked;
mod place;
mod stamps;

use std::sync::Mutex;
use std::time::{Duration, Instant};

pub(crate) use backend::{Backend, Ice, cgroups_named, cgroups_of};
pub(crate) use cosched::{Cosched, Ended};
pub(crate) use locker::Locker;
pub(crate) use marked::Marked;
pub(crate) use place::{Place, User, copy_file, is_library, program};
pub(crate) use stamps::{STAMPS, blocks};

/// Waits for something that must come true. Its duration is not tested.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Does the same with each of these at once, where most of it is waiting.
pub(crate) fn at_once<T: Send>(all: impl IntoIterator<Item = T>, act: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for one in all {
            let act = &act;
            scope.spawn(move || act(one));
        }
    });
}

/// Does the same with each of these, two at a time: half of it is waiting.
pub(crate) fn two_at_once<T: Send>(all: Vec<T>, act: impl Fn(T) + Sync) {
    let all = Mutex::new(all.into_iter());
    at_once([(), ()], |()| {
        loop {
            let next = all.lock().unwrap().next();
            let Some(one) = next else { break };
            act(one);
        }
    });
}

/// Says that a test cannot do its work here.
pub(crate) fn skip(why: impl std::fmt::Display) {
    eprintln!("skipped: {why}");
}
