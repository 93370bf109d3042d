//! Linux as a [`Machine`]: one thread that sleeps in one place and carries out steps.
//!
//! [`Linux::wait`] sleeps in epoll until the engine's next deadline, a signal, or a report from a
//! program's shim. While a freeze is being confirmed it wakes more often: the kernel limits the
//! notification of `frozen 1` to one per hundredth of a second, so the answer is re-read instead,
//! every 20 us at first and more rarely the longer it takes.
//!
//! To be on time while programs spin on every CPU, cosched does three things (`punctual`). It
//! requests the shortest slice that the kernel gives. Where it may, it takes the highest nice
//! priority. Programs in gangs get sessions of their own where the kernel shares CPUs by session
//! (autogroup), so that cosched's share does not shrink with the number of their threads.
//!
//! The parts: `program` is one live program with its freezer and its pinning, `steps` carries out
//! the engine's steps, `freezes` waits until a freeze is complete, and `reports` reads from the
//! shims. `stops` announces stops by other processes. `orphans` takes the place of a killed shim,
//! and `inspect` checks now and then what programs hold and which process stopped them. `turns`
//! gives programs their parts in turns by weight, `within` does the same for the processes of one
//! program, and `others` knows whether processes of others compute beside them. `by_ext` has
//! threads scheduled by the scheduler in the kernel. `thread_limits`
//! answers malleable programs, `barriers` gives programs the states of their threads, and `phases`
//! samples their instruction pointers, and `spinning` looks for spin loops. `attached` has programs
//! that have no shim as a parent: they ran before cosched, or have its place at the terminal.
//! `seen` tells what was seen of programs.

mod attached;
mod barriers;
mod by_ext;
mod config;
mod confined;
mod error;
mod freezes;
mod guard;
mod inspect;
mod load_control;
mod names;
mod observe;
mod orphans;
mod others;
mod phases;
mod program;
mod punctual;
mod reports;
mod samples;
mod seen;
mod spinning;
mod steps;
mod stops;
mod thread_limits;
mod turns;
mod unfreezable;
mod within;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::thread::JoinHandle;

use cosched_core::{Arena, CpuSet, Event, Happening, Machine, Nanos, Observe, ProgramId, Step};

use crate::control::autogroup;
use crate::control::ext::{ExtCounts, ExtScheduler};
use crate::control::run_cgroups::RunCgroups;
use crate::kernel::affinity;
use crate::kernel::clock::Clock;
use crate::kernel::hotplug::Hotplug;
use crate::kernel::open_files::Raised;
use crate::kernel::poll::{Poll, Ready};
use crate::kernel::procfs::Proc;
use crate::kernel::signals::{INTERRUPTIONS, interruption};
use crate::observe::counters::Events;
use crate::process::launch::{Launched, Launcher};
use crate::process::tree::{Process, Tree};
use crate::safety::refuge;
use crate::safety::sentinel::Sentinel;
use crate::safety::undo::{self, Log, Restored};
use barriers::States;
pub use config::{Config, Job, Note, Origin, Seen};
pub use error::MachineError;
use guard::SentinelGuard;
use inspect::Inspector;
use observe::Observer;
use orphans::Orphanage;
use program::Live;
use punctual::Punctual;
use spinning::SpinWatch;
use turns::Moves;
use within::families::Within;

const SENTINEL: u64 = u64::MAX - 2;
const HOTPLUG: u64 = u64::MAX - 3;
const USER_REQUESTS: u64 = u64::MAX - 4;
const EXT: u64 = u64::MAX - 5;
/// The rings of samples.
const SAMPLES: u64 = u64::MAX - 6;
const HOOK_SERVER: u64 = 1 << 48;
/// The signals with a handler besides [`INTERRUPTIONS`], which end the programs first: Ctrl-Z, and
/// the end of a child.
const SIGNALS: [i32; 2] = [libc::SIGTSTP, libc::SIGCHLD];

/// This machine, running one workload.
#[derive(Debug)]
pub struct Linux {
    clock: Clock,
    poll: Poll,
    proc: Proc,
    launcher: Launcher,
    config: Config,
    /// Those of `config.cpus` that are there now.
    cpus: CpuSet,
    hotplug: Option<Hotplug>,
    own_mask: CpuSet,
    /// The session that every program inherits unless it opens one; 0 in a container with the
    /// session leader outside.
    own_session: i32,
    punctual: Punctual,
    run_cgroups: RunCgroups,
    /// What schedules the programs' threads instead of the kernel, if anything does.
    ext: Option<ExtScheduler>,
    /// What the programs' threads had done when it ended.
    ext_counts: Vec<ExtCounts>,
    /// When that was last told that turns are valid.
    ext_renewed: Nanos,
    log: Log,
    guard: SentinelGuard,
    own_sessions: bool,
    moves: Moves,
    within: Within,
    open_files: Raised,
    live: BTreeMap<ProgramId, Live>,
    /// The programs that were asked to stop. Those that have stopped, or were detached, are removed
    /// at the next check.
    freezing: Vec<ProgramId>,
    /// Programs that count as ended and have processes left.
    leftovers: Vec<Live>,
    /// Shims that have closed their sockets and have yet to become zombies.
    unreaped: Vec<Launched>,
    /// What passes labelled outputs on instead of killed shims.
    passing_on: Vec<JoinHandle<()>>,
    inspector: Inspector,
    observer: Observer,
    spin_watch: SpinWatch,
    states: Option<States>,
    orphanage: Orphanage,
    queue: Vec<Event>,
    /// Programs to detach at the user's request.
    detaching: BTreeSet<ProgramId>,
    /// The first process of a detached program that still has cosched's place: signals are passed
    /// on to it.
    detached: Option<OwnedFd>,
    /// When malleable programs last got a heartbeat.
    last_beat: Nanos,
    /// When the load of the machine was last looked at.
    last_load: Nanos,
}

impl Linux {
    /// Prepares the run: the undo log, the sentinel, the cgroups. Nothing is started yet.
    ///
    /// # Errors
    /// When one of them is unavailable; whatever was made is removed again.
    pub fn new(config: Config) -> Result<Linux, MachineError> {
        let proc = Proc::own()?;
        let programs = config.jobs.len();
        let states = barriers::load(&config.jobs, &proc);
        let open = proc.fds(std::process::id() as i32)?.len();
        let hooked = config.jobs.iter().filter(|job| job.hook.is_some()).count();
        let counted = config.count.is_some();
        let labelled = config.jobs.iter().map(|job| job.order.labels.open_files()).sum::<usize>();
        let open_files = Raised::for_programs(config.jobs.len(), hooked, counted, open + labelled)?;
        let own_mask = affinity::get(0)?;
        let own_session = proc.stat(std::process::id() as i32)?.session;
        let by_session = config.sessions && autogroup::shares_by_session(&proc)?;
        let orphanage = Orphanage::open(&proc, &config.jobs)?;
        let load = |loader: &PathBuf| ExtScheduler::load(loader, programs);
        let ext = config.ext.as_ref().map(load).transpose()?;
        let mut log = Log::create(&config.log_folder, &proc)?;
        let sentinel = match Sentinel::spawn(&config.executable, &log) {
            Ok(sentinel) => sentinel,
            Err(error) => {
                log.delete()?;
                return Err(error.into());
            }
        };
        let wishes = config.wishes;
        let spin_watch = SpinWatch::new(programs, config.spin_loops.as_ref());
        let prepared = RunCgroups::prepare(&proc, wishes, programs, &config.cpus, &mut log);
        let run_cgroups = match prepared {
            Ok(run_cgroups) => run_cgroups,
            Err(error) => {
                // Without a goodbye the sentinel tries in its turn, and keeps the log.
                if undo::restore(log.journal(), &proc).failed.is_empty() {
                    // Whether it receives this or not: there is nothing left to undo.
                    sentinel.goodbye(&proc);
                    log.delete()?;
                }
                return Err(error.into());
            }
        };
        // CPU groups share the CPUs independently of the sessions of threads.
        let own_sessions = by_session && !run_cgroups.is_by_weight();
        let ends = INTERRUPTIONS.map(|(signal, _)| signal);
        let poll = Poll::new(&[&ends[..], &SIGNALS].concat())?;
        poll.add(sentinel.as_fd(), SENTINEL)?;
        if let Some(ext) = &ext {
            poll.add(ext.as_fd(), EXT)?;
        }
        // Without announcements, a change of CPUs is noticed at the next check.
        let hotplug = Hotplug::listen().ok();
        if let Some(hotplug) = &hotplug {
            poll.add(hotplug.as_fd(), HOTPLUG)?;
        }
        if let Some(user_requests) = &config.user_requests {
            poll.add(user_requests.as_fd(), USER_REQUESTS)?;
        }
        let mut linux = Linux {
            clock: Clock::start(),
            poll,
            launcher: Launcher::new(&config.executable, proc.clone()),
            punctual: Punctual::begin(),
            inspector: Inspector::new(inspect::handed_out(&proc)?, config.jobs.len()),
            observer: Observer::new(
                proc.clone(),
                config.count.unwrap_or(Events::HARDWARE),
                open_files.for_observing(),
            ),
            spin_watch,
            states,
            orphanage,
            proc,
            cpus: config.cpus,
            hotplug,
            own_mask,
            own_session,
            run_cgroups,
            ext,
            ext_counts: Vec::new(),
            ext_renewed: Nanos::ZERO,
            log,
            guard: SentinelGuard::new(sentinel, config.executable.clone()),
            own_sessions,
            moves: Moves::default(),
            within: Within::default(),
            open_files,
            live: BTreeMap::new(),
            freezing: Vec::new(),
            leftovers: Vec::new(),
            unreaped: Vec::new(),
            passing_on: Vec::new(),
            queue: Vec::new(),
            detaching: BTreeSet::new(),
            detached: None,
            last_beat: Nanos::ZERO,
            last_load: Nanos::ZERO,
            config,
        };
        linux.tell_of_lacking_states();
        if let Err(error) = linux.attach_all() {
            // The first error is the one that the user has to know.
            let _ = linux.close();
            return Err(error);
        }
        Ok(linux)
    }

    /// The cgroups and backends that the run uses.
    pub fn run_cgroups(&self) -> &RunCgroups {
        &self.run_cgroups
    }

    /// Programs that count as ended, or were given up, and still have processes, with their number.
    pub fn left_running(&self) -> Vec<(ProgramId, usize)> {
        let counted = self
            .leftovers
            .iter()
            .chain(self.live.values())
            .map(|live| (live.id, live.tree.members(&self.proc).len()));
        counted.filter(|(_, n)| *n > 0).collect()
    }

    /// Ends the run: all original settings are restored.
    ///
    /// # Errors
    /// When the log cannot be removed.
    pub fn close(mut self) -> Result<Restored, MachineError> {
        self.tell_barrier_stats();
        self.tell_how_many_samples_were_lost();
        for live in self.live.values_mut().chain(&mut self.leftovers) {
            live.freezer.close_readers();
        }
        let restored = undo::restore(self.log.journal(), &self.proc);
        self.dismiss_shims();
        self.finish_outputs();
        // Without a goodbye the sentinel tries in its turn: it may have what cosched lacks (open
        // files, say).
        if restored.failed.is_empty() {
            self.log.delete()?;
            if !self.guard.goodbye(&self.proc) {
                refuge::remove_left_refuges(&self.proc);
            }
        }
        Ok(restored)
    }

    fn job(&self, id: ProgramId) -> &Job {
        &self.config.jobs[usize::from(id.slot)]
    }

    fn tell(&mut self, what: Happening) {
        self.queue.push(Event { at: self.clock.now(), what });
    }

    /// Finds out which of the CPUs that might be used at first are available. They follow from our
    /// own mask: the kernel leaves out of it what is offline, or was taken from us meanwhile.
    fn look_at_cpus(&mut self) {
        let Ok(mask) = affinity::get(0) else { return };
        let cpus = self.config.cpus.intersection(&mask);
        if !cpus.is_empty() && cpus != self.cpus {
            self.cpus = cpus;
            self.tell(Happening::MachineChanged(cpus));
        }
    }

    /// Sends a message for the user.
    fn note(&self, program: ProgramId, text: impl Into<String>) {
        self.send(Note { programs: vec![program], text: text.into(), is_error: false });
    }

    /// Something that went wrong, with one program or the whole run.
    fn note_error(&self, program: impl Into<Option<ProgramId>>, text: String) {
        self.send(Note { programs: program.into().into_iter().collect(), text, is_error: true });
    }

    fn send(&self, note: Note) {
        // A receiver that is closed needs no message.
        let _ = self.config.notes.send(note);
    }

    fn digest(&mut self, ready: Ready) -> Result<(), MachineError> {
        match ready {
            Ready::Signal(libc::SIGCHLD) => self.reap()?,
            Ready::Signal(signal) if self.has_child() => self.pass_on(signal),
            // The other signal is Ctrl-Z: a stopped cosched would leave programs frozen for as long
            // as it is stopped.
            Ready::Signal(signal) => {
                if let Some(by) = interruption(signal) {
                    self.tell(Happening::Interrupted(by));
                }
            }
            Ready::Source(SENTINEL) => self.hear_sentinel()?,
            Ready::Source(EXT) => self.lose_ext("cosched-ext has ended")?,
            Ready::Source(HOTPLUG) => {
                if self.hotplug.as_ref().is_some_and(Hotplug::take) {
                    self.renew_bindings()?;
                    self.look_at_cpus();
                }
            }
            Ready::Source(USER_REQUESTS) => self.hear_user_requests(),
            Ready::Source(SAMPLES) => self.drain_samples(),
            Ready::Source(key) if key & HOOK_SERVER != 0 => self.hear_hook_server(program_of(key)),
            Ready::Source(key) => {
                let id = program_of(key);
                match self.live.contains_key(&id) {
                    true => self.hear(id)?,
                    false => self.hear_leftover(id)?,
                }
                // To take the place of a killed shim may have to wait for this news.
                self.reap()?;
            }
        }
        Ok(())
    }
}

impl Machine for Linux {
    type Error = MachineError;

    fn now(&self) -> Nanos {
        self.clock.now()
    }

    fn wait(&mut self, until: Nanos, out: &mut Vec<Event>) -> Result<Nanos, MachineError> {
        let mut ready = Vec::new();
        let mut present;
        loop {
            ready.clear();
            if self.queue.is_empty() {
                // After a switch, which it would delay.
                self.take_turns_within()?;
                let looks = self.next_look().min(self.observer.next_look());
                let looks = looks.min(self.guard.next_look()).min(self.within.wakes_at());
                let looks = looks.min(self.moves.next).min(self.spin_watch.next_look(&self.live));
                let beats = self.next_beat().min(self.ext_renewal()).min(self.next_load());
                let deadline = until.min(looks).min(beats);
                self.guard.sentinel.waits_until(self.clock.monotonic(deadline));
                self.poll.wait(self.clock.absolute(deadline), &mut ready)?;
                // What happens during a look is read after it.
                if self.clock.now() >= until {
                    self.look_at_locks_before_freezes()?;
                }
            }
            self.guard.sentinel.works();
            // What `submit` queued is delivered at once, but signals are still read. If cosched was
            // stopped while it waited, and continues, it knows only that the time has come.
            present = self.clock.now();
            self.poll.look(&mut ready)?;
            // Events from before the stop of cosched are older than all that is found now.
            self.hear_sentinel()?;
            for ready in &ready {
                self.digest(*ready)?;
            }
            self.look_at_freezes()?;
            self.look_at_sentinel()?;
            self.observer.look(self.clock.now())?;
            self.spin_watch.look(self.clock.now(), &self.live, &self.cpus, &self.proc);
            self.beat();
            self.control_load();
            self.look_at_ext()?;
            self.keep_apart()?;
            if self.freezing.is_empty() {
                self.inspect()?;
            }
            if !self.queue.is_empty() || self.clock.now() >= until {
                break;
            }
        }
        // Events that helpers report happened earlier than those that cosched has seen itself.
        self.queue.sort_by_key(|event| event.at);
        let last = self.queue.last().map_or(present, |event| event.at);
        out.append(&mut self.queue);
        Ok(present.max(last))
    }

    fn read(&mut self, what: &[Observe], into: &mut Arena) -> Result<(), MachineError> {
        self.sample(what, into)
    }

    fn submit(&mut self, steps: &[Step]) -> Result<(), MachineError> {
        // cosched may have been stopped since it was woken, and with it the code that decided on
        // these steps.
        self.hear_sentinel()?;
        self.adopt()?;
        let _undisturbed = self.punctual.undisturbed(steps);
        self.begin_turns(steps)?;
        for step in steps {
            self.guard.sentinel.works();
            match *step {
                Step::Start(id, settings) => self.start(id, settings)?,
                Step::Freeze(id) => self.with(id, Linux::freeze).unwrap_or(Ok(()))?,
                Step::Thaw(id) => self.with(id, Linux::thaw).unwrap_or(()),
                Step::Apply(id, settings, epoch) => {
                    self.with(id, |linux, live| linux.apply(live, settings, epoch))
                        .unwrap_or(Ok(()))?;
                }
                Step::Release(id) => {
                    self.with(id, Linux::release).unwrap_or(Ok(()))?;
                    self.detach_if_asked(id)?;
                }
                Step::Signal(id, signal) => {
                    self.with(id, |linux, live| linux.signal(live, signal)).unwrap_or(());
                }
                Step::Observe(observe) => self.observe(observe)?,
                Step::ApplyThread(id, rule) => self.rule(id, rule)?,
            }
        }
        Ok(self.settle_moves()?)
    }
}

/// Calls `act` once on every process of a program, also on those that are started meanwhile: if one
/// forks between two walks, the next walk finds its child. The first error ends it.
fn each_process<E>(
    tree: &Tree,
    proc: &Proc,
    mut act: impl FnMut(Process) -> Result<(), E>,
) -> Result<(), E> {
    let (mut visited, mut result) = (BTreeSet::new(), Ok(()));
    tree.until_stable(proc, |process| {
        let is_new = result.is_ok() && visited.insert(process.pid);
        if is_new {
            result = act(process);
        }
        is_new
    });
    result
}

/// The key under which a program's reports are waited for; with [`HOOK_SERVER`], the key of its
/// hook server.
fn key(id: ProgramId) -> u64 {
    u64::from(id.slot) << 32 | u64::from(id.generation)
}

fn program_of(key: u64) -> ProgramId {
    ProgramId { slot: (key >> 32) as u16, generation: key as u32 }
}
