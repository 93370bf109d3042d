use std::thread;
use std::time::SystemTime;

use cosched_core::{Actuator, CpuSet, Learned, Nanos};
use cosched_policy::{Placement, SortBy};
use cosched_results::result::MachineDescription;
use cosched_workload::{BarrierMode, ProgramSpec, Workload};
use tempfile::TempDir;

use super::*;

fn program(keys: &str) -> ProgramSpec {
    let text = format!("[[program]]\ncommand = ['cg', '4']\n{keys}");
    Workload::parse(&text, "/tmp/jobs.toml".as_ref()).unwrap().programs.remove(0)
}

fn machine() -> MachineDescription {
    MachineDescription { cpus: 2, model: Some("Fast".into()), kernel: "6.18".into() }
}

fn key(threads: u16) -> Key {
    Key::new(&program(""), threads, Placement::Packed, &machine())
}

fn entry(seconds: u64) -> SoloRecord {
    SoloRecord {
        solo: Nanos::from_secs(seconds),
        runs: 3,
        times: [seconds, seconds + 1, seconds - 1].map(Nanos::from_secs).to_vec(),
        cpu: Some(Nanos::from_secs(2 * seconds)),
        misses_per_kilo_instruction: None,
        miss_ratio: Some(0.25),
        measured_at: "2026-01-01T00:00:00Z".into(),
    }
}

/// A folder that is removed with the value, and the file of a store in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cosched/profiles.redb");
    (folder, file)
}

#[test]
fn a_key_is_written_the_same_way_every_time() {
    assert_eq!(
        key(2).as_str(),
        concat!(
            r#"{"version":2,"command":["cg","4"],"cwd":"/tmp","env":{},"threads":2,"#,
            r#""placement":"packed","model":"Fast","cpus":2}"#
        )
    );
}

#[test]
fn keys_differ_exactly_if_times_alone_may_differ() {
    let with = |keys| Key::new(&program(keys), 2, Placement::Packed, &machine());
    for other in [
        with("env = { OMP_PROC_BIND = 'true' }"),
        with("cwd = '/'"),
        key(1),
        Key::new(&program(""), 2, Placement::Spread, &machine()),
        Key::new(&program(""), 2, Placement::Packed, &MachineDescription { cpus: 4, ..machine() }),
        Key::new(
            &program(""),
            2,
            Placement::Packed,
            &MachineDescription { model: None, ..machine() },
        ),
    ] {
        assert_ne!(other, key(2));
    }
    for same in
        ["name = 'other'", "start = '1s'", "repeat = 3", "weight = 2.0", "freezable = false"]
    {
        assert_eq!(with(same), key(2), "{same}");
    }
    let updated = MachineDescription { kernel: "6.19".into(), ..machine() };
    assert_eq!(Key::new(&program(""), 2, Placement::Packed, &updated), key(2));
}

#[test]
fn entries_last_until_a_later_one_replaces_them() {
    let (_folder, file) = place();
    let mut store = Store::open_at(&file).unwrap();
    assert_eq!(store.get(&key(2)).unwrap(), None);
    store.put(&key(2), &entry(5)).unwrap();
    store.put(&key(1), &entry(9)).unwrap();
    store.put(&key(2), &entry(4)).unwrap();
    assert_eq!(store.get(&key(2)).unwrap(), Some(entry(4)));
    let later = Store::open_at(&file).unwrap();
    assert_eq!(later.get(&key(2)).unwrap(), Some(entry(4)));
    assert_eq!(later.get(&key(1)).unwrap(), Some(entry(9)));
    assert_eq!(later.get(&key(3)).unwrap(), None);
}

#[test]
fn what_is_known_for_now_is_not_in_the_file() {
    let (_folder, file) = place();
    let mut store = Store::open_at(&file).unwrap();
    store.put(&key(1), &entry(9)).unwrap();
    store.know_for_now(&key(1), &entry(5));
    assert_eq!(store.get(&key(1)).unwrap(), Some(entry(5)));
    let later = Store::open_at(&file).unwrap();
    assert_eq!(later.get(&key(1)).unwrap(), Some(entry(9)));
}

#[test]
fn stores_that_are_used_at_once_lose_nothing() {
    let (_folder, file) = place();
    thread::scope(|scope| {
        for threads in 1..=4 {
            let file = &file;
            // Time enough on a machine that is busy with other tests.
            let patience = Duration::from_secs(60);
            scope.spawn(move || {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                let mut store = Store::read(file.clone(), patience).unwrap();
                store.put(&key(threads), &entry(threads.into())).unwrap();
            });
        }
    });
    let store = Store::open_at(&file).unwrap();
    for threads in 1..=4 {
        assert_eq!(store.get(&key(threads)).unwrap(), Some(entry(threads.into())));
    }
}

/// What is written has to reach the disk first, which can take seconds.
#[test]
fn looking_something_up_writes_nothing() {
    let (_folder, file) = place();
    Store::open_at(&file).unwrap().put(&key(2), &entry(5)).unwrap();
    let (content, long_ago) = (fs::read(&file).unwrap(), SystemTime::UNIX_EPOCH);
    fs::File::options().write(true).open(&file).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(Store::open_at(&file).unwrap().get(&key(2)).unwrap(), Some(entry(5)));
    assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), long_ago);
    assert_eq!(fs::read(&file).unwrap(), content);
}

#[test]
fn a_file_that_stays_locked_is_reported_in_the_end() {
    let (_folder, file) = place();
    Store::open_at(&file).unwrap();
    let held = Database::open(&file).unwrap();
    let refused = Store::read(file.clone(), Duration::ZERO).unwrap_err();
    let expected = format!("{}: is in use by another cosched; wait", file.display());
    assert!(refused.to_string().starts_with(&expected), "{refused}");
    drop(held);
    Store::read(file, Duration::ZERO).unwrap();
}

#[test]
fn a_damaged_file_is_reported_and_left_as_it_is() {
    let (_folder, file) = place();
    Store::open_at(&file).unwrap().put(&key(2), &entry(5)).unwrap();
    let whole = fs::read(&file).unwrap();
    let half = whole[..whole.len() / 2].to_vec();
    for content in [b"no database at all".to_vec(), vec![b'x'; 20_000], whole[..100].to_vec(), half]
    {
        fs::write(&file, &content).unwrap();
        let refused = Store::open_at(&file).unwrap_err().to_string();
        let parts = ["profiles.redb: is damaged (", "remove the file"];
        assert!(parts.iter().all(|part| refused.contains(part)), "{refused}");
        assert_eq!(fs::read(&file).unwrap(), content);
    }
}

#[test]
fn an_entry_of_another_form_is_damage_too() {
    let (_folder, file) = place();
    let mut store = Store::open_at(&file).unwrap();
    store.known.insert(key(2).as_str().to_owned(), r#"{"solo":1}"#.into());
    assert!(store.get(&key(2)).unwrap_err().to_string().contains("is damaged"));
}

#[test]
fn entries_without_miss_ratio_can_be_read() {
    let (_folder, file) = place();
    let mut store = Store::open_at(&file).unwrap();
    let text = serde_json::to_string(&entry(5)).unwrap();
    let older = text.replace("\"miss_ratio\":0.25,", "");
    assert_ne!(older, text);
    store.known.insert(key(2).as_str().to_owned(), older);
    let expected = SoloRecord { miss_ratio: None, ..entry(5) };
    assert_eq!(store.get(&key(2)).unwrap(), Some(expected));
}

#[test]
fn entries_without_single_times_can_be_read() {
    let (_folder, file) = place();
    let mut store = Store::open_at(&file).unwrap();
    let text = serde_json::to_string(&entry(5)).unwrap();
    let older = text.replace("\"run_nanoseconds\":[5000000000,6000000000,4000000000],", "");
    assert_ne!(older, text);
    store.known.insert(key(2).as_str().to_owned(), older);
    let expected = SoloRecord { times: Vec::new(), ..entry(5) };
    assert_eq!(store.get(&key(2)).unwrap(), Some(expected));
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let (folder, _) = place();
    fs::write(folder.path().join("in-the-way"), "").unwrap();
    let refused =
        Store::open_at(&folder.path().join("in-the-way/cosched/profiles.redb")).unwrap_err();
    assert!(refused.to_string().contains("in-the-way/cosched: cannot be made"), "{refused}");
}

#[test]
fn group_results_are_kept_per_division_of_threads() {
    let (_folder, file) = place();
    let mut store = Store::open_at(&file).unwrap();
    let programs = [key(2)];
    let division = |groups: [&str; 2], sort| {
        Division::new(&groups.map(|cpus| cpus.parse::<CpuSet>().unwrap()), sort)
    };
    let halves = division(["0", "1"], SortBy::Lock);
    let batch = Learned::new(Actuator::Batch, &[Actuator::Batch]);
    let helped = Learned::default().with_groups(true);
    store.learn(&programs, 0, Some(&halves), helped, true).unwrap();
    store.learn(&programs, 0, None, batch, true).unwrap();
    let store = Store::open_at(&file).unwrap();
    let known = |division: Option<&Division>| store.learned(&programs, 0, division);
    assert_eq!(known(Some(&halves)), batch.with_groups(true));
    for other in [division(["0-1", "2-3"], SortBy::Lock), division(["0", "1"], SortBy::LockTime)] {
        assert_eq!(known(Some(&other)), batch);
    }
    assert_eq!(known(None), batch);
}

#[test]
fn an_unreadable_learned_setting_is_learnt_again() {
    let (_folder, file) = place();
    let programs = [key(2), key(4)];
    let known = Learned::new(Actuator::Batch, &[Actuator::Batch]);
    let mut store = Store::open_at(&file).unwrap();
    store.learn(&programs, 0, None, known, true).unwrap();
    assert_eq!(Store::open_at(&file).unwrap().learned(&programs, 0, None), known);
    assert!(store.learned(&programs, 1, None).is_empty(), "of the other one nothing is known");

    let co_runners = store.learned.keys().next().unwrap().clone();
    store.write(LEARNED, &co_runners, r#"{"in_force":"of-tomorrow","tried":[],"uses":0}"#).unwrap();
    let mut store = Store::open_at(&file).unwrap();
    assert!(store.learned(&programs, 0, None).is_empty());
    store.learn(&programs, 0, None, known, true).unwrap();
    assert_eq!(store.learned(&programs, 0, None), known);
}

#[test]
fn attached_programs_differ_by_barriers_limits_and_weight() {
    let in_hand = |keys, barrier| key(2).in_hand(&program(keys), barrier);
    let plain = in_hand("", BarrierMode::Own);
    assert_eq!(in_hand("name = 'other'", BarrierMode::Own), plain);
    for other in [
        in_hand("", BarrierMode::Donate),
        in_hand("malleable = true", BarrierMode::Own),
        in_hand("weight = 2.0", BarrierMode::Own),
    ] {
        assert_ne!(other, plain);
    }
}

#[test]
fn a_new_store_is_complete_and_private() {
    use std::os::unix::fs::PermissionsExt;

    let (folder, file) = place();
    Store::open_at(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let names = || fs::read_dir(folder.path().join("cosched")).unwrap().count();
    assert_eq!(names(), 1, "and nothing else is left there");
    // The store that was there first keeps its content.
    Store::open_at(&file).unwrap().put(&key(2), &entry(3)).unwrap();
    assert!(make(file.parent().unwrap(), &file).is_ok());
    assert_eq!(Store::open_at(&file).unwrap().get(&key(2)).unwrap(), Some(entry(3)));
    assert_eq!(names(), 1);
}

#[test]
fn what_is_no_file_is_named_as_such() {
    let (_folder, file) = place();
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let _listens = std::os::unix::net::UnixListener::bind(&file).unwrap();
    let error = Store::open_at(&file).unwrap_err().to_string();
    assert!(error.contains("is a folder, a pipe, a socket or a device, and no file"), "{error}");
}

#[test]
fn a_file_system_without_locks_is_named_as_such() {
    for errno in [37, 95] {
        let error = redb::Error::Io(io::Error::from_raw_os_error(errno));
        let said = store_error("p".as_ref(), Trouble(Box::new(error))).to_string();
        assert!(said.contains("its file system has no locks"), "{said}");
        assert!(said.ends_with("set XDG_DATA_HOME to a folder on a local disk"), "{said}");
    }
}
