//! How long the workers of an OpenMP runtime look on for the next parallel region, in programs whose barriers are cosched's.
//!
//! Between regions threads wait inside the runtime, where no entry tells of it: gcc's look on for milliseconds, LLVM's for
//! 200 ms, on CPUs that somebody else may want. Both can be told to sleep sooner, by a variable. So a program whose barriers
//! give CPUs away gets a bound there, too, of about what a wake-up costs (`docs/barrier.md` has what each gave), unless somebody
//! has said how its threads are to wait.

use std::ffi::OsString;

/// A variable, what it is set to, and which others say the same.
const BOUNDS: [(&str, &str, &str); 2] = [
    // Looks, 15 to 47 ns each (64 take one to three microseconds).
    ("GOMP_SPINCOUNT", "1000", "OMP_WAIT_POLICY"),
    // Milliseconds; older versions know no finer ones.
    ("KMP_BLOCKTIME", "1", "OMP_WAIT_POLICY"),
];

/// The variables that a program with this environment gets.
pub(super) fn bounds(
    environment: &[(OsString, OsString)],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let is_said = |name: &str| environment.iter().any(|(said, _)| said == name);
    BOUNDS
        .into_iter()
        .filter(move |(name, _, same)| !is_said(name) && !is_said(same))
        .map(|(name, value, _)| (name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_somebody_has_said_about_waiting_stays_said() {
        let told = |name: &str| {
            let environment = [(OsString::from(name), OsString::from("5"))];
            bounds(&environment).map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(told("OMP_NUM_THREADS"), ["GOMP_SPINCOUNT", "KMP_BLOCKTIME"]);
        assert_eq!(told("GOMP_SPINCOUNT"), ["KMP_BLOCKTIME"]);
        assert_eq!(told("KMP_BLOCKTIME"), ["GOMP_SPINCOUNT"]);
        assert!(told("OMP_WAIT_POLICY").is_empty());
    }
}
