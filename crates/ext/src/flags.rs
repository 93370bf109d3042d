//! The flags of a scheduler that only some kernels know, and that the scheduler is better with.

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Enum64};

const FLAGS: [&str; 2] = [
    // 6.14: threads that may not change their CPU go to the scheduler's queues like all others. The
    // kernel also counts a thread as one of them while it executes the scheduler itself.
    "SCX_OPS_ENQ_MIGRATION_DISABLED",
    // 7.1: a thread that is put on a CPU's own queue, and cannot run there at once, comes back.
    "SCX_OPS_ALWAYS_ENQ_IMMED",
];

/// Those of them that the kernel with these types knows.
pub(crate) fn known(types: &Btf<'_>) -> u64 {
    const TYPE: &str = "scx_ops_flags";
    let narrow = types.type_by_name::<Enum<'_>>(TYPE);
    let narrow = narrow.iter().flat_map(|all| all.iter().map(|it| (it.name, i128::from(it.value))));
    let wide = types.type_by_name::<Enum64<'_>>(TYPE);
    let wide = wide.iter().flat_map(|all| all.iter().map(|it| (it.name, it.value)));
    narrow
        .chain(wide)
        .filter(|(name, _)| FLAGS.iter().any(|flag| name.is_some_and(|name| name == *flag)))
        .fold(0, |known, (_, value)| known | value as u64)
}
