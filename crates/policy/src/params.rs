//! The constants of policies, as data: each with its value, unit, range and source.
//!
//! The constants of a policy stand in a `params.rs` beside it. A policy takes them from its
//! [`Options`](crate::Options). A simulation can [set](Params::set) each one, and so show how much
//! depends on it. Names, ranges and descriptions come from these files only.
//!
//! Left out are the sizes of formats, facts of the kernel, and limits of options. So is what only
//! rounds: it changes no decision.

use crate::constant::{ConstantGroup, Param};

/// Lists the groups of constants, in the order in which they are shown.
macro_rules! groups {
    ($($group:ident: $type:ty,)+) => {
        /// The constants of all policies, in groups.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        pub struct Params {
            $(pub(crate) $group: $type,)+
        }

        impl Params {
            fn groups(&self) -> Vec<&dyn ConstantGroup> {
                vec![$(&self.$group),+]
            }

            fn groups_mut(&mut self) -> Vec<&mut dyn ConstantGroup> {
                vec![$(&mut self.$group),+]
            }
        }
    };
}

groups! {
    gangs: crate::gangs::params::Params,
    bandwidth: crate::gangs::params::BandwidthParams,
    held: crate::gangs::params::HeldParams,
    thread_limits: crate::gangs::params::ThreadLimitParams,
    auto: crate::auto::params::Params,
    common: crate::common::params::Params,
    molding: crate::molding::params::Params,
    faithful: crate::faithful::params::Params,
    guard: crate::common::params::GuardParams,
    shuffling: crate::shuffling::params::Params,
    fair_progress: crate::fair_progress::params::Params,
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
    /// All constants with their values, by group.
    pub fn list(&self) -> Vec<Param> {
        self.groups().into_iter().flat_map(|group| group.list()).collect()
    }

    /// The constants of some groups, with their values.
    pub(crate) fn of(&self, names: &[&str]) -> Vec<Param> {
        let groups = self.groups().into_iter().filter(|group| names.contains(&group.name()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

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
            assert_eq!(kind.constants(&params).is_empty(), used.is_empty(), "{kind}");
        }
        let used = |group: &&str| Kind::ALL.iter().any(|k| k.descriptor().params.contains(group));
        assert!(known.iter().all(used));
    }
}
