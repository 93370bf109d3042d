//! A constant of a policy, as data: its value, unit, range and source.
//!
//! [`params!`] declares the constants of a policy, in a `params.rs` beside it, as the fields of one
//! type. [`Params`](crate::params::Params) has the types of all policies.

use cosched_core::{Nanos, parse_duration};
use serde::Serialize;

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

        impl $crate::constant::ConstantGroup for $params {
            fn name(&self) -> &'static str {
                $group
            }

            fn list(&self) -> Vec<$crate::constant::Param> {
                use $crate::constant::ConstantValue as _;
                vec![$($crate::constant::Param {
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
                        return Some($crate::constant::put(&mut self.$field, text, $least, $most));
                    }
                )+
                None
            }
        }
    };
}

pub(crate) use params;

pub(crate) const fn ms(n: u64) -> Nanos {
    Nanos::from_millis(n)
}

pub(crate) const fn us(n: u64) -> Nanos {
    Nanos::from_micros(n)
}

pub(crate) const fn secs(n: u64) -> Nanos {
    Nanos::from_secs(n)
}

/// A constant of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Param {
    /// Its name: that of its group, a dot, and its own.
    pub name: &'static str,
    /// Its value, as it is written for `--set`.
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

/// The constants of one policy, or of a part that policies share.
pub(crate) trait ConstantGroup {
    /// What their names begin with.
    fn name(&self) -> &'static str;

    /// All of them.
    fn list(&self) -> Vec<Param>;

    /// Sets one by its own name. Returns whether the value fits; `None`: there is no such constant.
    fn set(&mut self, name: &str, text: &str) -> Option<bool>;
}

/// Puts a value into a field, if it is in its range. Returns whether it is.
pub(crate) fn put<T: ConstantValue>(field: &mut T, text: &str, least: T, most: T) -> bool {
    let value = T::read(text).filter(|value| *value >= least && *value <= most);
    if let Some(value) = value {
        *field = value;
    }
    value.is_some()
}

pub(crate) trait ConstantValue: Copy + PartialOrd {
    /// Reads it from an option.
    fn read(text: &str) -> Option<Self>;

    /// It as an option has it.
    fn written(self) -> String;
}

impl ConstantValue for Nanos {
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

impl ConstantValue for f64 {
    fn read(text: &str) -> Option<f64> {
        text.parse().ok()
    }

    fn written(self) -> String {
        format!("{self:?}")
    }
}

macro_rules! whole {
    ($($type:ty),+) => {
        $(impl ConstantValue for $type {
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
    fn times_are_written_in_the_largest_whole_unit() {
        let written = [secs(64), ms(500), us(500), Nanos(7)].map(ConstantValue::written);
        assert_eq!(written, ["64s", "500ms", "500us", "7ns"]);
    }
}
