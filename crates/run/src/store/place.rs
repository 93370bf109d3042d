//! Where the store is: below the user's data folder, as the XDG rules have it.

use std::ffi::OsString;
use std::path::PathBuf;

/// The file of the store; `None` when the environment names no place.
pub(super) fn file() -> Option<PathBuf> {
    choose(std::env::var_os("XDG_DATA_HOME"), std::env::var_os("HOME"))
}

/// By the rules a relative path is ignored.
fn choose(data: Option<OsString>, home: Option<OsString>) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let data = data.and_then(absolute);
    let data = data.or_else(|| home.and_then(absolute).map(|home| home.join(".local/share")));
    data.map(|data| data.join("cosched/profiles.redb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(data: Option<&str>, home: Option<&str>) -> Option<String> {
        let file = choose(data.map(OsString::from), home.map(OsString::from));
        file.map(|file| file.display().to_string())
    }

    #[test]
    fn the_data_folder_is_taken_first_and_the_home_folder_next() {
        assert_eq!(chosen(Some("/d"), Some("/h")).unwrap(), "/d/cosched/profiles.redb");
        assert_eq!(chosen(None, Some("/h")).unwrap(), "/h/.local/share/cosched/profiles.redb");
    }

    #[test]
    fn relative_and_empty_paths_count_as_unset() {
        assert_eq!(chosen(Some("d"), Some("/h")), chosen(None, Some("/h")));
        assert_eq!(chosen(Some(""), Some("")), None);
        assert_eq!(chosen(None, None), None);
    }
}
