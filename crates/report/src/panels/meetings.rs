//! What barriers of cosched contribute: how the waits of threads that came before the last one
//! ended.

use cosched_core::result::{ProgramResult, RunResult};

use super::{Bar, Panel, Plot, Stack};

/// Of each program whose threads met there.
pub(super) fn waits(run: &RunResult) -> Option<Panel> {
    let bar = |program: &ProgramResult| {
        let met = program.barrier.as_ref()?.meetings.filter(|met| met.waits() > 0)?;
        let parts = [met.glanced, met.looked_on, met.gave_way, met.slept];
        let parts = parts.map(|some| 100.0 * met.share(some)).to_vec();
        Some(Bar { name: program.name.clone(), parts })
    };
    let rows: Vec<Bar> = run.programs.iter().filter_map(bar).collect();
    (!rows.is_empty()).then(|| Panel {
        id: "meetings",
        title: "Waits at barriers of cosched".to_owned(),
        says: "What threads did that came before the last one: saw the end within some microseconds, looked on for longer, let \
               others run in between, or slept."
            .to_owned(),
        plot: Plot::Stack(Stack {
            unit: "% of all waits",
            parts: vec!["glanced", "looked on", "gave way", "slept"],
            rows,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn a_program_that_met_has_its_waits_in_percent_and_others_have_none() {
        let Some(Panel { plot: Plot::Stack(stack), .. }) = waits(&testkit::donating()) else {
            panic!()
        };
        assert_eq!(stack.rows.len(), 1);
        assert_eq!(stack.rows[0].parts, [60.0, 15.0, 0.0, 25.0]);
        assert_eq!(waits(&testkit::gang()), None);
    }
}
