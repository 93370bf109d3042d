use std::time::{Duration, Instant, SystemTime};

use cosched_core::{CpuSet, Nanos, ProgramId};

use super::*;
use crate::kernel::sched_attr::{SchedAttr, SchedPolicy};
use crate::safety::undo::lines::{first_records, length};

const P: ProgramId = ProgramId::first(0);

fn log() -> (tempfile::TempDir, Log) {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::create(folder.path(), &Proc::default()).unwrap();
    (folder, log)
}

fn load(log: &Log) -> Vec<Record> {
    Log::load(log.path(), &Proc::default()).unwrap().records()[2..].to_vec()
}

fn pinned(start: usize) -> Record {
    Record::Pinned { program: P, found: CpuSet::first(8), set: [start].into_iter().collect() }
}

fn an_attr() -> Record {
    let runtime = Nanos::from_millis(3);
    let found = SchedAttr {
        policy: SchedPolicy::Numbered(8),
        flags: 1,
        nice: -5,
        priority: 0,
        runtime,
        deadline: Nanos::ZERO,
        period: Nanos::ZERO,
    };
    let set = SchedAttr { policy: SchedPolicy::RoundRobin, ..found };
    Record::Attr { program: P, thread: Process { pid: 3, start_time: 4 }, found, set }
}

#[test]
fn records_are_loaded_while_the_log_is_open() {
    let (_folder, mut log) = log();
    let records = [
        pinned(1),
        an_attr(),
        Record::StoppedByOther { process: Process { pid: 9, start_time: 9 } },
    ];
    for record in &records {
        log.note(record.clone()).unwrap();
    }
    assert_eq!(load(&log), records);
}

#[test]
fn a_later_log_of_the_same_process_leaves_the_earlier_one_alone() {
    let (folder, mut first) = log();
    first.note(pinned(1)).unwrap();
    let second = Log::create(folder.path(), &Proc::default()).unwrap();
    assert_ne!(first.path(), second.path());
    assert_eq!((load(&first), load(&second)), (vec![pinned(1)], vec![]));
}

#[test]
fn a_torn_last_line_is_skipped() {
    let (_folder, mut log) = log();
    log.note(pinned(1)).unwrap();
    log.note(pinned(2)).unwrap();
    let whole = fs::metadata(log.path()).unwrap().len();
    for cut in 1..20 {
        log.file.set_len(whole - 1 - cut).unwrap();
        assert_eq!(load(&log), [pinned(1)], "cut by {cut}");
    }
}

#[test]
fn damaged_lines_are_counted_and_all_others_read() {
    let (_folder, mut log) = log();
    let read = |log: &Log| Log::load(log.path(), &Proc::default()).unwrap();
    (1..20).for_each(|cpu| log.note(pinned(cpu)).unwrap());
    let (whole, records) = (fs::read(log.path()).unwrap(), log.journal().records().to_vec());
    assert_eq!((read(&log).records(), read(&log).damaged_lines()), (&records[..], 0));
    let begins = [0].into_iter().chain(whole.iter().enumerate().filter_map(|(at, byte)| {
        (*byte == b'\n').then_some(at + 1).filter(|at| *at < whole.len())
    }));
    // One of them is the first line, which names the boot.
    for (line, begin) in begins.enumerate() {
        let mut bytes = whole.clone();
        bytes[begin] = 0xff;
        fs::write(log.path(), &bytes).unwrap();
        let journal = read(&log);
        let others = [&records[..line], &records[line + 1..]].concat();
        assert_eq!((journal.records(), journal.damaged_lines()), (&others[..], 1));
        assert!(!journal.owes_nothing());
    }
    // A kill in the middle of a write leaves whole parts of the file.
    for (length, damaged) in [(1024, 0), (1023, 1), (1025, 1)] {
        fs::write(log.path(), &whole[..length]).unwrap();
        assert_eq!(read(&log).damaged_lines(), damaged, "{length} bytes");
    }
    // No process of an earlier boot is left, whether the log still names the boot or not.
    fs::write(log.path(), &whole[1..]).unwrap();
    assert_eq!(read(&log).damaged_lines(), 1);
    log.file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!((read(&log).records(), read(&log).damaged_lines()), (&[][..], 0));
}

#[test]
fn a_large_log_repeats_its_valid_records_in_the_same_file() {
    let (folder, mut log) = log();
    let held = log.file().unwrap();
    log.large = 2000;
    log.note(an_attr()).unwrap();
    for cpu in 0..100 {
        log.note(pinned(cpu)).unwrap();
        log.note(Record::Gone { program: P }).unwrap();
    }
    log.note(pinned(3)).unwrap();
    assert_eq!(load(&log), [pinned(3)]);
    assert_eq!(Log::read(&held, &Proc::default()).unwrap().records(), log.journal().records());
    assert!(log.size - log.given_back < 2500);
    assert!(log.given_back == 0 || length(&held) < log.size, "a hole at its beginning");
    assert_eq!(first_records(&held), log.journal().records()[..2]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A repetition that a kill cuts off after any line does no harm.
#[test]
fn half_a_repetition_changes_nothing() {
    let (_folder, mut log) = log();
    (0..5).for_each(|cpu| log.note(pinned(cpu)).unwrap());
    let before = log.size as usize;
    log.repeat().unwrap();
    let all = fs::read(log.path()).unwrap();
    let text = repetition(log.journal().records()).unwrap();
    assert!(all.ends_with(text.as_bytes()));
    let old: String = log.journal().records().iter().map(|record| line(record).unwrap()).collect();
    assert_eq!(old.len(), before);
    for (length, _) in text.match_indices('\n') {
        fs::write(log.path(), format!("{old}{}", &text[..=length])).unwrap();
        assert_eq!(load(&log), (0..5).map(pinned).collect::<Vec<_>>(), "{length} bytes");
    }
    // Damage in what was repeated does no harm either.
    fs::write(log.path(), format!("damaged\n{old}{text}")).unwrap();
    assert_eq!(Log::load(log.path(), &Proc::default()).unwrap().damaged_lines(), 0);
}

#[test]
fn a_log_that_was_undone_has_nothing_under_any_name() {
    let (folder, mut log) = log();
    log.note(pinned(1)).unwrap();
    let other = folder.path().join("2147483647-5-1.undo");
    fs::rename(log.path(), &other).unwrap();
    log.delete().unwrap();
    let journal = Log::load(&other, &Proc::default()).unwrap();
    assert!(journal.owes_nothing() && journal.damaged_lines() == 0);
    assert!(fs::metadata(&other).unwrap().len() > 0, "an empty one looks damaged");
    assert!(Log::remove_if_undone(&other) && !other.exists());
}

/// Where a file system has no holes.
#[test]
fn a_log_begins_anew_with_its_lines_in_memory_meanwhile() {
    let (_folder, mut log) = log();
    (0..5).for_each(|cpu| log.note(pinned(cpu)).unwrap());
    let all = log.journal().records().to_vec();
    let text = repetition(&all).unwrap();
    log.begin_anew(text.as_bytes()).unwrap();
    assert_eq!(fs::read_to_string(log.path()).unwrap(), text);
    assert!(!log.is_whole());
    let read = |file: &File| {
        let journal = Log::read_both(file, &log.memory().unwrap(), &Proc::default()).unwrap();
        journal.records().to_vec()
    };
    assert_eq!(read(&log.file().unwrap()), all);
    assert_eq!(read(&tempfile::tempfile().unwrap()), all, "the file is empty for a moment");
    log.forget_memory();
    log.note(pinned(5)).unwrap();
    assert_eq!(load(&log), (0..6).map(pinned).collect::<Vec<_>>());
}

#[test]
fn a_shims_descriptor_keeps_no_lock() {
    let (_folder, log) = log();
    let held = log.unlocked().unwrap();
    assert!(is_in_use(&held));
    drop(log);
    // A child of another test may have the descriptor until it executes its file.
    let until = Instant::now() + Duration::from_secs(60);
    while is_in_use(&held) {
        assert!(Instant::now() < until, "it is locked");
    }
}

#[test]
fn records_are_read_from_the_open_file_without_its_folder() {
    let (folder, mut log) = log();
    log.large = 1000;
    let file = log.file().unwrap();
    folder.close().unwrap();
    for cpu in 0..50 {
        log.note(pinned(cpu)).unwrap();
    }
    assert!(log.size > 2000);
    assert_eq!(Log::read(&file, &Proc::default()).unwrap().records(), log.journal().records());
}

#[test]
fn threads_that_come_and_go_do_not_make_the_log_grow() {
    let (_folder, mut log) = log();
    log.large = 4000;
    let Record::Attr { program, found, set, .. } = an_attr() else { unreachable!() };
    let of = |thread| Record::Attr { program, thread, found, set };
    let alive = Process::find(&Proc::default(), std::process::id() as i32).unwrap();
    log.note(of(alive)).unwrap();
    for number in 0..1000 {
        log.note(of(Process { pid: i32::MAX - number, start_time: 1 })).unwrap();
    }
    let size = log.size - log.given_back;
    assert!(size < 6000, "{size} bytes");
    let left = load(&log);
    assert!(left.contains(&of(alive)) && left.len() < 30, "{} records", left.len());
    assert!(log.journal().records().len() < 30);
}

#[test]
fn records_that_a_full_disk_refuses_are_kept_in_memory() {
    let (_folder, mut log) = log();
    let read = |log: &Log| {
        let file = open(log.path()).unwrap();
        let journal = Log::read_both(&file, &log.memory().unwrap(), &Proc::default()).unwrap();
        journal.records()[2..].to_vec()
    };
    log.note(pinned(1)).unwrap();
    let whole = std::mem::replace(&mut log.file, full());
    log.note(pinned(2)).unwrap();
    assert!(log.refusal().unwrap().to_string().contains("No space left"));
    // There is room again, but later records must be read later.
    log.file = whole;
    log.note(pinned(3)).unwrap();
    assert!(log.refusal().is_none());
    assert_eq!((load(&log), read(&log)), (vec![pinned(1)], [1, 2, 3].map(pinned).to_vec()));
    for cpu in 4..100 {
        log.note(pinned(cpu)).unwrap();
    }
    let all: Vec<Record> = (1..100).map(pinned).collect();
    assert_eq!(read(&log), all);
    assert!(load(&log).len() > 50, "they are in memory still");
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

#[test]
fn only_regular_files_are_read_without_waiting_for_pipes() {
    let folder = tempfile::tempdir().unwrap();
    let [pipe, link, file] = ["pipe", "link", "file"].map(|name| folder.path().join(name));
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    fs::write(&file, "x".repeat(100)).unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for place in [&pipe, &link, &folder.path().to_owned()] {
        assert!(Log::load(place, &Proc::default()).is_err(), "{}", place.display());
    }
    let open = open(&file).unwrap();
    assert!(Log::read_at_most(&open, 99, &Proc::default()).is_err());
    assert!(Log::read_at_most(&open, 100, &Proc::default()).is_ok());
}

#[test]
fn only_logs_of_ended_processes_are_left_over() {
    let (folder, log) = log();
    let of_nobody = folder.path().join("2147483647-5-1.undo");
    let of_an_earlier_one = folder.path().join(format!("{}-1-1.undo", std::process::id()));
    for path in [&of_nobody, &of_an_earlier_one, &folder.path().join("notes.txt")] {
        fs::write(path, "").unwrap();
    }
    let left = Log::leftovers(folder.path(), &Proc::default()).unwrap();
    assert!(!left.contains(&log.path().to_owned()));
    assert!(left.contains(&of_nobody) && left.contains(&of_an_earlier_one) && left.len() == 2);
}

#[test]
fn a_log_in_use_is_not_left_over_whatever_its_name() {
    let (folder, log) = log();
    // In a container that shares the folder, the owner's number belongs to no process.
    let path = folder.path().join("2147483647-5-1.undo");
    fs::rename(log.path(), &path).unwrap();
    let left = || Log::leftovers(folder.path(), &Proc::default()).unwrap();
    let sentinels = log.file().unwrap();
    assert_eq!(left(), Vec::<PathBuf>::new());
    drop(log);
    assert_eq!(left(), Vec::<PathBuf>::new(), "the sentinel has it still");
    drop(sentinels);
    assert_eq!(left(), [path]);
}

#[test]
fn nothing_is_to_be_undone_after_a_reboot() {
    let (folder, mut log) = log();
    log.note(pinned(1)).unwrap();
    let text = fs::read_to_string(log.path()).unwrap();
    let old = folder.path().join("1-1-1.undo");
    let boot = boot_id(&Proc::default()).unwrap();
    fs::write(&old, text.replace(&boot, "another")).unwrap();
    assert_eq!(Log::load(&old, &Proc::default()).unwrap().records(), []);
}

#[test]
fn the_name_of_a_log_tells_its_cosched() {
    let owner = |path: &str| owner(Path::new(path));
    let cosched = Some(Process { pid: 12, start_time: 345 });
    assert_eq!(owner("/run/user/0/cosched/12-345-1.undo"), cosched);
    assert_eq!(owner("12-345-27.undo"), cosched, "a later log of the same process");
    for other in [
        "/run/12-345-1.undo-damaged",
        "/run/12-345-1.undo (deleted)",
        "/run/12-345-1",
        "/run/12-345.undo",
        "/run/12-345-1-1.undo",
        "/run/a-345-1.undo",
        "/run/12--1.undo",
        "/run/12-a-1.undo",
        "/run/99999999999-345-1.undo",
        "/run/12.sock",
        "/run/.undo",
        "/",
        "",
    ] {
        assert_eq!(owner(other), None, "{other}");
    }
}
