//! From folders to ways: which runs there are, and which of them belong side by side.
//!
//! `run --out` and `sim --out` make a folder with a `run.json`. `compare --out` makes a folder with a folder
//! for each way, in a folder `round-001` for each round where there are several. Single runs that are named together
//! are ways of one round. What is in several folders of comparisons was not measured side by side, and is shown without
//! being compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cosched_core::result::RunResult;
use cosched_core::workload::shown_path;
use cosched_report::{Comparison, Way};
use serde_json::Value;

use crate::failure::Failure;
use crate::out;

/// What the others are held against, where it is there and nothing else was asked for.
const BASELINE: &str = "linux";

/// How the schema of a printed comparison begins, whatever its version.
const COMPARISON: &str = "cosched-compare/";

/// What there is to report.
pub(super) struct Found {
    pub(super) ways: Vec<Way>,
    pub(super) comparison: Option<Comparison>,
    /// What is missing, for the reader.
    pub(super) notes: Vec<String>,
}

/// One run, and where it belongs.
struct Entry {
    /// Which of the folders named by the user; `None` for a single run.
    tree: Option<usize>,
    round: String,
    way: String,
    run: RunResult,
}

/// Reads everything that is named.
pub(super) fn gather(from: &[PathBuf], against: Option<&str>) -> Result<Found, Failure> {
    let mut entries = Vec::new();
    let mut printed = None;
    for (i, path) in from.iter().enumerate() {
        match path.is_dir() {
            true => read_folder(i, path, &mut entries)?,
            false => match read_file(path)? {
                File::Comparison(comparison) if printed.is_none() => printed = Some(comparison),
                File::Comparison(_) => return Err(twice(path)),
                File::Run(run) => entries.push(single(*run)),
            },
        }
    }
    let places: BTreeSet<Option<usize>> = entries.iter().map(|entry| entry.tree).collect();
    let together = places.len() <= 1;
    let mut notes = Vec::new();
    let ways = ways(entries, from, together, against, &mut notes)?;
    let comparison = match printed {
        Some(printed) => Some(printed),
        None if together && ways.len() > 1 => Comparison::of(&ways),
        None => None,
    };
    if comparison.is_none() && ways.len() > 1 {
        notes.push(match together {
            true => {
                "These runs are shown, not compared: they are not of the same programs.".to_owned()
            }
            false => "These runs are shown, not compared: they were not measured side by side."
                .to_owned(),
        });
    }
    Ok(Found { ways, comparison, notes })
}

fn twice(path: &Path) -> Failure {
    Failure::Input(format!("{}: is a second comparison; name one at a time", shown_path(path)))
}

fn single(run: RunResult) -> Entry {
    Entry { tree: None, round: String::new(), way: run.policy.clone(), run }
}

/// What a file can be.
enum File {
    Comparison(Comparison),
    Run(Box<RunResult>),
}

fn read_file(path: &Path) -> Result<File, Failure> {
    let shown = shown_path(path);
    let text = fs::read_to_string(path).map_err(|error| {
        Failure::Input(format!(
            "{shown}: cannot be read: {error}; name a folder that `cosched run --out` or `compare --out` made"
        ))
    })?;
    // What is no JSON at all is told by the reader of runs.
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let schema = value["schema"].as_str().unwrap_or_default();
    match schema.starts_with(COMPARISON) {
        true => Comparison::parse(&text)
            .map(File::Comparison)
            .map_err(|error| Failure::Input(format!("{shown}: {error}"))),
        false => out::load(path).map(Box::new).map(File::Run),
    }
}

/// A single run, or a comparison.
fn read_folder(tree: usize, folder: &Path, entries: &mut Vec<Entry>) -> Result<(), Failure> {
    if out::result(folder).exists() {
        entries.push(single(out::load(folder)?));
        return Ok(());
    }
    let before = entries.len();
    for inside in folders(folder)? {
        let name = name(&inside);
        if out::result(&inside).exists() {
            let run = out::load(&inside)?;
            entries.push(Entry { tree: Some(tree), round: String::new(), way: name, run });
        } else if name.starts_with("round-") {
            for way in folders(&inside)?.into_iter().filter(|way| out::result(way).exists()) {
                let (round, way, run) = (name.clone(), self::name(&way), out::load(&way)?);
                entries.push(Entry { tree: Some(tree), round, way, run });
            }
        }
    }
    match entries.len() > before {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "{}: holds no result of a run; name a folder that `cosched run --out` or `compare --out` made",
            shown_path(folder)
        ))),
    }
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = |error| Failure::Input(format!("{}: cannot be read: {error}", shown_path(folder)));
    let entries = fs::read_dir(folder).map_err(read)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(read)?;
    paths.retain(|path| path.is_dir());
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A way, with the round of each run.
struct Row {
    tree: Option<usize>,
    way: String,
    runs: Vec<(String, RunResult)>,
}

/// Runs by ways, in the order in which they ran; rounds in which a way is missing do not count.
fn ways(
    mut entries: Vec<Entry>,
    from: &[PathBuf],
    together: bool,
    against: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Vec<Way>, Failure> {
    // The sort keeps the order of simulations, which have no date, and of runs that began in the same second.
    entries.sort_by(|a, b| (a.tree, &a.run.started_at).cmp(&(b.tree, &b.run.started_at)));
    let mut rows: Vec<Row> = Vec::new();
    for Entry { tree, round, way, run } in entries {
        // Two single runs of one policy are two ways.
        let known =
            rows.iter_mut().find(|row| tree.is_some() && row.tree == tree && row.way == way);
        match known {
            Some(row) => row.runs.push((round, run)),
            None => rows.push(Row { tree, way, runs: vec![(round, run)] }),
        }
    }
    let dropped: usize = (0..from.len()).map(|tree| drop_incomplete(&mut rows, tree)).sum();
    if dropped > 0 {
        notes.push(format!("{dropped} incomplete rounds do not count."));
    }
    let mut ways: Vec<Way> = Vec::new();
    for Row { tree, way, mut runs } in rows {
        let name = match tree.filter(|_| !together) {
            Some(tree) => format!("{}/{way}", self::name(&from[tree])),
            None => way,
        };
        // The rounds of all ways in the same order: they are pairs.
        runs.sort_by(|a, b| a.0.cmp(&b.0));
        let runs = runs.into_iter().map(|(_, run)| run).collect();
        ways.push(Way { name: unique(name, &ways), runs });
    }
    let place = |wanted: &str| ways.iter().position(|way| way.name == wanted);
    let first = match against {
        None => place(BASELINE),
        Some(wanted) => Some(place(wanted).ok_or_else(|| {
            let names: Vec<&str> = ways.iter().map(|way| way.name.as_str()).collect();
            let names = names.join(", ");
            Failure::Input(format!("--against: there is no way '{wanted}'; choose from {names}"))
        })?),
    };
    ways[..first.map_or(0, |first| first + 1)].rotate_right(first.map_or(0, |_| 1));
    Ok(ways)
}

/// Drops runs of rounds that a way of the same folder has not, and says how many rounds that were. Where no round is
/// complete, all are kept to be looked at.
fn drop_incomplete(rows: &mut [Row], tree: usize) -> usize {
    let mut own: Vec<&mut Row> = rows.iter_mut().filter(|row| row.tree == Some(tree)).collect();
    let rounds = own.iter().flat_map(|row| row.runs.iter().map(|(round, _)| round.clone()));
    let rounds: BTreeSet<String> = rounds.collect();
    let has = |row: &Row, round: &String| row.runs.iter().any(|(of, _)| of == round);
    let complete: BTreeSet<&String> =
        rounds.iter().filter(|round| own.iter().all(|row| has(row, round))).collect();
    if complete.is_empty() {
        return 0;
    }
    own.iter_mut().for_each(|row| row.runs.retain(|(round, _)| complete.contains(round)));
    rounds.len() - complete.len()
}

/// The name, with a number behind it where another way has it already.
fn unique(name: String, ways: &[Way]) -> String {
    let taken = |name: &str| ways.iter().any(|way| way.name == name);
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    [name.clone()].into_iter().chain(numbered).find(|name| !taken(name)).unwrap_or(name)
}
