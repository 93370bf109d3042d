//! Which commands run tests.

/// Commands that only run tests.
const RUNNERS: [&str; 12] = [
    "cargo-nextest",
    "ctest",
    "hypothesis",
    "jest",
    "mocha",
    "nose2",
    "nox",
    "py.test",
    "pytest",
    "tox",
    "unittest",
    "vitest",
];
/// Commands that run tests with one of these subcommands.
const SUBCOMMANDS: [(&str, &[&str]); 6] = [
    ("cargo", &["test", "t", "nextest"]),
    ("go", &["test"]),
    ("npm", &["test", "t"]),
    ("pnpm", &["test", "t"]),
    ("yarn", &["test"]),
    ("bun", &["test"]),
];
/// Commands that start a test runner, named in their arguments.
const STARTERS: [&str; 10] =
    ["bunx", "coverage", "hatch", "npx", "pipenv", "pnpm", "poetry", "uv", "xvfb-run", "yarn"];
/// The ends of names of test executables, as GoogleTest and CMake projects choose them.
const ENDS: [&str; 6] = ["_test", "_tests", "_unittest", "_unittests", "_gtest", "-gtest"];

/// What a message calls the test runner of a command, if it is one.
pub(crate) fn test_runner(name: &str, arguments: &[String]) -> Option<String> {
    // Distributions have versions in names: pytest-3.
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
    if RUNNERS.contains(&base) {
        return Some(base.to_owned());
    }
    let is_option = |word: &&String| word.starts_with(['-', '+']);
    if let Some((_, words)) = SUBCOMMANDS.iter().find(|(command, _)| *command == name) {
        let first = arguments.iter().find(|word| !is_option(word));
        if let Some(first) = first.filter(|first| words.contains(&first.as_str())) {
            return Some(format!("{name} {first}"));
        }
    }
    if STARTERS.contains(&name) {
        let found = |word: &&String| RUNNERS.contains(&word.as_str());
        return arguments.iter().find(found).cloned();
    }
    let is_gtest = arguments.iter().any(|word| word.starts_with("--gtest_"))
        || ENDS.iter().any(|end| name.ends_with(end));
    is_gtest.then(|| name.to_owned())
}
