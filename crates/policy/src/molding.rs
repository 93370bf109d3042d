//! The thread counts that moldable programs are started with.
//!
//! *Problem.* A program that uses as many threads as there are CPUs does so as if it were alone.
//! With co-runners, its last threads may gain less than they take from the others.
//!
//! *Idea.* The solo times of each program, by thread count, show which counts are [best](advise).
//! Since `auto` may find a mode that is better than gangs, and programs cannot go back, these
//! counts have to be better than anything that is possible with the requested counts: than the
//! earliest end by CPU time alone.
//!
//! *Terms.* A program is *moldable* if it may have fewer threads from its start to its end, and
//! *malleable* if it may have more or fewer at any time (Feitelson and Rudolph, 1996).

use cosched_core::{Cause, Nanos, Plan, Policy, Reason, World};

use crate::advice::{Candidate, ROUNDING, advise, predict};
use crate::common::reasons::SharedReason;
use crate::gangs::greedy;
use crate::params::Params;

pub(crate) mod params;

/// The thread counts with which programs are started, where some of them are moldable. `None`: as
/// many as they request.
///
/// Programs that are not moldable are candidates with one known count only. The counts are compared
/// with the earliest end that is [possible](soonest) with the requested counts, since `auto` may
/// find a mode that comes near to that.
pub fn mold(programs: &[Candidate], cpus: usize, params: &Params) -> Option<Vec<u16>> {
    let mut counts = advise(round, programs, cpus);
    let asked: Vec<u16> = programs.iter().map(|program| program.most(cpus)).collect();
    let total = |counts: &[u16]| predict(round, programs, counts, cpus).total_seconds;
    let fewer = total(&counts);
    let worth = params.molding.worth;
    if fewer > (1.0 - worth) * soonest(programs, cpus).min(total(&asked)) {
        return None;
    }
    // Programs keep their threads if these are in no other program's way.
    for (slot, most) in asked.into_iter().enumerate() {
        let before = std::mem::replace(&mut counts[slot], most);
        if total(&counts) > fewer * (1.0 + ROUNDING) {
            counts[slot] = before;
        }
    }
    Some(counts)
}

/// How many quanta a round has under `auto`. A single-threaded program waits for no sibling, so
/// each can have its share of the CPUs. Other programs may need all of their CPUs at once: they run
/// in gangs.
fn round(sizes: &[usize], cpus: usize) -> f64 {
    match sizes.iter().all(|size| *size <= 1) {
        true => sizes.len() as f64 / cpus.max(1) as f64,
        false => greedy::turns(sizes, cpus),
    }
}

/// A policy, and the reason why a program arrived with fewer threads than it requests.
pub(crate) struct ReportsMolding(pub(crate) Box<dyn Policy + Send>);

impl Policy for ReportsMolding {
    fn decide(&mut self, causes: &[Cause], world: &World<'_>, plan: &mut Plan) {
        let molded = causes.iter().filter_map(|cause| match cause {
            Cause::Arrived(id) => {
                let program = world.program(*id)?;
                let requested = program.profile.molded?.requested;
                let why = SharedReason::Molded { threads: program.thread_count, requested }.into();
                Some(Reason { program: Some(*id), why })
            }
            _ => None,
        });
        plan.reasons.extend(molded);
        self.0.decide(causes, world, plan);
    }
}

/// No policy can finish all programs before this time with the requested threads. The CPU time of
/// all programs that arrive from some time on has to fit on the CPUs from then on, and no program
/// is faster than alone. Threads that sleep leave their CPUs to others; those that spin do not.
fn soonest(programs: &[Candidate], cpus: usize) -> f64 {
    let cpu_seconds = |program: &Candidate| {
        let most = program.most(cpus);
        let cpu = program.cpu.map(|cpu| cpu.as_secs_f64());
        f64::from(program.runs) * cpu.unwrap_or_else(|| f64::from(most) * program.alone(most))
    };
    let from = |at: Nanos| {
        let work = programs.iter().filter(|program| program.arrives >= at).map(cpu_seconds);
        at.as_secs_f64() + work.sum::<f64>() / cpus.max(1) as f64
    };
    let alone = |program: &Candidate| {
        let run = program.alone(program.most(cpus));
        program.arrives.as_secs_f64() + f64::from(program.runs) * run
    };
    let ends = programs.iter().map(|program| from(program.arrives).max(alone(program)));
    ends.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::tests::candidate;

    fn molded(programs: &[Candidate], cpus: usize) -> Option<Vec<u16>> {
        mold(programs, cpus, &Params::default())
    }

    /// Fewer threads are given only where all programs end earlier than by taking turns.
    #[test]
    fn fewer_threads_are_given_only_where_all_end_sooner() {
        let script = candidate(&[(1, 1375), (2, 875)]);
        assert_eq!(molded(&vec![script.clone(); 4], 2), Some(vec![1; 4]));
        assert_eq!(molded(std::slice::from_ref(&script), 2), None, "alone it is faster with both");
        let scales = candidate(&[(1, 1000), (2, 505)]);
        assert_eq!(molded(&vec![scales; 4], 2), None, "a hundredth is no reason");
        let late = Candidate { arrives: Nanos::from_secs(2), ..script.clone() };
        let all = [vec![script], vec![late; 4]].concat();
        assert_eq!(molded(&all, 2), Some(vec![2, 1, 1, 1, 1]), "it is alone until it has ended");
    }

    #[test]
    fn threads_that_sleep_and_leave_cpus_are_kept() {
        // Half of its work is for one thread alone. Meanwhile the other one sleeps, or spins.
        let half = candidate(&[(1, 1000), (2, 770)]);
        let cpu = |ms| vec![Candidate { cpu: Some(Nanos::from_millis(ms)), ..half.clone() }; 2];
        assert_eq!(
            molded(&cpu(1000), 2),
            None,
            "running together, all could also be done within a second"
        );
        assert_eq!(molded(&cpu(1540), 2), Some(vec![1, 1]));
    }

    #[test]
    fn threads_with_cpus_of_no_use_to_others_are_kept() {
        // One needs both CPUs at once, so the other one has them in its turns, whether it uses one
        // or two.
        let (wide, half) = (candidate(&[(2, 800)]), candidate(&[(1, 800), (2, 500)]));
        assert_eq!(molded(&[wide, half.clone()], 2), None);
        assert_eq!(molded(&[half.clone(), half], 2), Some(vec![1, 1]));
    }

    #[test]
    fn a_long_program_keeps_its_threads_for_its_end() {
        let (long, short) = (candidate(&[(1, 3000), (2, 1520)]), candidate(&[(1, 300), (2, 152)]));
        let counts = molded(&[long, short.clone(), short.clone(), short], 2);
        assert!(counts.is_none_or(|counts| counts[0] == 2));
    }
}
