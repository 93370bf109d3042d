//! Another user writes anything to files that root reads: no command of root's is refused, hangs,
//! or takes much memory.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cosched_core::ProgramId;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use cosched_linux::safety::undo::Record;
use rustix::fs::{CWD, FileType, mknodat};
use rustix::process::{Signal, geteuid};
use serde_json::json;

use super::support::{Locker, Place, eventually, skip};

/// Users that no machine has, one for each test.
const WRITES: u32 = 59_998;
const LISTENS: u32 = 59_999;

/// The folder in which that user's cosched would keep its logs; removed when this is dropped.
struct Folder(PathBuf, u32);

impl Folder {
    fn make(uid: u32) -> Folder {
        let folder = PathBuf::from(format!("/tmp/cosched-{uid}"));
        // The folder of a test that was killed.
        _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        let folder = Folder(folder, uid);
        folder.give(&folder.0.clone());
        folder
    }

    fn give(&self, path: &PathBuf) {
        chown(path, Some(self.1), Some(self.1)).unwrap();
    }

    fn log_of(&self, process: Process, number: u32) -> PathBuf {
        self.0.join(format!("{}-{}-{number}.undo", process.pid, process.start_time))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// A process of that user; killed when this is dropped.
struct Theirs(Child, u32);

impl Theirs {
    fn start(uid: u32, command: &[&str]) -> Theirs {
        let ids = [format!("--reuid={uid}"), format!("--regid={uid}")];
        let mut setpriv = Command::new("setpriv");
        setpriv.args(ids).arg("--clear-groups").args(command).stdout(Stdio::piped());
        Theirs(setpriv.spawn().unwrap(), uid)
    }

    fn process(&self) -> Process {
        let pid = self.0.id() as i32;
        eventually("the other user's process", || Proc::default().user(pid) == Some(self.1));
        Process::find(&Proc::default(), pid).unwrap()
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// A log that claims this process.
fn claims(process: Process) -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let main = Record::Main { program: ProgramId::first(0), process };
    let boot = json!({ "boot": { "id": boot.trim() } });
    format!("{boot}\n{}\n", serde_json::to_string(&main).unwrap())
}

#[test]
fn files_of_another_user_do_not_keep_root_from_attaching() {
    if !geteuid().is_root() {
        return skip("it takes root to have processes of two users");
    }
    let (place, folder) = (Place::new(), Folder::make(WRITES));
    let locker = Locker::start(&place);
    let theirs = Theirs::start(WRITES, &["sleep", "1000"]);
    let own = Process::find(&Proc::default(), std::process::id() as i32).unwrap();
    for (number, owner) in [(1, own), (2, theirs.process())] {
        let log = folder.log_of(owner, number);
        fs::write(&log, claims(locker.process)).unwrap();
        folder.give(&log);
    }
    let large = folder.log_of(theirs.process(), 3);
    File::create(&large).unwrap().set_len(3 << 30).unwrap();
    folder.give(&large);
    let pipe = folder.log_of(theirs.process(), 4);
    mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
    let link = folder.log_of(theirs.process(), 5);
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();

    let pid = locker.process.pid.to_string();
    let cosched = place.cosched(&["attach", "--policy", "linux", &pid]);
    eventually("the attachment", || place.has_noted("main"));
    let status = fs::read_to_string(format!("/proc/{}/status", cosched.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 64 << 10, "{peak} KiB");
    cosched.signal(Signal::INT);
    cosched.ended().with(130);
    locker.stop(&place);
}

/// Listens as a run would, and sends a line that never ends.
const ENDLESS: &str = "
import os, socket, sys
path = f'/tmp/cosched-59999/{os.getpid()}.sock'
listener = socket.socket(socket.AF_UNIX)
listener.bind(f'{path}.{os.getpid()}')
listener.listen()
os.rename(f'{path}.{os.getpid()}', path)
print('ready', flush=True)
while True:
    visitor = listener.accept()[0]
    try:
        while True:
            visitor.sendall(b'x' * 65536)
    except OSError:
        pass
";

#[test]
fn an_endless_line_does_not_block_top() {
    if !geteuid().is_root() {
        return skip("it takes root to have processes of two users");
    }
    let (place, _folder) = (Place::new(), Folder::make(LISTENS));
    let theirs = Theirs::start(LISTENS, &["/usr/bin/python3", "-c", ENDLESS]);
    let pid = theirs.process().pid.to_string();
    let socket = PathBuf::from(format!("/tmp/cosched-{LISTENS}/{pid}.sock"));
    eventually("the socket", || socket.exists());
    let ended = place.cosched(&["top", "--once", &pid]).ended().with(1);
    ended.saying(&["it sent a line of more than"]);
}
