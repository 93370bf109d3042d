//! Which thread counts to measure with: `1..4`, `1,2,4`, `1..N`.

use cosched_core::MAX_CPUS;

/// Why a list of thread counts is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CountsError {
    #[error(
        "--threads: '{0}' is not a thread count; write numbers and ranges, such as 2, 1,2,4 or \
         1..N (N: all CPUs)"
    )]
    NotACount(String),
    /// Zero, or more than any machine has.
    #[error("--threads: {0} threads are not possible; choose from 1 to {MAX_CPUS}")]
    OutOfRange(u64),
    /// The end comes before the beginning.
    #[error(
        "--threads: the range '{range}' is empty, it goes from {from} to {to}; write the smaller \
         number first"
    )]
    Empty { range: String, from: u16, to: u16 },
}

/// The thread counts that a list names, ascending, each once; at least one. `N` stands for `cpus`.
pub(super) fn parse(list: &str, cpus: usize) -> Result<Vec<u16>, CountsError> {
    let mut counts = Vec::new();
    for part in list.split(',').map(str::trim) {
        let (first, last) = part.split_once("..").unwrap_or((part, part));
        let (from, to) = (count(first, cpus)?, count(last, cpus)?);
        if from > to {
            return Err(CountsError::Empty { range: part.to_owned(), from, to });
        }
        counts.extend(from..=to);
    }
    counts.sort_unstable();
    counts.dedup();
    Ok(counts)
}

fn count(word: &str, cpus: usize) -> Result<u16, CountsError> {
    let number = match word.trim() {
        "N" => cpus as u64,
        word => word.parse().map_err(|_| CountsError::NotACount(word.to_owned()))?,
    };
    match u16::try_from(number) {
        Ok(count) if (1..=MAX_CPUS).contains(&usize::from(count)) => Ok(count),
        _ => Err(CountsError::OutOfRange(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_lists_and_all_cpus_are_understood() {
        assert_eq!(parse("3", 8).unwrap(), [3]);
        assert_eq!(parse("1..4", 8).unwrap(), [1, 2, 3, 4]);
        assert_eq!(parse("1,2,4", 8).unwrap(), [1, 2, 4]);
        assert_eq!(parse("1..N", 3).unwrap(), [1, 2, 3]);
        assert_eq!(parse("N", 3).unwrap(), [3]);
    }

    #[test]
    fn counts_come_ascending_and_once() {
        assert_eq!(parse("4, 1..2, 2", 8).unwrap(), [1, 2, 4]);
    }

    #[test]
    fn more_threads_than_cpus_may_be_measured() {
        assert_eq!(parse("N,4", 2).unwrap(), [2, 4]);
    }

    #[test]
    fn bad_lists_are_refused_with_the_part_that_is_wrong() {
        let refused = |list| parse(list, 2).unwrap_err();
        assert_eq!(refused("1,two"), CountsError::NotACount("two".into()));
        assert_eq!(refused(""), CountsError::NotACount(String::new()));
        assert_eq!(refused("1..",), CountsError::NotACount(String::new()));
        assert_eq!(refused("-1"), CountsError::NotACount("-1".into()));
        assert_eq!(refused("0..4"), CountsError::OutOfRange(0));
        assert_eq!(refused("70000"), CountsError::OutOfRange(70_000));
        assert_eq!(refused("3..N"), CountsError::Empty { range: "3..N".into(), from: 3, to: 2 });
    }
}
