//! What was chosen, each by the name of its option: so all choices are listed, recorded and laid
//! over each other alike.

use std::fmt::Debug;

use serde_json::{Value, json};

/// What was chosen for an option.
pub trait Optional {
    /// Whether the option was given.
    fn is_given(&self) -> bool;

    /// The choice as a record keeps it.
    fn recorded(&self) -> Value;

    /// This choice; if none was made, the one for all.
    fn over(&self, all: &Self) -> Self
    where
        Self: Sized;
}

impl<T: Clone + Debug> Optional for Option<T> {
    fn is_given(&self) -> bool {
        self.is_some()
    }

    fn recorded(&self) -> Value {
        // Everything in there tells itself completely, tables of slowdowns included.
        json!(self.as_ref().map_or("the default".to_owned(), |value| format!("{value:?}")))
    }

    fn over(&self, all: &Option<T>) -> Option<T> {
        self.clone().or_else(|| all.clone())
    }
}

impl Optional for bool {
    fn is_given(&self) -> bool {
        *self
    }

    fn recorded(&self) -> Value {
        json!(self)
    }

    fn over(&self, all: &bool) -> bool {
        *self || *all
    }
}

/// A struct of choices. The option of each stands before it, without its dashes. Fields after `and`
/// have no option of their own.
macro_rules! choices {
    ($(#[$about:meta])* $name:ident {
        $($(#[$doc:meta])* $option:literal $field:ident: $kind:ty,)*
    } and {
        $($(#[$more_doc:meta])* $more:ident: $more_kind:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Debug, Default)]
        pub struct $name {
            $($(#[$doc])* pub $field: $kind,)*
            $($(#[$more_doc])* pub $more: $more_kind,)*
        }

        impl $name {
            /// The choices that have options, each with the name of its option.
            pub fn each(&self) -> impl Iterator<Item = (&'static str, &dyn $crate::how::Optional)> {
                [$(($option, &self.$field as &dyn $crate::how::Optional)),*].into_iter()
            }

            /// Each choice, or the one for all where none was made.
            pub(super) fn each_over(&self, all: &$name) -> $name {
                use $crate::how::Optional as _;
                $name {
                    $($field: self.$field.over(&all.$field),)*
                    $($more: self.$more.over(&all.$more),)*
                }
            }
        }
    };
}

pub(super) use choices;
