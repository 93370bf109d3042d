//! Who is looked at: processes that run already, or one that is started here.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitCode};

use cosched_core::workload::Workload;
use cosched_linux::monitor::{Monitor, ThreadUse};
use cosched_linux::poll::Poll;
use cosched_linux::procfs::Proc;
use cosched_linux::tree::Process;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use super::counted::Counted;
use crate::failure::Failure;

/// The processes and what ended of them.
#[derive(Debug)]
pub(super) struct Subjects {
    names: Vec<String>,
    /// Readable once the process has ended; `None` afterwards.
    processes: Vec<Option<OwnedFd>>,
    child: Option<Child>,
}

impl Subjects {
    /// Processes that run already.
    pub(super) fn running(
        pids: &[i32],
        proc: &Proc,
        monitor: &mut Monitor,
        counted: &mut Counted,
        poll: &Poll,
    ) -> Result<Subjects, Failure> {
        let mut subjects = Subjects { names: Vec::new(), processes: Vec::new(), child: None };
        for (program, pid) in pids.iter().enumerate() {
            if pids[..program].contains(pid) {
                return Err(Failure::Input(format!("--pid {pid} is there twice")));
            }
            let refused =
                |error: &dyn std::fmt::Display| Failure::Input(format!("--pid {pid}: {error}"));
            let name = proc.name(*pid).map_err(|error| match error.is_gone() {
                true => refused(&"there is no such process"),
                false => refused(&error),
            })?;
            let process = proc.process_of(*pid).map_err(|error| refused(&error))?;
            if process != *pid {
                return Err(refused(&format_args!(
                    "it is a thread of process {process}: name that, and use --threads"
                )));
            }
            subjects.watch(*pid, poll)?;
            monitor.add(program as u32, *pid).map_err(|error| refused(&error))?;
            counted.running(&proc.threads(*pid).map_err(|error| refused(&error))?);
            subjects.names.push(format!("{name} ({pid})"));
        }
        Ok(subjects)
    }

    /// Starts a program. It is watched from its first instruction on, since it inherits that from cosched itself,
    /// whose own threads are left out.
    pub(super) fn start(
        command: &[String],
        proc: &Proc,
        monitor: &mut Monitor,
        counted: &mut Counted,
        poll: &Poll,
    ) -> Result<Subjects, Failure> {
        let here = std::env::current_dir().map_err(Failure::input)?;
        let workload =
            Workload::from_commands(vec![command.to_vec()], &here).map_err(Failure::input)?;
        let path = std::env::var_os("PATH");
        // What is wrong with the command is told as elsewhere, before anybody is watched.
        workload.programs[0].executable(path.as_deref()).map_err(Failure::input)?;
        let own = std::process::id() as i32;
        monitor.add(0, own).map_err(Failure::broken)?;
        // There is no other thread here: this one starts the program.
        counted.about_to_start(Process::find(proc, own).map_err(Failure::broken)?);
        let child = Command::new(&command[0])
            .args(&command[1..])
            .spawn()
            .map_err(|error| Failure::Input(format!("cannot start {}: {error}", command[0])))?;
        let file = Path::new(&command[0]).file_name();
        let name =
            file.map_or_else(|| command[0].clone(), |name| name.to_string_lossy().into_owned());
        let mut subjects = Subjects { names: vec![name], processes: Vec::new(), child: None };
        subjects.watch(child.id() as i32, poll)?;
        subjects.child = Some(child);
        Ok(subjects)
    }

    fn watch(&mut self, pid: i32, poll: &Poll) -> Result<(), Failure> {
        let number = Pid::from_raw(pid).expect("a process has a number");
        let process = pidfd_open(number, PidfdFlags::empty()).map_err(Failure::broken)?;
        poll.add(process.as_fd(), self.processes.len() as u64).map_err(Failure::broken)?;
        self.processes.push(Some(process));
        Ok(())
    }

    /// What each program number stands for.
    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether a thread belongs to what is looked at.
    pub(super) fn include(&self, thread: &ThreadUse) -> bool {
        self.child.is_none() || thread.process != std::process::id() as i32
    }

    /// The process with this key has ended.
    pub(super) fn ended(&mut self, key: u64, poll: &Poll) -> Result<(), Failure> {
        match self.processes[key as usize].take() {
            Some(process) => poll.remove(process.as_fd()).map_err(Failure::broken),
            None => Ok(()),
        }
    }

    pub(super) fn all_ended(&self) -> bool {
        self.processes.iter().all(Option::is_none)
    }

    /// Whether there is a program of ours that a signal is for. Ctrl-C has reached it already.
    pub(super) fn pass_on(&self, signal: Signal) -> bool {
        let Some(child) = &self.child else { return false };
        if signal != Signal::INT {
            let proc = Proc::default();
            // It may have ended just now.
            let _ = Process::find(&proc, child.id() as i32)
                .map(|process| process.signal(&proc, signal));
        }
        true
    }

    /// Of what was started: whether it succeeded.
    pub(super) fn exit_code(mut self) -> Result<ExitCode, Failure> {
        let Some(child) = &mut self.child else { return Ok(ExitCode::SUCCESS) };
        let status = child.wait().map_err(Failure::broken)?;
        Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
