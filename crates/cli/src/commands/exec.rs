//! `cosched exec`: one program under a policy, in cosched's place at the terminal, as with `nice`
//! and `time`.
//!
//! The program keeps standard input, output, terminal and process group. What the terminal sends
//! reaches both; every other signal is passed on. cosched ends when the program's first process
//! does, with its status.

use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Args;
use cosched_core::engine::outcome::Ended;
use cosched_core::{Exit, Nanos};
use cosched_linux::kernel::clock::Clock;
use cosched_linux::kernel::poll::{Poll, Ready};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::signals::{self, INTERRUPTIONS};
use cosched_linux::process::children::{self, Child};
use cosched_workload::Workload;
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, pidfd_send_signal,
};

use crate::args::in_place::InPlaceArgs;
use crate::args::{BarrierArgs, ThreadsArgs};
use crate::how::How;
use crate::session::{Origins, Request, Session};
use crate::source::{check_launcher, check_one_program};
use crate::store::Store;
use crate::ui::Talk;
use crate::ui::failure::{Failure, current_folder, exit_code, exit_code_of};

/// What to start, and how.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    #[command(flatten)]
    place: InPlaceArgs,
    #[command(flatten)]
    waiting: BarrierArgs,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// The program with its arguments, after '--'. It keeps standard input, output and the
    /// terminal.
    #[arg(last = true, required = true, value_name = "CMD ARGS")]
    command: Vec<String>,
}

/// Runs the program, and ends as it does.
pub(crate) fn exec(args: &ExecArgs) -> Result<ExitCode, Failure> {
    let how = args.place.how("run a program in the foreground")?;
    let how = How { waiting: args.waiting.barrier, ..how };
    let here = current_folder()?;
    check_one_program("exec", &args.command, &here)?;
    let mut workload =
        Workload::from_commands(vec![args.command.clone()], &here).map_err(Failure::input)?;
    workload.programs[0].threads = args.threads.threads;
    check_launcher(&workload.programs[0]).map_err(Failure::input)?;
    let session = Session::here()?;
    let store = Store::open_if_there();
    let profiles = session.profiles(&workload, &how, store.as_ref());
    let spin_loops = store.as_ref().map(Store::spin_loops).unwrap_or_default();
    let request = Request {
        spin_loops: &spin_loops,
        out: args.place.out.as_deref(),
        stdout_is_taken: false,
        origins: Origins::Child,
        ..Request::new(&workload, args.place.policy, &how, &profiles)
    };
    if session.fits(&request).is_ok() {
        session.tell_if_crowded(&workload, Talk::Usual);
    }
    let live = session.open_live(&request, args.place.metrics.as_ref())?;
    let ran = session.show(&request, live)?;
    if ran.result.programs[0].exit.is_some() {
        signals::unblock().map_err(Failure::broken)?;
    }
    session.learn(&request, &ran);
    let untroubled = ran.report_troubles();
    let exit = match ran.result.programs[0].exit {
        Some(exit) => exit,
        // A signal came before there was a program to pass it on to.
        None if ran.ended != Ended::Complete => return Ok(exit_code(ran.ended, untroubled)),
        // It was released, and still has cosched's place.
        None => outlast()?,
    };
    Ok(match exit {
        Exit::Code(0) if !untroubled => ExitCode::FAILURE,
        exit => exit_code_of(exit),
    })
}

/// Waits for the end of the only child, and passes signals on.
fn outlast() -> Result<Exit, Failure> {
    let stops = Signal::TSTP.as_raw();
    let ends = INTERRUPTIONS.map(|(signal, _)| signal);
    let mut poll = Poll::new(&[&ends[..], &[stops]].concat()).map_err(Failure::broken)?;
    let proc = Proc::own().map_err(Failure::broken)?;
    let children = proc.children(std::process::id() as i32).map_err(Failure::broken)?;
    let Some(pid) = children.first().and_then(|pid| Pid::from_raw(*pid)) else {
        return Ok(Exit::Unknown);
    };
    let child = pidfd_open(pid, PidfdFlags::empty()).map_err(Failure::broken)?;
    poll.add(child.as_fd(), 0).map_err(Failure::broken)?;
    let (clock, mut ready) = (Clock::start(), Vec::new());
    loop {
        poll.wait(clock.absolute(Nanos::NEVER), &mut ready).map_err(Failure::broken)?;
        for ready in ready.drain(..) {
            match ready {
                // These come from the terminal, which has sent them to the program as well.
                Ready::Signal(number) if number == Signal::INT.as_raw() => {}
                Ready::Signal(number) if number == Signal::QUIT.as_raw() => {}
                // The terminal has stopped the job. If stopping fails here, no other process is
                // affected.
                Ready::Signal(number) if number == stops => {
                    let _ = kill_process(getpid(), Signal::STOP);
                }
                Ready::Signal(number) => {
                    // It may have ended just now.
                    let _ = Signal::from_named_raw(number)
                        .map(|signal| pidfd_send_signal(&child, signal));
                }
                Ready::Source(_) => match children::look(pid.as_raw_nonzero().get()) {
                    Child::Ended(exit, _) => return Ok(exit),
                    Child::Lives => {}
                    Child::NotOurs => return Ok(Exit::Unknown),
                },
            }
        }
    }
}
