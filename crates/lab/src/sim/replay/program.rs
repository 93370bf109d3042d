//! From what a record tells of a program to a model of it.
//!
//! Two numbers decide: W, the CPU time of one run, and T, how long one run takes alone. On m CPUs
//! (its threads, or all there are) a share s of the work done by one thread alone makes the two fit
//! (Amdahl):
//!
//! T = W (s + (1 - s) / m)
//!
//! Where even s = 1 is too quick, the program sleeps for the rest. Serial work and sleep are spread
//! evenly over the run, a piece every 10 ms. Barriers, locks, imbalance and memory traffic are not
//! in a record: the model's threads have one barrier in each piece, and sleep while they wait. CPU
//! time that spinning threads wasted in the recorded run is cut off where it is seen, that is where
//! it is more than the program can use alone.

use std::collections::BTreeMap;
use std::path::Path;

use cosched_core::{Exit, Learned, Molding, Nanos, Profile};
use cosched_policy::Kind;
use cosched_report::disturbance;
use cosched_results::result::{ProgramResult, RunResult};
use cosched_sim::{Hardware, Model, SimulatedJob};
use cosched_workload::{After, ProgramSpec, Repeat, Workload, escaped};
use serde::Serialize;

use crate::ui::failure::Failure;

/// How often serial work and sleep come, seconds of a run alone.
const PIECE: f64 = 0.010;
/// The kernel's times are no better than this, relative to each other (nor better than a piece).
const CLOCK: f64 = 0.05;
/// A program that used less of the CPU than this share of what it was due did not wait for a CPU.
const LITTLE: f64 = 0.5;

/// Where a solo time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SoloBasis {
    /// It was measured.
    Alone,
    /// It had its CPUs to itself, or hardly used them: how long it ran is how long it takes.
    Running,
    /// It shared its CPUs, be it with other processes: as if all its threads always had work.
    CpuTime,
}

/// A program of a record, ready to be simulated.
#[derive(Clone, Debug)]
pub(super) struct Replayed {
    pub(super) spec: ProgramSpec,
    pub(super) job: SimulatedJob,
    /// The model as a `[program.model]`.
    pub(super) table: toml::Table,
    pub(super) profile: Profile,
    /// Where it was started with fewer threads than it requests: how many these are, and its time
    /// alone with all of them against that with the fewer.
    molded: Option<(u16, f64)>,
    /// Its position in the record.
    pub(super) position: usize,
    /// Of one run, in the model.
    pub(super) cpu_seconds: f64,
    pub(super) alone_seconds: f64,
    pub(super) basis: SoloBasis,
    /// CPU time of the record that it cannot have used alone, in one run.
    pub(super) cut_seconds: f64,
    pub(super) failed: bool,
}

impl Replayed {
    /// The same, of which one run takes so long alone in the model. How much sooner it were done
    /// with the threads that it was not started with is taken from the record.
    pub(super) fn profile_of(&self, alone: Nanos) -> Profile {
        let (requested, share) = self.molded.unzip();
        let all = alone.as_secs_f64() * share.unwrap_or(1.0);
        let molded = requested.map(|requested| Molding { requested, solo: alone });
        Profile { solo: Some(nanos(all)), molded, ..self.profile }
    }
}

/// The programs that ran to an end at least once.
///
/// # Errors
/// When a file that cosched did not write has impossible figures.
pub(super) fn programs(record: &RunResult, hardware: &Hardware) -> Result<Vec<Replayed>, Failure> {
    let known = record.programs.iter().enumerate();
    let ran = known.filter(|(_, program)| !program.completions.is_empty());
    ran.map(|(position, program)| replayed(record, position, program, hardware)).collect()
}

/// What cannot be known from the record and was assumed, in sentences.
pub(super) fn assumptions(record: &RunResult, programs: &[Replayed], asked: Kind) -> Vec<String> {
    let missing = |waited: bool| {
        let names = record.programs.iter().filter(|program| {
            program.completions.is_empty() && program.not_started.is_some() == waited
        });
        names.map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let named = |chosen: &dyn Fn(&Replayed) -> bool| {
        let names = programs.iter().filter(|program| chosen(program));
        names.map(|program| program.spec.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    // Threads of several programs on one CPU.
    let together = matches!(asked, Kind::Linux | Kind::LinuxGroups);
    let several =
        programs.len() > 1 && programs.iter().any(|program| program.spec.threads > Some(1));
    let sentence =
        |names: String, what: &str| (!names.is_empty()).then(|| format!("{names}: {what}"));
    let always = "the threads of a program wait for each other every 10 ms, and sleep meanwhile; a \
                  record holds no barriers, locks, imbalance or memory traffic";
    let running = "solo time not known; the time in which it could run is taken";
    let cpu = "solo time not known (`cosched profile` before a run measures it); it is taken from \
               the CPU time as if all threads always had work";
    let cut = "CPU time beyond what it can use alone is cut off (its waiting threads spun, or were \
               slowed down)";
    let failed = "failed; it is replayed as far as it ran";
    let molded = "started with fewer threads than requested, in the simulations too";
    let bound = "started by taskset; the CPUs that it was bound to are not kept";
    [
        Some(always.to_owned()),
        sentence(named(&|program| is_bound(&record.programs[program.position])), bound),
        sentence(named(&|program| program.molded.is_some()), molded),
        sentence(named(&|program| program.basis == SoloBasis::Running), running),
        sentence(named(&|program| program.basis == SoloBasis::CpuTime), cpu),
        sentence(
            named(&|program| program.cut_seconds > PIECE.max(CLOCK * program.cpu_seconds)),
            cut,
        ),
        sentence(named(&|program| program.failed), failed),
        sentence(missing(false), "could not be started, and is left out"),
        sentence(missing(true), "was not started, since another program failed, and is left out"),
        (together && several).then(|| {
            format!(
                "in the simulation of {asked}, no thread spins; programs with threads that do \
                     spin take much longer there"
            )
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Whether its command binds it, as the variant `split` of a comparison does.
fn is_bound(program: &ProgramResult) -> bool {
    let command = program.command.first().map(Path::new);
    command.and_then(Path::file_name).is_some_and(|name| name == "taskset")
}

fn replayed(
    record: &RunResult,
    position: usize,
    program: &ProgramResult,
    hardware: &Hardware,
) -> Result<Replayed, Failure> {
    let threads = program.threads.max(1);
    let shape = RunShape::of(record, program, hardware);
    // A second more for what is counted late.
    let most = record.total_seconds * record.machine.cpus as f64 + 1.0;
    if shape.cpu > most {
        return Err(Failure::Input(format!(
            "program {}: the record has {:.0} s of CPU time, but the machine had {most:.0} s in \
             all; run the \
             workload again",
            escaped(&program.name),
            shape.cpu
        )));
    }
    let table = shape.table(hardware.gigahertz);
    let model = Model::read(&table, threads).map_err(|error| {
        Failure::Input(format!(
            "program {}: its record is impossible ({error}); run the workload again",
            escaped(&program.name)
        ))
    })?;
    Ok(Replayed {
        spec: spec(record, program),
        job: SimulatedJob { model, weight: 1.0 },
        table,
        profile: profile(program),
        molded: molded(program),
        position,
        cpu_seconds: shape.cpu,
        alone_seconds: shape.alone,
        basis: shape.basis,
        cut_seconds: shape.cut,
        failed: program.exit != Some(Exit::Code(0)),
    })
}

fn spec(record: &RunResult, program: &ProgramResult) -> ProgramSpec {
    let command = match program.command.is_empty() {
        true => vec![program.name.clone()],
        false => program.command.clone(),
    };
    // Of any word: the command was checked where it ran, and its files may be gone since.
    let workload = Workload::from_commands(vec![vec!["program".to_owned()]], "/".as_ref());
    let drafted = workload.expect("a command with words is a workload").programs.remove(0);
    let terms = program.terms.as_ref();
    let (after, came_at_once) = after(record, program);
    ProgramSpec {
        name: program.name.clone(),
        command,
        threads: Some(program.threads.max(1)),
        env: BTreeMap::new(),
        start: if came_at_once { Nanos::ZERO } else { nanos(program.arrived_seconds) },
        after,
        weight: terms.map_or(1.0, |terms| terms.weight),
        group: terms.and_then(|terms| terms.group.clone()),
        freezable: terms.and_then(|terms| terms.freezable),
        repeat: repeat(record, program),
        ..drafted
    }
}

/// The programs of the record that it came after, whatever their exits; and whether it came as soon
/// as these had ended.
fn after(record: &RunResult, program: &ProgramResult) -> (Vec<After>, bool) {
    let others = program.after.iter().filter_map(|after| started(record, &after.program));
    let others: Vec<&ProgramResult> = others.collect();
    let last = others.iter().map(|other| done(other)).max_by(f64::total_cmp);
    // Both times are rounded to microseconds.
    let at_once = last.is_some_and(|last| program.arrived_seconds <= last + 2e-6);
    let after = |other: &ProgramResult| After { program: other.name.clone(), any_exit: true };
    (others.into_iter().map(after).collect(), at_once)
}

/// The program of that name, or if it was not started, the one that it waited for in vain.
fn started<'r>(record: &'r RunResult, name: &str) -> Option<&'r ProgramResult> {
    let mut name = name;
    // A file that cosched did not write might lead in a circle.
    for _ in &record.programs {
        let program = record.programs.iter().find(|program| program.name == name)?;
        match &program.not_started {
            Some(why) => name = &why.program,
            None => return Some(program).filter(|program| !program.completions.is_empty()),
        }
    }
    None
}

fn molded(program: &ProgramResult) -> Option<(u16, f64)> {
    let share = program.solo_seconds? / program.molded_solo_seconds?;
    program.molded_from.zip(Some(share).filter(|share| share.is_finite()))
}

fn profile(program: &ProgramResult) -> Profile {
    let terms = program.terms.as_ref();
    Profile {
        solo: None,
        solo_cpu: None,
        // The simulated machine counts them.
        miss_ratio: None,
        misses_per_kilo_instruction: terms.and_then(|terms| terms.misses_per_kilo_instruction),
        memory_gigabytes_per_second: terms.and_then(|terms| terms.memory_gigabytes_per_second),
        speedup: None,
        molded: None,
        learned: Learned::default(),
    }
}

/// A program that ran on after it was done, until all programs were, was repeated for the others'
/// sake.
fn repeat(record: &RunResult, program: &ProgramResult) -> Repeat {
    let done = done(program);
    let ran_on = program.timeline.iter().any(|span| span.0 > done || span.1 > done + 1e-3);
    match done < record.total_seconds && ran_on || counted(program) < program.completions.len() {
        true => Repeat::UntilAllFinish,
        false => Repeat::Times(counted(program) as u32),
    }
}

fn done(program: &ProgramResult) -> f64 {
    program.arrived_seconds + program.turnaround_seconds.unwrap_or(f64::INFINITY)
}

/// How many of its runs count for its turnaround; at least one.
fn counted(program: &ProgramResult) -> usize {
    // Both times are rounded to microseconds.
    let before = |at: f64| at <= done(program) + 2e-6;
    program.completions.iter().filter(|run| before(run.at_seconds)).count().max(1)
}

/// What one run is made of; seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RunShape {
    cpu: f64,
    alone: f64,
    basis: SoloBasis,
    cut: f64,
    /// On how many CPUs it can run at once.
    width: f64,
}

impl RunShape {
    fn of(record: &RunResult, program: &ProgramResult, hardware: &Hardware) -> RunShape {
        let usage = &program.usage;
        let used =
            (usage.user_seconds + usage.system_seconds) / program.completions.len().max(1) as f64;
        let runs = counted(program) as f64;
        let cpus = record.machine.cpus as f64;
        let width = f64::from(program.threads).min(cpus).max(1.0);
        let running = program.running_seconds / runs;
        let (alone, basis) = match program.alone_as_started_seconds() {
            // The simulator starts programs by itself, as they were started alone. No program is
            // faster with co-runners: a longer solo time was disturbed.
            Some(seconds) => {
                let start = (hardware.own.start + hardware.own.join).as_secs_f64();
                let alone = seconds / runs;
                ((alone - start).max(PIECE.min(alone)).min(running), SoloBasis::Alone)
            }
            // Where other processes took CPUs, that time would be taken for sleep, and more of it
            // in one program than in another.
            None if disturbance::is_disturbed(record) => (used / width, SoloBasis::CpuTime),
            None if had_its_cpus(record) || used < LITTLE * running * due(record, program) => {
                (running, SoloBasis::Running)
            }
            None => (used / width, SoloBasis::CpuTime),
        };
        // A run shorter than the kernel's clock tells.
        let cpu = used.min(alone * width).max(1e-6);
        RunShape { cpu, alone: alone.max(cpu / width), basis, cut: used - cpu, width }
    }

    /// The share of the work that one thread does alone, and the time that it sleeps.
    fn serial_and_sleep(&self) -> (f64, f64) {
        let even = 1.0 / self.width;
        let serial = match self.width > 1.0 {
            true => ((self.alone / self.cpu - even) / (1.0 - even)).clamp(0.0, 1.0),
            false => 0.0,
        };
        let busy = self.cpu * (serial + (1.0 - serial) * even);
        (serial, (self.alone - busy).max(0.0))
    }

    /// As a `[program.model]`: an instruction takes a cycle.
    fn table(&self, gigahertz: f64) -> toml::Table {
        let (serial, sleep) = self.serial_and_sleep();
        let pieces = (self.alone / PIECE).ceil().clamp(1.0, 1e9);
        let number = |value: f64| toml::Value::Float(value);
        let mut phase = toml::Table::new();
        phase.insert("repeat".into(), toml::Value::Integer(pieces as i64));
        phase.insert("instructions".into(), number(self.cpu * gigahertz * 1e9 / pieces));
        phase.insert("serial".into(), number(serial));
        if self.width > 1.0 {
            phase.insert("barriers".into(), toml::Value::Integer(1));
        }
        let nanos = (sleep * 1e9 / pieces) as u64;
        phase.insert("sleep".into(), toml::Value::String(format!("{nanos}ns")));
        let mut model = toml::Table::new();
        model.insert("phase".into(), toml::Value::Array(vec![toml::Value::Table(phase)]));
        model
    }
}

/// Whether each program had the CPUs that it ran on to itself.
fn had_its_cpus(record: &RunResult) -> bool {
    let alone =
        |kind: Kind| kind.starts_in_order() || kind.insists_on_gangs() && record.fill != Some(true);
    record.policy.parse().is_ok_and(alone)
}

/// How many CPUs a program was due while all ran together: its threads' share of them.
fn due(record: &RunResult, program: &ProgramResult) -> f64 {
    let threads: f64 = record.programs.iter().map(|program| f64::from(program.threads)).sum();
    f64::from(program.threads) * (record.machine.cpus as f64 / threads.max(1.0)).min(1.0)
}

fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9).round().max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(cpu: f64, alone: f64, width: f64) -> RunShape {
        RunShape { cpu, alone, basis: SoloBasis::Alone, cut: 0.0, width }
    }

    #[test]
    fn the_serial_share_and_the_sleep_give_back_the_time_alone() {
        for (cpu, alone, width) in
            [(1.0, 0.5, 2.0), (1.0, 0.6, 2.0), (1.0, 1.0, 4.0), (1.0, 1.4, 4.0), (0.2, 3.0, 1.0)]
        {
            let (serial, sleep) = shape(cpu, alone, width).serial_and_sleep();
            let found = cpu * (serial + (1.0 - serial) / width) + sleep;
            assert!((found - alone).abs() < 1e-12, "{cpu} in {alone} on {width}: {found}");
            assert!(sleep == 0.0 || serial == 1.0 || width == 1.0, "asleep before it is serial");
        }
        assert_eq!(shape(1.0, 0.5, 2.0).serial_and_sleep(), (0.0, 0.0));
    }

    #[test]
    fn a_model_has_all_the_work_in_pieces_of_ten_milliseconds() {
        let table = shape(1.0, 0.6, 2.0).table(2.0);
        let phase = table["phase"][0].as_table().unwrap();
        let pieces = phase["repeat"].as_integer().unwrap() as f64;
        assert_eq!(pieces, 60.0);
        let instructions = phase["instructions"].as_float().unwrap() * pieces;
        assert!((instructions / 2e9 - 1.0).abs() < 1e-12, "{instructions}");
    }
}
