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

/// Whether any program was detached. How much CPU time such a program uses is not known.
pub(crate) fn is_any(run: &RunResult) -> bool {
    (0..run.programs.len()).any(|slot| run.was_detached(slot))
}

#[cfg(test)]
mod tests {
    use crate::by_hand::{A, B, run};
    use crate::{disturbance, words};

    /// What a detached program uses is not known, and would count as that of other processes.
    #[test]
    fn cpu_figures_are_left_out_after_a_detach() {
        let mut run = run();
        run.programs[B].usage.user_seconds = 0.3;
        run.others_cpu_seconds = Some(0.3);
        assert!(words::cpu_use(&run).starts_with(", CPU use ") && disturbance::is_disturbed(&run));
        (run.programs[A].exit, run.programs[A].left_running) = (None, true);
        assert_eq!((words::cpu_use(&run).as_str(), disturbance::others(&run)), ("", None));
        assert!(!disturbance::is_disturbed(&run), "{:?}", disturbance::sentence(&run));
    }
}
