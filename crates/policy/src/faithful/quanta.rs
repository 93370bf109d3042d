//! The slice for each scaling factor: table I of the paper, and tables of this kind.
//!
//! *Scaling factor* = 1 - max(miss ratio, lock contention) (eq. 1). It is near 1 for programs that
//! compute and rarely wait for each other, and near 0 for programs that wait for memory or locks.
//! The larger it is, the shorter is the slice.
//!
//! The printed rows, (0.01 to 0.10), (0.11 to 0.20), ..., leave gaps between them and say nothing
//! of 0. Here a row reaches up to its printed end and begins where the one before ends, so 0.104
//! belongs to the second row, and 0 to the first. The two examples of section V-B hold: 0.16 gives
//! 200 ms and 0.88 gives 20 ms.

mod file;

use cosched_core::{Nanos, to_nine_digits};

/// A table of slices.
#[derive(Clone, Debug, PartialEq)]
pub struct Quanta {
    /// The end of each row and its slice; ends rise to 1.
    rows: Vec<(f64, Nanos)>,
}

/// Why rows are no table.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum QuantaError {
    /// The ends do not rise from above 0 to 1.
    #[error(
        "up_to: the ends of the rows have to rise from above 0 to 1, and the last one has to be 1"
    )]
    Ends,
    /// A slice is not longer than zero.
    #[error("the slice of every row has to be longer than zero")]
    Slice,
    /// It is not TOML, or a key is missing, unknown or of the wrong type.
    #[error("this is not the TOML of such a table: {0}")]
    Toml(String),
    /// It is of another version.
    #[error("schema is {found:?}, not {known:?}")]
    Schema {
        /// The schema in the file.
        found: String,
        /// The schema that can be read.
        known: &'static str,
    },
    /// A slice makes no sense.
    #[error("row {row}: slice_milliseconds is {found}, but must be more than 0 and at most 10000")]
    Milliseconds {
        /// The number of the row, from 1 on.
        row: usize,
        /// The value in the file.
        found: f64,
    },
}

impl Quanta {
    /// A table from the end of each row's range of scaling factors, and its slice.
    ///
    /// # Errors
    /// When the ends do not rise to 1, or a slice is zero.
    pub fn new(rows: Vec<(f64, Nanos)>) -> Result<Quanta, QuantaError> {
        let rises = rows.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let begins = rows.first().is_some_and(|row| row.0 > 0.0);
        let ends = rows.last().is_some_and(|row| row.0 == 1.0);
        match rows.iter().any(|row| row.1 == Nanos::ZERO) {
            _ if !(rises && begins && ends) => Err(QuantaError::Ends),
            true => Err(QuantaError::Slice),
            false => Ok(Quanta { rows }),
        }
    }

    /// Table I.
    pub fn of_the_paper() -> Quanta {
        let slices = [250, 200, 150, 120, 100, 80, 50, 30, 20, 10];
        let ends = (1..=10).map(|tenth| f64::from(tenth) / 10.0);
        Quanta { rows: ends.zip(slices.map(Nanos::from_millis)).collect() }
    }

    /// The slice for a scaling factor from 0 to 1.
    pub fn slice(&self, factor: f64) -> Nanos {
        let factor = to_nine_digits(factor);
        let row = self.rows.partition_point(|row| row.0 < factor);
        self.rows[row.min(self.rows.len() - 1)].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    #[test]
    fn every_row_of_table_1_from_its_beginning_to_its_end() {
        let table = Quanta::of_the_paper();
        let rows: [(f64, f64, u64); 10] = [
            (0.01, 0.10, 250),
            (0.11, 0.20, 200),
            (0.21, 0.30, 150),
            (0.31, 0.40, 120),
            (0.41, 0.50, 100),
            (0.51, 0.60, 80),
            (0.61, 0.70, 50),
            (0.71, 0.80, 30),
            (0.81, 0.90, 20),
            (0.91, 1.00, 10),
        ];
        for (from, to, slice) in rows {
            assert_eq!(
                (table.slice(from), table.slice(to)),
                (MS(slice), MS(slice)),
                "{from} to {to}"
            );
        }
    }

    /// By what programs wait: 0.7 of the time makes `1.0 - 0.7`, which is above 0.3.
    #[test]
    fn each_printed_end_of_a_row_belongs_to_the_row() {
        let table = Quanta::of_the_paper();
        let slices = [250, 200, 150, 120, 100, 80, 50, 30, 20, 10];
        for (tenth, slice) in (1..=10).zip(slices) {
            let waits = f64::from(10 - tenth) / 10.0;
            assert_eq!(table.slice(1.0 - waits), MS(slice), "up to {tenth} tenths");
            assert_eq!(table.slice([0.1; 10][..tenth as usize].iter().sum()), MS(slice));
        }
        let file = "schema = 'cosched-quanta/1'\n[[row]]\nup_to = 0.3\nslice_milliseconds = 9\n\
                    [[row]]\nup_to = 1\nslice_milliseconds = 3";
        assert_eq!(Quanta::parse(file).map(|table| table.slice(1.0 - 0.7)), Ok(MS(9)));
    }

    #[test]
    fn gaps_between_printed_rows_belong_to_the_row_before() {
        let table = Quanta::of_the_paper();
        assert_eq!(table.slice(0.0), MS(250));
        assert_eq!(table.slice(0.1001), MS(200));
        assert_eq!(table.slice(0.9049), MS(10));
    }

    #[test]
    fn the_two_phases_of_ammp() {
        let table = Quanta::of_the_paper();
        assert_eq!(table.slice(1.0 - 0.84), MS(200));
        assert_eq!(table.slice(1.0 - 0.12), MS(20));
    }

    #[test]
    fn rows_that_do_not_rise_to_one_are_no_table() {
        assert_eq!(Quanta::new(vec![]), Err(QuantaError::Ends));
        assert_eq!(Quanta::new(vec![(0.5, MS(10))]), Err(QuantaError::Ends));
        assert_eq!(
            Quanta::new(vec![(0.5, MS(10)), (0.4, MS(5)), (1.0, MS(1))]),
            Err(QuantaError::Ends)
        );
        assert_eq!(Quanta::new(vec![(f64::NAN, MS(10)), (1.0, MS(1))]), Err(QuantaError::Ends));
        assert_eq!(Quanta::new(vec![(1.0, Nanos::ZERO)]), Err(QuantaError::Slice));
        assert!(Quanta::new(vec![(1.0, MS(3))]).is_ok());
    }
}
