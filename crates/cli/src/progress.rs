//! What the terminal shows while programs run: one line that tells who runs, who waits, who is done. Where the
//! programs write to the terminal themselves, it would be torn apart; there a line for each end must do.

use std::collections::BTreeSet;
use std::sync::mpsc::Receiver;

use cosched_core::engine::{Beat, Watch};
use cosched_core::workload::ProgramSpec;
use cosched_core::{Aspect, Event, Ground, Happening, Plan, ProgramState, Why, World};
use cosched_linux::machine::Note;
use cosched_report::words;
use indicatif::{ProgressBar, ProgressStyle};

use crate::session::{say, watched};

/// Names of more programs than this are not spelt out.
const NAMES: usize = 6;

/// Follows a run; silent where nobody looks.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    /// Whether each end is told in a line of its own.
    tells_ends: bool,
    /// Whether it is told how the programs are run, where the policy chooses that by itself.
    tells_choices: bool,
    names: Vec<String>,
    done: BTreeSet<u16>,
    /// The programs of which it was told that they take no turns by weight any more.
    out_of_turns: BTreeSet<u16>,
    /// What the machine has to tell.
    notes: Receiver<Note>,
}

impl Progress {
    pub(crate) fn new(
        programs: &[ProgramSpec],
        outputs_go_elsewhere: bool,
        notes: Receiver<Note>,
    ) -> Progress {
        let bar = (outputs_go_elsewhere && watched()).then(|| {
            let bar = ProgressBar::new(programs.len() as u64);
            let style =
                ProgressStyle::with_template("{elapsed:>4} {bar:20} {pos}/{len} {wide_msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        let tells_ends = !outputs_go_elsewhere && watched();
        Progress { bar, tells_ends, ..Progress::of_notes(programs, notes) }
    }

    /// Tells nothing but what the machine has noticed.
    pub(crate) fn of_notes(programs: &[ProgramSpec], notes: Receiver<Note>) -> Progress {
        let names = programs.iter().map(|spec| spec.name.clone()).collect();
        let (done, out_of_turns) = (BTreeSet::new(), BTreeSet::new());
        let (bar, tells_ends, tells_choices) = (None, false, false);
        Progress { bar, tells_ends, tells_choices, names, done, out_of_turns, notes }
    }

    /// The same, telling what the policy chooses.
    pub(crate) fn telling_choices(self, tells_choices: bool) -> Progress {
        Progress { tells_choices, ..self }
    }

    pub(crate) fn finish(&self) {
        self.tell();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Tells what the machine has noticed, while it can still be mended.
    fn tell(&self) {
        for note in self.notes.try_iter() {
            self.say(&format!("{} {}", self.names[usize::from(note.program.slot)], note.text));
        }
    }

    /// A line of its own.
    fn say(&self, text: &str) {
        let tell = || say(format_args!("{text}"));
        match &self.bar {
            Some(bar) => bar.suspend(tell),
            None => tell(),
        }
    }

    fn list(&self, world: &World<'_>, which: impl Fn(ProgramState) -> bool) -> String {
        let matching = world.programs.iter().filter(|program| which(program.state));
        let names: Vec<&str> =
            matching.map(|program| self.names[usize::from(program.id.slot)].as_str()).collect();
        match names.len() {
            0 => "nobody".to_owned(),
            n if n > NAMES => format!("{} and {} more", names[..NAMES].join(" "), n - NAMES),
            _ => names.join(" "),
        }
    }
}

impl Watch for Progress {
    fn decided(&mut self, _: &World<'_>, plan: &Plan) {
        for reason in plan.reasons.iter().filter(|_| self.tells_choices) {
            match reason.why {
                Why::Chosen { ground: Ground::Begins, .. } => {}
                why @ Why::Chosen { .. } => self.say(&words::reason(&why)),
                _ => {}
            }
        }
    }

    fn happened(&mut self, event: &Event) {
        self.tell();
        match event.what {
            Happening::Refused(id, Aspect::Turn, why) if self.out_of_turns.insert(id.slot) => {
                let name = &self.names[usize::from(id.slot)];
                self.say(&format!("{name} {} {}", words::effect(Aspect::Turn), words::cause(why)));
            }
            _ => {}
        }
        if let Happening::Exited(id, ..) = event.what {
            let first = self.done.insert(id.slot);
            if self.tells_ends && first {
                let name = &self.names[usize::from(id.slot)];
                say(format_args!("{name} has ended ({} of {})", self.done.len(), self.names.len()));
            }
            if let Some(bar) = &self.bar {
                bar.set_position(self.done.len() as u64);
            }
        }
    }

    fn beat(&mut self, beat: &Beat<'_>) {
        if let Some(bar) = &self.bar {
            let world = &beat.world;
            let running = self.list(world, ProgramState::may_run);
            let stopped = |state| matches!(state, ProgramState::StoppedByOther);
            let waiting = self.list(world, |state| !state.may_run() && !stopped(state));
            let mut message = format!("running: {running} · waiting: {waiting}");
            if world.programs.iter().any(|program| stopped(program.state)) {
                message += &format!(" · stopped: {}", self.list(world, stopped));
            }
            bar.set_message(message);
        }
    }

    fn looks(&self) -> bool {
        self.bar.is_some()
    }
}
