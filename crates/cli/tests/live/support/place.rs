//! The folder of one test, and the user that the test runs as.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::safety::undo::{Log, restore};
use tempfile::TempDir;

use super::marked::MARK;
use super::{Cosched, Marked, cgroups_named, eventually};

/// The account that stands for an ordinary user.
const ACCOUNT: &str = "cosched-test";

/// A user that runs cosched.
#[derive(Clone, Debug)]
pub(crate) enum User {
    /// The user that runs the tests.
    Caller,
    /// The account with this number.
    Ordinary(u32),
}

impl User {
    /// A user without privileges: the caller, or if that is root an account that is made for the
    /// purpose, and stays.
    pub(crate) fn ordinary() -> User {
        if !rustix::process::geteuid().is_root() {
            return User::Caller;
        }
        if number_of(ACCOUNT).is_none() {
            let home = ["--no-create-home", "--home-dir", "/nonexistent"];
            let shell = ["--shell", "/usr/sbin/nologin"];
            // Another test may be doing this as well: what counts is that the account is there.
            let _ = Command::new("useradd")
                .args(["--system", "--user-group"])
                .args(home)
                .args(shell)
                .arg(ACCOUNT)
                .output();
        }
        eventually("the ordinary user's account", || number_of(ACCOUNT).is_some());
        User::Ordinary(number_of(ACCOUNT).unwrap())
    }

    /// A command that starts `executable` as this user.
    pub(crate) fn command(&self, executable: &Path) -> Command {
        match self {
            User::Caller => Command::new(executable),
            User::Ordinary(uid) => {
                let mut command = Command::new("setpriv");
                command.arg(format!("--reuid={uid}")).arg(format!("--regid={uid}"));
                command.arg("--clear-groups").arg(executable);
                command
            }
        }
    }

    /// Makes a file that user's.
    pub(crate) fn own(&self, path: &Path) {
        if let User::Ordinary(uid) = self {
            chown(path, Some(*uid), Some(*uid)).unwrap();
        }
    }
}

/// Copies by a process of its own: a copy that this one has open for writing while another test
/// forks could not be executed until that child executes something itself.
pub(crate) fn copy_file(from: &Path, to: &Path) {
    assert!(Command::new("cp").args([from, to]).status().unwrap().success());
}

fn number_of(account: &str) -> Option<u32> {
    let output = Command::new("id").args(["-u", account]).output().unwrap();
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

/// The folder of one test, in which `cosched` is started. Ends every process that comes from it
/// when it is dropped, and continues a stopped sentinel before.
#[derive(Debug)]
pub(crate) struct Place {
    folder: TempDir,
    pub(crate) user: User,
    /// The executable of `cosched`: a copy where the user may not read the build folder.
    pub(crate) executable: PathBuf,
}

impl Place {
    /// A place of the caller's.
    pub(crate) fn new() -> Place {
        Place::of(User::Caller)
    }

    /// A place of this user's.
    pub(crate) fn of(user: User) -> Place {
        let folder = tempfile::Builder::new().prefix("cosched-live-").tempdir().unwrap();
        let built = Path::new(env!("CARGO_BIN_EXE_cosched"));
        let executable = match user {
            User::Caller => built.to_owned(),
            User::Ordinary(_) => folder.path().join("cosched"),
        };
        if executable != built {
            copy_file(built, &executable);
        }
        let place = Place { folder, user, executable };
        for name in ["run", "data", "tmp"] {
            fs::create_dir(place.path(name)).unwrap();
            fs::set_permissions(place.path(name), fs::Permissions::from_mode(0o700)).unwrap();
            place.user.own(&place.path(name));
        }
        fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        place.user.own(place.folder.path());
        place
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file in here.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What is in a file in here; empty if there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// The cosched that this place's user starts.
    pub(crate) fn executable(&self) -> &Path {
        &self.executable
    }

    /// Starts `cosched` with these arguments, in this folder.
    pub(crate) fn cosched<S: AsRef<std::ffi::OsStr>>(&self, arguments: &[S]) -> Cosched {
        let mut command = self.user.command(&self.executable);
        command.args(arguments);
        Cosched::start(command, self)
    }

    /// The example `trap`, where this place's user can execute it.
    pub(crate) fn trap(&self) -> PathBuf {
        self.example("trap")
    }

    /// An example of this package, where this place's user can execute it.
    pub(crate) fn example(&self, name: &str) -> PathBuf {
        let built = Path::new(env!("CARGO_BIN_EXE_cosched")).with_file_name("examples").join(name);
        assert!(
            built.exists(),
            "it is an example of this package: cargo build --examples makes it"
        );
        let copy = self.path(name);
        if let User::Caller = self.user {
            return built;
        }
        if !copy.exists() {
            copy_file(&built, &copy);
        }
        copy
    }

    /// Starts a program outside cosched.
    pub(crate) fn start(&self, executable: &Path, arguments: &[&str]) -> Child {
        self.user
            .command(executable)
            .args(arguments)
            .current_dir(self.folder())
            .env(MARK, self.folder())
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// Starts `cosched run` on the programs of a jobs file that is made of `tables`. Results go to
    /// `out`.
    pub(crate) fn run(&self, tables: &[String], options: &str) -> Cosched {
        self.write("jobs.toml", tables.concat());
        let fixed = ["run", "jobs.toml", "--out", "out"];
        let arguments: Vec<&str> = fixed.into_iter().chain(options.split_whitespace()).collect();
        self.cosched(&arguments)
    }

    /// The processes that come from here.
    pub(crate) fn marked(&self) -> Marked {
        Marked::by(self.folder.path())
    }

    /// The undo logs of cosched processes from here, whether they live or not.
    pub(crate) fn undo_logs(&self) -> Vec<PathBuf> {
        self.kept(false)
    }

    /// The sockets of cosched processes from here, whether they live or not.
    pub(crate) fn sockets(&self) -> Vec<PathBuf> {
        self.kept(true)
    }

    fn kept(&self, sockets: bool) -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(self.path("run/cosched")) else { return Vec::new() };
        let is_socket = |path: &PathBuf| path.to_string_lossy().contains(".sock");
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| is_socket(path) == sockets).collect()
    }

    /// Whether an undo log has a record of this kind.
    pub(crate) fn has_noted(&self, kind: &str) -> bool {
        let is_of_kind = |text: String| text.contains(&format!("{{\"{kind}\":"));
        self.undo_logs().iter().any(|log| fs::read_to_string(log).is_ok_and(is_of_kind))
    }

    /// Undo logs of a cosched that is gone.
    pub(crate) fn forgotten_logs(&self) -> Vec<PathBuf> {
        Log::leftovers(&self.path("run/cosched"), &Proc::default()).unwrap_or_default()
    }

    /// No process, no cgroup, no undo log and no socket is left of a cosched that has ended by
    /// itself.
    pub(crate) fn nothing_is_left_of(&self, cosched: &Ended) {
        eventually("the end of every process", || self.marked().all().is_empty());
        assert_eq!(self.sockets(), Vec::<PathBuf>::new());
        self.no_trace_is_left_of(cosched.pid);
    }

    /// Neither a cgroup nor an undo log is left of a cosched.
    pub(crate) fn no_trace_is_left_of(&self, cosched: i32) {
        assert_eq!(self.undo_logs(), Vec::<PathBuf>::new());
        assert_eq!(cgroups_named(&format!("cosched-{cosched}")), Vec::<PathBuf>::new());
        assert_eq!(cgroups_named(&format!("cosched-probe-{cosched}")), Vec::<PathBuf>::new());
    }
}

use super::Ended;

impl Drop for Place {
    fn drop(&mut self) {
        self.marked().continue_own();
        if self.marked().end() && self.forgotten_logs().is_empty() {
            return;
        }
        // Only after a failed test: the machine stays clean in any case.
        let proc = Proc::default();
        for log in self.forgotten_logs() {
            restore(&Log::load(&log, &proc).unwrap(), &proc);
        }
        self.marked().end();
    }
}

/// Whether it is the path of the library that cosched unpacks.
pub(crate) fn is_library(path: &str) -> bool {
    path.contains("/cache/cosched/libcosched_hook-") && path.ends_with(".so")
}

/// A `[[program]]` that is a shell script; `keys` are further lines.
pub(crate) fn program(name: &str, keys: &str, script: &str) -> String {
    assert!(!script.contains("'''"), "a workload file cannot hold this script");
    format!("[[program]]\nname = '{name}'\ncommand = ['sh', '-c', '''{script}''']\n{keys}\n")
}
