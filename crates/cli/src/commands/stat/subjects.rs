//! What is watched: processes that run already, or one that is started here.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode};

use cosched_lab::stat::Counted;
use cosched_linux::kernel::poll::Poll;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::signals;
use cosched_linux::observe::monitor::{Monitor, ThreadUse};
use cosched_linux::process::children::{exit_of, usage_of_all};
use cosched_linux::process::tree::Process;
use cosched_linux::safety::attachable::{Unattachable, is_of_kernel};
use cosched_workload::Workload;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

use crate::how::check::twice;
use crate::source::{check_launcher, check_one_program};
use crate::ui::failure::{Failure, current_folder, exit_code_of};

/// The processes to watch, checked before any of them is watched.
#[derive(Debug)]
pub(super) enum StatTarget<'a> {
    /// Processes that run already, with their names.
    Running(Vec<(i32, String)>),
    /// A program that is to be started.
    Command(&'a [String]),
}

impl<'a> StatTarget<'a> {
    /// The command if there is one, else the processes.
    pub(super) fn check(
        pids: &[i32],
        command: &'a [String],
        proc: &Proc,
    ) -> Result<StatTarget<'a>, Failure> {
        if command.is_empty() {
            if let Some(pid) = twice(pids) {
                return Err(Failure::Input(format!("--pid {pid} is there twice; name it once")));
            }
            let named = |pid: &i32| Ok((*pid, name_of(*pid, proc)?));
            return Ok(StatTarget::Running(
                pids.iter().map(named).collect::<Result<_, Failure>>()?,
            ));
        }
        let here = current_folder()?;
        check_one_program("stat", command, &here)?;
        let workload =
            Workload::from_commands(vec![command.to_vec()], &here).map_err(Failure::input)?;
        check_launcher(&workload.programs[0]).map_err(Failure::input)?;
        let path = std::env::var_os("PATH");
        workload.programs[0].executable(path.as_deref()).map_err(Failure::input)?;
        Ok(StatTarget::Command(command))
    }
}

/// The name of a process. Refused if there is none, or if the number is that of a thread.
fn name_of(pid: i32, proc: &Proc) -> Result<String, Failure> {
    let name = proc.name(pid).map_err(|error| match error.is_gone() {
        true => refused(pid, "there is no such process"),
        false => refused(pid, error),
    })?;
    if is_of_kernel(proc, pid) {
        return Err(refused(pid, Unattachable::Kernel));
    }
    let process = proc.process_of(pid).map_err(|error| refused(pid, error))?;
    match process == pid {
        true => Ok(format!("{name} ({pid})")),
        false => Err(refused(
            pid,
            format_args!("it is a thread of process {process}: name that, and use --threads"),
        )),
    }
}

fn refused(pid: i32, why: impl std::fmt::Display) -> Failure {
    Failure::Input(format!("--pid {pid}: {why}"))
}

/// The processes and what ended of them.
#[derive(Debug)]
pub(super) struct Subjects {
    names: Vec<String>,
    /// Readable once the process has ended; `None` afterwards.
    processes: Vec<Option<OwnedFd>>,
    child: Option<Child>,
    proc: Proc,
}

impl Subjects {
    /// Watches them from now on.
    pub(super) fn watched(
        target: StatTarget<'_>,
        proc: &Proc,
        monitor: &mut Monitor,
        counted: &mut Counted,
        poll: &Poll,
    ) -> Result<Subjects, Failure> {
        let (names, processes) = (Vec::new(), Vec::new());
        let mut subjects = Subjects { names, processes, child: None, proc: proc.clone() };
        match target {
            StatTarget::Running(processes) => {
                for (program, (pid, name)) in processes.into_iter().enumerate() {
                    subjects.watch(pid, poll)?;
                    monitor.add(program as u32, pid).map_err(|error| refused(pid, error))?;
                    counted.running(&proc.threads(pid).map_err(|error| refused(pid, error))?);
                    subjects.names.push(name);
                }
            }
            // It is watched from its first instruction on, since it inherits that from cosched
            // itself: its own threads are left out.
            StatTarget::Command(command) => {
                let own = std::process::id() as i32;
                monitor.add(0, own).map_err(Failure::broken)?;
                // What comes after this sample is new, and has no earlier figures.
                monitor.look().map_err(Failure::broken)?;
                // There is no other thread here: this one starts the program.
                counted.about_to_start(Process::find(proc, own).map_err(Failure::broken)?);
                let mut started = Command::new(&command[0]);
                let child = signals::set_in(started.args(&command[1..]), signals::ignored());
                let child = child.spawn().map_err(|error| {
                    Failure::Input(format!("cannot start {}: {error}", command[0]))
                })?;
                let file = Path::new(&command[0]).file_name();
                let name = file.map(|name| name.to_string_lossy().into_owned());
                subjects.names.push(name.unwrap_or_else(|| command[0].clone()));
                subjects.watch(child.id() as i32, poll)?;
                subjects.child = Some(child);
            }
        }
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
            // It may have ended just now.
            let _ = Process::find(&self.proc, child.id() as i32)
                .map(|process| process.signal(&self.proc, signal));
        }
        true
    }

    /// The CPU time of what was started, in seconds, with the processes that it waited for. `None`
    /// if it has not ended.
    pub(super) fn cpu_seconds(&mut self) -> Option<f64> {
        self.child.as_mut()?.try_wait().ok()??;
        usage_of_all().ok().map(|usage| usage.user_seconds + usage.system_seconds)
    }

    /// That of what was started; of what ran already it says nothing.
    pub(super) fn exit_code(mut self) -> Result<ExitCode, Failure> {
        let Some(child) = &mut self.child else { return Ok(ExitCode::SUCCESS) };
        let status = child.wait().map_err(Failure::broken)?;
        Ok(exit_code_of(exit_of(status.into_raw())))
    }
}
