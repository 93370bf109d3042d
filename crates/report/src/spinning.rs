//! Programs with threads that wait and keep their CPUs.

use cosched_core::{SpinShare, Spinning};
use cosched_results::result::{ProgramResult, RunResult};

use crate::words;

/// Less than this share of a program's CPU time is not worth a word.
const NOTEWORTHY: f64 = 0.1;
/// Fewer samples than this are no base for a share.
const ENOUGH: u64 = 50;

pub(crate) fn noteworthy(program: &ProgramResult) -> Option<&Spinning> {
    let spinning = program.spinning.as_ref()?;
    (spinning.share >= NOTEWORTHY && spinning.samples >= ENOUGH).then_some(spinning)
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A loop, and its share where there are others.
fn place(SpinShare { place, share }: &SpinShare, is_only: bool) -> String {
    let share = if is_only { String::new() } else { format!(": {}", percent(*share)) };
    format!("{} +{:#x}{share}", place.object, place.offset)
}

/// What is said of a program.
pub(crate) fn in_words(program: &ProgramResult) -> Option<String> {
    let Spinning { share, loops, .. } = noteworthy(program)?;
    let places = loops.iter().map(|one| place(one, loops.len() == 1));
    Some(format!(
        "At least {} of its CPU time outside the kernel went to spin loops ({}): its threads kept \
         their CPUs while they waited.",
        percent(*share),
        words::list(&places.collect::<Vec<_>>()),
    ))
}

/// Says which programs spin, if any do.
pub(crate) fn sentence(run: &RunResult) -> Option<String> {
    Some(format!(
        "At least so much of their CPU time outside the kernel went to spin loops, in which \
         threads keep their CPUs while they wait: {}.",
        named(run)?
    ))
}

/// The programs and their shares.
pub(crate) fn named(run: &RunResult) -> Option<String> {
    let share = |program: &ProgramResult| Some(percent(noteworthy(program)?.share));
    let named = run.programs.iter();
    let named = named.filter_map(|program| Some(format!("{} {}", program.name, share(program)?)));
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| named.join(", "))
}

#[cfg(test)]
mod tests {
    use cosched_core::SpinLoop;

    use super::*;
    use crate::testkit;

    fn one(object: &str, offset: u64, share: f64) -> SpinShare {
        let place = SpinLoop { object: object.to_owned(), build_id: None, offset };
        SpinShare { place, share }
    }

    #[test]
    fn programs_that_spin_are_told_with_their_loops() {
        let mut run = testkit::gang();
        let loops = vec![one("libgomp.so.1", 0x1f7d8, 0.5), one("solver", 0x40, 0.12)];
        let name = run.programs[0].name.clone();
        run.programs[0].spinning = Some(Spinning { share: 0.62, samples: 400, loops });
        let text = in_words(&run.programs[0]).unwrap();
        let places = "(libgomp.so.1 +0x1f7d8: 50 % and solver +0x40: 12 %)";
        assert!(text.starts_with("At least 62 % of its CPU time outside the kernel"), "{text}");
        assert!(text.contains(places), "{text}");
        assert_eq!(named(&run), Some(format!("{name} 62 %")));
        run.programs[0].spinning.as_mut().unwrap().loops.pop();
        let text = in_words(&run.programs[0]).unwrap();
        assert!(text.contains("(libgomp.so.1 +0x1f7d8):"), "{text}");
    }

    #[test]
    fn little_spinning_and_few_samples_are_not_told() {
        let mut run = testkit::gang();
        assert_eq!((in_words(&run.programs[0]), named(&run)), (None, None));
        for (share, samples) in [(0.09, 4000), (0.9, 49)] {
            let loops = vec![one("a", 1, share)];
            run.programs[0].spinning = Some(Spinning { share, samples, loops });
            assert_eq!((in_words(&run.programs[0]), named(&run)), (None, None));
        }
    }
}
