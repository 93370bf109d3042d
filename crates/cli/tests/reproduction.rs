//! The claims of the papers: each is listed once, and the page that `make experiments` writes
//! reports on each.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Table;

/// How many claims each paper makes, by the prefix of their ids.
const PAPERS: [(&str, usize); 5] =
    [("ff", 36), ("shuf", 16), ("scaff", 48), ("tidon", 28), ("fps", 72)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn tables(file: &Path, key: &str) -> Vec<Table> {
    let text = std::fs::read_to_string(file).unwrap();
    let read: Table = text.parse().unwrap();
    let list = read.get(key).and_then(|value| value.as_array()).cloned().unwrap_or_default();
    list.into_iter().map(|value| value.as_table().unwrap().clone()).collect()
}

fn text<'a>(table: &'a Table, key: &str) -> &'a str {
    table.get(key).and_then(|value| value.as_str()).unwrap_or_default()
}

/// The claims of the papers without an experiment, and those of each experiment.
fn claims() -> Vec<Table> {
    let folder = root().join("experiments");
    let folders = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let files = folders.chain([folder.clone()]).map(|folder| folder.join("claims.toml"));
    files.filter(|file| file.exists()).flat_map(|file| tables(&file, "claim")).collect()
}

#[test]
fn every_claim_of_every_paper_is_listed_once_with_its_place() {
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for claim in claims() {
        let id = text(&claim, "id");
        let (paper, number) = id.split_once('-').unwrap_or_else(|| panic!("'{id}' is no id"));
        assert_eq!(number.len(), 2, "{id}: two digits");
        numbers.entry(paper.to_owned()).or_default().push(number.parse().unwrap());
        for key in ["says", "where"] {
            assert!(!text(&claim, key).is_empty(), "{id} has no '{key}'");
        }
    }
    let papers = tables(&root().join("experiments/claims.toml"), "paper");
    for (paper, count) in PAPERS {
        let found = numbers.remove(paper).unwrap_or_default();
        let mut sorted = found.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=count).collect::<Vec<_>>(), "{paper}");
        let described = papers.iter().find(|table| text(table, "prefix") == paper).unwrap();
        assert_eq!(described["claims"].as_integer(), Some(count as i64), "{paper}");
    }
    assert!(numbers.is_empty(), "papers that are not known: {numbers:?}");
}

#[test]
fn the_page_has_a_row_per_claim_and_its_links_work() {
    let docs = root().join("experiments");
    let page = std::fs::read_to_string(docs.join("results.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|line| line.split(" | ").collect())
        .collect();
    // How far a claim holds stands between its verdict and the reason.
    let head = rows.iter().find(|row| row[0] == "claim").unwrap();
    let expected = "claim, the paper says, its figure, ours, verdict, direction, magnitude, score, \
                    survives, why";
    assert_eq!(head.join(", "), expected);
    let all = claims();
    for claim in &all {
        let id = text(claim, "id");
        let linked = format!("[{id}](");
        let of = |row: &&Vec<&str>| row[0] == id || row[0].starts_with(&linked);
        let found: Vec<_> = rows.iter().filter(of).collect();
        assert_eq!(found.len(), 1, "{id}");
        let row = found[0];
        assert_eq!(row.len(), head.len(), "{row:?}");
        assert!(row[1].starts_with(text(claim, "says")), "{id}: run `make experiments`");
        let verdicts = ["**reproduced**", "partly", "not", "open", "input", "picture"];
        assert!(verdicts.contains(&row[4]), "{id}: {}", row[4]);
        // A claim that counts as checked has a link to where it was checked.
        let link = row[0].strip_prefix(&linked).and_then(|rest| rest.strip_suffix(')'));
        assert_eq!(
            link.is_none(),
            row[4] == "open" || (row[4] == "input" && link.is_none()),
            "{id}"
        );
        assert!(link.is_none_or(|link| docs.join(link).exists()), "{id}: {link:?} is not there");
    }
    let total: usize = PAPERS.iter().map(|(_, count)| count).sum();
    assert!(page.contains(&format!("| **all** | {total} |")));
}
