//! Interfaces of the kernel: one module each, without knowledge of programs or policies.

pub mod affinity;
pub(crate) mod again;
pub mod background;
pub(crate) mod bpf;
pub mod clock;
pub(crate) mod file_locks;
pub mod files;
pub(crate) mod hotplug;
pub mod open_files;
pub mod poll;
pub mod procfs;
pub(crate) mod remedy;
pub mod sched_attr;
pub mod signals;
pub mod streams;
pub mod topology;
pub mod writers;

/// A thread in messages; 0 is the caller.
pub(crate) fn thread_in_words(tid: i32) -> String {
    match tid {
        0 => "one of its own threads".to_owned(),
        tid => format!("thread {tid}"),
    }
}
