//! That the user detached a program.

use cosched_results::result::RunResult;

use crate::history::nanos;
use crate::words;

/// That a program was detached, and when; `None`: it was not.
pub(crate) fn in_words(run: &RunResult, slot: usize) -> Option<String> {
    let program = Some(&run.programs[slot]).filter(|_| run.was_detached(slot))?;
    let last = program.timeline.last().map(|span| span.1);
    let at = words::instant(nanos(program.detached_seconds.or(last)?));
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

    /// It may end by itself before the run does.
    #[test]
    fn a_detached_program_that_has_ended_is_told() {
        let mut run = run();
        (run.programs[A].exit, run.programs[A].detached_seconds) = (None, Some(0.0625));
        assert!(super::is_any(&run));
        let told = super::in_words(&run, A).unwrap();
        assert!(told.starts_with("It was detached at 0.062 s"), "{told}");
        assert_eq!(crate::after::end(&run.programs[A]), "detached");
    }

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
