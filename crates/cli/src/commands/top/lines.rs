//! Lines as they come from a socket, none longer than a snapshot can be: root looks on at what
//! other users run, and they may send anything.

use std::io::{self, Read};

/// The longest line, in bytes: a snapshot of two thousand programs.
const LONGEST: usize = 1 << 20;

/// What came and was not taken yet.
#[derive(Debug, Default)]
pub(super) struct ReceivedLines {
    received: Vec<u8>,
}

impl ReceivedLines {
    /// Reads once; whether there was anything, which there is until the other side has ended.
    pub(super) fn read(&mut self, from: &mut impl Read) -> io::Result<bool> {
        let mut space = [0; 1 << 16];
        let count = from.read(&mut space)?;
        self.received.extend_from_slice(&space[..count]);
        Ok(count > 0)
    }

    /// Takes the next line; `None` if it is not whole yet.
    ///
    /// # Errors
    /// When it is too long.
    pub(super) fn next(&mut self) -> io::Result<Option<String>> {
        match self.received.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                Ok(Some(String::from_utf8_lossy(&line).into_owned()))
            }
            None if self.received.len() > LONGEST => {
                Err(io::Error::other(format!("it sent a line of more than {LONGEST} bytes")))
            }
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_handed_out_when_they_are_whole() {
        let mut lines = ReceivedLines::default();
        assert!(lines.read(&mut &b"one\ntw"[..]).unwrap());
        assert_eq!(lines.next().unwrap().as_deref(), Some("one\n"));
        assert_eq!(lines.next().unwrap(), None);
        assert!(lines.read(&mut &b"o\n"[..]).unwrap() && !lines.read(&mut &b""[..]).unwrap());
        assert_eq!(lines.next().unwrap().as_deref(), Some("two\n"));
    }

    #[test]
    fn a_line_without_an_end_costs_no_more_than_the_longest() {
        let mut lines = ReceivedLines::default();
        let mut endless = io::repeat(b'x');
        while lines.next().is_ok() {
            lines.read(&mut endless).unwrap();
        }
        assert!(lines.received.len() <= LONGEST + (1 << 16));
    }
}
