//! This machine as the site of an experiment.

use cosched_core::Profile;
use cosched_core::engine::outcome::Ended;
use cosched_core::result::Context;
use cosched_core::workload::Workload;
use cosched_linux::ground::ByWeight;
use cosched_policy::Kind;

use super::{Site, Turn};
use crate::args::HowArgs;
use crate::doctor::by_weight::ByWeightReport;
use crate::failure::Failure;
use crate::profile;
use crate::session::{Origins, Ran, Request, Session, by_weight, say};
use crate::store::Store;

/// This machine.
pub(crate) struct Here<'a> {
    session: Session,
    workload: &'a Workload,
    /// How programs run alone.
    how: &'a HowArgs,
    /// Whether to measure the times alone in every round.
    solo: bool,
    store: Option<Store>,
    profiles: Vec<Profile>,
}

impl<'a> Here<'a> {
    /// For these programs. The times alone are those of the store, unless they are measured in
    /// every round.
    pub(crate) fn new(
        workload: &'a Workload,
        how: &'a HowArgs,
        solo: bool,
    ) -> Result<Here<'a>, Failure> {
        let session = Session::here()?;
        let store = match solo {
            true => Some(Store::open().map_err(Failure::input)?),
            false => Store::open_if_there(),
        };
        let profiles = session.profiles(workload, how, store.as_ref());
        Ok(Here { session, workload, how, solo, store, profiles })
    }

    fn request<'r>(&'r self, workload: &'r Workload, kind: Kind, how: &'r HowArgs) -> Request<'r> {
        Request {
            workload,
            kind,
            how,
            out: None,
            stdout_is_taken: true,
            profiles: &self.profiles,
            count: false,
            origins: Origins::Started,
        }
    }
}

impl Site for Here<'_> {
    fn session(&self) -> &Session {
        &self.session
    }

    fn warms_up(&self) -> bool {
        true
    }

    fn finds_times_alone(&self) -> bool {
        self.solo
    }

    fn check(&self, workload: &Workload, kind: Kind, how: &HowArgs) -> Result<(), Failure> {
        let request = self.request(workload, kind, how);
        self.session.check(&request)?;
        if let Some(lack) = self.session.cannot_mold(&request) {
            say(format_args!("{lack}"));
        }
        check_weights(kind, how)
    }

    fn expected(&self, turn: &Turn<'_>, _round: u16) -> Context {
        self.session.expected(&self.request(turn.workload, turn.kind, turn.how))
    }

    fn alone(&mut self, _round: u16) -> Result<Ended, Failure> {
        let Some(store) = &mut self.store else { return Ok(Ended::Complete) };
        let ended = profile::measure_all(&self.session, self.workload, self.how, store)?;
        self.profiles = self.session.profiles(self.workload, self.how, Some(store));
        Ok(ended)
    }

    fn run(&mut self, turn: &Turn<'_>) -> Result<Ran, Failure> {
        let request = self.request(turn.workload, turn.kind, turn.how);
        self.session.execute(&Request { out: Some(turn.out), ..request })
    }
}

/// Refuses turns by weight where they are insisted on and cannot be had; says so where another
/// policy stands in.
fn check_weights(kind: Kind, how: &HowArgs) -> Result<(), Failure> {
    let wish = by_weight(kind, how);
    if wish == ByWeight::No {
        return Ok(());
    }
    let Some(lack) = ByWeightReport::lack().map_err(Failure::broken)? else { return Ok(()) };
    if wish == ByWeight::Always {
        return Err(Failure::Input(format!("{kind}: --turns weight: {lack}")));
    }
    say(format_args!("for {kind}, the policy auto decides here. {lack}"));
    Ok(())
}
