//! What each policy works with on this host, and what it would gain from more.
//!
//! It follows from the descriptor of the policy, so a new policy needs nothing here. Only what this
//! version really uses counts: an ability that no policy touches yet is in the report of abilities.

use cosched_linux::rights::{Ability, Rights};
use cosched_policy::{Kind, Learns, Need, Turns};
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
    let descriptor = kind.descriptor();
    let mut found = Findings { rights, uses: Vec::new(), gains: Vec::new() };
    if descriptor.shares {
        found.shares();
    }
    match descriptor.turns {
        _ if !kind.makes_gangs() => {}
        Turns::Weight if weights => {
            found.uses("a CPU cgroup per program; no program is frozen or bound");
        }
        Turns::Weight => {
            found.gain("idle CPU groups: programs take turns by weight, and none is stopped");
            found.gangs();
        }
        Turns::Freeze => found.gangs(),
    }
    if descriptor.limits_threads {
        found.uses("threads by a library in malleable programs");
    }
    for need in descriptor.needs {
        found.need(*need);
    }
    found.learning(descriptor.learns);
    if descriptor.binds_threads && descriptor.learns == Learns::Nothing {
        found.uses("binding of threads by affinity");
    }
    let Findings { uses, gains, .. } = found;
    let uses = match uses.is_empty() {
        true => "nothing: it only starts programs".to_owned(),
        false => uses.join(", "),
    };
    Outlook { policy: kind.name(), uses, gains }
}

/// What was found out about a policy so far.
struct Findings<'a> {
    rights: &'a Rights,
    uses: Vec<String>,
    gains: Vec<&'static str>,
}

impl Findings<'_> {
    fn uses(&mut self, what: impl Into<String>) {
        self.uses.push(what.into());
    }

    fn gain(&mut self, gain: &'static str) {
        self.gains.push(gain);
    }

    fn has(&self, any: &[Ability]) -> bool {
        any.iter().any(|ability| self.rights.has(*ability))
    }

    /// There is something to gain if none of the abilities is there.
    fn without(&mut self, any: &[Ability], gain: &'static str) {
        if !self.has(any) {
            self.gain(gain);
        }
    }

    fn shares(&mut self) {
        if self.has(&[Ability::CpuV2, Ability::CpuV1]) {
            self.uses("a CPU cgroup per program");
        } else if self.has(&[Ability::Autogroup]) {
            self.uses("a session per program, which autogroup makes a CPU group");
            self.gain("cpu controller: programs stay in one session");
        } else {
            self.uses("cannot work here");
            self.gain("cpu controller or autogroup: it works");
        }
    }

    fn gangs(&mut self) {
        let freezer = if self.has(&[Ability::FreezeV2]) {
            "cgroup-v2"
        } else if self.has(&[Ability::FreezerV1]) {
            "cgroup-v1"
        } else {
            "signals"
        };
        self.uses(format!("freezing by {freezer}, binding by affinity"));
        self.without(
            &[Ability::FreezeV2, Ability::FreezerV1],
            "cgroup freezer: programs and shells do not notice that they are stopped",
        );
        self.without(
            &[Ability::CpusetV2, Ability::CpusetV1],
            "cpuset controller: no thread escapes (--pinning cpuset)",
        );
        self.without(&[Ability::Slices], "slices per thread: turns begin on time under load");
    }

    fn need(&mut self, need: Need) {
        match need {
            Need::Misses => {
                let counts = self.has(&[Ability::Pmu]);
                let source = if counts { " or `cosched profile`" } else { "" };
                self.uses(format!("cache misses from the jobs file{source}"));
                self.without(
                    &[Ability::Pmu],
                    "hardware counters: `cosched profile` counts the cache misses",
                );
            }
            Need::Traffic => self.uses("memory traffic from the jobs file"),
            Need::Slowdowns => self.uses("slowdowns from a table of this machine"),
            // Whether they are there is said where the policy is chosen.
            Need::Sockets => {
                self.uses("two packages, last-level caches or memory nodes, or --groups");
            }
            Need::Nice => {
                self.uses("nice values");
                self.without(
                    &[Ability::NegativeNice],
                    "nice priority: programs that weigh less get nice values",
                );
            }
        }
    }

    fn learning(&mut self, learns: Learns) {
        match learns {
            Learns::Nothing => {}
            Learns::Slices => {
                self.lock_times();
                let slices = self.has(&[Ability::Slices]);
                self.uses(if slices { "slices per thread" } else { "scheduling classes only" });
                self.without(&[Ability::Slices], "slices per thread: there are quanta at all");
                self.without(&[Ability::Pmu], "hardware counters: cache misses count, too");
            }
            Learns::Groups => {
                self.lock_times();
                self.uses("binding of threads by affinity");
            }
            Learns::SoloSpeeds => {
                let source = match self.has(&[Ability::Pmu]) {
                    true => "hardware counters",
                    false => "what programs report (`progress = true`), or a table of slowdowns",
                };
                self.uses(format!("progress by {source}"));
                self.without(
                    &[Ability::Pmu],
                    "hardware counters: it measures the progress and memory traffic of every \
                     program",
                );
            }
        }
    }

    fn lock_times(&mut self) {
        let measured = self.has(&[Ability::Bpf]);
        let source = if measured { "measured in the kernel" } else { "estimated from /proc" };
        self.uses(format!("lock times {source}"));
        self.without(&[Ability::Bpf], "BPF: lock times are exact");
    }
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
    fn shuffling_says_between_what() {
        assert!(of("shuffling", &[]).uses.contains("--groups"));
    }

    #[test]
    fn baselines_need_nothing_and_gain_nothing() {
        assert_eq!(of("linux", &[]).gains, Vec::<&str>::new());
        assert_eq!(of("fcfs", &[]).gains, Vec::<&str>::new());
    }
}
