//! What the tests of processes share.

#![allow(dead_code, clippy::unwrap_used)]

pub(crate) mod alone;

use std::path::Path;
use std::time::{Duration, Instant};

use cosched_linux::kernel::procfs::Proc;
use cosched_linux::process::launch::{LaunchOrder, Launched, Launcher, OutputTo, ShimReport, Spec};
use cosched_linux::process::tree::{Process, Tree};
use rustix::process::Signal;

/// The executable that becomes helpers.
pub(crate) const HIDDEN: &str = env!("CARGO_BIN_EXE_cosched-hidden");

/// Waits for something that must come true. Its duration is not tested.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A shell script as an order.
pub(crate) fn script(text: &str) -> LaunchOrder {
    LaunchOrder {
        executable: "/bin/sh".into(),
        argv: ["sh", "-c", text].map(String::from).to_vec(),
        env: std::env::vars_os().collect(),
        cwd: "/".into(),
        ..LaunchOrder::default()
    }
}

/// A started program, killed with all its processes at the end of the test.
pub(crate) struct Program {
    pub(crate) launched: Launched,
    pub(crate) proc: Proc,
    seen: Vec<ShimReport>,
}

/// The new reports of a program, without the one about its first process, which is answered.
pub(crate) fn reports_of(launched: &mut Launched) -> Vec<ShimReport> {
    let (forked, others): (Vec<_>, _) = launched
        .reports
        .read()
        .unwrap()
        .into_iter()
        .partition(|report| matches!(report, ShimReport::Forked { .. }));
    forked.iter().for_each(|_| launched.is_known());
    others
}

impl Program {
    pub(crate) fn start(order: LaunchOrder, stdout: OutputTo) -> Program {
        let proc = Proc::default();
        let spec = Spec { order, stderr: stdout.clone(), stdout };
        let prepared = Launcher::new(Path::new(HIDDEN), proc.clone()).prepare(&spec).unwrap();
        Program { launched: prepared.start().unwrap(), proc, seen: Vec::new() }
    }

    /// The report number `n`, when it has come.
    pub(crate) fn report(&mut self, n: usize) -> ShimReport {
        eventually("a report", || {
            self.read();
            self.seen.len() > n
        });
        self.seen[n]
    }

    /// The reports that have come up to now.
    pub(crate) fn reports(&mut self) -> &[ShimReport] {
        self.read();
        &self.seen
    }

    /// Reads all reports but the one about the first process, which is answered at once.
    fn read(&mut self) {
        self.seen.extend(reports_of(&mut self.launched));
    }

    pub(crate) fn main(&mut self) -> Process {
        match self.report(0) {
            ShimReport::Started { process, .. } => process,
            other => panic!("expected a start, got {other:?}"),
        }
    }

    pub(crate) fn tree(&self) -> Tree {
        Tree { shim: Some(self.launched.shim()), ..Tree::default() }
    }

    pub(crate) fn shim_ends(&mut self) {
        eventually("the shim's end", || self.launched.reap().unwrap());
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.tree().signal(&self.proc, Signal::KILL, &[]);
        let _ = self.launched.shim().signal(&self.proc, Signal::KILL);
        let _ = self.launched.reap();
    }
}
