//! Programs of an ordinary user that have, or get, the rights of another one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use cosched_core::{Aspect, Refusal};
use cosched_linux::kernel::affinity;

use super::support::{Place, STAMPS, User, copy_file, program, skip};

/// A copy of a program that has the rights of root, whichever user starts it; `None`, with a
/// message, where there is no such thing.
fn set_uid(place: &Place, original: &str) -> Option<PathBuf> {
    let copy = |original: &str| {
        let path = place.path("set-uid");
        copy_file(Path::new(original), &path);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o4755)).unwrap();
        path
    };
    let tried = place.user.command(&copy("/usr/bin/id")).arg("-u").output().unwrap();
    fs::remove_file(place.path("set-uid")).unwrap();
    match (&place.user, &tried.stdout[..]) {
        (User::Ordinary(_), b"0\n") => Some(copy(original)),
        _ => {
            skip("no set-uid program can be made here");
            None
        }
    }
}

/// It may be stopped: its real user is the caller. But if it made itself root's alone while the
/// stop is on its way, the caller could not continue it.
#[test]
fn a_set_uid_program_is_not_frozen_by_signals() {
    let place = Place::of(User::ordinary());
    let Some(tail) = set_uid(&place, "/usr/bin/tail") else { return };
    // One runs at a time: if `b` sees that `a` is set-uid, it was so when it was to be frozen.
    let a = format!(
        "until [ -s b ]; do :; done; echo $$ > a; exec {} --pid=$(cat b) -f /dev/null",
        tail.display()
    );
    let b = format!(
        "echo $$ > b; until [ -s a ]; do :; done; read pid < a; \
         until grep -q set-uid /proc/$pid/comm; do :; done; {STAMPS}"
    );
    let keys = format!("threads = {}", affinity::get(0).unwrap().len());
    let tables = [program("a", &keys, &a), program("b", &keys, &b)];
    let how = "--policy gang --quantum 20ms --freezer signals";
    let result = place.run(&tables, how).ended().with(0).result();
    let refused = result.deviations.iter().filter(|one| one.program.slot == 0);
    let mut refused = refused.map(|one| (one.what, one.why));
    let expected = (Aspect::Frozen, Refusal::NotPermitted);
    assert!(refused.any(|one| one == expected), "{:?}", result.deviations);
}
