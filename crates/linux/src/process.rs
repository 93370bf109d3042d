//! Processes of programs: started, found, and followed until they end.

pub mod children;
pub(crate) mod claim;
pub(crate) mod fork;
pub mod helper;
pub(crate) mod labels;
pub mod launch;
pub mod shim;
#[cfg(test)]
pub(crate) mod testkit;
pub mod tree;
