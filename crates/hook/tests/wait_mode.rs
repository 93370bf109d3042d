//! What a waiter does, by what it knows.

#![allow(dead_code)]

#[path = "../src/barrier/wait_mode.rs"]
mod wait_mode;

use wait_mode::{Laggards, SPIN, SpinLimits, WaitMode, WaiterAction};

const PATIENCE: SpinLimits = SpinLimits { running: 40_000, unknown: 3_000 };

/// What a donating waiter does after so long.
fn donating(spent: u64, laggards: Laggards) -> WaiterAction {
    WaitMode::Donate.act(spent, PATIENCE, || laggards)
}

#[test]
fn a_waiter_sleeps_for_laggards_queued_here_or_blocked() {
    for laggards in [Laggards::QueuedHere, Laggards::Blocked] {
        assert_eq!(donating(0, laggards), WaiterAction::Sleep, "{laggards:?}");
    }
    for laggards in
        [Laggards::Run, Laggards::Unknown, Laggards::WokenElsewhere, Laggards::QueuedElsewhere]
    {
        assert_eq!(donating(0, laggards), WaiterAction::Spin, "{laggards:?}");
    }
}

#[test]
fn a_waiter_yields_to_its_own_program_for_a_limited_time() {
    assert_eq!(donating(PATIENCE.running - 1, Laggards::NextHere), WaiterAction::Yield);
    assert_eq!(donating(PATIENCE.running, Laggards::NextHere), WaiterAction::Sleep);
    assert!(Laggards::NextHere > Laggards::Blocked, "it can be helped");
}

/// Algorithm 3 of the paper: a waiter donates for as long as a laggard is queued.
#[test]
fn a_waiter_gives_its_cpu_to_a_laggard_that_can_have_it() {
    for spent in [0, PATIENCE.running, u64::MAX] {
        assert_eq!(donating(spent, Laggards::CanHave), WaiterAction::Donate);
    }
    let others = [Laggards::Blocked, Laggards::Run, Laggards::Unknown, Laggards::QueuedHere];
    assert!(others.into_iter().all(|other| other < Laggards::CanHave), "it can be helped");
}

#[test]
fn only_learning_wait_modes_make_fewer_first_checks() {
    let checks = |wait_mode: WaitMode| wait_mode.first_checks(3, 64);
    assert_eq!([WaitMode::Donate, WaitMode::Spread].map(checks), [3, 3]);
    assert_eq!(
        [WaitMode::Spin, WaitMode::SpinThenBlock, WaitMode::Block, WaitMode::Yield].map(checks),
        [64, 64, 1, 1]
    );
}

#[test]
fn a_waiter_spins_longer_while_laggards_run_but_not_for_ever() {
    for laggards in [Laggards::Unknown, Laggards::WokenElsewhere, Laggards::QueuedElsewhere] {
        assert_eq!(donating(PATIENCE.unknown - 1, laggards), WaiterAction::Spin);
        assert_eq!(donating(PATIENCE.unknown, laggards), WaiterAction::Sleep);
    }
    assert_eq!(donating(PATIENCE.running - 1, Laggards::Run), WaiterAction::Spin);
    assert_eq!(donating(PATIENCE.running, Laggards::Run), WaiterAction::Sleep);
}

#[test]
fn spreading_threads_move_for_queued_laggards_only() {
    let does = |laggards| WaitMode::Spread.act(0, PATIENCE, || laggards);
    assert_eq!(does(Laggards::QueuedHere), WaiterAction::Spread);
    assert_eq!(does(Laggards::QueuedElsewhere), WaiterAction::Join);
    assert_eq!(does(Laggards::WokenElsewhere), WaiterAction::Spin);
    assert_eq!(does(Laggards::Blocked), WaiterAction::Sleep);
}

#[test]
fn a_laggard_that_can_be_helped_counts_more() {
    let order = [Laggards::QueuedElsewhere, Laggards::QueuedHere, Laggards::Run, Laggards::Blocked];
    assert_eq!(order.into_iter().max(), Some(Laggards::QueuedHere));
    assert_eq!([Laggards::Unknown, Laggards::Run].into_iter().max(), Some(Laggards::Unknown));
}

#[test]
fn wait_modes_without_donation_ask_for_no_laggards() {
    let none = || -> Laggards { unreachable!("asked for laggards") };
    assert_eq!(WaitMode::Spin.act(u64::MAX, PATIENCE, none), WaiterAction::Spin);
    assert_eq!(WaitMode::Block.act(0, PATIENCE, none), WaiterAction::Sleep);
    assert_eq!(WaitMode::Yield.act(u64::MAX, PATIENCE, none), WaiterAction::Yield);
    assert_eq!(WaitMode::Tidon.act(u64::MAX, PATIENCE, none), WaiterAction::DonateToAny);
    assert_eq!(WaitMode::LoadControl.act(0, PATIENCE, none), WaiterAction::SleepInSlot);
    assert_eq!(WaitMode::SpinThenBlock.act(SPIN - 1, PATIENCE, none), WaiterAction::Spin);
    assert_eq!(WaitMode::SpinThenBlock.act(SPIN, PATIENCE, none), WaiterAction::Sleep);
}

#[test]
fn every_wait_mode_is_found_by_its_name_and_nothing_else_is() {
    for name in ["spin", "block", "spin-then-block", "yield", "donate", "tidon", "load-control"] {
        assert!(WaitMode::number(name.as_bytes()).and_then(WaitMode::numbered).is_some(), "{name}");
    }
    assert_eq!(WaitMode::number(b"donate").and_then(WaitMode::numbered), Some(WaitMode::Donate));
    assert_eq!(
        (WaitMode::number(b"spi"), WaitMode::number(b""), WaitMode::numbered(8)),
        (None, None, None)
    );
}
