//! The values of options and arguments: times, numbers, files. Each error is a sentence that says
//! what is expected.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use cosched_core::{Nanos, parse_duration};
use cosched_policy::gangs::quantum::{LONGEST, SHORTEST, possible};
use cosched_policy::{Quanta, Slowdowns};
use cosched_sim::Kernel;
use cosched_workload::input;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How times are written.
const UNITS: &str = "write a time with its unit, such as 100ms or 1s";
/// How times since the start of a run are written.
const INSTANT: &str = "write seconds since the start of the run, such as 12.35, or a time with its \
                       unit, such as 350ms";

/// The table of slowdowns in a file.
pub fn slowdowns(file: &str) -> Result<Arc<Slowdowns>, String> {
    table(file, "calibrate slowdowns", Slowdowns::parse).map(Arc::new)
}

/// The table of slices in a file.
pub fn quanta(file: &str) -> Result<Quanta, String> {
    table(file, "calibrate quanta", Quanta::parse)
}

/// A table in a file, which a command makes.
fn table<T, E: Display>(
    file: &str,
    made_by: &str,
    parse: fn(&str) -> Result<T, E>,
) -> Result<T, String> {
    let text = input::text(file.as_ref()).map_err(|error| format!("cannot be read: {error}"));
    let read = text.and_then(|text| parse(&text).map_err(|error| error.to_string()));
    read.map_err(|error| format!("{error}; `cosched {made_by}` makes such a table"))
}

/// The kernel of a simulated machine, by its name.
pub fn kernel(text: &str) -> Result<Kernel, String> {
    Kernel::named(text)
        .ok_or_else(|| format!("there is no such kernel; choose from {}", Kernel::NAMES.join(", ")))
}

/// A whole number within bounds.
pub fn whole<T>(bounds: RangeInclusive<T>) -> impl Fn(&str) -> Result<T, String> + Clone
where
    T: FromStr + PartialOrd + Display + Clone,
{
    move |text| match text.parse() {
        Ok(number) if bounds.contains(&number) => Ok(number),
        _ => Err(format!("write a whole number from {} to {}", bounds.start(), bounds.end())),
    }
}

/// The seed of a simulation's random choices.
pub fn seed(text: &str) -> Result<u64, String> {
    whole(0..=u64::MAX)(text)
}

/// A value that knows its own names.
pub fn named<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Between two measurements of a program.
pub fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        interval if interval < Duration::from_millis(10) => Err("write 10ms or more".to_owned()),
        interval => Ok(interval),
    }
}

/// How long a gang runs at a time.
pub fn quantum(text: &str) -> Result<Duration, String> {
    let is_possible = |time: &Duration| (SHORTEST..=LONGEST).contains(&Nanos::from(*time));
    time(text)?.filter(is_possible).ok_or_else(|| {
        format!("choose {} (for longer turns use the policy 'fcfs'); {UNITS}", possible())
    })
}

/// How long programs may be paused at once.
pub fn max_frozen(text: &str) -> Result<Duration, String> {
    let is_possible = |time: &Duration| (Duration::from_millis(1)..=DAY).contains(time);
    time(text)?.filter(is_possible).ok_or_else(|| format!("choose from 1ms to a day; {UNITS}"))
}

/// A time with a unit; `None` where it is below zero.
fn time(text: &str) -> Result<Option<Duration>, String> {
    if text.starts_with('-') {
        return Ok(None);
    }
    parse_duration(text).map(Some).ok_or_else(|| UNITS.to_owned())
}

/// A time with a unit: 100ms, 1s, 2min.
pub fn duration(text: &str) -> Result<Duration, String> {
    let is_possible = |time: &Duration| !time.is_zero() && *time <= DAY;
    time(text)?
        .filter(is_possible)
        .ok_or_else(|| format!("a time here is more than zero and at most a day; {UNITS}"))
}

/// A time since the beginning of a run: seconds as in run.json, or with a unit.
pub fn instant(text: &str) -> Result<Nanos, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => {
            Ok(cosched_report::history::nanos(seconds))
        }
        Ok(_) => Err("a time in a run is 0 s or later".to_owned()),
        Err(_) => parse_duration(text).map(Nanos::from).ok_or_else(|| INSTANT.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_time_is_answered_with_how_to_write_one() {
        assert_eq!(instant("abc").unwrap_err(), INSTANT);
        assert_eq!(instant("12.35").unwrap(), Nanos::from(Duration::from_millis(12_350)));
        assert_eq!(instant("350ms").unwrap(), Nanos::from(Duration::from_millis(350)));
        for text in ["abc", "5", "5 bananas"] {
            assert_eq!(quantum(text).unwrap_err(), UNITS, "{text}");
        }
        assert!(quantum("0ms").unwrap_err().starts_with("choose from 1 ms to 60 s (for longer"));
    }
}
