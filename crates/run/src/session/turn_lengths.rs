//! Turns that will be shorter than requested, as far as that is known before the start.

use cosched_core::Nanos;
use cosched_policy::gangs::quantum::shortened;
use cosched_policy::{Kind, Options};
use cosched_report::shortened::Shortened;
use cosched_workload::{PauseRisks, ProgramSpec};

use super::here::Session;
use super::pauses::Pauses;
use super::request::Request;

impl Session {
    /// Tells the user before the start that turns will be shorter than requested.
    pub(super) fn tell_of_turn_lengths(
        &self,
        request: &Request<'_>,
        threads: &[u16],
        pauses: Pauses,
    ) {
        if pauses == Pauses::No {
            return;
        }
        let options = request.how.options(request.kind);
        let programs = request.workload.programs.iter().zip(threads).zip(self.pause_risks(request));
        let programs: Vec<TurnTaker<'_>> = programs
            .map(|((spec, threads), risks)| TurnTaker { spec, threads: *threads, risks })
            .collect();
        let cpus = self.usable.cpus.len();
        let longest = request.how.max_frozen();
        if let Some(short) = expected(request.kind, &options, &programs, cpus, longest) {
            request.extras.talk.tell(format_args!("{}", short.in_words("are")));
        }
    }
}

struct TurnTaker<'a> {
    spec: &'a ProgramSpec,
    threads: u16,
    risks: PauseRisks,
}

/// How turns will be shortened. That is known of programs of equal weight that are all there at
/// once, each a gang's member of its own.
fn expected(
    kind: Kind,
    options: &Options,
    programs: &[TurnTaker<'_>],
    cpus: usize,
    longest: Nanos,
) -> Option<Shortened> {
    let gang_count = kind.descriptor().gang_count?;
    let differs = |program: &TurnTaker<'_>| {
        let ProgramSpec { start, after, group, weight, .. } = program.spec;
        *start > Nanos::ZERO
            || !after.is_empty()
            || group.is_some()
            || *weight != programs[0].spec.weight
    };
    if programs.iter().any(differs) {
        return None;
    }
    let frozen = |program: &&TurnTaker<'_>| {
        program.spec.freezable != Some(false) && !program.risks.forbid_pauses()
    };
    let frozen: Vec<&TurnTaker<'_>> = programs.iter().filter(frozen).collect();
    let runs_tests = frozen.iter().any(|program| program.risks.test_runner.is_some());
    let max_frozen = if runs_tests { longest.min(PauseRisks::OF_TESTS) } else { longest };
    let cpus = cpus.max(1);
    let sizes: Vec<usize> =
        frozen.iter().map(|program| usize::from(program.threads).clamp(1, cpus)).collect();
    let given = shortened(gang_count(&sizes, cpus), max_frozen, options)?;
    let (requested, by_run) = (options.quantum, max_frozen >= longest);
    Some(Shortened { requested, given, max_frozen, by_run })
}

#[cfg(test)]
mod tests {
    use cosched_workload::Workload;

    use super::*;

    /// The turns of a dozen programs of two threads, some with other keys.
    fn of(kind: Kind, cpus: usize, keys: &str) -> Option<Nanos> {
        let text = format!("{}{}", one("").repeat(11), one(keys));
        let workload = Workload::parse(&text, "/tmp/jobs.toml".as_ref()).unwrap();
        let risks = PauseRisks::default();
        let takers: Vec<TurnTaker<'_>> = workload
            .programs
            .iter()
            .map(|spec| TurnTaker { spec, threads: 2, risks: risks.clone() })
            .collect();
        let options = Options { quantum: Nanos::from_millis(100), ..Options::default() };
        let short = expected(kind, &options, &takers, cpus, Nanos::from_secs(1))?;
        assert!(short.by_run);
        Some(short.given)
    }

    fn one(keys: &str) -> String {
        format!("[[program]]\ncommand = ['a']\n{keys}\n")
    }

    /// Twelve gangs have 900 / 11 - 0.5 = 81.3 ms each.
    #[test]
    fn twelve_programs_in_turn_have_81_ms_each() {
        let twelve = Some(Nanos(81_318_181));
        assert_eq!([Kind::Gang, Kind::Greedy, Kind::Minwait].map(|k| of(k, 2, "")), [twelve; 3]);
        assert_eq!(of(Kind::Greedy, 4, ""), None, "six gangs");
        assert_eq!([2, 24].map(|cpus| of(Kind::Minwait, cpus, "")), [twelve, None]);
        assert_eq!(of(Kind::Gang, 2, "freezable = false"), Some(Nanos(89_500_000)), "eleven");
    }

    #[test]
    fn nothing_is_said_where_gangs_are_not_known_before_the_start() {
        for keys in ["start = '1s'", "weight = 2.0", "group = 'g'", "after = ['a']"] {
            assert_eq!(of(Kind::Gang, 2, keys), None, "{keys}");
        }
        assert_eq!([Kind::Cgreedy, Kind::Auto].map(|kind| of(kind, 2, "")), [None; 2]);
    }

    #[test]
    fn programs_that_run_tests_shorten_the_turns_of_all() {
        let text = format!("{}{}", one(""), one(""));
        let workload = Workload::parse(&text, "/tmp/jobs.toml".as_ref()).unwrap();
        let risks = PauseRisks { test_runner: Some("pytest".to_owned()), ..PauseRisks::default() };
        let takers: Vec<TurnTaker<'_>> = workload
            .programs
            .iter()
            .map(|spec| TurnTaker { spec, threads: 2, risks: risks.clone() })
            .collect();
        let options = Options { quantum: Nanos::from_millis(100), ..Options::default() };
        let short = expected(Kind::Gang, &options, &takers, 2, Nanos::from_secs(1)).unwrap();
        assert_eq!((short.given, short.by_run), (Nanos(89_500_000), false));
    }
}
