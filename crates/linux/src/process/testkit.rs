//! Processes for tests.

use std::process::{Child, Command};

use rustix::process::Signal;

use crate::kernel::procfs::Proc;
use crate::process::tree::{Process, Tree};

/// A process that ends, with all below it, when this is dropped.
pub(crate) struct TestProcess(Child);

impl TestProcess {
    /// One that does nothing.
    pub(crate) fn idle() -> TestProcess {
        TestProcess::start(Command::new("sleep").arg("1000"))
    }

    /// A shell.
    pub(crate) fn shell(script: &str) -> TestProcess {
        TestProcess::start(Command::new("sh").args(["-c", script]))
    }

    /// A shell with so many children that do nothing, once all of them are there.
    pub(crate) fn parent_of(children: usize) -> TestProcess {
        let shell = TestProcess::shell(&("sleep 1000 & ".repeat(children) + "wait"));
        while shell.tree().members(&Proc::default()).len() <= children {
            std::thread::yield_now();
        }
        shell
    }

    pub(crate) fn start(command: &mut Command) -> TestProcess {
        TestProcess(command.spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> i32 {
        self.0.id() as i32
    }

    pub(crate) fn process(&self) -> Process {
        Process::find(&Proc::default(), self.pid()).unwrap()
    }

    /// It and all below it.
    pub(crate) fn tree(&self) -> Tree {
        let main = Process::find(&Proc::default(), self.pid()).ok();
        Tree { main, ..Tree::default() }
    }

    /// Kills it, without its children, and does not wait for it.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> std::process::ExitStatus {
        self.0.wait().unwrap()
    }

    /// Kills it and waits for its end.
    pub(crate) fn end(&mut self) {
        self.kill();
        self.wait();
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        // Another process may have the number of one that was waited for.
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        let _ = self.tree().signal(&Proc::default(), Signal::KILL, &[]);
        let _ = self.0.wait();
    }
}
