//! How each program of a run waits at barriers: as somebody has said, or as is chosen for it.
//!
//! *Problem.* Runtimes of OpenMP have their threads look on for each other for long, which keeps CPUs from those that are waited
//! for: programs take a multiple of the time where they compete. They can wait in another way only if they were started so.
//! Where a policy chooses by itself, nobody has to know that.
//!
//! *Idea.* cosched's own barrier gains much where a program shares its CPUs with others, and may cost something where it does
//! not (`docs/barrier.md`). So programs are prepared for it by what is known before the start: how many threads they ask for.
//! The machine then has it used only [while they share CPUs](cosched_linux::hook::Door::share).
//!
//! *Programs that take turns* need no other barrier: in a gang nobody waits for a thread without a CPU. One that was chosen for
//! them all the same cost up to 2.4 times as much as it gained (docs/auto.md). So it is chosen only where somebody may not be
//! frozen, who shares CPUs with the others whatever the policy does.
//!
//! *Algorithm.* Where there are several programs, which ask for more threads together than there are CPUs, and one of which may
//! not be frozen, each that asks for two or more gets it, if nobody has said how it is to wait and [nothing stands in the
//! way](obstacle). Whoever comes later counts: a program cannot be given another barrier when another one comes. With the goal
//! `throughput` nobody gets it, as programs that fill the CPUs run alone then.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use cosched_core::result::BarrierResult;
use cosched_core::workload::{Barrier, ProgramSpec};
use cosched_linux::hook::{self, Obstacle, is_sanitizer, obstacle};
use cosched_policy::{Goal, Kind};
use cosched_report::words;

use super::{Origins, Request, Session, between};

/// Names of more programs than this are not spelt out.
const NAMES: usize = 6;
/// What programs read that were built with gcc's sanitizer for addresses.
const ADDRESS_SANITIZER: &str = "ASAN_OPTIONS";
/// Tells them to run although another library was loaded first.
const NOT_FIRST: &str = "verify_asan_link_order=0";

/// How a program waits at barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// As was said, or in its own way since nothing is chosen.
    Said(Barrier),
    /// At barriers of cosched, by choice.
    Chosen,
    /// In its own way, since these cannot go in, which were chosen.
    Barred(String),
}

impl Waiting {
    pub(crate) fn way(&self) -> Barrier {
        match self {
            Waiting::Said(way) => *way,
            Waiting::Chosen => Barrier::Donate,
            Waiting::Barred(_) => Barrier::Own,
        }
    }

    pub(crate) fn is_chosen(&self) -> bool {
        *self == Waiting::Chosen
    }

    /// What is told of it, as far as it is known before the start; `None`: it is nothing to tell.
    pub(super) fn result(&self, environment: &[(OsString, OsString)]) -> Option<BarrierResult> {
        let (way, lacks) = match self {
            Waiting::Said(Barrier::Own) => return None,
            Waiting::Barred(why) => (Barrier::Own, Some(why.clone())),
            other => (other.way(), None),
        };
        let bound = between::bound(environment).filter(|_| way == Barrier::Donate);
        let bound = bound.map(|(name, value)| (name.into(), value.into()));
        let between_regions = bound.into_iter().collect();
        let chosen = !matches!(self, Waiting::Said(_));
        Some(BarrierResult { way, lacks, chosen, meetings: None, between_regions })
    }
}

/// What is known of a program before the start.
#[derive(Clone, Copy, Debug)]
struct Demand {
    /// How many threads it asks for.
    asked: u16,
    /// Somebody has said how it is to wait.
    is_said: bool,
    /// It may not be frozen.
    never_frozen: bool,
}

/// Of each program whether it is to have another barrier than its own.
fn choose(demands: &[Demand], cpus: usize) -> Vec<bool> {
    let share = demands.len() > 1
        && in_all(demands, cpus) > cpus
        && demands.iter().any(|one| one.never_frozen);
    demands.iter().map(|one| share && one.asked > 1 && !one.is_said).collect()
}

/// How many threads they ask for together. One that asks for more than there are CPUs has as many.
fn in_all(demands: &[Demand], cpus: usize) -> usize {
    demands.iter().map(|one| usize::from(one.asked).clamp(1, cpus.max(1))).sum()
}

impl Session {
    /// How each program waits at barriers.
    pub(crate) fn waiting(&self, request: &Request<'_>) -> Vec<Waiting> {
        let programs = &request.workload.programs;
        let may_choose = request.kind == Kind::Auto
            && request.origins == Origins::Started
            && request.how.policy.goal != Some(Goal::Throughput)
            && !self.description.is_simulated();
        let chosen = match may_choose {
            true => choose(&self.demands(request), self.usable.cpus.len()),
            false => vec![false; programs.len()],
        };
        let waiting = |(spec, chosen): (&ProgramSpec, bool)| match chosen {
            false => Waiting::Said(request.how.barrier(spec)),
            true => self.barred(spec).map_or(Waiting::Chosen, Waiting::Barred),
        };
        programs.iter().zip(chosen).map(waiting).collect()
    }

    fn demands(&self, request: &Request<'_>) -> Vec<Demand> {
        let demand = |spec: &ProgramSpec| {
            let environment = spec.environment(self.environment.iter().cloned());
            let is_said = request.how.said_barrier(spec).is_some();
            Demand {
                asked: self.threads(spec),
                is_said: is_said || between::is_said(&environment),
                never_frozen: spec.freezable == Some(false),
            }
        };
        request.workload.programs.iter().map(demand).collect()
    }

    /// Why the library cannot go into a program. A file that is not there is told by others.
    fn barred(&self, spec: &ProgramSpec) -> Option<String> {
        let own = match std::env::current_exe() {
            Ok(own) => own,
            Err(error) => return Some(error.to_string()),
        };
        if let Err(error) = hook::library(&own) {
            return Some(error.to_string());
        }
        if preloads_sanitizer(&spec.environment(self.environment.iter().cloned())) {
            return Some(Obstacle::Sanitizer.to_string());
        }
        let file = self.executable(spec).ok()?;
        obstacle(&spec.program_of(&file), &own).map(|obstacle| obstacle.to_string())
    }

    /// What people are told of what was chosen; `None`: nothing was.
    pub(super) fn told(
        &self,
        request: &Request<'_>,
        waiting: &[Waiting],
        knows: bool,
    ) -> Option<String> {
        let programs = request.workload.programs.iter().zip(waiting);
        let chosen = programs.filter(|(_, waiting)| waiting.is_chosen());
        let names: Vec<&str> = chosen.map(|(spec, _)| spec.name.as_str()).collect();
        let (cpus, demands) = (self.usable.cpus.len(), self.demands(request));
        line(&names, in_all(&demands, cpus), cpus, knows)
    }
}

/// Whether somebody has a sanitizer loaded into a program that knows nothing of it.
fn preloads_sanitizer(environment: &[(OsString, OsString)]) -> bool {
    let preloaded = environment.iter().filter(|(name, _)| name == hook::PRELOAD);
    let mut libraries =
        preloaded.flat_map(|(_, list)| list.as_bytes().split(|byte| b" :".contains(byte)));
    libraries.any(|library| is_sanitizer(OsStr::from_bytes(library)))
}

fn line(names: &[&str], asked: usize, cpus: usize, knows: bool) -> Option<String> {
    let spelt = names.iter().take(NAMES).map(|name| (*name).to_owned());
    let more = names.len().checked_sub(NAMES).filter(|more| *more > 0);
    let names: Vec<String> = spelt.chain(more.map(|more| format!("{more} more"))).collect();
    let by_time = match knows {
        true => "",
        false => ", by time alone (`cosched doctor` tells why)",
    };
    (!names.is_empty()).then(|| {
        format!(
            "OpenMP threads of {} wait for each other at barriers of cosched{by_time} while they share CPUs, since together \
             the programs ask for more threads ({asked}) than there are CPUs ({cpus}), and not all may be frozen; --barrier own leaves them their own",
            words::list(&names)
        )
    })
}

/// A program may start others that were built with gcc's sanitizer for addresses, which end where another library was loaded before
/// theirs, and nobody has asked for that library. They are told not to mind; whatever else they are told stays.
pub(super) fn spare_sanitized(env: &mut Vec<(OsString, OsString)>) {
    match env.iter_mut().find(|(name, _)| name == ADDRESS_SANITIZER) {
        Some((_, options)) if !options.is_empty() => options.push(format!(":{NOT_FIRST}")),
        Some((_, options)) => *options = NOT_FIRST.into(),
        None => env.push((ADDRESS_SANITIZER.into(), NOT_FIRST.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Programs that ask for so many threads and may not be frozen, of which nobody has said how they wait.
    fn asking(all: &[u16]) -> Vec<Demand> {
        let demand = |asked: &u16| Demand { asked: *asked, is_said: false, never_frozen: true };
        all.iter().map(demand).collect()
    }

    #[test]
    fn one_program_alone_and_programs_with_cpus_for_all_keep_their_barriers() {
        assert_eq!(choose(&asking(&[4]), 4), [false]);
        assert_eq!(choose(&asking(&[9]), 4), [false]);
        assert_eq!(choose(&asking(&[2, 2]), 4), [false; 2]);
        assert_eq!(choose(&asking(&[]), 4), [false; 0]);
    }

    #[test]
    fn where_cpus_are_short_all_get_others_but_those_with_one_thread() {
        assert_eq!(choose(&asking(&[4, 4]), 4), [true; 2]);
        assert_eq!(choose(&asking(&[3, 2]), 4), [true; 2]);
        assert_eq!(choose(&asking(&[4, 1]), 4), [true, false]);
        assert_eq!(choose(&asking(&[1; 9]), 4), [false; 9]);
    }

    #[test]
    fn programs_that_can_all_take_turns_keep_their_barriers() {
        let mut demands = asking(&[4, 4, 4]);
        demands.iter_mut().for_each(|one| one.never_frozen = false);
        assert_eq!(choose(&demands, 4), [false; 3]);
        demands[1].never_frozen = true;
        assert_eq!(choose(&demands, 4), [true; 3], "the others share CPUs with it");
    }

    #[test]
    fn what_somebody_has_said_stays_said_and_its_threads_count() {
        let open = Demand { asked: 2, is_said: false, never_frozen: true };
        let said = Demand { asked: 4, is_said: true, ..open };
        assert_eq!(choose(&[said, open], 4), [false, true]);
        assert_eq!(choose(&[said, said], 4), [false, false]);
    }

    #[test]
    fn no_program_asks_for_more_than_there_is() {
        assert_eq!(in_all(&asking(&[64, 0, 2]), 4), 4 + 1 + 2);
    }

    #[test]
    fn what_is_told_names_the_programs_the_reason_and_the_way_out() {
        let told = line(&["a", "b"], 4, 2, true).unwrap();
        for part in ["threads of a and b ", "threads (4)", "CPUs (2)", "--barrier own"] {
            assert!(told.contains(part), "{told}");
        }
        let told = line(&["a", "b", "c", "d", "e", "f", "g", "h"], 16, 2, false).unwrap();
        assert!(told.contains("f and 2 more wait") && told.contains("by time alone"), "{told}");
        assert!(!line(&["a"], 4, 2, true).unwrap().contains("by time alone"));
        assert_eq!(line(&[], 4, 2, true), None);
    }

    #[test]
    fn a_sanitizer_that_is_preloaded_is_seen_among_other_libraries() {
        let env = |list: &str| [(OsString::from(hook::PRELOAD), OsString::from(list))];
        assert!(preloads_sanitizer(&env("libm.so.6:/usr/lib/libasan.so.8")));
        assert!(!preloads_sanitizer(&env("libm.so.6 libjemalloc.so")));
        assert!(!preloads_sanitizer(&[]));
    }

    #[test]
    fn what_sanitized_programs_are_told_already_stays() {
        let after = |options: Option<&str>| {
            let mut env: Vec<_> =
                options.map(|value| (ADDRESS_SANITIZER.into(), value.into())).into_iter().collect();
            spare_sanitized(&mut env);
            env.remove(0).1.into_string().unwrap()
        };
        assert_eq!(after(None), NOT_FIRST);
        assert_eq!(after(Some("")), NOT_FIRST);
        assert_eq!(after(Some("detect_leaks=0")), format!("detect_leaks=0:{NOT_FIRST}"));
    }

    #[test]
    fn what_was_chosen_is_told_and_what_was_to_be_but_could_not_and_not_what_is_as_ever() {
        assert_eq!(Waiting::Said(Barrier::Own).result(&[]), None);
        let spin = Waiting::Said(Barrier::Spin).result(&[]).unwrap();
        assert!(!spin.chosen && spin.between_regions.is_empty());
        let chosen = Waiting::Chosen.result(&[]).unwrap();
        assert_eq!((chosen.way, chosen.chosen, chosen.lacks), (Barrier::Donate, true, None));
        assert!(!chosen.between_regions.is_empty());
        let barred = Waiting::Barred("why".to_owned()).result(&[]).unwrap();
        assert_eq!((barred.way, barred.chosen), (Barrier::Own, true));
        assert_eq!(barred.lacks.as_deref(), Some("why"));
        assert!(barred.between_regions.is_empty());
    }
}
