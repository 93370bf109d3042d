//! Events that happen once: steps of the machine that take effect later, in order of time.

use std::collections::BTreeMap;

#[derive(Debug)]
pub(crate) struct Queue<E> {
    /// By time, and by the seed for the order of events with the same time.
    events: BTreeMap<(u64, u64), E>,
    seed: u64,
    sequence: u64,
}

impl<E> Queue<E> {
    pub(crate) fn new(seed: u64) -> Queue<E> {
        Queue { events: BTreeMap::new(), seed, sequence: 0 }
    }

    /// Schedules an event for a time in nanoseconds.
    pub(crate) fn push(&mut self, at: u64, event: E) {
        self.sequence += 1;
        // No two events get the same number, since `mix` gives each input its own.
        self.events.insert((at, mix(self.seed ^ self.sequence)), event);
    }

    /// The time of the next event, and the order among equal times.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.events.keys().next().copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &E> {
        self.events.values()
    }

    pub(crate) fn pop(&mut self) -> Option<E> {
        self.events.pop_first().map(|(_, event)| event)
    }
}

/// A number that looks random and is the same for the same input (the finaliser of `SplitMix64`).
pub(crate) fn mix(seed: u64) -> u64 {
    let x = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_ties_by_seed() {
        let order = |seed| {
            let mut queue = Queue::new(seed);
            (0..8).for_each(|event| queue.push(5, event));
            queue.push(3, 99);
            assert_eq!(queue.first().map(|first| first.0), Some(3));
            assert_eq!(queue.pop(), Some(99));
            std::iter::from_fn(|| queue.pop()).collect::<Vec<i32>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut sorted = order(2);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..8).collect::<Vec<_>>());
    }
}
