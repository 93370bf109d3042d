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

/// What schedules a program's threads may leave the kernel its own slices.
#[test]
fn slices_that_nothing_has_set_are_told_as_such() {
    let told = |actuator| {
        let mut run = testkit::faithful();
        let slice = run.decisions[1].reasons[1].clone();
        let given = FaithfulReason::Given { actuator }.into();
        run.decisions.truncate(2);
        run.decisions[1].reasons = vec![Reason { why: given, ..slice.clone() }, slice];
        Story::of(&run, Some(0)).programs.remove(0).sentences.concat()
    };
    let unset = "None of them was set: its threads had the kernel's own slices.";
    assert!(told(Actuator::Batch).contains(unset), "{}", told(Actuator::Batch));
    let set = told(Actuator::BatchSlice);
    assert!(set.contains("time slices were chosen") && !set.contains(unset), "{set}");
}
