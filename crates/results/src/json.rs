//! JSON that is read from files of users: an error names the key, and no value in it fills a
//! screen.

use std::fmt::Display;

use cosched_workload::{brief, shown};
use serde::de::{DeserializeOwned, Deserializer};
use serde_json::error::Category;
use serde_path_to_error::{Error, deserialize};

/// Reads a document.
///
/// # Errors
/// When it is no JSON, or a value is none of a `T`: what is wrong, behind the path of its key.
pub fn read<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = with_path(&mut reader).map_err(|error| match error.inner().classify() {
        Category::Data => in_words(&error),
        // A number where a name must be is told as no JSON. Where the text ends, or is none, there
        // is no value with a key.
        _ => match serde_json::from_slice(text).ok().map(of_value::<T>) {
            Some(Err(what)) => what,
            _ => brief(&error.inner().to_string()),
        },
    })?;
    reader.end().map_err(|error| brief(&error.to_string()))?;
    Ok(read)
}

/// Reads a document that was parsed.
///
/// # Errors
/// When a value is none of a `T`: what is wrong, behind the path of its key.
pub fn of_value<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, String> {
    with_path(value).map_err(|error| in_words(&error))
}

fn with_path<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    from: D,
) -> Result<T, Error<D::Error>> {
    deserialize(from)
}

fn in_words(error: &Error<impl Display>) -> String {
    let (path, what) = (error.path().to_string(), brief(&error.inner().to_string()));
    match path.as_str() {
        // The document itself.
        "." => what,
        _ => format!("{}: {what}", shown(&path)),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Document {
        #[expect(dead_code, reason = "only errors are looked at")]
        programs: Vec<Item>,
    }

    #[derive(Debug, Deserialize)]
    struct Item {
        #[expect(dead_code, reason = "only errors are looked at")]
        seconds: f64,
        #[expect(dead_code, reason = "only errors are looked at")]
        kind: Option<cosched_core::Exit>,
    }

    fn refusal(text: &str) -> String {
        read::<Document>(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn a_wrong_value_is_named_by_the_path_of_its_key() {
        let text = r#"{"programs":[{"seconds":1.5},{"seconds":"x"}]}"#;
        let said = refusal(text);
        assert!(said.starts_with("programs[1].seconds: invalid type: string \"x\""), "{said}");
        let of_value = of_value::<Document>(serde_json::from_str(text).unwrap()).unwrap_err();
        assert!(of_value.starts_with("programs[1].seconds: invalid type"), "{of_value}");
        let said = refusal(r#"{"programs":[{}]}"#);
        assert!(said.starts_with("programs[0]: missing field `seconds`"), "{said}");
        assert!(refusal("{}").starts_with("missing field `programs`"), "{}", refusal("{}"));
        assert!(refusal(r#"{"programs":["#).starts_with("EOF while"));
        let said = refusal(r#"{"programs":[{"seconds":1,"kind":7}]}"#);
        assert!(said.starts_with("programs[0].kind: invalid type: integer `7`"), "{said}");
        assert!(refusal(r#"{"programs":[]} x"#).starts_with("trailing characters"));
    }

    #[test]
    fn a_long_value_is_cut() {
        let said = refusal(&format!(r#"{{"programs":"{}"}}"#, "a".repeat(100_000)));
        assert!(said.chars().count() < 250 && said.contains("aa…aa"), "{said}");
        assert!(said.contains("expected a sequence at line 1 column"), "{said}");
    }
}
