//! Unpacks the hook's library from the executable.
//!
//! *Problem.* cosched is one file, and the dynamic linker loads a library only from another one.
//!
//! *Idea.* The executable carries the library. When a program first needs it, it is unpacked into
//! the user's cache folder, and stays there. Its name has a hash of the content, so that each
//! cosched has its own. A running program keeps the file that it has loaded: a file is never
//! overwritten, only replaced by another one of the same name.
//!
//! *Danger.* Programs execute what is in the file. A folder is therefore used only if no other user
//! can change it, or anything above it. After `sudo`, for example, `HOME` may still be the home of
//! another user. The folder is opened once and then used by its descriptor. The content is compared
//! before each use.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, fstatvfs, mkdirat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::safety::undo::log_folder;

/// The library's name, as cargo builds it and as programs that are linked with it call it.
pub const LIBRARY: &str = "libcosched_hook.so";
const CONTENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hook.so"));
const NAME: &str = concat!("libcosched_hook-", env!("COSCHED_HOOK_HASH"), ".so");
/// Readable for all: root may start programs as other users.
const FILE_MODE: u32 = 0o644;
/// The permissions by which others could write.
const OTHERS_WRITE: u32 = 0o022;
/// Where files of the machine, not of a user, are cached.
const OF_MACHINE: &str = "/var/cache";

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
pub enum NoLibrary {
    /// The executable was built without it.
    #[error(
        "this cosched was built without {LIBRARY}; build it with COSCHED_HOOK_LIBRARY=PATH, or \
         leave out what needs it"
    )]
    NotBuilt,
    /// No folder is fit for it. Each is named with the reason.
    #[error(
        "cannot unpack {LIBRARY}: {}; set XDG_CACHE_HOME to a folder of your own, or leave out \
         what needs it",
        .0.join("; ")
    )]
    NoFolder(Vec<String>),
}

#[derive(Debug, thiserror::Error)]
enum UnfitFolder {
    #[error("{0}")]
    Failed(#[from] io::Error),
    #[error("{} belongs to another user, or others may write to it", .0.display())]
    NotPrivate(PathBuf),
    #[error("its file system is mounted with noexec")]
    NoExec,
    #[error("the dynamic linker takes no path with a space, a colon or a dollar sign")]
    Unspeakable,
}

impl From<Errno> for UnfitFolder {
    fn from(error: Errno) -> UnfitFolder {
        UnfitFolder::Failed(error.into())
    }
}

/// The library's file, unpacked where it is not there yet.
///
/// # Errors
/// When the executable has none, or no folder is fit for it.
pub fn library() -> Result<PathBuf, NoLibrary> {
    if CONTENT.is_empty() {
        return Err(NoLibrary::NotBuilt);
    }
    let user = geteuid().as_raw();
    let cache = cache(user, std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"));
    // Emptied more often, but there even for users without a home.
    let runtime = std::iter::once_with(|| log_folder().map_err(|error| error.to_string()));
    unpack(cache.map(Ok).into_iter().chain(runtime), user)
}

/// The folder in the cache; `None` when the environment names none. Programs that root starts as
/// other users cannot read root's home.
fn cache(user: u32, cache: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let usual = || match user {
        0 => Some(OF_MACHINE.into()),
        _ => home.and_then(absolute).map(|home| home.join(".cache")),
    };
    cache.and_then(absolute).or_else(usual).map(|base| base.join("cosched"))
}

/// Unpacks it into the first folder that is fit.
fn unpack(
    folders: impl Iterator<Item = Result<PathBuf, String>>,
    user: u32,
) -> Result<PathBuf, NoLibrary> {
    let mut refused = Vec::new();
    for folder in folders {
        let unpacked = folder.and_then(|folder| {
            unpack_into(&folder, user).map_err(|why| format!("{}: {why}", folder.display()))
        });
        match unpacked {
            Ok(path) => return Ok(path),
            Err(why) => refused.push(why),
        }
    }
    Err(NoLibrary::NoFolder(refused))
}

fn unpack_into(folder: &Path, user: u32) -> Result<PathBuf, UnfitFolder> {
    let folder = open_or_make(folder, user)?;
    let path = checked_path(&folder, user)?;
    if !is_whole(&folder, user) {
        write(&folder, &path)?;
    }
    Ok(path.join(NAME))
}

/// Opens the folder. What is missing of it and its parent is made, but only where this user alone
/// can write. A user's own cache folder may be a link; the folder in it may not.
fn open_or_make(folder: &Path, user: u32) -> Result<OwnedFd, UnfitFolder> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let parent_fd = match open_folder(CWD, parent, OFlags::empty()) {
        Err(Errno::NOENT) => {
            let above = parent.parent().ok_or(Errno::NOENT)?;
            let above_fd = open_folder(CWD, above, OFlags::empty())?;
            make(&above_fd, above, parent.file_name().ok_or(Errno::NOENT)?, user)?
        }
        opened => opened?,
    };
    match open_folder(&parent_fd, name, OFlags::NOFOLLOW) {
        Err(Errno::NOENT) => make(&parent_fd, parent, name, user),
        opened => Ok(opened?),
    }
}

fn open_folder(
    at: impl AsFd,
    path: impl rustix::path::Arg,
    more: OFlags,
) -> rustix::io::Result<OwnedFd> {
    openat(at, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more, Mode::empty())
}

/// Makes a folder, or finds that another cosched has just made it.
fn make(parent: &OwnedFd, path: &Path, name: &OsStr, user: u32) -> Result<OwnedFd, UnfitFolder> {
    if !is_private(&found(parent)?, user) {
        return Err(UnfitFolder::NotPrivate(path.to_owned()));
    }
    match mkdirat(parent, name, folder_mode(user)) {
        Ok(()) | Err(Errno::EXIST) => Ok(open_folder(parent, name, OFlags::NOFOLLOW)?),
        Err(error) => Err(error.into()),
    }
}

fn folder_mode(user: u32) -> Mode {
    Mode::from_raw_mode(if user == 0 { 0o755 } else { 0o700 })
}

fn found(file: &OwnedFd) -> io::Result<Metadata> {
    fs::metadata(by_descriptor(file))
}

/// The path by which this process reaches an open folder, wherever it is moved.
fn by_descriptor(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn is_private(found: &Metadata, user: u32) -> bool {
    found.uid() == user && found.mode() & OTHERS_WRITE == 0
}

/// The path of an open folder, without links, if it is fit: programs can load libraries from there,
/// and no other user can put anything else in its place.
fn checked_path(folder: &OwnedFd, user: u32) -> Result<PathBuf, UnfitFolder> {
    let found = found(folder)?;
    let path = fs::read_link(by_descriptor(folder))?;
    if !is_private(&found, user) {
        return Err(UnfitFolder::NotPrivate(path));
    }
    if fstatvfs(folder)?.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Err(UnfitFolder::NoExec);
    }
    if path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':' | b'$')) {
        return Err(UnfitFolder::Unspeakable);
    }
    // In a user namespace the machine's root has another number.
    let root = fs::metadata("/")?.uid();
    for above in path.ancestors().skip(1) {
        let found = fs::symlink_metadata(above)?;
        // In a sticky folder (`/tmp`), others cannot move what is not theirs.
        let is_sticky = found.mode() & 0o1000 != 0;
        let is_fit = found.mode() & OTHERS_WRITE == 0 || is_sticky;
        if ![0, root, user].contains(&found.uid()) || !is_fit {
            return Err(UnfitFolder::NotPrivate(above.to_owned()));
        }
    }
    let by_path = fs::symlink_metadata(&path)?;
    match (by_path.dev(), by_path.ino()) == (found.dev(), found.ino()) {
        true => Ok(path),
        false => Err(Errno::NOENT.into()),
    }
}

/// Whether the library is there as it was unpacked.
fn is_whole(folder: &OwnedFd, user: u32) -> bool {
    // A FIFO of that name would block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = openat(folder, NAME, flags, Mode::empty()).map(File::from) else {
        return false;
    };
    let is_ours = |found: Metadata| {
        let is_sound = found.is_file() && found.mode() & 0o7777 == FILE_MODE;
        is_sound && found.uid() == user && found.len() == CONTENT.len() as u64
    };
    let mut content = Vec::new();
    file.metadata().is_ok_and(is_ours)
        && file.take(CONTENT.len() as u64 + 1).read_to_end(&mut content).is_ok()
        && content == CONTENT
}

/// Writes the library into an open folder. Errors name the folder's path.
fn write(folder: &OwnedFd, path: &Path) -> io::Result<()> {
    let own = by_descriptor(folder);
    write_in(&own).map_err(|error| {
        let text = error.to_string().replace(&*own.to_string_lossy(), &path.to_string_lossy());
        io::Error::new(error.kind(), text)
    })
}

/// Writes the library under a name of its own, which then replaces what is there.
fn write_in(folder: &Path) -> io::Result<()> {
    let mut part = tempfile::Builder::new().prefix(".hook-").tempfile_in(folder)?;
    io::Write::write_all(&mut part, CONTENT)?;
    part.as_file().set_permissions(Permissions::from_mode(FILE_MODE))?;
    part.persist(folder.join(NAME)).map_err(|refused| refused.error)?;
    Ok(())
}

#[cfg(test)]
mod tests;
