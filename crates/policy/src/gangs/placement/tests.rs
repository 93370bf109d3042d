use cosched_core::Cpu;
use proptest::prelude::*;

use super::*;
use crate::common::testkit::cases;
use Placement::{Packed, Spread};

/// Figures 3.7 to 3.9: four packages of four cores, an L2 per two, an L3 per package.
fn figure_3_7() -> Topology {
    Topology::regular(4, 1, 2, 2, 1)
}

/// Figure 5.1: four packages of six cores, an L2 per two, an L3 per package.
fn figure_5_1() -> Topology {
    Topology::regular(4, 1, 3, 2, 1)
}

/// Four fast cores with two siblings each (CPUs 0-7) and two clusters of four slow cores (8-15) of
/// this capacity.
pub(super) fn hybrid(capacity: u16) -> Topology {
    let fast = (0..8).map(|id| (id, id / 2, id / 2, 1024));
    let slow = (8..16).map(|id| (id, id, 4 + (id - 8) / 4, capacity));
    let cpu = |(id, core, l2, capacity): (u16, u16, u16, u16)| Cpu {
        id: usize::from(id),
        groups: [0, 0, l2, core],
        node: 0,
        capacity,
    };
    Topology::new(fast.chain(slow).map(cpu).collect())
}

pub(super) fn cpus(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn on(machine: &Topology, placement: Placement, threads: usize) -> String {
    from(machine, placement, threads, &machine.all())
}

fn from(machine: &Topology, placement: Placement, threads: usize, free: &CpuSet) -> String {
    place(machine, &machine.all(), free, threads, placement, None).unwrap().to_string()
}

/// A machine of four packages of four cores with memory nodes of its own.
fn with_nodes(node: fn(&Cpu) -> u16) -> Topology {
    let regular = figure_3_7();
    Topology::new(regular.cpus().iter().map(|cpu| Cpu { node: node(cpu), ..*cpu }).collect())
}

/// Two packages share a node. Package 0 is taken: eight threads fit whole into the node of the
/// packages 2 and 3.
#[test]
fn packed_takes_packages_of_one_memory_node() {
    let free = cpus("4-15");
    assert_eq!(from(&figure_3_7(), Packed, 8, &free), "4-11", "no node has several packages");
    let wide = with_nodes(|cpu| cpu.groups[0] / 2);
    assert_eq!(from(&wide, Packed, 8, &free), "8-15");
    assert_eq!(from(&wide, Packed, 4, &free), "4-7", "the node with the least room");
    assert_eq!(on(&wide, Spread, 2), "0,8", "one in each node");
    assert_eq!(on(&wide, Spread, 4), "0,4,8,12");
}

/// Each package has two nodes, which the kernel numbers alternately.
#[test]
fn placement_knows_the_memory_nodes_within_a_package() {
    let fine = with_nodes(|cpu| cpu.groups[0] * 2 + cpu.id as u16 % 2);
    assert_eq!(on(&fine, Packed, 2), "0,2", "in one node, not behind one L2");
    assert_eq!(on(&fine, Packed, 4), "0-3");
    assert_eq!(from(&fine, Spread, 2, &cpus("0-3")), "0-1", "a node each");
}

/// The fifth thread goes into the first package, away from the L2 cache of the first thread.
#[test]
fn spread_gives_the_fifth_thread_an_unused_l2() {
    assert_eq!(on(&figure_3_7(), Spread, 4), "0,4,8,12");
    assert_eq!(on(&figure_3_7(), Spread, 5), "0,2,4,8,12");
}

#[test]
fn packed_fills_the_first_package_before_it_uses_another() {
    assert_eq!(on(&figure_3_7(), Packed, 4), "0-3");
    assert_eq!(on(&figure_3_7(), Packed, 5), "0-4");
}

/// The packages have six cores.
#[test]
fn the_seventh_packed_thread_opens_a_package() {
    assert_eq!(on(&figure_5_1(), Packed, 6), "0-5");
    assert_eq!(on(&figure_5_1(), Packed, 7), "0-6");
    assert_eq!(on(&figure_5_1(), Spread, 7), "0,2,6,8,12,14,18");
}

#[test]
fn packed_shares_an_l2_when_two_threads_can() {
    let one_core_of_each_l2_and_one_whole_l2 = cpus("0,2,4-5");
    assert_eq!(from(&figure_5_1(), Packed, 2, &one_core_of_each_l2_and_one_whole_l2), "4-5");
}

#[test]
fn packed_leaves_large_holes_whole() {
    // Four CPUs are free in package 0, two in package 1, six in packages 2 and 3.
    let free = cpus("0-3,6-7,12-23");
    assert_eq!(from(&figure_5_1(), Packed, 2, &free), "6-7");
    assert_eq!(from(&figure_5_1(), Packed, 3, &free), "0-2");
    assert_eq!(from(&figure_5_1(), Packed, 8, &free), "6-7,12-17");
}

#[test]
fn spread_starts_where_the_fewest_programs_are() {
    // A program has two CPUs of package 0 and two of package 1.
    let free = figure_3_7().all().difference(&cpus("0,2,4,6"));
    assert_eq!(from(&figure_3_7(), Spread, 2, &free), "8,12");
}

/// Packed takes siblings before it takes another package.
#[test]
fn packed_uses_each_core_once_before_siblings() {
    let machine = Topology::regular(2, 1, 4, 1, 2);
    assert_eq!(on(&machine, Packed, 4), "0,2,4,6");
    assert_eq!(on(&machine, Packed, 5), "0-2,4,6");
    assert_eq!(on(&machine, Packed, 8), "0-7");
    assert_eq!(on(&machine, Packed, 9), "0-8");
}

/// A package with enough idle cores comes before a tighter one without enough.
#[test]
fn packed_prefers_a_package_with_enough_idle_cores() {
    let machine = Topology::regular(2, 1, 4, 1, 2);
    assert_eq!(from(&machine, Packed, 4, &cpus("0-3,8-15")), "8,10,12,14");
}

#[test]
fn a_core_with_a_busy_sibling_comes_after_idle_cores() {
    let machine = Topology::regular(1, 1, 4, 1, 2);
    assert_eq!(from(&machine, Packed, 2, &cpus("1,3-7")), "4,6");
    assert_eq!(from(&machine, Spread, 3, &cpus("1,3-7")), "1,4,6");
}

/// CPUs 0, 1, 2 and 4 are those of the run: only the first two share a core.
#[test]
fn siblings_outside_of_the_run_count_as_idle() {
    let (machine, run) = (Topology::regular(1, 1, 4, 1, 2), cpus("0-2,4"));
    let on = |free: &str, threads, placement| {
        place(&machine, &run, &cpus(free), threads, placement, None).unwrap().to_string()
    };
    for placement in Placement::ALL {
        assert_eq!(on("0-2,4", 3, placement), "0,2,4", "{placement}");
        assert_eq!(on("1-2,4", 2, placement), "2,4", "another program has CPU 0");
    }
}

#[test]
fn spread_uses_siblings_only_when_every_core_has_a_thread() {
    let machine = Topology::regular(2, 1, 2, 1, 2);
    assert_eq!(on(&machine, Spread, 4), "0,2,4,6");
    assert_eq!(on(&machine, Spread, 5), "0-2,4,6");
}

#[test]
fn packed_stays_behind_one_of_several_last_level_caches() {
    let machine = Topology::regular(1, 2, 4, 1, 1);
    assert_eq!(on(&machine, Packed, 3), "0-2");
    assert_eq!(on(&machine, Spread, 3), "0-1,4");
    // The second cache has exactly enough room.
    assert_eq!(from(&machine, Packed, 3, &cpus("0-3,5-7")), "5-7");
}

/// Slow cores come after fast cores, and before the siblings of fast ones.
#[test]
fn fast_cpus_come_first_and_slow_cores_before_siblings() {
    for placement in Placement::ALL {
        assert_eq!(on(&hybrid(600), placement, 4), "0,2,4,6", "{placement}");
    }
    assert_eq!(on(&hybrid(600), Packed, 6), "0,2,4,6,8-9");
    assert_eq!(on(&hybrid(600), Spread, 6), "0,2,4,6,8,12");
    assert_eq!(on(&hybrid(600), Packed, 13), "0-2,4,6,8-15");
}

#[test]
fn earlier_cpus_only_decide_between_equal_choices() {
    let machine = figure_3_7();
    let again = |placement, threads, last: &str| {
        let all = machine.all();
        place(&machine, &all, &all, threads, placement, Some(&cpus(last))).unwrap().to_string()
    };
    assert_eq!(again(Packed, 2, "10-11"), "10-11");
    assert_eq!(again(Spread, 2, "7,13"), "7,13");
    assert_eq!(again(Packed, 2, "3,7"), "2-3", "two packages are worse than one");
}

#[test]
fn too_few_cpus_are_no_placement() {
    let on = |machine: &Topology, free: &str, threads| {
        place(machine, &machine.all(), &cpus(free), threads, Packed, None)
    };
    assert_eq!(on(&figure_3_7(), "0-2", 4), None);
    assert_eq!(on(&Topology::regular(1, 1, 1, 2, 1), "0-3", 3), None);
}

#[test]
fn unknown_placements_are_refused_with_the_known_ones() {
    let error = "wide".parse::<Placement>().unwrap_err().to_string();
    assert_eq!(error, "there is no placement 'wide'; choose from packed, spread");
    assert_eq!("spread".parse(), Ok(Spread));
}

/// The fewest packages that can hold `threads`, from the free CPUs of each.
fn fewest_packages(machine: &Topology, free: &CpuSet, threads: usize) -> usize {
    let mut room = BTreeMap::new();
    for cpu in machine.cpus().iter().filter(|cpu| free.contains(cpu.id)) {
        *room.entry(cpu.group(Level::Package)).or_insert(0) += 1;
    }
    let mut room: Vec<usize> = room.into_values().collect();
    room.sort_unstable_by_key(|n| Reverse(*n));
    let packages_for = |n: usize| room[..n].iter().sum::<usize>() >= threads;
    (0..=room.len()).find(|n| packages_for(*n)).unwrap()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_placement_has_exactly_the_requested_number_of_cpus(
        shape in (1u16..4, 1u16..3, 1u16..4, 1u16..3, 1u16..3),
        free in proptest::collection::vec(any::<bool>(), 144),
        wish in 0usize..150,
        last in proptest::collection::vec(any::<bool>(), 144),
    ) {
        let machine = Topology::regular(shape.0, shape.1, shape.2, shape.3, shape.4);
        let pick = |bits: &[bool]| machine.all().iter().filter(|c| bits[*c]).collect::<CpuSet>();
        let (free, last) = (pick(&free), pick(&last));
        let threads = wish % (free.len() + 2);
        for placement in Placement::ALL {
            match place(&machine, &machine.all(), &free, threads, placement, Some(&last)) {
                None => prop_assert!(threads > free.len()),
                Some(chosen) => {
                    prop_assert_eq!(chosen.len(), threads);
                    prop_assert!(chosen.is_subset(&free));
                    let spanned = machine.spanned(&chosen, Level::Package);
                    if placement == Packed {
                        prop_assert_eq!(spanned, fewest_packages(&machine, &free, threads));
                    } else if shape.4 == 1 {
                        let most = machine.spanned(&free, Level::Package);
                        prop_assert_eq!(spanned, most.min(threads));
                    }
                }
            }
        }
    }
}
