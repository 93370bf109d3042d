//! Makes snapshots from what the engine sends at a heartbeat, and what the policy has said
//! before.
//!
//! Policies give reasons for what *changes*, so the last reason about each program is kept until
//! the next one. This is a board's only work between two snapshots: it copies some words per
//! decision.

use cosched_core::engine::{Beat, ProgramSetup};
use cosched_core::{Nanos, Output, Plan, Program, Quantum, Treatment, Turn, Usage, Why};

use super::{ChosenSlice, Forward, LiveQuantum, LiveState, SCHEMA, Shuffled, Snapshot, Standing};
use crate::result::{seconds, to_microseconds};

/// What does not change in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// The process of cosched.
    pub pid: u32,
    /// The policy's name.
    pub policy: String,
    /// How threads are placed, where the policy places them.
    pub placement: Option<String>,
    /// The quantum that the user requested, where the policy has one.
    pub quantum: Option<Nanos>,
    /// The wall-clock time at which the run began, RFC 3339.
    pub started_at: String,
    /// The names of the programs, in the workload's order.
    pub names: Vec<String>,
}

/// Keeps what snapshots are made from.
#[derive(Debug)]
pub struct Board {
    about: About,
    decided_by: Option<String>,
    /// One per program, in the workload's order: its state while it is not in the world.
    entries: Vec<ProgramSetup>,
    whys: Vec<Option<Why>>,
    treatments: Vec<Treatment>,
    shuffles: Vec<Option<Shuffled>>,
    forwards: Vec<Option<Forward>>,
    quantum: Option<LiveQuantum>,
}

impl Board {
    /// A board for one run of these programs.
    pub fn new(about: About, entries: Vec<ProgramSetup>) -> Board {
        let (whys, treatments) =
            (vec![None; entries.len()], vec![Treatment::default(); entries.len()]);
        let (shuffles, forwards) = (vec![None; entries.len()], vec![None; entries.len()]);
        let (decided_by, quantum) = (None, None);
        Board { whys, treatments, shuffles, forwards, quantum, about, decided_by, entries }
    }

    /// Takes note that another policy decides in the place of the one that was chosen.
    pub fn is_decided_by(&mut self, policy: &str) {
        self.decided_by = Some(policy.to_owned());
    }

    /// Takes note of a policy's reasons, and of what it has done.
    pub fn decided(&mut self, now: Nanos, plan: &Plan) {
        let length = plan.quantum.map(|quantum| quantum.length);
        let length = length.filter(|length| *length != Nanos::NEVER).map(seconds);
        if let Some(Quantum { round, gang, gangs, .. }) = plan.quantum {
            let (began_seconds, length_seconds) = (seconds(now), length);
            self.quantum = Some(LiveQuantum { round, gang, gangs, began_seconds, length_seconds });
        }
        for (position, reason) in plan.reasons.iter().enumerate() {
            if let Some(id) =
                reason.program.filter(|_| plan.asides.binary_search(&position).is_err())
            {
                self.whys[usize::from(id.slot)] = Some(reason.why.clone());
            }
        }
        for (id, output) in &plan.outputs {
            let slot = usize::from(id.slot);
            match *output {
                Output::Scheduled(change) => self.treatments[slot].take_in(change),
                Output::Grouped(change) => {
                    self.shuffles[slot] = Shuffled::after(self.shuffles[slot], change);
                }
                Output::Advanced(advance) => {
                    let before = self.forwards[slot].unwrap_or_default();
                    self.forwards[slot] = Some(before.advanced(advance));
                }
                Output::Trained { idle } => {
                    let before = self.forwards[slot].unwrap_or_default();
                    self.forwards[slot] = Some(before.trained(idle, length));
                }
                Output::Backfilled
                | Output::Estimated(_)
                | Output::Recalled
                | Output::TrialEnded(_) => {}
            }
        }
    }

    /// The state of the run.
    pub fn snapshot(&self, beat: &Beat<'_>, own_cpu_seconds: f64) -> Snapshot {
        let slots = 0..self.entries.len() as u16;
        Snapshot {
            schema: SCHEMA.to_owned(),
            pid: self.about.pid,
            policy: self.about.policy.clone(),
            decided_by: self.decided_by.clone(),
            placement: self.about.placement.clone(),
            quantum_seconds: self.about.quantum.map(seconds),
            started_at: self.about.started_at.clone(),
            at_seconds: seconds(beat.world.now),
            cpus: *beat.world.cpus,
            quantum: self.quantum.filter(|quantum| !is_over(quantum, beat)),
            switches: beat.outcome.switches.count(),
            deviations: beat.outcome.deviations.count(),
            own_cpu_seconds,
            programs: slots.map(|slot| self.standing(slot, beat)).collect(),
        }
    }

    fn standing(&self, slot: u16, beat: &Beat<'_>) -> Standing {
        let (entry, now) = (&self.entries[usize::from(slot)], beat.world.now);
        let treatment = self.treatments[usize::from(slot)];
        let (program, account, totals) =
            (beat.program(slot), beat.account(slot), beat.totals(slot));
        let used = |usage: &Usage| usage.user_seconds + usage.system_seconds;
        let earlier = account.earlier.usage;
        let runs = || account.completions.iter().map(|run| &run.usage).chain([&earlier]);
        let complete: f64 = runs().map(used).sum();
        let switched = |usage: &Usage| usage.voluntary_switches + usage.involuntary_switches;
        let switches = runs().map(switched).sum();
        let state = match program {
            Some(program) => program.state.into(),
            None if beat.expects(slot) => LiveState::Expected,
            None => LiveState::Ended,
        };
        Standing {
            name: self.about.names[usize::from(slot)].clone(),
            state,
            generation: program
                .map_or(account.completions.count().saturating_sub(1) as u32, |p| p.id.generation),
            threads: program.map_or(entry.thread_count, |p| p.requested),
            allowed: program.map_or(entry.thread_count, |p| p.allowed),
            cpus: program.and_then(|p| p.cpus),
            weight: program.map_or(entry.weight, |p| p.weight),
            group: program.map_or(entry.group, |p| p.group),
            arrived_seconds: seconds(account.arrived),
            started_seconds: account.started.map(seconds),
            running_seconds: seconds(totals.ran),
            waiting_seconds: seconds(totals.waited),
            filler_seconds: seconds(totals.filled),
            is_filler: program.is_some_and(|p| p.turn == Some(Turn::Filler)),
            waiting_now_seconds: seconds(program.map_or(Nanos::ZERO, |p| p.waiting(now))),
            cpu_seconds: Some(to_microseconds(complete)),
            share_seconds: totals.share.map(seconds),
            context_switches: Some(switches),
            turns: totals.turns,
            completions: account.completions.count(),
            exit: account.completions.last().map(|completion| completion.exit),
            why: self.whys[usize::from(slot)].clone(),
            slice: treatment.chosen.map(ChosenSlice::from),
            actuator: treatment.in_force,
            tried: treatment.tried,
            shuffled: self.shuffles[usize::from(slot)],
            forward: self.forwards[usize::from(slot)],
            barrier_stats: None,
            processes: Vec::new(),
        }
    }
}

/// Whether a quantum has ended without a new one: all programs run.
fn is_over(quantum: &LiveQuantum, beat: &Beat<'_>) -> bool {
    let Some(length) = quantum.length_seconds else { return false };
    let end = quantum.began_seconds + Quantum::OVER_AFTER as f64 * length;
    let waits = |program: &Program| {
        !LiveState::from(program.state).may_run() || program.turn == Some(Turn::Filler)
    };
    seconds(beat.world.now) > end && !beat.world.programs.iter().any(waits)
}
