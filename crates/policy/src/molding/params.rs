//! The constants of molding.

use crate::constant::params;

params! {
    /// The constants of molding.
    pub(crate) struct Params of "molding" {
        /// By how much earlier all programs have to end to be started with fewer threads than they
        /// request.
        worth: f64 = 0.03, [0.0, 1.0], "part of the total time", "less is noise of single runs";
    }
}
