//! Another try at what fails for a moment: for lack of memory or of descriptors, or by an error of
//! a device. A helper that gave up at the first error would leave its program or its run alone.

use std::thread::sleep;
use std::time::Duration;

const TRIES: usize = 10;
const PAUSE: Duration = Duration::from_millis(2);

/// Tries again and again for a moment. Returns what the last try said.
pub(crate) fn again<T, E>(mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    for _ in 1..TRIES {
        if let Ok(done) = attempt() {
            return Ok(done);
        }
        sleep(PAUSE);
    }
    attempt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_for_a_moment_is_done_and_what_fails_always_ends() {
        let mut left = 3;
        let tried = again(|| {
            left -= 1;
            if left > 0 { Err("for now") } else { Ok(()) }
        });
        assert_eq!((tried, left), (Ok(()), 0));
        assert_eq!(again(|| Err::<(), _>("always")), Err("always"));
    }
}
