//! A running `cosched`, and what it left when it ended.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::tree::Process;
use cosched_results::result::RunResult;
use rustix::process::Signal;

use super::Place;
use super::marked::MARK;

/// Variables of the caller's that would change what is tested.
const UNWANTED: [&str; 3] = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MAKEFLAGS"];
/// Far longer than any run here takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// `cosched`, running; killed when dropped.
#[derive(Debug)]
pub(crate) struct Cosched {
    child: Child,
    folder: PathBuf,
}

impl Cosched {
    /// Starts it; its outputs go to files, so that a program that outlives it does not hold a pipe
    /// of the test's.
    pub(crate) fn start(mut command: Command, place: &Place) -> Cosched {
        // Another one of the same place may still write to them.
        let file = |name: &str| {
            let options = File::options().create(true).append(true).to_owned();
            let file = options.open(place.path(name)).unwrap();
            file.set_len(0).unwrap();
            Stdio::from(file)
        };
        for name in UNWANTED {
            command.env_remove(name);
        }
        command
            .current_dir(place.folder())
            .env(MARK, place.folder())
            .env("XDG_RUNTIME_DIR", place.path("run"))
            .env("XDG_DATA_HOME", place.path("data"))
            .env("XDG_CACHE_HOME", place.path("cache"))
            .env("TMPDIR", place.path("tmp"))
            .stdin(Stdio::null())
            .stdout(file("cosched.stdout"))
            .stderr(file("cosched.stderr"));
        Cosched { child: command.spawn().unwrap(), folder: place.folder().to_owned() }
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(crate) fn process(&self) -> Process {
        Process::find(&Proc::default(), self.pid()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        self.process().signal(&Proc::default(), signal).unwrap();
    }

    /// Kills it.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> Ended {
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < until, "cosched does not end: {}", self.said()),
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let read = |name: &str| fs::read_to_string(self.folder.join(name)).unwrap();
        Ended {
            pid: self.pid(),
            status,
            stdout: read("cosched.stdout"),
            stderr: read("cosched.stderr"),
            folder: self.folder.clone(),
        }
    }

    /// What it has written to standard error so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.folder.join("cosched.stderr")).unwrap_or_default()
    }
}

impl Drop for Cosched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A `cosched` that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) pid: i32,
    status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    folder: PathBuf,
}

impl Ended {
    /// Its exit code, if it was not ended by a signal.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Checks its exit code.
    #[track_caller]
    pub(crate) fn with(self, code: i32) -> Ended {
        assert_eq!(
            (self.status.code(), self.status.signal()),
            (Some(code), None),
            "{}{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Checks that all of this is in its standard error.
    #[track_caller]
    pub(crate) fn saying(self, parts: &[&str]) -> Ended {
        for part in parts {
            assert!(self.stderr.contains(part), "'{part}' is not in: {}", self.stderr);
        }
        self
    }

    /// The `run.json` in `out`.
    #[track_caller]
    pub(crate) fn result(&self) -> RunResult {
        RunResult::load(&self.folder.join("out/run.json")).unwrap()
    }
}
