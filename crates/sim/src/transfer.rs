//! The data that a lock guards: it is transferred with the lock from where it was written last.
//!
//! A thread that takes a lock finds the guarded cache lines in the caches of the CPU on which the
//! lock was released last. From the same CPU they cost nothing. From another CPU each takes as long
//! as a signal does over that distance, on the critical path: the lock is held meanwhile. A line
//! from behind another last-level cache is a last-level miss, any other one a reference. The model
//! gives the number of lines; without any, nothing is transferred. Transfers of locks between
//! threads are counted in any case: inside a package, or across.

use cosched_core::Level;

use crate::tid::Tid;
use crate::world::SimulatedWorld;

impl SimulatedWorld {
    /// A thread has got a lock, and goes on: counts the transfer if another thread had it before.
    pub(crate) fn takes_over(&mut self, tid: Tid, program: usize, number: usize) {
        let cpu = usize::from(self.threads[tid as usize].cpu);
        let runtime = &mut self.programs[program];
        let Some((giver, from)) = runtime.sync.locks[number].given_back else { return };
        if giver == tid {
            return;
        }
        let package = |cpu: usize| self.shape.group(cpu, Level::Package);
        match package(usize::from(from)) == package(cpu) {
            true => runtime.tally.transfers_inside += 1,
            false => runtime.tally.transfers_across += 1,
        }
    }

    /// Transfers the data that a lock guards to its new holder: this many lines.
    pub(crate) fn fetch(&mut self, tid: Tid, program: usize, number: usize, lines: u32) {
        let cpu = usize::from(self.threads[tid as usize].cpu);
        let given_back = self.programs[program].sync.locks[number].given_back;
        let Some(from) = given_back.map(|(_, from)| usize::from(from)).filter(|from| *from != cpu)
        else {
            return;
        };
        let is_near = self.shape.group(from, Level::Llc) == self.shape.group(cpu, Level::Llc);
        let (lines, distance) = (f64::from(lines), self.hardware.signal(from, cpu));
        let thread = &mut self.threads[tid as usize];
        thread.owes += lines * distance;
        thread.used.references += lines;
        thread.used.misses += if is_near { 0.0 } else { lines };
    }
}
