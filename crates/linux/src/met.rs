//! What the threads of each program have done at barriers of cosched, told by the machine to whoever wants to know.
//!
//! Threads count on the pages of their processes ([`cosched_page::Tally`]). The machine adds that up once a second, and when a
//! program ends; whoever has a [`Met`] of the run reads it, while it lasts and afterwards.

use std::sync::{Arc, Mutex, PoisonError};

use cosched_core::Meetings;
use cosched_page::Meetings as Counted;

/// For each program by slot: in runs that are over, and in the present one.
#[derive(Clone, Debug, Default)]
pub struct Met(Arc<[Mutex<[Counted; 2]>]>);

impl Met {
    /// For so many programs; nobody has met.
    pub fn new(slots: usize) -> Met {
        Met((0..slots).map(|_| Mutex::default()).collect())
    }

    /// In its present run the program has met so often by now.
    pub(crate) fn tell(&self, slot: u16, now: Counted) {
        self.change(slot, |[_, present]| *present = now);
    }

    /// Its present run is over.
    pub(crate) fn end(&self, slot: u16) {
        self.change(slot, |[past, present]| *past = *past + std::mem::take(present));
    }

    fn change(&self, slot: u16, change: impl FnOnce(&mut [Counted; 2])) {
        if let Some(known) = self.0.get(usize::from(slot)) {
            change(&mut known.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// What the threads of the program at this position have done; `None`: nothing that was told.
    pub fn of(&self, slot: usize) -> Option<Meetings> {
        let [past, present] = *self.0.get(slot)?.lock().unwrap_or_else(PoisonError::into_inner);
        let all = Counted { seen: 0, ..past + present };
        (all != Counted::default()).then(|| Meetings {
            barriers: all.barriers,
            glanced: all.glanced,
            looked_on: all.looked_on,
            gave_way: all.gave_way,
            slept: all.slept,
            knew: all.knew,
            waited_seconds: (all.nanoseconds / 1000) as f64 / 1e6,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_a_program_add_up_and_one_that_goes_on_is_told_as_it_is_now() {
        let (met, barriers) = (Met::new(2), |barriers| Counted { barriers, ..Counted::default() });
        assert_eq!(met.of(0), None);
        met.tell(0, barriers(5));
        met.tell(0, barriers(7));
        assert_eq!(met.of(0).unwrap().barriers, 7);
        met.end(0);
        met.tell(0, barriers(1));
        assert_eq!(met.of(0).unwrap().barriers, 8);
        met.tell(9, barriers(1));
        assert_eq!((met.of(1), met.of(9)), (None, None));
    }
}
