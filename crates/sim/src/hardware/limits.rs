//! The limits of a machine's values.
//!
//! Costs have to stay below the time that a thread has a CPU at a stretch: there is a tick every 4
//! ms, and the shortest slice is 0.1 ms. With higher costs no program would ever end. Other values
//! have limits far from all real machines, so that a wrong unit is noticed.

use cosched_core::Nanos;
use cosched_workload::figure;

use super::HardwareFile;

/// Checks what was read; returns which key is wrong, and the remedy.
pub(super) fn check(read: &HardwareFile) -> Result<(), (&'static str, String)> {
    let own = read.own.map_or([Nanos::ZERO; 4], |own| [own.start, own.join, own.freeze, own.thaw]);
    let [start, join, freeze, thaw] = own.map(|time| time.0 as f64);
    let values = [
        ("gigahertz", read.gigahertz, 1e-3, 1e3),
        ("smt_share", read.smt_share, 1e-2, 1.0),
        ("cache_mib", read.cache_mib, 1e-3, 1e6),
        ("memory_nanos", read.memory_nanos, 1e-3, 1e6),
        ("remote_nanos", read.remote_nanos, 0.0, 1e6),
        ("switch_nanos", read.switch_nanos, 0.0, 5e4),
        ("wake_nanos", read.wake_nanos, 0.0, 1e9),
        ("tick_nanos", read.tick_nanos, 0.0, 1e6),
        ("strays_per_second", read.strays_per_second, 0.0, 1e4),
        ("interruptions_per_second", read.interruptions_per_second, 0.0, 1e4),
        ("housekeeping_per_second", read.housekeeping_per_second, 0.0, 1e4),
        ("own.start_nanos", start, 0.0, 1e11),
        ("own.join_nanos", join, 0.0, 1e11),
        ("own.freeze_nanos", freeze, 0.0, 1e9),
        ("own.thaw_nanos", thaw, 0.0, 1e9),
    ];
    let signals = read.signal_nanos.map(|nanos| ("signal_nanos", nanos, 0.0, 1e9));
    let buses = read.bus.iter().map(|bus| ("bus.bytes_per_nano", bus.bytes_per_nano, 1e-3, 1e6));
    let mut all = values.into_iter().chain(signals).chain(buses);
    match all.find(|(_, value, least, most)| !(*least..=*most).contains(value)) {
        Some((key, value, least, most)) => {
            Err((key, format!("is {}, but must be from {least} to {most}", figure(value))))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::hardware::Hardware;

    const TEXT: &str = "name = 'two'\ntopology = 'core:2'\n\
        gigahertz = 2.0\ncache_mib = 8\nmemory_nanos = 80\n\
        bus = [{ of = 'package', bytes_per_nano = 10 }]\nswitch_nanos = 1500\nwake_nanos = 3000\n\
        signal_nanos = [30, 60, 200]\n";

    /// Costs that leave a thread no time are refused, and the message says what is possible.
    #[test]
    fn costs_that_leave_threads_no_time_are_refused() {
        let parsed_with = |key: &str, value: &str| {
            let plain = TEXT.lines().filter(|line| !line.starts_with(key));
            let line = format!("{key} = {value}");
            let text = plain.chain([line.as_str()]).collect::<Vec<_>>();
            Hardware::parse(&text.join("\n"), "two.toml").map(|_| ()).map_err(|e| e.to_string())
        };
        let at_most = |key: &str, too_much: &str, most: &str| {
            let message = parsed_with(key, too_much).unwrap_err();
            let remedy = format!("but must be from 0 to {most}");
            assert!(message.starts_with(&format!("two.toml: {key}: is")), "{message}");
            assert!(message.ends_with(&remedy), "{message}");
            assert_eq!(parsed_with(key, most), Ok(()));
        };
        at_most("tick_nanos", "4e6", "1000000");
        at_most("switch_nanos", "4e6", "50000");
        at_most("remote_nanos", "-1", "1000000");
        at_most("wake_nanos", "inf", "1000000000");
        at_most("interruptions_per_second", "999999", "10000");
        assert!(
            parsed_with("signal_nanos", "[1, nan, 1]")
                .unwrap_err()
                .contains("signal_nanos: is NaN")
        );
        let own = |start: u64, freeze: u64| {
            let own =
                format!("[own]\nstart_nanos = {start}\nfreeze_nanos = {freeze}\nthaw_nanos = 0");
            let read = Hardware::parse(&format!("{TEXT}{own}"), "two.toml");
            read.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(own(100_000_000_000, 1_000_000_000), Ok(()));
        assert!(own(u64::MAX / 4, 0).unwrap_err().contains("own.start_nanos: is"));
        assert!(own(0, 2_000_000_000).unwrap_err().contains("own.freeze_nanos: is"));
    }
}
