//! What `auto` has chosen, and for what reason, in words.

use cosched_core::{Ground, Manner};

/// How programs run from now on, and why.
pub(super) fn chosen(manner: Manner, ground: Ground) -> &'static str {
    match (manner, ground) {
        (Manner::SideBySide, Ground::Begins) => {
            "all run together, since nothing has been measured yet"
        }
        (Manner::SideBySide, Ground::EnoughCpus) => {
            "all run together, since there is a CPU for each thread"
        }
        (Manner::SideBySide, Ground::CpusIdle) => {
            "all run together, since hardly any thread waits for a CPU"
        }
        (Manner::SideBySide, Ground::Alone) => "no program takes turns, since there is only one",
        (Manner::SideBySide, Ground::OneCompetes) => {
            "all run together, since at most one of them needs much CPU time"
        }
        (Manner::SideBySide, Ground::NobodyWide) => {
            "all run together, since each of them has one thread"
        }
        (Manner::SideBySide, Ground::FewFreezable) => {
            "all run together, since too few of them may be frozen for turns"
        }
        (Manner::SideBySide, Ground::GangsIdle) => {
            "all run together, since they do less in turns: alone, they leave CPUs idle, or are in the kernel much"
        }
        (Manner::InGangs, Ground::GangsFill) => {
            "they take turns, since alone each uses its CPUs fully, and in its turn no thread waits for a sibling \
             without a CPU"
        }
        (Manner::SideBySide, _) => "all run together",
        (Manner::InGangs, _) => "they take turns",
        (Manner::Earlier, _) => "they run in a way that only earlier versions of cosched had",
    }
}
