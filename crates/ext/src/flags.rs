//! The flags of a scheduler that only some kernels know, and that the scheduler is better with.

use std::collections::HashMap;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::{Enum, Enum64};

const FLAGS: [&str; 2] = [
    // 6.14: threads that may not change their CPU go to the scheduler's queues like all others. The
    // kernel also counts a thread as one of them while it executes the scheduler itself.
    "SCX_OPS_ENQ_MIGRATION_DISABLED",
    // 7.1: a thread that is put on a CPU's own queue, and cannot run there at once, comes back.
    "SCX_OPS_ALWAYS_ENQ_IMMED",
];

/// A flag that a kernel knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownFlag {
    name: &'static str,
    pub(crate) value: u64,
}

/// Those of them that the kernel with these types knows.
pub(crate) fn known(types: &Btf<'_>) -> Vec<KnownFlag> {
    const TYPE: &str = "scx_ops_flags";
    let narrow = types.type_by_name::<Enum<'_>>(TYPE);
    let narrow = narrow.iter().flat_map(|all| all.iter().map(|it| (it.name, i128::from(it.value))));
    let wide = types.type_by_name::<Enum64<'_>>(TYPE);
    let wide = wide.iter().flat_map(|all| all.iter().map(|it| (it.name, it.value)));
    let all = narrow.chain(wide);
    among(&all.filter_map(|(name, value)| Some((name?.to_str()?, value as u64))).collect())
}

/// Those of them that are among all flags of a kernel.
fn among(all: &HashMap<&str, u64>) -> Vec<KnownFlag> {
    let known = FLAGS.into_iter().map(|name| Some(KnownFlag { name, value: *all.get(name)? }));
    known.flatten().collect()
}

/// What users read of a kernel that takes the scheduler with these flags.
pub(crate) fn taken_with(flags: &[KnownFlag]) -> String {
    let names: Vec<&str> = flags.iter().map(|flag| flag.name).collect();
    let more = match names.is_empty() {
        true => ", and knows no flag of newer kernels".to_owned(),
        false => format!(" with {}", names.join(" and ")),
    };
    format!("the kernel takes cosched's scheduler{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_have_the_kernels_values_and_only_known_names() {
        let (old, new) = ([("SCX_OPS_ENQ_LAST", 2)], "SCX_OPS_ENQ_MIGRATION_DISABLED");
        assert_eq!(among(&old.into()), []);
        assert!(taken_with(&[]).ends_with("knows no flag of newer kernels"));
        let known = among(&[old[0], (new, 16)].into());
        assert_eq!(known, [KnownFlag { name: new, value: 16 }]);
        assert!(taken_with(&known).ends_with(&format!("scheduler with {new}")));
        let all = [("SCX_OPS_ALWAYS_ENQ_IMMED", 1 << 7), (new, 16)];
        let known = among(&all.into());
        assert_eq!(known.iter().map(|flag| flag.value).sum::<u64>(), (1 << 7) + 16);
        assert!(taken_with(&known).contains("MIGRATION_DISABLED and SCX_OPS_ALWAYS_ENQ_IMMED"));
    }
}
