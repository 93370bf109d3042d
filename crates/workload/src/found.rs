//! What stands in a workload file in the place of a value of another type, in words.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeOwned, IntoDeserializer};
use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

use super::shown::shown;

/// What was found, as the end of "must be ..., but ...".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found(String);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Found {
    /// A value of the wrong type as a whole.
    pub(super) fn value(value: &DeValue<'_>) -> Found {
        Found(format!("is {}", described(value)))
    }
}

/// What kept `value` from being a `T`, and where: an element, if a `T` may have elements, or else
/// the value.
pub(super) fn culprit<T: DeserializeOwned>(value: &Spanned<DeValue<'_>>) -> (Range<usize>, Found) {
    let within = matches!(value.get_ref(), DeValue::Array(_) | DeValue::Table(_));
    if let Some((bytes, called)) = too_large(value, String::new()).filter(|_| within) {
        return (bytes, Found(format!("{called}, which is too large a number")));
    }
    let fits = |value: DeValue<'_>| T::deserialize(Spanned::new(0..0, value).into_deserializer());
    let is_wrong = |element: &DeValue<'_>| !element.is_str();
    let element = match value.get_ref() {
        DeValue::Array(elements) if fits(DeValue::Array(DeArray::new())).is_ok() => {
            let wrong =
                elements.iter().enumerate().find(|(_, element)| is_wrong(element.get_ref()));
            wrong.map(|(i, element)| (element, format!("its element {}", i + 1)))
        }
        DeValue::Table(variables) if fits(DeValue::Table(DeTable::new())).is_ok() => {
            let wrong = variables.iter().find(|(_, element)| is_wrong(element.get_ref()));
            wrong.map(|(key, element)| (element, format!("its '{}'", shown(key.get_ref()))))
        }
        _ => None,
    };
    match element {
        Some((element, called)) => {
            let found = format!("{called} is {}", described(element.get_ref()));
            (element.span(), Found(found))
        }
        None => (value.span(), Found::value(value.get_ref())),
    }
}

/// The first whole number in a value that is too large for one, and what it is called: by its key
/// or its place.
fn too_large(value: &Spanned<DeValue<'_>>, called: String) -> Option<(Range<usize>, String)> {
    match value.get_ref() {
        DeValue::Integer(number) if !is_number(number) => {
            Some((value.span(), format!("{called} is {}", shown(&number.to_string()))))
        }
        DeValue::Array(elements) => {
            let mut elements = elements.iter().enumerate();
            elements.find_map(|(i, inner)| too_large(inner, format!("its element {}", i + 1)))
        }
        DeValue::Table(inner) => inner
            .iter()
            .find_map(|(key, inner)| too_large(inner, format!("its '{}'", shown(key.get_ref())))),
        _ => None,
    }
}

fn is_number(number: &DeInteger<'_>) -> bool {
    i64::from_str_radix(number.as_str(), number.radix()).is_ok()
}

fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the string \"{}\"", shown(text)),
        DeValue::Integer(number) => {
            let too_large = if is_number(number) { "" } else { ", which is too large a number" };
            format!("{}{too_large}", shown(&number.to_string()))
        }
        DeValue::Float(number) => format!("the number {}", shown(number.as_str())),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Datetime(_) => "a date or a time of day".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
