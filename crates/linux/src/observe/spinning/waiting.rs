//! Instructions by which a thread says that it waits: a pause for the processor, or a yield to the
//! kernel.
//!
//! On x86-64 a pause takes 40 to 140 clock cycles on processors since 2016, and a dozen before. A
//! loop around it therefore spends most of its time there, and samples lie at it. On other
//! processors it takes no time, and samples lie anywhere in the loop.

/// What a processor's instructions look like.
#[derive(Debug)]
pub(super) struct Processor {
    /// The bytes of each waiting instruction.
    waiting: &'static [&'static [u8]],
    /// Every instruction begins at a multiple of this, bytes.
    step: usize,
    /// How far from the instruction a sample of its loop may lie, bytes.
    reach: u64,
    /// The least share of a thread's samples there for which the loop is believed to spin.
    pub(super) least_share: f64,
}

/// The length of the longest waiting instruction, bytes.
pub(super) const LONGEST: usize = 10;

/// The processor that cosched is made for; `None`: its instructions are not known here.
pub(super) const HERE: Option<&Processor> = match () {
    () if cfg!(target_arch = "x86_64") => Some(&X86_64),
    () if cfg!(target_arch = "aarch64") => Some(&AARCH64),
    () => None,
};

/// `pause`; `mov $24, %eax` and `syscall`, which is `sched_yield`; eight `nop` and `rdtsc`, by
/// which threads of OpenBLAS wait for work for a limited time.
pub(super) const X86_64: Processor = Processor {
    waiting: &[
        &[0xf3, 0x90],
        &[0xb8, 0x18, 0, 0, 0, 0x0f, 0x05],
        &[0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x0f, 0x31],
    ],
    step: 1,
    reach: 0,
    least_share: 0.0,
};
/// `yield`, `wfe` and `isb`; `mov x8, #124` and `svc #0`, which is `sched_yield`.
pub(super) const AARCH64: Processor = Processor {
    waiting: &[
        &[0x3f, 0x20, 0x03, 0xd5],
        &[0x5f, 0x20, 0x03, 0xd5],
        &[0xdf, 0x3f, 0x03, 0xd5],
        &[0x88, 0x0f, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4],
    ],
    step: 4,
    reach: 32,
    least_share: 0.9,
};

/// A waiting instruction, by its first byte and the one behind its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WaitInstruction {
    pub(super) from: u64,
    pub(super) to: u64,
}

impl WaitInstruction {
    /// Whether a sample lies at it: the kernel names the next instruction that would be executed.
    pub(super) fn has(&self, pointer: u64, processor: &Processor) -> bool {
        let first = self.from.saturating_sub(processor.reach);
        (first..=self.to.saturating_add(processor.reach)).contains(&pointer)
    }
}

impl Processor {
    /// How far before and behind a sample the waiting instruction of its loop may lie, bytes.
    pub(super) fn around(&self) -> u64 {
        self.reach + LONGEST as u64
    }

    /// The waiting instructions in some bytes of code, which begin at this address.
    pub(super) fn waits<'a>(
        &'a self,
        code: &'a [u8],
        address: u64,
    ) -> impl Iterator<Item = WaitInstruction> + 'a {
        let starts = (0..code.len()).filter(move |start| {
            self.step == 1 || (address + *start as u64) % self.step as u64 == 0
        });
        starts.filter_map(move |start| {
            let found = self.waiting.iter().find(|bytes| code[start..].starts_with(bytes))?;
            let from = address + start as u64;
            Some(WaitInstruction { from, to: from + found.len() as u64 })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(processor: &Processor, code: &[u8]) -> Vec<(u64, u64)> {
        processor.waits(code, 0x1000).map(|wait| (wait.from, wait.to)).collect()
    }

    #[test]
    fn pauses_and_yields_are_found_and_nothing_else() {
        // mov (%rdi), %eax; test; jne; pause; jmp.
        let spin = [0x8b, 0x07, 0x85, 0xc0, 0x75, 0x04, 0xf3, 0x90, 0xeb, 0xf6];
        assert_eq!(waits(&X86_64, &spin), [(0x1006, 0x1008)]);
        let sched_yield = [0xf3, 0x0f, 0x1e, 0xfa, 0xb8, 0x18, 0, 0, 0, 0x0f, 0x05, 0xc3];
        assert_eq!(waits(&X86_64, &sched_yield), [(0x1004, 0x100b)]);
        let of_openblas = [&[0x90; 8][..], &[0x0f, 0x31, 0x29, 0xc8]].concat();
        assert_eq!(waits(&X86_64, &of_openblas), [(0x1000, 0x100a)]);
        // nop; another system call; a pause that is cut off.
        assert_eq!(waits(&X86_64, &[0x90, 0xb8, 0x19, 0, 0, 0, 0x0f, 0x05, 0xf3]), []);
        let yields = [0x1f, 0x20, 0x03, 0xd5, 0x3f, 0x20, 0x03, 0xd5, 0, 0x3f, 0x20, 0x03, 0xd5];
        assert_eq!(waits(&AARCH64, &yields), [(0x1004, 0x1008)], "a nop, and one not aligned");
    }

    #[test]
    fn a_sample_lies_at_an_instruction_or_just_behind_it() {
        let wait = WaitInstruction { from: 100, to: 102 };
        let has = |processor| [60, 68, 99, 100, 102, 103, 134, 135].map(|p| wait.has(p, processor));
        assert_eq!(has(&X86_64), [false, false, false, true, true, false, false, false]);
        assert_eq!(has(&AARCH64), [false, true, true, true, true, true, true, false]);
    }
}
