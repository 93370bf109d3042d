//! Where undo logs are kept.
//!
//! The folder must be writable without rights, private (a log is carried out with its reader's
//! rights), and empty after a reboot. `$XDG_RUNTIME_DIR` is made for that. Without a login session
//! there may be none, and then a folder in `/tmp` has to do. Any user can make a folder of any name
//! there first; so a private folder of this user counts under any name that begins like ours, and
//! where the first name is taken, one that cannot be guessed is added to it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

const RUN_USER: &str = "/run/user";
const TMP: &str = "/tmp";
/// What the names of the folders in `/tmp` begin with; the user's number follows.
const NAME: &str = "cosched-";
/// More than several starts at once leave.
const MOST_OF_A_USER: usize = 4;

/// The folder for undo logs of this user, made if it is not there.
///
/// # Errors
/// When it cannot be made, or others may write to it.
pub fn log_folder() -> Result<PathBuf, PlaceError> {
    choose(runtime(), own_uid(), Path::new(RUN_USER), Path::new(TMP))
}

/// Every folder with undo logs that the caller may look into: its own, the one in use first, and
/// for root those of other users, as far as they are in their usual places.
///
/// # Errors
/// As [`log_folder`].
pub fn log_folders() -> Result<Vec<PathBuf>, PlaceError> {
    let own = log_folder()?;
    let (run_user, tmp) = (Path::new(RUN_USER), Path::new(TMP));
    let others = match own_uid() {
        0 => folders_of_all(run_user, tmp),
        uid => folders_of(uid, run_user, tmp),
    };
    let others = others.into_iter().filter(|folder| *folder != own);
    Ok([own.clone()].into_iter().chain(others).collect())
}

/// The folders of this user alone, the one in use first.
///
/// # Errors
/// As [`log_folder`].
pub fn own_log_folders() -> Result<Vec<PathBuf>, PlaceError> {
    let is_own = |folder: &PathBuf| is_private(folder, own_uid());
    Ok(log_folders()?.into_iter().filter(is_own).collect())
}

/// Where logs of this user can have been, whether the folders are there or not. None is made.
pub fn possible_log_folders() -> Vec<PathBuf> {
    let uid = own_uid();
    let named = runtime().map(PathBuf::from);
    let usual = Path::new(RUN_USER).join(uid.to_string());
    let runtime = named.into_iter().filter(|folder| is_private(folder, uid)).chain([usual]);
    let first = Path::new(TMP).join(first_name(uid));
    let tmp = [first].into_iter().chain(in_tmp(uid, Path::new(TMP)));
    let all: BTreeSet<PathBuf> = runtime.map(|folder| folder.join("cosched")).chain(tmp).collect();
    all.into_iter().collect()
}

/// Whether it is a folder that belongs to this user, and in which only this user may write.
pub fn is_own_folder(folder: &Path) -> bool {
    is_private(folder, own_uid())
}

/// `$XDG_RUNTIME_DIR` without links on the way to it: so the kernel shows the paths of open files.
fn runtime() -> Option<OsString> {
    let named = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    let parent = named.parent().and_then(|parent| parent.canonicalize().ok());
    Some(match (parent, named.file_name()) {
        (Some(parent), Some(name)) => parent.join(name).into(),
        _ => named.into(),
    })
}

pub(super) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// At most [`MOST_OF_A_USER`] of each user in `/tmp`: any number can be made there. Any user can
/// also make files there that are named after many users, so `/tmp` is listed only once.
fn folders_of_all(run_user: &Path, tmp: &Path) -> Vec<PathBuf> {
    let usual = entries(run_user).map(|entry| entry.path().join("cosched"));
    let is_private = |folder: &PathBuf| {
        fs::symlink_metadata(folder).is_ok_and(|found| is_private(folder, found.uid()))
    };
    usual.filter(is_private).chain(in_tmp_of_all(tmp)).collect()
}

/// Every user's first folders in `/tmp`, by user and name.
fn in_tmp_of_all(tmp: &Path) -> Vec<PathBuf> {
    let mut found: BTreeMap<u32, BTreeSet<PathBuf>> = BTreeMap::new();
    for entry in entries(tmp) {
        let Some(uid) = entry.file_name().to_str().and_then(user_in) else { continue };
        let folder = entry.path();
        if is_private(&folder, uid) {
            let of_user = found.entry(uid).or_default();
            of_user.insert(folder);
            if of_user.len() > MOST_OF_A_USER {
                of_user.pop_last();
            }
        }
    }
    found.into_values().flatten().collect()
}

/// The user that a folder in `/tmp` is named after.
fn user_in(name: &str) -> Option<u32> {
    let uid = name.strip_prefix(NAME)?.split('.').next()?;
    let number: u32 = uid.parse().ok()?;
    (first_name(number) == format!("{NAME}{uid}")).then_some(number)
}

fn folders_of(uid: u32, run_user: &Path, tmp: &Path) -> Vec<PathBuf> {
    let usual = run_user.join(uid.to_string()).join("cosched");
    let usual = is_private(&usual, uid).then_some(usual);
    usual.into_iter().chain(in_tmp(uid, tmp)).collect()
}

/// The user's folders in `/tmp`, by name.
fn in_tmp(uid: u32, tmp: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = entries(tmp)
        .filter(|entry| entry.file_name().to_str().and_then(user_in) == Some(uid))
        .map(|entry| entry.path())
        .filter(|folder| is_private(folder, uid))
        .collect();
    found.sort();
    found
}

fn first_name(uid: u32) -> String {
    format!("{NAME}{uid}")
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

/// Why there is no folder for undo logs.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It cannot be made.
    #[error("cannot make {} for the undo log: {source}; set XDG_RUNTIME_DIR to a folder of your \
             own", folder.display())]
    Make {
        /// Which folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It cannot be seen which folders are there.
    #[error("cannot look into {} for a folder for the undo log: {source}", folder.display())]
    Look {
        /// Where it would be.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Others may write to it, or it is another user's.
    #[error("{} is not a private folder of this user, so the undo log cannot be there; set \
             XDG_RUNTIME_DIR to a private folder", folder.display())]
    NotPrivate {
        /// Which folder.
        folder: PathBuf,
    },
}

fn choose(
    runtime: Option<OsString>,
    uid: u32,
    run_user: &Path,
    tmp: &Path,
) -> Result<PathBuf, PlaceError> {
    let named = runtime.map(PathBuf::from).filter(|folder| folder.is_absolute());
    let usual = run_user.join(uid.to_string());
    // `sudo` may leave the variable of another user: then it is not ours.
    match named.into_iter().chain([usual]).find(|folder| is_private(folder, uid)) {
        Some(runtime) => in_runtime_folder(&runtime.join("cosched"), uid),
        None => match in_tmp(uid, tmp).into_iter().next() {
            Some(folder) => Ok(folder),
            None => make_in_tmp(uid, tmp),
        },
    }
}

/// Makes the folder in a place where only the user can make one, or finds that it is there.
fn in_runtime_folder(folder: &Path, uid: u32) -> Result<PathBuf, PlaceError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(PlaceError::Make { folder: folder.to_owned(), source })
        }
        _ if is_private(folder, uid) => Ok(folder.to_owned()),
        _ => Err(PlaceError::NotPrivate { folder: folder.to_owned() }),
    }
}

/// Makes a folder in `/tmp`. Where the first name is taken, it gets a name that no user can have
/// guessed.
fn make_in_tmp(uid: u32, tmp: &Path) -> Result<PathBuf, PlaceError> {
    fs::read_dir(tmp).map_err(|source| PlaceError::Look { folder: tmp.to_owned(), source })?;
    let first = tmp.join(first_name(uid));
    let failed = |source| PlaceError::Make { folder: first.clone(), source };
    if let Err(taken) = DirBuilder::new().mode(0o700).create(&first) {
        if taken.kind() != io::ErrorKind::AlreadyExists {
            return Err(failed(taken));
        }
        let prefix = format!("{}.", first_name(uid));
        let private = fs::Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix(&prefix).permissions(private).tempdir_in(tmp);
        let _ = made.map_err(failed)?.keep();
    }
    // Several that begin at once agree on one of their folders.
    in_tmp(uid, tmp).into_iter().next().ok_or(PlaceError::NotPrivate { folder: first })
}

/// Whether it is a folder, not a link to one, that belongs to the user and only the user may write
/// in.
fn is_private(folder: &Path, uid: u32) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn set_mode(folder: &Path, mode: u32) {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_runtime_folder_is_taken_first_and_the_usual_one_next() {
        let root = tempfile::tempdir().unwrap();
        let (named, run) = (root.path().join("named"), root.path().join("run"));
        fs::create_dir_all(run.join(own_uid().to_string())).unwrap();
        fs::create_dir(&named).unwrap();
        let choose = |name: Option<&Path>| {
            choose(name.map(OsString::from), own_uid(), &run, root.path()).unwrap()
        };
        assert_eq!(choose(Some(&named)), named.join("cosched"));
        assert_eq!(choose(None), run.join(own_uid().to_string()).join("cosched"));
        assert_eq!(choose(Some(Path::new("/not/there"))), choose(None));
    }

    #[test]
    fn without_a_runtime_folder_a_private_one_is_made_in_tmp() {
        let root = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let folder = choose(None, own_uid(), Path::new("/not/there"), root.path()).unwrap();
            assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn private_folders_of_other_users_are_found() {
        let root = tempfile::tempdir().unwrap();
        let (run, tmp) = (root.path().join("run"), root.path().join("tmp"));
        let own = own_uid();
        let usual = run.join("1000/cosched");
        let ours = ["", ".a", ".b"].map(|end| tmp.join(format!("cosched-{own}{end}")));
        let open = tmp.join(format!("cosched-{own}.open"));
        let of_another = tmp.join(format!("cosched-{}", own + 1));
        let others = [&open, &of_another, &tmp.join("cosched-live-x")];
        for folder in [&usual].into_iter().chain(&ours).chain(others) {
            fs::create_dir_all(folder).unwrap();
            set_mode(folder, 0o700);
        }
        set_mode(&open, 0o777);
        symlink(&usual, tmp.join(format!("cosched-{own}.link"))).unwrap();
        assert_eq!(in_tmp(own, &tmp), ours);
        assert_eq!(folders_of_all(&run, &tmp), [vec![usual], ours.to_vec()].concat());
        assert!(in_tmp(own + 1, &tmp).is_empty());
    }

    #[test]
    fn only_the_first_folders_of_another_user_are_looked_into() {
        let (tmp, own) = (tempfile::tempdir().unwrap(), own_uid());
        let make = |name: String| {
            DirBuilder::new().mode(0o700).create(tmp.path().join(&name)).unwrap();
            tmp.path().join(name)
        };
        let ours: Vec<PathBuf> =
            (1..10).rev().map(|end| make(format!("cosched-{own}.{end}"))).collect();
        // No name of ours has a sign or leading zeros.
        for before in ["0", "+"] {
            make(format!("cosched-{before}{own}"));
        }
        let first: Vec<PathBuf> = ours.into_iter().rev().take(MOST_OF_A_USER).collect();
        assert_eq!(folders_of_all(Path::new("/not/there"), tmp.path()), first);
    }

    /// Such a folder locks no user out: another one is made.
    #[test]
    fn folders_that_others_could_fill_are_not_used() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = root.path().join(format!("cosched-{}", own_uid()));
        let another = || {
            let chosen = choose(None, own_uid(), Path::new("/not/there"), root.path()).unwrap();
            assert_ne!(chosen, folder);
            assert_eq!(fs::metadata(&chosen).unwrap().mode() & 0o777, 0o700);
            chosen
        };
        symlink(elsewhere.path(), &folder).unwrap();
        let first = another();
        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o777);
        assert_eq!(another(), first);
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn runtime_folders_writable_by_others_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("cosched");
        fs::create_dir(&folder).unwrap();
        set_mode(&folder, 0o777);
        let chosen = choose(Some(root.path().into()), own_uid(), Path::new("/x"), Path::new("/x"));
        assert!(matches!(chosen, Err(PlaceError::NotPrivate { .. })));
    }
}
