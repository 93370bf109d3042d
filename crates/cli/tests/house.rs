//! The tables of crates in docs/dev/design.md, and of modules in crates, say what uses what; no
//! large circle of files imports itself; no code chooses its own `/proc`; and no line is too
//! long.

#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENT: &str = include_str!("../../../docs/dev/design.md");

/// Every crate by its folder, with the crates of ours that it uses, in the order of the table.
fn documented() -> Vec<(String, Vec<String>)> {
    let rows = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| `cosched"));
    let cells = rows.map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    cells
        .map(|cells| {
            let (_, folder) = cells[0].split_once("(`crates/").expect("a folder");
            let uses = cells[1].split(',').map(str::trim).filter(|name| !name.is_empty());
            let folder = folder.trim_end_matches("`)");
            (folder.to_owned(), uses.map(str::to_owned).collect())
        })
        .collect()
}

/// The crates of ours below `[dependencies]`, sorted.
fn used(manifest: &str) -> Vec<String> {
    let (_, after) = manifest.split_once("[dependencies]").unwrap_or_default();
    let section = after.split("\n[").next().unwrap_or_default();
    let names = section.lines().filter_map(|line| line.strip_prefix("cosched-"));
    let mut names: Vec<String> =
        names.filter_map(|line| line.split(['.', ' ']).next().map(str::to_owned)).collect();
    names.sort();
    names
}

#[test]
fn crates_use_what_the_table_says() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut real = BTreeMap::new();
    for folder in fs::read_dir(crates).unwrap() {
        let folder = folder.unwrap().file_name().into_string().unwrap();
        let manifest = fs::read_to_string(crates.join(&folder).join("Cargo.toml")).unwrap();
        real.insert(folder, used(&manifest));
    }
    // It is used by tests alone.
    assert_eq!(real.remove("fuzz"), Some(Vec::new()));
    let described: BTreeMap<_, _> = documented().into_iter().collect();
    assert_eq!(described, real);
}

#[test]
fn no_crate_uses_one_that_is_below_it() {
    let mut above = Vec::new();
    for (folder, uses) in documented() {
        assert!(uses.iter().all(|name| above.contains(name)), "{folder} uses {uses:?}");
        above.push(folder);
    }
    assert!(above.len() > 5, "{above:?}");
}

/// The modules of a crate, in the order of the table at the beginning of this file.
fn modules(root: &Path) -> Vec<String> {
    let text = fs::read_to_string(root).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("//! | "));
    let names = rows.filter_map(|row| row.trim_start_matches('[').strip_prefix('`'));
    names.map(|row| row.split('`').next().unwrap().to_owned()).collect()
}

/// All files of a module but for its tests.
fn files_below(path: &Path, found: &mut Vec<PathBuf>) {
    let own = path.with_extension("rs");
    found.extend(own.is_file().then_some(own));
    for entry in fs::read_dir(path).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files_below(&path, found),
            false if path.ends_with("tests.rs") => {}
            false => found.push(path),
        }
    }
}

/// The modules that these files use.
fn used_modules(files: &[PathBuf]) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let names = lines.flat_map(|line| line.split("crate::").skip(1));
        let name = |rest: &str| {
            rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().map(str::to_owned)
        };
        used.extend(names.filter_map(name));
    }
    used
}

#[test]
fn no_module_uses_one_that_is_below_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let roots = [
        "linux/src/lib.rs",
        "ui/src/lib.rs",
        "run/src/lib.rs",
        "lab/src/lib.rs",
        "cli/src/main.rs",
    ];
    for root in roots.map(|root| crates.join(root)) {
        let modules = modules(&root);
        assert!(modules.len() > 1, "{modules:?}");
        for (place, module) in modules.iter().enumerate() {
            let mut files = Vec::new();
            files_below(&root.with_file_name(module), &mut files);
            let used = used_modules(&files);
            let mut below = modules[place + 1..].iter().filter(|below| used.contains(*below));
            assert_eq!(below.next(), None, "used by {module}");
        }
    }
}

/// The largest number of files that may import each other in a circle.
const LARGEST_CIRCLE: usize = 8;

/// The code of a file, without comments and without what only tests see.
fn code(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut code = String::new();
    while let Some(line) = lines.next() {
        if !line.trim_start().starts_with("#[cfg(test)]") {
            code.push_str(line.split(" // ").next().unwrap());
            code.push('\n');
            continue;
        }
        let item = lines.by_ref().find(|line| !line.trim_start().starts_with("#[")).unwrap();
        let end = format!("{}}}", &item[..item.len() - item.trim_start().len()]);
        if !item.ends_with([';', ',', '}']) {
            let _ = lines.by_ref().find(|line| line.starts_with(&end));
        }
    }
    code
}

/// Every path in some code: `use a::{b, c::d}` has two, `a::b` and `a::c::d`.
fn paths(code: &str) -> Vec<String> {
    let (mut found, mut path) = (Vec::new(), String::new());
    // What stands before each open brace, where that is a path.
    let mut open = vec![String::new()];
    for char in code.chars() {
        if char.is_alphanumeric() || matches!(char, '_' | ':') {
            path.push(char);
            continue;
        }
        let own = std::mem::take(&mut path);
        let whole = open.last().cloned().unwrap_or_default() + &own;
        match char {
            '{' if whole.ends_with("::") => open.push(whole),
            '{' => open.push(String::new()),
            _ => {
                found.extend(Some(whole).filter(|path| !own.is_empty() && path.contains("::")));
                if char == '}' {
                    open.pop();
                }
            }
        }
    }
    found
}

/// The module to which a path in another module leads, as far as modules go. What the root of the
/// crate passes on is followed: `passed` has its paths.
fn target(
    path: &str,
    module: &str,
    modules: &BTreeMap<String, PathBuf>,
    passed: &[String],
) -> Option<String> {
    let mut names = path.split("::").peekable();
    let mut at = match *names.peek()? {
        "crate" => "crate".to_owned(),
        "super" | "self" => module.to_owned(),
        child => Some(module.to_owned()).filter(|_| modules.contains_key(&join(module, child)))?,
    };
    while let Some(name) = names.next_if(|name| ["crate", "self", "super"].contains(name)) {
        if name == "super" {
            at = at.rsplit_once("::")?.0.to_owned();
        }
    }
    while let Some(name) = names.next() {
        let below = join(&at, name);
        if !modules.contains_key(&below) {
            let is_it = |path: &&String| path.rsplit("::").next() == Some(name);
            // Another crate under another name.
            let is_other = name.starts_with(char::is_lowercase) && names.peek().is_some();
            return match passed.iter().find(is_it) {
                Some(path) if at == "crate" => target(path, "crate", modules, &[]),
                None if at == "crate" && is_other => None,
                _ => Some(at),
            };
        }
        at = below;
    }
    Some(at)
}

fn join(module: &str, child: &str) -> String {
    format!("{module}::{child}")
}

/// The file of every module of a crate: `crate::sim::check`.
fn modules_of(source: &Path) -> BTreeMap<String, PathBuf> {
    let mut files = Vec::new();
    files_below(source, &mut files);
    let module = |file: &PathBuf| {
        let place = file.strip_prefix(source).unwrap().with_extension("");
        let names = place.iter().map(|name| name.to_str().unwrap());
        let names = names.filter(|name| !["lib", "main", "mod"].contains(name));
        names.fold("crate".to_owned(), |module, name| join(&module, name))
    };
    let files = files.into_iter().filter(|file| file.extension().is_some_and(|end| end == "rs"));
    files.map(|file| (module(&file), file)).collect()
}

/// All that can be reached from a module, itself only if a circle leads back to it.
fn reached(from: &str, uses: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<String> {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(module) = next.pop() {
        let used = uses.get(module).into_iter().flatten();
        next.extend(used.filter(|module| seen.insert(module.to_string())).map(String::as_str));
    }
    seen
}

#[test]
fn paths_lead_to_the_files_of_modules() {
    let names = ["crate", "crate::a", "crate::a::b", "crate::a::b::c", "crate::d"];
    let modules: BTreeMap<_, _> = names.map(|name| (name.to_owned(), PathBuf::new())).into();
    let targets = |code: &str| -> Vec<String> {
        let passed = ["d::W".to_owned(), "other::V".to_owned()];
        let paths = paths(code).into_iter();
        paths.filter_map(|path| target(&path, "crate::a::b", &modules, &passed)).collect()
    };
    assert_eq!(targets("use super::super::d::X;"), ["crate::d"]);
    assert_eq!(
        targets("use crate::{a::{self, Y}, d};\nuse std::fmt;"),
        ["crate::a", "crate::a", "crate::d"]
    );
    assert_eq!(
        targets("fn x() { c::y(super::Z { a: self::c::V }) }"),
        ["crate::a::b::c", "crate::a", "crate::a::b::c"]
    );
    assert_eq!(targets("use crate::{U, V, W, ui::X};"), ["crate", "crate::d"]);
    assert_eq!(code("a\n#[cfg(test)]\nmod tests;\nb\n#[cfg(test)]\nmod t {\n    c\n}\n"), "a\nb\n");
}

/// A child that uses what stands in its parent's file imports that file.
#[test]
fn no_large_circle_of_files_imports_itself() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut circles = BTreeSet::new();
    for folder in fs::read_dir(crates).unwrap() {
        let folder = folder.unwrap().path();
        let modules = modules_of(&folder.join("src"));
        let paths = |file: &PathBuf| paths(&code(&fs::read_to_string(file).unwrap()));
        let mut passed = paths(&modules["crate"]);
        passed.retain(|path| !path.starts_with("std"));
        let used = |(module, file): (&String, &PathBuf)| {
            let used = paths(file).into_iter();
            let used = used.filter_map(|path| target(&path, module, &modules, &passed));
            (module.clone(), used.filter(|used| used != module).collect())
        };
        let uses = modules.iter().map(used).collect();
        let reached: BTreeMap<_, _> =
            modules.keys().map(|module| (module, reached(module, &uses))).collect();
        for (module, seen) in &reached {
            let circle: Vec<String> =
                seen.iter().filter(|other| reached[other].contains(*module)).cloned().collect();
            if circle.len() > LARGEST_CIRCLE {
                circles.insert((folder.clone(), circle));
            }
        }
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

/// `/proc` is chosen where a process begins, and passed on from there.
#[test]
fn only_processes_and_tests_choose_their_proc() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for folder in fs::read_dir(crates).unwrap() {
        for (module, file) in modules_of(&folder.unwrap().path().join("src")) {
            let code = code(&fs::read_to_string(file).unwrap());
            let is_tests = module.ends_with("_tests");
            found.extend(Some(module).filter(|_| !is_tests && code.contains("Proc::default()")));
        }
    }
    let set_up_of_tests = ["crate::cgroup::live", "crate::process::testkit"];
    let mains = ["crate::process::shim", "crate::safety::sentinel"];
    let expected = [&set_up_of_tests[..], &mains, &["crate::kernel::procfs"]].concat();
    assert_eq!(found, expected.into_iter().map(String::from).collect());
}

/// The largest number of characters in a line of Rust.
const LONGEST_LINE: usize = 100;

/// All Rust files in a folder and in the folders below it.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => rust_files(&path, found),
            false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
            false => {}
        }
    }
}

/// `count` of `cosched_core::format` puts a number and its noun together.
#[test]
fn no_message_has_a_plural_in_brackets() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for folder in fs::read_dir(crates).unwrap() {
        rust_files(&folder.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 100, "{files:?}");
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().zip(1..).filter(|(line, _)| {
            let pieces = line.match_indices("(s)").chain(line.match_indices("(es)"));
            pieces.into_iter().any(|(at, _)| line[..at].ends_with(char::is_alphabetic))
                && line.contains("} ")
        });
        found.extend(lines.map(|(_, number)| format!("{}:{number}", file.display())));
    }
    assert!(found.is_empty(), "use `count` of cosched_core::format: {found:#?}");
}

/// `cargo fmt` leaves long lines as they are in macros, texts and comments.
#[test]
fn no_line_of_rust_is_longer_than_100_characters() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    rust_files(crates, &mut files);
    assert!(files.len() > 100, "{files:?}");
    let mut long = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().zip(1..);
        let lines = lines.filter(|(line, _)| line.chars().count() > LONGEST_LINE);
        long.extend(lines.map(|(_, number)| format!("{}:{number}", file.display())));
    }
    assert!(long.is_empty(), "wrap these lines at {LONGEST_LINE} characters: {long:#?}");
}
