//! The table of crates in docs/dev/design.md says which crate uses which.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
    let told: BTreeMap<_, _> = documented().into_iter().collect();
    assert_eq!(told, real);
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
