//! Names that mean nothing.

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} '{name}'; choose from {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: String,
}

impl UnknownName {
    pub(crate) fn new<const N: usize>(
        what: &'static str,
        name: &str,
        known: [&str; N],
    ) -> UnknownName {
        UnknownName { what, name: name.to_owned(), known: known.join(", ") }
    }
}
