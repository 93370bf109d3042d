//! How long the threads of a program look for work between parallel regions.
//!
//! *Problem.* Between regions, threads of OpenMP wait inside the runtime, where no entry tells of
//! it. gcc's threads look on for milliseconds, on CPUs that other programs may need.
//!
//! *Idea.* A variable tells them to sleep sooner. A program with barriers of cosched gets it,
//! unless the user has said how its threads are to wait. LLVM's threads yield between looks; a
//! bound gained nothing there (`docs/research/barrier.md` has what each gave).

/// The variable of gcc's runtime, in looks, and the one that says the same in other words.
const SPINS: &str = "GOMP_SPINCOUNT";
const POLICY: &str = "OMP_WAIT_POLICY";
/// Some 50 us on the machine where it was measured: about two wake-ups.
const LOOKS: &str = "2000";

/// The variable that a program with barriers of cosched gets, and its value; `None`: its
/// environment says how its threads are to wait.
#[must_use]
pub fn bound(is_set: impl Fn(&str) -> bool) -> Option<(&'static str, &'static str)> {
    (!is_set(SPINS) && !is_set(POLICY)).then_some((SPINS, LOOKS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_policy_in_the_environment_stays() {
        let bound_with = |set: &str| bound(|name| name == set);
        assert_eq!(bound_with("OMP_NUM_THREADS"), Some(("GOMP_SPINCOUNT", "2000")));
        assert_eq!((bound_with("GOMP_SPINCOUNT"), bound_with("OMP_WAIT_POLICY")), (None, None));
    }
}
