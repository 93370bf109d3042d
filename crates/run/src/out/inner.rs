//! Folders in a folder that is held open.
//!
//! A comparison writes into many folders, for hours. Another process may put a link in the place of
//! any of them. Each folder is therefore opened below the one before, and no link is followed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cosched_workload::shown_path;
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use super::Folder;
use crate::ui::failure::Failure;

const FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Folder {
    /// A folder that is open already, and its name for the user.
    pub fn of(open: File, shown: &Path) -> Folder {
        Folder { shown: shown.to_owned(), open }
    }

    /// Opens a folder below this one, and makes the folders that are not there.
    ///
    /// # Errors
    /// When one of them cannot be opened or made.
    pub fn below(&self, path: &Path) -> Result<Folder, Failure> {
        let shown = self.shown.join(path);
        let open = self.open_below(path).map_err(|error| {
            let remedy = "put a folder that you may write to in its place, or choose another one";
            Failure::unwritable(&shown, &error, remedy)
        })?;
        Ok(Folder { shown, open })
    }

    fn open_below(&self, path: &Path) -> io::Result<File> {
        let mut open = self.open.try_clone()?;
        for part in path {
            let inner = match openat(&open, part, FLAGS, Mode::empty()) {
                Err(Errno::NOENT) => {
                    match mkdirat(&open, part, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    openat(&open, part, FLAGS, Mode::empty())
                }
                other => other,
            };
            open = inner?.into();
        }
        Ok(open)
    }

    /// A text for the user, with the name that the user knows instead of the descriptor's.
    pub fn named(&self, text: &str) -> String {
        let own = self.path().to_string_lossy().into_owned();
        let shown = shown_path(&self.shown).to_string();
        let mut parts = text.split(&own);
        let mut named = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            // A longer number is another descriptor.
            match part.starts_with(|sign: char| sign.is_ascii_digit()) {
                true => named.push_str(&own),
                false => named.push_str(&shown),
            }
            named.push_str(part);
        }
        named
    }

    /// A failure with the name that the user knows.
    pub fn tell(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Input(text) => Failure::Input(self.named(&text)),
            Failure::Broken(text) => Failure::Broken(self.named(&text)),
        }
    }
}

/// A path by a descriptor of this process, as its helpers can open it.
pub(crate) fn for_others(path: PathBuf) -> PathBuf {
    match path.strip_prefix("/proc/self") {
        Ok(below) => Path::new("/proc").join(std::process::id().to_string()).join(below),
        Err(_) => path,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_link_below_a_held_folder_is_followed() {
        let (place, foreign) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let folder = Folder::hold(place.path()).unwrap();
        let inner = folder.below(Path::new("round-001/linux")).unwrap();
        fs::rename(place.path().join("round-001"), place.path().join("moved")).unwrap();
        symlink(foreign.path(), place.path().join("round-001")).unwrap();
        fs::write(inner.place(Path::new("a")), "").unwrap();
        assert!(place.path().join("moved/linux/a").exists());
        let refused = folder.below(Path::new("round-001/linux")).unwrap_err();
        assert!(refused.text().contains("round-001/linux: cannot be written"), "{refused:?}");
        assert_eq!(fs::read_dir(foreign.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_user_reads_the_name_of_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::hold(place.path()).unwrap();
        let (own, shown) = (folder.path(), place.path().display());
        let text = format!("{0}/a and {0}5/b", own.display());
        assert_eq!(folder.named(&text), format!("{shown}/a and {}5/b", own.display()));
    }
}
