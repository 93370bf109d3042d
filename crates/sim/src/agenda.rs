//! The agenda of recurring events, in order of time.
//!
//! Every recurring event has a slot of its own: the horizon of a CPU's thread, the tick of a CPU,
//! the sleep of a thread. Setting a slot replaces its time, so nothing stale is ever in the heap,
//! its size is bounded by the machine, and nothing is allocated while time passes. The slots that
//! are set form a heap in which every node has four children, which is flatter and reads less
//! memory than one with two. Each slot knows its place in it.

use crate::queue::mix;

/// The place of a slot that is not set.
const NOWHERE: u32 = u32::MAX;
/// How many children a node has.
const FANOUT: usize = 4;

#[derive(Debug)]
pub(crate) struct Agenda {
    heap: Vec<DueSlot>,
    /// For each slot, its place in the heap.
    places: Vec<u32>,
    seed: u64,
    sequence: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DueSlot {
    at: u64,
    /// The seed for the order of slots with the same time.
    tie: u64,
    slot: u32,
}

impl Agenda {
    pub(crate) fn new(seed: u64) -> Agenda {
        Agenda { heap: Vec::new(), places: Vec::new(), seed, sequence: 0 }
    }

    pub(crate) fn grow(&mut self, slots: usize) {
        self.places.resize(slots, NOWHERE);
        self.heap.reserve(slots - self.heap.len());
    }

    /// Sets a slot to a time in nanoseconds, and replaces its earlier time.
    pub(crate) fn set(&mut self, slot: usize, at: u64) {
        self.sequence += 1;
        let due = DueSlot { at, tie: mix(self.seed ^ self.sequence), slot: slot as u32 };
        match self.places[slot] {
            NOWHERE => {
                self.heap.push(due);
                self.rise(self.heap.len() - 1, due);
            }
            place => self.put(place as usize, due),
        }
    }

    pub(crate) fn clear(&mut self, slot: usize) {
        let place = self.places[slot];
        if place == NOWHERE {
            return;
        }
        self.places[slot] = NOWHERE;
        let last =
            self.heap.pop().unwrap_or_else(|| unreachable!("a slot that is set is in the heap"));
        if place as usize != self.heap.len() {
            self.put(place as usize, last);
        }
    }

    /// The first slot: the time, the order among equal times, and the slot.
    pub(crate) fn first(&self) -> Option<(u64, u64, usize)> {
        self.heap.first().map(|due| (due.at, due.tie, due.slot as usize))
    }

    /// Moves an entry with a new time to its place, starting at a free place.
    fn put(&mut self, place: usize, due: DueSlot) {
        if place > 0 && due < self.heap[(place - 1) / FANOUT] {
            self.rise(place, due);
        } else {
            self.sink(place, due);
        }
    }

    fn rise(&mut self, mut place: usize, due: DueSlot) {
        while place > 0 {
            let parent = (place - 1) / FANOUT;
            if self.heap[parent] <= due {
                break;
            }
            self.settle(place, self.heap[parent]);
            place = parent;
        }
        self.settle(place, due);
    }

    fn sink(&mut self, mut place: usize, due: DueSlot) {
        loop {
            let first = place * FANOUT + 1;
            let children = first..(first + FANOUT).min(self.heap.len());
            let Some(least) = children.min_by_key(|child| self.heap[*child]) else { break };
            if due <= self.heap[least] {
                break;
            }
            self.settle(place, self.heap[least]);
            place = least;
        }
        self.settle(place, due);
    }

    fn settle(&mut self, place: usize, due: DueSlot) {
        self.heap[place] = due;
        self.places[due.slot as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_in_order_of_their_latest_times() {
        let mut agenda = Agenda::new(1);
        agenda.grow(100);
        let mut expected = [None; 100];
        for step in 0..2000u64 {
            let slot = (mix(step) % 100) as usize;
            match mix(step ^ 1 << 40) % 4 {
                0 => {
                    agenda.clear(slot);
                    expected[slot] = None;
                }
                _ => {
                    let at = mix(step ^ 1 << 50) % 50;
                    agenda.set(slot, at);
                    expected[slot] = Some(at);
                }
            }
            assert_eq!(
                agenda.first().map(|first| first.0),
                expected.iter().flatten().min().copied()
            );
        }
        let mut left: Vec<(u64, usize)> =
            expected.iter().enumerate().filter_map(|(slot, at)| Some((((*at)?), slot))).collect();
        let mut found = Vec::new();
        while let Some((at, _, slot)) = agenda.first() {
            agenda.clear(slot);
            found.push((at, slot));
        }
        assert!(found.is_sorted_by_key(|(at, _)| *at));
        left.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, left);
    }

    #[test]
    fn the_seed_decides_the_order_of_events_at_one_time() {
        let order = |seed| {
            let mut agenda = Agenda::new(seed);
            agenda.grow(8);
            (0..8).for_each(|slot| agenda.set(slot, 5));
            let mut slots = Vec::new();
            while let Some((_, _, slot)) = agenda.first() {
                agenda.clear(slot);
                slots.push(slot);
            }
            slots
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
    }
}
