//! What `--barrier donate` works with on this host.

use cosched_linux::hook;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::observe::runstate::RunStates;
use serde::Serialize;

/// Whether it can be had, and with what.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct BarrierReport {
    /// Whether the library that goes into programs is there.
    library: bool,
    /// Whether waiting threads can know which others run.
    states: bool,
    detail: String,
}

impl BarrierReport {
    pub(super) fn new(proc: &Proc) -> BarrierReport {
        let library = hook::library().map_err(|error| error.to_string());
        let states = RunStates::load(proc).map_err(|error| error.to_string());
        BarrierReport {
            library: library.is_ok(),
            states: states.is_ok(),
            detail: detail(library.err(), states.err()),
        }
    }

    pub(super) fn text(&self) -> String {
        format!("--barrier donate: {}", self.detail)
    }
}

fn detail(no_library: Option<String>, no_states: Option<String>) -> String {
    match (no_library, no_states) {
        (Some(why), _) => format!("cannot be had: {why}"),
        (None, Some(why)) => format!(
            "waiting threads do not know which others run, so they spin for a while and then \
             block: {why}"
        ),
        (None, None) => {
            "waiting threads know which others run, from a table that the kernel writes".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lacks_most_is_named_with_the_reason() {
        let lacks = |what: &str| Some(what.to_owned());
        assert_eq!(detail(lacks("no file"), lacks("no right")), "cannot be had: no file");
        let bounded = detail(None, lacks("no right"));
        assert!(bounded.contains("then block") && bounded.ends_with("no right"), "{bounded}");
        assert!(detail(None, None).contains("know which others run"));
    }
}
