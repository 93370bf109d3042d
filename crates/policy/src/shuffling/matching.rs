//! The assignment of groups to sockets that costs least.
//!
//! A group may go to any socket of its size. The price of such a pair is the number of threads of
//! the group that are elsewhere now. The result is the pairing of all groups with all sockets that
//! has the smallest sum of prices. This is the assignment problem, solved by the Hungarian method
//! in the form with potentials and shortest augmenting paths: O(n^3), which is little for the
//! sockets of a machine.

/// The column of each row, with the smallest possible sum of costs.
///
/// `costs` is square: a row for each group, with its price at each socket.
pub(super) fn cheapest(costs: &[Vec<i64>]) -> Vec<usize> {
    let n = costs.len();
    // Rows and columns count from 1. Row 0 is no row. Column 0 holds the row that has no column
    // yet.
    let (mut of_rows, mut of_columns) = (vec![0; n + 1], vec![0; n + 1]);
    let mut row_of = vec![0; n + 1];
    for newcomer in 1..=n {
        let (mut slack, mut from) = (vec![i64::MAX; n + 1], vec![0; n + 1]);
        let mut seen = vec![false; n + 1];
        row_of[0] = newcomer;
        let mut column = 0;
        while row_of[column] != 0 {
            seen[column] = true;
            let row = row_of[column];
            let (mut least, mut next) = (i64::MAX, 0);
            for other in (1..=n).filter(|other| !seen[*other]) {
                let reduced = costs[row - 1][other - 1] - of_rows[row] - of_columns[other];
                if reduced < slack[other] {
                    (slack[other], from[other]) = (reduced, column);
                }
                if slack[other] < least {
                    (least, next) = (slack[other], other);
                }
            }
            for other in 0..=n {
                if seen[other] {
                    of_rows[row_of[other]] += least;
                    of_columns[other] -= least;
                } else {
                    slack[other] -= least;
                }
            }
            column = next;
        }
        // Each row on the path passes its column on.
        while column != 0 {
            row_of[column] = row_of[from[column]];
            column = from[column];
        }
    }
    let mut column_of = vec![0; n];
    for column in 1..=n {
        column_of[row_of[column] - 1] = column - 1;
    }
    column_of
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::common::testkit::cases;

    fn sum(costs: &[Vec<i64>], chosen: &[usize]) -> i64 {
        costs.iter().zip(chosen).map(|(row, column)| row[*column]).sum()
    }

    /// The smallest sum over all permutations of the columns that are left.
    fn least(costs: &[Vec<i64>], columns: &mut Vec<usize>) -> i64 {
        let Some((row, rest)) = costs.split_first() else { return 0 };
        let tried = (0..columns.len()).map(|position| {
            let column = columns.remove(position);
            let sum = row[column] + least(rest, columns);
            columns.insert(position, column);
            sum
        });
        tried.min().unwrap_or(0)
    }

    /// A group goes elsewhere where the other group would lose more otherwise.
    #[test]
    fn each_group_goes_where_most_of_it_is() {
        assert_eq!(cheapest(&[vec![0, 4], vec![4, 0]]), [0, 1]);
        assert_eq!(cheapest(&[vec![3, 1], vec![1, 3]]), [1, 0]);
        // Both have more at the first socket.
        assert_eq!(cheapest(&[vec![0, 4], vec![1, 3]]), [0, 1]);
        assert_eq!(cheapest(&[]), [0; 0]);
    }

    proptest! {
        #![proptest_config(cases(300))]

        #[test]
        fn no_other_assignment_costs_less(
            costs in (1usize..=6).prop_flat_map(|n| {
                prop::collection::vec(prop::collection::vec(0i64..50, n), n)
            }),
        ) {
            let chosen = cheapest(&costs);
            let mut columns = chosen.clone();
            columns.sort_unstable();
            prop_assert_eq!(&columns, &(0..costs.len()).collect::<Vec<_>>());
            prop_assert_eq!(sum(&costs, &chosen), least(&costs, &mut columns));
        }
    }
}
