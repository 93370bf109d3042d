//! The cost for a thread of leaving its pages, and which threads are held by it.
//!
//! *Problem.* A thread's memory lies on the node on which the thread touched it first. If the
//! thread is moved to another node, each of its last-level misses goes there and back. A thread
//! that misses often loses more by that than it can gain at its locks.
//!
//! *Model.* A thread that misses the last-level cache `m` times per second of its life, and runs
//! away from its pages, loses `m` x [`Params::farther`] of each second. Its gain is the decrease of
//! its distance to the threads of its socket, as a share of its time. This assumes that the thread
//! waits less by all of that time, which is an upper bound. Of the possible pairings of groups and
//! sockets, the one with the least loss is used. A thread that still loses more than it gains is
//! *held*: it stays where its pages are, and counts there. The others are divided again, until no
//! other thread is to be held.
//!
//! *Where pages lie* is where a thread was when it was first seen, before it was moved. Pages are
//! assumed to stay there. Where the kernel moves them after the thread (NUMA balancing), the thread
//! is held longer than necessary. Between sockets of one memory node nothing is lost. A thread
//! with misses that cannot be counted is not held.
//!
//! Ours: the slides move threads without regard to their misses.

use cosched_core::{CpuSet, Topology};

use super::SortBy;
use super::grouping::{Contender, distances, share_out};
use super::params::Params;

/// The share of its time that a thread with this many misses per second loses away from its pages,
/// if a miss takes longer there by this many seconds.
pub(super) fn loss(misses_per_second: f64, farther: f64) -> f64 {
    misses_per_second * farther
}

/// The memory node of each socket. A socket of several nodes, or of an unknown one, has none.
pub(super) fn nodes(sockets: &[CpuSet], topology: &Topology) -> Vec<Option<u16>> {
    let node = |socket: &CpuSet| {
        let mut nodes =
            topology.cpus().iter().filter(|cpu| socket.contains(cpu.id)).map(|cpu| cpu.node);
        let first = nodes.next()?;
        nodes.all(|node| node == first).then_some(first)
    };
    sockets.iter().map(node).collect()
}

/// The socket of each contender, like [`share_out`], but a thread that would lose more than it
/// gains stays at its pages.
pub(super) fn share_out_but_hold(
    contenders: &[Contender],
    cpus: &[usize],
    stay: &[usize],
    sort: SortBy,
    nodes: &[Option<u16>],
    params: &Params,
) -> Vec<usize> {
    let on: Vec<usize> = contenders.iter().map(|one| one.socket).collect();
    let before = distances(contenders, &on, cpus.len());
    let mut held = vec![false; contenders.len()];
    loop {
        let free: Vec<usize> = (0..contenders.len()).filter(|one| !held[*one]).collect();
        let mut stay = stay.to_vec();
        let mut to: Vec<usize> = contenders.iter().map(|one| one.pages).collect();
        (0..contenders.len()).filter(|one| held[*one]).for_each(|one| stay[to[one]] += 1);
        let movable: Vec<Contender> = free.iter().map(|one| contenders[*one]).collect();
        let shared = share_out(&movable, cpus, &stay, sort, params);
        free.iter().zip(shared).for_each(|(one, socket)| to[*one] = socket);
        let after = distances(contenders, &to, cpus.len());
        let loses = |one: &usize| {
            let Contender { pages, loss, .. } = contenders[*one];
            let leaves =
                pages != to[*one] && (nodes[pages].is_none() || nodes[pages] != nodes[to[*one]]);
            leaves && loss > before[*one] - after[*one] && loss > 0.0
        };
        let losers: Vec<usize> = free.into_iter().filter(loses).collect();
        if losers.is_empty() {
            return to;
        }
        losers.into_iter().for_each(|one| held[one] = true);
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::ThreadId;

    use super::*;

    /// Threads with their shares of time at locks, the socket where they are and have their pages,
    /// and their misses per second.
    fn contenders(of: &[(f64, usize, f64)]) -> Vec<Contender> {
        let one = |(slot, (value, socket, misses)): (usize, &(f64, usize, f64))| Contender {
            id: ThreadId { slot: slot as u32, generation: 0 },
            lock: None,
            value: *value,
            socket: *socket,
            pages: *socket,
            loss: loss(*misses, Params::DEFAULT.farther),
        };
        of.iter().enumerate().map(one).collect()
    }

    fn shared_out(of: &[(f64, usize, f64)], nodes: &[Option<u16>]) -> Vec<usize> {
        let (contenders, sort) = (contenders(of), SortBy::LockTime);
        share_out_but_hold(&contenders, &[2, 2], &[0, 0], sort, nodes, &Params::DEFAULT)
    }

    const APART: [Option<u16>; 2] = [Some(0), Some(1)];

    #[test]
    fn a_thousand_misses_in_a_millisecond_cost_six_percent() {
        assert!((loss(1e6, Params::DEFAULT.farther) - 0.06).abs() < 1e-12);
    }

    /// A thread stays with its pages where moving loses, and the other threads are divided around
    /// it.
    #[test]
    fn a_thread_stays_with_its_pages_where_moving_loses() {
        let plain = [(0.8, 0, 0.0), (0.1, 0, 0.0), (0.8, 1, 0.0), (0.1, 1, 0.0)];
        assert_eq!(shared_out(&plain, &APART), [0, 1, 0, 1]);
        // The third thread would gain 0.35 and lose 0.6, so the threads that wait long go where it
        // is.
        let bound = [(0.8, 0, 0.0), (0.1, 0, 0.0), (0.8, 1, 1e7), (0.1, 1, 0.0)];
        assert_eq!(shared_out(&bound, &APART), [1, 0, 1, 0]);
        // Both threads that wait long miss often: no thread gains as much as bringing them together
        // would cost.
        let both = [(0.8, 0, 1e7), (0.1, 0, 1e7), (0.8, 1, 1e7), (0.1, 1, 1e7)];
        assert_eq!(shared_out(&both, &APART), [0, 0, 1, 1]);
    }

    #[test]
    fn a_few_misses_or_one_node_bind_no_thread() {
        let few = [(0.8, 0, 1e5), (0.1, 0, 1e5), (0.8, 1, 1e5), (0.1, 1, 1e5)];
        assert_eq!(shared_out(&few, &APART), [0, 1, 0, 1]);
        let many = few.map(|(value, socket, _)| (value, socket, 1e7));
        assert_eq!(shared_out(&many, &[Some(0); 2]), [0, 1, 0, 1]);
    }

    #[test]
    fn a_socket_has_a_node_if_its_cpus_share_one() {
        let machine = Topology::regular(2, 1, 2, 1, 1);
        let sockets = ["0-1", "2-3", "1-2"].map(|cpus| cpus.parse().unwrap());
        let found = nodes(&sockets, &machine);
        assert!(found[0].is_some() && found[1].is_some() && found[0] != found[1], "{found:?}");
        assert_eq!(found[2], None);
    }
}
