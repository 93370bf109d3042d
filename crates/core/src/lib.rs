//! The vocabulary of cosched, and the engine that uses it.
//!
//! **A policy decides; a machine obeys.** A [`Policy`] is a pure state machine. It gets what
//! happened ([`Cause`]s), reads the [`World`] and writes a [`Plan`]: the desired state. A
//! [`Machine`] is Linux, a simulator, or the scripted [`fake`] of the tests. It carries out
//! [`Step`]s and reports [`Event`]s. The [`Engine`] stands between them: it turns events into
//! causes and accounts, checks the plan, and carries out the difference between the plan and the
//! confirmed state.
//!
//! No decision here depends on a clock, a file or a random number.

#![forbid(unsafe_code)]

mod actuator;
pub mod barrier_stats;
mod cause;
mod cpuset;
pub mod engine;
pub mod estimates;
pub mod fair_share;
pub mod fake;
pub mod format;
mod id;
mod learned;
mod machine;
mod output;
mod plan;
mod policy;
mod program;
mod reason;
mod sample;
mod sleep_slots;
mod speedup;
pub mod spinning;
mod time;
mod topology;
mod treatment;
mod turn;
pub mod waits;

pub use actuator::{Actuator, UnknownActuator};
pub use barrier_stats::{BarrierStats, BarrierTimes};
pub use cause::{Aspect, Cause, Refusal, Token, UserCommand};
pub use cpuset::{CpuListError, CpuSet, MAX_CPUS};
pub use engine::Engine;
pub use id::{ProgramId, ThreadId};
pub use learned::{Learned, Learning, TrialResult};
pub use machine::{Event, Happening, Interruption, Machine, Signal, Step};
pub use output::{Advance, Grouping, Output, Quantum};
pub use plan::{AtExpiry, Class, Directive, Observe, Plan, Settings, ThreadRule, Wake};
pub use policy::{Policy, World};
pub use program::{
    Counts, Exit, GroupId, MaskOwner, Molding, Profile, Program, ProgramState, Thread, Usage,
};
pub use reason::{Reason, Says, Value, Why, Wording, Words};
pub use sample::{Arena, IpBin, LockShare, MachineSample, Measure, Quality, Sample};
pub use sleep_slots::sleep_slots;
pub use speedup::Speedup;
pub use spinning::{SpinLoop, SpinShare, Spinning};
pub use time::{Nanos, parse_duration};
pub use topology::{Cpu, Level, Topology};
pub use treatment::{Chosen, SchedulingChange, Treatment, scaling_factor, to_nine_digits};
pub use turn::Turn;
pub use waits::Waits;
