//! What a policy is, and its input.

use crate::cause::Cause;
use crate::cpuset::CpuSet;
use crate::id::{ProgramId, ThreadId};
use crate::plan::Plan;
use crate::program::{Program, Thread};
use crate::sample::{IpBin, LockShare, MachineSample, Sample};
use crate::time::Nanos;
use crate::topology::Topology;

/// What is known at the moment of a decision. The engine owns the slices, and they are sorted by
/// id. Nothing is copied for a decision.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// The present time.
    pub now: Nanos,
    /// Which CPUs share a core, a cache, a package and a memory node.
    pub topology: &'a Topology,
    /// The CPUs that programs may use: never more than the caller of cosched may.
    pub cpus: &'a CpuSet,
    /// The longest time that every present program may be frozen at a stretch: the shortest
    /// [`Program::max_frozen`] of those that may be frozen at all.
    pub max_frozen: Nanos,
    /// Programs that have arrived and not ended.
    pub programs: &'a [Program],
    /// Threads, where a policy observes them: in ascending order of program, and then of id.
    pub threads: &'a [Thread],
    /// The latest samples.
    pub samples: &'a [Sample],
    /// The latest instruction-pointer bins.
    pub ips: &'a [IpBin],
    /// The latest lock shares.
    pub locks: &'a [LockShare],
    /// The latest sample of the machine as a whole.
    pub machine: &'a MachineSample,
}

impl World<'_> {
    /// The program with this id, if it is still there.
    pub fn program(&self, id: ProgramId) -> Option<&Program> {
        self.programs.binary_search_by_key(&id, |p| p.id).ok().map(|i| &self.programs[i])
    }

    /// The threads of a program, ascending.
    pub fn threads_of(&self, program: &Program) -> &[Thread] {
        let (from, to) = (program.threads.start as usize, program.threads.end as usize);
        self.threads.get(from..to).unwrap_or_default()
    }

    /// The thread with this id, if it is still there.
    pub fn thread(&self, id: ThreadId) -> Option<&Thread> {
        self.programs.iter().map(|program| self.threads_of(program)).find_map(|threads| {
            threads.binary_search_by_key(&id, |thread| thread.id).ok().map(|i| &threads[i])
        })
    }
}

/// Decides what should run: a pure state machine without clock, file, thread or randomness of its
/// own.
pub trait Policy {
    /// Decides by what happened, and writes the desired state. `plan` comes empty; see [`Plan`]
    /// for what leaving something out means. `causes` is never empty, and holds everything of one
    /// instant.
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan);
}

impl<P: Policy + ?Sized> Policy for Box<P> {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        (**self).decide(causes, world, plan);
    }
}
