//! Opens what clients of a run see: what it is, as far as that is known before it begins.

use std::time::SystemTime;

use cosched_linux::kernel::poll::hold_interruptions;
use cosched_results::live::About;

use super::here::Session;
use super::molding::Molded;
use super::request::Request;
use crate::live::{MetricsAt, ShownRun};
use crate::ui::failure::Failure;

impl Session {
    /// Opens the endpoints of a run.
    ///
    /// # Errors
    /// Those of `ShownRun::open`.
    pub fn open_live(
        &self,
        request: &Request<'_>,
        metrics: Option<&MetricsAt>,
    ) -> Result<ShownRun, Failure> {
        // The run's socket has to be removed at the end.
        hold_interruptions().map_err(Failure::broken)?;
        let molded = self.molded(request);
        let request = &Molded::instead(molded.as_ref(), request);
        let programs = &request.workload.programs;
        let threads: Vec<u16> = programs.iter().map(|spec| self.demand(spec)).collect();
        let options = Some(request.how.options(request.kind));
        let options = options.filter(|_| request.kind.makes_gangs());
        let about = About {
            pid: std::process::id(),
            policy: request.kind.to_string(),
            placement: self.placement(request),
            quantum: options.map(|options| options.quantum),
            started_at: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            names: programs.iter().map(|spec| spec.name.clone()).collect(),
        };
        let programs = self.setup(request, &threads).programs;
        ShownRun::open(about, programs, metrics, request.extras.talk)
    }
}
