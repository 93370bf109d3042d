//! Undoing what a killed cosched and its killed sentinel have left behind.

mod other_users;

use std::convert::Infallible;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cosched_core::format::count;
use cosched_linux::kernel::affinity;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use cosched_linux::safety::refuge;
use cosched_linux::safety::undo::{
    self, Journal, KeptLog, LeftGroup, Log, LogError, LostGroups, Restored,
};
use serde::Serialize;

use crate::live;
use crate::ui::failure::Failure;
use crate::ui::say;

const SCHEMA: &str = "cosched-recover/1";

/// How long a sentinel may take to undo everything on a busy machine.
const SENTINEL_WORKS: Duration = Duration::from_secs(3);
/// How long a killed cosched may take to end.
const KILLED_ENDS: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(5);
/// The most rounds. Each undoes at least one run in a run.
const MOST_ROUNDS: usize = 16;
/// How long a command waits for a sentinel before it says that there is something to undo.
const SENTINEL_ENDS: Duration = Duration::from_millis(500);

/// Everything that was done, as `cosched recover --json` prints it.
#[derive(Debug, Serialize)]
pub struct Recovered {
    schema: &'static str,
    /// One for each cosched that is gone.
    undone: Vec<Undone>,
    /// Of killed runs, which have undone everything themselves.
    sentinels_continued: usize,
    /// Of killed runs, at which they could be looked at.
    sockets_removed: usize,
    /// Whether nothing is left to undo.
    #[serde(skip)]
    pub is_complete: bool,
    /// The logs that were undone or named, and the folders that cannot be listed.
    #[serde(skip)]
    handled: Vec<PathBuf>,
    /// Whether a run in another container is left.
    #[serde(skip)]
    is_more_left: bool,
}

/// What was undone of one log.
#[derive(Debug, Serialize)]
struct Undone {
    /// Its path, as text: JSON has no other one.
    log: String,
    processes_continued: usize,
    threads_unpinned: usize,
    threads_rescheduled: usize,
    processes_moved: usize,
    cgroups_removed: usize,
    failed: usize,
    #[serde(skip)]
    is_damaged: bool,
}

impl Undone {
    fn new(log: &Path, restored: &Restored) -> Undone {
        Undone {
            log: log.display().to_string(),
            processes_continued: restored.continued,
            threads_unpinned: restored.masks,
            threads_rescheduled: restored.attrs,
            processes_moved: restored.moved,
            cgroups_removed: restored.cgroups,
            failed: restored.failed.len(),
            is_damaged: false,
        }
    }
}

impl Recovered {
    fn nothing() -> Recovered {
        Recovered {
            schema: SCHEMA,
            undone: Vec::new(),
            sentinels_continued: 0,
            sockets_removed: 0,
            is_complete: true,
            handled: Vec::new(),
            is_more_left: false,
        }
    }

    /// Undoes every log of a cosched that is gone. What could not be undone is told on standard
    /// error.
    ///
    /// # Errors
    /// When the kernel's files cannot be read.
    pub fn all() -> Result<Recovered, Failure> {
        let proc = Proc::own().map_err(Failure::input)?;
        let mut all = Recovered::nothing();
        let mut places = LogFolders::find(&proc);
        for _ in 0..MOST_ROUNDS {
            let (handled, ending) = (all.handled.len(), places.ending(&proc));
            all.round(&places, &proc);
            // A run in a run may end only when the outer one is undone.
            if !places.await_end(ending, &proc) && all.handled.len() == handled {
                break;
            }
            places = LogFolders::find(&proc);
        }
        all.tell_of_late(&places, &proc);
        all.tell_of_others(&places, &proc);
        all.tell_of_users(&proc);
        refuge::remove_left_refuges(&proc);
        all.tell_of_groups(&undo::left_groups(&proc));
        Ok(all)
    }

    /// Undoes every log that no earlier round has undone or named.
    fn round(&mut self, places: &LogFolders, proc: &Proc) {
        let LogFolders { folders, possible } = places;
        let before = self.handled.clone();
        let is_new = |log: &Path| !before.contains(&log.to_owned());
        let stopped = undo::stopped_sentinels(possible, proc);
        undo::continue_sentinels(&stopped, proc);
        let held_up = undo::held_up_sentinels(possible, proc);
        let continued = |one: &&Process| held_up.iter().all(|held_up| held_up.sentinel != **one);
        self.sentinels_continued += stopped.iter().filter(continued).count();
        self.sockets_removed +=
            folders.iter().map(|folder| live::remove_left(folder, proc)).sum::<usize>();
        for one in held_up.into_iter().filter(|one| is_new(&one.log.path)) {
            say(format_args!(
                "the sentinel of a killed run, process {}, is stopped or frozen, and was killed; \
                 what it had to undo is undone here",
                one.sentinel.pid
            ));
            self.undo_kept(&one.log, proc);
            one.remove_place();
        }
        for folder in folders {
            let left = self.listed(folder, Log::leftovers(folder, proc));
            for log in left.iter().filter(|log| is_new(log)) {
                let journal = undo::load_left(log, proc);
                // Another process may have undone it.
                if journal.as_ref().is_err_and(LogError::is_gone) || Log::remove_if_undone(log) {
                    continue;
                }
                self.undo(log, journal, proc, || Log::delete_at(log), || Log::set_aside_at(log));
            }
        }
        for kept in undo::kept_by_shims(proc) {
            if is_new(&kept.path) {
                self.undo_kept(&kept, proc);
            }
        }
        for lost in lost_groups(possible, proc).into_iter().filter(|lost| is_new(&lost.log)) {
            let why = match lost.log.symlink_metadata() {
                Ok(_) => "is in a folder that is not private to you",
                Err(_) => "was removed, or is in another container",
            };
            let read = Ok::<_, Infallible>(lost.journal);
            self.undo(&lost.log, read, proc, || Ok::<_, Infallible>(()), || Ok(None));
            say(format_args!(
                "{} {why}, so only cgroups could be restored: threads that were bound, stopped or \
                 re-prioritised one by one are not known",
                lost.log.display()
            ));
        }
    }

    /// The logs of a folder. That a folder cannot be listed is told once, and keeps no other log
    /// from being undone.
    fn listed(&mut self, folder: &Path, logs: Result<Vec<PathBuf>, LogError>) -> Vec<PathBuf> {
        logs.unwrap_or_else(|error| {
            self.is_complete = false;
            if !self.handled.iter().any(|known| known == folder) {
                self.handled.push(folder.to_owned());
                say(format_args!("{error}"));
            }
            Vec::new()
        })
    }

    /// Names the logs that could be undone only after the last round.
    fn tell_of_late(&mut self, places: &LogFolders, proc: &Proc) {
        for folder in &places.folders {
            let mut late = self.listed(folder, Log::leftovers(folder, proc));
            late.retain(|log| !self.handled.contains(log) && !Log::remove_if_undone(log));
            for log in late {
                say(format_args!("{}: type `cosched recover` again", log.display()));
                self.is_complete = false;
                self.handled.push(log);
            }
        }
    }

    /// Names what others have to undo, or what can be undone only later.
    fn tell_of_others(&mut self, places: &LogFolders, proc: &Proc) {
        for folder in &places.folders {
            for log in self.listed(folder, Log::left_elsewhere(folder, proc)) {
                say(format_args!(
                    "{}: a run in another container left this; type `cosched recover` there",
                    log.display()
                ));
                self.is_more_left = true;
                self.handled.push(log);
            }
        }
        if undo::are_at_work(&places.possible, proc, Duration::ZERO) {
            say(format_args!(
                "a sentinel is still at work after its cosched was killed; type `cosched recover` \
                 again"
            ));
            self.is_complete = false;
        }
        for log in undo::logs_of_ending(&places.folders, proc) {
            say(format_args!(
                "{}: the cosched of this undo log was killed, and has not ended yet; type `cosched \
                 recover` again",
                log.display()
            ));
            self.is_complete = false;
            self.handled.push(log);
        }
    }

    /// Names the cgroups that are left although everything was undone that was found.
    fn tell_of_groups(&mut self, left: &[LeftGroup]) {
        for LeftGroup { dir, log } in left.iter().filter(|one| !self.handled.contains(&one.log)) {
            say(format_args!(
                "{}: a killed run left this cgroup, and its undo log, {}, is in use; type \
                 `cosched recover` again",
                dir.display(),
                log.display()
            ));
            self.is_complete = false;
        }
    }

    fn undo_kept(&mut self, log: &KeptLog, proc: &Proc) {
        self.undo(&log.path, log.load(proc), proc, || log.forget(), || log.set_aside());
    }

    /// Undoes what a log holds, and forgets the log, or sets it aside if it is damaged. A log that
    /// cannot be read keeps no other one from being undone.
    fn undo<R: Display, F: Display>(
        &mut self,
        log: &Path,
        journal: Result<Journal, R>,
        proc: &Proc,
        forget: impl FnOnce() -> Result<(), F>,
        set_aside: impl FnOnce() -> Result<Option<PathBuf>, LogError>,
    ) {
        let said = |failed: &dyn Display| say(format_args!("{}: {failed}", log.display()));
        self.handled.push(log.to_owned());
        let journal = match journal {
            Ok(journal) => journal,
            Err(error) => {
                said(&format!("{error}; if it is no log of yours, remove it"));
                self.is_complete = false;
                return;
            }
        };
        let restored = undo::restore(&journal, proc);
        restored.failed.iter().for_each(|failed| said(failed));
        let is_damaged = journal.damaged_lines() > 0;
        self.undone.push(Undone { is_damaged, ..Undone::new(log, &restored) });
        let is_restored = restored.failed.is_empty();
        let kept = if is_damaged && is_restored { set_aside() } else { Ok(None) };
        if is_damaged {
            said(&damage(kept.as_ref().ok().and_then(Option::as_deref)));
        }
        kept.as_ref().err().into_iter().for_each(|error| said(error));
        let is_over = is_restored && matches!(kept, Ok(None));
        let is_forgotten = is_over && forget().map_err(|error| said(&error)).is_ok();
        self.is_complete &= is_forgotten && !is_damaged;
    }

    /// What was done, in sentences.
    pub fn sentence(&self) -> String {
        let sockets = match self.sockets_removed {
            0 => String::new(),
            1 => " Removed the socket of a killed run.".to_owned(),
            count => format!(" Removed the sockets of {count} killed runs."),
        };
        let sentinels = match self.sentinels_continued {
            0 => "",
            1 => "A stopped sentinel continued, and has restored its run. ",
            _ => "Stopped sentinels continued, and have restored their runs. ",
        };
        if self.undone.is_empty() {
            if self.is_more_left || !self.is_complete {
                return format!("{sentinels}What is named above was not undone.{sockets}");
            }
            let is_all = sockets.is_empty() && sentinels.is_empty();
            let nothing = if is_all { "Nothing" } else { "Nothing else" };
            return format!("{sentinels}{nothing} was left behind.{sockets}");
        }
        let is_damaged = self.undone.iter().any(|undone| undone.is_damaged);
        let nothing =
            if is_damaged { "nothing that is known was left" } else { "nothing was left" };
        let sum = |count: fn(&Undone) -> usize| self.undone.iter().map(count).sum::<usize>();
        let done = [
            ("continued", sum(|u| u.processes_continued), "process", "processes"),
            ("restored the CPUs of", sum(|u| u.threads_unpinned), "thread", "threads"),
            ("restored the scheduling of", sum(|u| u.threads_rescheduled), "thread", "threads"),
            ("moved back", sum(|u| u.processes_moved), "process", "processes"),
            ("removed", sum(|u| u.cgroups_removed), "cgroup", "cgroups"),
            ("could not restore", sum(|u| u.failed), "setting (see above)", "settings (see above)"),
        ];
        let parts: Vec<String> = done
            .into_iter()
            .filter(|(_, count, ..)| *count > 0)
            .map(|(did, times, one, many)| format!("{did} {}", count(times, one, many)))
            .collect();
        let logs = self.undone.len();
        let of = format!("After {}", count(logs, "killed cosched", "killed coscheds"));
        match parts.is_empty() {
            true => format!("{sentinels}{of}: {nothing} to restore.{sockets}"),
            false => format!("{sentinels}{of}: {}.{sockets}", parts.join(", ")),
        }
    }
}

/// What a log means of which a part cannot be read.
fn damage(kept: Option<&Path>) -> String {
    let kept = kept.map(|kept| format!(", and the log is kept: {}", kept.display()));
    format!(
        "this undo log is damaged: a part of it cannot be read. The rest was undone{}. Programs \
         may still be stopped or bound: `ps -eo pid,stat,args` shows stopped ones (T), `kill -CONT \
         PID` continues one, and `taskset -acp {} PID` lets one use all CPUs",
        kept.unwrap_or_default(),
        affinity::get(0).map_or("CPUS".to_owned(), |cpus| cpus.to_string())
    )
}

/// Where logs of this user are, and can have been.
struct LogFolders {
    /// The private folders of this user.
    folders: Vec<PathBuf>,
    /// All of them, whether they are there or not.
    possible: Vec<PathBuf>,
}

impl LogFolders {
    fn find(proc: &Proc) -> LogFolders {
        let named = named_folders(proc);
        // None is made, and none is missed: a folder of logs may have become a bad one since.
        let possible = with(undo::possible_log_folders(), named);
        let is_own = |folder: &&PathBuf| undo::is_own_folder(folder);
        LogFolders { folders: possible.iter().filter(is_own).cloned().collect(), possible }
    }

    /// How many killed coscheds have not ended yet.
    fn ending(&self, proc: &Proc) -> usize {
        undo::logs_of_ending(&self.folders, proc).len()
    }

    /// Waits until fewer killed coscheds than this are still ending. Returns whether that happened.
    fn await_end(&self, ending: usize, proc: &Proc) -> bool {
        let until = Instant::now() + KILLED_ENDS;
        while ending > 0 && Instant::now() < until {
            if self.ending(proc) < ending {
                return true;
            }
            std::thread::sleep(PAUSE);
        }
        false
    }
}

/// The folders of the logs that left cgroups name and shims hold open: a run had another
/// `XDG_RUNTIME_DIR`, or its folder is gone.
fn named_folders(proc: &Proc) -> Vec<PathBuf> {
    with(undo::folders_of_shims(proc), folders_of_groups(proc))
}

fn folders_of_groups(proc: &Proc) -> Vec<PathBuf> {
    let left = undo::left_groups(proc);
    left.iter().filter_map(|one| one.log.parent().map(Path::to_owned)).collect()
}

/// Adds folders that are not there yet.
fn with(mut folders: Vec<PathBuf>, more: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
    for folder in more {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The cgroups that nothing leads to. A sentinel at work has to find the programs there first.
fn lost_groups(folders: &[PathBuf], proc: &Proc) -> Vec<LostGroups> {
    let lost = undo::lost_groups(folders, proc);
    match lost.is_empty() || undo::are_at_work(folders, proc, SENTINEL_WORKS) {
        true => Vec::new(),
        false => undo::lost_groups(folders, proc),
    }
}

/// Whether a killed cosched may have left something to undo. A sentinel that is at work gets half a
/// second to end.
pub fn is_anything_left() -> bool {
    // What is wrong with the folder is told by the commands that need it.
    let Ok(proc) = Proc::own() else { return false };
    let has_helpers = undo::has_helpers(&proc);
    let named = if has_helpers { named_folders(&proc) } else { folders_of_groups(&proc) };
    let folders = with(undo::possible_log_folders(), named);
    let owes =
        |log: &PathBuf| undo::load_left(log, &proc).is_ok_and(|journal| !journal.owes_nothing());
    let owed = |kept: &KeptLog| kept.load(&proc).is_ok_and(|journal| !journal.owes_nothing());
    let left =
        |folder: &&PathBuf| Log::leftovers(folder, &proc).is_ok_and(|logs| logs.iter().any(owes));
    let mut own = folders.iter().filter(|folder| undo::is_own_folder(folder));
    own.any(|folder| left(&folder))
        || has_helpers && undo::kept_by_shims(&proc).iter().any(owed)
        || has_helpers && undo::are_at_work(&folders, &proc, SENTINEL_ENDS)
        || !lost_groups(&folders, &proc).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(restored: &[Restored]) -> String {
        let undone = restored.iter().map(|one| Undone::new(Path::new("/run/log"), one)).collect();
        Recovered { undone, ..Recovered::nothing() }.sentence()
    }

    #[test]
    fn what_was_undone_is_reported_in_a_sentence() {
        assert_eq!(sentence(&[]), "Nothing was left behind.");
        assert_eq!(
            sentence(&[Restored::default()]),
            "After 1 killed cosched: nothing was left to restore."
        );
        let report = |sentinels_continued, sockets_removed| Recovered {
            sentinels_continued,
            sockets_removed,
            ..Recovered::nothing()
        };
        let sockets = "Nothing else was left behind. Removed the sockets of 2 killed runs.";
        assert_eq!(report(0, 2).sentence(), sockets);
        let elsewhere = Recovered { is_more_left: true, ..Recovered::nothing() };
        assert_eq!(elsewhere.sentence(), "What is named above was not undone.");
        let sentinel =
            "A stopped sentinel continued, and has restored its run. Nothing else was left behind.";
        assert_eq!(report(1, 0).sentence(), sentinel);
        let one = || Restored { continued: 2, cgroups: 1, ..Restored::default() };
        assert_eq!(
            sentence(&[one(), Restored { masks: 1, ..Restored::default() }]),
            "After 2 killed coscheds: continued 2 processes, restored the CPUs of 1 thread, \
             removed 1 cgroup."
        );
    }

    #[test]
    fn groups_that_are_left_are_named_unless_they_were_before() {
        let left = |log: &str| LeftGroup { dir: "/cgroup/cosched-5".into(), log: log.into() };
        let after = |groups: &[LeftGroup]| {
            let mut all =
                Recovered { handled: vec!["/run/5-1-1.undo".into()], ..Recovered::nothing() };
            all.tell_of_groups(groups);
            (all.is_complete, all.sentence().contains("left behind"))
        };
        assert_eq!(after(&[left("/run/5-1-1.undo")]), (true, true));
        assert_eq!(after(&[left("/other/5-1-1.undo")]), (false, false));
    }

    #[test]
    fn each_folder_is_looked_into_once() {
        let folders = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let all = with(folders(&["/b", "/a"]), folders(&["/a", "/c", "/c"]));
        assert_eq!(all, folders(&["/b", "/a", "/c"]));
    }
}
