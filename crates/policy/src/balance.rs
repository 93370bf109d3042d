//! `balance`: threads of one program on different CPUs.
//!
//! *Problem.* A kernel places threads by load alone. Two threads of a program may wait for one CPU,
//! one behind the other, while their siblings run and wait for both at a barrier.
//!
//! *Idea.* Siblings are kept on different CPUs. Then they run at the same time more often, and no
//! gang has to be scheduled for it: "probabilistic co-scheduling". All programs run, and none is
//! paused.
//!
//! *Algorithm.* Each thread gets a home: the CPU where it is, or, if a sibling has that, the CPU
//! with the fewest threads of other programs. CPUs that are no thread's home are divided among the
//! siblings, the near ones first. A thread's mask leaves out all CPUs of its siblings, so the
//! kernel may still choose among the others. A program with more threads than CPUs has at most
//! threads / CPUs of them on each, rounded up. A thread keeps its home as long as that is possible.
//!
//! *Source.* Balance scheduling: Sukwong and Kim, EuroSys 2011, a rival in the paper on the time
//! donating barrier (sections 2.2 and 5.2: BS). There the kernel searches a queue without siblings
//! whenever it places a thread, as the modelled kernel `balance` does. From outside only masks can
//! do that. Three differences follow: homes do not follow the load from one moment to the next;
//! threads that sleep have homes, too, where the source looks at runnable ones; and a thread is
//! bound only once it was seen. Until then it has the mask of the thread that made it.
//!
//! What a bound thread starts, and libraries that it loads, may count the CPUs of its mask once and
//! keep to that. A process with one thread, as most shells are, is therefore never bound, and has
//! its CPUs back if it was born with fewer.

use std::collections::{BTreeMap, BTreeSet};

use cosched_core::format::count;
use cosched_core::{
    Cause, CpuSet, Level, MaskOwner, Measure, Nanos, Plan, Policy, ProgramId, ProgramState,
    Settings, Thread, ThreadId, ThreadRule, Topology, UserCommand, Wording, Words, World,
};
use serde::{Deserialize, Serialize};

use crate::common::reasons::{ReasonSet, SharedReason};
use crate::descriptor::Descriptor;

/// How often the list of threads is read. Threads that have come or gone are seen at once.
const INTERVAL: Nanos = Nanos::from_millis(100);

/// Sections 2.2 and 5.2 of the paper on the time donating barrier.
pub(crate) const BALANCE: Descriptor = Descriptor {
    attaches: true,
    binds_threads: true,
    reasons: &[ReasonSet::of::<BalanceReason>()],
    ..Descriptor::without_gangs(
        "balance",
        "everything at once; threads of one program are kept on different CPUs",
        |_| Ok(Box::new(Balance::default())),
    )
};

/// A reason of `balance`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum BalanceReason {
    /// Its threads are kept on different CPUs.
    KeptApart {
        /// How many threads.
        threads: u16,
        /// The most of them on one CPU.
        most: u16,
    },
}

impl Words for BalanceReason {
    fn words(&self) -> Wording {
        let BalanceReason::KeptApart { threads, most } = *self;
        let threads = count(threads.into(), "thread", "threads");
        Wording::new("its threads are kept on different CPUs", "kept apart")
            .figures(format!("{threads}, at most {most} on a CPU"))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Balance {
    programs: BTreeMap<ProgramId, BalancedProgram>,
}

#[derive(Debug, Default)]
struct BalancedProgram {
    /// The threads that are kept apart.
    apart: BTreeMap<ThreadId, BalancedThread>,
    /// The threads that were seen and are not bound.
    free: BTreeSet<ThreadId>,
}

/// The home of a thread, and the CPUs that it may use.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BalancedThread {
    home: usize,
    cpus: CpuSet,
}

impl Balance {
    fn arrived(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let Some(program) = world.program(id) else { return };
        // An attached program keeps its settings for now.
        if program.state == ProgramState::New {
            plan.run(id, Settings::default());
            plan.because(Some(id), SharedReason::LeftToKernel);
        }
        self.programs.insert(id, BalancedProgram::default());
        plan.measure(id, [Measure::Threads], INTERVAL);
    }

    /// Divides the CPUs among the threads that a program has now.
    fn divide(&mut self, id: ProgramId, world: &World<'_>, plan: &mut Plan) {
        let Some(before) = self.programs.get(&id) else { return };
        let Some(program) = world.program(id) else { return };
        let all = world.threads_of(program);
        let mut processes = BTreeMap::<u32, usize>::new();
        all.iter().for_each(|thread| *processes.entry(thread.process).or_default() += 1);
        let ours = all.iter().filter(|thread| thread.mask_owner == MaskOwner::Cosched);
        let (apart, free): (Vec<&Thread>, Vec<&Thread>) =
            ours.partition(|thread| processes[&thread.process] > 1);
        let threads: Vec<(ThreadId, usize)> = apart
            .into_iter()
            .map(|thread| {
                let home = before.apart.get(&thread.id).map(|known| known.home);
                (thread.id, home.unwrap_or(usize::from(thread.cpu)))
            })
            .collect();
        let mut now = BTreeMap::new();
        if threads.len() > 1 {
            let seen: Vec<usize> = threads.iter().map(|(_, home)| *home).collect();
            let others = self.programs.iter().filter(|(other, _)| **other != id);
            let others: Vec<usize> =
                others.flat_map(|(_, other)| other.apart.values().map(|one| one.home)).collect();
            let load = |cpu: usize| others.iter().filter(|home| **home == cpu).count();
            let homes = homes(&seen, world.cpus, load);
            let cpus = masks(&homes, world.cpus, world.topology);
            let divided = threads.iter().zip(homes).zip(cpus);
            now = divided
                .map(|(((id, _), home), cpus)| (*id, BalancedThread { home, cpus }))
                .collect();
        }
        let mut is_news = false;
        for (thread, _) in &threads {
            let cpus = now.get(thread).map(|one| one.cpus);
            if cpus != before.apart.get(thread).map(|one| one.cpus) {
                plan.threads.push((*thread, ThreadRule { cpus, ..ThreadRule::default() }));
                is_news = true;
            }
        }
        for thread in &free {
            let is_new = !before.free.contains(&thread.id);
            // Where a thread is bound, a new one may have been born with its mask.
            if is_new && !before.apart.is_empty() {
                plan.threads.push((thread.id, ThreadRule::default()));
            }
        }
        if is_news && !now.is_empty() {
            let most = threads.len().div_ceil(world.cpus.len().max(1)) as u16;
            plan.aside(id, BalanceReason::KeptApart { threads: threads.len() as u16, most });
        }
        let free = free.iter().map(|thread| thread.id).collect();
        self.programs.insert(id, BalancedProgram { apart: now, free });
    }
}

impl Policy for Balance {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let mut changed = Vec::new();
        for cause in causes {
            match *cause {
                Cause::Arrived(id) => self.arrived(id, world, plan),
                Cause::Exited(id, _) | Cause::Commanded(UserCommand::Detach(id)) => {
                    self.programs.remove(&id);
                }
                Cause::ThreadsChanged(id) | Cause::Sampled(id) => changed.push(id),
                Cause::MachineChanged => changed.extend(self.programs.keys()),
                _ => {}
            }
        }
        changed.sort_unstable();
        changed.dedup();
        changed.into_iter().for_each(|id| self.divide(id, world, plan));
    }
}

/// The home of each sibling, which is on this CPU now. Each CPU gets equally many, or one more.
fn homes(seen: &[usize], cpus: &CpuSet, load: impl Fn(usize) -> usize) -> Vec<usize> {
    let (each, mut extra) = (seen.len() / cpus.len().max(1), seen.len() % cpus.len().max(1));
    let mut taken: BTreeMap<usize, usize> = cpus.iter().map(|cpu| (cpu, 0)).collect();
    let mut stays = |cpu: &usize| {
        let Some(taken) = taken.get_mut(cpu).filter(|taken| **taken < each + extra.min(1)) else {
            return false;
        };
        extra -= usize::from(*taken == each);
        *taken += 1;
        true
    };
    let kept: Vec<Option<usize>> = seen.iter().map(|cpu| stays(cpu).then_some(*cpu)).collect();
    let least = |home: Option<usize>| {
        home.unwrap_or_else(|| {
            let key = |(cpu, taken): &(&usize, &mut usize)| (**taken, load(**cpu), **cpu);
            let free = taken.iter_mut().min_by_key(key);
            free.map_or(0, |(cpu, taken)| {
                *taken += 1;
                *cpu
            })
        })
    };
    kept.into_iter().map(least).collect()
}

/// The CPUs that each sibling may use: its home, and a part of those that are no sibling's home.
fn masks(homes: &[usize], cpus: &CpuSet, topology: &Topology) -> Vec<CpuSet> {
    let mut masks: Vec<CpuSet> = homes.iter().map(|home| [*home].into_iter().collect()).collect();
    let near = |a: usize, b: usize| {
        let (Some(a), Some(b)) = (topology.cpu(a), topology.cpu(b)) else { return 0 };
        Level::ALL.iter().filter(|level| a.group(**level) == b.group(**level)).count()
    };
    for cpu in cpus.iter().filter(|cpu| !homes.contains(cpu)) {
        let key = |i: &usize| (masks[*i].len(), std::cmp::Reverse(near(homes[*i], cpu)), *i);
        let Some(next) = (0..homes.len()).min_by_key(key) else { break };
        masks[next].insert(cpu);
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::testkit::{Lab, program};

    /// A machine, and programs with threads that were last seen on these CPUs.
    fn lab(cpus: u16, programs: &[&[u16]]) -> Lab<Balance> {
        let all = (0u16..).zip(programs).map(|(slot, seen)| program(slot, seen.len() as u16));
        let mut lab = Lab::new(Balance::default(), cpus, all.collect());
        programs.iter().zip(0..).for_each(|(seen, slot)| has_threads(&mut lab, slot, seen));
        lab
    }

    /// A program has threads on these CPUs from now on.
    fn has_threads(lab: &mut Lab<Balance>, slot: u16, seen: &[u16]) {
        let id = ProgramId::first(slot);
        lab.scene.threads.retain(|thread| thread.program != id);
        let thread = |(number, cpu): (u32, &u16)| Thread {
            id: ThreadId { slot: u32::from(slot) * 100 + number, generation: 0 },
            program: id,
            process: 0,
            cpu: *cpu,
            on_cpu: Nanos::ZERO,
            mask_owner: MaskOwner::Cosched,
        };
        lab.scene.threads.extend((0..).zip(seen).map(thread));
        lab.scene.threads.sort_by_key(|thread| thread.id);
        for program in &mut lab.scene.programs {
            let of = |thread: &Thread| thread.program == program.id;
            let from = lab.scene.threads.iter().position(of).unwrap_or(0);
            let length = lab.scene.threads.iter().filter(|thread| of(thread)).count();
            program.threads = from as u32..(from + length) as u32;
        }
        lab.tell(&[Cause::ThreadsChanged(id)]);
    }

    fn given(lab: &Lab<Balance>, slot: u16) -> Vec<String> {
        let threads = lab.policy.programs[&ProgramId::first(slot)].apart.values();
        threads.map(|thread| thread.cpus.to_string()).collect()
    }

    /// Two siblings on one CPU of four: the second gets another CPU, and the rest is divided.
    #[test]
    fn siblings_get_cpus_that_leave_each_other_out() {
        let lab = lab(4, &[&[0, 0]]);
        assert_eq!(given(&lab, 0), ["0,2", "1,3"]);
        assert_eq!(lab.plan.threads.len(), 2);
        let reason = lab.plan.reasons[0].why.read();
        assert_eq!(reason, Some(BalanceReason::KeptApart { threads: 2, most: 1 }));
    }

    /// Figure 3 of the paper: programs of four and two threads on four CPUs. Both threads of the
    /// second share CPUs with the first, but never one with each other. Both go where the fewest
    /// others are: to CPUs without a thread of a third program.
    #[test]
    fn programs_share_cpus_and_siblings_do_not() {
        let mut lab = lab(4, &[&[3, 2, 1, 0], &[1, 1]]);
        assert_eq!(given(&lab, 0), ["3", "2", "1", "0"], "each stays where it is");
        assert_eq!(given(&lab, 1), ["1-2", "0,3"]);
        lab.arrive(program(2, 3));
        has_threads(&mut lab, 2, &[1, 1, 1]);
        let homes = |slot| {
            let threads = lab.policy.programs[&ProgramId::first(slot)].apart.values();
            threads.map(|thread| thread.home).collect::<Vec<_>>()
        };
        assert_eq!(homes(2), [1, 2, 3], "the homes of the second program are 1 and 0");
    }

    /// Five threads on two CPUs: at most three on one.
    #[test]
    fn too_many_threads_are_divided_evenly() {
        let lab = lab(2, &[&[0, 0, 0, 0, 1]]);
        assert_eq!(given(&lab, 0), ["0", "0", "0", "1", "1"]);
        assert_eq!(homes(&[1; 4], &CpuSet::first(2), |_| 0), [1, 1, 0, 0]);
        assert_eq!(homes(&[0, 1, 7, 7], &CpuSet::first(3), |cpu| 2 - cpu), [0, 1, 2, 2]);
    }

    #[test]
    fn a_thread_keeps_its_home_when_others_come_and_go() {
        let mut lab = lab(4, &[&[3, 3]]);
        assert_eq!(given(&lab, 0), ["1,3", "0,2"]);
        has_threads(&mut lab, 0, &[1, 2, 0]);
        assert_eq!(given(&lab, 0), ["2-3", "0", "1"], "homes are 3, 0 and 1");
        has_threads(&mut lab, 0, &[1]);
        let original = ThreadRule::default();
        assert_eq!(
            lab.plan.threads,
            [(ThreadId { slot: 0, generation: 0 }, original)],
            "one alone may run anywhere"
        );
        lab.tell(&[Cause::Sampled(ProgramId::first(0))]);
        assert!(lab.plan.threads.is_empty());
    }

    /// A shell beside a program with two threads: it is not bound, and what it starts next counts
    /// all CPUs.
    #[test]
    fn a_process_with_one_thread_is_not_bound() {
        let mut lab = lab(2, &[&[0, 0]]);
        assert_eq!(given(&lab, 0), ["0", "1"]);
        has_threads(&mut lab, 0, &[0, 0, 0]);
        assert_eq!(given(&lab, 0).len(), 3, "all in one process");
        lab.scene.threads[2].process = 1;
        lab.tell(&[Cause::Sampled(ProgramId::first(0))]);
        assert_eq!(given(&lab, 0), ["0", "1"]);
        let shell = lab.scene.threads[2].id;
        assert_eq!(lab.plan.threads, [(shell, ThreadRule::default())]);
        lab.tell(&[Cause::Sampled(ProgramId::first(0))]);
        assert!(lab.plan.threads.is_empty());
    }

    #[test]
    fn threads_that_others_have_bound_are_left_alone() {
        let mut lab = lab(2, &[&[0, 0, 0]]);
        lab.scene.threads[1].mask_owner = MaskOwner::User;
        lab.tell(&[Cause::Sampled(ProgramId::first(0))]);
        assert_eq!(given(&lab, 0), ["0", "1"]);
    }
}
