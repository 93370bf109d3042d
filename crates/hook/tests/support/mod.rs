//! What the tests share: a cosched that sets thread limits, and programs in C.
//!
//! The cosched here is a hook server of the machine's (`HookServer`) and a thread that answers. The
//! limit holds before a program requests threads, so a test does not depend on the speed of an
//! answer.

#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cosched_linux::hook::{HookServer, LIBRARY, Uses};
use cosched_page::BarrierCounts;
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

/// The request of a program: how many threads, and whether it waited.
pub(crate) type Requested = (u16, bool);

/// A cosched with one program.
pub(crate) struct Host {
    pub(crate) server: String,
    requests: Arc<Mutex<Vec<Requested>>>,
    ticks: Arc<Mutex<u64>>,
    stats: Arc<Mutex<BarrierCounts>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Limits every program to so many threads.
    pub(crate) fn with_limit(thread_limit: u16) -> Host {
        Host::that_is_late(Duration::ZERO, thread_limit)
    }

    /// Limits every program to so many threads, but accepts no program for a while.
    pub(crate) fn that_is_late(by: Duration, thread_limit: u16) -> Host {
        Host::with(Uses::THREADS, by, thread_limit)
    }

    /// Replaces barriers, and limits no threads.
    pub(crate) fn donating() -> Host {
        let uses = Uses { threads: false, barriers: true, ..Uses::THREADS };
        Host::with(uses, Duration::ZERO, 1)
    }

    /// Leaves so many waiting threads of a program a slot to sleep in.
    pub(crate) fn with_slots(slots: u64) -> Host {
        let uses = Uses { threads: false, load: true, ..Uses::THREADS };
        Host::serving(uses, Duration::ZERO, 1, slots)
    }

    fn with(uses: Uses, by: Duration, thread_limit: u16) -> Host {
        Host::serving(uses, by, thread_limit, 0)
    }

    fn serving(uses: Uses, by: Duration, thread_limit: u16, slots: u64) -> Host {
        let (sender, receiver) = channel();
        let (requests, ticks) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(0)));
        let (stats, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let thread = {
            let (requests, ticks, stop) = (requests.clone(), ticks.clone(), stop.clone());
            let stats: Arc<Mutex<BarrierCounts>> = Arc::clone(&stats);
            std::thread::spawn(move || {
                let mut server = HookServer::open(uses).unwrap();
                server.limit_threads(Some(thread_limit), 3);
                sender.send(server.name().to_owned()).unwrap();
                std::thread::sleep(by);
                while !stop.load(Ordering::Relaxed) {
                    let heard = server.hear(now(), |_| true);
                    if let Some(threads) = heard.requested {
                        requests.lock().unwrap().push((threads, heard.blocked));
                        server.limit_threads(Some(thread_limit), 3);
                    }
                    server.beat(now());
                    server.pages().for_each(|page| page.set_slots(slots));
                    *ticks.lock().unwrap() = server.reported().ticks;
                    *stats.lock().unwrap() = server.barrier_stats();
                    std::thread::sleep(Duration::from_micros(100));
                }
            })
        };
        Host {
            server: receiver.recv().unwrap(),
            requests,
            ticks,
            stats,
            stop,
            thread: Some(thread),
        }
    }

    /// All requests so far, once there is one. A request that is followed by another before it is
    /// read is not among them.
    pub(crate) fn requests(&self) -> Vec<Requested> {
        eventually("a request", || !self.is_idle());
        self.requests.lock().unwrap().clone()
    }

    /// Whether there was no request so far.
    pub(crate) fn is_idle(&self) -> bool {
        self.requests.lock().unwrap().is_empty()
    }

    pub(crate) fn stats(&self) -> BarrierCounts {
        *self.stats.lock().unwrap()
    }

    pub(crate) fn ticks(&self) -> u64 {
        *self.ticks.lock().unwrap()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1000 + time.tv_nsec as u64 / 1_000_000
}

/// Waits for something that must come true.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The hook's library, as cargo has built it for these tests.
pub(crate) fn library() -> PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name(LIBRARY);
    assert!(path.is_file(), "{} is missing: cargo builds it with this package", path.display());
    path
}

fn source(name: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let places = [package.join("tests/programs").join(name), package.join("examples").join(name)];
    places.into_iter().find(|path| path.is_file()).unwrap()
}

/// A folder for what is compiled.
pub(crate) struct Workshop(TempDir);

impl Workshop {
    pub(crate) fn new() -> Workshop {
        Workshop(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a source; `None`, with a message, where that is impossible here.
    pub(crate) fn compile(
        &self,
        compiler: &str,
        name: &str,
        to: &str,
        with: &[&str],
    ) -> Option<PathBuf> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let made = Command::new(compiler)
            .args(["-O1", "-o"])
            .arg(self.path(to))
            .arg(source(name))
            .arg("-I")
            .arg(package.join("include"))
            .arg(format!("-L{}", library().parent().unwrap().display()))
            .arg(format!("-L{}", self.0.path().display()))
            .args(with)
            .current_dir(self.0.path())
            .output();
        match made {
            Ok(output) if output.status.success() => Some(self.path(to)),
            Ok(output) => {
                let why = String::from_utf8_lossy(&output.stderr);
                eprintln!("skipped: {compiler} does not compile {name} here: {why}");
                assert_ne!(compiler, "gcc", "{why}");
                None
            }
            Err(error) => {
                eprintln!("skipped: there is no {compiler}: {error}");
                None
            }
        }
    }

    /// Compiles with gcc and OpenMP.
    pub(crate) fn openmp(&self, name: &str, with: &[&str]) -> Option<PathBuf> {
        self.compile("gcc", name, "program", &[&["-fopenmp"], with].concat())
    }

    /// Compiles with clang and LLVM's OpenMP.
    pub(crate) fn llvm(&self, name: &str) -> Option<PathBuf> {
        const RUNTIME: &str = "/usr/lib/x86_64-linux-gnu/libomp.so.5";
        let runtimes = ["-fopenmp=libomp", "-l:libomp.so.5"];
        let with = if Path::new(RUNTIME).exists() { &runtimes[..] } else { &runtimes[..1] };
        // Without the development package there is no libomp.so for the linker, only the runtime.
        std::os::unix::fs::symlink(RUNTIME, self.path("libomp.so")).unwrap();
        self.compile("clang", name, "program", with)
    }

    /// Compiles a program that is linked with the hook's library.
    pub(crate) fn linked(&self, name: &str) -> Option<PathBuf> {
        self.compile("gcc", name, "program", &["-fopenmp", "-lcosched_hook"])
    }
}

/// A program as cosched would start it: it requests four threads, and the hook's library is
/// preloaded if there is a host.
pub(crate) fn command(program: &Path, arguments: &[&str], host: Option<&Host>) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env("OMP_NUM_THREADS", "4").env_remove("OMP_DYNAMIC");
    command.env("LD_LIBRARY_PATH", library().parent().unwrap());
    if let Some(host) = host {
        command.env("LD_PRELOAD", library()).env("COSCHED_HOOK", &host.server);
    }
    command
}

/// Runs it to its successful end, and returns what it printed.
#[track_caller]
pub(crate) fn run(program: &Path, arguments: &[&str], host: Option<&Host>) -> String {
    good(command(program, arguments, host).output().unwrap())
}

/// Checks that a program has ended successfully, and returns what it printed.
#[track_caller]
pub(crate) fn good(output: Output) -> String {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}{err}", output.status);
    out.into_owned()
}
