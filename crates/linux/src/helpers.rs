//! Where the helper processes begin.

use crate::process::helper::Helper;
use crate::process::shim;
use crate::safety::{sentinel, undo};

/// Becomes a [helper](crate::process::helper) if the command line says so; returns at once
/// otherwise.
///
/// Has to be the first thing that `main` does: a helper closes every descriptor that it finds.
pub fn become_one_if_asked() {
    let Some(argument) = std::env::args_os().nth(1) else { return };
    if argument == Helper::Shim.argument() {
        shim::main(undo::is_done_with);
    }
    if argument == Helper::Sentinel.argument() {
        sentinel::main();
    }
}
