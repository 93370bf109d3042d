//! Sorts threads, cuts them into groups, and gives each group a socket.
//!
//! *Sizes.* A socket gets threads in proportion to its usable CPUs, and a thread that may not be
//! moved counts where it is. Each next thread goes where, with it, there are the fewest threads per
//! CPU. Of equal sockets it goes to the one that has more of these threads already. Sizes are
//! therefore exact within one thread, also with more threads than CPUs, and with fewer threads than
//! sockets.
//!
//! *Order.* The threads that wait longest come first. Waits that are within [`Params::tie`] of each
//! other are equal. Then the socket on which a thread is decides, so that indistinguishable threads
//! stay where they are. Where the lock is known that a thread waits for most, threads of one lock
//! come together, the lock that costs most first.
//!
//! *Sockets.* A group may go to any socket that gets as many threads. The pairing that [moves the
//! fewest](super::matching) is chosen. Where sockets get different numbers of threads, the smallest
//! group is cut first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cosched_core::ThreadId;

use super::SortBy;
use super::matching::cheapest;
use super::params::Params;

/// The price of a socket that is to get another number of threads.
const IMPOSSIBLE: i64 = 1 << 32;

/// A thread that is to be in a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Contender {
    pub(super) id: ThreadId,
    /// The lock that it waits for most, where that is known.
    pub(super) lock: Option<u64>,
    /// The sort key: the share of its time at locks, 0 to 1, or misses per second.
    pub(super) value: f64,
    /// The socket on which it is now, by its position.
    pub(super) socket: usize,
    /// The socket where its pages lie.
    pub(super) pages: usize,
    /// The share of its time that it would lose elsewhere.
    pub(super) loss: f64,
}

/// How many of these threads each socket gets. `cpus` has the CPUs of each socket; `stay` the
/// threads that cannot be moved; `here` the threads to be divided that are there now.
pub(super) fn sizes(threads: usize, cpus: &[usize], stay: &[usize], here: &[usize]) -> Vec<usize> {
    let mut sizes = vec![0; cpus.len()];
    for _ in 0..threads {
        let fuller = |a: &usize, b: &usize| {
            // (x / a) against (y / b), without dividing.
            let [with_a, with_b] = [*a, *b].map(|socket| stay[socket] + sizes[socket] + 1);
            let more_here = |socket: usize| here[socket].saturating_sub(sizes[socket]);
            (with_a * cpus[*b]).cmp(&(with_b * cpus[*a])).then(more_here(*b).cmp(&more_here(*a)))
        };
        let next = (0..cpus.len()).min_by(fuller);
        next.into_iter().for_each(|socket| sizes[socket] += 1);
    }
    sizes
}

/// The socket of each contender, by position. The groups are as described above, and go to the
/// sockets where the fewest threads move.
pub(super) fn share_out(
    contenders: &[Contender],
    cpus: &[usize],
    stay: &[usize],
    sort: SortBy,
    params: &Params,
) -> Vec<usize> {
    let here = |socket: usize| contenders.iter().filter(|one| one.socket == socket).count();
    let here: Vec<usize> = (0..cpus.len()).map(here).collect();
    let sizes = sizes(contenders.len(), cpus, stay, &here);
    let order = order(contenders, sort, params.tie);
    let mut cuts = sizes.clone();
    cuts.sort_unstable();
    let groups = match sort {
        SortBy::Misses => deal(&order, &cuts),
        SortBy::Lock | SortBy::LockTime | SortBy::Birth => cut(&order, &cuts),
    };
    pair(&groups, &sizes, contenders, params.lost_per_move)
}

/// Gives each group a socket that is to get as many threads, so that the fewest threads move,
/// including what is lost. Returns the socket of each contender.
fn pair(
    groups: &[Vec<usize>],
    sizes: &[usize],
    contenders: &[Contender],
    lost_per_move: f64,
) -> Vec<usize> {
    let price_of_one = |one: &Contender, socket: usize| {
        let lost = if one.pages == socket { 0.0 } else { one.loss };
        i64::from(one.socket != socket) + (lost * lost_per_move).round() as i64
    };
    let price = |group: &Vec<usize>, socket: usize| match group.len() == sizes[socket] {
        true => group.iter().map(|one| price_of_one(&contenders[*one], socket)).sum(),
        false => IMPOSSIBLE,
    };
    let prices: Vec<Vec<i64>> = groups
        .iter()
        .map(|group| (0..sizes.len()).map(|socket| price(group, socket)).collect())
        .collect();
    let mut found = vec![0; contenders.len()];
    for (group, socket) in cheapest(&prices).into_iter().enumerate() {
        groups[group].iter().for_each(|one| found[*one] = socket);
    }
    found
}

/// The positions of contenders in the order in which they are cut.
fn order(contenders: &[Contender], sort: SortBy, tie: f64) -> Vec<usize> {
    let mut costs: BTreeMap<u64, f64> = BTreeMap::new();
    for one in contenders {
        one.lock.into_iter().for_each(|lock| *costs.entry(lock).or_default() += one.value);
    }
    let mut locks: Vec<(u64, f64)> = costs.into_iter().collect();
    locks.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rank = |one: &Contender| locks.iter().position(|(known, _)| Some(*known) == one.lock);
    let key = |position: &usize| {
        let one = &contenders[*position];
        match sort {
            // Threads without a known lock come last.
            SortBy::Lock | SortBy::LockTime => {
                let steps = (one.value / tie).round() as u64;
                (rank(one).unwrap_or(usize::MAX), Reverse(steps), one.socket, one.id)
            }
            SortBy::Misses => (0, Reverse(one.value.round() as u64), one.socket, one.id),
            SortBy::Birth => (0, Reverse(0), 0, one.id),
        }
    };
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    order.sort_by_cached_key(key);
    order
}

/// Groups of these sizes, one after the other.
fn cut(order: &[usize], sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut rest = order;
    let group = |size: &usize| {
        let (group, others) = rest.split_at(*size);
        rest = others;
        group.to_vec()
    };
    sizes.iter().map(group).collect()
}

/// Groups of these sizes with about equal sums: threads are dealt to them in turn, back and forth.
fn deal(order: &[usize], sizes: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = sizes.iter().map(|size| Vec::with_capacity(*size)).collect();
    let mut rest = order.iter().copied();
    for round in 0.. {
        let mut turn: Vec<usize> = (0..sizes.len()).collect();
        if round % 2 == 1 {
            turn.reverse();
        }
        turn.retain(|group| groups[*group].len() < sizes[*group]);
        if turn.is_empty() {
            break;
        }
        for group in turn {
            groups[group].extend(rest.next());
        }
    }
    groups
}

/// The spread of the threads of a socket: the mean of their [distances](distances).
pub(super) fn spread(contenders: &[Contender], on: &[usize], sockets: usize) -> f64 {
    distances(contenders, on, sockets).iter().sum::<f64>() / contenders.len().max(1) as f64
}

/// The distance of each contender from the mean of its socket, if it is on the socket at its
/// position in `on`. Where locks are known, this includes the part of its waiting that its
/// neighbours on the socket wait for other locks.
pub(super) fn distances(contenders: &[Contender], on: &[usize], sockets: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0usize); sockets];
    let mut queues: BTreeMap<(usize, u64), usize> = BTreeMap::new();
    for (one, socket) in contenders.iter().zip(on) {
        sums[*socket].0 += one.value;
        sums[*socket].1 += 1;
        one.lock.into_iter().for_each(|lock| *queues.entry((*socket, lock)).or_default() += 1);
    }
    let distance = |(one, socket): (&Contender, &usize)| {
        let (sum, count) = sums[*socket];
        let queue = one.lock.and_then(|lock| queues.get(&(*socket, lock))).unwrap_or(&count);
        let strangers = (count - queue) as f64 / count as f64;
        (one.value - sum / count as f64).abs() + one.value * strangers
    };
    contenders.iter().zip(on).map(distance).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::common::testkit::cases;

    const TIE: f64 = Params::DEFAULT.tie;

    fn contenders(of: &[(f64, usize)]) -> Vec<Contender> {
        let one = |(slot, (value, socket)): (usize, &(f64, usize))| Contender {
            id: ThreadId { slot: slot as u32, generation: 0 },
            lock: None,
            value: *value,
            socket: *socket,
            pages: *socket,
            loss: 0.0,
        };
        of.iter().enumerate().map(one).collect()
    }

    fn shared_out(of: &[(f64, usize)], cpus: &[usize]) -> Vec<usize> {
        let stay = vec![0; cpus.len()];
        share_out(&contenders(of), cpus, &stay, SortBy::LockTime, &Params::DEFAULT)
    }

    fn moved(of: &[Contender], to: &[usize]) -> usize {
        of.iter().zip(to).filter(|(one, socket)| one.socket != **socket).count()
    }

    #[test]
    fn sizes_are_proportional_to_cpus_within_one_thread() {
        let sizes = |threads, cpus: &[usize]| sizes(threads, cpus, &[0; 4], &[0; 4]);
        assert_eq!(sizes(64, &[16, 16, 16, 16]), [16; 4]);
        assert_eq!(sizes(12, &[2, 4]), [4, 8]);
        assert_eq!(sizes(9, &[1, 1]), [5, 4], "more threads than CPUs");
        assert_eq!(sizes(2, &[4, 4, 4]), [1, 1, 0], "fewer threads than sockets");
        assert_eq!(sizes(0, &[4, 4]), [0, 0]);
    }

    /// Threads that may not be moved count where they are, and the remaining threads go where
    /// threads are.
    #[test]
    fn bound_threads_count_where_they_are() {
        assert_eq!(sizes(6, &[4, 4], &[4, 0], &[0, 0]), [1, 5]);
        assert_eq!(sizes(2, &[4, 4], &[8, 0], &[0, 0]), [0, 2]);
        assert_eq!(sizes(5, &[4, 4], &[0, 0], &[1, 4]), [2, 3]);
    }

    #[test]
    fn the_example_of_the_design_moves_two_of_four() {
        let found = shared_out(&[(0.80, 0), (0.75, 1), (0.10, 1), (0.05, 0)], &[2, 2]);
        assert_eq!(found, [0, 0, 1, 1]);
    }

    #[test]
    fn indistinguishable_threads_stay_where_they_are() {
        let equal = [(0.500, 1), (0.502, 0), (0.503, 1), (0.501, 0)];
        assert_eq!(shared_out(&equal, &[2, 2]), [1, 0, 1, 0]);
    }

    #[test]
    fn the_groups_go_where_most_of_their_threads_are() {
        // The threads that wait longest are on the last socket already.
        let of = [(0.9, 2), (0.9, 2), (0.5, 0), (0.5, 0), (0.1, 1), (0.1, 1)];
        assert_eq!(shared_out(&of, &[2, 2, 2]), [2, 2, 0, 0, 1, 1]);
    }

    #[test]
    fn threads_of_one_lock_share_a_group() {
        let mut of = contenders(&[(0.9, 0), (0.5, 0), (0.9, 1), (0.5, 1)]);
        for (one, lock) in of.iter_mut().zip([7, 7, 8, 8]) {
            one.lock = Some(lock);
        }
        assert_eq!(share_out(&of, &[2, 2], &[0, 0], SortBy::Lock, &Params::DEFAULT), [0, 0, 1, 1]);
        of.iter_mut().for_each(|one| one.lock = None);
        assert_eq!(
            share_out(&of, &[2, 2], &[0, 0], SortBy::Lock, &Params::DEFAULT),
            [0, 1, 0, 1],
            "as far as known"
        );
    }

    #[test]
    fn misses_are_evened_out() {
        let of = contenders(&[(900.0, 0), (800.0, 0), (200.0, 1), (100.0, 1)]);
        let found = share_out(&of, &[2, 2], &[0, 0], SortBy::Misses, &Params::DEFAULT);
        assert_eq!(found[0], found[3]);
        assert_eq!(found[1], found[2]);
        assert_ne!(found[0], found[1]);
    }

    #[test]
    fn the_spread_is_the_distance_within_a_socket() {
        let of = contenders(&[(0.8, 0), (0.4, 0), (0.2, 1), (0.2, 1)]);
        assert!((spread(&of, &[0, 0, 1, 1], 2) - 0.1).abs() < 1e-12);
        assert_eq!(spread(&[], &[], 2), 0.0);
        let mut of = contenders(&[(0.5, 0), (0.5, 0)]);
        (of[0].lock, of[1].lock) = (Some(7), Some(8));
        assert!(
            (spread(&of, &[0, 0], 2) - 0.25).abs() < 1e-12,
            "half of the neighbours wait for another lock"
        );
        assert_eq!(spread(&of, &[0, 1], 2), 0.0);
    }

    /// The fewest threads that move, over all sockets of its size to which each group can go.
    fn fewest(of: &[Contender], groups: &[Vec<usize>], sizes: &mut [usize]) -> usize {
        let Some((group, rest)) = groups.split_first() else { return 0 };
        let on = (0..sizes.len()).filter(|socket| sizes[*socket] == group.len());
        let tried = on.collect::<Vec<_>>().into_iter().map(|socket| {
            let size = std::mem::replace(&mut sizes[socket], usize::MAX);
            let come = group.iter().filter(|one| of[**one].socket != socket).count();
            let sum = come + fewest(of, rest, sizes);
            sizes[socket] = size;
            sum
        });
        tried.min().unwrap()
    }

    proptest! {
        #![proptest_config(cases(300))]

        /// Every thread has a socket, the sizes of the groups are kept, and the fewest threads
        /// move.
        #[test]
        fn every_thread_has_a_socket_and_the_fewest_move(
            cpus in prop::collection::vec(1usize..4, 2..5),
            threads in prop::collection::vec((0.0..1.0f64, 0usize..4), 0..14),
        ) {
            let threads: Vec<_> =
                threads.into_iter().map(|(wait, at)| (wait, at % cpus.len())).collect();
            let of = contenders(&threads);
            let found = shared_out(&threads, &cpus);
            let here = |socket: usize| of.iter().filter(|one| one.socket == socket).count();
            let here: Vec<usize> = (0..cpus.len()).map(here).collect();
            let expected = sizes(of.len(), &cpus, &vec![0; cpus.len()], &here);
            let got = |socket: usize| found.iter().filter(|on| **on == socket).count();
            prop_assert_eq!((0..cpus.len()).map(got).collect::<Vec<_>>(), expected.clone());
            let mut cuts = expected.clone();
            cuts.sort_unstable();
            let groups = cut(&order(&of, SortBy::LockTime, TIE), &cuts);
            prop_assert_eq!(moved(&of, &found), fewest(&of, &groups, &mut expected.clone()));
        }

        /// No thread on one socket waits for a time between those of two threads on another.
        #[test]
        fn groups_are_contiguous_in_waiting_time(
            threads in prop::collection::vec((0u32..50, 0usize..3), 0..20),
        ) {
            let threads: Vec<_> =
                threads.into_iter().map(|(wait, at)| (f64::from(wait) * 2.0 * TIE, at)).collect();
            let found = shared_out(&threads, &[2, 2, 2]);
            let range = |socket: usize| {
                let on = threads.iter().zip(&found).filter(|(_, on)| **on == socket);
                let waits = on.map(|((wait, _), _)| *wait);
                waits.fold((f64::MAX, f64::MIN), |(low, high), wait| {
                    (low.min(wait), high.max(wait))
                })
            };
            for (a, b) in [(0, 1), (0, 2), (1, 2)] {
                let (a, b) = (range(a), range(b));
                prop_assert!(a.1 <= b.0 || b.1 <= a.0, "{a:?} and {b:?} overlap");
            }
        }
    }
}
