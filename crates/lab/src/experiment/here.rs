//! This machine as the site of an experiment.

use cosched_core::Profile;
use cosched_linux::control::run_cgroups::ByWeight;
use cosched_policy::Kind;
use cosched_results::result::Context;
use cosched_workload::{SEPARATOR, Workload};

use super::{Site, VariantRun};
use crate::alone;
use crate::how::How;
use crate::how::check::{unused_weights, without_malleable};
use crate::session::{
    ByWeightReport, Extras, NO_WEIGHTS, Ran, Request, Session, THIS, by_weight, unused_by_weight,
};
use crate::stop::MeasuringStop;
use crate::store::Store;
use crate::ui::Talk;
use crate::ui::failure::Failure;

/// This machine.
pub struct Here<'a> {
    session: Session,
    workload: &'a Workload,
    /// How programs run alone.
    how: &'a How,
    /// Whether to measure the solo times in every round.
    solo: bool,
    /// How much is told on the way.
    talk: Talk,
    store: Option<Store>,
    profiles: Vec<Profile>,
}

impl<'a> Here<'a> {
    /// For these programs. The solo times are those of the store, unless they are measured in
    /// every round.
    ///
    /// # Errors
    /// When this machine or the store cannot be read.
    pub fn new(
        workload: &'a Workload,
        how: &'a How,
        solo: bool,
        talk: Talk,
    ) -> Result<Here<'a>, Failure> {
        let session = Session::here()?;
        let store = match solo {
            true => Some(Store::open().map_err(Failure::input)?),
            false => Store::open_if_there(),
        };
        let profiles = session.profiles(workload, how, store.as_ref());
        Ok(Here { session, workload, how, solo, talk, store, profiles })
    }

    /// Names the options and weights that have no effect in any of these variants.
    ///
    /// # Errors
    /// When files of the kernel cannot be read.
    pub fn tell_unused(&self, variants: &[(Kind, How)]) -> Result<(), Failure> {
        let variants = variants.iter().map(|(kind, how)| (*kind, how));
        let programs = &self.workload.programs;
        let kinds: Vec<Kind> = variants.clone().map(|(kind, _)| kind).collect();
        let has_malleable = programs.iter().any(|spec| spec.malleable);
        let is_alone = programs.len() == 1 && kinds.iter().any(|kind| kind.makes_gangs());
        let alone = is_alone.then(|| {
            format!(
                "there is one program, so it shares CPUs with no other, and turns change nothing; \
                 write '{SEPARATOR}' between the commands of several programs"
            )
        });
        let notes = unused_weights(programs, variants.clone()).into_iter();
        let notes = notes.chain(without_malleable(&kinds, has_malleable));
        notes.chain(alone).for_each(|note| self.talk.tell(format_args!("{note}")));
        let notes = unused_by_weight(&self.session, variants);
        // Without CPU groups another policy decides, which uses them.
        if !notes.is_empty() && ByWeightReport::lack().map_err(Failure::broken)?.is_none() {
            notes.iter().for_each(|note| self.talk.tell(format_args!("{note}")));
        }
        Ok(())
    }

    fn request<'r>(&'r self, workload: &'r Workload, kind: Kind, how: &'r How) -> Request<'r> {
        Request {
            extras: Extras { talk: self.talk, solo_runs: self.solo, ..Extras::default() },
            ..Request::new(workload, kind, how, &self.profiles)
        }
    }
}

impl Site for Here<'_> {
    fn session(&self) -> &Session {
        &self.session
    }

    fn tell_before_runs(&self) {
        self.session.tell_if_busy(self.talk);
        self.session.tell_if_crowded(self.workload, self.talk);
    }

    fn warms_up(&self) -> bool {
        true
    }

    fn finds_times_alone(&self) -> bool {
        self.solo
    }

    fn check(&self, workload: &Workload, kind: Kind, how: &How) -> Result<(), Failure> {
        let request = self.request(workload, kind, how);
        self.session.check(&request)?;
        if let Some(lack) = self.session.cannot_mold(&request) {
            self.talk.tell(format_args!("{lack}"));
        }
        if let Some(foreign) = Session::foreign_table(THIS, &request) {
            self.talk.tell(format_args!("{foreign}"));
        }
        check_weights(kind, how, self.talk)
    }

    fn expected(&self, turn: &VariantRun<'_>, _round: u16) -> Context {
        self.session.expected(&self.request(turn.workload, turn.kind, turn.how))
    }

    fn alone(&mut self, _round: u16) -> Result<(), MeasuringStop> {
        let Some(store) = &mut self.store else { return Ok(()) };
        alone::measure_all(&self.session, self.workload, self.how, self.talk, store)?;
        self.profiles = self.session.profiles(self.workload, self.how, Some(store));
        Ok(())
    }

    fn run(&mut self, turn: &VariantRun<'_>) -> Result<Ran, MeasuringStop> {
        let request = self.request(turn.workload, turn.kind, turn.how);
        Ok(self.session.execute(&Request { out: Some(turn.out), ..request })?)
    }
}

/// Refuses turns by weight where they are insisted on and cannot be had; says so where another
/// policy stands in.
fn check_weights(kind: Kind, how: &How, talk: Talk) -> Result<(), Failure> {
    let wish = by_weight(kind, how);
    if wish == ByWeight::No {
        return Ok(());
    }
    let Some(lack) = ByWeightReport::lack().map_err(Failure::broken)? else { return Ok(()) };
    if wish == ByWeight::Always {
        return Err(Failure::Input(format!("{kind}: --turns weight: {lack}")));
    }
    talk.tell(format_args!("{kind}: {NO_WEIGHTS}"));
    Ok(())
}
