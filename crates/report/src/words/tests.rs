use super::*;

#[test]
fn a_reason_has_general_words_and_the_figures_of_the_case() {
    let texts = [
        reason(&Why::InGang),
        reason(&Why::Queued { ahead: 1 }),
        reason(&Why::DoesNotFit { free: 2 }),
        reason(&Why::OtherGang { gang: 0 }),
        reason(&Why::Quantum { round: 3, gang: 1, gangs: 4, length: Nanos::from_millis(100) }),
        reason(&Why::Quantum { round: 7, gang: 0, gangs: 1, length: Nanos::NEVER }),
        reason(&Why::MoreProgress { progress: Nanos::from_secs(2), slowdown: Some(1.5) }),
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
        earlier_reason(&Why::Queued { ahead: 3 }, at),
        "it is queued for its turn (when decided at 0.800 s: 3 programs ahead of it in the \
         queue)"
    );
    assert_eq!(earlier_reason(&Why::InGang, at), "it has its turn");
}

#[test]
fn times_have_two_or_three_significant_digits() {
    let texts = [0, 140, 999, 1_500, 9_990, 49_500, 99_960, 203_400, 999_600, 61_250_000]
        .map(|micros| span(Nanos::from_micros(micros)));
    assert_eq!(
        texts,
        [
            "0 us", "140 us", "999 us", "1.5 ms", "10 ms", "49.5 ms", "100 ms", "203 ms", "1.00 s",
            "61.25 s"
        ]
    );
}
