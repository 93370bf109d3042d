//! The form of a thread's scheduling in the log: serde's view of the kernel's types.

use cosched_core::Nanos;
use serde::{Deserialize, Serialize};

use crate::kernel::sched_attr::{SchedAttr, SchedPolicy};

#[derive(Serialize, Deserialize)]
#[serde(remote = "SchedPolicy", rename_all = "kebab-case")]
enum PolicyInLog {
    Other,
    Fifo,
    RoundRobin,
    Batch,
    Idle,
    Deadline,
    Numbered(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SchedAttr")]
pub(super) struct AttrInLog {
    #[serde(with = "PolicyInLog")]
    policy: SchedPolicy,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: Nanos,
    deadline: Nanos,
    period: Nanos,
}
