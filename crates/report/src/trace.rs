//! A run as a trace that Perfetto opens.
//!
//! Three groups of tracks:
//!
//! - *programs*: one track each. Slices show what the program did (running, frozen, not started),
//!   each with the CPUs and the policy's reason in words. Instants show how it ended, and
//!   deviations. Where time slices were chosen for a program, further tracks show its lock
//!   contention, its time slice, and how its threads were scheduled.
//! - *CPUs*: one track each. Slices show which program *was allowed* to run there. Only the kernel
//!   knows which program really had the CPU at an instant.
//! - *scheduler*: the run as a whole, the quanta, the decisions with all their reasons, and
//!   counters of programs and threads. CPU use is known for the whole run only and stands there.
//!
//! *Which CPUs there are.* `run.json` has the number of CPUs that programs could use, and the
//! numbers of the CPUs to which a program was bound. The other CPUs get the lowest numbers that are
//! left.
//!
//! The same result gives the same bytes.

mod perfetto;
mod protobuf;
#[cfg(test)]
mod tests;

use cosched_core::{CpuSet, Nanos, Reason};
use cosched_policy::reasons::words as spoken;
use cosched_results::result::{RunResult, Simulation};

use crate::history::{Activity, History, Phase, PlannedQuantum, changes, nanos, runs};
use crate::{treatment, words};
use perfetto::{DebugAnnotation, TraceWriter, Track};

/// The first group of tracks.
const PROGRAMS: &str = "cosched: programs";
/// More programs than this on one CPU are counted, not named.
const NAMED: usize = 3;

/// A trace, and how large it is.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The file's content.
    pub bytes: Vec<u8>,
    /// How many tracks it has, with the tracks that only hold others.
    pub tracks: usize,
    /// How many events it has; a slice is two.
    pub events: usize,
}

/// The trace of a run, in Perfetto's TrackEvent format.
pub fn trace(result: &RunResult) -> Trace {
    let history = History::of(result);
    let mut writer = TraceWriter::default();
    programs(&history, &mut writer);
    cpus(&history, &mut writer);
    scheduler(&history, &mut writer);
    let (tracks, events) = writer.sizes();
    Trace { bytes: writer.into_bytes(), tracks, events }
}

/// Whether a file that begins like this is a trace of cosched: all traces have the same first
/// packet.
pub fn is_trace(beginning: &[u8]) -> bool {
    let mut writer = TraceWriter::default();
    writer.group(PROGRAMS);
    beginning.starts_with(&writer.into_bytes())
}

fn programs(history: &History<'_>, writer: &mut TraceWriter) {
    let group = writer.group(PROGRAMS);
    for (slot, program) in history.result.programs.iter().enumerate() {
        let track = writer.track(group, &program.name);
        for phase in history.phases(slot) {
            let span = (phase.from, phase.to);
            writer.slice(track, span, "state", phase.state.name(), &notes(history, slot, phase));
        }
        for completion in &program.completions {
            let name = format!("ended: {}", words::exit(completion.exit));
            writer.instant(track, nanos(completion.at_seconds), "state", &name, &[]);
        }
        for deviation in history.deviations(slot, Nanos::ZERO, Nanos::NEVER) {
            let why = [note("why", words::cause(deviation.why))];
            let (at, name) = (nanos(deviation.at_seconds), words::effect(deviation.what));
            writer.instant(track, at, "deviation", name, &why);
        }
        treatment(history, slot, group, writer);
    }
}

/// The tracks below a program for which time slices were chosen: its lock contention, its time
/// slice, and how its threads were scheduled.
fn treatment(history: &History<'_>, slot: usize, group: Track, writer: &mut TraceWriter) {
    let changes = treatment::changes(history.result, slot);
    let Some(end) = history.phases(slot).last().map(|phase| phase.to) else { return };
    if changes.is_empty() {
        return;
    }
    let name = history.name(slot);
    let locks = writer.counter(group, &format!("{name}: lock contention"), "%");
    let slices = writer.counter(group, &format!("{name}: slice"), "us");
    let scheduled = writer.track(group, &format!("{name}: scheduled"));
    for (i, change) in changes.iter().enumerate() {
        if let Some(chosen) = change.now.chosen {
            writer.value(locks, change.at, (100.0 * chosen.lock_contention).round() as u64);
            writer.value(slices, change.at, chosen.slice.0 / 1000);
        }
        let to = changes.get(i + 1).map_or(end, |next| next.at);
        if let (Some(words), true) = (treatment::in_words(&change.now), to > change.at) {
            let why = [note("why", change.because())];
            writer.slice(scheduled, (change.at, to), "scheduled", &words, &why);
        }
    }
    for track in [locks, slices] {
        writer.value(track, end, 0);
    }
}

/// Where a program ran in a phase, and why it ran or waited.
fn notes(history: &History<'_>, slot: usize, phase: &Phase) -> Vec<DebugAnnotation> {
    let mut notes = Vec::new();
    let sent = match phase.state {
        Activity::Running(cpus) => {
            notes.push(note("cpus", cpus.map_or("any".to_owned(), |cpus| cpus.to_string())));
            history.sent_at(slot, phase.from).filter(|sent| sent.runs() == Some(true))
        }
        Activity::Unstarted | Activity::Frozen => history.waits_because(slot, phase),
        Activity::Stopped => None,
    };
    notes.extend(sent.map(|sent| note("why", words::reason(sent.why))));
    notes.extend(sent.map(|sent| note("decided", words::instant(sent.at))));
    notes
}

fn cpus(history: &History<'_>, writer: &mut TraceWriter) {
    let running: Vec<(Phase, usize)> = history.running().collect();
    let group = writer.group("cosched: CPUs");
    for cpu in cpus_of(history).iter() {
        let track = writer.track(group, &format!("CPU {cpu}"));
        let here = running.iter().filter(|(phase, _)| match phase.state {
            Activity::Running(Some(cpus)) => cpus.contains(cpu),
            _ => true,
        });
        let changes = changes(here.map(|(phase, slot)| (phase.from, phase.to, *slot)));
        for pair in changes.windows(2) {
            let [(from, slots), (to, _)] = pair else { continue };
            if slots.is_empty() {
                continue;
            }
            let names: Vec<String> =
                slots.iter().map(|slot| history.name(*slot).to_owned()).collect();
            let name = match names.len() {
                0..=NAMED => names.join(" + "),
                n => format!("{n} programs"),
            };
            let notes = [note("may run here", names.join(", "))];
            writer.slice(track, (*from, *to), "cpu", &name, &notes);
        }
    }
}

/// The CPUs that programs could use, as far as the result has them.
fn cpus_of(history: &History<'_>) -> CpuSet {
    let bound = history.running().filter_map(|(phase, _)| match phase.state {
        Activity::Running(cpus) => cpus,
        _ => None,
    });
    let mut cpus = bound.fold(CpuSet::EMPTY, |all, cpus| all.union(&cpus));
    for cpu in 0..history.result.machine.cpus.min(cosched_core::MAX_CPUS) {
        if cpus.len() >= history.result.machine.cpus {
            break;
        }
        cpus.insert(cpu);
    }
    cpus
}

fn scheduler(history: &History<'_>, writer: &mut TraceWriter) {
    let result = history.result;
    let group = writer.group("cosched: scheduler");
    let run = writer.track(group, "run");
    writer.slice(run, (Nanos::ZERO, history.end()), "run", &result.policy, &whole(result));
    if !history.quanta().is_empty() {
        let track = writer.track(group, "quanta");
        for quantum in history.quanta() {
            quantum_slice(quantum, track, writer);
        }
    }
    let track = writer.track(group, "decisions");
    for decision in &result.decisions {
        let (name, notes) = decision_in_words(history, &decision.reasons);
        writer.instant(track, nanos(decision.at_seconds), "decision", &name, &notes);
    }
    counters(history, group, writer);
}

fn quantum_slice(quantum: &PlannedQuantum, track: Track, writer: &mut TraceWriter) {
    let name = words::place(quantum.round, quantum.gang, quantum.gangs);
    let notes = [
        note("number", quantum.number.to_string()),
        note("planned", words::planned(quantum.length)),
    ];
    writer.slice(track, (quantum.from, quantum.to), "quantum", &name, &notes);
}

/// The programs that are to run, in short, and every reason.
fn decision_in_words(history: &History<'_>, reasons: &[Reason]) -> (String, Vec<DebugAnnotation>) {
    let mut running: Vec<String> = Vec::new();
    let mut notes = Vec::new();
    for reason in reasons {
        let slot = reason.program.map(|id| usize::from(id.slot));
        let name = slot.and_then(|slot| history.result.programs.get(slot)).map(|p| &p.name);
        let text = words::reason(&reason.why);
        match name {
            Some(name) => notes.push(note(name, text)),
            None => notes.push(note("the plan", text)),
        }
        if runs(spoken(&reason.why).says) == Some(true) {
            running.extend(name.cloned());
        }
    }
    let name = match running.len() {
        0 => "plan".to_owned(),
        1..=NAMED => format!("run {}", words::list(&running)),
        n => format!("run {n} programs"),
    };
    (name, notes)
}

fn counters(history: &History<'_>, group: Track, writer: &mut TraceWriter) {
    let programs = &history.result.programs;
    let of_state = |is_counted: fn(Activity) -> bool| {
        let all = (0..programs.len())
            .flat_map(|slot| history.phases(slot).iter().map(move |phase| (phase, slot)));
        let spans = all.filter(move |(phase, _)| is_counted(phase.state));
        changes(spans.map(|(phase, slot)| (phase.from, phase.to, slot)))
    };
    let running = of_state(|state| matches!(state, Activity::Running(_)));
    let waiting = of_state(Activity::waits);
    let running_track = writer.counter(group, "running programs", "programs");
    let waiting_track = writer.counter(group, "waiting programs", "programs");
    let threads_track = writer.counter(group, "threads of running programs", "threads");
    for (at, slots) in &running {
        let threads = slots.iter().map(|slot| u64::from(programs[*slot].threads)).sum();
        writer.value(running_track, *at, slots.len() as u64);
        writer.value(threads_track, *at, threads);
    }
    for (at, slots) in &waiting {
        writer.value(waiting_track, *at, slots.len() as u64);
    }
}

fn whole(result: &RunResult) -> Vec<DebugAnnotation> {
    let (metrics, simulation) = (&result.metrics, result.simulation.as_ref());
    let quantum = result.quantum_seconds.map(|quantum| words::span(nanos(quantum)));
    let known = [
        ("started", Some(result.started_at.clone())),
        ("interrupted by", result.interrupted_by.clone()),
        ("CPUs", Some(result.machine.cpus.to_string())),
        ("model", result.machine.model.clone()),
        ("kernel", Some(result.machine.kernel.clone())),
        ("simulated machine", simulation.map(|simulation| simulation.machine.clone())),
        ("simulated kernel", simulation.map(|simulation| simulation.kernel.clone())),
        ("seed", simulation.map(|simulation| simulation.seed.to_string())),
        ("constants set", simulation.and_then(Simulation::constants)),
        ("quantum", quantum),
        ("placement", result.placement.clone()),
        ("freezing", Some(result.backends.freezing.clone())),
        ("pinning", Some(result.backends.pinning.clone())),
        ("CPU use", Some(format!("{:.1} %", metrics.cpu_utilisation * 100.0))),
        ("unfairness", metrics.unfairness.map(|ratio| format!("{ratio:.3}"))),
        ("weighted speedup", metrics.weighted_speedup.map(|sum| format!("{sum:.3}"))),
        (
            "extended weighted speedup",
            metrics.extended_weighted_speedup.map(|sum| format!("{sum:.3}")),
        ),
        ("switches", Some(result.own.switches.to_string())),
    ];
    known.into_iter().filter_map(|(name, text)| Some(note(name, text?))).collect()
}

fn note(name: &str, text: impl Into<String>) -> DebugAnnotation {
    (name.to_owned(), text.into())
}
