//! Why measuring ends early.

use std::process::ExitCode;

use cosched_core::engine::outcome::Ended;

use crate::store::StoreError;
use crate::ui::failure::{Failure, exit_code};

/// Why measuring ended early.
#[derive(Debug)]
pub enum MeasuringStop {
    /// Something is wrong, or broke.
    Failed(Failure),
    /// The user requests its end.
    Interrupted(Ended),
}

impl MeasuringStop {
    /// The exit code after an interruption.
    ///
    /// # Errors
    /// The failure, if it is one.
    pub fn code(self) -> Result<ExitCode, Failure> {
        Ok(exit_code(MeasuringStop::ended(Err(self))?, false))
    }

    /// How something ended that measures, or the failure.
    pub(crate) fn ended(measured: Result<(), MeasuringStop>) -> Result<Ended, Failure> {
        match measured {
            Ok(()) => Ok(Ended::Complete),
            Err(MeasuringStop::Interrupted(ended)) => Ok(ended),
            Err(MeasuringStop::Failed(failure)) => Err(failure),
        }
    }

    /// Stops if the user has ended it.
    pub(crate) fn if_interrupted(ended: Ended) -> Result<(), MeasuringStop> {
        match ended {
            Ended::Complete => Ok(()),
            interrupted => Err(MeasuringStop::Interrupted(interrupted)),
        }
    }
}

impl From<Failure> for MeasuringStop {
    fn from(failure: Failure) -> MeasuringStop {
        MeasuringStop::Failed(failure)
    }
}

impl From<StoreError> for MeasuringStop {
    fn from(error: StoreError) -> MeasuringStop {
        MeasuringStop::Failed(error.into())
    }
}
