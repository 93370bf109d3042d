//! Carrying out what the engine requests of one program.

use std::os::fd::AsFd;

use cosched_core::{
    Aspect, Event, Exit, Happening, Measure, Nanos, ProgramId, Refusal, Settings, Signal, ThreadId,
    ThreadRule, Turn, Usage,
};
use rustix::process::{Signal as Raw, geteuid};

use super::names::Named;
use super::orphans::note_strays;
use super::program::{ByExt, ExecutionState, Live, Parent};
use super::stops::{note_continued, note_stopped};
use super::{Linux, MachineError, Origin, key};
use crate::clients::cpu_time::{Root, RootKind};
use crate::control::pinning::refusal;
use crate::hook::HookServer;
use crate::kernel::remedy::as_typed;
use crate::kernel::signals;
use crate::observe::counters::{Counters, Events};
use crate::process::helper::HelperError;
use crate::process::launch::{LaunchError, OutputTo, Spec};
use crate::process::tree::Process;
use crate::safety::undo::Record;

impl Linux {
    pub(super) fn start(&mut self, id: ProgramId, settings: Settings) -> Result<(), MachineError> {
        if self.job(id).origin == Origin::Child {
            return self.start_child(id, settings);
        }
        let own_share = settings.cpu_group == Some(true) || settings.turn.is_some();
        let cgroups = match self.run_cgroups.cgroups_of(id, own_share, &self.cpus) {
            Ok(cgroups) => cgroups,
            Err(error) => return self.cannot_start(id, libc::EIO, &error.to_string()),
        };
        let by_mask = cgroups.cpuset.is_none();
        let job = self.job(id);
        let mut order = job.order.clone();
        (order.born_in, order.cgroups) = (cgroups.born_in(), cgroups.procs());
        order.ignored = signals::ignored();
        let shares_by_session = own_share && self.run_cgroups.shares_by_session();
        order.new_session = self.own_sessions || shares_by_session;
        order.open_files = Some(self.open_files.found());
        order.cpus = settings.cpus.filter(|_| by_mask);
        let hook_server = match self.open_hook_server(id, job.hook.as_ref(), &mut order.env) {
            Ok(hook_server) => hook_server,
            Err(error) => return self.cannot_start(id, libc::EIO, &error.to_string()),
        };
        // Sessions are made where they are CPU groups.
        let grouped = own_share || order.new_session;
        let append = id.generation > 0;
        let spec =
            Spec { order, stdout: again(&job.stdout, append), stderr: again(&job.stderr, append) };
        let mut prepared = match self.launcher.prepare(&spec) {
            Ok(prepared) => prepared,
            Err(error) => return self.cannot_launch(id, &error),
        };
        // Where the log cannot be opened again, only the sentinel holds it.
        if let Ok(log) = self.log.unlocked() {
            prepared.hold(log);
        }
        let masks = (self.own_mask, spec.order.cpus);
        let (shim, for_sure) = (Some(prepared.shim()), self.job(id).freezable_for_sure);
        let mut live = match Live::new(id, shim, cgroups, masks, for_sure, &self.proc) {
            Ok(live) => live,
            Err(error) => return self.cannot_start(id, libc::EIO, &error.to_string()),
        };
        live.at_start = settings;
        self.weigh(&mut live, settings.turn);
        live.hook_server = hook_server;
        live.hook_server.iter_mut().filter(|_| grouped).for_each(HookServer::group);
        self.limit_threads(&mut live, &settings);
        self.punctual.spare(prepared.shim());
        self.log.note(live.record(false))?;
        if let Some(set) = spec.order.cpus {
            self.log.note(Record::Pinned { program: id, found: self.own_mask, set })?;
        }
        let events = self.observer.is_requested(id, Measure::Counters).then_some(Events::HARDWARE);
        let events = self.config.count.or(events);
        live.counters = events.map(|events| Counters::below(prepared.shim(), events));
        self.sample_below(id, prepared.shim());
        self.observer.begin(id, prepared.shim(), true, &self.clock)?;
        // Known beforehand: a program may have ended before it could be asked.
        live.session = (!spec.order.new_session).then_some(self.own_session);
        if !by_mask && settings.cpus.is_some() {
            self.bind(&mut live, settings)?;
        }
        match prepared.start() {
            Ok(launched) => {
                self.poll.add(launched.reports.as_fd(), key(id))?;
                self.show_root(id, live.tree.shim, RootKind::Shim);
                live.parent = Parent::Shim(launched);
                self.live.insert(id, live);
                Ok(())
            }
            Err(error) => self.cannot_launch(id, &error),
        }
    }

    /// Tells clients below which process a program is.
    pub(super) fn show_root(&self, id: ProgramId, process: Option<Process>, is: RootKind) {
        let root = process.map(|Process { pid, start_time }| Root { pid, start_time, is });
        self.config.roots.set(id.slot, root);
    }

    pub(super) fn cannot_launch(
        &mut self,
        id: ProgramId,
        error: &LaunchError,
    ) -> Result<(), MachineError> {
        let errno = match error {
            LaunchError::Output { source, .. } | LaunchError::Lost(source) => source.raw_os_error(),
            LaunchError::Helper(HelperError { source, .. }) => source.raw_os_error(),
            LaunchError::NotUtf8(_) => None,
        };
        self.cannot_start(id, errno.unwrap_or(libc::EIO), &error.to_string())
    }

    pub(super) fn cannot_start(
        &mut self,
        id: ProgramId,
        errno: i32,
        why: &str,
    ) -> Result<(), MachineError> {
        self.rest_states();
        self.observer.forget(id);
        self.note_error(id, format!("could not be started: {why}"));
        self.tell(Happening::Exited(id, Exit::Failed(errno), Usage::default()));
        Ok(())
    }

    /// Runs `act` on a live program, taken out of the map meanwhile.
    pub(super) fn with<T>(
        &mut self,
        id: ProgramId,
        act: impl FnOnce(&mut Linux, &mut Live) -> T,
    ) -> Option<T> {
        let mut live = self.live.remove(&id)?;
        let result = act(self, &mut live);
        self.live.insert(id, live);
        Some(result)
    }

    pub(super) fn freeze(&mut self, live: &mut Live) -> Result<(), MachineError> {
        let is_traced = self.inspector.is_traced(live.id).then_some(Refusal::Traced);
        let is_unguarded = self.guard.is_off(self.clock.now()).then_some(Refusal::Unguarded);
        let why = is_traced.or(is_unguarded).or_else(|| self.must_wait_undisturbed(live));
        if let Some(why) = why {
            self.tell(Happening::Refused(live.id, Aspect::Frozen, why));
            return Ok(());
        }
        if live.freezer.needs_processes() {
            // Not earlier: a stopped program that cosched has never frozen was stopped by another
            // process, and undo must not continue it.
            self.log.note(live.record(true))?;
            if let Parent::Shim(_) = &live.parent {
                note_strays(live, &self.proc, &mut self.log)?;
            }
            live.freezer.look_for_stops(&live.tree, &self.proc);
            note_continued(&live.freezer, &self.proc, &mut self.log)?;
            note_stopped(&live.freezer, &mut self.log)?;
        }
        match live.freezer.freeze(&live.tree, &self.proc) {
            Ok(()) => {
                let now = self.clock.now();
                live.state =
                    ExecutionState::Freezing { since: now, look_at: Linux::first_look(live, now) };
                self.freezing.push(live.id);
            }
            Err(why) => {
                live.was_not_frozen(why, self.clock.now());
                self.could_not_freeze(live.id, why);
            }
        }
        // Further ones may have been stopped meanwhile.
        Ok(note_stopped(&live.freezer, &mut self.log)?)
    }

    pub(super) fn thaw(&mut self, live: &mut Live) {
        // Its threads run from now on; they may well take this CPU before the kernel's answer is
        // heard.
        self.thaw_since(live, self.clock.now());
    }

    fn thaw_since(&mut self, live: &mut Live, at: Nanos) {
        if let Err(why) = live.freezer.thaw(&self.proc) {
            self.tell(Happening::Refused(live.id, Aspect::Running, why));
            self.tell_of_stopped(live, why);
        }
        live.state = ExecutionState::Running;
        live.frozen.end(at);
        self.queue.push(Event { at, what: Happening::Thawed(live.id) });
    }

    /// Says once how to continue what only root can continue: the program may wait for it.
    fn tell_of_stopped(&self, live: &mut Live, why: Refusal) {
        let lack = (Aspect::Running, why);
        if why != Refusal::NotPermitted || live.lacks.contains(&lack) {
            return;
        }
        live.lacks.push(lack);
        for process in live.freezer.left_stopped() {
            let remedy = as_typed(&format!("sudo kill -CONT {}", process.pid));
            self.note_error(
                live.id,
                format!(
                    "has a process that stays stopped, since it is another user's by now; \
                     `{remedy}` continues it"
                ),
            );
        }
    }

    /// cosched was stopped. Meanwhile the sentinel has thawed every program and evened out weights,
    /// from `since` to `last`.
    pub(super) fn was_stopped(&mut self, since: Nanos, last: Nanos) {
        self.weigh_anew();
        let weighed = self.live.values().filter(|live| live.turn.is_some() && !live.is_detached);
        for id in weighed.map(|live| live.id).collect::<Vec<ProgramId>>() {
            let what = Happening::Refused(id, Aspect::Turn, Refusal::CoschedStopped);
            self.queue.push(Event { at: since, what });
        }
        let is_ours = |live: &&Live| match live.state {
            ExecutionState::Freezing { since: asked, .. } => asked <= last,
            ExecutionState::Frozen => live.frozen.since().is_some_and(|frozen| frozen <= last),
            ExecutionState::Starting | ExecutionState::Running | ExecutionState::StoppedByOther => {
                false
            }
        };
        let frozen = self.live.values().filter(is_ours).map(|live| live.id);
        for id in frozen.collect::<Vec<ProgramId>>() {
            self.with(id, |linux, live| {
                // It may have been frozen after the first time.
                let at = live.frozen.since().map_or(since, |frozen| frozen.max(since));
                linux.thaw_since(live, at);
            });
            let what = Happening::Refused(id, Aspect::Frozen, Refusal::CoschedStopped);
            self.queue.push(Event { at: since, what });
        }
    }

    pub(super) fn apply(
        &mut self,
        live: &mut Live,
        settings: Settings,
        epoch: u64,
    ) -> Result<(), MachineError> {
        self.weigh(live, settings.turn);
        self.bind(live, settings)?;
        self.schedule(live, &settings)?;
        self.limit_threads(live, &settings);
        self.tell(Happening::Applied(live.id, epoch));
        Ok(())
    }

    pub(super) fn bind(&mut self, live: &mut Live, settings: Settings) -> Result<(), MachineError> {
        let nodes = self.config.topology.nodes(&settings.cpus.unwrap_or(self.cpus));
        let nodes = Some(nodes)
            .filter(|_| self.config.topology.nodes(&self.config.topology.all()).len() > 1);
        let bound = live.binding(&self.proc, |pinning, place| {
            pinning.bind(settings.cpus, &self.cpus, nodes.as_deref(), place, &mut self.log)
        });
        if let Some(why) = refusal(bound)? {
            self.look_at_cpus();
            self.tell(Happening::Refused(live.id, Aspect::Cpus, why));
        }
        Ok(())
    }

    /// CPUs have gone or come, and the kernel may have let bound threads run anywhere.
    pub(super) fn renew_bindings(&mut self) -> Result<(), MachineError> {
        for live in self.live.values_mut() {
            live.binding(&self.proc, |pinning, place| pinning.renew(place, &mut self.log))?;
        }
        Ok(())
    }

    /// Gives one thread CPUs or a slice of its own, or takes them back. A thread that has ended
    /// meanwhile needs none. Without the scheduler in the kernel, the slice is set when its
    /// program's settings are applied, which follows.
    pub(super) fn rule(&mut self, id: ThreadId, rule: ThreadRule) -> Result<(), MachineError> {
        let Some(Named { program, process, thread }) = self.observer.named(id) else {
            return Ok(());
        };
        let Ok(stat) = self.proc.thread_stat(process, thread) else { return Ok(()) };
        let bind = |linux: &mut Linux, live: &mut Live| {
            let before = live.scheduling.note_slice(stat.into(), rule.slice);
            if before != rule.slice {
                linux.set_slice_by_ext(live, process, stat, rule.slice);
            }
            live.binding(&linux.proc, |pinning, place| {
                pinning.bind_one(stat.into(), rule.cpus, place, &mut linux.log)
            })
        };
        if let Some(why) = refusal(self.with(program, bind).unwrap_or(Ok(())))? {
            self.tell(Happening::Refused(program, Aspect::Cpus, why));
        }
        Ok(())
    }

    /// Threads that have come meanwhile may lack what their program was given.
    pub(super) fn schedule_newcomers(&mut self, id: ProgramId) -> Result<(), MachineError> {
        let schedule = |linux: &mut Linux, live: &mut Live| {
            let settings = live.scheduling.settings();
            if asks(&settings) { linux.schedule(live, &settings) } else { Ok(()) }
        };
        self.with(id, schedule).unwrap_or(Ok(()))
    }

    /// Class, nice value and slice; where nothing was asked for yet, nothing is looked at.
    pub(super) fn schedule(
        &mut self,
        live: &mut Live,
        settings: &Settings,
    ) -> Result<(), MachineError> {
        let by_ext = self.schedule_by_ext(live, settings);
        if !by_ext && !asks(settings) && live.scheduling.is_untouched() {
            return Ok(());
        }
        let lacks = live.scheduling.apply(settings, &live.tree, &self.proc, &mut self.log)?;
        for (aspect, why) in lacks {
            self.tell(Happening::Refused(live.id, aspect, why));
            if !live.lacks.contains(&(aspect, why)) {
                live.lacks.push((aspect, why));
                let own = geteuid().as_raw();
                let is_of_another =
                    |one: &Process| self.proc.user(one.pid).is_some_and(|user| user != own);
                let of_another = live.tree.members(&self.proc).iter().any(is_of_another);
                self.note(live.id, lack(why, of_another));
            }
        }
        Ok(())
    }

    /// Releases a program: it runs, with the CPUs and the scheduling that it was found with.
    pub(super) fn release(&mut self, live: &mut Live) -> Result<(), MachineError> {
        if let Some(hook_server) = &mut live.hook_server {
            hook_server.release();
        }
        self.rest_states();
        self.thaw(live);
        // The default weight would be next to nothing beside a program in turn.
        let weighs = self.run_cgroups.is_by_weight() && live.weight.is_some();
        self.weigh(live, weighs.then_some(Turn::InTurn));
        live.scheduling.forget_slices();
        live.by_ext = ByExt::Left;
        self.schedule(live, &Settings::default())?;
        live.pinning.forget_rules(&self.proc);
        self.bind(live, Settings::default())
    }

    pub(super) fn signal(&mut self, live: &Live, signal: Signal) {
        let raw = match signal {
            Signal::Interrupt => Raw::INT,
            Signal::Terminate => Raw::TERM,
            Signal::Kill => Raw::KILL,
        };
        // What ran before cosched came is never ended by it, whatever the engine is told.
        if matches!(self.job(live.id).origin, Origin::Running(_)) {
            return;
        }
        if let Err(errno) = live.tree.signal(&self.proc, raw, &[]) {
            self.note_error(live.id, format!("could not be sent a signal: {errno}"));
        }
    }
}

/// Whether anything is asked for of how threads are scheduled.
fn asks(settings: &Settings) -> bool {
    settings.slice.is_some() || settings.class.is_some() || settings.nice.is_some()
}

/// What is told the first time that some thread's scheduling is not as requested.
fn lack(why: Refusal, of_another: bool) -> &'static str {
    match why {
        Refusal::RealTime => "has threads in a real-time class: they are left as they are",
        Refusal::NotPermitted if of_another => {
            "has threads that belong to another user, which only root may schedule; they stay as \
             they are"
        }
        Refusal::NotPermitted => {
            "has threads that stay as they are: this user may not raise priorities, which takes \
             CAP_SYS_NICE (`cosched doctor` names a remedy)"
        }
        Refusal::OutOfRange => {
            "gets the nearest slice to the one that was chosen: the kernel grants 0.1 to 100 ms"
        }
        _ => "cannot be given a slice or a class here: this kernel does not do it",
    }
}

/// A repeated program adds to the output of its earlier runs.
fn again(output: &OutputTo, append: bool) -> OutputTo {
    match output {
        OutputTo::File { path, .. } => OutputTo::File { path: path.clone(), append },
        other => other.clone(),
    }
}
