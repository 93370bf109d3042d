//! Sentinels that start in the background, to replace one that fails.
//!
//! A process that starts can be held up for as long as one likes: it is stopped or frozen, or there
//! is no further process. A thread of the background waits for it.

use std::io;
use std::path::PathBuf;
use std::process::Child;
use std::sync::mpsc::{Receiver, SendError, TryRecvError, channel};
use std::time::Duration;

use cosched_core::Nanos;
use rustix::process::Signal;

use crate::kernel::background;
use crate::kernel::procfs::{Proc, Stat};
use crate::process::helper::Helper;
use crate::process::tree::Process;
use crate::safety::sentinel::{NotBegun, Sentinel, Task};

/// How long a sentinel may take to start, on a busy machine, before a further one is tried.
const PATIENCE: Duration = Duration::from_secs(3);
/// After this time, one that has not even become a process of its own is given up.
const STUCK: Nanos = Nanos::from_secs(5);
/// How long the end of a run waits for a sentinel that is starting.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// So many are given up at once; each is a process and a thread.
const MOST_GIVEN_UP: usize = 8;

/// Those that have not begun.
#[derive(Debug)]
pub(super) struct Reliefs {
    executable: PathBuf,
    starts: Vec<SentinelStart>,
}

#[derive(Debug)]
struct SentinelStart {
    since: Nanos,
    /// It may begin at any time nevertheless.
    is_given_up: bool,
    answer: Receiver<Result<Sentinel, NotBegun>>,
}

impl Reliefs {
    pub(super) fn new(executable: PathBuf) -> Reliefs {
        Reliefs { executable, starts: Vec::new() }
    }

    /// Starts one in the background.
    pub(super) fn call(&mut self, task: io::Result<Task>, now: Nanos) -> io::Result<()> {
        if self.starts.len() >= MOST_GIVEN_UP {
            return Err(io::Error::other("several do not become processes of their own"));
        }
        let (task, executable, (sender, answer)) = (task?, self.executable.clone(), channel());
        // A process is first called as the thread that forks.
        let name = Helper::Sentinel.name().to_string_lossy();
        background::spawn(&name, move || {
            // One that no process waits for must not take this for the end of cosched.
            if let Err(SendError(Ok(late))) = sender.send(task.begin(&executable, PATIENCE)) {
                let _ = late.retire().wait();
            }
        })?;
        self.starts.push(SentinelStart { since: now, is_given_up: false, answer });
        Ok(())
    }

    pub(super) fn is_awaited(&self) -> bool {
        self.starts.iter().any(|start| !start.is_given_up)
    }

    /// The one that was awaited, or why it does not begin. Processes that are not needed any more
    /// are added to `leaving`.
    pub(super) fn hear(
        &mut self,
        now: Nanos,
        leaving: &mut Vec<Child>,
    ) -> Option<Result<Sentinel, String>> {
        let mut heard = None;
        self.starts.retain_mut(|start| {
            let answer = match start.answer.try_recv() {
                Err(TryRecvError::Empty) => {
                    if !start.is_given_up && now >= start.since + STUCK {
                        start.is_given_up = true;
                        heard = Some(Err("it does not become a process of its own".to_owned()));
                    }
                    return true;
                }
                Err(TryRecvError::Disconnected) => Err("its thread has ended".to_owned()),
                Ok(Err(NotBegun { error, left })) => {
                    leaving.extend(left);
                    Err(error.to_string())
                }
                Ok(Ok(late)) if start.is_given_up => {
                    leaving.push(late.retire());
                    return false;
                }
                Ok(Ok(relief)) => Ok(relief),
            };
            if !start.is_given_up {
                heard = Some(answer);
            }
            false
        });
        heard
    }

    /// Whether a child of cosched may be one of them. One that has just been killed is a zombie.
    pub(super) fn may_have(&self, child: &Stat, proc: &Proc) -> bool {
        let is_own = || child.has_ended() || proc.runs_own_executable(child.pid);
        !self.starts.is_empty() && is_own() && Helper::Sentinel.may_be(child.pid, proc)
    }

    /// Dismisses them: everything is undone. One that is held up is killed. Returns whether there
    /// were none.
    pub(super) fn goodbye(self, proc: &Proc) -> bool {
        if self.starts.is_empty() {
            return true;
        }
        for start in self.starts.iter().filter(|start| !start.is_given_up) {
            if let Ok(Ok(relief)) = start.answer.recv_timeout(LAST_WAIT) {
                relief.goodbye(proc);
            }
        }
        let children = proc.children(std::process::id() as i32).unwrap_or_default();
        for child in children.into_iter().filter_map(|pid| proc.stat(pid).ok()) {
            if self.may_have(&child, proc) {
                let _ = Process::from(child).signal(proc, Signal::KILL);
            }
        }
        false
    }
}
