//! Spin loops: places in the code of programs where a thread waits and keeps its CPU busy.

use serde::{Deserialize, Serialize};

/// A place where threads spin: an instruction that tells the processor or the kernel that its
/// thread waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SpinLoop {
    /// The name of its program or library, without folders; `[anonymous]` for code that the
    /// program has made itself.
    pub object: String,
    /// The build ID of that file, hexadecimal; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// Where in the file, bytes from its beginning; in code that the program has made itself, the
    /// address.
    pub offset: u64,
}

/// How much of its CPU time outside the kernel a program has spent in spin loops, from samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spinning {
    /// In all of its spin loops, 0 to 1.
    pub share: f64,
    /// How many samples that rests on, each about 1 ms of CPU time.
    pub samples: u64,
    /// The loops with the largest shares, the largest first.
    pub loops: Vec<SpinShare>,
}

/// The share of one spin loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpinShare {
    /// Which one.
    #[serde(flatten)]
    pub place: SpinLoop,
    /// Of the program's CPU time outside the kernel, 0 to 1.
    pub share: f64,
}
