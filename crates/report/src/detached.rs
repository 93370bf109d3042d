//! That the user detached a program.

use cosched_results::result::RunResult;

use crate::history::nanos;
use crate::words;

/// That a program was detached, and when; `None`: it was not.
pub(crate) fn in_words(run: &RunResult, slot: usize) -> Option<String> {
    let last = run.programs[slot].timeline.last().filter(|_| run.was_detached(slot))?;
    let at = words::instant(nanos(last.1));
    Some(format!("It was detached at {at}: from then on cosched did not schedule it."))
}
