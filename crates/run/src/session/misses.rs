//! Policies that sort threads by the cache misses of each: refused where these cannot be counted.

use cosched_linux::observe::counters::{self, CounterLack, Events};
use cosched_policy::OptionGroup;

use super::request::Request;
use crate::ui::failure::Failure;

/// Checks that what threads are sorted by can be measured on this machine.
///
/// # Errors
/// When it cannot be.
pub(super) fn check(request: &Request<'_>) -> Result<(), Failure> {
    let needs_misses = request.kind.takes(OptionGroup::Shuffling)
        && request.how.options(request.kind).shuffling.needs_misses();
    let lack = needs_misses.then(|| counters::check(Events::HARDWARE).err()).flatten();
    lack.map_or(Ok(()), |lack| Err(Failure::Input(refusal(&lack))))
}

/// What a program misses as a whole says nothing of its threads, so nothing stands in for it.
fn refusal(lack: &CounterLack) -> String {
    let remedy = lack.remedy().map(|remedy| format!(" Remedy: {remedy}.")).unwrap_or_default();
    format!(
        "--sort-by misses sorts threads by the cache misses of each thread, which cannot be \
         counted: {lack}.{remedy} Or choose --sort-by lock, lock-time or birth; or simulate it: \
         on a simulated machine the misses of each thread are known (`cosched compare --machine`)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_names_the_option_and_each_remedy() {
        for (lack, remedy) in [
            (CounterLack::Hardware, "Remedy: on a virtual machine, its host"),
            (CounterLack::StandsStill, "Remedy: on a virtual machine, its host"),
            (CounterLack::CacheEvents, "Remedy: on a virtual machine, its host"),
            (CounterLack::Permission, "kernel.perf_event_paranoid"),
        ] {
            let said = refusal(&lack);
            assert!(said.starts_with("--sort-by misses"), "{said}");
            assert!(said.contains(&lack.to_string()) && said.contains(remedy), "{said}");
            assert!(said.contains("--sort-by lock"), "{said}");
        }
    }
}
