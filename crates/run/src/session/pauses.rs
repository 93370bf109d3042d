//! What pauses could break in the programs of a run: the limits that follow, and what is said
//! before the start.

use cosched_core::engine::ProgramSetup;
use cosched_core::format::{count, list, span};
use cosched_core::{Nanos, Profile};
use cosched_linux::control::run_cgroups::{FreezerBackend, RunCgroups};
use cosched_policy::OptionGroup;
use cosched_workload::{PauseRisks, ProgramSpec, SeesStops};

use super::here::Session;
use super::request::{Origins, Request};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pauses {
    /// No program is paused: they take turns by weight.
    No,
    By(FreezerBackend),
}

impl Pauses {
    pub(super) fn of(cgroups: &RunCgroups) -> Pauses {
        match cgroups.is_by_weight() {
            true => Pauses::No,
            false => Pauses::By(cgroups.freezer()),
        }
    }
}

impl Session {
    /// What pauses could break in each program. Nothing, where the user says whether a program may
    /// be paused.
    pub(super) fn pause_risks(&self, request: &Request<'_>) -> Vec<PauseRisks> {
        let may_read = !self.description.is_simulated();
        let risks = |spec: &ProgramSpec| match spec.freezable {
            Some(_) => PauseRisks {
                time_limit: spec.pause_risks(&self.environment, may_read).time_limit,
                ..PauseRisks::default()
            },
            None => spec.pause_risks(&self.environment, may_read),
        };
        let pauses = request.kind.makes_gangs() && request.origins == Origins::Started;
        let programs = request.workload.programs.iter().filter(|_| pauses);
        let mut all: Vec<PauseRisks> = programs.map(risks).collect();
        all.resize_with(request.workload.programs.len(), PauseRisks::default);
        all
    }

    /// Tells the user before the start what pauses could break.
    pub(super) fn tell_of_pauses(&self, request: &Request<'_>, threads: &[u16], pauses: Pauses) {
        let cpus = self.usable.cpus.len().max(1);
        let sizes: Vec<usize> = threads.iter().map(|n| usize::from(*n).min(cpus)).collect();
        let lets_end = request.kind.takes(OptionGroup::Goal) && request.how.goal().lets_end();
        let rounds = match request.kind.descriptor().round {
            Some(round) => round(&sizes, cpus).ceil() as usize,
            // No time limit of a program runs before it starts.
            None if request.kind.starts_in_order() && pauses != Pauses::No => 1,
            None => sizes.iter().sum::<usize>().div_ceil(cpus),
        };
        let mut messages = PauseMessages::default();
        let programs = request.workload.programs.iter().zip(request.profiles);
        for ((spec, profile), risks) in programs.zip(self.pause_risks(request)) {
            let name = &spec.name;
            let max_frozen = request.how.max_frozen();
            let risks = &risks;
            let is_grouped = spec.group.is_some();
            messages.add(&ProgramFacts {
                name,
                risks,
                profile,
                rounds,
                start: LimitStart::of(lets_end, is_grouped, pauses),
                pauses,
                max_frozen,
            });
        }
        let talk = request.extras.talk;
        let (warnings, details) = messages.shown();
        warnings.iter().for_each(|text| talk.tell(format_args!("{text}")));
        details.iter().for_each(|text| talk.detail(format_args!("{text}")));
    }
}

/// Limits how long a program may be paused, and notes what ends it after a while.
pub(super) fn limit(entry: &mut ProgramSetup, risks: &PauseRisks) {
    entry.freezable &= !risks.forbid_pauses();
    entry.time_limit = risks.time_limit;
    entry.max_frozen = risks.test_runner.is_some().then_some(PauseRisks::OF_TESTS);
}

/// The most warnings of one run. The others are details.
const MOST_WARNINGS: usize = 4;

/// What is said of programs, each text once: the names of the programs, and what follows them.
#[derive(Debug, Default, PartialEq, Eq)]
struct PauseMessages {
    /// What the user has to know.
    warnings: Vec<(Vec<String>, String)>,
    /// What is done about it.
    details: Vec<(Vec<String>, String)>,
}

/// When the time limit of a program begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LimitStart {
    /// At once: turns of other programs use it up.
    AtOnce,
    /// At once, while other programs may have their turns until they end.
    BehindOthers,
    /// With its turn, which lasts until it ends.
    WithTurn,
    /// With its turn, or earlier as a filler.
    Held,
}

impl LimitStart {
    fn of(lets_end: bool, is_grouped: bool, pauses: Pauses) -> LimitStart {
        match pauses {
            _ if !lets_end => LimitStart::AtOnce,
            Pauses::By(_) => LimitStart::WithTurn,
            // The programs of a group need each other.
            Pauses::No if is_grouped => LimitStart::BehindOthers,
            Pauses::No => LimitStart::Held,
        }
    }
}

struct ProgramFacts<'a> {
    name: &'a str,
    risks: &'a PauseRisks,
    profile: &'a Profile,
    /// How many times as long as alone it may take because of turns.
    rounds: usize,
    start: LimitStart,
    pauses: Pauses,
    /// The longest pause of a program that has no other limit.
    max_frozen: Nanos,
}

impl PauseMessages {
    fn add(&mut self, facts: &ProgramFacts<'_>) {
        let name = facts.name;
        add(&mut self.warnings, name, time_limit(facts));
        add(&mut self.details, name, held(facts));
        if facts.pauses == Pauses::No {
            return;
        }
        add(&mut self.warnings, name, watchdog(facts));
        add(&mut self.warnings, name, stops(facts));
        add(&mut self.warnings, name, interactive(facts));
        add(&mut self.details, name, tests(facts));
    }

    /// The warnings, if they are few, and the details. The rest of many warnings become details.
    fn shown(&self) -> (Vec<String>, Vec<String>) {
        let (few, rest) = self.warnings.split_at(self.warnings.len().min(MOST_WARNINGS));
        let mut warnings: Vec<String> = few.iter().map(message).collect();
        if !rest.is_empty() {
            let more = count(rest.len(), "more warning", "more warnings");
            warnings.push(format!("{more} of pauses: `--verbose` shows them"));
        }
        (warnings, rest.iter().chain(&self.details).map(message).collect())
    }
}

/// Adds a program's name to a text.
fn add(all: &mut Vec<(Vec<String>, String)>, name: &str, text: Option<String>) {
    let Some(text) = text else { return };
    match all.iter_mut().find(|(_, known)| *known == text) {
        Some((names, _)) => names.push(name.to_owned()),
        None => all.push((vec![name.to_owned()], text)),
    }
}

/// `a can see ...`, or `a (also b and c) can see ...`.
fn message((names, text): &(Vec<String>, String)) -> String {
    match names.split_first() {
        Some((first, others)) if !others.is_empty() => {
            format!("{first} (also {}) {text}", list(others))
        }
        _ => format!("{} {text}", names.concat()),
    }
}

/// What to type where turns may use up the time of a program.
const TIME_REMEDY: &str = "Remedy: a longer `timeout`, or `--policy fcfs`, which starts each \
                           program only when it has the CPUs";

fn time_limit(facts: &ProgramFacts<'_>) -> Option<String> {
    let rounds = facts.rounds as u64;
    let limit = facts.risks.time_limit.filter(|_| rounds > 1)?;
    match facts.start {
        LimitStart::AtOnce => {}
        LimitStart::BehindOthers => {
            return Some(format!(
                "may be ended too soon: its `timeout` of {} begins at once, and the programs \
                 before it have their turns until they end. Remedy: a longer `timeout`",
                rounded(limit)
            ));
        }
        LimitStart::WithTurn | LimitStart::Held => return None,
    }
    let takes = match facts.profile.solo {
        Some(solo) if solo * rounds <= limit => return None,
        Some(solo) => {
            let (all, solo) = (rounded(solo * rounds), rounded(solo));
            format!("about {all}, and {solo} alone")
        }
        None => {
            let enough = rounded(limit / rounds);
            format!(
                "about {rounds} times as long as alone. That is enough for a program that takes \
                 up to {enough} alone"
            )
        }
    };
    Some(format!(
        "may be ended too soon: its `timeout` is {}, and taking turns with other programs, \
         it takes {takes}. {TIME_REMEDY}",
        rounded(limit)
    ))
}

fn held(facts: &ProgramFacts<'_>) -> Option<String> {
    let limit = facts.risks.time_limit.filter(|_| facts.start == LimitStart::Held)?;
    Some(format!(
        "starts with its turn, or earlier if the programs in turn leave CPUs idle or take very \
         long: its `timeout` of {} begins then",
        rounded(limit)
    ))
}

fn watchdog(ProgramFacts { risks, .. }: &ProgramFacts<'_>) -> Option<String> {
    const TEXT: &str = "is never paused: WATCHDOG_USEC is in its environment, so systemd may wait \
                        for its reports. `freezable = true` in a jobs file pauses it; `--turns \
                        weight` pauses no program";
    risks.has_watchdog.then(|| TEXT.to_owned())
}

fn interactive(ProgramFacts { risks, .. }: &ProgramFacts<'_>) -> Option<String> {
    const TEXT: &str = "is never paused: its shell is interactive (`-i`). `freezable = true` in a \
                        jobs file pauses it";
    risks.is_interactive.then(|| TEXT.to_owned())
}

fn stops(ProgramFacts { risks, pauses, .. }: &ProgramFacts<'_>) -> Option<String> {
    let sees = risks.sees_stops.as_ref().filter(|_| !risks.forbid_pauses())?;
    if *pauses != Pauses::By(FreezerBackend::Signals) {
        return None;
    }
    let what = match sees {
        SeesStops::JobControl => {
            "its shell has job control, and may take a paused process for one that has ended"
                .to_owned()
        }
        SeesStops::Script(script) => {
            format!("{script} asks for stopped children (WUNTRACED), and pauses stop them")
        }
    };
    Some(format!(
        "can see that it is paused, since programs are paused by signals: {what}. Remedy: \
         `--turns weight` or `--freezer cgroup-v2` in place of signals, or `freezable = false` for \
         it in a jobs file"
    ))
}

fn tests(ProgramFacts { risks, max_frozen, .. }: &ProgramFacts<'_>) -> Option<String> {
    let is_shorter = *max_frozen > PauseRisks::OF_TESTS && !risks.forbid_pauses();
    let runner = risks.test_runner.as_ref().filter(|_| is_shorter)?;
    Some(format!(
        "runs tests ({runner}), which may have deadlines: it is paused for at most {} at a \
         stretch, and turns are as short as that takes. `freezable = true` in a jobs file allows \
         longer pauses",
        span(PauseRisks::OF_TESTS)
    ))
}

/// A time as people write it: `8 s`, `2.7 s`, `10 min`.
fn rounded(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s >= 7200.0 => format!("{:.0} h", s / 3600.0),
        s if s >= 120.0 => format!("{:.0} min", s / 60.0),
        s if s >= 9.95 || s == s.round() => format!("{s:.0} s"),
        s if s >= 0.95 => format!("{s:.1} s"),
        _ => span(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(
        risks: PauseRisks,
        solo: Option<u64>,
        rounds: usize,
        pauses: Pauses,
    ) -> (Vec<String>, Vec<String>) {
        said_of(risks, solo, rounds, LimitStart::AtOnce, pauses)
    }

    fn said_of(
        risks: PauseRisks,
        solo: Option<u64>,
        rounds: usize,
        start: LimitStart,
        pauses: Pauses,
    ) -> (Vec<String>, Vec<String>) {
        let profile = Profile { solo: solo.map(Nanos::from_secs), ..Profile::default() };
        let mut messages = PauseMessages::default();
        let (risks, profile, max_frozen) = (&risks, &profile, Nanos::from_secs(1));
        messages.add(&ProgramFacts {
            name: "a",
            risks,
            profile,
            rounds,
            start,
            pauses,
            max_frozen,
        });
        messages.shown()
    }

    fn nothing() -> (Vec<String>, Vec<String>) {
        (Vec::new(), Vec::new())
    }

    const SIGNALS: Pauses = Pauses::By(FreezerBackend::Signals);
    const CGROUP: Pauses = Pauses::By(FreezerBackend::CgroupV2);

    #[test]
    fn a_timeout_that_turns_would_use_up_is_announced() {
        let of = |seconds| PauseRisks {
            time_limit: Some(Nanos::from_secs(seconds)),
            ..PauseRisks::default()
        };
        for pauses in [Pauses::No, SIGNALS, CGROUP] {
            let said = |seconds, solo, rounds| said(of(seconds), solo, rounds, pauses).0;
            let known = said(8, Some(3), 3);
            assert!(known[0].contains("`timeout` is 8 s") && known[0].contains("about 9 s"));
            assert!(known[0].contains("`--policy fcfs`"), "{known:?}");
            let unknown = said(8, None, 3);
            assert!(unknown[0].contains("takes up to 2.7 s alone"), "{unknown:?}");
            for enough in [said(9, Some(3), 3), said(8, None, 1), said(1, Some(3), 1)] {
                assert_eq!(enough, [""; 0]);
            }
        }
    }

    /// Programs of a group are not held back.
    #[test]
    fn time_limits_that_begin_with_the_turn_are_announced() {
        let said = |is_grouped, pauses| {
            let risks =
                PauseRisks { time_limit: Some(Nanos::from_secs(8)), ..PauseRisks::default() };
            said_of(risks, None, 3, LimitStart::of(true, is_grouped, pauses), pauses)
        };
        let (warnings, details) = said(false, Pauses::No);
        assert_eq!(warnings, [""; 0]);
        assert!(details[0].contains("starts with its turn") && details[0].contains("of 8 s"));
        let (warnings, details) = said(true, Pauses::No);
        assert!(warnings[0].contains("of 8 s begins at once"), "{warnings:?}");
        assert_eq!(details, [""; 0]);
        for is_grouped in [false, true] {
            assert_eq!(said(is_grouped, CGROUP), nothing());
        }
    }

    #[test]
    fn stops_are_announced_where_signals_pause_programs() {
        for sees in [SeesStops::JobControl, SeesStops::Script("boss.py".to_owned())] {
            let risks = PauseRisks { sees_stops: Some(sees), ..PauseRisks::default() };
            let warnings = said(risks.clone(), None, 3, SIGNALS).0;
            assert_eq!(warnings.len(), 1);
            for remedy in ["`--turns weight`", "`--freezer cgroup-v2`", "`freezable = false`"] {
                assert!(warnings[0].contains(remedy), "{warnings:?}");
            }
            for pauses in [Pauses::No, CGROUP] {
                assert_eq!(said(risks.clone(), None, 3, pauses), nothing());
            }
            let never = PauseRisks { is_interactive: true, ..risks };
            let (warnings, details) = said(never, None, 3, SIGNALS);
            assert_eq!(details, [""; 0]);
            assert_eq!(warnings.len(), 1);
            assert!(warnings[0].starts_with("a is never paused: its shell"), "{warnings:?}");
        }
    }

    #[test]
    fn many_warnings_are_shortened() {
        let mut messages = PauseMessages::default();
        for (name, text) in ["a", "b", "c"].into_iter().flat_map(|n| [(n, "x"), (n, "y")]) {
            add(&mut messages.warnings, name, Some(format!("can {text}")));
        }
        let (few, details) = messages.shown();
        assert_eq!(few, ["a (also b and c) can x", "a (also b and c) can y"]);
        assert_eq!(details, [""; 0]);
        (0..4).for_each(|n| add(&mut messages.warnings, "d", Some(format!("can {n}"))));
        let (few, details) = messages.shown();
        assert_eq!(few[4], "2 more warnings of pauses: `--verbose` shows them");
        assert_eq!((few.len(), details), (5, vec!["d can 2".to_owned(), "d can 3".to_owned()]));
    }

    #[test]
    fn limits_follow_from_risks() {
        let limited = |risks: &PauseRisks| {
            let mut entry = ProgramSetup::new(2);
            limit(&mut entry, risks);
            (entry.freezable, entry.max_frozen)
        };
        let none = PauseRisks::default();
        assert_eq!(limited(&none), (true, None));
        let tests = PauseRisks { test_runner: Some("pytest".to_owned()), ..none.clone() };
        assert_eq!(limited(&tests), (true, Some(Nanos::from_millis(100))));
        assert!(said(tests.clone(), None, 2, CGROUP).1[0].contains("at most 100 ms"));
        assert_eq!(said(tests, None, 2, Pauses::No), nothing());
        let watched = PauseRisks { has_watchdog: true, ..none.clone() };
        assert_eq!(limited(&watched), (false, None));
        assert!(said(watched, None, 2, CGROUP).0[0].contains("WATCHDOG_USEC"));
        assert_eq!(limited(&PauseRisks { is_interactive: true, ..none }), (false, None));
    }
}
