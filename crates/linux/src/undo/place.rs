//! Where undo logs are kept.
//!
//! The folder must be writable without rights, private (whoever writes a log has it
//! carried out with its reader's rights), and empty after a reboot. `$XDG_RUNTIME_DIR` is made for
//! that; without a login session there may be none, and then `/tmp` has to do, with care.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder for undo logs of this user, made if it is not there.
///
/// # Errors
/// When it cannot be made, or somebody else has made it.
pub fn log_folder() -> Result<PathBuf, PlaceError> {
    let uid = rustix::process::geteuid().as_raw();
    choose(std::env::var_os("XDG_RUNTIME_DIR"), uid, Path::new("/run/user"), Path::new("/tmp"))
}

/// Every folder with undo logs that the caller may look into: its own, and for root those of other users, as far as they
/// are in their usual places.
///
/// # Errors
/// As [`log_folder`].
pub fn log_folders() -> Result<Vec<PathBuf>, PlaceError> {
    let own = log_folder()?;
    let others = match rustix::process::geteuid().is_root() {
        true => folders_in(Path::new("/run/user"), Path::new("/tmp")),
        false => Vec::new(),
    };
    let others = others.into_iter().filter(|folder| *folder != own);
    Ok([own.clone()].into_iter().chain(others).collect())
}

fn folders_in(run_user: &Path, tmp: &Path) -> Vec<PathBuf> {
    let entries = |parent| fs::read_dir(parent).into_iter().flatten().flatten();
    let usual = entries(run_user).map(|entry| entry.path().join("cosched"));
    let others = entries(tmp).map(|entry| entry.path()).filter(|folder| {
        let name = folder.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix("cosched-"))
            .is_some_and(|uid| uid.parse::<u32>().is_ok())
    });
    let is_somebodys_own = |folder: &PathBuf| {
        fs::symlink_metadata(folder).is_ok_and(|found| is_private(folder, found.uid()))
    };
    usual.chain(others).filter(is_somebodys_own).collect()
}

/// Why there is no folder for undo logs.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// It cannot be made.
    #[error("cannot make {} for the undo log: {source}; set XDG_RUNTIME_DIR to a folder of your own", folder.display())]
    Make {
        /// Which folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It belongs to somebody else, or others may write in it.
    #[error("{} is not a private folder of this user, so no undo log can be kept there; set XDG_RUNTIME_DIR to one that is", folder.display())]
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
        Some(runtime) => private(&runtime.join("cosched"), uid),
        None => private(&tmp.join(format!("cosched-{uid}")), uid),
    }
}

/// Makes the folder, or finds that it is private already.
fn private(folder: &Path, uid: u32) -> Result<PathBuf, PlaceError> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            Err(PlaceError::Make { folder: folder.to_owned(), source })
        }
        _ if is_private(folder, uid) => Ok(folder.to_owned()),
        _ => Err(PlaceError::NotPrivate { folder: folder.to_owned() }),
    }
}

/// Whether it is a folder, not a link to one, that belongs to the user and only the user may write in.
fn is_private(folder: &Path, uid: u32) -> bool {
    fs::symlink_metadata(folder)
        .is_ok_and(|found| found.is_dir() && found.uid() == uid && found.mode() & 0o022 == 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn uid() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn the_runtime_folder_is_taken_first_and_the_usual_one_next() {
        let root = tempfile::tempdir().unwrap();
        let (named, run) = (root.path().join("named"), root.path().join("run"));
        fs::create_dir_all(run.join(uid().to_string())).unwrap();
        fs::create_dir(&named).unwrap();
        let choose = |name: Option<&Path>| {
            choose(name.map(OsString::from), uid(), &run, root.path()).unwrap()
        };
        assert_eq!(choose(Some(&named)), named.join("cosched"));
        assert_eq!(choose(None), run.join(uid().to_string()).join("cosched"));
        assert_eq!(choose(Some(Path::new("/not/there"))), choose(None));
    }

    #[test]
    fn without_a_runtime_folder_a_private_one_is_made_in_tmp() {
        let root = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let folder = choose(None, uid(), Path::new("/not/there"), root.path()).unwrap();
            assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn folders_of_other_users_are_found_where_they_are_private() {
        let root = tempfile::tempdir().unwrap();
        let (run, tmp) = (root.path().join("run"), root.path().join("tmp"));
        let (usual, other) = (run.join("1000/cosched"), tmp.join("cosched-1001"));
        let open = tmp.join("cosched-1002");
        for folder in [&usual, &other, &open, &tmp.join("cosched-live-x")] {
            fs::create_dir_all(folder).unwrap();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
        }
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        symlink(&usual, tmp.join("cosched-1003")).unwrap();
        assert_eq!(folders_in(&run, &tmp), [usual, other]);
    }

    #[test]
    fn a_folder_that_others_could_have_filled_is_refused() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = root.path().join(format!("cosched-{}", uid()));
        let refused = || {
            let result = choose(None, uid(), Path::new("/not/there"), root.path());
            matches!(result, Err(PlaceError::NotPrivate { .. }))
        };
        symlink(elsewhere.path(), &folder).unwrap();
        assert!(refused());
        fs::remove_file(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(refused());
    }
}
