//! What is wrong with a TOML file other than a jobs file, in one line.

use crate::shown::brief;

/// What the parser says of a key that is not there.
const MISSING: &str = "missing field ";

/// What is wrong with the text of a file, and where; the parser shows the line in six lines.
pub fn toml_mistake(text: &str, error: &toml::de::Error) -> String {
    let said = brief(&error.message().trim().replace('\n', ", "));
    let what = match said.strip_prefix(MISSING) {
        Some(key) => format!("{key} is missing"),
        None => said.clone(),
    };
    let start = error.span().map(|span| span.start);
    // The file as a whole lacks a key, not its first line.
    match start.filter(|start| *start > 0 || what == said).and_then(|start| text.get(..start)) {
        Some(before) => {
            let line = 1 + before.matches('\n').count();
            let column = 1 + before.chars().rev().take_while(|c| *c != '\n').count();
            format!("line {line}, column {column}: {what}")
        }
        None => what,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[expect(dead_code, reason = "only errors are looked at")]
        key: f64,
        #[expect(dead_code, reason = "only errors are looked at")]
        #[serde(default)]
        inner: BTreeMap<String, Inner>,
    }

    #[derive(Debug, serde::Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only errors are looked at")]
        value: f64,
    }

    #[test]
    fn a_mistake_is_one_line_with_its_place() {
        let long = format!("key = '{}'", "a".repeat(100_000));
        for (text, expected) in [
            ("", "`key` is missing"),
            ("key = 1\n[inner.a]\n", "line 2, column 1: `value` is missing"),
            ("other = 1", "line 1, column 1: unknown field `other`"),
            ("key = 1\nkey = 2", "line 2, column 1: duplicate key"),
            ("\nkey = 'x'", "line 2, column 7: invalid type: string \"x\", expected f64"),
            (&long, "line 1, column 7: invalid type: string \"aaaa"),
        ] {
            let said = toml_mistake(text, &toml::from_str::<Outer>(text).unwrap_err());
            assert!(said.starts_with(expected), "{expected}: {said}");
            assert!(said.chars().count() < 250 && said.lines().count() == 1, "{said}");
        }
    }
}
