//! The memory-bound programs that the policy spread over the caches.

use cosched_policy::reasons::SharedReason;
use cosched_results::result::RunResult;

use crate::history::reasons_about;
use crate::words;

/// A sentence that names these programs, if there are any.
pub(super) fn sentence(result: &RunResult) -> Option<String> {
    let named = result.programs.iter().enumerate().filter_map(|(slot, program)| {
        let misses = reasons_about(result, slot).find_map(|(_, why)| match why.read()? {
            SharedReason::Spread { misses } => Some(misses),
            _ => None,
        })?;
        Some(format!("{} ({})", program.name, words::misses_per_kilo_instruction(misses)))
    });
    let named: Vec<String> = named.collect();
    let line = || {
        format!("Memory-bound, so their threads were spread over caches: {}.", words::list(&named))
    };
    (!named.is_empty()).then(line)
}

#[cfg(test)]
mod tests {
    use cosched_core::{ProgramId, Reason};

    use super::*;
    use crate::by_hand::{A, B, run};

    #[test]
    fn spread_programs_are_named_once_with_their_misses() {
        let mut run = run();
        assert_eq!(sentence(&run), None);
        let spread = |slot: usize, misses| Reason {
            program: Some(ProgramId::first(slot as u16)),
            why: SharedReason::Spread { misses }.into(),
        };
        run.decisions[0].reasons.push(spread(B, 12.3));
        run.decisions[1].reasons.extend([spread(A, 100.0), spread(B, 12.3)]);
        assert_eq!(
            sentence(&run).unwrap(),
            "Memory-bound, so their threads were spread over caches: a (100 cache misses per 1000 \
             instructions) and b (12 cache misses per 1000 instructions)."
        );
    }
}
