//! Experiments that are gone on with, or not, in folders that hold one thing or another.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use serde_json::{Value, json};

use super::*;

#[test]
fn an_interrupted_comparison_resumes_after_complete_rounds() {
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path());
    let mut first = MadeUp { patience: 5, ..made_up(1) };
    let interrupted = experiment(&mut first, "linux,gang", 4, out, false).unwrap();
    assert_eq!(runs(&interrupted), [2, 2]);
    assert_eq!(first.made[4..], ["round-003/linux", "round-003/gang"]);

    assert!(refused(&mut made_up(2), "linux,gang", 4, out, false).contains("--resume"));

    let mut second = made_up(2);
    let whole = experiment(&mut second, "linux,gang", 4, out, true).unwrap();
    let made = ["round-003/linux", "round-003/gang", "round-004/gang", "round-004/linux"];
    assert_eq!(second.made, made);
    assert_eq!(whole.variants[1].runs[..2], interrupted.variants[1].runs[..]);
    let resumed = Comparison::of(&whole.variants).unwrap();
    let at_once = experiment(&mut made_up(1), "linux,gang", 4, None, false).unwrap();
    let at_once = Comparison::of(&at_once.variants).unwrap();
    assert_eq!((resumed.rounds, &resumed.machine), (at_once.rounds, &at_once.machine));
    assert_eq!(resumed.variants[1].samples.total_seconds.len(), 4);

    let mut third = made_up(3);
    let again = experiment(&mut third, "linux,gang", 4, out, true).unwrap();
    assert_eq!((third.made.len(), Comparison::of(&again.variants).unwrap()), (0, resumed));
    assert_eq!((second.looks.get(), third.looks.get()), (1, 0), "no time can be disturbed");
}

#[test]
fn a_complete_comparison_is_shown_and_nothing_is_written() {
    let folder = three_rounds();
    let plan = folder.path().join("compare-plan.json");
    let before = plan.metadata().unwrap().ino();
    experiment(&mut made_up(2), "linux,gang", 3, Some(folder.path()), true).unwrap();
    assert_eq!(plan.metadata().unwrap().ino(), before);
}

#[test]
fn a_resumed_variant_must_have_the_same_options() {
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path());
    let mut site = made_up(1);
    experiment(&mut site, "gang,fine=gang --quantum 5ms", 2, out, false).unwrap();
    let fine = Some(Duration::from_millis(5));
    assert_eq!(site.made, ["round-001/gang", "round-001/fine", "round-002/fine", "round-002/gang"]);
    assert_eq!(site.quanta, [None, fine, fine, None]);
    let again = "gang,fine=gang --quantum 5ms";
    assert_eq!(experiment(&mut made_up(1), again, 2, out, true).unwrap().variants[1].runs.len(), 2);
    for (other, said) in [
        (
            "gang,fine=gang --quantum 6ms",
            "there, --quantum of the variant 'fine': \"5ms\"; now: \"6ms\"",
        ),
        (
            "gang,fine=greedy --quantum 5ms",
            "there, the policy of the variant 'fine': \"gang\"; now: \"greedy\"",
        ),
        ("gang,fine=gang", "now: \"the default\""),
    ] {
        let text = refused(&mut made_up(1), other, 2, out, true);
        assert!(text.contains(said), "{other}: {text}");
    }
}

#[test]
fn more_complete_rounds_than_are_asked_for_count_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path());
    experiment(&mut made_up(1), "linux,gang", 8, out, false).unwrap();
    fs::remove_file(folder.path().join("round-004/gang/run.json")).unwrap();
    fs::remove_file(folder.path().join("round-007/gang/run.json")).unwrap();
    let mut ended = MadeUp { patience: 0, ..made_up(2) };
    let found = experiment(&mut ended, "linux,gang", 5, out, true).unwrap();
    assert_eq!((found.variants[0].runs.len(), found.whole), (6, false), "a requested one lacks");
    let mut again = made_up(2);
    let found = experiment(&mut again, "linux,gang", 5, out, true).unwrap();
    assert!(found.whole);
    assert_eq!(again.made, ["round-004/gang", "round-004/linux"], "what is requested is made");
    assert_eq!(runs(&found), [7, 7]);
    assert!(!folder.path().join("round-007/gang/run.json").exists(), "it was not requested");
}

#[test]
fn deciding_variables_of_the_shell_must_be_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path());
    let shell = |variables: &[(&str, &str)]| {
        let pairs = variables.iter().map(|(name, value)| (name.into(), value.into()));
        let mut site = made_up(1);
        site.session.environment = pairs.collect();
        site
    };
    let before = [("OMP_PROC_BIND", "close"), ("PATH", "/bin"), ("TERM", "xterm")];
    experiment(&mut shell(&before), "linux", 2, out, false).unwrap();
    let same = [("PATH", "/bin"), ("OMP_PROC_BIND", "close"), ("TERM", "dumb")];
    experiment(&mut shell(&same), "linux", 3, out, true).unwrap();
    let other = [("PATH", "/usr/bin"), ("LD_PRELOAD", "x.so")];
    let text = refused(&mut shell(&other), "linux", 3, out, true);
    for expected in [
        "there, OMP_PROC_BIND of the shell: \"close\"; now: nothing",
        "there, PATH of the shell: \"/bin\"; now: \"/usr/bin\"",
        "there, LD_PRELOAD of the shell: nothing; now: \"x.so\"",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn damaged_runs_are_repeated_and_foreign_runs_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path());
    experiment(&mut made_up(1), "linux,gang", 2, out, false).unwrap();
    let file = folder.path().join("round-002/gang/run.json");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, &whole[..20]).unwrap();
    let mut again = made_up(1);
    experiment(&mut again, "linux,gang", 2, out, true).unwrap();
    assert!(again.made.contains(&"round-002/gang".to_owned()), "{:?}", again.made);
    assert!(!again.made.contains(&"round-001/gang".to_owned()), "{:?}", again.made);
    fs::write(
        &file,
        whole
            .replace("\"policy\":\"gang\"", "\"policy\":\"fcfs\"")
            .replace("\"policy\": \"gang\"", "\"policy\": \"fcfs\""),
    )
    .unwrap();
    let text = refused(&mut made_up(1), "linux,gang", 2, out, true);
    assert!(text.contains("there, the policy: \"fcfs\"; now: \"gang\""), "{text}");
}

#[test]
fn only_the_same_can_be_gone_on_with_and_what_differs_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path());
    experiment(&mut made_up(1), "linux,gang", 2, out, false).unwrap();
    let refused = |site: &mut MadeUp, variants: &str| refused(site, variants, 3, out, true);
    let variants = refused(&mut made_up(1), "linux,fcfs");
    assert!(
        variants.contains("there, --policies: \"linux,gang\"; now: \"linux,fcfs\""),
        "{variants}"
    );
    let mut elsewhere = made_up(1);
    elsewhere.session.description.kernel = "6.1".to_owned();
    let kernel = refused(&mut elsewhere, "linux,gang");
    assert!(kernel.contains("the kernel: \"6.18\"; now: \"6.1\""), "{kernel}");
    fs::write(folder.path().join("compare-plan.json"), "{}").unwrap();
    let damaged = refused(&mut made_up(1), "linux,gang");
    assert!(damaged.contains("compare-plan.json: is damaged"), "{damaged}");
}

#[test]
fn files_of_others_are_never_taken_for_leftovers() {
    let folder = tempfile::tempdir().unwrap();
    let out = Some(folder.path());
    let variant = folder.path().join("round-001/linux");
    fs::create_dir_all(&variant).unwrap();
    fs::write(variant.join("run.json"), "keep").unwrap();
    // Without a plan beside the files, it is unknown what they belong to.
    let text = refused(&mut made_up(1), "linux,gang", 2, out, true);
    assert!(text.contains("compare-plan.json does not exist, so nothing says what"), "{text}");
    assert!(text.contains("round-001/linux is a run of; put it back"), "{text}");
    assert_eq!(fs::read_to_string(variant.join("run.json")).unwrap(), "keep");
}

/// Why an experiment of these variants and so many rounds is refused.
fn refused(
    site: &mut MadeUp,
    variants: &str,
    rounds: u16,
    out: Option<&Path>,
    resume: bool,
) -> String {
    match experiment(site, variants, rounds, out, resume) {
        Err(Failure::Input(text)) => text,
        other => panic!("{other:?}"),
    }
}

/// How many runs of each variant there are.
fn runs(experiment: &Experiment) -> Vec<usize> {
    experiment.variants.iter().map(|variant| variant.runs.len()).collect()
}

/// A folder with a comparison of two variants and three rounds.
fn three_rounds() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    experiment(&mut made_up(1), "linux,gang", 3, Some(folder.path()), false).unwrap();
    folder
}

/// It is not taken for a damaged run, which would be repeated.
#[test]
fn an_unreadable_run_is_not_overwritten() {
    let folder = three_rounds();
    let (file, other) = ["gang", "linux"]
        .map(|variant| folder.path().join("round-002").join(variant).join("run.json"))
        .into();
    let kept = fs::read(&other).unwrap();
    fs::remove_file(&file).unwrap();
    // No process may read a folder as a file, whatever its rights.
    fs::create_dir(&file).unwrap();
    let message = refused(&mut made_up(2), "linux,gang", 3, Some(folder.path()), true);
    assert!(message.contains("round-002/gang/run.json: is not a file; move it away"), "{message}");
    assert_eq!(fs::read(&other).unwrap(), kept);
    // Nor is a result of another version a damaged one.
    fs::remove_dir(&file).unwrap();
    let text = String::from_utf8(kept.clone()).unwrap();
    fs::write(&file, text.replace("cosched-run/3", "cosched-run/9")).unwrap();
    let message = refused(&mut made_up(2), "linux,gang", 3, Some(folder.path()), true);
    assert!(message.contains("has the schema 'cosched-run/9'"), "{message}");
    assert_eq!(fs::read(&other).unwrap(), kept);
}

#[test]
fn nothing_is_removed_where_not_everything_can_be() {
    let folder = three_rounds();
    let (damaged, stuck) = (
        folder.path().join("round-001/linux/run.json"),
        folder.path().join("round-002/gang/cg.stdout"),
    );
    fs::write(&damaged, "{").unwrap();
    fs::remove_file(folder.path().join("round-002/gang/run.json")).unwrap();
    fs::create_dir(&stuck).unwrap();
    let message = refused(&mut made_up(2), "linux,gang", 3, Some(folder.path()), true);
    assert!(message.contains("cg.stdout: cannot be removed: it is a folder"), "{message}");
    assert!(damaged.exists() && folder.path().join("round-001/gang/run.json").exists());
}

#[test]
fn what_a_link_leads_to_is_never_overwritten() {
    let (folder, elsewhere) = (three_rounds(), tempfile::tempdir().unwrap());
    let variant = folder.path().join("round-002/gang");
    fs::remove_dir_all(&variant).unwrap();
    fs::write(elsewhere.path().join("run.json"), "{").unwrap();
    symlink(elsewhere.path(), &variant).unwrap();
    let message = refused(&mut made_up(2), "linux,gang", 3, Some(folder.path()), true);
    assert!(message.contains("round-002/gang is a symbolic link"), "{message}");
    assert_eq!(fs::read(elsewhere.path().join("run.json")).unwrap(), b"{");
}

#[test]
fn a_run_with_other_settings_is_refused_with_what_differs() {
    let folder = three_rounds();
    let out = Some(folder.path());
    let file = folder.path().join("round-002/linux/run.json");
    let whole = fs::read_to_string(&file).unwrap();
    for (field, now, said) in [
        ("/quantum_seconds", json!(0.02), "there, --quantum (s): 0.02; now: null"),
        ("/machine/cpus", json!(3), "there, the machine: {\"cpus\":3"),
        ("/programs/0/name", json!("ep"), "there, the programs: [\"ep\"]; now: [\"cg\"]"),
        (
            "/programs/0/command",
            json!(["cg", "-x"]),
            "there, command of the program 'cg': [\"cg\",\"-x\"]; now: [\"cg\"]",
        ),
        ("/programs/0/threads", json!(1), "there, threads of the program 'cg': 1; now: 2"),
    ] {
        let mut run: Value = serde_json::from_str(&whole).unwrap();
        *run.pointer_mut(field).unwrap() = now;
        fs::write(&file, run.to_string()).unwrap();
        let message = refused(&mut made_up(2), "linux,gang", 3, out, true);
        assert!(message.contains(said) && message.contains("Move it away"), "{field}: {message}");
    }
    // An incomplete round is no licence to overwrite what is not of this comparison.
    fs::remove_file(folder.path().join("round-002/gang/run.json")).unwrap();
    refused(&mut made_up(2), "linux,gang", 3, out, true);
    fs::copy(folder.path().join("round-001/linux/run.json"), &file).unwrap();
    let message = refused(&mut made_up(2), "linux,gang", 3, out, true);
    assert!(
        message.contains("it is a copy of") && message.contains("round-001/linux"),
        "{message}"
    );
}

/// Only the variables of its programs show it.
#[test]
fn a_linux_run_in_a_rivals_folder_is_recognized() {
    let folder = tempfile::tempdir().unwrap();
    let variants = "linux,passive";
    experiment(&mut made_up(1), variants, 2, Some(folder.path()), false).unwrap();
    let run = |variant: &str| folder.path().join("round-002").join(variant).join("run.json");
    fs::copy(run("linux"), run("passive")).unwrap();
    let message = refused(&mut made_up(2), variants, 2, Some(folder.path()), true);
    let expected = "variables of the program 'cg': {}; now: {\"OMP_WAIT_POLICY\":\"passive\"}";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn binary_content_is_damage_and_a_text_may_be_a_users() {
    let folder = three_rounds();
    let file = folder.path().join("round-002/gang/run.json");
    fs::write(&file, "a list: milk, eggs").unwrap();
    let message = refused(&mut made_up(2), "linux,gang", 3, Some(folder.path()), true);
    let expected = "is not a result of a run (it is no JSON object); \
                    move it away, and its round is run again, or";
    assert!(message.contains(expected), "{message}");
    assert_eq!(fs::read(&file).unwrap(), b"a list: milk, eggs");
    for rubbish in [&[0u8; 4096][..], b"\x93\x01\xfe rubbish", b""] {
        fs::write(&file, rubbish).unwrap();
        let mut site = made_up(2);
        experiment(&mut site, "linux,gang", 3, Some(folder.path()), true).unwrap();
        assert_eq!(site.made, ["round-002/gang", "round-002/linux"]);
    }
}

#[test]
fn a_folder_that_holds_a_single_run_takes_no_comparison() {
    let folder = three_rounds();
    let run = folder.path().join("round-001/linux/run.json");
    let other = tempfile::tempdir().unwrap();
    fs::copy(run, other.path().join("run.json")).unwrap();
    for resume in [false, true] {
        let message = refused(&mut made_up(2), "linux,gang", 3, Some(other.path()), resume);
        assert!(message.contains("it already holds a run; choose another folder"), "{message}");
    }
}

#[test]
fn a_damaged_round_beyond_the_requested_ones_is_left() {
    let folder = three_rounds();
    let file = folder.path().join("round-003/gang/run.json");
    fs::write(&file, "{").unwrap();
    let mut site = made_up(2);
    let found = experiment(&mut site, "linux,gang", 2, Some(folder.path()), true).unwrap();
    assert_eq!((site.made.len(), found.variants[0].runs.len()), (0, 2));
    assert_eq!(fs::read(&file).unwrap(), b"{");
}

/// No further round begins.
#[test]
fn complete_rounds_are_shown_if_a_later_one_fails() {
    let folder = tempfile::tempdir().unwrap();
    for fails in [Fails::Alone, Fails::Save] {
        let out = folder.path().join(format!("{fails:?}"));
        let mut site = MadeUp { fails: Some((fails, 2)), ..made_up(1) };
        let found = experiment(&mut site, "linux,gang", 5, Some(&out), false).unwrap();
        assert_eq!(runs(&found), [2, 2]);
        assert_eq!((found.ended, found.all_succeeded), (Ended::Complete, false));
        assert!(site.made.iter().all(|run| !run.starts_with("round-004")), "{:?}", site.made);
        let whole = experiment(&mut made_up(1), "linux,gang", 5, Some(&out), true).unwrap();
        assert_eq!(whole.variants[1].runs.len(), 5);
    }
    // Where the run to warm up leaves something that cannot be put back, no round is begun.
    let mut site = MadeUp { fails: Some((Fails::WarmUp, 0)), ..made_up(1) };
    let found = experiment(&mut site, "linux,gang", 5, None, false).unwrap();
    assert_eq!((site.made.len(), found.variants[0].runs.len(), found.all_succeeded), (1, 0, false));
    // With nothing to show, what went wrong is the result.
    let mut site = MadeUp { fails: Some((Fails::Alone, 0)), ..made_up(1) };
    let result = experiment(&mut site, "linux,gang", 5, None, false);
    assert!(matches!(result, Err(Failure::Broken(_))), "{result:?}");
}
