//! Programs that start several processes to work at the same time: their thread counts, and what is
//! said of them.

use std::collections::BTreeMap;
use std::ffi::OsString;

use cosched_core::format::count;
use cosched_workload::{OPENMP, ProgramSpec, Workers, pools_of_libraries};

use super::here::Session;
use super::request::{Origins, Request};
use crate::environment;

impl Session {
    pub(super) fn workers(&self, spec: &ProgramSpec) -> Option<Workers> {
        spec.workers(&self.environment, !self.description.is_simulated())
    }

    /// How many CPUs a program requests at once: its workers times their threads, and no more than
    /// there are, where each worker would have fewer.
    pub(super) fn demand(&self, spec: &ProgramSpec) -> u16 {
        let (threads, cpus) = (self.threads(spec), self.usable.cpus.len());
        let workers = self.workers(spec).map_or(1, |workers| workers.on(cpus));
        let all = (usize::from(threads) * workers).min(cpus);
        u16::try_from(all).unwrap_or(u16::MAX).max(threads)
    }

    /// How many threads the libraries in each of a program's workers get. `None`: as many as they
    /// take, since it has no workers, the user says how many, or the policy stands for plain Linux.
    fn threads_of_workers(&self, spec: &ProgramSpec, request: &Request<'_>) -> Option<u16> {
        let running = matches!(request.origins, Origins::Running(_));
        let as_it_is = request.extras.as_they_are || request.kind.descriptor().baseline;
        if running || as_it_is || spec.has_own_pools(&self.environment) {
            return None;
        }
        self.workers(spec).map(|workers| workers.threads_each(self.usable.cpus.len()))
    }

    /// The environment with which a program is started.
    pub(super) fn started_with(
        &self,
        spec: &ProgramSpec,
        request: &Request<'_>,
    ) -> Vec<(OsString, OsString)> {
        let mut all = spec.environment(self.environment.iter().cloned());
        all.extend(self.pools(spec, request).map(|(name, value)| (name.into(), value.into())));
        all
    }

    /// Of the variables that decide how programs run, those that it is given.
    pub(super) fn given(
        &self,
        spec: &ProgramSpec,
        request: &Request<'_>,
    ) -> BTreeMap<String, String> {
        let pools = self.pools(spec, request).map(|(name, value)| (name.to_owned(), value));
        environment::given(spec).into_iter().chain(pools).collect()
    }

    fn pools(
        &self,
        spec: &ProgramSpec,
        request: &Request<'_>,
    ) -> impl Iterator<Item = (&'static str, String)> {
        let threads = self.threads_of_workers(spec, request);
        threads.into_iter().flat_map(|threads| {
            pools_of_libraries().map(move |variable| (variable, threads.to_string()))
        })
    }

    /// Tells the user before the start which programs have workers that share the CPUs.
    pub(super) fn tell_of_workers(&self, request: &Request<'_>) {
        let cpus = self.usable.cpus.len();
        for spec in &request.workload.programs {
            let Some(threads) = self.threads_of_workers(spec, request) else { continue };
            let Some(workers) = self.workers(spec) else { continue };
            let message = message(&spec.name, workers.on(cpus), cpus, threads);
            request.extras.talk.tell(format_args!("{message}"));
        }
    }
}

fn message(name: &str, workers: usize, cpus: usize, threads: u16) -> String {
    format!(
        "{name} starts {} on {}: libraries that compute get {} in each ({OPENMP} and the like); \
         set {OPENMP} yourself for another number",
        count(workers, "process", "processes"),
        count(cpus, "CPU", "CPUs"),
        count(threads.into(), "thread", "threads"),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cosched_core::Topology;
    use cosched_policy::Kind;
    use cosched_results::result::MachineDescription;
    use cosched_workload::Workload;

    use super::*;
    use crate::how::{How, PolicyChoices};

    fn session(cpus: usize, variables: &[(&str, &str)]) -> Session {
        let topology = Topology::regular(1, 1, 1, cpus as u16, 1);
        let description = MachineDescription { cpus, model: None, kernel: String::new() };
        let environment = variables.iter().map(|(name, value)| (name.into(), value.into()));
        Session { environment: environment.collect(), ..Session::of(topology, description) }
    }

    fn workload(command: &[&str]) -> Workload {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        Workload::from_commands(vec![command], Path::new("/")).unwrap()
    }

    const FOUR: [&str; 3] = ["pytest", "-n", "4"];

    fn pools(session: &Session, workload: &Workload, kind: Kind) -> BTreeMap<String, String> {
        let how = How::from(PolicyChoices::default());
        let request = Request::new(workload, kind, &how, &[]);
        session.given(&workload.programs[0], &request)
    }

    #[test]
    fn workers_share_the_cpus_unless_the_user_says_a_number() {
        let workload = workload(&FOUR);
        let given = pools(&session(8, &[]), &workload, Kind::Turns);
        assert_eq!(given.get(OPENMP).map(String::as_str), Some("2"));
        assert!(given.contains_key("OPENBLAS_NUM_THREADS") && !given.contains_key("GOMAXPROCS"));
        assert!(pools(&session(8, &[(OPENMP, "3")]), &workload, Kind::Turns).is_empty());
    }

    #[test]
    fn plain_linux_and_runs_alone_leave_workers_as_they_are() {
        let (session, workload, how) =
            (session(8, &[]), workload(&FOUR), How::from(PolicyChoices::default()));
        assert!(pools(&session, &workload, Kind::Linux).is_empty());
        let mut request = Request::new(&workload, Kind::Gang, &how, &[]);
        request.extras.as_they_are = true;
        assert!(session.given(&workload.programs[0], &request).is_empty());
    }

    #[test]
    fn a_program_requests_cpus_for_all_its_workers() {
        let demand = |cpus, variables: &[_], command: &[&str]| {
            session(cpus, variables).demand(&workload(command).programs[0])
        };
        assert_eq!(demand(16, &[(OPENMP, "2")], &FOUR), 8);
        assert_eq!(demand(4, &[(OPENMP, "2")], &FOUR), 4);
        assert_eq!(demand(4, &[], &FOUR), 4);
        assert_eq!(demand(4, &[(OPENMP, "8")], &FOUR), 8, "that is refused, as it would be");
        assert_eq!(demand(16, &[(OPENMP, "2")], &["./solver"]), 2);
    }

    #[test]
    fn the_message_says_what_is_set() {
        let expected = "a starts 4 processes on 2 CPUs: libraries that compute get 1 thread in \
                        each (OMP_NUM_THREADS and the like); set OMP_NUM_THREADS yourself for \
                        another number";
        assert_eq!(message("a", 4, 2, 1), expected);
    }
}
