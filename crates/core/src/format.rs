//! How figures and settings are written in texts for people: the same in the words of policies, in
//! reports and in messages.

use crate::actuator::Actuator;
use crate::cpuset::CpuSet;
use crate::time::Nanos;

/// A time span with two or three significant digits.
pub fn span(time: Nanos) -> String {
    let micros = time.0 as f64 / 1e3;
    match micros {
        m if m >= 999_500.0 => format!("{:.2} s", m / 1e6),
        m if m >= 99_950.0 => format!("{:.0} ms", m / 1e3),
        m if m >= 999.5 => format!("{} ms", (m / 100.0).round() / 10.0),
        m => format!("{m:.0} us"),
    }
}

/// An instant of a run: to the millisecond.
pub fn instant(at: Nanos) -> String {
    format!("{:.3} s", at.as_secs_f64())
}

/// "1 switch", "2 switches".
pub fn count(n: usize, one: &str, many: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {many}"),
    }
}

/// "CPU 5", "CPUs 0-3".
pub fn cpus(cpus: &CpuSet) -> String {
    format!("{} {cpus}", if cpus.len() == 1 { "CPU" } else { "CPUs" })
}

/// A list in words: "a", "a and b", "a, b and c".
pub fn list(words: &[String]) -> String {
    match words {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// A share, 0 to 1, in percent.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Some of the threads that a program requests.
pub fn of_requested(threads: u16, requested: u16) -> String {
    format!("{threads} of {}", count(requested.into(), "requested thread", "requested threads"))
}

/// The name of an actuator.
pub fn actuator(actuator: Actuator) -> &'static str {
    match actuator {
        Actuator::None => "original",
        other => other.name(),
    }
}

/// Which gang of which round; the first gang is number 1. A policy without rounds counts each
/// quantum as a round.
pub fn place(round: u64, gang: u16, gangs: u16) -> String {
    match gangs {
        0 | 1 => format!("round {round}"),
        _ => format!("round {round}, gang {} of {gangs}", u32::from(gang) + 1),
    }
}

/// How long a quantum is meant to last.
pub fn planned(length: Nanos) -> String {
    match length {
        Nanos::NEVER => "without a planned end".to_owned(),
        length => format!("planned for {}", span(length)),
    }
}

/// Cache misses of a program.
pub fn misses_per_kilo_instruction(misses: f64) -> String {
    format!("{misses:.0} cache misses per 1000 instructions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cpu_is_no_cpus() {
        assert_eq!(cpus(&CpuSet::first(1)), "CPU 0");
        assert_eq!(cpus(&CpuSet::first(4)), "CPUs 0-3");
    }

    #[test]
    fn one_thread_is_no_threads() {
        assert_eq!(of_requested(1, 1), "1 of 1 requested thread");
        assert_eq!(of_requested(1, 2), "1 of 2 requested threads");
    }

    #[test]
    fn times_have_two_or_three_significant_digits() {
        let texts = [0, 140, 999, 1_500, 9_990, 49_500, 99_960, 203_400, 999_600, 61_250_000]
            .map(|micros| span(Nanos::from_micros(micros)));
        assert_eq!(
            texts,
            [
                "0 us", "140 us", "999 us", "1.5 ms", "10 ms", "49.5 ms", "100 ms", "203 ms",
                "1.00 s", "61.25 s"
            ]
        );
    }
}
