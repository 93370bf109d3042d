//! Turns among the processes of one program.
//!
//! *Problem.* A program may start several processes that compute with several threads each, such as
//! a pool of workers with OpenMP inside. Together they have more threads than there are CPUs, and
//! the threads of each process wait for each other, so the program loses as several programs lose
//! that run at once (`docs/research/turns.md`, "Turns within a program").
//!
//! *Idea.* What helps between programs helps within one. Each such process, with all that it starts
//! from then on, gets a group below that of the program: a *unit*. One unit has its turn, with the
//! weight of an ordinary group; the others are idle groups and fill. The program's other processes
//! stay where they are. Processes that share memory or a connection wait for each other, like the
//! ranks of an MPI program: they are one unit. Processes that read and write often are left alone:
//! at the other end of a pipe or of a UNIX socket may be any of them. A process that begins to do
//! so later, or waits for another in a way that nothing shows, loses by its turns.
//!
//! *Which processes.* Those that were seen twice with at least two threads on a CPU, or waiting for
//! one, if all of them together have more threads than there are CPUs. Programs with one process
//! are looked at ever more rarely.
//!
//! *When.* A turn within lasts 250 ms of the program's own turns. It ends earlier when a check
//! finds that none of the unit's threads wants a CPU.
//!
//! Only programs that take turns by weight have such units: they have a group that is known to be
//! theirs. Nothing has to be written to the undo log, since a run's group is removed with all that
//! is below. Of others, the user is told what would help.

mod clock;
pub(super) mod families;
mod family;
mod units;

use std::collections::BTreeMap;

use cosched_core::format::{count, span};
use cosched_core::{Nanos, ProgramId, Turn};

use super::program::{ExecutionState, Live};
use super::{Linux, Origin};
use crate::kernel::procfs::ProcState;
use crate::process::tree::Process;
use crate::safety::undo::LogError;
use family::{Family, RETRY, RunningThreads, UnitNews};
use units::{MOST_UNITS, UnitHome, loose, running, tied};

impl Linux {
    /// Notes a program that has begun, and has units or could have some.
    pub(super) fn expect_units(&mut self, live: &Live) {
        let origin = self.job(live.id).origin;
        let is_looked_at = match self.run_cgroups.is_by_weight() {
            true => origin == Origin::Started && live.share_dir().is_some() && live.turn.is_some(),
            // Where weights were asked for, it is known that there are none.
            false => {
                !matches!(origin, Origin::Running(_)) && self.run_cgroups.no_weights().is_none()
            }
        };
        if is_looked_at && self.config.units {
            let now = self.clock.now();
            let family = Family::new(live.turn != Some(Turn::Filler), now);
            self.within.next = self.within.next.min(family.due());
            self.within.families.insert(live.id, family);
        }
    }

    /// A program does not take turns any more: its processes do not either.
    pub(super) fn forget_units(&mut self, id: ProgramId) {
        if let Some(mut family) = self.within.families.remove(&id) {
            family.even_out();
        }
    }

    /// Looks for units, and passes the turn on within programs, where that is due.
    pub(super) fn take_turns_within(&mut self) -> Result<(), LogError> {
        let now = self.clock.now();
        if now < self.within.next {
            return Ok(());
        }
        self.guard.sentinel.works();
        let mut families = std::mem::take(&mut self.within.families);
        let mut passed_on = false;
        for (id, family) in &mut families {
            let runs = |live: &Live| !live.is_detached && live.state == ExecutionState::Running;
            if !self.live.get(id).is_some_and(runs) {
                family.wait(now);
                continue;
            }
            if family.is_look_due(now) {
                self.look_for_units(*id, family, now).iter().for_each(|one| self.tell_of(*id, one));
            }
            passed_on |= family.pass_on(now, &self.proc);
        }
        self.within.next = families.values().map(Family::due).min().unwrap_or(Nanos::NEVER);
        self.within.families = families;
        if !passed_on {
            return Ok(());
        }
        self.begin_turns_within()?;
        self.within.families.values_mut().for_each(Family::weigh);
        Ok(())
    }

    fn tell_of(&self, id: ProgramId, news: &UnitNews) {
        let no_turns = "some of its processes take no turns with each other";
        let text = match news {
            UnitNews::Several => {
                let cpus = count(self.cpus.len(), "CPU", "CPUs");
                let remedy = match self.run_cgroups.is_by_weight() {
                    true => ": they take turns",
                    false => {
                        ". They take no turns here; they do under `cosched run --policy turns`, \
                         where programs have CPU cgroups"
                    }
                };
                format!(
                    "runs several processes with several threads each, more than {cpus} can run \
                     at once{remedy}"
                )
            }
            UnitNews::TooFewFiles => format!(
                "{no_turns}: cosched may not open enough files (`ulimit -Hn` shows the limit)"
            ),
            UnitNews::OwnGroups => format!("{no_turns}: it has made cgroups itself"),
            UnitNews::Failed(error) => {
                format!("{no_turns}: {error}. cosched tries again every {}", span(RETRY))
            }
        };
        self.note(id, text);
    }

    /// Looks which processes of a program compute with several threads, and makes units of them, if
    /// it takes turns by weight. Returns what the user should know.
    fn look_for_units(
        &mut self,
        id: ProgramId,
        family: &mut Family,
        now: Nanos,
    ) -> Option<UnitNews> {
        let live = self.live.get(&id)?;
        let (mut busy, mut threads, mut all) = (BTreeMap::new(), 0, BTreeMap::new());
        let began = self.clock.now();
        for stat in live.tree.stats(&self.proc) {
            let process = Process::from(stat);
            let running = match stat.threads {
                1 => u32::from(stat.state == ProcState::Running),
                _ => running(process, &self.proc),
            };
            all.insert(process, running);
            if running > 1 {
                threads += stat.threads as usize;
                busy.insert(process, self.proc.reads_and_writes(process.pid));
            }
        }
        family.forget_ended(&all.keys().copied().collect());
        let sure = family.saw(busy, now);
        family.spare(self.clock.now().since(began), now);
        let home = live.share_dir().filter(|_| self.run_cgroups.is_by_weight());
        let Some(home) = home else {
            let could = sure.len() > 1 && threads > self.cpus.len();
            if could {
                family.end_looks();
            }
            return could.then_some(UnitNews::Several);
        };
        let pids = loose(home);
        let loose_ones: Vec<Process> =
            sure.into_iter().filter(|process| pids.binary_search(&process.pid).is_ok()).collect();
        let most = self.open_files.units().min(MOST_UNITS);
        let are_many = !family.units.is_empty() || threads > self.cpus.len();
        if most < 2 && are_many && loose_ones.len() > 1 {
            return family.misses_units(UnitNews::TooFewFiles);
        }
        let may_join = most > 1 && are_many && family.may_grow(now) && !loose_ones.is_empty();
        let news = may_join.then(|| {
            let parts = tied(loose_ones, &self.proc, &self.inspector.handed_out);
            family.joins(
                parts,
                &UnitHome { dir: home, most, proc: &self.proc },
                &mut self.within.made,
                now,
            )
        });
        if !family.units.is_empty() {
            family.counted(RunningThreads::of(&all, &loose(home)));
        }
        let units = u32::try_from(family.units.len()).unwrap_or(u32::MAX);
        if units > 1 {
            let most = self.within.most.entry(id.slot).or_default();
            *most = units.max(*most);
        }
        news.flatten()
    }
}
