//! A computer in a few words: `package:2 l3:1 core:8 pu:2 gigahertz=2.6 cache_mib=20
//! bus=package:40`.
//!
//! Words with a colon are hwloc's [synthetic topology](super::synthetic). Words with an equals sign
//! are keys of a machine's file: all keys with numbers, and `bus`. Missing keys have the values of
//! no machine in particular: [`DEFAULTS`].

use super::synthetic::without_attributes;
use super::{Bus, Hardware, HardwareError, HardwareFile, Scope};

/// The values of missing keys; these are assumptions, of the order of a server of today.
const DEFAULTS: &str = "gigahertz=2.5 smt_share=0.62 cache_mib=16 memory_nanos=90 \
                        switch_nanos=2000 wake_nanos=3000 signal_nanos=20,60,150 bus=package:30";

const KEYS: &str = "gigahertz, smt_share, cache_mib, memory_nanos, remote_nanos, switch_nanos, \
    wake_nanos, strays_per_second, interruptions_per_second, housekeeping_per_second, tick_nanos, \
    signal_nanos=CORE,PACKAGE,MACHINE, bus=package:GB/s (or llc, machine; may be repeated)";

impl Hardware {
    /// Whether a text is a description in words, and not the name of a machine or a file.
    pub fn is_words(text: &str) -> bool {
        let is_one = |word: &str| word.contains([':', '=']) || word.parse::<u16>().is_ok();
        !text.contains('/') && !text.ends_with(".toml") && text.split_whitespace().any(is_one)
    }

    /// Reads a machine that is described in words.
    ///
    /// # Errors
    /// When a word cannot be understood, or its value makes no sense; the word is named.
    pub fn words(text: &str) -> Result<Hardware, HardwareError> {
        let bare = without_attributes(text).map_err(|problem| wrong(text, problem))?;
        let (values, shape): (Vec<&str>, Vec<&str>) =
            bare.split_whitespace().partition(|word| word.contains('='));
        let mut read = HardwareFile {
            name: text.to_owned(),
            topology: shape.join(" "),
            ..HardwareFile::default()
        };
        let has_bus = values.iter().any(|word| word.starts_with("bus="));
        let defaults = DEFAULTS.split_whitespace();
        for word in defaults.filter(|word| !(has_bus && word.starts_with("bus="))) {
            take(&mut read, word)?;
        }
        let mut seen: Vec<&str> = Vec::new();
        for word in values {
            let key = word.split('=').next().unwrap_or(word);
            if key != "bus" && seen.contains(&key) {
                return Err(wrong(word, format!("{key} is there already")));
            }
            seen.push(key);
            take(&mut read, word)?;
        }
        Hardware::build(read, text)
    }
}

fn wrong(word: &str, problem: String) -> HardwareError {
    HardwareError::Word { word: word.to_owned(), problem }
}

fn take(read: &mut HardwareFile, word: &str) -> Result<(), HardwareError> {
    let (key, value) = word.split_once('=').unwrap_or((word, ""));
    let number = |text: &str| {
        let number = text.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| wrong(word, format!("'{text}' is not a number")))
    };
    match key {
        "gigahertz" => read.gigahertz = number(value)?,
        "smt_share" => read.smt_share = number(value)?,
        "cache_mib" => read.cache_mib = number(value)?,
        "memory_nanos" => read.memory_nanos = number(value)?,
        "remote_nanos" => read.remote_nanos = number(value)?,
        "switch_nanos" => read.switch_nanos = number(value)?,
        "wake_nanos" => read.wake_nanos = number(value)?,
        "strays_per_second" => read.strays_per_second = number(value)?,
        "interruptions_per_second" => read.interruptions_per_second = number(value)?,
        "housekeeping_per_second" => read.housekeeping_per_second = number(value)?,
        "tick_nanos" => read.tick_nanos = number(value)?,
        "signal_nanos" => {
            let numbers = value.split(',').map(number).collect::<Result<Vec<f64>, _>>()?;
            read.signal_nanos = numbers.try_into().map_err(|_| {
                wrong(word, "three numbers: on one core, in one package, across".to_owned())
            })?;
        }
        "bus" => {
            let (of, speed) = value.split_once(':').unwrap_or((value, ""));
            let of = match of {
                "llc" => Scope::Llc,
                "package" => Scope::Package,
                "machine" => Scope::Machine,
                _ => {
                    return Err(wrong(
                        word,
                        "write it as bus=package:40 (llc, package, machine)".to_owned(),
                    ));
                }
            };
            read.bus.push(Bus { of, bytes_per_nano: number(speed)? });
        }
        _ => return Err(wrong(word, format!("there is no key '{key}'; the keys are {KEYS}"))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words describe a machine, and missing keys have defaults.
    #[test]
    fn words_describe_a_machine() {
        let text =
            "package:2 l3:1 core:8 pu:2 gigahertz=2.6 cache_mib=20 memory_nanos=80 bus=package:40";
        let machine = Hardware::words(text).unwrap();
        assert_eq!(machine.topology.cpus().len(), 32);
        assert_eq!((machine.gigahertz, machine.memory_nanos), (2.6, 80.0));
        assert_eq!(machine.buses, [Bus { of: Scope::Package, bytes_per_nano: 40.0 }]);
        assert_eq!((machine.smt_share, machine.wake_nanos), (0.62, 3000.0));
        let plain = Hardware::words("core:4").unwrap();
        assert_eq!(plain.buses, [Bus { of: Scope::Package, bytes_per_nano: 30.0 }]);
        assert_eq!(plain.cache_bytes, 16.0 * 1024.0 * 1024.0);
        let two = Hardware::words("package:2 core:4 bus=package:40 bus=machine:60").unwrap();
        assert_eq!(two.buses.len(), 2);
        let rates = "core:4 strays_per_second=0.5 interruptions_per_second=3 \
            housekeeping_per_second=20 tick_nanos=2000";
        let rates = Hardware::words(rates).unwrap();
        assert_eq!((rates.strays_per_second, rates.interruptions_per_second), (0.5, 3.0));
        assert_eq!((rates.housekeeping_per_second, rates.tick_nanos), (20.0, 2000.0));
    }

    #[test]
    fn a_topology_may_have_attributes_and_keys() {
        let text = "[NUMANode(memory=8GB)] Package:2 L3Cache:1(size=20MB) Core:8 PU:2 gigahertz=3";
        let machine = Hardware::words(text).unwrap();
        assert_eq!((machine.topology.cpus().len(), machine.gigahertz), (32, 3.0));
        assert_eq!(Hardware::words("2 4 2").unwrap().topology.cpus().len(), 16);
    }

    #[test]
    fn a_name_or_a_path_is_no_description() {
        assert!(Hardware::is_words("core:4") && Hardware::is_words("gigahertz=2"));
        assert!(Hardware::is_words("2 4 2"));
        for other in ["opteron-64", "./a:b/mine.toml", "my:own.toml", ""] {
            assert!(!Hardware::is_words(other), "{other}");
        }
    }

    #[test]
    fn wrong_words_are_refused_with_the_remedy() {
        let error_of = |text: &str| Hardware::words(text).unwrap_err().to_string();
        assert!(error_of("core:4 gigaherz=2").contains("'gigaherz=2'"));
        assert!(error_of("core:4 gigaherz=2").contains("cache_mib"));
        assert!(error_of("core:4 gigahertz=fast").contains("'fast' is not a number"));
        assert!(error_of("core:4 bus=socket:4").contains("bus=package:40"));
        assert!(error_of("core:4 cache_mib=1 cache_mib=2").contains("there already"));
        assert!(error_of("cores:4").contains("'cores:4'"));
        assert!(error_of("core:4 memory_nanos=0").contains("memory_nanos: is 0"));
        assert!(error_of("gigahertz=2").contains("topology: is empty"));
        assert!(error_of("core:4 signal_nanos=1,2").contains("three numbers"));
    }
}
