//! What `auto` has chosen, and on what ground, in words.

use cosched_core::{Ground, Manner, Speedups};

/// How far programs come together, as much as is certain.
pub(super) fn as_far(ground: Ground, Speedups { side_by_side, in_turns }: Speedups) -> String {
    let bound = if ground == Ground::FurtherInTurns { "most" } else { "least" };
    format!(
        "together at {bound} {side_by_side:.2} times the progress of one alone side by side, {in_turns:.2} in turns"
    )
}

/// How programs are run from now on, and why.
pub(super) fn chosen(manner: Manner, ground: Ground) -> &'static str {
    match (manner, ground) {
        (Manner::SideBySide, Ground::Begins) => {
            "all run side by side, since nothing is known of them yet"
        }
        (Manner::SideBySide, Ground::EnoughCpus) => {
            "all run side by side, since there are CPUs for all their threads"
        }
        (Manner::SideBySide, Ground::CpusIdle) => {
            "all run side by side, since hardly any thread waits for a CPU"
        }
        (Manner::SideBySide, Ground::Alone) => "nobody takes turns, since one program is there",
        (Manner::SideBySide, Ground::OneCompetes) => {
            "all run side by side, since at most one of them needs much CPU time"
        }
        (Manner::SideBySide, Ground::NobodyWide) => {
            "all run side by side, since none of them uses several CPUs at once"
        }
        (Manner::SideBySide, Ground::FewFreezable) => {
            "all run side by side, since so few of them may be frozen that turns would bring nothing"
        }
        (Manner::SideBySide, Ground::LittleWaiting) => {
            "all run side by side, since in turns their threads would wait hardly less for siblings without a CPU"
        }
        (Manner::SideBySide, Ground::StoppedLate) => {
            "all run side by side, since in turns their threads were not stopped in time"
        }
        (Manner::SideBySide, Ground::FurtherTogether) => {
            "all run side by side, since by what they tell of their progress they come further so than in turns"
        }
        (Manner::SideBySide, Ground::FewerDidLess) => {
            "all run side by side with all their threads, since with fewer they did less"
        }
        (Manner::SideBySide, _) => {
            "all run side by side, since in turns they would do less: alone, they leave CPUs idle, or are in the kernel much"
        }
        (Manner::OneAfterAnother, _) => {
            "they start one after another as long as they fill the CPUs, since the goal is throughput"
        }
        (Manner::InGangs, Ground::KnownToScale) => {
            "they take turns, since by their runs alone they use all CPUs well"
        }
        (Manner::InGangs, Ground::MuchWaiting) => {
            "they take turns, since side by side their threads wait for siblings without a CPU"
        }
        (Manner::InGangs, Ground::FurtherInTurns) => {
            "they take turns, since by what they tell of their progress they come further so than side by side"
        }
        (Manner::InGangs, Ground::FewerDidLess) => {
            "they take turns with all their threads, since with fewer they did less"
        }
        (Manner::FewerThreads, Ground::KnownToScaleBadly) => {
            "they have as many threads as bring most, since by their runs alone the last ones bring little"
        }
        (Manner::FewerThreads, Ground::LittleWaiting) => {
            "they have fewer threads each, since with all of them they would do no more in turns than side by side"
        }
        (Manner::FewerThreads, Ground::GangsIdle | Ground::FurtherTogether) => {
            "they have fewer threads each, since with all of them in turns they would do less than side by side"
        }
        (Manner::FewerThreads, _) => {
            "they take turns with as many threads each as bring most, since so nobody waits for a sibling without a CPU"
        }
        (Manner::InGangs, _) => {
            "they take turns, since alone each uses its CPUs fully, and then nobody waits for a sibling without a CPU"
        }
    }
}
