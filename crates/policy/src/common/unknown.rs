//! Names that mean nothing.

use cosched_workload::nearest::nearest;

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} '{name}'{meant}; choose from {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    /// The name that was probably meant, as an addition.
    meant: String,
    known: String,
}

impl UnknownName {
    pub(crate) fn new<const N: usize>(
        what: &'static str,
        name: &str,
        known: [&str; N],
    ) -> UnknownName {
        let meant = nearest(name, known).map(|near| format!(" (did you mean '{near}'?)"));
        let meant = meant.unwrap_or_default();
        UnknownName { what, name: name.to_owned(), meant, known: known.join(", ") }
    }
}

/// Writes an enum as its `name`, and reads it as one of the names of `ALL`. The text says what it
/// is, for the error. With the names of all variants, `ALL` and `name` come from these.
macro_rules! by_name {
    ($kind:ident, $what:literal, [$($one:ident: $name:literal),+ $(,)?]) => {
        impl $kind {
            /// All of them. A default comes first.
            pub const ALL: [$kind; [$($name),+].len()] = [$($kind::$one),+];

            /// The name by which users choose it.
            pub const fn name(self) -> &'static str {
                match self {
                    $($kind::$one => $name,)+
                }
            }
        }

        by_name!($kind, $what);
    };
    ($kind:ident, $what:literal) => {
        impl std::fmt::Display for $kind {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl std::str::FromStr for $kind {
            type Err = $crate::common::unknown::UnknownName;

            fn from_str(name: &str) -> Result<$kind, Self::Err> {
                let found = $kind::ALL.into_iter().find(|one| one.name() == name);
                let known = $kind::ALL.map($kind::name);
                found.ok_or_else(|| <Self as std::str::FromStr>::Err::new($what, name, known))
            }
        }
    };
}

pub(crate) use by_name;
