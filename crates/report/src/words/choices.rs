//! The choices of `auto`, and their reasons, in words.

use cosched_core::{Ground, Manner};

/// The mode in which programs run from now on, and why.
pub(super) fn chosen(manner: Manner, ground: Ground) -> &'static str {
    match (manner, ground) {
        (Manner::SideBySide, Ground::Begins) => {
            "running together, because nothing has been measured yet"
        }
        (Manner::SideBySide, Ground::EnoughCpus) => {
            "running together, because there is a CPU for each thread"
        }
        (Manner::SideBySide, Ground::CpusIdle) => {
            "running together, because hardly any thread waits for a CPU"
        }
        (Manner::SideBySide, Ground::Alone) => {
            "running without turns, because there is only one program"
        }
        (Manner::SideBySide, Ground::OneCompetes) => {
            "running together, because at most one program needs much CPU time"
        }
        (Manner::SideBySide, Ground::NobodyWide) => {
            "running together, because each program is single-threaded"
        }
        (Manner::SideBySide, Ground::FewFreezable) => {
            "running together, because too few programs may be paused for turns"
        }
        (Manner::SideBySide, Ground::GangsIdle) => {
            "running together, because taking turns does less: by themselves, the programs leave CPUs idle or spend much \
             time in the kernel"
        }
        (Manner::InGangs, Ground::GangsFill) => {
            "taking turns, because each program can fill its CPUs by itself"
        }
        (Manner::SideBySide, _) => "running together",
        (Manner::InGangs, _) => "taking turns",
        (Manner::Earlier, _) => "running in a mode that this version of cosched does not know",
    }
}
