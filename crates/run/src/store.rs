//! What is known of programs from earlier runs: a small store that outlives the runs.
//!
//! How much a program loses to the others can only be told if its solo time is known. Measuring
//! that takes a run of its own, so it is measured once and kept: one entry per program, thread
//! count, placement and machine (see [`Key`]), in one file below the user's data folder. Beside it
//! stands what policies have tried out, and how much memory carries.
//!
//! The file is a `redb` database, so a crash in the middle of a change leaves the old state. It can
//! be open in one process at a time. It is therefore opened for the moment of one transaction only,
//! and a process that finds it taken waits a little. Everything is read in one go when the
//! store is opened: looking a program up costs nothing. Two stores at work together only miss what
//! the other has added since.
//!
//! A file that is damaged is told and left as it is: it may be the only copy of hours of measuring.

mod copy;
mod entry;
mod learned;
mod peak;
mod place;
mod spin_loops;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cosched_workload::input;
use redb::{Database, DatabaseError, ReadTransaction, ReadableTable, TableDefinition, TableError};
use serde::Serialize;

use crate::ui::failure::Failure;
use crate::ui::say;
use copy::{FileCopy, has_no_locks};

pub use entry::{Key, SoloRecord};
pub(crate) use learned::Division;
pub use peak::Peak;

/// A table of keys and what is known under them, both as JSON.
type StoreTable = TableDefinition<'static, &'static str, &'static str>;
/// Its values are [`SoloRecord`]s.
const PROFILES: StoreTable = TableDefinition::new("profiles");
/// Its values are [learned settings](learned::LearnedSetting).
const LEARNED: StoreTable = TableDefinition::new("lessons");
/// Its values are [`Peak`]s.
const MACHINES: StoreTable = TableDefinition::new("machines");
/// Its values are lists of [`SpinLoop`](cosched_core::SpinLoop)s, by the name of their file.
const SPIN_LOOPS: StoreTable = TableDefinition::new("spin-loops");
/// How long to wait for another process that has the file open: many times what a transaction
/// takes.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(10);

/// The profiles of this user.
#[derive(Debug, Default)]
pub struct Store {
    file: PathBuf,
    patience: Duration,
    /// Everything that was in the file when it was opened, and what was put since.
    known: BTreeMap<String, String>,
    learned: BTreeMap<String, String>,
    machines: BTreeMap<String, String>,
    spin_loops: BTreeMap<String, String>,
}

/// Why profiles cannot be read or kept, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct StoreError(String);

impl StoreError {
    fn of(place: &Path, why: impl Display) -> StoreError {
        StoreError(format!("{}: {why}", place.display()))
    }

    /// The content is not what was written.
    fn damaged(file: &Path, why: impl Display) -> StoreError {
        let remedy = "remove the file, and measure again with `cosched profile`";
        StoreError::of(file, format_args!("is damaged ({why}); {remedy}"))
    }
}

/// What the library says; boxed, because it is large and rare.
struct Trouble(Box<redb::Error>);

impl<E: Into<redb::Error>> From<E> for Trouble {
    fn from(error: E) -> Trouble {
        Trouble(Box::new(error.into()))
    }
}

/// While programs are measured; a store that cannot be opened is bad input, since nothing has been
/// started.
impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::broken(error)
    }
}

/// The folder of this user's files that outlive the runs.
///
/// # Errors
/// When no variable names a place for the folder.
pub fn folder() -> Result<PathBuf, StoreError> {
    let file = file()?;
    Ok(file.parent().map(Path::to_owned).unwrap_or(file))
}

fn file() -> Result<PathBuf, StoreError> {
    let nowhere = "there is no folder for profiles, since neither XDG_DATA_HOME nor HOME is set \
                   to an absolute path; set one of them to a folder that you may write to, for \
                   example XDG_DATA_HOME=\"$PWD\"";
    place::file().ok_or_else(|| StoreError(nowhere.to_owned()))
}

/// What a run lacks without the store.
fn report_unreadable(error: &StoreError) {
    say(format_args!("solo times are not known: {error}"));
}

/// All maps that are kept have text as keys.
fn json(kept: &impl Serialize) -> String {
    serde_json::to_string(kept).expect("all map keys are text, so it can be written as JSON")
}

fn all(
    transaction: &ReadTransaction,
    table: StoreTable,
) -> Result<BTreeMap<String, String>, Trouble> {
    let table = match transaction.open_table(table) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(BTreeMap::new()),
        other => other?,
    };
    let items = table.iter()?.map(|item| {
        let (key, value) = item?;
        Ok((key.value().to_owned(), value.value().to_owned()))
    });
    items.collect()
}

/// Makes a store with nothing in it: under another name first, so that no process ever finds half
/// of one. It is for this user alone, since commands and variables of programs stand in it.
fn make(folder: &Path, file: &Path) -> Result<(), Trouble> {
    let name = tempfile::Builder::new().prefix("profiles.").suffix(".new").tempfile_in(folder);
    let new = name.map_err(redb::Error::Io)?;
    drop(Database::create(new.path())?);
    match new.persist_noclobber(file) {
        Err(lost) if lost.error.kind() != io::ErrorKind::AlreadyExists => {
            Err(redb::Error::Io(lost.error).into())
        }
        _ => Ok(()),
    }
}

/// What the library says, as users are told.
fn store_error(file: &Path, Trouble(error): Trouble) -> StoreError {
    match *error {
        redb::Error::DatabaseAlreadyOpen => {
            let remedy = "wait for its end, or set XDG_DATA_HOME to another folder";
            StoreError::of(file, format_args!("is in use by another cosched; {remedy}"))
        }
        redb::Error::Io(why) if has_no_locks(&why) => {
            let remedy = "set XDG_DATA_HOME to a folder on a local disk";
            let what = "cannot be written, since its file system has no locks";
            StoreError::of(file, format_args!("{what} ({why}); {remedy}"))
        }
        redb::Error::Io(why) if why.raw_os_error().is_some() => {
            let remedy = input::remedy(&why, "check the space left");
            StoreError::of(file, format_args!("cannot be used: {why}; {remedy}"))
        }
        // What the library itself calls an i/o error is a file that is too short or something else.
        other => StoreError::damaged(file, other),
    }
}

impl Store {
    /// The store of this user, made if it is not there.
    ///
    /// # Errors
    /// When its folder or file cannot be used.
    pub fn open() -> Result<Store, StoreError> {
        Store::open_at(&file()?)
    }

    /// The store of this user, to look something up, if there is one. Programs run without what it
    /// knows, too: one that cannot be read is only told.
    pub fn open_if_there() -> Option<Store> {
        let file = place::file().filter(|file| file.exists())?;
        Store::read(file, PATIENCE).map_err(|error| report_unreadable(&error)).ok()
    }

    fn open_at(file: &Path) -> Result<Store, StoreError> {
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(|why| {
                let remedy = "set XDG_DATA_HOME to a folder that you may write to";
                StoreError::of(folder, format_args!("cannot be made: {why}; {remedy}"))
            })?;
            if !file.exists() {
                make(folder, file).map_err(|trouble| store_error(file, trouble))?;
            }
        }
        Store::read(file.to_owned(), PATIENCE)
    }

    fn read(file: PathBuf, patience: Duration) -> Result<Store, StoreError> {
        if file.metadata().is_ok_and(|found| !found.is_file()) {
            let remedy = "remove it, or set XDG_DATA_HOME to another folder";
            let what = "is a folder, a pipe, a socket or a device, and no file";
            return Err(StoreError::of(&file, format_args!("{what}; {remedy}")));
        }
        let mut store = Store { file, patience, ..Store::default() };
        let tables = [PROFILES, LEARNED, MACHINES, SPIN_LOOPS];
        [store.known, store.learned, store.machines, store.spin_loops] = store.guarded(|| {
            let database = store.copy()?;
            let transaction = database.begin_read()?;
            let mut read = [const { BTreeMap::new() }; 4];
            for (map, table) in read.iter_mut().zip(tables) {
                *map = all(&transaction, table)?;
            }
            Ok(read)
        })?;
        Ok(store)
    }

    /// What is known under a key, to tell it along with something else: damage is only told.
    pub fn look_up(&self, key: &Key) -> Option<SoloRecord> {
        self.get(key).unwrap_or_else(|error| {
            report_unreadable(&error);
            None
        })
    }

    /// What is known under a key.
    ///
    /// # Errors
    /// When the file cannot be read, or is damaged.
    pub fn get(&self, key: &Key) -> Result<Option<SoloRecord>, StoreError> {
        let entry = self.known.get(key.as_str()).map(|text| serde_json::from_str(text));
        entry.transpose().map_err(|error| self.damaged(error))
    }

    /// Keeps what is known, in place of what was known before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put(&mut self, key: &Key, entry: &SoloRecord) -> Result<(), StoreError> {
        self.write(PROFILES, key.as_str(), &json(entry))?;
        self.know_for_now(key, entry);
        Ok(())
    }

    /// Knows it until this process ends, and does not keep it.
    pub fn know_for_now(&mut self, key: &Key, entry: &SoloRecord) {
        self.known.insert(key.as_str().to_owned(), json(entry));
    }

    fn write(&self, table: StoreTable, key: &str, text: &str) -> Result<(), StoreError> {
        self.guarded(|| {
            let database = self.database()?;
            let transaction = database.begin_write()?;
            transaction.open_table(table)?.insert(key, text)?;
            Ok(transaction.commit()?)
        })
    }

    /// Does something with the file, and says what is wrong with it.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, StoreError> {
        // The library answers some damage by a panic; what it says then does not help the user.
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| {}));
        let result = panic::catch_unwind(AssertUnwindSafe(work));
        panic::set_hook(hook);
        result
            .map_err(|_| self.damaged("its parts contradict each other"))?
            .map_err(|trouble| store_error(&self.file, trouble))
    }

    /// The file, for a moment.
    fn database(&self) -> Result<Database, Trouble> {
        self.as_soon_as_free(|| Database::create(&self.file))
    }

    /// What is in the file.
    fn copy(&self) -> Result<Database, Trouble> {
        let copied = || FileCopy::of(&self.file)?.ok_or(DatabaseError::DatabaseAlreadyOpen);
        Ok(Database::builder().create_with_backend(self.as_soon_as_free(copied)?)?)
    }

    /// Opens the file, as soon as no other process has it open.
    fn as_soon_as_free<T>(
        &self,
        open: impl Fn() -> Result<T, DatabaseError>,
    ) -> Result<T, Trouble> {
        let deadline = Instant::now() + self.patience;
        loop {
            match open() {
                Err(DatabaseError::DatabaseAlreadyOpen) if Instant::now() < deadline => {
                    std::thread::sleep(PAUSE);
                }
                other => return Ok(other?),
            }
        }
    }

    fn damaged(&self, why: impl Display) -> StoreError {
        StoreError::damaged(&self.file, why)
    }
}
