//! Slices that were chosen for a program.

use super::*;

#[test]
fn of_many_slices_the_first_and_the_last_are_shown() {
    let choose = |slices: &[u64]| {
        let mut run = run();
        run.decisions.clear();
        for (i, slice) in slices.iter().enumerate() {
            run.decisions.push(DecisionResult {
                at_seconds: 0.01 * (i + 1) as f64,
                reasons: vec![Reason {
                    program: Some(ProgramId::first(B as u16)),
                    why: FaithfulReason::Slice {
                        slice: ms(*slice),
                        lock_contention: 0.84,
                        miss_ratio: (*slice == 20).then_some(0.05),
                        profiled: false,
                        io_wait: None,
                    }
                    .into(),
                }],
            });
        }
        let story = Story::of(&run, Some(B)).programs.remove(0);
        let is_slice_line = |line: &&String| {
            line.starts_with("  from") || line.starts_with("  ") && line.ends_with("more)")
        };
        let lines: Vec<String> = story.sentences.iter().filter(is_slice_line).cloned().collect();
        (story.slices.len(), lines)
    };
    let (all, lines) = choose(&[200, 20]);
    assert_eq!(
        (all, &lines[..]),
        (
            2,
            &[
                "  from 0.010 s: 200 ms (84 % of the time at locks, cache misses unknown)."
                    .to_owned(),
                "  from 0.020 s: 20 ms (84 % of the time at locks, 5 % cache misses).".to_owned(),
            ][..]
        )
    );
    let (all, lines) = choose(&[10; 20]);
    assert_eq!((all, lines.len(), lines[6].as_str()), (20, 13, "  (8 more)"));
    assert_eq!(choose(&[]), (0, vec![]));
}
