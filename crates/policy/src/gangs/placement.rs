//! Which CPUs a program gets: close together, or spread.
//!
//! CPUs of one package share caches and a path to memory. A program with threads close
//! together shares these with itself and avoids other programs (*packed*: isolation). A program
//! with spread threads gets more cache and more memory bandwidth, and shares all caches with
//! the other programs (*spread*: throughput). Section 3.4, figures 3.7 to 3.9.
//!
//! Both are one descent through the machine. At each step the free CPUs are
//! divided, and each part gets a number of the threads:
//!
//! - a *domain* step divides by what CPUs share. Packed fills one domain where the threads fit
//!   whole: a faster one first, then the one with the least room, so that large holes stay for
//!   large programs. Where none is large enough it fills the largest and goes on with the rest:
//!   that spans the fewest domains. Spread gives one thread to each domain in turn.
//! - a *rank* step divides by how good a CPU is, and uses up the better ones first.
//!
//! | packed | spread |
//! |---|---|
//! | memory node of several packages | siblings: first of each core, second, ... |
//! | package (one with enough idle cores, if any) | memory node of several packages |
//! | siblings: first of each core, second, ... | package |
//! | memory node in a package | memory node in a package |
//! | last-level cache | last-level cache |
//! | speed | L2 |
//! | L2 | speed |
//!
//! Where each package is a memory node, as on most machines, the steps for nodes divide nothing.
//!
//! The thesis' machines had equal cores without siblings, so two decisions are ours. Two threads on
//! one core are slower than on two, so packed uses every core of its packages once before it uses
//! one twice; it does not take another package for that. A program waits for its slowest thread, so
//! a fast CPU is worth more than a shared L2.
//!
//! Between choices that are equally good, the one wins that keeps more of the CPUs of last time:
//! their caches are warm.
//!
//! Where cores are of several kinds, [`one_kind`] chooses the CPUs that take part.

pub(crate) mod one_kind;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cosched_core::{Cpu, CpuSet, Level, Topology};

use crate::common::unknown::by_name;

/// Where the threads of one program go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Placement {
    /// Close together: fewest packages, then fewest memory nodes, last-level caches, L2 caches.
    #[default]
    Packed,
    /// Spread: package by package in turn, siblings of a used core last.
    Spread,
}

impl Placement {
    fn steps(self) -> &'static [DescentStep] {
        use Level::{L2, Llc, Package};
        match self {
            Placement::Packed => &[
                DescentStep::WideNode,
                DescentStep::Domain(Package),
                SIBLINGS,
                DescentStep::Node,
                DescentStep::Domain(Llc),
                SPEED,
                DescentStep::Domain(L2),
            ],
            Placement::Spread => &[
                SIBLINGS,
                DescentStep::WideNode,
                DescentStep::Domain(Package),
                DescentStep::Node,
                DescentStep::Domain(Llc),
                DescentStep::Domain(L2),
                SPEED,
            ],
        }
    }

    /// How many of `needed` threads each domain gets.
    fn shares(self, domains: &[Vec<Slot>], needed: usize) -> Vec<usize> {
        match self {
            Placement::Packed => fill_whole(domains, needed),
            Placement::Spread => deal_in_turn(domains, needed),
        }
    }
}

by_name!(Placement, "placement", [Packed: "packed", Spread: "spread"]);

/// Chooses exactly `threads` of the `free` CPUs; `None` if there are fewer.
///
/// `prefer` are the CPUs that the program had last; they win between equally good choices.
/// CPUs that the topology does not know are not used. Which CPUs outside of `cpus`, those of the
/// run, are busy is not known: they count as idle.
pub fn place(
    topology: &Topology,
    cpus: &CpuSet,
    free: &CpuSet,
    threads: usize,
    placement: Placement,
    prefer: Option<&CpuSet>,
) -> Option<CpuSet> {
    let slots = slots(topology, cpus, free, prefer.unwrap_or(&CpuSet::EMPTY));
    (threads <= slots.len()).then(|| {
        let mut chosen = CpuSet::EMPTY;
        choose(slots, threads, placement, placement.steps(), &mut chosen);
        chosen
    })
}

/// A free CPU, with the criteria of the choice.
#[derive(Clone, Copy)]
struct Slot {
    id: usize,
    groups: [u16; Level::ALL.len()],
    node: u16,
    /// Its memory node, if nodes of the machine are wider than packages.
    wide_node: u16,
    /// 0 for the fastest CPUs.
    slowness: u16,
    /// How many siblings of its core are used before this one.
    layer: u16,
    /// Whether the program had it last time.
    kept: bool,
}

enum DescentStep {
    Domain(Level),
    /// Memory nodes of several packages each.
    WideNode,
    Node,
    Rank(fn(&Slot) -> u16),
}

impl DescentStep {
    /// The number by which the step divides.
    fn of(&self, slot: &Slot) -> u16 {
        match self {
            DescentStep::Domain(level) => slot.groups[*level as usize],
            DescentStep::WideNode => slot.wide_node,
            DescentStep::Node => slot.node,
            DescentStep::Rank(rank) => rank(slot),
        }
    }
}

/// Whether any memory node has CPUs of several packages.
fn has_wide_nodes(topology: &Topology) -> bool {
    let mut package_of: BTreeMap<u16, u16> = BTreeMap::new();
    topology.cpus().iter().any(|cpu| {
        let package = cpu.group(Level::Package);
        *package_of.entry(cpu.node).or_insert(package) != package
    })
}

const SIBLINGS: DescentStep = DescentStep::Rank(|slot| slot.layer);
const SPEED: DescentStep = DescentStep::Rank(|slot| slot.slowness);

fn slots(topology: &Topology, cpus: &CpuSet, free: &CpuSet, prefer: &CpuSet) -> Vec<Slot> {
    let cores = topology.cpus().iter().map(|cpu| usize::from(cpu.group(Level::Core)) + 1).max();
    let mut used = vec![0; cores.unwrap_or(0)];
    // A sibling that is not free keeps its core busy, whichever program of the run has it.
    let is_busy = |cpu: &&Cpu| cpus.contains(cpu.id) && !free.contains(cpu.id);
    for cpu in topology.cpus().iter().filter(is_busy) {
        used[usize::from(cpu.group(Level::Core))] += 1;
    }
    let are_wide = has_wide_nodes(topology);
    let free_cpus = topology.cpus().iter().filter(|cpu| free.contains(cpu.id));
    let mut slots: Vec<Slot> = free_cpus
        .map(|cpu| Slot {
            id: cpu.id,
            groups: cpu.groups,
            node: cpu.node,
            wide_node: if are_wide { cpu.node } else { 0 },
            slowness: u16::MAX - cpu.capacity,
            layer: 0,
            kept: prefer.contains(cpu.id),
        })
        .collect();
    slots.sort_by_key(|slot| (!slot.kept, slot.id));
    for slot in &mut slots {
        let used = &mut used[usize::from(slot.groups[Level::Core as usize])];
        slot.layer = *used;
        *used += 1;
    }
    slots
}

fn choose(
    mut slots: Vec<Slot>,
    mut needed: usize,
    placement: Placement,
    steps: &[DescentStep],
    chosen: &mut CpuSet,
) {
    match steps.split_first() {
        _ if needed == 0 => {}
        None => {
            slots.sort_by_key(|slot| (!slot.kept, slot.id));
            for slot in slots.into_iter().take(needed) {
                chosen.insert(slot.id);
            }
        }
        Some((DescentStep::Rank(rank), rest)) => {
            for class in divided(slots, rank) {
                let share = needed.min(class.len());
                needed -= share;
                choose(class, share, placement, rest, chosen);
            }
        }
        Some((domain, rest)) => {
            let domains = divided(slots, |slot| domain.of(slot));
            let shares = placement.shares(&domains, needed);
            for (domain, share) in domains.into_iter().zip(shares) {
                choose(domain, share, placement, rest, chosen);
            }
        }
    }
}

/// The slots by the number that `by` gives, smallest number first.
fn divided(slots: Vec<Slot>, by: impl Fn(&Slot) -> u16) -> Vec<Vec<Slot>> {
    let mut parts: BTreeMap<u16, Vec<Slot>> = BTreeMap::new();
    for slot in slots {
        parts.entry(by(&slot)).or_default().push(slot);
    }
    parts.into_values().collect()
}

/// Packed: the whole of the largest domains, and the rest where it fits best.
fn fill_whole(domains: &[Vec<Slot>], mut needed: usize) -> Vec<usize> {
    let mut shares = vec![0; domains.len()];
    while needed > 0 {
        let open = || (0..domains.len()).filter(|&d| shares[d] == 0);
        let best = open()
            .filter(|&d| domains[d].len() >= needed)
            .min_by_key(|&d| {
                let domain = &domains[d];
                let crowded = idle_cores(domain) < needed;
                (crowded, slowness(domain), domain.len(), Reverse(kept(domain).min(needed)))
            })
            .or_else(|| {
                open().min_by_key(|&d| {
                    let domain = &domains[d];
                    (Reverse(domain.len()), slowness(domain), Reverse(kept(domain)))
                })
            });
        let Some(best) = best else { break };
        shares[best] = needed.min(domains[best].len());
        needed -= shares[best];
    }
    shares
}

/// Spread: one to each domain, again and again; of equally fast ones the emptier first, since fewer
/// other programs are there.
fn deal_in_turn(domains: &[Vec<Slot>], mut needed: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..domains.len()).collect();
    order.sort_by_key(|&d| {
        let domain = &domains[d];
        (slowness(domain), Reverse(domain.len()), Reverse(kept(domain)))
    });
    let mut shares = vec![0; domains.len()];
    while needed > 0 {
        let before = needed;
        for &d in &order {
            if needed > 0 && shares[d] < domains[d].len() {
                shares[d] += 1;
                needed -= 1;
            }
        }
        if needed == before {
            break;
        }
    }
    shares
}

fn idle_cores(domain: &[Slot]) -> usize {
    domain.iter().filter(|slot| slot.layer == 0).count()
}

fn kept(domain: &[Slot]) -> usize {
    domain.iter().filter(|slot| slot.kept).count()
}

/// The slowness of the fastest CPU in the domain.
fn slowness(domain: &[Slot]) -> u16 {
    domain.iter().map(|slot| slot.slowness).min().unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests;
