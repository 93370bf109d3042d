use super::super::waiting::{AARCH64, X86_64};
use super::*;

/// A page of code at this address, with one waiting instruction.
const PAGE: u64 = 0x5000;
const PAUSE: u64 = PAGE + 0x40;
const WAIT: WaitInstruction = WaitInstruction { from: PAUSE, to: PAUSE + 2 };

fn read_page(pause: &[u8], address: u64, into: &mut [u8]) -> bool {
    for (byte, at) in into.iter_mut().zip(address..) {
        let inside = at.checked_sub(PAUSE).and_then(|at| pause.get(at as usize));
        *byte = inside.copied().unwrap_or(0x01);
    }
    (PAGE - 0x100..PAGE + 0x1000).contains(&address)
}

fn judged(samples: &[u64], known: &[WaitInstruction]) -> JudgedSamples {
    let known = known.iter().copied().collect();
    judge(&[samples.to_vec()], &known, &X86_64, |at, into| read_page(&[0xf3, 0x90], at, into))
}

/// The samples of a thread that spins, then computes, then spins.
fn mixed() -> Vec<u64> {
    let (at, behind) = (PAUSE, PAUSE + 2);
    vec![behind, behind, at, PAGE + 0x300, PAGE + 0x304, PAGE + 0x900, behind, at, behind, behind]
}

#[test]
fn samples_at_a_pause_are_of_a_spin_loop() {
    let judged = judged(&mixed(), &[]);
    assert_eq!((judged.samples, judged.loops), (10, BTreeMap::from([(WAIT, 7)])));
}

#[test]
fn a_tight_loop_without_a_pause_does_not_spin() {
    let tight: Vec<u64> = (0..100).map(|i| PAGE + 0x900 + i % 24).collect();
    assert_eq!(judged(&tight, &[WAIT]).loops, BTreeMap::new());
}

/// A loop that computes right behind the check of a flag.
#[test]
fn a_tight_loop_beside_a_pause_does_not_spin() {
    let beside: Vec<u64> = (0..100).map(|i| PAUSE + 4 + i % 24).collect();
    assert_eq!(judged(&beside, &[WAIT]).loops, BTreeMap::new());
}

#[test]
fn spread_samples_few_samples_and_unreadable_code_show_nothing() {
    let spread: Vec<u64> = (0..100).map(|i| PAGE + 7 * i).collect();
    assert_eq!(judged(&spread, &[]).loops, BTreeMap::new());
    assert_eq!(judged(&[PAUSE, PAUSE], &[]).loops, BTreeMap::new());
    let elsewhere: Vec<u64> = mixed().iter().map(|pointer| pointer + 0x10_0000).collect();
    assert_eq!(judged(&elsewhere, &[]).loops, BTreeMap::new());
    assert_eq!(judged(&[], &[]), JudgedSamples::default());
}

#[test]
fn a_known_loop_needs_one_sample() {
    let samples = [PAUSE + 2, PAGE + 0x300, PAGE + 0x900];
    assert_eq!(judged(&samples, &[WAIT]).loops, BTreeMap::from([(WAIT, 1)]));
}

/// There a pause takes no time, so that samples lie around it.
#[test]
fn on_other_processors_nearly_all_samples_lie_around() {
    let spins = |samples: Vec<u64>| {
        let read = |at, into: &mut [u8]| read_page(&[0x3f, 0x20, 0x03, 0xd5], at, into);
        judge(&[samples], &BTreeSet::new(), &AARCH64, read).loops.into_values().sum::<u64>()
    };
    let around = || (0..20).map(|i| PAUSE - 8 + 4 * (i % 5));
    assert_eq!(spins(around().collect()), 20);
    let computes = || (0..10).map(|i| PAGE + 0x800 + 4 * (i % 5));
    assert_eq!(spins(computes().collect()), 0);
    assert_eq!(spins(around().chain(computes()).collect()), 0);
}

proptest::proptest! {
    #[test]
    fn any_pointers_can_be_judged(
        samples in proptest::collection::vec(proptest::num::u64::ANY, 0..50),
    ) {
        let twice = [&samples[..], &samples].concat();
        let judged = judged(&twice, &[WaitInstruction { from: 0, to: 2 }]);
        assert!(judged.loops.values().sum::<u64>() <= judged.samples);
    }
}
