use cosched_core::Quantum;
use cosched_policy::reasons::{FairReason, MinwaitReason, SharedReason};

use super::*;

#[test]
fn a_reason_has_general_words_and_the_figures_of_the_case() {
    let texts = [
        reason(&SharedReason::InGang.into()),
        reason(&SharedReason::Queued { ahead: 1 }.into()),
        reason(&MinwaitReason::DoesNotFit { free: 2 }.into()),
        reason(&SharedReason::OtherGang { gang: 0 }.into()),
        reason(&Quantum { round: 3, gang: 1, gangs: 4, length: Nanos::from_millis(100) }.into()),
        reason(&Quantum { round: 7, gang: 0, gangs: 1, length: Nanos::NEVER }.into()),
        reason(
            &FairReason::MoreProgress { progress: Nanos::from_secs(2), slowdown: Some(1.5) }.into(),
        ),
    ];
    assert_eq!(
        texts,
        [
            "it has its turn",
            "it is queued for its turn (1 program ahead of it in the queue)",
            "other programs come first, and it does not fit (2 CPUs left)",
            "it is another program's turn (it is in gang 1)",
            "a quantum begins (round 3, gang 2 of 4, planned for 100 ms)",
            "a quantum begins (round 7, without a planned end)",
            "it is further ahead than the programs that run (2.00 s of solo time done, \
             slowdown 1.50 since it arrived)",
        ]
    );
}

#[test]
fn figures_of_an_earlier_reason_have_their_time() {
    let at = Nanos::from_millis(800);
    assert_eq!(
        earlier_reason(&SharedReason::Queued { ahead: 3 }.into(), at),
        "it is queued for its turn (when decided at 0.800 s: 3 programs ahead of it in the \
         queue)"
    );
    assert_eq!(earlier_reason(&SharedReason::InGang.into(), at), "it has its turn");
}

/// Reports tell of deviations after the run.
#[test]
fn a_deviation_from_turns_by_weight_is_over() {
    assert_eq!(effect(Aspect::Turn), "did not take turns by weight");
}
