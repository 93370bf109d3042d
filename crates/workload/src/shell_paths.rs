//! Paths that only a shell would understand: `~/data`, `$HOME/data`.
//!
//! No key of a workload file is expanded, as in other TOML files (Cargo's, say). Taken literally,
//! such a path names a file that nearly never exists, or makes one by mistake. It is therefore
//! refused, unless a file of that very name is there.

use std::path::Path;

use super::error::Problem;

/// Checks a path that begins in `folder`.
pub(super) fn check(named: &str, folder: &Path) -> Result<(), Problem> {
    match shell_part(named) {
        Some(part) if folder.join(named).symlink_metadata().is_err() => {
            Err(Problem::ShellPath(part.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Checks the first word of a command. One without a slash is no path from the folder, and may be
/// called whatever `PATH` has.
pub(super) fn check_command(word: &str, folder: &Path) -> Result<(), Problem> {
    match word.contains('/') || word.starts_with(['~', '$']) {
        true => check(word, folder),
        false => Ok(()),
    }
}

/// What a shell would replace first.
fn shell_part(named: &str) -> Option<&str> {
    if named.starts_with('~') {
        return named.split('/').next();
    }
    named.match_indices('$').find_map(|(at, _)| variable(&named[at..]))
}

/// The variable at the beginning of a text that begins with `$`.
fn variable(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let name = &text[1..];
    if name.starts_with('{') {
        return text.find('}').map(|end| &text[..=end]);
    }
    let length = name.find(|c| !is_part(c)).unwrap_or(name.len());
    (length > 0).then(|| &text[..=length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_a_shell_would_replace_is_found() {
        for (path, part) in [
            ("~", Some("~")),
            ("~/data", Some("~")),
            ("~me/data", Some("~me")),
            ("$HOME/data", Some("$HOME")),
            ("/data/${USER}/x", Some("${USER}")),
            ("log-$JOB_1.txt", Some("$JOB_1")),
            ("data~", None),
            ("./~/data", None),
            ("a$", None),
            ("a$.txt", None),
            ("${open", None),
        ] {
            assert_eq!(shell_part(path), part, "{path}");
        }
    }

    #[test]
    fn a_file_that_is_called_so_may_be_named() {
        let folder = tempfile::tempdir().unwrap();
        let named = "$HOME";
        assert!(check(named, folder.path()).is_err());
        std::fs::create_dir(folder.path().join(named)).unwrap();
        assert!(check(named, folder.path()).is_ok());
        assert!(check_command("$HOME/run", folder.path()).is_err());
        assert!(check_command("a$b", folder.path()).is_ok(), "it may be in PATH");
    }
}
