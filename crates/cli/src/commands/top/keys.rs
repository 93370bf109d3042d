//! Keys, as a terminal in raw mode sends them.

use cosched_report::screen::{RowOrder, legend};

const CTRL_C: u8 = 3;
const CTRL_Z: u8 = 26;
const ESCAPE: u8 = 0x1b;
/// More rows than there are.
const ALL: isize = 1 << 20;
const PAGE: isize = 10;

/// What a key requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    Leave,
    /// As Ctrl-Z does elsewhere: a terminal in raw mode sends no signals.
    Stop,
    Order(RowOrder),
    /// So many rows further down.
    Scroll(isize),
    Unknown,
}

/// What `--help` and the man page say of keys and columns.
pub(super) fn help() -> String {
    // Two lines, so that none is broken between a key and what it stands for.
    let orders = RowOrder::KEYS.map(|(key, name, _)| format!("{key} {name}"));
    let (first, rest) = orders.split_at(orders.len() / 2);
    let mut lines = vec![
        "Keys:".to_owned(),
        "  q, Ctrl-C         quit; the run goes on".to_owned(),
        "  Ctrl-Z            suspend, until the shell continues it".to_owned(),
        format!("  {},", first.join(", ")),
        format!("  {}:", rest.join(", ")),
        "                    sort the programs by that; the same key again reverses the order"
            .to_owned(),
        "  Up, Down, PgUp, PgDn, Home, End    scroll".to_owned(),
        String::new(),
        "Columns:".to_owned(),
    ];
    lines.extend(legend().map(|(name, meaning)| format!("  {name:<8}  {meaning}")));
    lines.join("\n")
}

/// The first key, and what comes after it. A sequence that is not known is passed over with all
/// that came with it.
pub(super) fn next_key(bytes: &[u8]) -> Option<(KeyAction, &[u8])> {
    Some(match bytes {
        [] => return None,
        [b'q' | CTRL_C, rest @ ..] => (KeyAction::Leave, rest),
        [CTRL_Z, rest @ ..] => (KeyAction::Stop, rest),
        [ESCAPE, b'[' | b'O', b'A', rest @ ..] => (KeyAction::Scroll(-1), rest),
        [ESCAPE, b'[' | b'O', b'B', rest @ ..] => (KeyAction::Scroll(1), rest),
        [ESCAPE, b'[', b'5', b'~', rest @ ..] => (KeyAction::Scroll(-PAGE), rest),
        [ESCAPE, b'[', b'6', b'~', rest @ ..] => (KeyAction::Scroll(PAGE), rest),
        [ESCAPE, b'[' | b'O', b'H', rest @ ..] => (KeyAction::Scroll(-ALL), rest),
        [ESCAPE, b'[' | b'O', b'F', rest @ ..] => (KeyAction::Scroll(ALL), rest),
        [ESCAPE, ..] => (KeyAction::Unknown, &[]),
        [key, rest @ ..] => {
            (RowOrder::of_key(char::from(*key)).map_or(KeyAction::Unknown, KeyAction::Order), rest)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(mut bytes: &[u8]) -> Vec<KeyAction> {
        let mut found = Vec::new();
        while let Some((key, rest)) = next_key(bytes) {
            found.push(key);
            bytes = rest;
        }
        found
    }

    #[test]
    fn keys_that_come_together_are_separated() {
        let expected = [
            KeyAction::Order(RowOrder::Name),
            KeyAction::Scroll(1),
            KeyAction::Scroll(-PAGE),
            KeyAction::Leave,
        ];
        assert_eq!(keys(b"n\x1b[B\x1b[5~q"), expected);
    }

    #[test]
    fn a_sequence_that_is_not_known_does_nothing() {
        assert_eq!(keys(b"\x1b[15~"), [KeyAction::Unknown]);
        assert_eq!(keys(b"\x1b"), [KeyAction::Unknown]);
        assert_eq!(keys(b"x"), [KeyAction::Unknown]);
    }
}
