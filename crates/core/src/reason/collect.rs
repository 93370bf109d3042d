//! From a policy's own value to the fields of a reason.

use serde::Serialize;
use serde::ser::{Impossible, SerializeStruct, Serializer};

use super::value::Mismatch;
use super::{Name, Value};

/// The fields of a value, its tag among them.
pub(super) fn fields(own: &impl Serialize) -> Option<Vec<(Name, Value)>> {
    match own.serialize(ToValue) {
        Ok(Value::Fields(fields)) => Some(fields),
        _ => None,
    }
}

struct ToValue;

/// The fields so far.
struct Fields(Vec<(Name, Value)>);

impl SerializeStruct for Fields {
    type Ok = Value;
    type Error = Mismatch;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Mismatch> {
        self.0.push((name.into(), value.serialize(ToValue)?));
        Ok(())
    }

    fn end(self) -> Result<Value, Mismatch> {
        Ok(Value::Fields(self.0))
    }
}

/// Methods for values that JSON has, by an expression.
macro_rules! values {
    ($($method:ident($($value:ident: $type:ty)?) => $made:expr;)+) => {
        $(fn $method(self, $($value: $type)?) -> Result<Value, Mismatch> {
            Ok($made)
        })+
    };
}

/// Methods for values that no reason has.
macro_rules! mismatches {
    ($($method:ident($($type:ty),+) -> $never:ty;)+) => {
        $(fn $method(self, $(_: $type),+) -> Result<$never, Mismatch> {
            Err(Mismatch)
        })+
    };
}

type None = Impossible<Value, Mismatch>;

impl Serializer for ToValue {
    type Ok = Value;
    type Error = Mismatch;
    type SerializeSeq = None;
    type SerializeTuple = None;
    type SerializeTupleStruct = None;
    type SerializeTupleVariant = None;
    type SerializeMap = None;
    type SerializeStruct = Fields;
    type SerializeStructVariant = None;

    values! {
        serialize_bool(truth: bool) => Value::Truth(truth);
        serialize_i8(number: i8) => signed(number.into());
        serialize_i16(number: i16) => signed(number.into());
        serialize_i32(number: i32) => signed(number.into());
        serialize_i64(number: i64) => signed(number);
        serialize_u8(count: u8) => Value::Count(count.into());
        serialize_u16(count: u16) => Value::Count(count.into());
        serialize_u32(count: u32) => Value::Count(count.into());
        serialize_u64(count: u64) => Value::Count(count);
        serialize_f32(number: f32) => Value::Number(number.into());
        serialize_f64(number: f64) => Value::Number(number);
        serialize_char(letter: char) => Value::Text(letter.to_string().into());
        serialize_str(text: &str) => Value::Text(text.to_owned().into());
        serialize_unit_struct(_name: &'static str) => Value::Nothing;
        serialize_unit() => Value::Nothing;
        serialize_none() => Value::Nothing;
    }

    mismatches! {
        serialize_bytes(&[u8]) -> Value;
        serialize_seq(Option<usize>) -> None;
        serialize_tuple(usize) -> None;
        serialize_tuple_struct(&'static str, usize) -> None;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> None;
        serialize_map(Option<usize>) -> None;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> None;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Mismatch> {
        value.serialize(self)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<Value, Mismatch> {
        Ok(Value::Text(variant.into()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Value, Mismatch> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Value, Mismatch> {
        Err(Mismatch)
    }

    fn serialize_struct(self, _: &'static str, fields: usize) -> Result<Fields, Mismatch> {
        Ok(Fields(Vec::with_capacity(fields)))
    }
}

fn signed(number: i64) -> Value {
    u64::try_from(number).map_or(Value::Negative(number), Value::Count)
}
