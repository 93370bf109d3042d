//! What is said of a choice: once, when it is another way than before or another reason.

use cosched_core::{Ground, Manner, Plan, Why};

use super::Auto;

impl Auto {
    /// Says how programs are run from now on.
    pub(super) fn tell(
        &mut self,
        manner: Manner,
        ground: Ground,
        in_gangs: Option<f64>,
        plan: &mut Plan,
    ) {
        if self.told.replace((manner, ground)) != Some((manner, ground)) {
            let (side_by_side, explored) = (self.side_by_side, self.budget.explored());
            plan.because(None, Why::Chosen { manner, ground, side_by_side, in_gangs, explored });
        }
    }
}
