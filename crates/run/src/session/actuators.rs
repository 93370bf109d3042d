//! Actuators that this user or this kernel does not allow.

use cosched_core::Actuator;
use cosched_core::format::list;
use cosched_linux::rights::{self, Right};
use cosched_policy::OptionGroup;

use super::request::Request;
use crate::how::MeasureChoices;
use crate::ui::failure::Failure;

/// Of the actuators that the user named, those that work here, with what is said of the others;
/// `None`: all of them work.
///
/// # Errors
/// When none of them works here.
pub(super) fn usable(request: &Request<'_>) -> Result<Option<(Vec<Actuator>, String)>, Failure> {
    match request.kind.takes(OptionGroup::Slices) {
        true => without(&request.how.measure, lacking),
        false => Ok(None),
    }
}

/// What an actuator lacks here. Without slices, `batch-slice` is at least `batch`.
fn lacking(actuator: Actuator) -> Option<Right> {
    let right = match actuator {
        Actuator::None | Actuator::Batch | Actuator::BatchSlice => return None,
        Actuator::Slice | Actuator::BatchStages => rights::slices(),
        Actuator::RoundRobin => rights::real_time(),
    };
    Some(right).filter(|right| !right.available)
}

fn without(
    how: &MeasureChoices,
    lacking: impl Fn(Actuator) -> Option<Right>,
) -> Result<Option<(Vec<Actuator>, String)>, Failure> {
    let named = how.actuators.as_deref().unwrap_or_default();
    // Without the guard, the first one is used and no other.
    let named = if how.no_guard { &named[..named.len().min(1)] } else { named };
    let (mut left, mut lacks) = (Vec::new(), Vec::new());
    for actuator in named {
        match lacking(*actuator) {
            Some(right) => {
                lacks.push(format!("{actuator} is not possible here ({})", right.detail))
            }
            None => left.push(*actuator),
        }
    }
    let lacks = match lacks.is_empty() {
        true => return Ok(None),
        false => format!("--actuators: {}; `cosched doctor` names a remedy", list(&lacks)),
    };
    if left.is_empty() { Err(Failure::Input(lacks)) } else { Ok(Some((left, lacks))) }
}

#[cfg(test)]
mod tests {
    use cosched_linux::rights::Ability;

    use super::*;

    #[test]
    fn actuators_that_lack_a_right_are_left_out_or_refused() {
        let lacking = |actuator: Actuator| {
            let (name, detail) = (Ability::RealTime, "not permitted".to_owned());
            let right = Right { name, available: false, detail, gives: "", remedy: None };
            (actuator == Actuator::RoundRobin).then_some(right)
        };
        let usable = |actuators: &[Actuator], no_guard| {
            let actuators = Some(actuators.to_vec());
            without(&MeasureChoices { actuators, no_guard, ..Default::default() }, lacking)
        };
        let both = [Actuator::RoundRobin, Actuator::Batch];
        let (left, said) = usable(&both, false).unwrap().unwrap();
        assert_eq!(left, [Actuator::Batch]);
        assert!(said.contains("round-robin is not possible here (not permitted)"), "{said}");
        assert!(said.contains("`cosched doctor`"), "{said}");
        assert!(usable(&both, true).is_err() && usable(&both[..1], false).is_err());
        assert!(usable(&both[1..], false).unwrap().is_none());
    }
}
