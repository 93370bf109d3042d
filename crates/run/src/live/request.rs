//! What a visitor of a run's own socket may request: one line of JSON.
//!
//! Only the user and root can connect there, and they may do to the run what they like anyway. What
//! cannot be understood is passed over, as by every cosched that does not know a later one's
//! requests. There is no answer: that a program was released is seen in the undo log, which tells
//! it even if cosched dies meanwhile.

use serde::{Deserialize, Serialize};

const SCHEMA: &str = "cosched-request/1";
/// The form of requests of earlier versions.
const EARLIER_SCHEMA: &str = "cosched-ask/1";
/// No request is longer.
const LONGEST: usize = 256;

/// One request, as it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenRequest {
    schema: String,
    detach: i32,
}

impl WrittenRequest {
    /// Release the program that this process belongs to.
    pub fn detach(pid: i32) -> WrittenRequest {
        WrittenRequest { schema: SCHEMA.to_owned(), detach: pid }
    }

    /// The line to be sent.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

/// Takes whole requests out of what was received, and returns the processes that they name; what is
/// too long for one is thrown away.
pub(super) fn take(received: &mut Vec<u8>) -> Vec<i32> {
    let mut requests = Vec::new();
    while let Some(end) = received.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = received.drain(..=end).collect();
        let request = serde_json::from_slice::<WrittenRequest>(&line).ok();
        let known =
            request.filter(|request| [SCHEMA, EARLIER_SCHEMA].contains(&request.schema.as_str()));
        requests.extend(known.map(|request| request.detach));
    }
    if received.len() > LONGEST {
        received.clear();
    }
    requests
}

#[cfg(test)]
mod tests {
    use cosched_fuzz::damaged;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_taken_whole_and_in_order() {
        let text = WrittenRequest::detach(7).line()
            + "GET / HTTP/1.1\n{\"schema\":\"cosched-request/9\",\"detach\":1}\n"
            + "{\"schema\":\"cosched-ask/1\",\"detach\":6}\n"
            + &WrittenRequest::detach(8).line();
        let mut received = text.into_bytes();
        let rest = received.split_off(received.len() - 5);
        assert_eq!(take(&mut received), [7, 6]);
        received.extend(rest);
        assert_eq!(take(&mut received), [8]);
        assert!(received.is_empty());
    }

    proptest! {
        #[test]
        fn damaged_requests_take_no_memory(bytes in damaged(vec![
            WrittenRequest::detach(7).line().into_bytes(),
            b"GET / HTTP/1.1\n".to_vec(),
        ])) {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
            let mut received = bytes;
            prop_assert!(take(&mut received).len() <= lines);
            prop_assert!(received.len() <= LONGEST);
        }
    }

    #[test]
    fn a_client_without_line_end_takes_no_memory() {
        let mut received = vec![b'x'; LONGEST + 1];
        assert!(take(&mut received).is_empty());
        assert!(received.is_empty());
    }
}
