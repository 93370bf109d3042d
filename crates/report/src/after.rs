//! Programs that start after others: when they came, or why they were not started.

use cosched_core::engine::outcome::Missing;
use cosched_results::result::{NotStartedResult, ProgramResult};

use crate::history::nanos;
use crate::words;

/// How a program ended, or why it did not start.
pub fn end(program: &ProgramResult) -> String {
    let unended = || match &program.not_started {
        Some(why) => format!("not started: {}", not_started(why)),
        None if program.detached_seconds.is_some() => "detached".to_owned(),
        None => "not ended".to_owned(),
    };
    program.exit.map_or_else(unended, words::exit)
}

/// Why a program was not started.
pub fn not_started(NotStartedResult { program, why }: &NotStartedResult) -> String {
    match why {
        Missing::Failed => format!("{program} failed"),
        Missing::NotStarted => format!("{program} was not started"),
        Missing::Detached => format!("{program} was detached"),
        Missing::Interrupted => format!("the run was interrupted before {program} had ended"),
    }
}

/// The programs that had to end before a program came.
pub(crate) fn others(program: &ProgramResult) -> Option<String> {
    let others: Vec<String> = program.after.iter().map(|after| after.program.clone()).collect();
    (!others.is_empty()).then(|| words::list(&others))
}

/// When a program came that waited for others.
pub(crate) fn in_words(program: &ProgramResult) -> Option<String> {
    let others = others(program).filter(|_| program.not_started.is_none())?;
    let when = words::instant(nanos(program.arrived_seconds));
    Some(format!("It came at {when}, after {others} had ended."))
}

#[cfg(test)]
mod tests {
    use cosched_results::result::AfterResult;

    use super::*;
    use crate::by_hand::{A, B, run};

    #[test]
    fn a_program_that_waited_for_others_has_a_sentence() {
        let mut run = run();
        assert_eq!(in_words(&run.programs[B]), None);
        let name = run.programs[A].name.clone();
        run.programs[B].after = vec![AfterResult { program: name, any_exit: false }];
        let sentence = in_words(&run.programs[B]).unwrap();
        assert!(
            sentence.starts_with("It came at ") && sentence.ends_with(", after a had ended."),
            "{sentence}"
        );
    }

    #[test]
    fn a_program_that_was_not_started_has_the_reason_as_its_end() {
        let mut run = run();
        let program = &mut run.programs[B];
        assert_eq!(end(program), "ok");
        program.exit = None;
        assert_eq!(end(program), "not ended");
        for (why, expected) in [
            (Missing::Failed, "not started: a failed"),
            (Missing::NotStarted, "not started: a was not started"),
            (Missing::Detached, "not started: a was detached"),
            (Missing::Interrupted, "not started: the run was interrupted before a had ended"),
        ] {
            program.not_started = Some(NotStartedResult { program: "a".into(), why });
            assert_eq!(end(program), expected);
        }
    }
}
