//! Showing a run to clients: `cosched top`, other readers of its socket, and scrapers of metrics.
//!
//! The scheduling thread must not wait for a client, and should not even work while no client
//! looks. It keeps only the policy's last reasons (`Board`), and at a heartbeat reads one flag
//! whether a client requests a snapshot. If so, it puts a
//! [`Snapshot`](cosched_results::live::Snapshot) into a place for one (`handover`). A thread of
//! the background does the rest: it reads what programs have used (`cpu`), turns snapshots into
//! text and serves visitors (`server`). What a visitor requests (`request`) goes the other way.
//! docs/results.md tells users of it.

mod cpu;
mod handover;
mod http;
mod request;
mod server;
mod sockets;

use std::sync::Arc;

use cosched_core::engine::{Beat, ProgramSetup, Watch};
use cosched_core::{Plan, World};
use cosched_linux::clients::cpu_time::{Meter, Roots};
use cosched_linux::clients::user_requests::UserRequests;
use cosched_linux::kernel::clock::own_cpu_seconds;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::observe::barrier_stats::StatsOfRun;
use cosched_linux::safety::undo;
use cosched_results::live::{About, Board};

use crate::ui::Talk;
use crate::ui::failure::Failure;
pub use cosched_linux::clients::onlookers::live_socket as socket_of;
use cpu::CpuTimes;
use handover::Handover;
pub use request::WrittenRequest;
use server::{Endpoint, Server, Serves};
use sockets::OwnSocket;
pub use sockets::{MetricsAt, remove_left, running};

/// A run that is shown.
pub struct ShownRun {
    board: Board,
    user_requests: Arc<UserRequests>,
    roots: Roots,
    stats: StatsOfRun,
    handover: Arc<Handover>,
    /// Its thread ends with this.
    _server: Server,
}

impl ShownRun {
    /// Opens the endpoints. It must be done before there is a machine: see
    /// [`cosched_linux::kernel::background`].
    ///
    /// # Errors
    /// When metrics are wanted and cannot be served, or no thread can be started. That the run's
    /// own socket cannot be had is only told.
    pub(crate) fn open(
        about: About,
        programs: Vec<ProgramSetup>,
        metrics: Option<&MetricsAt>,
        talk: Talk,
    ) -> Result<ShownRun, Failure> {
        let mut endpoints = Vec::new();
        if let Some(at) = metrics {
            let (endpoint, address) = at.open().map_err(Failure::input)?;
            if let Some(address) = address {
                talk.tell(format_args!("metrics at http://{address}/metrics"));
            }
            endpoints.push(endpoint);
        }
        let proc = Proc::own().map_err(Failure::input)?;
        match own_endpoint(&proc) {
            Ok(endpoint) => endpoints.push(endpoint),
            Err(error) => talk.tell(format_args!("`cosched top` will not find this run: {error}")),
        }
        let handover = Arc::new(Handover::new().map_err(Failure::broken)?);
        let roots = Roots::new(programs.len());
        let stats = StatsOfRun::new(programs.len());
        let cpu = CpuTimes::new(Meter::new(proc, roots.clone()));
        let user_requests = Arc::new(UserRequests::new().map_err(Failure::broken)?);
        let server =
            Server::start(endpoints, &handover, &user_requests, cpu).map_err(Failure::broken)?;
        let board = Board::new(about, programs);
        Ok(ShownRun { board, user_requests, roots, stats, handover, _server: server })
    }

    pub(crate) fn user_requests(&self) -> Arc<UserRequests> {
        Arc::clone(&self.user_requests)
    }

    /// Where the programs' shims are told, so that visitors see what programs have used.
    pub(crate) fn roots(&self) -> Roots {
        self.roots.clone()
    }

    /// Visitors are told that another policy decides.
    pub(crate) fn is_decided_by(&mut self, policy: &str) {
        self.board.is_decided_by(policy);
    }

    /// Where it is told what programs' threads do at barriers.
    pub(crate) fn stats(&self) -> StatsOfRun {
        self.stats.clone()
    }
}

fn own_endpoint(proc: &Proc) -> Result<Endpoint, String> {
    let folder = undo::log_folder().map_err(|error| error.to_string())?;
    // Sockets of killed instances block no process, but would confuse a user who lists the folder.
    running(&folder, proc);
    let (listener, socket) = OwnSocket::bind(&socket_of(&folder, std::process::id()))?;
    Ok(Endpoint::new(listener, Serves::Lines, vec![socket]))
}

impl Watch for ShownRun {
    fn decided(&mut self, world: &World<'_>, plan: &Plan) {
        self.board.decided(world.now, plan);
    }

    fn beat(&mut self, beat: &Beat<'_>) {
        if self.handover.is_requested() {
            let mut snapshot = self.board.snapshot(beat, own_cpu_seconds());
            for (slot, program) in snapshot.programs.iter_mut().enumerate() {
                program.barrier_stats = self.stats.of(slot);
            }
            self.handover.offer(snapshot);
        }
    }

    fn looks(&self) -> bool {
        self.handover.is_requested()
    }
}
