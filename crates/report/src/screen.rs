//! A running run as a screen of text: what `cosched top` shows.
//!
//! A frame is a pure function of the newest snapshot, an earlier one (shares are of the time
//! between them), the size of the screen, and the user's choices. Each line is complete as text. It
//! has a [`Tone`] that a terminal may show as a colour. No line is wider than the screen, and no
//! text in it can control a terminal.

mod cells;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use cells::Rates;
use cosched_results::live::{LiveState, Snapshot, Standing};

/// The order of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// As in the workload.
    #[default]
    Workload,
    /// By name.
    Name,
    /// Largest share first.
    Share,
    /// Longest running time first.
    Running,
    /// Longest waiting time first.
    Waiting,
    /// Most turns first.
    Turns,
    /// Largest share of the threads' time at locks first, where it is known.
    Locks,
    /// Longest time slice first, where slices are chosen.
    Slice,
    /// The setting that changes most first, where actuators are tried.
    Actuator,
    /// Largest slowdown first, where it is estimated.
    Slowdown,
}

impl RowOrder {
    /// Every order, with its key and its name in a word.
    pub const KEYS: [(char, &'static str, RowOrder); 10] = [
        ('o', "workload", RowOrder::Workload),
        ('n', "name", RowOrder::Name),
        ('s', "share", RowOrder::Share),
        ('r', "running", RowOrder::Running),
        ('w', "waiting", RowOrder::Waiting),
        ('t', "turns", RowOrder::Turns),
        ('l', "locks", RowOrder::Locks),
        ('c', "slice", RowOrder::Slice),
        ('a', "actuator", RowOrder::Actuator),
        ('d', "slowdown", RowOrder::Slowdown),
    ];

    /// The order with this key.
    pub fn of_key(key: char) -> Option<RowOrder> {
        RowOrder::KEYS.iter().find(|(of, ..)| *of == key).map(|(.., order)| *order)
    }
}

/// The choices of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// The order of the rows.
    pub order: RowOrder,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// How many rows are above the screen.
    pub scroll: usize,
}

impl View {
    /// Chooses an order; choosing the current one again reverses it.
    pub fn choose(&mut self, order: RowOrder) {
        self.reversed = self.order == order && !self.reversed;
        self.order = order;
    }

    /// Scrolls down by a number of rows, at most to the last row, on a screen of this height.
    pub fn scroll_by(&mut self, rows: isize, programs: usize, height: usize) {
        let room = height.saturating_sub(ABOVE + BELOW);
        self.scroll = self.scroll.saturating_add_signed(rows).min(programs.saturating_sub(room));
    }
}

/// The columns of a frame in their order, with their meanings.
pub fn legend() -> impl Iterator<Item = (&'static str, &'static str)> {
    cells::legend()
}

/// The kind of a line, for terminals that have colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// A line that is always there.
    Plain,
    /// The line above the rows.
    Header,
    /// A program that may run.
    Running,
    /// A program that waits, or has not arrived.
    Waiting,
    /// A program that needs attention: another process stopped it, or it failed.
    Alarming,
    /// A program that has ended well.
    Over,
}

/// One line of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its text.
    pub text: String,
    /// Its kind.
    pub tone: Tone,
}

/// Lines above the rows, and below.
const ABOVE: usize = 5;
const BELOW: usize = 1;

/// The screen: `width` columns (a character may take two, or none), and at most `height` lines;
/// `None`: all lines. Shares are of the time since `past`, or else since the programs arrived.
pub fn frame(
    now: &Snapshot,
    past: Option<&Snapshot>,
    view: View,
    width: usize,
    height: Option<usize>,
) -> Vec<Line> {
    let shares: Vec<Option<f64>> = (0..now.programs.len()).map(|i| share(now, past, i)).collect();
    let order = ordered(now, &shares, view);
    let room = height.map_or(order.len(), |height| height.saturating_sub(ABOVE + BELOW));
    let hidden = view.scroll.min(order.len().saturating_sub(room));
    let shown: Vec<usize> = order.iter().skip(hidden).take(room).copied().collect();
    let mut spare = height.map_or(usize::MAX, |_| room - shown.len());

    let plain = |text| Line { text, tone: Tone::Plain };
    let mut lines = vec![
        plain(cells::title(now)),
        plain(cells::running(now, width)),
        plain(cells::figures(now, past)),
        plain(String::new()),
    ];
    let columns = cells::Columns::fitting(now, width);
    lines.push(Line { text: columns.header(), tone: Tone::Header });
    for &i in &shown {
        let program = &now.programs[i];
        let text = columns.row(now, program, rates(now, past, i, shares[i]));
        lines.push(Line { text, tone: tone(program) });
        for process in program.processes.iter().take(spare) {
            lines.push(Line { text: cells::process(process), tone: tone(program) });
        }
        spare = spare.saturating_sub(program.processes.len());
    }
    let rest = match shown.len() {
        0 => "; no room for programs".to_owned(),
        n if n < order.len() => format!("; {} to {} of {}", hidden + 1, hidden + n, order.len()),
        _ => String::new(),
    };
    if height.is_some() {
        let reversed = if view.reversed { ", reversed" } else { "" };
        let chosen = RowOrder::KEYS.into_iter().find(|(.., order)| *order == view.order);
        let by = chosen.map_or("", |(_, name, _)| name);
        lines.push(plain(format!("q quits; order by o n s r w t l c a d: {by}{reversed}{rest}")));
    }
    for line in &mut lines {
        line.text = cells::fitted(&line.text, width);
    }
    lines.truncate(height.unwrap_or(usize::MAX));
    lines
}

/// The share of its time in which a program was allowed to run, and no filler; `None` where no time
/// has passed.
fn share(now: &Snapshot, past: Option<&Snapshot>, i: usize) -> Option<f64> {
    let after = &now.programs[i];
    let (ran, waited) = match past.and_then(|past| past.programs.get(i)) {
        Some(before) => (
            after.turn_seconds() - before.turn_seconds(),
            after.other_seconds() - before.other_seconds(),
        ),
        None => (after.turn_seconds(), after.other_seconds()),
    };
    let all = ran + waited;
    (all > 0.0).then(|| ran / all)
}

/// The rates of a program, where they are known and time has passed.
fn rates(now: &Snapshot, past: Option<&Snapshot>, i: usize, share: Option<f64>) -> Rates {
    let since = |count: fn(&Standing) -> Option<u64>| {
        let after = &now.programs[i];
        let (before, since) = match past {
            Some(past) => (count(past.programs.get(i)?)?, past.at_seconds),
            None => (0, after.arrived_seconds),
        };
        Some((count(after)?.saturating_sub(before), now.at_seconds - since))
    };
    let per_second = |count: fn(&Standing) -> Option<u64>| {
        let (more, time) = since(count)?;
        (time > 0.0).then_some(more as f64 / time)
    };
    let of_waits = || {
        let (waits, _) = since(|program| Some(program.barrier_stats?.waits()))?;
        let (slept, _) = since(|program| Some(program.barrier_stats?.slept))?;
        (waits > 0).then_some(slept as f64 / waits as f64)
    };
    Rates {
        share,
        switches: per_second(|program| program.context_switches),
        barrier_stats: per_second(|program| Some(program.barrier_stats?.barriers)),
        asleep: of_waits(),
    }
}

fn ordered(now: &Snapshot, shares: &[Option<f64>], view: View) -> Vec<usize> {
    let program = |i: usize| &now.programs[i];
    let largest = |a: f64, b: f64| b.total_cmp(&a);
    let locks = |i: usize| program(i).lock_contention().unwrap_or(-1.0);
    let slice = |i: usize| program(i).slice.map_or(-1.0, |slice| slice.slice_seconds);
    let slowdown = |i: usize| program(i).forward.and_then(|come| come.slowdown).unwrap_or(-1.0);
    let compare = |a: usize, b: usize| -> Ordering {
        match view.order {
            RowOrder::Workload => Ordering::Equal,
            RowOrder::Name => program(a).name.cmp(&program(b).name),
            RowOrder::Share => largest(shares[a].unwrap_or(-1.0), shares[b].unwrap_or(-1.0)),
            RowOrder::Running => largest(program(a).turn_seconds(), program(b).turn_seconds()),
            RowOrder::Waiting => largest(program(a).other_seconds(), program(b).other_seconds()),
            RowOrder::Turns => program(b).turns.cmp(&program(a).turns),
            RowOrder::Locks => largest(locks(a), locks(b)),
            RowOrder::Slice => largest(slice(a), slice(b)),
            RowOrder::Actuator => program(b).actuator.cmp(&program(a).actuator),
            RowOrder::Slowdown => largest(slowdown(a), slowdown(b)),
        }
    };
    let mut order: Vec<usize> = (0..now.programs.len()).collect();
    order.sort_by(|a, b| compare(*a, *b));
    if view.reversed {
        order.reverse();
    }
    order
}

fn tone(program: &Standing) -> Tone {
    match program.state {
        LiveState::StoppedByOther => Tone::Alarming,
        LiveState::Ended if cells::has_failed(program) => Tone::Alarming,
        LiveState::Ended => Tone::Over,
        state if state.may_run() && !program.is_filler => Tone::Running,
        _ => Tone::Waiting,
    }
}
