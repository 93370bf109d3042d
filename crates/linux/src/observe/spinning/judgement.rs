//! Which samples of a process are of spin loops: pure.
//!
//! *A sample is of a spin loop* if it lies at an instruction by which a thread says that it waits.
//! Only spin loops execute such instructions, so no other sign is needed. Threads that compute in a
//! tight loop, however near to such an instruction, have no sample at it.
//!
//! *A spin loop is believed* once [`LEAST`] samples of one thread lie at it in one look: a byte
//! sequence may be part of other instructions. Where such instructions take no time, and samples
//! lie around them, nearly all samples of the thread have to. A loop that is known from before
//! needs one sample.
//!
//! *Why not whole intervals.* Barriers within milliseconds leave no interval of ten samples in
//! which a thread only spins; to take intervals with a few such samples for spinning counted
//! computation too.

use std::collections::{BTreeMap, BTreeSet};

use super::waiting::{Processor, WaitInstruction};

/// So many samples of one thread at a new spin loop.
const LEAST: usize = 3;

/// What samples of one process show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct JudgedSamples {
    /// How many samples there are.
    pub(super) samples: u64,
    /// How many of them are of each spin loop.
    pub(super) loops: BTreeMap<WaitInstruction, u64>,
}

/// Judges the samples of each of some threads of a process. `read` fills a buffer with the code at
/// an address, and says whether it could.
pub(super) fn judge(
    threads: &[Vec<u64>],
    known: &BTreeSet<WaitInstruction>,
    processor: &Processor,
    read: impl FnMut(u64, &mut [u8]) -> bool,
) -> JudgedSamples {
    let mut waits = found(threads, processor, read);
    waits.retain(|wait| threads.iter().any(|samples| is_believed(wait, samples, processor)));
    waits.extend(known);
    let mut judged = JudgedSamples::default();
    for pointer in threads.iter().flatten() {
        judged.samples += 1;
        if let Some(wait) = waits.iter().find(|wait| wait.has(*pointer, processor)) {
            *judged.loops.entry(*wait).or_default() += 1;
        }
    }
    judged
}

fn is_believed(wait: &WaitInstruction, samples: &[u64], processor: &Processor) -> bool {
    let at = samples.iter().filter(|pointer| wait.has(**pointer, processor)).count();
    at >= LEAST && at as f64 >= processor.least_share * samples.len() as f64
}

/// The waiting instructions at the samples. A loop has samples at the same instruction: code is
/// read only around those.
fn found(
    threads: &[Vec<u64>],
    processor: &Processor,
    mut read: impl FnMut(u64, &mut [u8]) -> bool,
) -> BTreeSet<WaitInstruction> {
    let mut times = BTreeMap::<u64, usize>::new();
    for pointer in threads.iter().flatten() {
        *times.entry(*pointer).or_default() += 1;
    }
    let mut found = BTreeSet::new();
    let mut code = vec![0; processor.around() as usize * 2];
    for pointer in times.into_iter().filter(|(_, times)| *times > 1).map(|(pointer, _)| pointer) {
        let from = pointer.saturating_sub(processor.around());
        if read(from, &mut code) {
            found.extend(processor.waits(&code, from).filter(|one| one.has(pointer, processor)));
        }
    }
    found
}

#[cfg(test)]
mod tests;
