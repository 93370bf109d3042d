//! Which thread counts to measure with: `1..4`, `1,2,4`, `1..N`.

use cosched_core::MAX_CPUS;

use crate::ui::failure::Failure;

/// The thread counts that a list names, ascending, each once; at least one. `N` stands for `cpus`.
pub(crate) fn parse_counts(list: &str, cpus: usize) -> Result<Vec<u16>, Failure> {
    let mut counts = Vec::new();
    for part in list.split(',').map(str::trim) {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (from, to) = (count(first, cpus)?, count(last, cpus)?);
        if from > to {
            return Err(Failure::Input(format!(
                "--threads: the range '{part}' is empty, it goes from {from} to {to}; write the \
                 smaller number first"
            )));
        }
        counts.extend(from..=to);
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

fn count(word: &str, cpus: usize) -> Result<u16, Failure> {
    let refused = |why: String| Failure::Input(format!("--threads: {why}"));
    let no_count = |word| {
        refused(format!(
            "'{word}' is not a thread count; write numbers and ranges, such as 2, 1,2,4 or 1..N \
             (N: all CPUs)"
        ))
    };
    let number = match word.trim() {
        "N" => cpus as u64,
        word => word.parse().map_err(|_| no_count(word))?,
    };
    match u16::try_from(number) {
        Ok(count) if (1..=MAX_CPUS).contains(&usize::from(count)) => Ok(count),
        _ => {
            Err(refused(format!("{number} threads are not possible; choose from 1 to {MAX_CPUS}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lists_and_all_cpus_are_understood() {
        assert_eq!(parse_counts("3", 8).unwrap(), [3]);
        assert_eq!(parse_counts("1..4", 8).unwrap(), [1, 2, 3, 4]);
        assert_eq!(parse_counts("1,2,4", 8).unwrap(), [1, 2, 4]);
        assert_eq!(parse_counts("1..N", 3).unwrap(), [1, 2, 3]);
        assert_eq!(parse_counts("N", 3).unwrap(), [3]);
    }

    #[test]
    fn counts_come_ascending_and_once() {
        assert_eq!(parse_counts("4, 1..2, 2", 8).unwrap(), [1, 2, 4]);
    }

    #[test]
    fn more_threads_than_cpus_may_be_measured() {
        assert_eq!(parse_counts("N,4", 2).unwrap(), [2, 4]);
    }

    #[test]
    fn bad_lists_are_refused_with_the_part_that_is_wrong() {
        for (list, why) in [
            ("1,two", "'two' is not a thread count"),
            ("", "'' is not a thread count"),
            ("1..", "'' is not a thread count"),
            ("-1", "'-1' is not a thread count"),
            ("0..4", "--threads: 0 threads are not possible"),
            ("70000", "--threads: 70000 threads are not possible"),
            ("3..N", "the range '3..N' is empty, it goes from 3 to 2"),
        ] {
            let refused = parse_counts(list, 2).unwrap_err();
            assert!(refused.text().contains(why), "{list}: {}", refused.text());
        }
    }
}
