//! The turns of a program: how many it had, how long they were, and what it got outside them.

use cosched_results::result::RunResult;
use cosched_results::statistics::median;

use super::story::seconds;
use crate::history::{Activity, Phase, nanos};
use crate::words;

/// How many turns are shown with their time; `report` shows all.
const SHOWN: usize = 5;

/// The turns in seconds: by weight, or times in which the program ran. A program that moves to
/// other CPUs still has the same turn.
pub(super) fn lengths(result: &RunResult, slot: usize, phases: &[Phase]) -> Vec<f64> {
    if result.programs.iter().any(|program| !program.turns.is_empty()) {
        return result.programs[slot].turns.iter().map(|(from, to)| to - from).collect();
    }
    let runs = |phase: &Phase| matches!(phase.state, Activity::Running(_));
    let turns = phases.chunk_by(|one, next| runs(one) == runs(next)).filter(|turn| runs(&turn[0]));
    let length = |turn: &[Phase]| turn.iter().map(|phase| phase.length().as_secs_f64()).sum();
    turns.map(length).collect()
}

/// How many turns it had, and what it got outside them. The median is shown, because a program that
/// runs last and alone may have one very long turn.
pub(super) fn in_words(turns: &[f64], running: f64, by_weight: &[(f64, f64)]) -> Option<String> {
    let Some(median) = median(turns).map(seconds) else {
        let filled = "It had no turn, and got the CPU time that programs in turn left.";
        return (running > 0.0).then(|| filled.to_owned());
    };
    let in_turn: f64 = by_weight.iter().map(|(from, to)| to - from).sum();
    let line = match turns.len() {
        1 => format!("It had 1 turn of {median}"),
        count => format!("It had {count} turns of {median} (median)"),
    };
    let outside = running - in_turn;
    let when = begins(by_weight);
    Some(match by_weight.is_empty() || outside < 0.01 * running {
        true => format!("{line}.{when}"),
        false => format!(
            "{line}, {} in all; for the other {} it got the CPU time that programs in turn left.\
             {when}",
            seconds(in_turn),
            seconds(outside)
        ),
    })
}

/// When the first turns by weight began.
fn begins(by_weight: &[(f64, f64)]) -> String {
    let known = by_weight.iter().take(SHOWN).map(|(from, _)| words::instant(nanos(*from)));
    let known: Vec<String> = known.collect();
    match by_weight.len().saturating_sub(SHOWN) {
        _ if known.is_empty() => String::new(),
        _ if known.len() == 1 => format!(" It began at {}.", known[0]),
        0 => format!(" They began at {}.", words::list(&known)),
        more => {
            let more = words::count(more, "more time", "more times");
            format!(" They began at {}, and {more}.", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_by_weight_are_counted_and_the_rest_is_said() {
        let turns = [(0.0, 0.1), (0.2, 0.3), (0.4, 0.5)];
        assert_eq!(
            in_words(&[0.1; 3], 0.9, &turns).as_deref(),
            Some(
                "It had 3 turns of 100 ms (median), 300 ms in all; for the other 600 ms it got the \
                 CPU time that programs in turn left. They began at 0.000 s, 0.200 s and 0.400 s."
            )
        );
        let whole = in_words(&[0.1; 3], 0.3, &turns).unwrap();
        assert!(whole.starts_with("It had 3 turns of 100 ms (median). They began"), "{whole}");
        let many = in_words(&[0.1; 7], 0.7, &[(0.1, 0.2); 7]).unwrap();
        assert!(many.ends_with("0.100 s, and 2 more times."), "{many}");
        let one_more = in_words(&[0.1; 6], 0.6, &[(0.1, 0.2); 6]).unwrap();
        assert!(one_more.ends_with("0.100 s, and 1 more time."), "{one_more}");
        let one = in_words(&[0.1], 0.1, &[(0.2, 0.3)]);
        assert_eq!(one.as_deref(), Some("It had 1 turn of 100 ms. It began at 0.200 s."));
        assert_eq!(in_words(&[0.2], 0.2, &[]).as_deref(), Some("It had 1 turn of 200 ms."));
        let last_alone = in_words(&[0.1, 0.1, 7.0], 7.2, &[]);
        assert_eq!(last_alone.as_deref(), Some("It had 3 turns of 100 ms (median)."));
        assert_eq!(
            in_words(&[], 0.4, &[]).as_deref(),
            Some("It had no turn, and got the CPU time that programs in turn left.")
        );
        assert_eq!(in_words(&[], 0.0, &[]), None);
    }
}
