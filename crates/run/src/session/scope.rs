//! A cgroup for turns by weight, where the user's own gives none: a [scope] of systemd's user
//! manager.

use cosched_linux::cgroup::scope::{self, ScopeError};
use cosched_linux::control::run_cgroups::ByWeight;
use cosched_linux::kernel::procfs::Proc;
use cosched_policy::Kind;

use super::making::by_weight;
use crate::how::How;
use crate::ui::Talk;

/// Moves cosched into a scope if one of these is to take turns by weight and that needs it. A host
/// without a scope to give is no error: the policy `auto` decides then, or are refused with a
/// remedy.
///
/// To be called before this machine is looked at, since the limits of a cgroup count, and before
/// there are threads.
pub fn enter_scope<'a>(runs: impl IntoIterator<Item = (Kind, &'a How)>, talk: Talk) {
    if runs.into_iter().all(|(kind, how)| by_weight(kind, how) == ByWeight::No) {
        return;
    }
    let Ok(proc) = Proc::own() else { return };
    match scope::enter(&proc) {
        Ok(()) => {}
        Err(ScopeError::Lack(lack)) if !lack.is_worth_a_word() => {}
        // `cosched doctor` tells it, too, and that is what is said next.
        Err(error @ ScopeError::Lack(_)) => talk.detail(format_args!("{}", message(&error))),
        // What cannot be read here, the run cannot read either, and then it says why.
        Err(ScopeError::File(_)) => {}
        Err(error) => talk.tell(format_args!("{}", message(&error))),
    }
}

/// What happened, what it means, and what to type.
fn message(error: &ScopeError) -> String {
    let remedy = match error {
        ScopeError::Lack(lack) => lack.remedy(),
        _ => None,
    };
    let remedy = remedy.unwrap_or(
        "start cosched with `systemd-run --user --scope -p Delegate=yes cosched ...` to see why",
    );
    format!("turns by weight need a cgroup, and none could be made: {error}. Remedy: {remedy}")
}

#[cfg(test)]
mod tests {
    use cosched_linux::cgroup::scope::ScopeLack;

    use super::*;

    #[test]
    fn a_refusal_is_reported_with_a_remedy() {
        let messages = [
            message(&ScopeLack::EndsWithLogin.into()),
            message(&ScopeError::Refused("Call failed: Access denied".to_owned())),
        ];
        assert!(messages[0].contains("loginctl enable-linger"), "{}", messages[0]);
        assert!(
            messages[1].contains("Access denied") && messages[1].contains("systemd-run"),
            "{}",
            messages[1]
        );
    }
}
