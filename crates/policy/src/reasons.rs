//! The reasons of all policies, and their words.
//!
//! A policy that has reasons of its own has an enum of them in its own folder, and lists it in its
//! [descriptor](crate::Descriptor). All policies share [`SharedReason`]. Codes name reasons of all
//! policies, so no two enums have the same one: a test checks that.

use cosched_core::{Says, Why, Wording};

pub use crate::auto::{AutoReason, Mode, ReasonCode};
pub use crate::balance::BalanceReason;
pub use crate::common::reasons::SharedReason;
pub use crate::fair_progress::FairReason;
pub use crate::faithful::FaithfulReason;
pub use crate::gangs::bandwidth::BandwidthReason;
pub use crate::gangs::cgreedy::CgreedyReason;
pub use crate::gangs::minwait::MinwaitReason;
pub use crate::gangs::thread_limits::LimitReason;
pub use crate::shuffling::ShufflingReason;
pub use crate::unmanaged::WeightReason;

use crate::common::reasons::ReasonSet;
use crate::kind::Kind;

/// The words of a recorded reason. A reason that no policy has is shown as its code and fields: it
/// is of an earlier or newer version of cosched.
pub fn words(why: &Why) -> Wording {
    sets().find_map(|set| (set.words)(why)).unwrap_or_else(|| {
        let code = why.code();
        let fields: Vec<String> =
            why.fields().map(|(name, value)| format!("{name} {value}")).collect();
        let in_general =
            format!("another version of cosched has the reason '{code}', which this one lacks");
        Wording::new(in_general, code.to_owned())
            .figures((!fields.is_empty()).then(|| fields.join(", ")))
            .says(Says::Nothing)
    })
}

/// The reasons that policies share, and those of each policy.
fn sets() -> impl Iterator<Item = ReasonSet> {
    let of_policies = Kind::ALL.into_iter().flat_map(|kind| kind.descriptor().reasons);
    std::iter::once(ReasonSet::of::<SharedReason>()).chain(of_policies.copied())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// A recorded reason has nothing but its code to say which enum it is of.
    #[test]
    fn no_two_enums_have_a_reason_of_the_same_code() {
        let mut owners = BTreeMap::new();
        for set in sets() {
            let (name, codes) = (set.codes)();
            assert!(!codes.is_empty(), "{name} has no reasons");
            for code in codes {
                let owner = *owners.entry(code.clone()).or_insert(name);
                assert_eq!(owner, name, "both have a reason '{code}'");
            }
        }
        let earlier = ["fills", "lent", "backfills", "shares-backfill"];
        assert!(earlier.iter().all(|code| owners.contains_key(*code)), "{owners:?}");
        // What has no code of its own is recorded as this.
        assert!(!owners.contains_key("unnamed"), "{owners:?}");
    }

    #[test]
    fn reasons_of_all_policies_are_found_by_their_codes() {
        let general = |why: Why| words(&why).in_general.into_owned();
        assert_eq!(general(SharedReason::InGang.into()), "it has its turn");
        let limits = Why::from(LimitReason::TriesThreads { threads: 2, requested: 4 });
        assert_eq!(words(&limits).says, Says::Threads);
        assert_eq!(words(&limits).brief, "tries 2 threads");
        assert_eq!(general(AutoReason::HardlyRuns.into()).find("CPU time"), Some(19));
    }

    #[test]
    fn an_unknown_reason_is_shown_as_its_code_and_fields() {
        let why = Why::new("looks-back").with("moment", 5_u16).with("share", 0.5);
        let words = words(&why);
        assert!(words.in_general.contains("'looks-back'"));
        assert_eq!(words.figures.as_deref(), Some("moment 5, share 0.5"));
        assert_eq!((words.brief.as_ref(), words.says), ("looks-back", Says::Nothing));
        let damaged = Why::new("queued").with("ahead", 0.5);
        assert_eq!(super::words(&damaged).brief, "queued");
    }
}
