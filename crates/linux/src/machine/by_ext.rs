//! Having the programs' threads scheduled by the scheduler in the kernel (sched_ext).
//!
//! It is loaded before anything is changed. Where it ends during the run, the threads get their
//! original class, and the run goes on with the kernel's scheduler.

use std::os::fd::AsFd;

use cosched_core::{Aspect, Happening, Nanos, ProgramId, Refusal, Settings};

use super::program::{ByExt, Live};
use super::{Linux, MachineError, each_process};
use crate::control::ext::RENEW_EVERY;
use crate::kernel::files::unless_gone;
use crate::kernel::procfs::Stat;
use crate::process::tree::Process;

impl Linux {
    /// Has a program's threads scheduled by it, with this slice; returns whether they are.
    pub(super) fn schedule_by_ext(&mut self, live: &mut Live, settings: &Settings) -> bool {
        let ext = self.ext.as_ref().filter(|_| live.by_ext != ByExt::Left);
        live.scheduling.schedule_by_ext(ext.is_some());
        let Some(ext) = ext else { return false };
        let slot = live.id.slot;
        ext.set_nice(slot, settings.nice.unwrap_or_default());
        let is_granted = ext.set_slice(slot, settings.slice);
        if std::mem::replace(&mut live.by_ext, ByExt::Joined) == ByExt::NotYet {
            let join =
                |process: Process| unless_gone(ext.join(&self.proc, process.pid, slot)).map(drop);
            let joined = live.tree.shim.map_or(Ok(()), join);
            let joined = joined.and_then(|()| each_process(&live.tree, &self.proc, join));
            if let Err(error) = joined {
                let text = format!(
                    "has no queue of its own in cosched's scheduler, and shares that of strangers: \
                     {error}"
                );
                self.note_error(live.id, text);
            }
        }
        if !is_granted {
            self.tell(Happening::Refused(live.id, Aspect::Slice, Refusal::OutOfRange));
        }
        true
    }

    /// Gives a thread a slice of its own in the scheduler; `None`: that of its program.
    pub(super) fn set_slice_by_ext(
        &mut self,
        live: &Live,
        process: i32,
        thread: Stat,
        slice: Option<Nanos>,
    ) {
        let Some(ext) = self.ext.as_ref().filter(|_| live.by_ext != ByExt::Left) else { return };
        let why = match unless_gone(ext.set_slice_of(&self.proc, process, thread, slice)) {
            Ok(Some(true) | None) => return,
            Ok(Some(false)) => Refusal::OutOfRange,
            Err(_) => Refusal::NotSupported,
        };
        self.tell(Happening::Refused(live.id, Aspect::Slice, why));
    }

    /// When to say again that turns are valid.
    pub(super) fn ext_renewal(&self) -> Nanos {
        let takes_turns = || self.live.values().any(|live| live.turn.is_some());
        match self.ext.is_some() && takes_turns() {
            true => self.ext_renewed + RENEW_EVERY,
            false => Nanos::NEVER,
        }
    }

    /// Says that turns are valid, if that is due, and notices whether it has ended.
    pub(super) fn look_at_ext(&mut self) -> Result<(), MachineError> {
        let (now, due) = (self.clock.now(), self.ext_renewal());
        let Some(ext) = &self.ext else { return Ok(()) };
        if let Some(why) = ext.why_ended() {
            return self.lose_ext(why);
        }
        if now >= due {
            ext.renew(self.clock.monotonic(now));
            self.ext_renewed = now;
        }
        Ok(())
    }

    /// It has ended: the programs go on with the kernel's own scheduler.
    pub(super) fn lose_ext(&mut self, why: &str) -> Result<(), MachineError> {
        let Some(ext) = self.ext.take() else { return Ok(()) };
        self.poll.remove(ext.as_fd())?;
        self.ext_counts = (0..self.config.jobs.len() as u16).map(|slot| ext.counts(slot)).collect();
        drop(ext);
        let text =
            format!("the scheduler in the kernel has ended ({why}); Linux goes on with its own");
        self.note_error(None, text);
        for id in self.live.keys().copied().collect::<Vec<ProgramId>>() {
            let again = |linux: &mut Linux, live: &mut Live| {
                live.by_ext = ByExt::Left;
                if live.turn.is_some() {
                    linux.tell(Happening::Refused(id, Aspect::Turn, Refusal::NotSupported));
                }
                let settings = live.scheduling.settings();
                linux.limit_threads(live, &settings);
                linux.schedule(live, &settings)
            };
            self.with(id, again).unwrap_or(Ok(()))?;
        }
        Ok(())
    }
}
