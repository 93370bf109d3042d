//! What stands behind options and arguments: times, numbers, files; each error names what would be
//! right.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use cosched_core::{Nanos, input};
use cosched_policy::quantum::{LONGEST, SHORTEST};
use cosched_policy::{Quanta, Slowdowns};
use cosched_sim::Kernel;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How times are written.
const UNITS: &str = "write a time with its unit, such as 100ms or 1s";

pub(super) fn slowdowns(file: &str) -> Result<Arc<Slowdowns>, String> {
    let help =
        "docs/research/policies.md describes such a table, and `cosched sim slowdowns` makes one";
    let text =
        input::text(file.as_ref()).map_err(|error| format!("cannot be read: {error}; {help}"))?;
    Slowdowns::parse(&text).map(Arc::new).map_err(|error| format!("{error}; {help}"))
}

pub(super) fn quanta(file: &str) -> Result<Quanta, String> {
    let help =
        "docs/research/quanta.md describes such a table, and `cosched calibrate quanta` makes one";
    let text =
        input::text(file.as_ref()).map_err(|error| format!("cannot be read: {error}; {help}"))?;
    Quanta::parse(&text).map_err(|error| format!("{error}; {help}"))
}

pub(crate) fn kernel(text: &str) -> Result<Kernel, String> {
    Kernel::named(text)
        .ok_or_else(|| format!("there is no such kernel; choose from {}", Kernel::NAMES.join(", ")))
}

/// A whole number within bounds.
pub(crate) fn whole<T>(bounds: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| match text.parse() {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => Err(format!("write a whole number from {} to {}", bounds.start(), bounds.end())),
    }
}

/// What decides in a simulation where nothing else does.
pub(crate) fn seed(text: &str) -> Result<u64, String> {
    whole(0..=u64::MAX)(text)
}

/// The number of a process.
pub(crate) fn pid(text: &str) -> Result<i32, String> {
    whole(1..=i32::MAX)(text)
}

/// A value that knows its own names.
pub(crate) fn named<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Between two measurements of a program.
pub(super) fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        interval if interval < Duration::from_millis(10) => Err("10ms is the least".to_owned()),
        interval => Ok(interval),
    }
}

/// How long a gang runs at a time.
pub(crate) fn quantum(text: &str) -> Result<Duration, String> {
    let is_possible = |time: &Duration| (SHORTEST..=LONGEST).contains(&Nanos::from(*time));
    time(text)?.filter(is_possible).ok_or_else(|| {
        format!("choose from {SHORTEST} to {LONGEST} (longer ones are better served by the policy 'fcfs'); {UNITS}")
    })
}

/// For how long programs may be frozen: no quantum is shorter.
pub(crate) fn max_frozen(text: &str) -> Result<Duration, String> {
    let is_possible = |time: &Duration| (Duration::from_millis(1)..=DAY).contains(time);
    time(text)?.filter(is_possible).ok_or_else(|| format!("choose from 1ms to a day; {UNITS}"))
}

/// A time as people write it; `None` where it is below zero.
fn time(text: &str) -> Result<Option<Duration>, String> {
    if text.starts_with('-') {
        return Ok(None);
    }
    humantime::parse_duration(text).map(Some).map_err(|error| format!("{error}; {UNITS}"))
}

/// A time as people write it: 100ms, 1s, 2min.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let is_possible = |time: &Duration| !time.is_zero() && *time <= DAY;
    time(text)?
        .filter(is_possible)
        .ok_or_else(|| format!("it must be more than zero and at most a day; {UNITS}"))
}

/// A time since the beginning of a run: seconds as in run.json, or with a unit.
pub(crate) fn instant(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => {
            Ok(cosched_report::history::nanos(seconds))
        }
        Ok(_) => Err("a time in a run is from 0 s on".to_owned()),
        Err(_) => humantime::parse_duration(text)
            .map(Nanos::from)
            .map_err(|error| format!("{error}; write seconds such as 12.35, or 350ms")),
    }
}
