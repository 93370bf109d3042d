//! A machine with a single program.

use std::path::Path;
use std::sync::mpsc::channel;

use cosched_linux::control::run_cgroups::{FreezerBackend, Wishes};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::topology::Sys;
use cosched_linux::machine::{Config, Job, Linux, Origin};
use cosched_linux::observe::counters::Events;
use cosched_linux::process::launch::{LaunchOrder, OutputTo};
use cosched_linux::rights::usable::Usable;

use super::HIDDEN;

/// A program that cosched starts; its output is printed with the test's.
pub(crate) fn job(order: LaunchOrder) -> Job {
    Job {
        origin: Origin::Started,
        order,
        stdout: OutputTo::Stderr,
        stderr: OutputTo::Inherit,
        freezable_for_sure: true,
        grouped_by_user: true,
        hook: None,
    }
}

/// A machine with this program, with its log in this folder and counts of these events.
pub(crate) fn machine(folder: &Path, job: Job, count: Option<Events>) -> Linux {
    let topology = Sys::default().topology().unwrap();
    let config = Config {
        executable: HIDDEN.into(),
        log_folder: folder.to_owned(),
        cpus: Usable::find(&topology, &Proc::default()).unwrap().cpus,
        topology,
        wishes: Wishes {
            freezer: Some(FreezerBackend::Signals),
            pinning: None,
            ..Wishes::default()
        },
        ext: None,
        turns: true,
        units: false,
        sessions: true,
        count,
        spin_loops: None,
        jobs: vec![job],
        user_requests: None,
        notes: channel().0,
        roots: Default::default(),
        stats: Default::default(),
    };
    Linux::new(config).unwrap()
}
