//! The fair share of each program of the CPU time so far ([`fair_shares`]).
//!
//! It changes only where a program comes, ends, is stopped or continued by another process, or has
//! another weight or number of threads, or where the machine has other CPUs. The engine counts what
//! has come up to then. A program has a share from its arrival on, also while it waits or is
//! frozen: it wants to run then, too.

use super::Engine;
use super::ledger::Account;
use crate::fair_share::{CpuClaim, fair_shares};
use crate::machine::Machine;
use crate::policy::Policy;
use crate::program::{Program, ProgramState};
use crate::time::Nanos;

/// A weight that is not above this is no weight.
const LIGHTEST: f64 = 1e-9;

impl<M: Machine, P: Policy> Engine<M, P> {
    /// Counts the shares up to a time. To be called before anything changes that they depend on.
    pub(super) fn count_shares(&mut self, at: Nanos) {
        let passed = at.since(self.shares_until);
        self.shares_until = self.shares_until.max(at);
        // While the run is being ended, programs run only as far as their ends need it.
        if passed == Nanos::ZERO || self.closing.is_some() {
            return;
        }
        let claims: Vec<CpuClaim> = self.programs.iter().map(claim).collect();
        let cpus = self.setup.cpus.len() as f64;
        for (program, share) in self.programs.iter().zip(fair_shares(cpus, &claims)) {
            let account: &mut Account = &mut self.accounts[usize::from(program.id.slot)];
            account.shares(Nanos((passed.0 as f64 * share).round() as u64));
        }
    }
}

fn claim(program: &Program) -> CpuClaim {
    let wants = program.state != ProgramState::StoppedByOther;
    let most = if wants { f64::from(program.requested) } else { 0.0 };
    CpuClaim { weight: program.weight.max(LIGHTEST), most }
}
