//! The tables of crates in docs/dev/design.md, and of modules in crates, say what uses what.

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
