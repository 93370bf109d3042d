//! Programs of several processes that compute.

use cosched_results::result::{ProgramResult, RunResult};

use crate::words;

/// How many processes of a program were seen to compute at once, if several were.
fn several(program: &ProgramResult) -> Option<u32> {
    program.processes_seen.filter(|processes| *processes > 1)
}

/// What is said of a program.
pub(crate) fn in_words(program: &ProgramResult) -> Option<String> {
    let processes = several(program)?;
    let threads = program.threads_seen.filter(|threads| *threads > processes);
    let threads = threads.map_or(String::new(), |threads| {
        format!("; all its processes had {threads} threads at most")
    });
    let turns = program.units_seen.map_or(String::new(), |units| {
        format!(
            " {units} of them, or groups of them, with several threads each, took turns within it."
        )
    });
    Some(format!("Up to {processes} of its processes computed at once{threads}.{turns}"))
}

/// Says which programs' processes took turns, if any did.
pub(crate) fn sentence(run: &RunResult) -> Option<String> {
    let units = |program: &ProgramResult| Some((program.name.clone(), program.units_seen?));
    let units = run.programs.iter().filter_map(units);
    let named: Vec<String> = units.map(|(name, units)| format!("{name} ({units})")).collect();
    (!named.is_empty())
        .then(|| format!("Processes took turns within a program: {}.", words::list(&named)))
}

/// The programs and their numbers.
pub(crate) fn named(run: &RunResult) -> Option<String> {
    let named = run.programs.iter();
    let named = named.filter_map(|program| Some(format!("{} {}", program.name, several(program)?)));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn several_processes_are_told_and_one_is_not() {
        let mut run = testkit::gang();
        assert_eq!((in_words(&run.programs[0]), named(&run), sentence(&run)), (None, None, None));
        run.programs[0].processes_seen = Some(1);
        assert_eq!((in_words(&run.programs[0]), named(&run)), (None, None));
        (run.programs[0].processes_seen, run.programs[0].threads_seen) = (Some(4), Some(20));
        let expected = "Up to 4 of its processes computed at once; all its processes had 20 \
                        threads at most.";
        assert_eq!(in_words(&run.programs[0]).as_deref(), Some(expected));
        run.programs[0].units_seen = Some(3);
        let said = in_words(&run.programs[0]).unwrap();
        assert!(said.starts_with(expected) && said.ends_with("took turns within it."), "{said}");
        let name = run.programs[0].name.clone();
        assert_eq!(named(&run), Some(format!("{name} 4")));
        let expected = format!("Processes took turns within a program: {name} (3).");
        assert_eq!(sentence(&run), Some(expected));
    }
}
