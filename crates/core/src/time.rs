//! Time as the engine counts it: integer nanoseconds since the run began.
//!
//! Integers keep the simulator reproducible to the byte and make "equal
//! instants" a meaningful test. One type serves for instants and for spans;
//! both start at zero and never go below it.

use std::fmt;
use std::ops::{Add, AddAssign, Div, Mul, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Nanoseconds since the run began, or a span of nanoseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The beginning of a run; also the empty span.
    pub const ZERO: Nanos = Nanos(0);
    /// Later than every event: "never".
    pub const NEVER: Nanos = Nanos(u64::MAX);

    /// A span of `n` microseconds.
    pub const fn from_micros(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000))
    }

    /// A span of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000))
    }

    /// A span of `n` seconds.
    pub const fn from_secs(n: u64) -> Nanos {
        Nanos(n.saturating_mul(1_000_000_000))
    }

    /// The span in seconds, for people and for JSON.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Nanos {
    fn from(d: Duration) -> Nanos {
        Nanos(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(n: Nanos) -> Duration {
        Duration::from_nanos(n.0)
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        *self = *self + other;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    /// Saturates at zero: spans are never negative.
    fn sub(self, other: Nanos) -> Nanos {
        self.since(other)
    }
}

impl Mul<u64> for Nanos {
    type Output = Nanos;
    fn mul(self, n: u64) -> Nanos {
        Nanos(self.0.saturating_mul(n))
    }
}

impl Div<u64> for Nanos {
    type Output = Nanos;
    fn div(self, n: u64) -> Nanos {
        Nanos(self.0 / n)
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(iter: I) -> Nanos {
        iter.fold(Nanos::ZERO, Add::add)
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            u64::MAX => f.write_str("never"),
            n if n >= 1_000_000_000 => write!(f, "{:.3} s", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{:.3} ms", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{:.1} us", n as f64 / 1e3),
            n => write!(f, "{n} ns"),
        }
    }
}

/// The units of a time in a file or an option. The parser knows more, such as `M` for a month.
const UNITS: [&str; 8] = ["ns", "us", "ms", "s", "m", "min", "h", "d"];

/// Reads a time as users write it: numbers, each with a unit of ns, us, ms, s, m (or min), h and d,
/// such as `1m 30s`. `None`: it is no such time.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut units = text.split(|c: char| !c.is_alphabetic()).filter(|unit| !unit.is_empty());
    let are_known = units.all(|unit| UNITS.contains(&unit));
    humantime::parse_duration(text).ok().filter(|_| are_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_units_of_the_list_and_no_others() {
        let seconds = |text| parse_duration(text).map(|time| time.as_secs_f64());
        assert_eq!(seconds("1m 30s"), Some(90.0));
        assert_eq!(seconds("2min"), Some(120.0));
        assert_eq!(seconds("1500us"), Some(0.0015));
        for text in ["1M", "2 months", "5 minutes", "300 msec", "1y", "1w", "s", "5", ""] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
