//! Messages of protocol buffers, written by hand.
//!
//! A message is a sequence of fields: a key (the field's number and the kind of its value), then
//! the value. Four kinds of values are enough for a trace. All of them are written either as a
//! *varint* (seven bits per byte, lowest first; the top bit says that more follow) or as a length
//! and that many bytes. That is simpler than a generator and its build.
//!
//! *Source.* Protocol buffers' description of the wire format.

/// The kinds of values that are used here.
const VARINT: u64 = 0;
const LENGTH_DELIMITED: u64 = 2;

/// A message that is being written; fields come in the order of the calls.
#[derive(Clone, Debug, Default)]
pub(super) struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// A number: `uint64`, an enum, or an `int64` that is not negative.
    pub(super) fn number(mut self, field: u64, value: u64) -> ProtobufMessage {
        self.varint((field << 3) | VARINT);
        self.varint(value);
        self
    }

    pub(super) fn text(self, field: u64, value: &str) -> ProtobufMessage {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(self, field: u64, value: &ProtobufMessage) -> ProtobufMessage {
        self.bytes(field, &value.0)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn bytes(mut self, field: u64, value: &[u8]) -> ProtobufMessage {
        self.varint((field << 3) | LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification_are_written() {
        let number = ProtobufMessage::default().number(1, 150);
        assert_eq!(number.clone().into_bytes(), [0x08, 0x96, 0x01]);
        let text = ProtobufMessage::default().text(2, "testing");
        assert_eq!(text.into_bytes(), b"\x12\x07testing");
        assert_eq!(
            ProtobufMessage::default().message(3, &number).into_bytes(),
            [0x1a, 0x03, 0x08, 0x96, 0x01]
        );
    }

    #[test]
    fn the_largest_number_takes_ten_bytes() {
        let bytes = ProtobufMessage::default().number(1, u64::MAX).into_bytes();
        assert_eq!(bytes[1..10], [0xff; 9]);
        assert_eq!(bytes[10..], [0x01]);
    }
}
