//! The reasons that policies give for their plans, as data: a code and fields.
//!
//! Each policy has an enum of its own reasons, with words for them ([`Words`]), in its own file.
//! Serde makes a [`Why`] of such a value: the enum's tag `why` is the code, and the fields keep
//! their names and order. This is what is recorded. A reader that knows the enum gets the value
//! back by [`Why::read`]. A reader that does not, for example an older version of cosched, still
//! has the code and the fields. Core and results therefore know no reason of any policy.
//!
//! Reasons are for people. Nothing is decided by them: see [`Output`](crate::Output).

mod collect;
mod value;

use std::borrow::Cow;
use std::fmt;

use serde::de::value::MapDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::id::ProgramId;
pub use value::Value;

/// The name of the field that has the code.
const CODE: &str = "why";

/// A name: of a code or field.
pub(crate) type Name = Cow<'static, str>;

/// A reason for a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The program of the reason; `None` for the plan as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramId>,
    /// The reason.
    #[serde(flatten)]
    pub why: Why,
}

/// A reason of any policy.
#[derive(Clone, Debug)]
pub struct Why {
    code: Name,
    fields: Vec<(Name, Value)>,
}

impl Why {
    /// A reason without fields.
    pub fn new(code: &'static str) -> Why {
        Why { code: code.into(), fields: Vec::new() }
    }

    /// The reason with one more field.
    pub fn with(mut self, name: &'static str, value: impl Into<Value>) -> Why {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Its code, which says what kind of reason it is.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Its fields, with their names, in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.fields.iter().map(|(name, value)| (&**name, value))
    }

    /// The reason as a value of the policy that gave it; `None` if it is not one of these reasons.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        let code = Value::Text(self.code.clone());
        let fields = self.fields.iter().map(|(name, value)| (&**name, value::Reader(value)));
        let all = std::iter::once((CODE, value::Reader(&code))).chain(fields);
        T::deserialize(MapDeserializer::<_, value::Mismatch>::new(all)).ok()
    }
}

/// The order of fields makes no difference.
impl PartialEq for Why {
    fn eq(&self, other: &Why) -> bool {
        let has = |field: &(Name, Value)| other.fields.contains(field);
        self.code == other.code
            && self.fields.len() == other.fields.len()
            && self.fields.iter().all(has)
    }
}

/// A value that is no enum with the tag `why` and named fields becomes a reason without a name.
impl<T: Words + Serialize> From<T> for Why {
    fn from(own: T) -> Why {
        let mut why = Why::new("unnamed");
        for (name, value) in collect::fields(&own).unwrap_or_default() {
            match (&*name, value) {
                (CODE, Value::Text(code)) => why.code = code,
                (_, value) => why.fields.push((name, value)),
            }
        }
        why
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + self.fields.len()))?;
        map.serialize_entry(CODE, &*self.code)?;
        self.fields.iter().try_for_each(|(name, value)| map.serialize_entry(&**name, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Why {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Why, D::Error> {
        struct WhyVisitor;
        impl<'de> Visitor<'de> for WhyVisitor {
            type Value = Why;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a reason")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Why, A::Error> {
                let (mut code, mut fields) = (None, Vec::new());
                while let Some(name) = map.next_key::<String>()? {
                    match &*name {
                        CODE => code = Some(map.next_value::<String>()?),
                        _ => fields.push((name.into(), map.next_value()?)),
                    }
                }
                let code = code.ok_or_else(|| A::Error::missing_field(CODE))?;
                Ok(Why { code: code.into(), fields })
            }
        }
        deserializer.deserialize_map(WhyVisitor)
    }
}

/// What a reason says of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// It is to run.
    Runs,
    /// It is to wait.
    Waits,
    /// Something about its threads; it runs or waits for another reason.
    Threads,
    /// Nothing of that: the reason is about the plan as a whole.
    Nothing,
}

/// A reason that has words.
pub trait Words {
    /// How people see it.
    fn words(&self) -> Wording;
}

/// The words of a reason: how people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wording {
    /// What holds for every reason of its kind, as a clause without figures.
    pub in_general: Cow<'static, str>,
    /// The reason in two or three words, for a narrow column. It has no figures, since there is no
    /// room to say from when they are, unless they hold until the next reason.
    pub brief: Cow<'static, str>,
    /// The figures of this case, if it has any.
    pub figures: Option<String>,
    /// What it says of its program.
    pub says: Says,
}

impl Wording {
    /// The words of a reason without figures, which says that its program runs.
    pub fn new(
        in_general: impl Into<Cow<'static, str>>,
        brief: impl Into<Cow<'static, str>>,
    ) -> Wording {
        let (in_general, brief) = (in_general.into(), brief.into());
        Wording { in_general, brief, figures: None, says: Says::Runs }
    }

    /// These words, with figures.
    pub fn figures(self, figures: impl Into<Option<String>>) -> Wording {
        Wording { figures: figures.into(), ..self }
    }

    /// These words of a reason that says something else.
    pub fn says(self, says: Says) -> Wording {
        Wording { says, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Nanos;

    #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "why", rename_all = "kebab-case")]
    enum Own {
        Alone,
        #[serde(alias = "earlier-name")]
        Waited {
            #[serde(alias = "time")]
            waited: Nanos,
            weight: Option<f64>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            rest: Option<u16>,
        },
        Uses {
            actuator: crate::Actuator,
            sure: bool,
        },
    }

    impl Words for Own {
        fn words(&self) -> Wording {
            Wording::new("some", "some")
        }
    }

    #[test]
    fn a_reason_is_written_as_the_policys_own_value() {
        let all = [
            Own::Alone,
            Own::Waited { waited: Nanos(7), weight: None, rest: None },
            Own::Waited { waited: Nanos(7), weight: Some(1.5), rest: Some(2) },
            Own::Uses { actuator: crate::Actuator::BatchSlice, sure: true },
        ];
        for own in all {
            let why = Why::from(own);
            let text = serde_json::to_string(&own).unwrap();
            assert_eq!(serde_json::to_string(&why).unwrap(), text);
            let reason = Reason { program: Some(ProgramId::first(3)), why: why.clone() };
            let whole = serde_json::to_string(&reason).unwrap();
            assert_eq!(whole, text.replacen('{', "{\"program\":{\"slot\":3,\"generation\":0},", 1));
            assert_eq!(serde_json::from_str::<Reason>(&whole).unwrap(), reason);
            assert_eq!(why.read::<Own>(), Some(own));
        }
    }

    #[test]
    fn earlier_names_are_read_and_unknown_reasons_kept() {
        let why = |text| serde_json::from_str::<Why>(text).unwrap();
        let earlier = why(r#"{"why":"earlier-name","time":7,"weight":2}"#);
        let now = Own::Waited { waited: Nanos(7), weight: Some(2.0), rest: None };
        assert_eq!(earlier.read::<Own>(), Some(now));
        let text = r#"{"why":"new","list":[1,-2,"a"],"inner":{"x":0.5,"y":null}}"#;
        assert_eq!(serde_json::to_string(&why(text)).unwrap(), text);
        assert_eq!((why(text).code(), why(text).read::<Own>()), ("new", None));
        assert_eq!(why(r#"{"why":"waited","waited":"long","weight":1}"#).read::<Own>(), None);
        assert!(serde_json::from_str::<Why>(r#"{"code":"new"}"#).is_err());
    }
}
