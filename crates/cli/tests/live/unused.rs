//! Options that have no effect where programs take turns by weight: they are named, or refused.

use super::support::{Place, User};
use super::turns::caller_has_groups;

#[test]
fn options_without_effect_are_named_under_turns() {
    if !caller_has_groups() {
        return;
    }
    let place = Place::new();
    let named = ["--max-frozen and --freezer have no effect here", "--turns freeze"];
    let options = ["--max-frozen", "2s", "--freezer", "signals", "--", "true", ":::", "true"];
    let run = [&["run"][..], &options].concat();
    place.cosched(&run).ended().with(0).saying(&named);
    let compare = |policies| {
        let words = ["compare", "--runs", "1", "--policies", policies];
        place.cosched(&[&words[..], &options].concat()).ended().with(0)
    };
    compare("linux,turns").saying(&named);
    let with_gang = compare("turns,gang");
    assert!(!with_gang.stderr.contains("no effect"), "{}", with_gang.stderr);
}

#[test]
fn insisting_on_weights_refuses_options_of_pauses() {
    for option in [["--max-frozen", "2s"], ["--freezer", "signals"]] {
        let place = Place::new();
        let words = [&["run", "--turns", "weight"], &option[..], &["--", "touch", "ran"]].concat();
        let said = [option[0], "has no effect with --turns weight", "use --turns freeze"];
        place.cosched(&words).ended().with(2).saying(&said);
        assert!(!place.path("ran").exists());
    }
}

#[test]
fn options_that_auto_uses_in_place_of_turns_are_not_named() {
    let place = Place::of(User::ordinary());
    let ended = place.cosched(&["run", "--max-frozen", "2s", "--", "true", ":::", "true"]).ended();
    let auto = ended.stderr.contains("the policy auto decides");
    assert_ne!(auto, ended.stderr.contains("no effect"), "{}", ended.stderr);
}
