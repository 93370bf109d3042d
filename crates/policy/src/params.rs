//! The constants of policies, as data: each with its value, unit, range and source.
//!
//! The constants of a policy stand in a `params.rs` beside it, as the fields of one type. A policy
//! takes them from its [`Options`](crate::Options). A simulation can [set](Params::set) each one,
//! and so show how much depends on it. Names, ranges and descriptions come from these files only.
//!
//! Left out are the sizes of formats, facts of the kernel, and limits of options. So is what only
//! rounds: it changes no decision.

use cosched_core::{Nanos, parse_duration};
use serde::Serialize;

use crate::kind::Kind;
use crate::{auto, common, fair_progress, faithful, gangs, molding, shuffling};

/// Declares the constants of a policy. Each has its description, name, type, default, range, unit
/// and source.
macro_rules! params {
    (
        $(#[$meta:meta])*
        pub(crate) struct $params:ident of $group:literal {
            $(
                $(#[doc = $what:literal])+
                $field:ident: $type:ty = $default:expr, [$least:expr, $most:expr], $unit:literal,
                $basis:literal;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub(crate) struct $params {
            $($(#[doc = $what])+ pub(crate) $field: $type,)+
        }

        impl $params {
            pub(crate) const DEFAULT: $params = $params { $($field: $default,)+ };
        }

        impl Default for $params {
            fn default() -> $params {
                $params::DEFAULT
            }
        }

        impl $crate::params::Group for $params {
            fn name(&self) -> &'static str {
                $group
            }

            fn list(&self) -> Vec<$crate::params::Param> {
                use $crate::params::Value as _;
                vec![$($crate::params::Param {
                    name: concat!($group, ".", stringify!($field)),
                    value: self.$field.written(),
                    least: <$type>::written($least),
                    most: <$type>::written($most),
                    unit: $unit,
                    what: concat!($($what),+).trim().to_owned(),
                    basis: $basis,
                }),+]
            }

            fn set(&mut self, name: &str, text: &str) -> Option<bool> {
                $(
                    if name == stringify!($field) {
                        return Some($crate::params::put(&mut self.$field, text, $least, $most));
                    }
                )+
                None
            }
        }
    };
}

pub(crate) use params;

/// Milliseconds, in a `params.rs`.
pub(crate) const fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

/// Microseconds, in a `params.rs`.
pub(crate) const fn us(n: u64) -> Nanos {
    Nanos::from_micros(n)
}

/// Seconds, in a `params.rs`.
pub(crate) const fn secs(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

/// A constant of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Param {
    /// Its name: that of its group, a dot, and its own.
    pub name: &'static str,
    /// Its value, as it is written for [`Params::set`].
    pub value: String,
    /// The unit of its value. A time is written with its unit.
    pub unit: &'static str,
    /// The least value that it can have.
    pub least: String,
    /// The largest value that it can have.
    pub most: String,
    /// What it says.
    pub what: String,
    /// What its value rests on.
    pub basis: &'static str,
}

/// The constants of all policies, in groups.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Params {
    pub(crate) auto: auto::params::Params,
    pub(crate) common: common::params::Params,
    pub(crate) guard: common::params::Guard,
    pub(crate) gangs: gangs::params::Params,
    pub(crate) bandwidth: gangs::params::Bandwidth,
    pub(crate) thread_limits: gangs::params::ThreadLimits,
    pub(crate) faithful: faithful::params::Params,
    pub(crate) shuffling: shuffling::params::Params,
    pub(crate) fair_progress: fair_progress::params::Params,
    pub(crate) molding: molding::params::Params,
}

/// Why a constant cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// It is not written as `NAME=VALUE`.
    #[error("write NAME=VALUE, such as {example}")]
    Form {
        /// A constant with its value.
        example: String,
    },
    /// There is no constant of this name.
    #[error("there is no constant '{name}'; {known}")]
    Unknown {
        /// The name.
        name: String,
        /// The names that may be meant.
        known: String,
    },
    /// The value is no number or time, or is out of range.
    #[error("{name} cannot be '{value}': choose from {least} to {most}{unit}")]
    Value {
        /// The constant.
        name: &'static str,
        /// The value.
        value: String,
        /// The least value.
        least: String,
        /// The largest value.
        most: String,
        /// The unit, in parentheses.
        unit: String,
    },
}

impl Params {
    fn groups(&self) -> [&dyn Group; 10] {
        [
            &self.gangs,
            &self.bandwidth,
            &self.thread_limits,
            &self.auto,
            &self.common,
            &self.molding,
            &self.faithful,
            &self.guard,
            &self.shuffling,
            &self.fair_progress,
        ]
    }

    fn groups_mut(&mut self) -> [&mut dyn Group; 10] {
        [
            &mut self.gangs,
            &mut self.bandwidth,
            &mut self.thread_limits,
            &mut self.auto,
            &mut self.common,
            &mut self.molding,
            &mut self.faithful,
            &mut self.guard,
            &mut self.shuffling,
            &mut self.fair_progress,
        ]
    }

    /// All constants with their values, by group.
    pub fn list(&self) -> Vec<Param> {
        self.groups().into_iter().flat_map(|group| group.list()).collect()
    }

    /// The constants that a policy uses, with their values.
    pub fn of(&self, kind: Kind) -> Vec<Param> {
        let used = kind.descriptor().params;
        let groups = self.groups().into_iter().filter(|group| used.contains(&group.name()));
        groups.flat_map(|group| group.list()).collect()
    }

    /// Sets a constant, which is written as `NAME=VALUE`. Returns it with its new value.
    ///
    /// # Errors
    /// When there is no such constant, or the value is out of its range.
    pub fn set(&mut self, text: &str) -> Result<Param, ParamError> {
        let example = || {
            let first = self.list().into_iter().next();
            first.map(|param| format!("{}={}", param.name, param.value)).unwrap_or_default()
        };
        let (name, value) =
            text.split_once('=').ok_or_else(|| ParamError::Form { example: example() })?;
        let unknown = |known| ParamError::Unknown { name: name.to_owned(), known };
        let position = self.list().iter().position(|param| param.name == name);
        let position = position.ok_or_else(|| unknown(self.nearest(name)))?;
        let (group, own) = name.split_once('.').unwrap_or((name, ""));
        let group = self.groups_mut().into_iter().find(|one| one.name() == group);
        let fits = group.and_then(|group| group.set(own, value)).unwrap_or(false);
        let param = self.list().swap_remove(position);
        match fits {
            true => Ok(param),
            false => Err(ParamError::Value {
                name: param.name,
                value: value.to_owned(),
                least: param.least,
                most: param.most,
                unit: format!(" ({})", param.unit),
            }),
        }
    }

    /// Names that may be meant: those of the same group, else the groups.
    fn nearest(&self, name: &str) -> String {
        let group = name.split('.').next().unwrap_or(name);
        let own = self.groups().into_iter().find(|one| one.name() == group);
        match own {
            Some(group) => {
                let names: Vec<&str> = group.list().iter().map(|param| param.name).collect();
                format!("choose from {}", names.join(", "))
            }
            None => {
                let names: Vec<&str> = self.groups().iter().map(|group| group.name()).collect();
                format!("names begin with one of {} and a dot", names.join(", "))
            }
        }
    }
}

/// The constants of one policy, or of a part that policies share.
pub(crate) trait Group {
    /// What their names begin with.
    fn name(&self) -> &'static str;

    /// All of them.
    fn list(&self) -> Vec<Param>;

    /// Sets one by its own name. Returns whether the value fits; `None`: there is no such constant.
    fn set(&mut self, name: &str, text: &str) -> Option<bool>;
}

/// Puts a value into a field, if it is in its range. Returns whether it is.
pub(crate) fn put<T: Value>(field: &mut T, text: &str, least: T, most: T) -> bool {
    let value = T::read(text).filter(|value| *value >= least && *value <= most);
    if let Some(value) = value {
        *field = value;
    }
    value.is_some()
}

/// The type of a constant.
pub(crate) trait Value: Copy + PartialOrd {
    /// Reads it from an option.
    fn read(text: &str) -> Option<Self>;

    /// It as an option has it.
    fn written(self) -> String;
}

impl Value for Nanos {
    fn read(text: &str) -> Option<Nanos> {
        parse_duration(text).map(Nanos::from)
    }

    fn written(self) -> String {
        let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
        let (size, unit) =
            units.into_iter().find(|(size, _)| self.0 % size == 0).unwrap_or((1, "ns"));
        format!("{}{unit}", self.0 / size)
    }
}

impl Value for f64 {
    fn read(text: &str) -> Option<f64> {
        text.parse().ok()
    }

    fn written(self) -> String {
        format!("{self:?}")
    }
}

macro_rules! whole {
    ($($type:ty),+) => {
        $(impl Value for $type {
            fn read(text: &str) -> Option<$type> {
                text.parse().ok()
            }

            fn written(self) -> String {
                self.to_string()
            }
        })+
    };
}

whole!(u8, u16, u32, u64, usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_has_a_name_of_its_own_and_is_in_range() {
        let all = Params::default().list();
        for (i, param) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|other| other.name != param.name), "{}", param.name);
            for value in [&param.value, &param.least, &param.most] {
                let mut params = Params::default();
                let set = params.set(&format!("{}={value}", param.name)).unwrap();
                assert_eq!((set.name, &set.value), (param.name, value));
            }
            assert!(param.what.ends_with('.') && !param.what.contains("  "), "{}", param.what);
            assert!(!param.basis.is_empty() && !param.unit.is_empty(), "{}", param.name);
        }
    }

    #[test]
    fn a_constant_set_to_its_default_changes_nothing() {
        let mut params = Params::default();
        for param in params.list() {
            params.set(&format!("{}={}", param.name, param.value)).unwrap();
        }
        assert_eq!(params, Params::default());
        params.set("auto.short=0.2").unwrap();
        assert_ne!(params, Params::default());
    }

    #[test]
    fn wrong_names_and_values_are_answered_with_the_right_ones() {
        let wrong = |text: &str| Params::default().set(text).unwrap_err().to_string();
        assert_eq!(wrong("auto.short"), "write NAME=VALUE, such as gangs.shortest=1ms");
        let unknown = wrong("molding.wort=1");
        assert_eq!(unknown, "there is no constant 'molding.wort'; choose from molding.worth");
        assert!(wrong("wort=1").contains("names begin with one of gangs, "), "{}", wrong("wort=1"));
        for text in ["auto.short=2", "auto.short=x", "auto.short=nan", "auto.short="] {
            assert!(wrong(text).contains("choose from 0.0 to 1.0 (part of the CPUs)"), "{text}");
        }
        assert!(wrong("auto.sample=75").contains("cannot be '75': choose from "));
    }

    #[test]
    fn a_policy_uses_the_groups_of_its_descriptor() {
        let params = Params::default();
        let known: Vec<&str> = params.groups().iter().map(|group| group.name()).collect();
        for kind in Kind::ALL {
            let used = kind.descriptor().params;
            assert!(used.iter().all(|group| known.contains(group)), "{kind}");
            assert_eq!(params.of(kind).is_empty(), used.is_empty(), "{kind}");
        }
        let used = |group: &&str| Kind::ALL.iter().any(|k| k.descriptor().params.contains(group));
        assert!(known.iter().all(used));
    }

    #[test]
    fn times_are_written_in_the_largest_whole_unit() {
        let written = [secs(64), ms(500), us(500), Nanos(7)].map(Value::written);
        assert_eq!(written, ["64s", "500ms", "500us", "7ns"]);
    }
}
