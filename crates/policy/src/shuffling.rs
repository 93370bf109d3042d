//! `shuffling`: threads that come to a lock at about the same time share a socket.
//!
//! *Problem.* A lock that goes from a thread on one socket to a thread on another takes its cache
//! line, and the data that it guards, across the machine. Acquiring then takes longer, and the
//! critical section begins with misses. Load balancing ignores locks, so the next thread at the
//! lock is mostly on another socket.
//!
//! *Idea.* Threads that wait for locks for the same share of their time come to them at about the
//! same time. If these are on one socket, the thread that gets the lock next is mostly on this
//! socket.
//!
//! *Algorithm.* In each interval, sample the lock times of a program's N threads. If they exceed a
//! threshold, sort the threads by lock time and divide them into as many groups as there are
//! sockets. Move threads until each group has a socket of its own ([`grouping`]). Groups and
//! sockets are paired so that the fewest threads move ([`matching`]). A thread is bound to all CPUs
//! of its socket; among these the kernel places it.
//!
//! *Source.* The slides on thread shuffling: "Thread Shuffling (algorithm)", "Shuffling Interval"
//! (500 ms). They do not give the threshold, the number of samples and the order of equals. Ours:
//!
//! - *lock time* is the share of an interval that a thread slept at locks. A thread that did not
//!   run at all, or was not there for half of the interval, is not sampled, and stays where it is;
//! - the *threshold* is on the mean over the sampled threads. Once it has been below half of that
//!   for [some](Params::patience) intervals, the threads are no longer bound: without locks,
//!   binding them gains nothing;
//! - *hysteresis*: groups are replaced only by groups with threads that are nearer to each other by
//!   more than a given share of their time. Until then, a thread that comes later goes to the
//!   socket with most room. With `--no-guard` there is none unless the user sets one: as in the
//!   slides, the groups of each interval replace those of the interval before;
//! - *several programs* are shuffled one by one, since they share no locks;
//! - threads that another process has bound are left alone, and count where they are;
//! - threads that miss the last-level cache often are [held](pages) where their pages lie (not with
//!   `--no-guard`);
//! - new groups are compared with the original masks, by the [guard](crate::common::guard). They
//!   are kept where the program is faster with them, and the latest groups are tried again after a
//!   while (`--no-guard`: as in the slides, new groups at once);
//! - a thread that the guard releases goes back [to where it was](tracked), so that groups are
//!   compared with no groups;
//! - learned groups from earlier runs ([`cosched_core::Learned`]) are applied at first: groups
//!   at once, or none;
//! - options set what [counts as a socket](sockets), and what threads are sorted by ([`SortBy`]).

mod grouping;
mod matching;
pub(crate) mod options;
mod pages;
pub(crate) mod params;
mod reasons;
mod round;
pub(crate) mod sockets;
mod tracked;

use std::collections::BTreeMap;
use std::sync::Arc;

use cosched_core::{
    Cause, CpuSet, Grouping, Nanos, Output, Plan, Policy, ProgramId, ProgramState, Settings,
    ThreadId, TrialResult, UserCommand, World,
};

use crate::common::guard::{self, Act, Guard, Lengths};
use crate::common::reasons::{ReasonSet, SharedReason};
use crate::descriptor::{Descriptor, Learns, Need, OptionGroup};
use crate::params::Params as AllParams;
pub use options::{ShufflingOptions, SortBy};
use params::Params;
pub use reasons::ShufflingReason;
use round::{IntervalResult, ShufflingRound, socket_of};
pub use sockets::{GroupBy, Sockets, SocketsError};
use tracked::ShuffledProgram;

/// The socket of each thread that has one, by its position.
type Homes = BTreeMap<ThreadId, usize>;

/// The slides on thread shuffling.
pub(crate) const SHUFFLING: Descriptor = Descriptor {
    attaches: true,
    binds_threads: true,
    learns: Learns::Groups,
    options: &[&[OptionGroup::Measuring, OptionGroup::Shuffling]],
    needs: &[Need::Sockets],
    reasons: &[ReasonSet::of::<ShufflingReason>()],
    params: &["shuffling", "guard"],
    ..Descriptor::without_gangs(
        "shuffling",
        "everything at once; threads that wait equally long for locks share a socket",
        |options| Ok(Box::new(Shuffling::new(options.shuffling.clone(), &options.params))),
    )
};

#[derive(Debug)]
pub(crate) struct Shuffling {
    options: ShufflingOptions,
    params: Params,
    /// The CPUs of each socket. A thread may use all of them.
    sockets: Vec<CpuSet>,
    /// The memory node of each socket, where it has one.
    nodes: Vec<Option<u16>>,
    programs: BTreeMap<ProgramId, ShuffledProgram>,
    /// It tries homes; the default, no homes, is the original masks.
    guard: Option<Guard<Arc<Homes>>>,
    /// Whether groups have helped programs that have ended, by slot: the next ones there are the
    /// same.
    ended: BTreeMap<u16, bool>,
}

impl Shuffling {
    pub(crate) fn new(options: ShufflingOptions, params: &AllParams) -> Shuffling {
        let Params { settle, moment, .. } = params.shuffling;
        let lengths = Lengths { settle, moment: moment.min(options.interval) };
        let guard = options.guard.then(|| Guard::new(lengths, params.guard));
        let (sockets, nodes, programs, ended) = Default::default();
        Shuffling { options, params: params.shuffling, sockets, nodes, programs, guard, ended }
    }

    fn arrived(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let Some(program) = world.program(id) else { return };
        // An attached program keeps its settings for now.
        if program.state == ProgramState::New {
            plan.run(id, Settings::default());
            plan.because(Some(id), SharedReason::LeftToKernel);
        }
        self.programs.insert(id, ShuffledProgram::new(world.now));
        plan.measure(id, self.options.measures(), self.options.interval);
    }

    /// Handles a change of the CPUs that programs may use. Threads of a socket that has lost all
    /// CPUs are not bound until the next shuffling. If there is a new socket, no thread is bound
    /// until then, because the socket would stay empty otherwise. Results from the CPUs of before
    /// no longer count.
    fn find_sockets(&mut self, world: &World<'_>, plan: &mut Plan) {
        let found = self.options.sockets.usable(world.topology, world.cpus);
        let before = std::mem::replace(&mut self.sockets, found);
        if before == self.sockets {
            return;
        }
        if !before.is_empty() {
            self.options.relearn = true;
            self.ended.clear();
        }
        self.nodes = pages::nodes(&self.sockets, world.topology);
        let is_new = |socket: &CpuSet| !before.iter().any(|old| old.intersects(socket));
        let has_grown = self.sockets.iter().any(is_new);
        let now = |old: usize| self.sockets.iter().position(|new| new.intersects(&before[old]));
        for (id, tracked) in &mut self.programs {
            tracked.part();
            if let Some(guard) = &mut self.guard {
                // The groups of a trial have not proved themselves.
                if guard.tries() == Some(*id) {
                    tracked.homes.clear();
                }
                guard.forget(*id, plan);
                (tracked.proposed, tracked.phase, tracked.helped) = (None, None, None);
            }
            let follow = |homes: &mut Homes| -> Homes {
                let moved = std::mem::take(homes).into_iter();
                moved.filter_map(|(id, old)| Some((id, now(old)?))).collect()
            };
            tracked.pages = follow(&mut tracked.pages);
            tracked.origins = follow(&mut tracked.origins);
            let homes = follow(&mut tracked.homes);
            tracked.house(if has_grown { Homes::new() } else { homes });
        }
    }

    fn sampled(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let (Some(tracked), Some(program)) = (self.programs.get_mut(&id), world.program(id)) else {
            return;
        };
        for sample in world.samples.iter().filter(|sample| sample.program == id) {
            if let Some(thread) = sample.thread {
                tracked.totals.entry(thread).or_default().add(sample);
            }
        }
        // A new thread is where the kernel or its parent has put it.
        for thread in world.threads_of(program) {
            let here = || socket_of(thread, &self.sockets);
            tracked.pages.entry(thread.id).or_insert_with(here);
        }
        // Samples in the middle of an interval are a part of it.
        if world.now.since(tracked.since) < Nanos(self.options.interval.0 / 2) {
            return;
        }
        let threads = world.threads_of(program);
        let (totals, length) = tracked.begin(world.now);
        tracked.part();
        tracked.update(threads, &self.sockets);
        if self.sockets.len() < 2 {
            return;
        }
        let (options, params) = (&self.options, &self.params);
        let (sockets, nodes, pages) = (&self.sockets[..], &self.nodes[..], &tracked.pages);
        let round =
            ShufflingRound { options, params, sockets, nodes, pages, threads, totals, length };
        let Some(result) = round.decide(&tracked.homes, world) else { return };
        self.follow(id, result, world, plan);
    }

    /// Whether groups have helped the program in earlier runs, as far as that is known.
    fn recalled(&self, id: ProgramId, world: &World<'_>) -> Option<bool> {
        let of_earlier_runs = world.program(id).filter(|_| !self.options.relearn);
        let earlier = || of_earlier_runs.and_then(|program| program.profile.learned.groups());
        self.ended.get(&id.slot).copied().or_else(earlier)
    }

    /// Follows from an interval of a program. With the guard, the result may be tried; without it,
    /// it is done.
    fn follow(
        &mut self,
        id: ProgramId,
        result: IntervalResult,
        world: &World<'_>,
        plan: &mut Plan,
    ) {
        let recalled = self.recalled(id, world);
        let Some(tracked) = self.programs.get_mut(&id) else { return };
        if let IntervalResult::Calm(lock_time) = result {
            let is_calm = lock_time < self.options.threshold / 2.0;
            tracked.calm = if is_calm { tracked.calm + 1 } else { 0 };
            if tracked.calm >= self.params.patience && !tracked.homes.is_empty() {
                tracked.house(Homes::new());
                plan.because(Some(id), ShufflingReason::Unbound { lock_time });
                let lock_time = Some(lock_time);
                plan.output(id, Output::Grouped(Grouping::Unbound { lock_time }));
            }
            if tracked.calm >= self.params.patience && tracked.phase.take().is_some() {
                self.guard.iter_mut().for_each(|guard| guard.dismiss(id, plan));
            }
            return;
        }
        tracked.calm = 0;
        match (result, &mut self.guard) {
            (IntervalResult::Calm(_), _) => {}
            (IntervalResult::Good(homes), None) => tracked.house(homes),
            (IntervalResult::Better { homes, shuffle }, None) => {
                tracked.house(homes);
                shuffle.tell(id, plan);
            }
            (IntervalResult::Good(homes), Some(guard)) => {
                guard.adopt(id, Arc::new(homes.clone()));
                guard.renew(id, Vec::new());
                tracked.house(homes);
            }
            (IntervalResult::Better { homes, shuffle }, Some(guard)) => {
                let lock_time = shuffle.lock_time;
                guard.adopt(id, Arc::new(tracked.homes.clone()));
                let homes = Arc::new(homes);
                tracked.proposed = Some((homes.clone(), shuffle));
                if tracked.phase.is_none_or(|phase| (phase - lock_time).abs() > self.params.phase) {
                    let is_new = tracked.phase.is_none();
                    let recalled = recalled.filter(|_| is_new && tracked.helped.is_none());
                    let helped = tracked.helped.filter(|helped| *helped && is_new);
                    let known = recalled.or(helped);
                    if let Some(helped) = recalled {
                        tracked.helped = recalled;
                        plan.because(Some(id), ShufflingReason::GroupsRecalled { helped });
                        plan.output(id, Output::Recalled);
                    }
                    if known == Some(true) {
                        guard.adopt(id, homes.clone());
                        tracked.proposed = None;
                        shuffle.tell(id, plan);
                    }
                    tracked.phase = Some(lock_time);
                    guard.chosen(id, vec![homes.clone()], world.now);
                    guard.skip(id, |_| known.is_some());
                }
                guard.renew(id, vec![homes]);
            }
        }
    }

    /// Carries out the guard's acts, and gives the reasons.
    fn obey_guard(&mut self, plan: &mut Plan) {
        let Some(guard) = &mut self.guard else { return };
        let all = self.sockets.len() as u16;
        for (id, act) in guard.acts() {
            let Some(tracked) = self.programs.get_mut(&id) else { continue };
            match act {
                Act::Give(homes) if homes.is_empty() => tracked.release(),
                Act::Give(homes) => tracked.house((*homes).clone()),
                Act::Try(homes, _) => {
                    let threads = homes.len() as u16;
                    plan.because(Some(id), ShufflingReason::GroupsTried { threads, groups: all });
                }
                Act::Keep(homes, progress) => {
                    tracked.helped = Some(true);
                    // Groups that were in force before were reported then.
                    let proposal = tracked.proposed.take_if(|(proposed, _)| *proposed == homes);
                    proposal.into_iter().for_each(|(_, shuffle)| shuffle.tell(id, plan));
                    plan.because(Some(id), ShufflingReason::GroupsKept { progress });
                    plan.output(id, Output::TrialEnded(TrialResult::Groups { helped: true }));
                }
                Act::PutBack(_, progress, pause) => {
                    let are_left = guard.in_force(id).is_some_and(|homes| !homes.is_empty());
                    tracked.helped = Some(are_left);
                    let groups = if are_left { all } else { 0 };
                    plan.because(
                        Some(id),
                        ShufflingReason::GroupsPutBack { groups, progress, pause },
                    );
                    let result = TrialResult::Groups { helped: are_left };
                    plan.output(id, Output::TrialEnded(result));
                    if !are_left {
                        let unbound = Grouping::Unbound { lock_time: None };
                        plan.output(id, Output::Grouped(unbound));
                    }
                }
            }
        }
    }

    fn gone(&mut self, id: ProgramId, plan: &mut Plan) {
        let helped = self.programs.remove(&id).and_then(|tracked| tracked.helped);
        self.ended.extend(helped.map(|helped| (id.slot, helped)));
        self.guard.iter_mut().for_each(|guard| guard.forget(id, plan));
    }
}

impl Policy for Shuffling {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        if self.sockets.is_empty() || causes.contains(&Cause::MachineChanged) {
            self.find_sockets(world, plan);
        }
        // Samples during a trial are of its moments, and not of an interval.
        let is_trying = self.guard.as_ref().is_some_and(Guard::is_trying);
        let is_moment_over = causes.contains(&Cause::Woke(guard::MOMENT));
        for cause in causes {
            match *cause {
                Cause::Arrived(id) => self.arrived(id, world, plan),
                Cause::Sampled(id) if is_trying => {
                    if let Some(guard) = self.guard.as_mut().filter(|_| !is_moment_over) {
                        guard.sampled(id, world);
                    }
                    self.programs.get_mut(&id).map(|tracked| tracked.begin(world.now));
                }
                Cause::Sampled(id) => self.sampled(id, world, plan),
                Cause::Exited(id, _) | Cause::Commanded(UserCommand::Detach(id)) => {
                    self.gone(id, plan)
                }
                Cause::Woke(token) => {
                    if token == guard::MOMENT {
                        self.programs.values_mut().for_each(ShuffledProgram::part);
                    }
                    self.guard.iter_mut().for_each(|guard| guard.woke(token, world, plan));
                }
                _ => {}
            }
        }
        self.guard.iter_mut().for_each(|guard| guard.go_on(world, plan));
        self.obey_guard(plan);
        for (id, tracked) in &mut self.programs {
            if let Some(program) = world.program(*id) {
                tracked.settle(world.threads_of(program), &self.sockets, plan);
            }
        }
    }
}

#[cfg(test)]
mod guard_tests;
#[cfg(test)]
mod tests;
