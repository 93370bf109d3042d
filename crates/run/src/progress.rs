//! What the terminal shows while programs run: one line with the programs that run, wait and have
//! ended. Where the programs themselves write to the terminal, they would tear it apart; there a
//! line for each end must do. Nothing here waits for the terminal: see [`teller`].

mod teller;

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use cosched_core::engine::outcome::NotStarted;
use cosched_core::engine::{Beat, Watch};
use cosched_core::{
    Aspect, Event, Happening, Interruption, Nanos, Plan, ProgramId, ProgramState, World,
};
use cosched_linux::machine::Note;
use cosched_report::{after, words};
use cosched_results::result::NotStartedResult;
use cosched_workload::ProgramSpec;

use crate::ui::failure::Failure;
use crate::ui::{Talk, watched};
use teller::Teller;

/// Names of more programs than this are not spelt out.
const NAMES: usize = 6;
/// How long programs may take to end before it is said that cosched waits for them.
const SILENCE: Nanos = Nanos::from_secs(1);

/// Follows a run; silent where no user watches.
pub(crate) struct Progress {
    teller: Teller,
    /// Whether there is a bar that shows which programs run.
    has_bar: bool,
    /// Whether each end is told in a line of its own.
    tells_ends: bool,
    talk: Talk,
    names: Vec<String>,
    done: BTreeSet<u16>,
    /// The programs of which it was told that they take no turns by weight any more.
    out_of_turns: BTreeSet<u16>,
    grace: Duration,
    wait: EndWait,
}

/// What is to be said of the wait for programs that were asked to end.
#[derive(Clone, Copy)]
enum EndWait {
    /// They were not asked yet.
    NotBegun,
    /// A signal asked them at this time.
    Silent(Interruption, Nanos),
    /// Nothing more: it is said, or a second signal has ended the wait.
    Over,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Telling {
    /// More than what the machine notices: programs' ends, and which of them run.
    pub(crate) course: bool,
    pub(crate) talk: Talk,
    pub(crate) outputs_go_elsewhere: bool,
    pub(crate) grace: Duration,
}

impl Progress {
    /// Begins. Has to be called before there is a machine.
    ///
    /// # Errors
    /// When the kernel gives no further thread.
    pub(crate) fn new(
        programs: &[ProgramSpec],
        telling: Telling,
        notes: Receiver<Note>,
    ) -> Result<Progress, Failure> {
        let is_watched = telling.course && telling.talk > Talk::Quiet && watched();
        let has_bar = is_watched && telling.outputs_go_elsewhere;
        let is_long = Nanos::from(telling.grace) > SILENCE;
        let tells_wait = telling.course && telling.talk > Talk::Quiet && is_long;
        let names: Vec<String> = programs.iter().map(|spec| spec.name.clone()).collect();
        let teller = Teller::start(has_bar.then_some(programs.len() as u64))?;
        // What the machine has noticed is told while it can still be mended.
        let (named, talk) = (names.clone(), telling.talk);
        teller.pass_on(notes, move |note| {
            let about = note.programs.iter().map(|one| named[usize::from(one.slot)].clone());
            let about: Vec<String> = about.collect();
            let text = match about.is_empty() {
                true => note.text,
                false => format!("{} {}", words::list(&about), note.text),
            };
            (note.is_error || talk > Talk::Quiet).then_some(text)
        })?;
        Ok(Progress {
            teller,
            has_bar,
            tells_ends: is_watched && !has_bar,
            talk: telling.talk,
            names,
            done: BTreeSet::new(),
            out_of_turns: BTreeSet::new(),
            grace: telling.grace,
            wait: if tells_wait { EndWait::NotBegun } else { EndWait::Over },
        })
    }

    /// Waits until everything is told, though not for long. Has to be called after the end of the
    /// machine, which may tell something until then.
    pub(crate) fn finish(self) {
        self.teller.finish();
    }

    /// Says which programs have not ended, if that takes long.
    fn tell_wait(&mut self, world: &World<'_>) {
        let EndWait::Silent(by, since) = self.wait else { return };
        if world.now < since + SILENCE || world.programs.is_empty() {
            return;
        }
        self.wait = EndWait::Over;
        let again = match by {
            Interruption::Interrupt => "Ctrl-C again",
            _ => "a second signal",
        };
        self.teller.line(format!(
            "waiting up to {} s for {} to end; {again} ends them now",
            self.grace.as_secs_f64(),
            self.list(world, ", ", |_| true)
        ));
    }

    fn list(
        &self,
        world: &World<'_>,
        separator: &str,
        which: impl Fn(ProgramState) -> bool,
    ) -> String {
        let matching = world.programs.iter().filter(|program| which(program.state));
        let names: Vec<&str> =
            matching.map(|program| self.names[usize::from(program.id.slot)].as_str()).collect();
        match names.len() {
            0 => "none".to_owned(),
            n if n > NAMES => format!("{} and {} more", names[..NAMES].join(separator), n - NAMES),
            _ => names.join(separator),
        }
    }
}

impl Watch for Progress {
    fn decided(&mut self, _: &World<'_>, plan: &Plan) {
        for position in plan.news.iter().filter(|_| self.talk == Talk::Verbose) {
            self.teller.line(words::reason(&plan.reasons[*position].why));
        }
    }

    fn happened(&mut self, event: &Event) {
        match event.what {
            Happening::Refused(id, Aspect::Turn, why)
                if self.talk > Talk::Quiet && self.out_of_turns.insert(id.slot) =>
            {
                let name = &self.names[usize::from(id.slot)];
                let cause = words::cause(why);
                self.teller.line(format!("{name} does not take turns by weight {cause}"));
            }
            Happening::Interrupted(by) => {
                self.wait = match self.wait {
                    EndWait::NotBegun => EndWait::Silent(by, event.at),
                    _ => EndWait::Over,
                };
            }
            Happening::Exited(id, ..) if self.done.insert(id.slot) => {
                let done = self.done.len();
                self.teller.done(done as u64);
                if done == self.names.len() {
                    // The world is not looked at once more.
                    self.teller.doing("all have ended".to_owned());
                }
                if self.tells_ends {
                    let name = &self.names[usize::from(id.slot)];
                    self.teller.line(format!("{name} has ended ({done} of {})", self.names.len()));
                }
            }
            _ => {}
        }
    }

    fn not_started(&mut self, program: ProgramId, why: &NotStarted) {
        self.done.insert(program.slot);
        self.teller.done(self.done.len() as u64);
        if self.talk == Talk::Quiet {
            return;
        }
        let name = |slot: u16| self.names[usize::from(slot)].clone();
        let why = NotStartedResult { program: name(why.program), why: why.why };
        self.teller.line(format!(
            "{} is not started: {}",
            name(program.slot),
            after::not_started(&why)
        ));
    }

    fn beat(&mut self, beat: &Beat<'_>) {
        let world = &beat.world;
        self.tell_wait(world);
        if !self.has_bar {
            return;
        }
        let running = self.list(world, " ", ProgramState::may_run);
        let stopped = |state| matches!(state, ProgramState::StoppedByOther);
        let waiting = self.list(world, " ", |state| !state.may_run() && !stopped(state));
        let mut message = format!("running: {running} · waiting: {waiting}");
        if world.programs.iter().any(|program| stopped(program.state)) {
            message += &format!(" · stopped: {}", self.list(world, " ", stopped));
        }
        self.teller.doing(message);
    }

    fn looks(&self) -> bool {
        self.has_bar
    }
}
