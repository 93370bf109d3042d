//! Glances: whether threads do hardly more than wait, seen before an interval is over.
//!
//! Where they do, side by side is lost time, and nothing is lost by a trial, or by going back to turns. So an interval in which it is
//! [seen](super::watch) whether they wait ends as soon as a glance shows that; one that shows less is a part of what the
//! interval shows.

use cosched_core::{Nanos, World};

use super::Auto;
use super::judgement::MOSTLY;
use super::phases::{LOOK, MOMENT, Phase};

/// How soon it is glanced first whether threads do hardly more than wait, so that it need not go on for that long: when each
/// program can have had so much CPU time that it is seen, and no sooner than this.
const GLANCE: (Nanos, Nanos) = (Nanos::from_millis(10), Nanos::from_millis(12));

impl Auto {
    /// Has it glanced at, the first time.
    pub(super) fn glance(&mut self, world: &World<'_>) {
        self.glance_in(self.until_all_are_seen(world), world);
    }

    /// The same where it is looked back. Of every stretch, so much is needed to take it in.
    pub(super) fn glance_back(&mut self, world: &World<'_>) {
        let at = world.now + self.until_all_are_seen(world).max(MOMENT.1 / 2);
        self.glance_at = (at < self.look_at).then_some(at);
    }

    /// How long it takes until all that run side by side can have been seen to wait.
    fn until_all_are_seen(&self, world: &World<'_>) -> Nanos {
        let programs = self.candidates(world).count() as u64;
        (GLANCE.0 * programs / (world.cpus.len() as u64).max(1)).max(GLANCE.1)
    }

    /// A glance showed too little: another one follows when the interval is twice as long, unless it is almost over then.
    pub(super) fn glance_again(&mut self, world: &World<'_>) {
        if self.phase == Phase::SideBySide && self.watch.is_on() {
            let left = self.look_at.since(world.now);
            self.glance_in(LOOK.since(left), world);
        }
    }

    fn glance_in(&mut self, time: Nanos, world: &World<'_>) {
        let at = world.now + time;
        self.glance_at = (world.now < at && at + time <= self.look_at).then_some(at);
    }

    /// Whether it is seen already that those who run side by side do hardly more than wait for siblings.
    pub(super) fn mostly_wait(&self, world: &World<'_>) -> bool {
        let did = self.interval.so_far();
        matches!(self.phase, Phase::SideBySide | Phase::LooksBack)
            && !self.disturbed
            && self.all_show_waits(did, world)
            && did.part_waiting() >= MOSTLY
    }
}
