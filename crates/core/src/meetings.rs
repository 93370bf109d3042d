//! What the threads of a program did at barriers of cosched, as they have counted it themselves.
//!
//! [`waits`](crate::waits) has what only a simulator can tell. This module has what a real
//! program's threads know of their own waits: how often they met, whether threads that came early
//! had to do more than glance, and what these threads did then.

use serde::{Deserialize, Serialize};

/// Of all threads of a program, and of all of its runs, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meetings {
    /// Barriers that all have passed.
    pub barriers: u64,
    /// Waits that ended within the first looks, which take some microseconds.
    pub glanced: u64,
    /// Waits that took longer, and in which the thread looked on to the end.
    pub looked_on: u64,
    /// Waits in which it let others run between looks.
    pub gave_way: u64,
    /// Waits in which it slept.
    pub slept: u64,
    /// Of the waits that took longer than the first looks, those in which the thread knew what the
    /// threads that it waited for did.
    pub knew: u64,
    /// How long these waits took together, after the first looks, seconds.
    pub waited_seconds: f64,
}

impl Meetings {
    /// How often a thread came before the last one.
    pub fn waits(&self) -> u64 {
        self.glanced.saturating_add(self.long_waits())
    }

    /// How often it then had to do more than glance.
    pub fn long_waits(&self) -> u64 {
        self.looked_on.saturating_add(self.gave_way).saturating_add(self.slept)
    }

    /// What part of all waits some are; 0 without waits.
    pub fn share(&self, some: u64) -> f64 {
        match self.waits() {
            0 => 0.0,
            all => some as f64 / all as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_no_waits_do_not_divide_by_zero() {
        let met = Meetings { glanced: 6, looked_on: 1, slept: 3, ..Meetings::default() };
        assert_eq!((met.waits(), met.long_waits(), met.share(met.slept)), (10, 4, 0.3));
        assert_eq!(Meetings::default().share(0), 0.0);
        let lie = Meetings { glanced: u64::MAX, slept: u64::MAX, ..Meetings::default() };
        assert_eq!(lie.waits(), u64::MAX);
    }
}
