//! The figures as a file like those of `machines/`, each with a comment that says what it is.

use std::fmt::Write;
use std::time::SystemTime;

use cosched_core::format::count;
use cosched_core::{Level, Topology};
use cosched_sim::Costs;
use serde::Serialize;

use super::memory::Memory;
use crate::session::Session;
use crate::sim::this;

/// What stands for a cache of unknown size.
const UNKNOWN_CACHE_MIB: f64 = 8.0;

#[derive(Debug, Serialize)]
pub(super) struct MeasuredFigures {
    pub(super) gigahertz: f64,
    /// `None` where no core shows two siblings.
    pub(super) smt_share: Option<f64>,
    #[serde(flatten)]
    pub(super) memory: Memory,
    /// Nanoseconds, as the next two.
    #[serde(rename = "switch_nanos")]
    pub(super) switch: f64,
    /// The median, and what one in ten stays below and above.
    #[serde(rename = "wake_nanos")]
    pub(super) wake: [f64; 3],
    #[serde(rename = "signal_nanos")]
    pub(super) signals: [f64; 3],
    /// Per second and CPU.
    #[serde(rename = "interruptions_per_second")]
    pub(super) interruptions: f64,
    /// Nanoseconds.
    #[serde(rename = "tick_nanos")]
    pub(super) tick: f64,
    /// Per second and CPU; `None` where the kernel does not tell.
    #[serde(rename = "strays_per_second")]
    pub(super) strays: Option<f64>,
    #[serde(skip)]
    pub(super) own: Costs,
    /// How programs were frozen.
    #[serde(skip)]
    pub(super) backend: &'static str,
}

/// The file; `busy`: how many CPUs other processes used, if they did.
pub(super) fn text(figures: &MeasuredFigures, session: &Session, busy: Option<&str>) -> String {
    let topology = this::usable(session);
    let machine = &session.description;
    let mut text = format!(
        "# Measured on {} by `cosched sim measure` {}:\n# {}, {}, Linux {}.\n\
         # Medians; every CPU that programs may use was at work unless another thing is said.\n\n",
        humantime::format_rfc3339_seconds(SystemTime::now()),
        env!("CARGO_PKG_VERSION"),
        machine.model.as_deref().unwrap_or("unknown processor"),
        count(machine.cpus, "CPU", "CPUs"),
        machine.kernel,
    );
    if let Some(used) = busy {
        let _ = writeln!(
            text,
            "# The machine was busy: other processes used {used}, so the figures are doubtful.\n\
             # Measure again on the idle machine.\n"
        );
    }
    let mut line = |key: &str, value: String, what: &str| {
        let _ = writeln!(text, "# {what}\n{key} = {value}");
    };
    line("name", "\"this\"".into(), "What `--machine this` names.");
    let (shape, regular) = shape(&topology);
    let how =
        if regular { "" } else { " Not all parts are alike, so this is the nearest regular one." };
    line(
        "topology",
        format!("\"{shape}\""),
        &format!("From sysfs; `--machine this` looks again.{how}"),
    );
    line(
        "gigahertz",
        format!("{:.3}", figures.gigahertz),
        "Cycles per nanosecond: of a chain of operations of one cycle each.",
    );
    match figures.smt_share {
        Some(share) => line(
            "smt_share",
            format!("{share:.2}"),
            "Four independent chains on one sibling, alone over beside the same on the other.",
        ),
        None => line("smt_share", "1.0".into(), "No core shows two siblings."),
    }
    let memory = figures.memory;
    match memory.cache_mib {
        Some(mib) => line("cache_mib", format!("{mib:.3}"), "From sysfs: the outermost cache."),
        None => line(
            "cache_mib",
            format!("{UNKNOWN_CACHE_MIB:.1}"),
            "Assumed: the kernel does not tell the size of any cache.",
        ),
    }
    line(
        "memory_nanos",
        format!("{:.1}", memory.nanos),
        "A chain of reads through four times the cache, on one CPU.",
    );
    line(
        "switch_nanos",
        format!("{:.0}", figures.switch),
        "Two threads on one CPU that yield to each other: per switch, without the system call.",
    );
    let [wake, low, high] = figures.wake;
    line(
        "wake_nanos",
        format!("{wake:.0}"),
        &format!(
            "From waking a thread that sleeps on an idle CPU until it runs; 8 in 10 take {low:.0} \
             to {high:.0}."
        ),
    );
    let [core, package, machine] = figures.signals;
    line(
        "signal_nanos",
        format!("[{core:.0}, {package:.0}, {machine:.0}]"),
        "Half a round trip between two spinning threads; a distance that is not here is taken \
         from the next one.",
    );
    line(
        "interruptions_per_second",
        format!("{:.1}", figures.interruptions),
        "Switches of a thread on each CPU that never waits: what the kernel and others interrupt.",
    );
    line(
        "tick_nanos",
        format!("{:.0}", figures.tick),
        "How long a thread that only looks at the clock stands still when it does: mostly ticks.",
    );
    if let Some(strays) = figures.strays {
        line(
            "strays_per_second",
            format!("{strays:.2}"),
            "Two threads for each CPU that never wait: how often one is moved, per CPU; moves \
             back do not count.",
        );
    }
    let Costs { start, join, freeze, thaw } = figures.own;
    let _ = writeln!(
        text,
        "\n# The triad got {:.2} bytes per nanosecond on one CPU and {:.2} on {}: the limit at \
         which the\n\
         # simulator's queue slows them down as much, \
         or {} times what they moved if nothing was slowed down.\n\
         [[bus]]\nof = \"package\"\nbytes_per_nano = {:.2}\n\n\
         # What cosched itself takes: from the order to start a program that does nothing \
         until its end is known, and how\n\
         # much longer in a cgroup, as the policies that freeze programs or share CPUs by program \
         start them; to freeze and to thaw one of {} by {}.\n\
         [own]\nstart_nanos = {}\njoin_nanos = {}\nfreeze_nanos = {}\nthaw_nanos = {}",
        memory.triad[0],
        memory.triad[1],
        memory.cpus,
        super::memory::FAR_ABOVE,
        memory.bus,
        count(session.usable.cpus.len(), "spinning thread", "spinning threads"),
        figures.backend,
        start.0,
        join.0,
        freeze.0,
        thaw.0,
    );
    text
}

/// The topology as an hwloc synthetic string, and whether that says all.
fn shape(topology: &Topology) -> (String, bool) {
    let all = topology.all();
    let counts = Level::ALL.map(|level| topology.spanned(&all, level));
    let [packages, llcs, l2s, cores] = counts;
    let cpus = all.len();
    let steps = [packages, llcs / packages, l2s / llcs, cores / l2s, cpus / cores];
    let [package, llc, l2, core, pu] = steps;
    match steps.iter().product::<usize>() == cpus {
        true => (format!("package:{package} l3:{llc} l2:{l2} core:{core} pu:{pu}"), true),
        false => (format!("package:1 core:{cpus}"), false),
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::Nanos;
    use cosched_results::result::MachineDescription;
    use cosched_sim::Hardware;

    use super::*;

    #[test]
    fn what_is_written_is_a_description_that_says_the_same() {
        let topology = Topology::regular(2, 1, 4, 1, 2);
        let description = MachineDescription { cpus: 16, model: None, kernel: "6.18".into() };
        let session = Session::of(topology.clone(), description);
        let [start, join, freeze, thaw] = [900_000, 14_000_000, 50_000, 20_000].map(Nanos);
        let own = Costs { start, join, freeze, thaw };
        let memory =
            Memory { cache_mib: Some(32.0), nanos: 110.5, triad: [9.0, 17.0], cpus: 8, bus: 40.0 };
        let figures = MeasuredFigures {
            gigahertz: 3.1,
            smt_share: Some(0.6),
            memory,
            switch: 1500.0,
            wake: [5000.0, 4000.0, 9000.0],
            signals: [20.0, 60.0, 150.0],
            interruptions: 60.0,
            tick: 4000.0,
            strays: Some(0.25),
            own,
            backend: "cgroup-v2",
        };
        let idle = text(&figures, &session, None);
        assert!(!idle.contains("busy:"), "{idle}");
        let busy = text(&figures, &session, Some("1.7 of 2 CPUs"));
        assert!(busy.contains("# The machine was busy: other processes used 1.7 of 2 CPUs"));
        let read = Hardware::parse(&idle, "machine.toml").unwrap();
        let again = Hardware::parse(&busy, "machine.toml").unwrap();
        assert_eq!(format!("{again:?}"), format!("{read:?}"));
        assert_eq!(read.topology, topology);
        assert_eq!((read.gigahertz, read.smt_share, read.memory_nanos), (3.1, 0.6, 110.5));
        assert_eq!(
            (read.switch_nanos, read.wake_nanos, read.signal_nanos),
            (1500.0, 5000.0, [20.0, 60.0, 150.0])
        );
        assert_eq!((read.strays_per_second, read.interruptions_per_second), (0.25, 60.0));
        assert_eq!(read.tick_nanos, 4000.0);
        assert_eq!((read.own, read.buses[0].bytes_per_nano), (own, 40.0));
    }

    #[test]
    fn a_machine_of_different_parts_is_described_as_one_package() {
        let whole = Topology::regular(2, 1, 2, 1, 2);
        let part = Topology::new(whole.cpus()[..5].to_vec());
        assert_eq!(shape(&whole), ("package:2 l3:1 l2:2 core:1 pu:2".to_owned(), true));
        assert_eq!(shape(&part), ("package:1 core:5".to_owned(), false));
    }
}
