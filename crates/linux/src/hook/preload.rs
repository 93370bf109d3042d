//! Where the hook's library is, and how a program gets it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cosched_page::SOCKET;

/// The file's name.
pub const LIBRARY: &str = "libcosched_hook.so";
/// The variable that names libraries for the dynamic linker to load before all others.
pub const PRELOAD: &str = "LD_PRELOAD";
/// Where a package installs it, relative to the folder of the executable.
const INSTALLED: &str = "../lib/cosched";

/// Why there is no library.
#[derive(Debug, thiserror::Error)]
pub enum NoLibrary {
    /// It was not found.
    #[error(
        "{LIBRARY} is in none of {}; install the whole package, build it with `cargo build -p cosched-hook`, or leave out \
         what asks for it", shown(.0)
    )]
    Missing(Vec<PathBuf>),
    /// It lies where the dynamic linker cannot load it from.
    #[error(
        "{}: the dynamic linker takes no library whose path has a space or a colon in it; move it, or leave out what \
         asks for it", .0.display()
    )]
    Unspeakable(PathBuf),
}

fn shown(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The library that belongs to this executable: beside it, as cargo builds it, or where a package
/// installs it.
///
/// # Errors
/// When it is not found, or cannot be preloaded from where it is.
pub fn library(executable: &Path) -> Result<PathBuf, NoLibrary> {
    let beside = executable.parent().unwrap_or(Path::new("/"));
    // The newest that cargo has built is in `deps`.
    let folders = [beside.join("deps"), beside.to_owned(), beside.join(INSTALLED)];
    let found = folders.iter().map(|folder| folder.join(LIBRARY)).find(|path| path.is_file());
    let Some(path) = found else { return Err(NoLibrary::Missing(folders.to_vec())) };
    let path = path.canonicalize().unwrap_or(path);
    match path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b' ' | b':')) {
        true => Err(NoLibrary::Unspeakable(path)),
        false => Ok(path),
    }
}

/// Adds to an environment what makes a program's processes connect to a hook server: the library
/// before all others that are preloaded.
pub fn preloaded(env: &mut Vec<(OsString, OsString)>, library: &Path, door: &str) {
    let others = env.iter().position(|(key, _)| key == PRELOAD).map(|i| env.swap_remove(i).1);
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        all.push(OsStr::new(":"));
        all.push(others);
    }
    env.retain(|(key, _)| key != SOCKET);
    env.push((PRELOAD.into(), all));
    env.push((SOCKET.into(), door.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_first_and_an_outer_hook_server_is_dropped() {
        let pair = |key: &str, value: &str| (OsString::from(key), OsString::from(value));
        let mut env = vec![pair(PRELOAD, "/a.so"), pair(SOCKET, "outer"), pair("HOME", "/h")];
        preloaded(&mut env, Path::new("/lib/hook.so"), "inner");
        env.sort();
        let expected =
            [pair(SOCKET, "inner"), pair("HOME", "/h"), pair(PRELOAD, "/lib/hook.so:/a.so")];
        assert_eq!(env, expected);
    }

    #[test]
    fn the_library_beside_the_executable_is_found_or_reported() {
        let folder = tempfile::tempdir().unwrap();
        let executable = folder.path().join("cosched");
        let text = library(&executable).unwrap_err().to_string();
        assert!(text.contains("cargo build") && text.contains(&*folder.path().to_string_lossy()));
        std::fs::write(folder.path().join(LIBRARY), "").unwrap();
        assert!(library(&executable).unwrap().ends_with(LIBRARY));
    }

    #[test]
    fn a_path_that_the_dynamic_linker_would_split_is_refused() {
        let folder = tempfile::Builder::new().prefix("with space ").tempdir().unwrap();
        std::fs::write(folder.path().join(LIBRARY), "").unwrap();
        let error = library(&folder.path().join("cosched")).unwrap_err();
        assert!(matches!(error, NoLibrary::Unspeakable(_)), "{error}");
    }
}
