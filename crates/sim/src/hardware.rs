//! A computer: its CPUs and what they share, and the costs of operations on it.
//!
//! A description is a small TOML file (see `machines/`). CPUs, clocks, caches and peak bandwidths
//! are those of the papers and data sheets. All other values are assumed, and never taken from a
//! figure that is to be predicted. For a quick experiment, a description in a few words is enough
//! (`words`).

mod costs;
mod limits;
mod synthetic;
mod words;

use std::path::Path;

use cosched_core::{Cpu, Level, Topology};
use cosched_workload::{input, toml_mistake};
use serde::Deserialize;

pub use costs::Costs;
pub use synthetic::topology;

use crate::prices::LINE;

const KNOWN: [(&str, &str); 6] = [
    ("chiplets-128", include_str!("../../../machines/chiplets-128.toml")),
    ("dunnington-24", include_str!("../../../machines/dunnington-24.toml")),
    ("e5-2670-16", include_str!("../../../machines/e5-2670-16.toml")),
    ("e5410-8", include_str!("../../../machines/e5410-8.toml")),
    ("opteron-64", include_str!("../../../machines/opteron-64.toml")),
    ("r905-24", include_str!("../../../machines/r905-24.toml")),
];

/// A computer.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// Its name, for people.
    pub name: String,
    /// Its CPUs.
    pub topology: Topology,
    /// Cycles per nanosecond.
    pub gigahertz: f64,
    /// The speed of one of two busy SMT siblings, relative to alone; 0 to 1.
    pub smt_share: f64,
    /// Bytes of one last-level cache.
    pub cache_bytes: f64,
    /// The latency of a last-level miss on an idle machine, nanoseconds.
    pub memory_nanos: f64,
    /// By how much longer a last-level miss takes if the memory is on another node, nanoseconds.
    pub remote_nanos: f64,
    /// All that memory traffic goes through, each with its own limit.
    pub buses: Vec<Bus>,
    /// The cost of putting another thread on a CPU, nanoseconds.
    pub switch_nanos: f64,
    /// The cost of waking a sleeping thread: from the wake-up until it runs on an idle CPU,
    /// nanoseconds.
    pub wake_nanos: f64,
    /// The delay of a signal to a spinning thread: on the same core, in the same package, across
    /// packages; nanoseconds.
    pub signal_nanos: [f64; 3],
    /// How often a CPU's waiting thread is moved although the queues are even, per second and CPU:
    /// a kernel thread that is ready to run makes one queue look longer for a moment.
    pub strays_per_second: f64,
    /// How often a kernel thread, or a thread of a background program, interrupts a busy CPU, per
    /// second.
    pub interruptions_per_second: f64,
    /// How often a kernel thread that a timer has woken takes a busy CPU at one of its ticks, per
    /// second: timers of the kernel expire at ticks.
    pub housekeeping_per_second: f64,
    /// The cost of a tick for the running thread, nanoseconds.
    pub tick_nanos: f64,
    /// The duration of cosched's own steps.
    pub own: Costs,
}

/// A limit to memory traffic.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bus {
    /// The CPUs that share one bus.
    pub of: Scope,
    /// The bandwidth of one bus, bytes per nanosecond (GB/s).
    pub bytes_per_nano: f64,
}

/// The CPUs that share a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The CPUs of a last-level cache.
    Llc,
    /// The CPUs of a package.
    Package,
    /// All CPUs.
    Machine,
}

fn names() -> String {
    KNOWN.map(|(name, _)| name).join(", ")
}

/// Why a description cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HardwareError {
    /// There is no included description of this name.
    #[error(
        "there is no machine '{name}': choose from {}, name a file, describe it as 'package:2 \
         core:8', or take 'this' (after `cosched sim measure`)",
        names()
    )]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The file cannot be read.
    #[error(
        "{}: cannot be read: {source}; name a file of your own, or choose from {}",
        file.display(),
        names()
    )]
    Unreadable {
        /// The file.
        file: std::path::PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The text is not a description.
    #[error("{file}: {what}; `cosched sim measure` writes such a file of this machine")]
    Toml {
        /// The file.
        file: String,
        /// The error and its place.
        what: String,
    },
    /// A word of a description in words makes no sense.
    #[error("machine: '{word}': {problem}")]
    Word {
        /// The word.
        word: String,
        /// What is wrong, and the remedy.
        problem: String,
    },
    /// A value makes no sense.
    #[error("{file}: {key}: {problem}")]
    Value {
        /// The file.
        file: String,
        /// The key.
        key: &'static str,
        /// What is wrong, and the remedy.
        problem: String,
    },
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct HardwareFile {
    name: String,
    topology: String,
    #[serde(default)]
    packages_alternate: bool,
    gigahertz: f64,
    #[serde(default = "one")]
    smt_share: f64,
    cache_mib: f64,
    memory_nanos: f64,
    #[serde(default)]
    remote_nanos: f64,
    bus: Vec<Bus>,
    switch_nanos: f64,
    wake_nanos: f64,
    signal_nanos: [f64; 3],
    #[serde(default)]
    strays_per_second: f64,
    #[serde(default)]
    interruptions_per_second: f64,
    #[serde(default)]
    housekeeping_per_second: f64,
    #[serde(default)]
    tick_nanos: f64,
    own: Option<Costs>,
}

fn one() -> f64 {
    1.0
}

impl Hardware {
    /// The names of the included descriptions.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KNOWN.into_iter().map(|(name, _)| name)
    }

    /// An included description.
    ///
    /// # Errors
    /// When there is none of that name; the error lists all names.
    pub fn named(name: &str) -> Result<Hardware, HardwareError> {
        match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => Hardware::parse(text, &format!("machines/{name}.toml")),
            None => Err(HardwareError::Unknown { name: name.to_owned() }),
        }
    }

    /// Reads a description.
    ///
    /// # Errors
    /// When it cannot be read, or a value makes no sense; the file and the key are named.
    pub fn load(path: &Path) -> Result<Hardware, HardwareError> {
        let text = input::text(path)
            .map_err(|source| HardwareError::Unreadable { file: path.to_owned(), source })?;
        Hardware::parse(&text, &path.display().to_string())
    }

    /// The memory bandwidth for all CPUs together, cache lines per microsecond; `None` without a
    /// bus.
    pub fn peak_lines_per_microsecond(&self) -> Option<f64> {
        let all = self.topology.all();
        let count = |scope| match scope {
            Scope::Machine => 1,
            Scope::Package => self.topology.spanned(&all, Level::Package),
            Scope::Llc => self.topology.spanned(&all, Level::Llc),
        };
        let carries = self.buses.iter().map(|bus| count(bus.of) as f64 * bus.bytes_per_nano);
        carries.reduce(f64::min).map(|bytes_per_nano| bytes_per_nano * 1e3 / LINE)
    }

    /// Reads the text of a description; `file` is named in messages.
    ///
    /// # Errors
    /// Those of [`load`](Self::load).
    pub fn parse(text: &str, file: &str) -> Result<Hardware, HardwareError> {
        let read: HardwareFile = toml::from_str(text).map_err(|error| HardwareError::Toml {
            file: file.to_owned(),
            what: toml_mistake(text, &error),
        })?;
        Hardware::build(read, file)
    }

    /// Checks what was read; `file` is named in messages.
    fn build(read: HardwareFile, file: &str) -> Result<Hardware, HardwareError> {
        let wrong = |key, problem| HardwareError::Value { file: file.to_owned(), key, problem };
        let topology = topology(&read.topology).map_err(|problem| wrong("topology", problem))?;
        let topology = if read.packages_alternate { alternating(&topology) } else { topology };
        limits::check(&read).map_err(|(key, problem)| wrong(key, problem))?;
        Ok(Hardware {
            name: read.name,
            topology,
            gigahertz: read.gigahertz,
            smt_share: read.smt_share,
            cache_bytes: read.cache_mib * 1024.0 * 1024.0,
            memory_nanos: read.memory_nanos,
            remote_nanos: read.remote_nanos,
            buses: read.bus,
            switch_nanos: read.switch_nanos,
            wake_nanos: read.wake_nanos,
            signal_nanos: read.signal_nanos,
            strays_per_second: read.strays_per_second,
            interruptions_per_second: read.interruptions_per_second,
            housekeeping_per_second: read.housekeeping_per_second,
            tick_nanos: read.tick_nanos,
            own: read.own.unwrap_or(Costs::MEASURED),
        })
    }

    /// The most that a thread owes before its own work goes on, nanoseconds: each cost once, and
    /// that of a move. A thread that loses the CPU before it has paid owes no more than that when
    /// it runs again.
    pub(crate) fn most_owed(&self) -> f64 {
        2.0 * self.switch_nanos + 1.5 * (self.wake_nanos + self.tick_nanos)
    }

    /// The time until a thread on one CPU (by position) sees what a thread on another has written,
    /// nanoseconds.
    pub(crate) fn signal(&self, from: usize, to: usize) -> f64 {
        let cpus = self.topology.cpus();
        let same = |level| cpus[from].group(level) == cpus[to].group(level);
        match (same(Level::Core), same(Level::Package)) {
            (true, _) => self.signal_nanos[0],
            (_, true) => self.signal_nanos[1],
            _ => self.signal_nanos[2],
        }
    }
}

/// This machine with CPUs numbered alternately over the packages: the first of each, the second of
/// each, and so on.
fn alternating(topology: &Topology) -> Topology {
    let cpus = topology.cpus();
    let packages =
        cpus.iter().map(|cpu| cpu.group(Level::Package)).max().map_or(1, |last| last + 1);
    let packages = usize::from(packages);
    let each = cpus.len() / packages;
    let renumbered = |cpu: &Cpu| Cpu { id: cpu.id % each * packages + cpu.id / each, ..*cpu };
    Topology::new(cpus.iter().map(renumbered).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name = 'two'\ntopology = 'package:2 core:3 pu:2'\ngigahertz = 2.0\n\
        cache_mib = 8\nmemory_nanos = 80\nbus = [{ of = 'package', bytes_per_nano = 10 }]\n\
        switch_nanos = 1500\nwake_nanos = 3000\nsignal_nanos = [30, 60, 200]\n";

    #[test]
    fn a_description_is_read() {
        let two = Hardware::parse(TEXT, "two.toml").unwrap();
        assert_eq!(two.topology.cpus().len(), 12);
        assert_eq!(two.buses, [Bus { of: Scope::Package, bytes_per_nano: 10.0 }]);
        assert_eq!((two.signal(0, 1), two.signal(0, 2), two.signal(0, 6)), (30.0, 60.0, 200.0));
        assert_eq!(two.own, Costs::MEASURED);
    }

    #[test]
    fn the_peak_is_that_of_the_narrowest_buses_together() {
        // 120 lines per microsecond of the memory bus; two front-side buses carry 160.
        let peak = Hardware::named("e5410-8").unwrap().peak_lines_per_microsecond();
        assert!(peak.is_some_and(|peak| (peak - 120.0).abs() < 1e-9), "{peak:?}");
        let of_words = |words| Hardware::words(words).unwrap().peak_lines_per_microsecond();
        assert_eq!(of_words("package:2 core:2 bus=package:3.2 bus=machine:64"), Some(100.0));
    }

    #[test]
    fn cosched_s_own_time_can_be_set() {
        let own = "[own]\nstart_nanos = 1\njoin_nanos = 4\nfreeze_nanos = 2\nthaw_nanos = 3\n";
        let costs = Hardware::parse(&format!("{TEXT}{own}"), "two.toml").unwrap().own;
        let [start, freeze, thaw, join] = [1, 2, 3, 4].map(cosched_core::Nanos);
        assert_eq!(costs, Costs { start, join, freeze, thaw });
    }

    #[test]
    fn every_shipped_machine_has_as_many_cpus_as_its_name_says() {
        for (name, _) in KNOWN {
            let machine = Hardware::named(name).unwrap();
            assert_eq!(machine.name, name);
            let cpus = format!("-{}", machine.topology.cpus().len());
            assert!(name.ends_with(&cpus), "{name} {cpus}");
        }
        assert!(Hardware::named("cray").unwrap_err().to_string().contains("dunnington-24"));
    }

    #[test]
    fn every_key_is_described_in_the_documentation() {
        let documentation = include_str!("../../../docs/research/machine-file.md");
        let own = "own = { start_nanos = 1, freeze_nanos = 2, thaw_nanos = 3, x = 4 }";
        let bus = TEXT.replace("bytes_per_nano = 10 }", "bytes_per_nano = 10, x = 4 }");
        for text in ["x = 4".to_owned(), format!("{TEXT}{own}"), bus] {
            // The error message for an unknown key names all known keys.
            let message = Hardware::parse(&text, "two.toml").unwrap_err().to_string();
            let (_, known) =
                message.split_once("expected one of").or(message.split_once("expected")).unwrap();
            let known = known.split(';').next().unwrap();
            let keys: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
            assert!(keys.len() >= 2, "{message}");
            for key in keys {
                assert!(documentation.contains(&format!("| `{key}` |")), "{key}");
            }
        }
    }

    #[test]
    fn the_fps_papers_machine_has_the_papers_numbers() {
        let machine = Hardware::named("e5410-8").unwrap().topology;
        let set = |cpus: [usize; 4]| cpus.into_iter().collect();
        let spans = |cpus: [usize; 4]| {
            (machine.spanned(&set(cpus), Level::Package), machine.spanned(&set(cpus), Level::Llc))
        };
        assert_eq!(spans([0, 1, 4, 5]), (2, 4));
        assert_eq!(spans([0, 1, 2, 3]), (2, 2));
        assert_eq!(spans([0, 2, 4, 6]), (1, 2));
    }

    #[test]
    fn errors_name_the_file_and_the_key() {
        let error_with = |from: &str, to: &str| {
            Hardware::parse(&TEXT.replace(from, to), "two.toml").unwrap_err().to_string()
        };
        assert!(
            error_with("gigahertz = 2.0", "gigahertz = 0").starts_with("two.toml: gigahertz: is 0")
        );
        assert!(error_with("core:3", "cores:3").contains("two.toml: topology: 'cores:3'"));
        assert!(error_with("package:2 core:3", "core:3 package:2").contains("'package:2'"));
        assert!(error_with("pu:2", "pu:2000").contains("12000 CPUs"));
        let unknown = error_with("gigahertz", "gigaherz");
        assert!(unknown.contains("gigaherz") && unknown.contains("sim measure"), "{unknown}");
        assert!(error_with("wake_nanos = 3000", "wake_nanos = -1").contains("wake_nanos: is -1"));
        assert!(error_with("cache_mib", "smt_share = 2\ncache_mib").contains("smt_share: is 2"));
    }
}
