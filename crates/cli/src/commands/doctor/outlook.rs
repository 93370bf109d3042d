//! What each policy works with on this host, and what it would gain from more.
//!
//! Only what this version really uses counts: an ability that no policy touches yet is in the
//! report of abilities, not here.

use cosched_linux::rights::{Ability, Rights};
use cosched_policy::Kind;
use serde::Serialize;

/// One policy on this host.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Outlook {
    pub(super) policy: &'static str,
    /// What it works with here.
    pub(super) uses: String,
    /// What missing abilities would give it; empty if nothing.
    pub(super) gains: Vec<&'static str>,
}

/// Every policy; `weights`: programs can take turns by weight.
pub(super) fn all(rights: &Rights, weights: bool) -> Vec<Outlook> {
    Kind::ALL.map(|kind| outlook(kind, rights, weights)).into()
}

fn outlook(kind: Kind, rights: &Rights, weights: bool) -> Outlook {
    let (uses, gains) = match kind {
        Kind::Linux | Kind::Fcfs => ("nothing: it only starts programs".to_owned(), Vec::new()),
        Kind::LinuxGroups => shares(rights),
        Kind::Turns => turns(rights, weights),
        Kind::Gang | Kind::Greedy | Kind::Minwait | Kind::Auto => gangs(rights),
        Kind::AdaptiveGreedy | Kind::AdaptiveMinwait => {
            let (uses, gains) = gangs(rights);
            (format!("{uses}, threads by a library in malleable programs"), gains)
        }
        Kind::Bandwidth => {
            let (uses, gains) = gangs(rights);
            let figures =
                "memory traffic from the jobs file, slowdowns from a table of this machine";
            (format!("{uses}, {figures}"), gains)
        }
        Kind::Faithful => faithful(rights),
        Kind::FairProgress => fair_progress(rights),
        Kind::Shuffling => shuffling(rights),
        Kind::Cgreedy => {
            let (uses, mut gains) = gangs(rights);
            let by_hand = without(
                rights,
                &[Ability::Pmu],
                "hardware counters: `cosched profile` counts the cache misses",
            );
            let source = if by_hand.is_some() { "" } else { " or `cosched profile`" };
            gains.extend(by_hand);
            (format!("{uses}, cache misses from the jobs file{source}"), gains)
        }
    };
    Outlook { policy: kind.name(), uses, gains }
}

fn shares(rights: &Rights) -> (String, Vec<&'static str>) {
    let has = |ability| rights.has(ability);
    match () {
        () if has(Ability::CpuV2) || has(Ability::CpuV1) => {
            ("a CPU cgroup per program".to_owned(), Vec::new())
        }
        () if has(Ability::Autogroup) => (
            "a session per program, which autogroup makes a CPU group".to_owned(),
            vec!["cpu controller: programs stay in one session"],
        ),
        () => ("cannot work here".to_owned(), vec!["cpu controller or autogroup: it works"]),
    }
}

fn turns(rights: &Rights, weights: bool) -> (String, Vec<&'static str>) {
    let frozen = || {
        let (uses, mut gains) = gangs(rights);
        gains.insert(0, "idle CPU groups: programs take turns by weight, and none is stopped");
        (uses, gains)
    };
    match weights {
        true => ("a CPU cgroup per program; no program is frozen or bound".to_owned(), Vec::new()),
        false => frozen(),
    }
}

fn faithful(rights: &Rights) -> (String, Vec<&'static str>) {
    let locks = lock_times(rights);
    let slices =
        if rights.has(Ability::Slices) { "slices per thread" } else { "scheduling classes only" };
    let gains = [
        without(rights, &[Ability::Bpf], "BPF: lock times are exact"),
        without(rights, &[Ability::Slices], "slices per thread: there are quanta at all"),
        without(rights, &[Ability::Pmu], "hardware counters: cache misses count, too"),
    ];
    (format!("lock times {locks}, {slices}"), gains.into_iter().flatten().collect())
}

fn fair_progress(rights: &Rights) -> (String, Vec<&'static str>) {
    let (uses, mut gains) = gangs(rights);
    let by_hand = without(
        rights,
        &[Ability::Pmu],
        "hardware counters: it measures the progress and memory traffic of every program",
    );
    let source = match by_hand {
        Some(_) => "what programs report (`progress = true`), or a table of slowdowns",
        None => "hardware counters",
    };
    gains.extend(by_hand);
    (format!("{uses}, progress by {source}"), gains)
}

fn shuffling(rights: &Rights) -> (String, Vec<&'static str>) {
    let locks = lock_times(rights);
    let gains = without(rights, &[Ability::Bpf], "BPF: lock times are exact");
    (format!("lock times {locks}, binding of threads by affinity"), gains.into_iter().collect())
}

/// Where times at locks come from.
fn lock_times(rights: &Rights) -> &'static str {
    if rights.has(Ability::Bpf) { "measured in the kernel" } else { "estimated from /proc" }
}

fn gangs(rights: &Rights) -> (String, Vec<&'static str>) {
    let freezer = match () {
        () if rights.has(Ability::FreezeV2) => "cgroup-v2",
        () if rights.has(Ability::FreezerV1) => "cgroup-v1",
        () => "signals",
    };
    let freezers = [Ability::FreezeV2, Ability::FreezerV1];
    let cpusets = [Ability::CpusetV2, Ability::CpusetV1];
    let gains = [
        without(
            rights,
            &freezers,
            "cgroup freezer: programs and shells do not notice that they are stopped",
        ),
        without(rights, &cpusets, "cpuset controller: no thread escapes (--pinning cpuset)"),
        without(rights, &[Ability::Slices], "slices per thread: turns begin on time under load"),
    ];
    (format!("freezing by {freezer}, binding by affinity"), gains.into_iter().flatten().collect())
}

/// The gain, if none of the abilities is there.
fn without(rights: &Rights, any: &[Ability], gain: &'static str) -> Option<&'static str> {
    (!any.iter().any(|ability| rights.has(*ability))).then_some(gain)
}

#[cfg(test)]
mod tests {
    use cosched_linux::rights::{CapabilityLevel, Right};

    use super::*;

    fn host(abilities: &[Ability]) -> Rights {
        let right = |name: &Ability| Right {
            name: *name,
            available: true,
            detail: String::new(),
            gives: name.gives(),
            remedy: None,
        };
        Rights {
            kernel: String::new(),
            level: CapabilityLevel::Unprivileged,
            rights: abilities.iter().map(right).collect(),
        }
    }

    fn of(policy: &str, abilities: &[Ability]) -> Outlook {
        let all = all(&host(abilities), false);
        all.into_iter().find(|outlook| outlook.policy == policy).unwrap()
    }

    #[test]
    fn every_policy_has_an_outlook() {
        let names: Vec<_> =
            all(&host(&[]), false).into_iter().map(|outlook| outlook.policy).collect();
        assert_eq!(names, Kind::ALL.map(Kind::name));
    }

    #[test]
    fn gangs_take_the_best_freezer_that_is_there() {
        assert!(of("gang", &[Ability::Signals]).uses.contains("signals"));
        assert!(of("gang", &[Ability::FreezerV1]).uses.contains("cgroup-v1"));
        assert!(of("gang", &[Ability::FreezerV1, Ability::FreezeV2]).uses.contains("cgroup-v2"));
    }

    /// With signals alone, gangs would gain from a freezer; with every ability, from nothing.
    #[test]
    fn policies_name_the_abilities_that_would_help() {
        assert!(of("minwait", &[Ability::Signals]).gains[0].starts_with("cgroup freezer"));
        let everything = [Ability::FreezeV2, Ability::CpusetV1, Ability::Slices];
        assert_eq!(of("minwait", &everything).gains, Vec::<&str>::new());
        assert_eq!(of("cgreedy", &everything).gains.len(), 1);
    }

    #[test]
    fn cgreedy_takes_cache_misses_from_where_they_can_be_had() {
        let by_hand = of("cgreedy", &[Ability::Signals]);
        assert!(by_hand.uses.ends_with("from the jobs file"), "{}", by_hand.uses);
        assert!(by_hand.gains.iter().any(|gain| gain.starts_with("hardware counters")));
        let counted = of("cgreedy", &[Ability::Signals, Ability::Pmu]);
        assert!(counted.uses.ends_with("`cosched profile`"), "{}", counted.uses);
        assert!(!counted.gains.iter().any(|gain| gain.starts_with("hardware counters")));
    }

    #[test]
    fn fair_progress_counts_or_uses_reported_progress() {
        let blind = of("fair-progress", &[Ability::Signals]);
        assert!(blind.uses.contains("`progress = true`"), "{}", blind.uses);
        assert!(blind.gains.iter().any(|gain| gain.starts_with("hardware counters")));
        let counting = of("fair-progress", &[Ability::Signals, Ability::Pmu]);
        assert!(counting.uses.ends_with("progress by hardware counters"), "{}", counting.uses);
    }

    #[test]
    fn turns_freeze_programs_only_where_they_cannot_go_by_weight() {
        let uses =
            |weights| all(&host(&[Ability::Signals]), weights).swap_remove(turns_slot()).uses;
        assert!(uses(true).contains("no program is frozen"), "{}", uses(true));
        assert!(uses(false).contains("freezing by signals"), "{}", uses(false));
    }

    fn turns_slot() -> usize {
        Kind::ALL.iter().position(|kind| *kind == Kind::Turns).unwrap()
    }

    #[test]
    fn linux_groups_falls_back_to_autogroup_and_then_cannot_work() {
        assert!(of("linux-groups", &[Ability::CpuV1, Ability::Autogroup]).uses.contains("cgroup"));
        assert!(of("linux-groups", &[Ability::Autogroup]).uses.contains("session"));
        assert_eq!(of("linux-groups", &[]).uses, "cannot work here");
    }

    #[test]
    fn baselines_need_nothing_and_gain_nothing() {
        assert_eq!(of("linux", &[]).gains, Vec::<&str>::new());
        assert_eq!(of("fcfs", &[]).gains, Vec::<&str>::new());
    }
}
