//! All mistakes of a workload, so that its user corrects them in one go.

use std::cell::RefCell;

use super::error::WorkloadError;

/// More mistakes of a kind are not looked for: what has so many is another file.
pub(super) const MOST: usize = 1000;

/// Mistakes, in any order while they are found.
#[derive(Default)]
pub(super) struct Mistakes {
    found: RefCell<Vec<WorkloadError>>,
}

impl Mistakes {
    pub(super) fn add(&self, mistake: WorkloadError) {
        self.found.borrow_mut().push(mistake);
    }

    /// The positions of the programs that have a mistake in these keys.
    pub(super) fn programs(&self, keys: &[&str]) -> impl Iterator<Item = usize> {
        let found = self.found.borrow();
        let wrong = found.iter().filter_map(|mistake| match mistake {
            WorkloadError::Invalid { place, key, .. } if keys.contains(&key.as_ref()) => {
                place.program.as_ref().map(|(number, _)| number - 1)
            }
            _ => None,
        });
        wrong.collect::<Vec<_>>().into_iter()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.borrow().is_empty()
    }

    /// What was read, if nothing is wrong with it; otherwise all mistakes in the order of the file.
    pub(super) fn or<T>(self, read: T) -> Result<T, WorkloadError> {
        let mut mistakes = self.found.into_inner();
        mistakes.sort_by_key(WorkloadError::position);
        match (mistakes.pop(), mistakes.is_empty()) {
            (None, _) => Ok(read),
            (Some(only), true) => Err(only),
            (Some(last), false) => {
                mistakes.push(last);
                Err(WorkloadError::Several(mistakes))
            }
        }
    }
}
