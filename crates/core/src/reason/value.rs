//! The value of a reason's field.

use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{self, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{self, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};

use super::Name;

/// The value of a field: what JSON has.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// It is not known.
    Nothing,
    /// Yes or no.
    Truth(bool),
    /// An integer from 0 on.
    Count(u64),
    /// An integer below 0.
    Negative(i64),
    /// Another number.
    Number(f64),
    /// A name.
    Text(Name),
    /// Several values.
    List(Vec<Value>),
    /// Named values.
    Fields(Vec<(Name, Value)>),
}

impl From<u16> for Value {
    fn from(count: u16) -> Value {
        Value::Count(count.into())
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Value {
        Value::Count(count)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Nothing => f.write_str("unknown"),
            Value::Truth(truth) => truth.fmt(f),
            Value::Count(count) => count.fmt(f),
            Value::Negative(number) => number.fmt(f),
            Value::Number(number) => number.fmt(f),
            Value::Text(text) => f.write_str(text),
            // `format::count` would close a circle of modules.
            Value::List(all) if all.len() == 1 => f.write_str("1 value"),
            Value::List(all) => write!(f, "{} values", all.len()),
            Value::Fields(all) if all.len() == 1 => f.write_str("1 field"),
            Value::Fields(all) => write!(f, "{} fields", all.len()),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Nothing => serializer.serialize_none(),
            Value::Truth(truth) => serializer.serialize_bool(*truth),
            Value::Count(count) => serializer.serialize_u64(*count),
            Value::Negative(number) => serializer.serialize_i64(*number),
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::List(all) => serializer.collect_seq(all),
            Value::Fields(all) => {
                let mut map = serializer.serialize_map(Some(all.len()))?;
                all.iter().try_for_each(|(name, value)| map.serialize_entry(&**name, value))?;
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value of a field")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Nothing)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Truth(truth))
    }

    fn visit_u64<E>(self, count: u64) -> Result<Value, E> {
        Ok(Value::Count(count))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(u64::try_from(number).map_or(Value::Negative(number), Value::Count))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned().into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = seq.next_element()? {
            all.push(value);
        }
        Ok(Value::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            all.push((name.into(), value));
        }
        Ok(Value::Fields(all))
    }
}

/// A value is not of the wanted type. Readers try one type after the other, so the error has no
/// text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mismatch;

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is another reason")
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: fmt::Display>(_: T) -> Mismatch {
        Mismatch
    }
}

impl ser::Error for Mismatch {
    fn custom<T: fmt::Display>(_: T) -> Mismatch {
        Mismatch
    }
}

/// Reads a value as another type.
pub(super) struct Reader<'a>(pub(super) &'a Value);

impl<'de> IntoDeserializer<'de, Mismatch> for Reader<'de> {
    type Deserializer = Reader<'de>;

    fn into_deserializer(self) -> Reader<'de> {
        self
    }
}

impl<'de> Deserializer<'de> for Reader<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Nothing => visitor.visit_none(),
            Value::Truth(truth) => visitor.visit_bool(*truth),
            Value::Count(count) => visitor.visit_u64(*count),
            Value::Negative(number) => visitor.visit_i64(*number),
            Value::Number(number) => visitor.visit_f64(*number),
            Value::Text(text) => visitor.visit_str(text),
            Value::List(all) => visitor.visit_seq(SeqDeserializer::new(all.iter().map(Reader))),
            Value::Fields(all) => {
                let fields = all.iter().map(|(name, value)| (&**name, Reader(value)));
                visitor.visit_map(MapDeserializer::new(fields))
            }
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Nothing => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}
