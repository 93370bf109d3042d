//! What the user said, once it is checked.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use cosched_core::Nanos;
use cosched_core::engine::Repeat;

use super::after::After;
use super::barrier::BarrierMode;
use super::error::Place;
use super::streams::Streams;

/// Between the commands of several programs on the command line, as for GNU parallel.
pub const SEPARATOR: &str = ":::";

/// What Linux passes on in one argument or variable: 32 pages with the zero byte at its end.
pub const LONGEST_WORD: usize = 32 * 4096 - 1;

/// Beyond a ratio of ten thousand no quantum is short enough for the one and long enough for the
/// other.
pub(crate) const WEIGHTS: RangeInclusive<f64> = 0.01..=100.0;

/// The largest number of programs in one workload.
pub const MAX_PROGRAMS: usize = 4096;

/// The largest size of a workload file, bytes: what is larger is another file, or one without an
/// end.
pub const MAX_BYTES: u64 = 16 << 20;

/// The programs to run together; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The programs, in the order in which the user named them.
    pub programs: Vec<ProgramSpec>,
}

/// What the user said about one program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramSpec {
    /// Where it was written down.
    pub places: Places,
    /// Unique in the workload, and fit to be a file name.
    pub name: String,
    /// The command and its arguments; never empty.
    pub command: Vec<String>,
    /// Number of threads that the program is to use; `None`: what it takes by itself. Never zero.
    pub threads: Option<u16>,
    /// Variables to set on top of the inherited environment.
    pub env: BTreeMap<String, String>,
    /// The working directory, absolute.
    pub cwd: PathBuf,
    /// Files in the place of its standard streams.
    pub streams: Streams,
    /// When it arrives, after the start of the run.
    pub start: Nanos,
    /// The programs that must end before it arrives.
    pub after: Vec<After>,
    /// Its share relative to the other programs; positive and finite.
    pub weight: f64,
    /// Last-level cache misses per 1000 instructions when it runs alone, if the user knows.
    pub misses_per_kilo_instruction: Option<f64>,
    /// Share of the references to the last-level cache that miss when it runs alone, if the user
    /// knows.
    pub miss_ratio: Option<f64>,
    /// Traffic between caches and memory when it runs alone, GB/s (10^9 bytes), if the user knows.
    pub memory_gigabytes_per_second: Option<f64>,
    /// How often it is run.
    pub repeat: Repeat,
    /// Whether it may be frozen; `None`: to be found out.
    pub freezable: Option<bool>,
    /// Programs with the same group name freeze and run together, and with no other program.
    /// `None`: to be found out.
    pub group: Option<String>,
    /// Whether it lets cosched choose its thread count while it runs.
    pub malleable: bool,
    /// Whether it lets cosched start it with fewer threads than it would have.
    pub moldable: bool,
    /// Whether it reports its progress: its own ticks, or its regions and
    /// barriers.
    pub progress: bool,
    /// How its threads wait at barriers; `None`: what holds for all programs.
    pub barrier: Option<BarrierMode>,
    /// What the simulator takes it for, unread; `None`: it can only be run.
    pub model: Option<toml::Table>,
}

/// Where a program was written down, for messages about what only shows later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Its command.
    pub command: Place,
    /// Its thread count; the command where it has none.
    pub threads: Place,
    /// The values in its model, by the paths of their keys, such as `phase[0].serial`; the model
    /// itself has an empty path.
    pub model: BTreeMap<String, Place>,
}

impl Places {
    /// The place of a key of the model, or of the closest table around it that is there.
    pub fn in_model(&self, path: &str) -> &Place {
        let mut path = path;
        loop {
            match (self.model.get(path), path.rfind(['.', '['])) {
                (Some(place), _) => return place,
                (None, Some(end)) => path = &path[..end],
                (None, None) => return self.model.get("").unwrap_or(&self.command),
            }
        }
    }
}
