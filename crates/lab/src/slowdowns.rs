//! `cosched calibrate slowdowns`: how much programs slow each other down on this machine, by their
//! traffic with memory.
//!
//! *Source.* The thesis, section 3.3: five variants of STREAM take 100, 80, 60, 40 and 20 % of the
//! memory's bandwidth. Each runs alone, in every pair and in every triple, with as many threads as
//! leave room for three programs. Its slowdown is its time with the others over its time alone
//! (figure 3.6); here it is the bandwidth alone over the bandwidth with the others.
//!
//! The variants are threads of cosched, so nothing has to be compiled. Those of a program are bound
//! to the CPUs that the placement gives it. The table is that of [`Slowdowns`]. On two CPUs no
//! three programs fit, and the table has pairs only.

mod combinations;
mod interrupted;
mod kept;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use cosched_core::CpuSet;
use cosched_core::format::count;
use cosched_linux::cgroup::memory_left;
use cosched_linux::kernel::procfs::Proc;
use cosched_policy::{Placement, Slowdowns, place};

use crate::replace::{self, FileKind};
use crate::session::Session;
use crate::sim::{Stream, bytes_of_thread, memory_of_streams, streams};
use crate::slowdown_document::SlowdownsDocument;
use crate::ui::failure::Failure;
use crate::ui::{Talk, print_json, say};
use combinations::{PlacedVariant, combinations, derive, kind};
use kept::{Kept, Setting};

const SCHEMA: &str = "cosched-calibrate-slowdowns/1";
/// The variants: parts of the largest bandwidth, in percent.
const PERCENTS: [u32; 5] = [20, 40, 60, 80, 100];
/// More additions than this per cache line make no traffic.
const MOST_ADDITIONS: u32 = 1 << 16;
/// A measurement warms up for a part of its window, and makes threads (seconds).
const WITH_WARMING: f64 = 1.2;
const MAKING: f64 = 0.1;
/// Each thread fills so much of its arrays in a second, bytes: most of the time, the kernel clears
/// memory.
const FILLING: f64 = 1e9;
/// Measurements that one variant takes until its additions are found.
const SEARCH: usize = 10;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct SlowdownChoices {
    /// Threads of each program; `None`: as many as leave room for three.
    pub threads: Option<u16>,
    /// Where the threads of a program go.
    pub placement: Placement,
    /// How many rounds; medians count.
    pub runs: u16,
    /// How long each measurement lasts.
    pub window: Duration,
}

/// Measures, writes the table, and shows it.
///
/// # Errors
/// When the file cannot be written, programs do not fit, or something breaks on the way.
pub fn slowdowns(out: &Path, choices: SlowdownChoices, json: bool) -> Result<ExitCode, Failure> {
    let session = Session::here()?;
    replace::check(out, KIND)?;
    if fs::metadata(out).is_ok_and(|found| !found.is_file()) {
        return Err(Failure::Input(format!(
            "--out {}: what is measured is kept in a file beside the table, so name a file",
            cosched_workload::shown_path(out)
        )));
    }
    let places = places(&session, choices)?;
    let left = memory_left(&Proc::own().map_err(Failure::input)?);
    check_memory(memory_of_streams(&places.concat()), left)?;
    let machine = format!(
        "{}, {} each, {}",
        session.description,
        count(places[0].len(), "thread", "threads"),
        choices.placement
    );
    let window_seconds = choices.window.as_secs_f64();
    let setting = Setting { machine: machine.clone(), places: places.clone(), window_seconds };
    let mut kept = Kept::open(&kept::beside(out), setting)?;
    let combinations = combinations(PERCENTS.len(), places.len());
    let figures = |next: usize| combinations[next % combinations.len()].len();
    kept.check((PERCENTS.len(), 2 * MOST_ADDITIONS), figures)?;
    interrupted::tell_what_is_kept(kept::beside(out)).map_err(Failure::broken)?;
    tell_time(&kept, combinations.len() * usize::from(choices.runs), each(&places, window_seconds));
    session.tell_if_busy(Talk::Usual);
    let bench = StreamBench { places: &places, window: choices.window };
    let (measured, disturbed) =
        session.while_watched(|| bench.measure(&mut kept, &combinations, choices.runs));
    measured?;
    let rounds: Vec<&[Vec<f64>]> = kept.measured.chunks_exact(combinations.len()).collect();
    let (levels, table) = derive(&combinations, &rounds);
    let document = table.spread_out(SCHEMA, machine, levels);
    let text = checked(&document, &kept::beside(out))?;
    replace::replace(out, text.as_bytes(), KIND)?;
    kept.remove();
    if let Some(used) = disturbed {
        say(format_args!(
            "other processes used {used} meanwhile: measure again when the machine is idle"
        ));
    }
    if json {
        print_json(&serde_json::to_string_pretty(&document).map_err(Failure::broken)?)?;
    }
    let out = cosched_workload::shown_path(out);
    say(format_args!("the table is in {out}: use it with --policy bandwidth --slowdowns {out}"));
    Ok(ExitCode::SUCCESS)
}

/// The first words of a table that may be replaced.
const MADE_BY: &str = "# Made by `cosched calibrate slowdowns`";
const KIND: FileKind = FileKind {
    made_by: "cosched calibrate slowdowns",
    option: "--out",
    is_one: |content| content.starts_with(MADE_BY.as_bytes()),
};

/// The table as text, if `--slowdowns` takes it.
fn checked(document: &SlowdownsDocument, measured: &Path) -> Result<String, Failure> {
    let text = format!("{MADE_BY}: GB/s between caches and memory.\n{}\n", document.toml());
    match Slowdowns::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(Failure::Broken(format!(
            "what was measured makes no table, since the machine was not idle: {error}. Remove {} \
             and measure again on the idle machine, with a longer --window or more --runs",
            cosched_workload::shown_path(measured)
        ))),
    }
}

/// The CPUs of each program: three of them, or two where three do not fit.
fn places(session: &Session, choices: SlowdownChoices) -> Result<Vec<Vec<usize>>, Failure> {
    let cpus = session.usable.cpus;
    let (programs, threads) = match (choices.threads, cpus.len()) {
        (_, 0 | 1) => {
            let text = "two programs at a time do not fit into 1 CPU: nothing slows another down";
            return Err(Failure::Input(text.to_owned()));
        }
        (None, n) => {
            if n < 3 {
                (2, n / 2)
            } else {
                (3, n / 3)
            }
        }
        (Some(threads), n) => ((n / usize::from(threads)).min(3), usize::from(threads)),
    };
    if programs < 2 {
        return Err(Failure::Input(format!(
            "--threads {threads}: two programs at a time do not fit into {}; take at most {}",
            count(cpus.len(), "CPU", "CPUs"),
            cpus.len() / 2
        )));
    }
    let mut free = cpus;
    let next = |_| {
        let chosen = place(&session.topology, &cpus, &free, threads, choices.placement, None);
        let chosen: CpuSet = chosen.unwrap_or_else(|| free.iter().take(threads).collect());
        free = free.difference(&chosen);
        chosen.iter().collect()
    };
    Ok((0..programs).map(next).collect())
}

/// Refuses to begin where the programs do not fit into memory: the kernel would end this process on
/// the way. `left`: bytes, if the kernel tells.
fn check_memory(needed: u64, left: Option<u64>) -> Result<(), Failure> {
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    match left {
        Some(left) if left < needed => Err(Failure::Input(format!(
            "the programs need {} MiB of memory together, and {} MiB are left here; take fewer \
             --threads, end other programs, or raise the limit of this cgroup (memory.max)",
            mib(needed),
            mib(left)
        ))),
        _ => Ok(()),
    }
}

/// Says how long it will take, and that it can be interrupted.
fn tell_time(kept: &Kept, all: usize, each: f64) {
    let left = all.saturating_sub(kept.measured.len());
    let search = if kept.additions.is_none() { SEARCH * PERCENTS.len() } else { 0 };
    let known = match kept.measured.len() {
        0 => String::new(),
        known => format!(" ({known} are known already)"),
    };
    say(format_args!(
        "measuring streams through memory, alone and together: {}{known}, about {}. The machine \
         has to be idle. Ctrl-C keeps what is measured once the variants are found, and this \
         command goes on with it",
        count(left, "measurement", "measurements"),
        remaining(left + search, each)
    ));
}

/// Seconds that a measurement takes at most. The arrays of a program alone are the largest.
fn each(places: &[Vec<usize>], window_seconds: f64) -> f64 {
    let bytes = bytes_of_thread(&places[0]);
    WITH_WARMING * window_seconds + MAKING + bytes as f64 / FILLING
}

fn remaining(measurements: usize, each: f64) -> String {
    match measurements as f64 * each {
        s if s < 120.0 => format!("{:.0} s", s.max(1.0).ceil()),
        s => format!("{:.0} min", (s / 60.0).ceil()),
    }
}

struct StreamBench<'a> {
    places: &'a [Vec<usize>],
    window: Duration,
}

impl StreamBench<'_> {
    /// Measures what is missing. All combinations once, then all again.
    fn measure(
        &self,
        kept: &mut Kept,
        combinations: &[Vec<PlacedVariant>],
        runs: u16,
    ) -> Result<(), Failure> {
        let additions = match &kept.additions {
            Some(known) => known.clone(),
            None => {
                let found = find_additions(|additions| {
                    let alone = Stream { cpus: self.places[0].clone(), additions };
                    Ok(streams(&[alone], self.window)?[0])
                })?;
                kept.begin(&found)?;
                found
            }
        };
        let all = combinations.len() * usize::from(runs);
        let mut told = None;
        for next in kept.measured.len()..all {
            let (round, together) =
                (next / combinations.len(), &combinations[next % combinations.len()]);
            let part = Some((round, kind(together)));
            if std::mem::replace(&mut told, part) != part {
                let left = remaining(all - next, each(self.places, self.window.as_secs_f64()));
                let what = kind(together);
                say(format_args!("round {} of {runs}: {what}, about {left} left", round + 1));
            }
            let stream = |one: &PlacedVariant| Stream {
                cpus: self.places[one.place].clone(),
                additions: additions[one.variant],
            };
            let together: Vec<Stream> = together.iter().map(stream).collect();
            kept.add(streams(&together, self.window)?)?;
        }
        Ok(())
    }
}

/// The fewest additions per cache line with which each variant takes at most its part of the
/// largest bandwidth; the quietest variant first. A variant that takes less has more additions.
fn find_additions(
    mut bandwidth: impl FnMut(u32) -> Result<f64, Failure>,
) -> Result<Vec<u32>, Failure> {
    say(format_args!("finding the variants of {PERCENTS:?} % of the memory's bandwidth"));
    let peak = bandwidth(0)?;
    let mut found = vec![0];
    for percent in PERCENTS.iter().rev().skip(1) {
        let wanted = peak * f64::from(*percent) / 100.0;
        let mut low = found.last().copied().unwrap_or(0);
        let mut high = low + 8;
        while high < MOST_ADDITIONS && bandwidth(high)? > wanted {
            (low, high) = (high, high * 2);
        }
        while high - low > 1 {
            let middle = low.midpoint(high);
            if bandwidth(middle)? > wanted { low = middle } else { high = middle }
        }
        found.push(high);
    }
    found.reverse();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line takes 8 ns, or 4 ns and 1 ns for each addition where that is longer: 80 % are 10 ns,
    /// which 6 additions take; 60 % are 13.3 ns: 10 additions; 40 % are 20 ns: 16; 20 % are 40 ns:
    /// 36.
    #[test]
    fn additions_are_found_for_each_part_of_the_bandwidth() {
        let found = find_additions(|additions| Ok(64.0 / (4.0 + f64::from(additions)).max(8.0)));
        assert_eq!(found.unwrap(), [36, 16, 10, 6, 0]);
    }

    #[test]
    fn programs_that_do_not_fit_into_memory_are_refused() {
        let refused = check_memory(4 << 30, Some(2 << 30)).unwrap_err();
        assert!(refused.text().contains("need 4096 MiB"), "{}", refused.text());
        assert!(refused.text().contains("2048 MiB are left"), "{}", refused.text());
        assert!(check_memory(1 << 30, Some(2 << 30)).is_ok() && check_memory(1, None).is_ok());
    }

    #[test]
    fn the_time_is_known_before_the_start() {
        assert_eq!(remaining(325 + 50, 0.7), "5 min");
        assert_eq!([remaining(40, 0.7), remaining(1, 0.01)], ["28 s", "1 s"]);
        // Arrays of 24 MiB at least take another 25 ms.
        let short = each(&[vec![0]], 0.5) - 0.7;
        assert!((0.025..4.4).contains(&short), "{short}");
    }
}
