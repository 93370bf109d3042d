//! The constants of policies that were set for a simulation.

use std::collections::BTreeMap;
use std::str::FromStr;

use cosched_policy::{ParamError, Params};
use serde_json::{Value, json};

use super::Optional;

/// One constant with another value, which fits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetTo {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
}

impl FromStr for SetTo {
    type Err = ParamError;

    fn from_str(text: &str) -> Result<SetTo, ParamError> {
        let param = Params::default().set(text)?;
        Ok(SetTo { name: param.name, value: param.value })
    }
}

/// The constants that were set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetConstants(BTreeMap<&'static str, String>);

impl SetConstants {
    /// Sets a constant, or sets it anew.
    pub fn put(&mut self, constant: SetTo) {
        self.0.insert(constant.name, constant.value);
    }

    /// The constants with their values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, value)| (*name, value.as_str()))
    }

    /// The value that a constant was set to.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The constants of all policies, with these values.
    pub fn params(&self) -> Params {
        let mut params = Params::default();
        for (name, value) in self.iter() {
            let set = params.set(&format!("{name}={value}"));
            debug_assert!(set.is_ok(), "it was read by its name and in its range: {set:?}");
        }
        params
    }
}

impl Optional for SetConstants {
    fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    fn recorded(&self) -> Value {
        json!(self.0)
    }

    /// Takes what is not set here from `all`.
    fn over(&self, all: &SetConstants) -> SetConstants {
        let both = all.0.iter().chain(&self.0);
        SetConstants(both.map(|(name, value)| (*name, value.clone())).collect())
    }
}

impl FromIterator<SetTo> for SetConstants {
    fn from_iter<I: IntoIterator<Item = SetTo>>(all: I) -> SetConstants {
        SetConstants(all.into_iter().map(|one| (one.name, one.value)).collect())
    }
}
