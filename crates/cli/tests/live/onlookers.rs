//! The socket of a run: every client that connects gets the state of the run, and no client blocks
//! the run.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use cosched_linux::clients::onlookers::{live_socket, metrics_link};
use cosched_results::live::{LiveState, SCHEMA, Snapshot};
use rustix::process::Signal;

use super::support::{Cosched, Place, eventually, program};

/// Two programs that need all CPUs each, and never end by themselves.
pub(super) fn endless(place: &Place, options: &str) -> Cosched {
    let spin = ["a", "b"].map(|name| program(name, "", "while :; do :; done"));
    place.run(&spin, &format!("--policy gang {options}"))
}

/// The socket of a run, once it has sent something: then it has all that it needs to end, too.
pub(super) fn socket(place: &Place, cosched: &Cosched) -> PathBuf {
    let path = place.path(&format!("run/cosched/{}.sock", cosched.pid()));
    eventually("the socket of the run", || path.exists());
    let first = lines(UnixStream::connect(&path).unwrap()).next();
    assert!(first.is_some(), "the run has ended");
    path
}

fn lines(stream: UnixStream) -> impl Iterator<Item = Snapshot> {
    BufReader::new(stream).lines().map(|line| Snapshot::from_json(&line.unwrap()).unwrap())
}

#[test]
fn clients_get_the_state_of_the_run_until_it_ends() {
    let place = Place::new();
    let cosched = endless(&place, "");
    let path = socket(&place, &cosched);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut snapshots = lines(UnixStream::connect(&path).unwrap());
    let both_have_run = |s: &Snapshot| s.programs.iter().all(|p| p.running_seconds > 0.0);
    let seen: Vec<Snapshot> = snapshots.by_ref().take_while(|s| !both_have_run(s)).collect();
    let next: Vec<Snapshot> = snapshots.by_ref().take(3).collect();
    for snapshot in seen.iter().chain(&next) {
        assert_eq!(snapshot.schema, SCHEMA);
        assert_eq!((snapshot.pid as i32, snapshot.policy.as_str()), (cosched.pid(), "gang"));
        let names: Vec<&str> = snapshot.programs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        assert!(snapshot.programs.iter().all(|p| p.state != LiveState::Ended), "{snapshot:?}");
    }
    assert!(next.windows(2).all(|pair| pair[0].at_seconds < pair[1].at_seconds));
    assert!(next[0].switches > 0 && next[0].quantum.is_some());
    assert!(next[0].programs.iter().all(|program| program.why.is_some()));
    cosched.signal(Signal::INT);
    // The end of the run is the end of the stream.
    assert!(snapshots.count() < 1000);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn the_reported_cpu_time_of_programs_never_falls() {
    let place = Place::new();
    let cosched = endless(&place, "");
    let path = socket(&place, &cosched);
    let mut before = [0.0; 2];
    for snapshot in lines(UnixStream::connect(&path).unwrap()) {
        let used = [0, 1].map(|i| snapshot.programs[i].cpu_seconds.unwrap_or(0.0));
        assert!(used[0] >= before[0] && used[1] >= before[1], "{used:?} {before:?}");
        if used.iter().all(|used| *used > 0.0) {
            break;
        }
        before = used;
    }
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn clients_that_never_read_do_not_block_others() {
    let place = Place::new();
    let cosched = endless(&place, "");
    let path = socket(&place, &cosched);
    // More than are served at a time.
    let silent: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let mut first = BufReader::new(&silent[0]);
    let mut line = String::new();
    first.read_line(&mut line).unwrap();
    Snapshot::from_json(&line).unwrap();
    cosched.signal(Signal::INT);
    place.nothing_is_left_of(&cosched.ended().with(130));
}

#[test]
fn sockets_of_a_killed_run_are_removed_by_its_sentinel() {
    let place = Place::new();
    let cosched = endless(&place, "--metrics unix:metrics");
    let (path, metrics) = (socket(&place, &cosched), place.path("metrics"));
    let mut snapshots = lines(UnixStream::connect(&path).unwrap());
    // There is a sentinel by then.
    assert!(snapshots.any(|snapshot| snapshot.programs.iter().all(|p| p.running_seconds > 0.0)));
    assert!(metrics.exists());
    cosched.kill();
    eventually("the end of both sockets", || !path.exists() && !metrics.exists());
    eventually("the end of what is kept", || place.undo_logs().is_empty());
    assert!(place.marked().end());
}

#[test]
fn sockets_left_without_a_sentinel_are_removed_by_the_next_run() {
    let place = Place::new();
    // The leftovers of such a run, made by hand: no process has this number.
    let kept = place.path("run/cosched");
    fs::create_dir(&kept).unwrap();
    fs::set_permissions(&kept, fs::Permissions::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(live_socket(&kept, 1 << 30)).unwrap());
    drop(UnixListener::bind(place.path("metrics")).unwrap());
    symlink(place.path("metrics"), metrics_link(&kept, 1 << 30)).unwrap();
    let ended = place.cosched(&["run", "-p", "fcfs", "--", "true"]).ended().with(0);
    assert!(!place.path("metrics").exists());
    place.nothing_is_left_of(&ended);
}

#[test]
fn a_run_without_a_socket_for_top_goes_on() {
    let place = Place::new();
    // Too long for the path of a socket.
    let folder = place.path(&"x".repeat(120));
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    let runtime = format!("XDG_RUNTIME_DIR={}", folder.display());
    let mut command = std::process::Command::new("env");
    command.arg(runtime).arg(&place.executable).args(["run", "-p", "fcfs", "--", "echo", "done"]);
    let ended = Cosched::start(command, &place).ended().with(0);
    let ended = ended.saying(&["`cosched top` will not find this run", "choose a shorter one"]);
    assert!(ended.stdout.contains("done"), "{}", ended.stdout);
}
