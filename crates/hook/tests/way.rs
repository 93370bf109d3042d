//! What a waiter does, by what it knows.

#![allow(dead_code)]

#[path = "../src/barrier/way.rs"]
mod way;

use way::{Act, Laggards, SPIN, Way};

const COST: u64 = 10_000;

/// What a donating waiter does after so long.
fn donating(spent: u64, laggards: Laggards) -> Act {
    Way::Donate.act(spent, COST, || laggards)
}

#[test]
fn a_waiter_keeps_its_cpu_only_while_every_laggard_runs_or_nothing_is_known() {
    assert_eq!(donating(0, Laggards::Run), Act::LookOn);
    assert_eq!(donating(0, Laggards::Unknown), Act::LookOn);
    assert_eq!(donating(0, Laggards::QueuedElsewhere), Act::GiveWay);
    assert_eq!(donating(0, Laggards::QueuedHere), Act::GiveWay);
    assert_eq!(donating(0, Laggards::Blocked), Act::Sleep);
}

#[test]
fn whatever_the_laggards_do_a_waiter_sleeps_once_it_has_waited_for_four_wake_ups() {
    for laggards in [
        Laggards::Run,
        Laggards::Unknown,
        Laggards::QueuedElsewhere,
        Laggards::Blocked,
        Laggards::QueuedHere,
    ] {
        assert_eq!(donating(4 * COST, laggards), Act::Sleep, "{laggards:?}");
    }
    assert_eq!(donating(4 * COST - 1, Laggards::Run), Act::LookOn);
    assert_eq!(donating(COST, Laggards::Unknown), Act::Sleep);
}

#[test]
fn the_laggard_that_can_be_helped_counts_more_than_one_that_cannot() {
    let order = [Laggards::QueuedElsewhere, Laggards::QueuedHere, Laggards::Run, Laggards::Blocked];
    assert_eq!(order.into_iter().max(), Some(Laggards::QueuedHere));
    assert_eq!([Laggards::Unknown, Laggards::Run].into_iter().max(), Some(Laggards::Unknown));
}

#[test]
fn the_other_ways_ask_nobody() {
    let nobody = || -> Laggards { unreachable!("asked for laggards") };
    assert_eq!(Way::Spin.act(u64::MAX, COST, nobody), Act::LookOn);
    assert_eq!(Way::Block.act(0, COST, nobody), Act::Sleep);
    assert_eq!(Way::Yield.act(u64::MAX, COST, nobody), Act::GiveWay);
    assert_eq!(Way::SpinThenBlock.act(SPIN - 1, COST, nobody), Act::LookOn);
    assert_eq!(Way::SpinThenBlock.act(SPIN, COST, nobody), Act::Sleep);
}

#[test]
fn every_way_is_found_by_its_name_and_nothing_else_is() {
    for name in ["spin", "block", "spin-then-block", "yield", "donate"] {
        assert!(Way::number(name.as_bytes()).and_then(Way::numbered).is_some(), "{name}");
    }
    assert_eq!(Way::number(b"donate").and_then(Way::numbered), Some(Way::Donate));
    assert_eq!((Way::number(b"spi"), Way::number(b""), Way::numbered(5)), (None, None, None));
}
