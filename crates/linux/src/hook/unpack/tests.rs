use std::os::unix::fs::symlink;
use std::sync::Barrier;

use tempfile::TempDir;

use super::*;

/// A folder of this user's, and the one in it that the library goes into.
fn place() -> (TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("cosched");
    (place, folder)
}

fn own() -> u32 {
    geteuid().as_raw()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn names(folder: &Path) -> Vec<OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

#[test]
fn the_executable_carries_the_library() {
    assert!(CONTENT.starts_with(b"\x7fELF"), "the build script says why it has none");
    let contains = |text: &[u8]| CONTENT.windows(text.len()).any(|window| window == text);
    assert!(contains(b"cosched_region\0"));
    assert!(contains(b"libcosched_hook.so\0"), "it has no soname");
}

#[test]
fn it_is_unpacked_once_into_a_folder_of_the_user_alone() {
    let (place, _) = place();
    let folder = place.path().join("cache/cosched");
    let library = unpack_into(&folder, own()).unwrap();
    assert_eq!(library, folder.canonicalize().unwrap().join(NAME));
    let expected = if own() == 0 { 0o755 } else { 0o700 };
    for made in [&folder, &place.path().join("cache")] {
        assert_eq!((mode(made), fs::metadata(made).unwrap().uid()), (expected, own()));
    }
    assert_eq!((fs::read(&library).unwrap(), mode(&library)), (CONTENT.to_vec(), 0o644));
    let inode = || fs::metadata(&library).unwrap().ino();
    let first = inode();
    assert_eq!(unpack_into(&folder, own()).unwrap(), library);
    assert_eq!(inode(), first);
}

#[test]
fn an_error_names_the_folder_by_its_path() {
    let (_place, folder) = place();
    let open = open_or_make(&folder, own()).unwrap();
    fs::remove_dir(&folder).unwrap();
    let refused = write(&open, &folder).unwrap_err().to_string();
    assert!(refused.contains(&*folder.to_string_lossy()), "{refused}");
    assert!(!refused.contains("/proc/"), "{refused}");
}

/// A program that has loaded the old file keeps it.
#[test]
fn a_changed_file_is_replaced_and_not_overwritten() {
    let (_place, folder) = place();
    let library = unpack_into(&folder, own()).unwrap();
    let mut other = CONTENT.to_vec();
    other[CONTENT.len() / 2] ^= 1;
    for content in [&other[..], &CONTENT[1..], &[CONTENT, b"more"].concat(), b""] {
        fs::write(&library, content).unwrap();
        let mut old = File::open(&library).unwrap();
        unpack_into(&folder, own()).unwrap();
        assert_eq!(fs::read(&library).unwrap(), CONTENT);
        let mut kept = Vec::new();
        old.read_to_end(&mut kept).unwrap();
        assert_eq!(kept, content);
    }
    set_mode(&library, 0o666);
    unpack_into(&folder, own()).unwrap();
    assert_eq!((mode(&library), names(&folder).len()), (0o644, 1));
}

#[test]
fn a_link_or_a_pipe_in_place_of_the_file_is_replaced() {
    let (place, folder) = place();
    let library = unpack_into(&folder, own()).unwrap();
    let victim = place.path().join("victim");
    for content in [CONTENT, b"precious"] {
        fs::write(&victim, content).unwrap();
        set_mode(&victim, 0o644);
        fs::remove_file(&library).unwrap();
        symlink(&victim, &library).unwrap();
        unpack_into(&folder, own()).unwrap();
        assert!(fs::symlink_metadata(&library).unwrap().is_file());
        assert_eq!(fs::read(&victim).unwrap(), content);
    }
    fs::remove_file(&library).unwrap();
    rustix::fs::mknodat(CWD, &library, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
    unpack_into(&folder, own()).unwrap();
    assert_eq!(fs::read(&library).unwrap(), CONTENT);
}

#[test]
fn a_link_in_place_of_the_folder_is_not_followed() {
    let (place, folder) = place();
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &folder).unwrap();
    assert!(matches!(unpack_into(&folder, own()), Err(UnfitFolder::Failed(_))));
    assert_eq!(names(&elsewhere).len(), 0);
}

#[test]
fn the_cache_folder_itself_may_be_a_link() {
    let (place, _) = place();
    let (real, link) = (place.path().join("real"), place.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let library = unpack_into(&link.join("cosched"), own()).unwrap();
    assert_eq!(library, real.canonicalize().unwrap().join("cosched").join(NAME));
}

#[test]
fn several_at_once_leave_one_whole_file() {
    let (_place, folder) = place();
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..20 {
                    barrier.wait();
                    let library = unpack_into(&folder, own()).unwrap();
                    assert_eq!(fs::read(&library).unwrap(), CONTENT);
                    if barrier.wait().is_leader() {
                        fs::write(library, "damaged").unwrap();
                    }
                }
            });
        }
    });
    unpack_into(&folder, own()).unwrap();
    assert_eq!(names(&folder), [NAME]);
}

#[test]
fn a_folder_of_another_user_is_not_used() {
    let (place, folder) = place();
    let another = own() + 1;
    for folder in [&folder, &place.path().join("cache/cosched")] {
        assert!(matches!(unpack_into(folder, another), Err(UnfitFolder::NotPrivate(_))));
    }
    assert_eq!(names(place.path()).len(), 0, "nothing is made in it");
    fs::create_dir(&folder).unwrap();
    assert!(matches!(unpack_into(&folder, another), Err(UnfitFolder::NotPrivate(_))));
    assert_eq!(names(&folder).len(), 0);
}

#[test]
fn a_folder_that_others_can_change_is_not_used() {
    let (place, folder) = place();
    fs::create_dir(&folder).unwrap();
    for changed in [&*folder, place.path()] {
        let before = mode(changed);
        set_mode(changed, 0o777);
        let Err(UnfitFolder::NotPrivate(refused)) = unpack_into(&folder, own()) else {
            panic!("{} was used", folder.display())
        };
        assert_eq!(refused, changed.canonicalize().unwrap());
        set_mode(changed, before);
    }
    assert_eq!(names(&folder).len(), 0);
    unpack_into(&folder, own()).unwrap();
}

#[test]
fn the_next_folder_is_used_where_the_first_is_not_fit() {
    let (place, folder) = place();
    let unspeakable = ["a b", "a:b", "$LIB"].map(|name| place.path().join(name).join("cosched"));
    let all = || unspeakable.iter().cloned().map(Ok);
    let library = unpack(all().chain([Ok(folder.clone())]), own()).unwrap();
    assert_eq!(library, folder.canonicalize().unwrap().join(NAME));
    let all = all().chain([Err("no folder for undo logs".to_owned())]);
    let error = unpack(all, own()).unwrap_err().to_string();
    let said = ["a b/cosched: the dynamic", "a:b", "$LIB", "no folder for", "set XDG_CACHE_HOME"];
    assert!(said.iter().all(|text| error.contains(text)), "{error}");
    assert!(unspeakable.iter().all(|folder| names(folder).is_empty()));
}

#[test]
fn the_cache_is_where_the_environment_says() {
    let chosen = |user, xdg: &str, home: &str| {
        cache(user, Some(xdg.into()), Some(home.into())).map(|path| path.display().to_string())
    };
    assert_eq!(chosen(1, "/c", "/h").unwrap(), "/c/cosched");
    assert_eq!(chosen(0, "/c", "/h").unwrap(), "/c/cosched");
    assert_eq!(chosen(1, "c", "/h").unwrap(), "/h/.cache/cosched");
    assert_eq!(chosen(0, "", "/h").unwrap(), "/var/cache/cosched");
    assert_eq!(chosen(1, "", "h"), None);
    assert_eq!(cache(1, None, None), None);
}
