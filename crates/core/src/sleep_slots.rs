//! How many waiting threads may sleep under load control.
//!
//! *Source.* Johnson, Stoica, Ailamaki and Mowry, "Decoupling contention management from
//! scheduling" (ASPLOS 2010), as the paper on faithful scheduling has it (sections I and VI):
//! blocking controls the number of runnable threads, and spinning answers contention.
//!
//! *Idea.* As many slots more than there are sleepers as there are runnable threads without a CPU,
//! or as many fewer as there are idle CPUs. How the source divides slots among programs is not in
//! that paper: here they take one after the other.

/// The sleep slots of each program, by the number of its sleepers. `first` says which program takes
/// first: another one each time, since the threads of the first may never wait.
pub fn sleep_slots(runnable: u64, cpus: u64, sleepers: Vec<u64>, first: u64) -> Vec<u64> {
    let (mut slots, mut left, mut is_changed) = (sleepers, runnable.abs_diff(cpus), true);
    let first = first.checked_rem(slots.len() as u64).unwrap_or_default() as usize;
    while left > 0 && is_changed {
        is_changed = false;
        let (before, others) = slots.split_at_mut(first);
        for slot in others.iter_mut().chain(before) {
            let next = if runnable > cpus { slot.checked_add(1) } else { slot.checked_sub(1) };
            if let Some(next) = next.filter(|_| left > 0) {
                (*slot, is_changed) = (next, true);
                left -= 1;
            }
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::sleep_slots;

    #[test]
    fn as_many_threads_sleep_as_are_surplus() {
        assert_eq!(sleep_slots(24, 24, vec![0], 0), [0], "at full load every waiter spins");
        assert_eq!(sleep_slots(36, 24, vec![0], 0), [12]);
        assert_eq!(sleep_slots(24, 24, vec![12], 0), [12], "a steady state stays");
        assert_eq!(sleep_slots(30, 24, vec![12], 0), [18], "new surplus comes on top");
    }

    #[test]
    fn when_load_falls_slots_are_freed() {
        assert_eq!(sleep_slots(20, 24, vec![12], 0), [8]);
        assert_eq!(sleep_slots(0, 24, vec![12], 0), [0], "no more than sleep");
        assert_eq!(sleep_slots(2, 8, vec![0, 9, 1], 0), [0, 4, 0], "where threads sleep");
        assert_eq!(sleep_slots(7, 8, vec![0, 1], 0), [0, 0]);
    }

    #[test]
    fn programs_share_the_surplus_and_no_lie_of_one_spoils_it() {
        assert_eq!(sleep_slots(29, 24, vec![1, 0, 7], 0), [3, 2, 8]);
        assert_eq!(sleep_slots(26, 24, vec![u64::MAX, 0], 0), [u64::MAX, 2]);
        assert_eq!(sleep_slots(22, 24, vec![u64::MAX, 3], 0), [u64::MAX - 1, 2]);
        assert!(sleep_slots(48, 24, vec![], 7).is_empty());
        let with_turns = [0, 1, 2].map(|first| sleep_slots(25, 24, vec![0, 0], first));
        assert_eq!(with_turns, [[1, 0], [0, 1], [1, 0]]);
    }
}
