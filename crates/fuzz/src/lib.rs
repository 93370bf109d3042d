//! Damaged input: text that is nearly what a parser expects.
//!
//! Random bytes are refused at the first one. Input is therefore made of good samples: bytes are
//! changed, removed, repeated, or inserted from another sample, and numbers become extreme ones.
//! `make fuzz` runs the targets in `tests/` for hours; `make test` runs each for a moment.

#![forbid(unsafe_code)]

use proptest::prelude::*;

/// Numbers that are hard for parsers.
const NUMBERS: [&str; 12] = [
    "0",
    "-1",
    "1e308",
    "-1e400",
    "NaN",
    "18446744073709551616",
    "9223372036854775807",
    "4294967296",
    "65536",
    "0.0000000001",
    "1e-400",
    "0x7f",
];

/// One change of the input.
#[derive(Clone, Debug)]
enum Damage {
    /// A byte becomes another one.
    Set(usize, u8),
    /// This many bytes are removed.
    Cut(usize, usize),
    /// This many bytes are repeated.
    Double(usize, usize),
    /// This many bytes of another sample, from there, are inserted.
    Splice(usize, usize, usize, usize),
    /// A number becomes another one.
    Number(usize, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = any::<usize>;
    let length = || 0usize..64;
    prop_oneof![
        (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (place(), length()).prop_map(|(at, length)| Damage::Cut(at, length)),
        (place(), length()).prop_map(|(at, length)| Damage::Double(at, length)),
        (place(), place(), place(), length())
            .prop_map(|(at, sample, from, length)| Damage::Splice(at, sample, from, length)),
        (place(), 0..NUMBERS.len()).prop_map(|(at, number)| Damage::Number(at, number)),
    ]
}

impl Damage {
    fn of(&self, bytes: &mut Vec<u8>, samples: &[Vec<u8>]) {
        let end = bytes.len();
        let place = |at: usize, within: usize| if within == 0 { 0 } else { at % within };
        match *self {
            Damage::Set(at, byte) => {
                if let Some(found) = bytes.get_mut(place(at, end)) {
                    *found = byte;
                }
            }
            Damage::Cut(at, length) => {
                let at = place(at, end);
                bytes.drain(at..(at + length).min(end));
            }
            Damage::Double(at, length) => {
                let at = place(at, end);
                let part = bytes[at..(at + length).min(end)].to_vec();
                bytes.splice(at..at, part);
            }
            Damage::Splice(at, sample, from, length) => {
                let sample = &samples[place(sample, samples.len())];
                let from = place(from, sample.len());
                let part = sample[from..(from + length).min(sample.len())].to_vec();
                let at = place(at, end);
                bytes.splice(at..at, part);
            }
            Damage::Number(at, number) => {
                let is_digit = |byte: &u8| byte.is_ascii_digit();
                let at = place(at, end);
                let Some(from) = bytes[at..].iter().position(is_digit).map(|digit| at + digit)
                else {
                    return;
                };
                let digits = bytes[from..].iter().take_while(|byte| is_digit(byte)).count();
                bytes.splice(from..from + digits, NUMBERS[number].bytes());
            }
        }
    }
}

/// One of the samples with up to eight changes.
///
/// # Panics
/// When the strategy is used and there are no samples.
pub fn damaged(samples: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let changes = prop::collection::vec(damage(), 0..8);
    (any::<prop::sample::Index>(), changes).prop_map(move |(sample, changes)| {
        let mut bytes = samples[sample.index(samples.len())].clone();
        changes.iter().for_each(|change| change.of(&mut bytes, &samples));
        bytes
    })
}
