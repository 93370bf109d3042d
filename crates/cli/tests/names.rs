//! No type name stands for two things.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Names that may stand in several files below one folder of `crates`, and why.
const EXEMPT: [(&str, &str, &str); 5] = [
    ("Params", "policy/src/", "one macro makes the constants of each policy"),
    ("Body", "hook/src/", "the body of a parallel region, for each OpenMP runtime"),
    ("Entry", "hook/src/", "the type of the C function that is replaced at this place"),
    ("Query", "hook/src/", "the type of an OpenMP function that returns a number"),
    ("Region", "hook/src/", "the argument of a `Body`, for each OpenMP runtime"),
];

const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The keyword of an item, and what follows it, without its visibility.
fn keyword(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, rest)| rest),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let end = line.find(|char: char| !char.is_alphanumeric()).unwrap_or(line.len());
    (&line[..end], line[end..].trim_start())
}

/// Whether the last of these lines is an item of an `impl` or a `trait`.
fn is_associated(lines: &[&str]) -> bool {
    let Some((last, before)) = lines.split_last() else { return false };
    let is_head = |line: &&&str| {
        indent(line) < indent(last)
            && line.trim_start().starts_with(char::is_alphabetic)
            && line.trim() != "where"
    };
    let head = before.iter().rev().find(is_head);
    head.is_some_and(|line| ["impl", "trait"].contains(&keyword(line).0))
}

/// The types that a file defines, without those of the tests at its end.
fn definitions(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().collect();
    let begins_tests = |pair: &[&str]| {
        pair[0] == "#[cfg(test)]" && keyword(pair[1]).0 == "mod" && pair[1].ends_with('{')
    };
    let end = lines.windows(2).position(begins_tests).unwrap_or(lines.len());
    let name = |at: usize| {
        let (keyword, rest) = keyword(lines[at]);
        let is_type = KEYWORDS.contains(&keyword)
            && rest.starts_with(char::is_uppercase)
            && !(keyword == "type" && is_associated(&lines[..=at]));
        let end = rest.find(|char: char| !char.is_alphanumeric()).unwrap_or(rest.len());
        is_type.then(|| rest[..end].to_owned())
    };
    (0..end).filter_map(name).collect()
}

/// The Rust files below a folder, without tests, by their path in `crates`.
fn sources(folder: &Path, path: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{path}{name}");
        let stem = name.trim_end_matches(".rs");
        if ["test", "tests", "testkit", "examples", "benches"].contains(&stem)
            || stem.ends_with("_tests")
        {
            continue;
        }
        if entry.path().is_dir() {
            sources(&entry.path(), &format!("{path}/"), found);
        } else if stem != name && path.contains("/src/") {
            found.insert(path, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

#[test]
fn definitions_of_types_are_found() {
    let text = [
        "pub(in crate::a) struct A<T>(T);\nimpl<T> B for A<T>\nwhere\n    T: C,\n{",
        "    type D = E;\n    fn f() {\n        type F = u8;\n    }\n}",
        "pub unsafe trait G {\n    type H;\n}\n// enum I",
        "#[cfg(test)]\nmod tests;\nenum J {\n    K,\n}",
        "#[cfg(test)]\npub(crate) mod tests {\n    struct L;\n}",
    ];
    let text = text.join("\n");
    assert_eq!(definitions(&text).into_iter().collect::<Vec<_>>(), ["A", "F", "G", "J"]);
}

/// The names of associated types are those of their traits.
#[test]
fn no_type_name_stands_for_two_things() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = BTreeMap::new();
    sources(crates, "", &mut files);
    assert!(files.len() > 100, "{files:?}");
    let mut places: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (file, text) in &files {
        for name in definitions(text) {
            let mut exempt = EXEMPT.iter().map(|(exempt, folder, _)| (*exempt, *folder));
            let folder =
                exempt.find(|(exempt, folder)| name == *exempt && file.starts_with(folder));
            let place = folder.map_or(file.as_str(), |(_, folder)| folder);
            places.entry(name).or_default().insert(place);
        }
    }
    for (name, folder, why) in EXEMPT {
        assert!(places[name].contains(folder), "{name} is no longer needed here: {why}");
    }
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "{places:#?}");
}
