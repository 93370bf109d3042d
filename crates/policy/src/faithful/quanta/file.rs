//! Tables of slices as files, which `cosched calibrate quanta` prints and `--quanta` reads.
//!
//! ```toml
//! schema = "cosched-quanta/1"
//! machine = "2 CPUs, some model, Linux 6.18"  # for people; optional
//!
//! [[row]]
//! up_to = 0.1                 # the largest scaling factor of the row; rises, and ends with 1
//! slice_milliseconds = 100.0  # more than 0, at most 10000
//! basis = "measured"          # for people; optional
//! ```

use cosched_core::Nanos;
use cosched_workload::toml_mistake;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::{Quanta, QuantaError};

/// The longest slice that makes sense.
const LONGEST_MILLISECONDS: f64 = 10_000.0;

/// The part that every version has.
#[derive(Deserialize)]
struct FileVersion {
    schema: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuantaFile {
    #[serde(rename = "schema")]
    _schema: String,
    #[serde(default, rename = "machine")]
    _machine: Option<String>,
    row: Vec<SliceEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SliceEntry {
    up_to: f64,
    slice_milliseconds: f64,
    #[serde(default, rename = "basis")]
    _basis: Option<String>,
}

impl Quanta {
    /// The version of the file.
    pub const SCHEMA: &str = "cosched-quanta/1";

    /// Reads a table.
    ///
    /// # Errors
    /// When the text is not TOML, or a key is missing, unknown, or has a value that makes no sense.
    pub fn parse(text: &str) -> Result<Quanta, QuantaError> {
        let FileVersion { schema } = read(text)?;
        // Another version may have other keys.
        if schema != Quanta::SCHEMA {
            return Err(QuantaError::Schema { found: schema, known: Quanta::SCHEMA });
        }
        let file: QuantaFile = read(text)?;
        let row = |(i, entry): (usize, &SliceEntry)| {
            let milliseconds = entry.slice_milliseconds;
            let fits = milliseconds > 0.0 && milliseconds <= LONGEST_MILLISECONDS;
            let slice = Nanos((milliseconds * 1e6).round() as u64);
            let wrong = QuantaError::Milliseconds { row: i + 1, found: milliseconds };
            if fits && slice > Nanos::ZERO { Ok((entry.up_to, slice)) } else { Err(wrong) }
        };
        Quanta::new(file.row.iter().enumerate().map(row).collect::<Result<_, _>>()?)
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, QuantaError> {
    toml::from_str(text).map_err(|error| QuantaError::Toml(toml_mistake(text, &error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "schema = 'cosched-quanta/1'\nmachine = 'm'\n\
        [[row]]\nup_to = 0.5\nslice_milliseconds = 2.5\nbasis = 'measured'\n\
        [[row]]\nup_to = 1.0\nslice_milliseconds = 1\n";

    #[test]
    fn a_table_is_read_row_by_row() {
        let table = Quanta::parse(TEXT).unwrap();
        assert_eq!(table.slice(0.5), Nanos::from_micros(2500));
        assert_eq!(table.slice(0.500001), Nanos::from_millis(1));
    }

    #[test]
    fn errors_name_the_row_and_the_key() {
        for (from, to, expected) in [
            ("quanta/1", "quanta/2", "schema is \"cosched-quanta/2\", not \"cosched-quanta/1\""),
            ("= 2.5", "= 0", "row 1: slice_milliseconds is 0, but must be"),
            ("= 2.5", "= 0.0000001", "row 1: slice_milliseconds is 0.0000001, but must be"),
            (
                "slice_milliseconds = 1",
                "slice_milliseconds = nan",
                "row 2: slice_milliseconds is NaN",
            ),
            (
                "slice_milliseconds = 1",
                "slice_milliseconds = 1e9",
                "row 2: slice_milliseconds is 1000000000",
            ),
            ("up_to = 1.0", "up_to = 0.9", "up_to: the ends of the rows have to rise"),
            ("up_to = 0.5", "up_to = 1.0", "up_to: the ends of the rows have to rise"),
            ("basis", "because", "because"),
            ("schema = 'cosched-quanta/1'", "", "schema"),
            ("machine = 'm'", "machine = 'm", "line 2, column 13: invalid literal string"),
        ] {
            let error = Quanta::parse(&TEXT.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        assert!(Quanta::parse("schema = 'cosched-quanta/1'\nrow = []").is_err());
        // The content of a later version can be anything.
        let later = Quanta::parse("schema = 'cosched-quanta/9'\nlines = 3").unwrap_err();
        assert!(matches!(later, QuantaError::Schema { .. }), "{later}");
    }
}
