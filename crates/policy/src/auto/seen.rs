//! What was seen of the programs, and who competes for CPUs by that.
//!
//! What was seen belongs to a position of the workload: a program that is repeated is the same one again.

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::{Manner, Nanos, Program, ProgramId, ProgramState, World};

use super::Auto;
use super::inner::Known;
use super::interval::{Did, Interval};
use super::judgement::Rival;
use super::phases::{MOMENT, Phase};
use super::progress::{Bounds, Stretch, weighted_speedup};

/// Whoever uses less than this of a CPU competes with nobody; and less than this part of what a thread has if all compete.
const IDLES: (f64, f64) = (0.2, 0.25);
/// Whoever is left alone beside gangs competes when it uses so many times as much.
const WAKES: f64 = 1.4;
/// Whoever uses less than this part of the threads that it asks for is narrower than it says.
const NARROW: f64 = 0.6;
/// Whoever has this part of the threads that it asks for at work alone waits without sleeping, or not at all.
const AWAKE: f64 = 0.93;
/// What a thread brings on average, of what the first brings, where a program scales well.
const SCALES: f64 = 0.9;

/// Whoever has had less CPU time than this, seconds, is still being loaded.
const LOADED: f64 = 0.01;
/// Of whoever had less CPU time, seconds, too few samples may have been taken to see whether it waits.
const ENOUGH: f64 = 0.01;
/// It is seen whether programs wait if it is seen for this part of their CPU time.
const MOST_SEEN: f64 = 0.8;

/// What was seen of the program at a position of the workload.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Seen {
    /// It hardly uses CPUs.
    pub(super) idles: bool,
    /// The CPU time that it has had so far, seconds.
    had: f64,
    /// How many CPUs it used while it had all of them, and how many of these outside the kernel.
    pub(super) alone: Option<(f64, f64)>,
    /// The part of its time outside the kernel in which its threads wait in a runtime: then, and with fewer of them.
    waits_alone: Option<f64>,
    waits_fewer: Option<f64>,
    /// Whether that they wait is seen at all.
    shows_waits: bool,
    /// It has told of its progress.
    pub(super) tells: bool,
    /// What it did side by side; in its turns, with all its threads; and with fewer.
    side_by_side: Option<Stretch>,
    pub(super) in_turns: Option<Stretch>,
    fewer: Option<Stretch>,
}

impl Seen {
    /// How many CPUs it uses alone, where these are much fewer than it asks for.
    fn narrow(&self, asked: usize) -> Option<usize> {
        let (width, _) = self.alone.filter(|(width, _)| *width < NARROW * asked as f64)?;
        // A little more than a whole number is noise.
        Some(((width - 0.25).ceil().max(1.0) as usize).min(asked))
    }

    /// By what it did alone.
    pub(super) fn alone(&self, asked: usize) -> Rival {
        let threads = self.narrow(asked).unwrap_or(asked);
        let never_sleeps = self.alone.is_some_and(|(width, _)| width >= AWAKE * asked as f64);
        let rate = self.alone.map_or(threads as f64, |(_, rate)| rate);
        let part = self.waits_alone.unwrap_or_default();
        let waiting = if part < 1.0 { rate * part / (1.0 - part) } else { threads as f64 };
        Rival { threads, rate, waiting, never_sleeps, shows_waits: self.shows_waits }
    }

    /// By what it asks for. What it did side by side tells nothing here: threads that wait for a sibling without a CPU may
    /// sleep, so that a wide program looks narrow just where it suffers most.
    pub(super) fn beside(&self, asked: usize) -> Rival {
        let (rate, shows_waits) = (asked as f64, self.shows_waits);
        Rival { threads: asked, rate, waiting: 0.0, never_sleeps: false, shows_waits }
    }

    /// The part of its time outside the kernel in which it waited when that was last seen, in turns or with fewer threads.
    pub(super) fn waited(&self, phase: Phase) -> Option<f64> {
        match phase {
            Phase::InGangs => self.waits_alone,
            Phase::FewerThreads => self.waits_fewer,
            Phase::SideBySide | Phase::LooksBack | Phase::Trial { .. } => None,
        }
    }

    fn tells(&self) -> bool {
        self.in_turns.is_some_and(|stretch| stretch.ticks > Some(0.0))
    }

    /// Takes in what it did, for so many seconds of it, and whether it has told before.
    fn stretch(&mut self, did: &Did, seconds: f64, at: Nanos) -> Stretch {
        let told_before = self.tells;
        self.tells |= did.ticks > Some(0.0);
        let ticks = did.ticks.filter(|_| told_before);
        Stretch { seconds, outside: did.outside, ticks, at }
    }
}

impl Auto {
    /// Those that have been let in, and may use CPUs.
    fn present<'a>(&'a self, world: &World<'a>) -> impl Iterator<Item = &'a Program> {
        world.programs.iter().filter(move |p| {
            let is_left_alone =
                matches!(p.state, ProgramState::StoppedByOther | ProgramState::Exiting);
            self.line.has(p.id) && !is_left_alone
        })
    }

    /// Those that could take turns.
    pub(super) fn candidates<'a>(&'a self, world: &World<'a>) -> impl Iterator<Item = &'a Program> {
        self.present(world).filter(|p| p.freezable)
    }

    pub(super) fn seen(&self, program: &Program) -> Seen {
        self.seen.get(&program.id.slot).copied().unwrap_or_default()
    }

    /// Those that compete for CPUs.
    pub(super) fn competing<'a>(&'a self, world: &World<'a>) -> impl Iterator<Item = &'a Program> {
        self.candidates(world).filter(move |p| !self.seen(p).idles)
    }

    /// The same as they were seen.
    pub(super) fn rivals(&self, by: fn(&Seen, usize) -> Rival, world: &World<'_>) -> Vec<Rival> {
        self.competing(world).map(|p| by(&self.seen(p), asked(p, world))).collect()
    }

    /// The same with those that may not be frozen, if there are any: what they use alone is never seen.
    pub(super) fn with_unfreezable(&self, world: &World<'_>) -> Option<Vec<Rival>> {
        let all = self.present(world).filter(|p| !self.seen(p).idles);
        let rivals = all.map(|p| self.seen(p).alone(asked(p, world))).collect();
        self.present(world).any(|p| !p.freezable).then_some(rivals)
    }

    /// Whether it was seen in this interval whether threads wait: of those that compete with several, for most of what these did.
    pub(super) fn all_show_waits(&self, did: &Interval, world: &World<'_>) -> bool {
        let wide = self.competing(world).filter(|p| asked(p, world) > 1);
        let did: Vec<&Did> = wide.filter_map(|p| did.0.get(&p.id)).collect();
        let seen = did.iter().filter(|did| did.waits.is_some());
        seen.map(|did| did.on_cpu).sum::<f64>()
            >= MOST_SEEN * did.iter().map(|did| did.on_cpu).sum::<f64>()
    }

    /// Whether two at least that compete have done more than to begin: on CPUs that many want, a program that will sleep is
    /// ready to run for long before it has done so.
    pub(super) fn are_loaded(&self, world: &World<'_>) -> bool {
        self.competing(world).filter(|p| self.seen(p).had >= LOADED).count() > 1
    }

    /// Whether it is seen of somebody whether its threads wait.
    pub(super) fn somebody_shows_waits(&self, world: &World<'_>) -> bool {
        self.competing(world).any(|p| self.seen(p).shows_waits)
    }

    /// Whether somebody told of its progress when it last had turns.
    pub(super) fn somebody_tells(&self, world: &World<'_>) -> bool {
        self.competing(world).any(|p| self.seen(p).tells())
    }

    /// The weighted speedup side by side, as far as programs tell of their progress.
    pub(super) fn speedup_side_by_side(&self, world: &World<'_>) -> Option<Bounds> {
        let seen = self.competing(world).map(|p| self.seen(p));
        weighted_speedup(seen.map(|seen| (seen.side_by_side, seen.in_turns)))
    }

    /// The same with fewer threads.
    pub(super) fn speedup_with_fewer(&self, world: &World<'_>) -> Option<Bounds> {
        let seen = self.competing(world).map(|p| self.seen(p));
        weighted_speedup(seen.map(|seen| (seen.fewer, seen.in_turns)))
    }

    /// The same by what all ask for, as if nothing had been seen.
    pub(super) fn in_the_dark(&self, world: &World<'_>) -> Vec<Rival> {
        self.candidates(world).map(|p| Seen::default().beside(asked(p, world))).collect()
    }

    /// Takes in how wide programs are, and who competes.
    pub(super) fn learn(
        &mut self,
        did: &Interval,
        borrowed: &BTreeSet<ProgramId>,
        world: &World<'_>,
    ) {
        let least = match self.phase {
            Phase::Trial { moment } => moment / 2,
            Phase::LooksBack => MOMENT.1 / 2,
            _ => MOMENT.1,
        };
        let threads: usize = self.in_the_dark(world).iter().map(|rival| rival.threads).sum();
        let share = world.cpus.len() as f64 / threads.max(1) as f64;
        for (id, did) in &did.0 {
            self.seen.entry(id.slot).or_default().had += did.on_cpu;
        }
        let idles = match self.phase {
            Phase::SideBySide | Phase::LooksBack => IDLES.0.min(IDLES.1 * share),
            _ => IDLES.0,
        };
        for (id, did) in did.0.iter().filter(|(_, did)| did.running >= least.as_secs_f64()) {
            let seen = self.seen.entry(id.slot).or_default();
            // Whoever is left alone beside gangs stays so where it is not certain: else it might go to and fro.
            let stays = self.phase == Phase::InGangs && seen.idles;
            seen.idles = did.width() < if stays { WAKES * idles } else { idles };
            if self.watch.was_on() && (did.waits.is_some() || did.on_cpu >= ENOUGH) {
                seen.shows_waits = did.waits.is_some();
            }
            let all = seen.stretch(did, did.seconds, world.now);
            match self.phase {
                // Whoever came or went made it another mix.
                Phase::SideBySide | Phase::LooksBack if self.disturbed => {}
                Phase::SideBySide | Phase::LooksBack => seen.side_by_side = Some(all),
                Phase::FewerThreads => {
                    seen.fewer = Some(all);
                    seen.waits_fewer = did.part_waiting().or(seen.waits_fewer);
                }
                Phase::Trial { .. } | Phase::InGangs => {
                    // Threads that share few CPUs may sleep for each other.
                    if !borrowed.contains(id) {
                        seen.alone = Some((did.width(), did.rate(world.cpus.len())));
                        seen.waits_alone = did.part_waiting().or(seen.waits_alone);
                    }
                    seen.in_turns = Some(Stretch { seconds: did.running, ..all });
                }
            }
        }
    }

    /// Whether somebody competes now who was taken not to.
    pub(super) fn somebody_woke(&self, world: &World<'_>) -> bool {
        let was_idle = |p: &Program| self.inner.known().get(&p.id).is_some_and(|known| known.idles);
        self.candidates(world).any(|p| was_idle(p) && !self.seen(p).idles)
    }

    /// Whether somebody hardly runs in its turns who was taken to compete.
    pub(super) fn somebody_dozes(&self, world: &World<'_>) -> bool {
        let competed =
            |p: &Program| self.inner.known().get(&p.id).is_some_and(|known| !known.idles);
        self.candidates(world).any(|p| competed(p) && self.seen(p).idles)
    }

    /// What the gangs of now are to know of programs. How many threads a malleable program has there may be decided anew.
    pub(super) fn known(&self, fewer: bool, world: &World<'_>) -> BTreeMap<ProgramId, Known> {
        let known = |p: &Program| {
            let seen = self.seen(p);
            let threads = seen.narrow(asked(p, world)).map(|threads| threads as u16);
            let threads = threads.filter(|_| !(fewer && p.malleable));
            (p.id, Known { idles: seen.idles, threads, on_trial: false })
        };
        self.candidates(world).map(known).collect()
    }

    /// Whether it is known of all that they use their CPUs well.
    pub(super) fn all_scale(&self, world: &World<'_>) -> bool {
        self.candidates(world).all(|p| asked(p, world) > 1 && scales(p, world) == Some(true))
    }

    /// Whether the last threads bring a malleable program little, and it is known of all how they scale.
    pub(super) fn some_scale_badly(&self, world: &World<'_>) -> bool {
        let badly =
            |p: &Program| p.malleable && asked(p, world) > 1 && scales(p, world) == Some(false);
        self.candidates(world).all(|p| scales(p, world).is_some())
            && self.candidates(world).any(badly)
    }

    /// Whether fewer threads may be better where programs would be run in this manner: in turns, where some can have fewer
    /// and tell whether that helps, since threads that spin look as busy as others; side by side, where all can that use
    /// several CPUs, since for the others turns are known to be worse.
    pub(super) fn may_have_fewer(&self, manner: Manner, world: &World<'_>) -> bool {
        let wide: Vec<&Program> = self.competing(world).filter(|p| asked(p, world) > 1).collect();
        match manner {
            Manner::SideBySide | Manner::OneAfterAnother => {
                !wide.is_empty() && wide.iter().all(|p| p.malleable)
            }
            Manner::InGangs | Manner::FewerThreads => {
                let mut malleable = wide.iter().filter(|p| p.malleable).peekable();
                malleable.peek().is_some() && malleable.all(|p| self.seen(p).tells())
            }
        }
    }
}

/// Whether a program uses its CPUs well, by its times alone.
fn scales(program: &Program, world: &World<'_>) -> Option<bool> {
    let threads = asked(program, world) as u16;
    let speedup = program.profile.speedup?;
    let is_known = speedup.times().first().is_some_and(|(fewest, _)| *fewest == 1)
        && speedup.times().iter().any(|(count, _)| *count >= threads);
    let each = speedup.speed(threads) / speedup.speed(1) / f64::from(threads);
    is_known.then_some(each >= SCALES)
}

/// How many CPUs a program asks for, 1 to all.
fn asked(program: &Program, world: &World<'_>) -> usize {
    usize::from(program.asked).clamp(1, world.cpus.len().max(1))
}
