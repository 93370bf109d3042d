//! From folders to variants: which runs there are, and which of them are compared.
//!
//! `run --out` and `sim --out` make a folder with a `run.json`. `compare --out` makes a folder with
//! a folder for each variant, in a folder `round-001` for each round where there are several.
//! Single runs that are named together are variants of one round. What is in several folders of
//! comparisons was not measured in the same rounds, and is shown without being compared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use cosched_report::disturbance::impossible_solos;
use cosched_report::{Comparison, VariantRuns};
use cosched_results::result::{MAX_BYTES, RunResult, reject_solos_everywhere};
use cosched_workload::input;
use cosched_workload::shown_path;
use serde_json::Value;

use crate::experiment::ExperimentRecord;
use crate::out::{self, Left};
use crate::ui::failure::Failure;

/// What the others are held against, where it is there and nothing else was asked for.
const BASELINE: &str = "linux";

/// How the schema of a printed comparison begins, whatever its version.
const COMPARISON: &str = "cosched-compare/";

/// What can be read, in words.
const READABLE: &str = "name a folder that `cosched run --out` or `compare --out` made";

/// What there is to report.
pub struct FoundRuns {
    /// The variants, the one first with which the others are compared.
    pub variants: Vec<VariantRuns>,
    /// The `run.json` of every run of each variant.
    pub files: Vec<Vec<PathBuf>>,
    /// What can be said of the variants against each other.
    pub comparison: Option<Comparison>,
    /// What is missing, for the reader.
    pub notes: Vec<String>,
}

/// One run, and where it belongs.
struct RunEntry {
    /// Which of the places on the command line it is from.
    named: usize,
    /// Whether that place holds a comparison; else it is this run alone.
    in_tree: bool,
    round: String,
    variant: String,
    /// Which of the variants of its comparison it is of, where that is known.
    column: usize,
    file: PathBuf,
    run: RunResult,
}

/// Reads everything that is named: folders of runs and of comparisons, and files of one. `against`
/// names the variant with which the others are compared; `None`: `linux`, or else the first one.
///
/// # Errors
/// When something that is named is no result, is there twice, or is of another policy than its
/// folder says.
pub fn gather(from: &[PathBuf], against: Option<&str>) -> Result<FoundRuns, Failure> {
    let (mut entries, mut notes) = (Vec::new(), Vec::new());
    let mut printed = None;
    for (named, path) in from.iter().enumerate() {
        match path.is_dir() {
            true => read_folder(named, path, &mut entries, &mut notes)?,
            false => match read_file(path)? {
                ResultFile::Comparison(comparison) if printed.is_none() => {
                    printed = Some(comparison)
                }
                ResultFile::Comparison(_) => return Err(twice(path)),
                ResultFile::Run(run) => entries.push(single(named, path.clone(), *run)),
            },
        }
    }
    check_once(&entries)?;
    // Single runs belong together, and so do those of one comparison.
    let places = entries.iter().map(|entry| entry.in_tree.then_some(entry.named));
    let together = places.collect::<BTreeSet<Option<usize>>>().len() <= 1;
    let (mut variants, files): (Vec<VariantRuns>, _) =
        variants(entries, from, together, against, &mut notes)?.into_iter().unzip();
    if together {
        reject_solos_everywhere(variants.iter_mut().flat_map(|variant| &mut variant.runs));
        if variants.len() > 1 {
            notes.extend(impossible_solos(variants.iter().flat_map(|variant| &variant.runs)));
        }
    }
    let obstacle = match variants.len() {
        0 | 1 => None,
        _ if !together => Some("they were not measured in the same rounds".to_owned()),
        _ => Comparison::of(&variants).err().map(|obstacle| obstacle.to_string()),
    };
    let comparison = match (printed, &obstacle) {
        (Some(printed), _) => Some(printed),
        (None, None) if variants.len() > 1 => Comparison::of(&variants).ok(),
        _ => None,
    };
    if let (None, Some(obstacle)) = (&comparison, obstacle) {
        notes.push(format!("These runs are shown, but not compared: {obstacle}."));
    }
    Ok(FoundRuns { variants, files, comparison, notes })
}

fn twice(path: &Path) -> Failure {
    Failure::Input(format!("{}: is a second comparison; name one at a time", shown_path(path)))
}

/// One run is one sample, however many names it has. Simulations of the same are the same.
fn check_once(entries: &[RunEntry]) -> Result<(), Failure> {
    let whole = |entry: &RunEntry| entry.file.canonicalize().unwrap_or(entry.file.clone());
    let files: Vec<PathBuf> = entries.iter().map(whole).collect();
    for (i, entry) in entries.iter().enumerate() {
        let measured = !entry.run.machine.is_simulated();
        let same = |other: &usize| {
            files[*other] == files[i] || measured && entries[*other].run == entry.run
        };
        if let Some(other) = (0..i).find(same) {
            return Err(Failure::Input(format!(
                "{}: is the same run as {}, and a run counts once; name it once, or take the copy \
                 away",
                shown_path(&entry.file),
                shown_path(&entries[other].file)
            )));
        }
    }
    Ok(())
}

fn single(named: usize, file: PathBuf, run: RunResult) -> RunEntry {
    let variant = run.policy.clone();
    RunEntry { named, in_tree: false, round: String::new(), variant, column: 0, file, run }
}

enum ResultFile {
    Comparison(Comparison),
    Run(Box<RunResult>),
}

fn read_file(path: &Path) -> Result<ResultFile, Failure> {
    let shown = shown_path(path);
    let content = input::read(path, MAX_BYTES).map_err(|error| {
        let remedy = input::remedy(&error, READABLE);
        Failure::Input(format!("{shown}: cannot be read: {error}; {remedy}"))
    })?;
    // What is no JSON at all is told by the reader of runs.
    let value: Value = serde_json::from_slice(&content).unwrap_or_default();
    let schema = value["schema"].as_str().unwrap_or_default();
    match schema.starts_with(COMPARISON) {
        true => Comparison::of_json(value)
            .map(ResultFile::Comparison)
            .map_err(|error| Failure::Input(format!("{shown}: {error}"))),
        false => out::read(&content, path).map(Box::new).map(ResultFile::Run),
    }
}

/// A single run, or a comparison. Of a comparison, a damaged run is no run, and its round is not
/// complete.
fn read_folder(
    named: usize,
    folder: &Path,
    entries: &mut Vec<RunEntry>,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    if out::result(folder).exists() {
        entries.push(single(named, out::result(folder), out::load(folder)?));
        return Ok(());
    }
    let before = (entries.len(), notes.len());
    let columns = ExperimentRecord::variants(folder).unwrap_or_default();
    let mut add = |round: &str, variant: &Path| -> Result<(), Failure> {
        let file = out::result(variant);
        let run = match out::look(&file).map_err(Failure::input)? {
            Left::Whole(run) => out::known(*run, &file)?,
            Left::Damaged(what) => {
                notes.push(format!("{what}; its round does not count."));
                return Ok(());
            }
        };
        let (round, variant) = (round.to_owned(), name(variant));
        let column = columns.iter().position(|column| column.0 == variant).unwrap_or(columns.len());
        check_policy(&file, &run, columns.get(column))?;
        entries.push(RunEntry { named, in_tree: true, round, variant, column, file, run });
        Ok(())
    };
    for inside in folders(folder)? {
        let round = name(&inside);
        if out::result(&inside).exists() {
            add("", &inside)?;
        } else if round.starts_with("round-") {
            for variant in
                folders(&inside)?.into_iter().filter(|variant| out::result(variant).exists())
            {
                add(&round, &variant)?;
            }
        }
    }
    if entries.len() > before.0 {
        return Ok(());
    }
    let damaged =
        notes.get(before.1).map(|note| format!(" that can be read: {note} Compare again"));
    let what = damaged.unwrap_or_else(|| format!("; {READABLE}"));
    Err(Failure::Input(format!("{}: holds no result of a run{what}", shown_path(folder))))
}

/// What lies in a variant's folder has to be of that variant.
fn check_policy(
    file: &Path,
    run: &RunResult,
    variant: Option<&(String, Option<String>)>,
) -> Result<(), Failure> {
    match variant {
        Some((variant, Some(policy))) if *policy != run.policy => Err(Failure::Input(format!(
            "{}: is a run with policy {}, but variant {variant} of this comparison has policy \
             {policy}; move it away, or \
             name it alone",
            shown_path(file),
            run.policy
        ))),
        _ => Ok(()),
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

/// A variant, with all its runs, which are of one place on the command line.
struct GatheredVariant {
    variant: String,
    runs: Vec<RunEntry>,
}

impl GatheredVariant {
    /// The run that there was first.
    fn first(&self) -> &RunEntry {
        &self.runs[0]
    }

    fn is_of_tree(&self, named: usize) -> bool {
        self.first().in_tree && self.first().named == named
    }
}

/// Runs by variants, each with its files: in the order of the command line, and within a comparison
/// in its own order, or else the one in which they ran. Rounds in which a variant is missing, or
/// was interrupted, do not count.
fn variants(
    mut entries: Vec<RunEntry>,
    from: &[PathBuf],
    together: bool,
    against: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<Vec<(VariantRuns, Vec<PathBuf>)>, Failure> {
    // The sort keeps the order of simulations, which have no date, and of runs that began in the
    // same second.
    let place = |entry: &RunEntry| (entry.named, entry.column, entry.run.started_at.clone());
    entries.sort_by_cached_key(place);
    let mut rows: Vec<GatheredVariant> = Vec::new();
    for entry in entries {
        // Two single runs of one policy are two variants.
        let is_known = |row: &&mut GatheredVariant| {
            row.is_of_tree(entry.named) && row.variant == entry.variant
        };
        match rows.iter_mut().filter(|_| entry.in_tree).find(is_known) {
            Some(row) => row.runs.push(entry),
            None => {
                rows.push(GatheredVariant { variant: entry.variant.clone(), runs: vec![entry] })
            }
        }
    }
    let dropped: usize = (0..from.len()).map(|tree| drop_incomplete(&mut rows, tree)).sum();
    match dropped {
        0 => {}
        1 => notes.push("1 incomplete round does not count.".to_owned()),
        _ => notes.push(format!("{dropped} incomplete rounds do not count.")),
    }
    let mut names: Vec<String> = Vec::new();
    for row in &rows {
        names.push(unique(name_of(row, &rows, from, together), &names));
    }
    let mut variants: Vec<(VariantRuns, Vec<PathBuf>)> = Vec::new();
    for (name, GatheredVariant { mut runs, .. }) in names.iter().zip(rows) {
        // The rounds of all variants in the same order: they are pairs.
        runs.sort_by(|a, b| a.round.cmp(&b.round));
        let (runs, files) = runs.into_iter().map(|entry| (entry.run, entry.file)).unzip();
        variants.push((VariantRuns { name: name.clone(), runs }, files));
    }
    let place = |target: &str| names.iter().position(|name| name == target);
    let first = match against {
        None => place(BASELINE),
        Some(target) => Some(place(target).ok_or_else(|| {
            Failure::Input(match names.is_empty() {
                true => "--against: a comparison in one file cannot be compared otherwise; name \
                         the folder of its runs"
                    .to_owned(),
                false => format!(
                    "--against: there is no variant '{target}'; choose from {}",
                    names.join(", ")
                ),
            })
        })?),
    };
    variants[..first.map_or(0, |first| first + 1)].rotate_right(first.map_or(0, |_| 1));
    Ok(variants)
}

/// What distinguishes a variant from the others: within a comparison its own name, else its policy,
/// with its folder (or, where folders have the same name, all that was named) where a policy is
/// there more than once.
fn name_of(
    row: &GatheredVariant,
    rows: &[GatheredVariant],
    from: &[PathBuf],
    together: bool,
) -> String {
    let RunEntry { named, in_tree, file, .. } = row.first();
    if *in_tree {
        return match together {
            true => row.variant.clone(),
            false => format!("{}/{}", name(&from[*named]), row.variant),
        };
    }
    let same = |other: &&GatheredVariant| !other.first().in_tree && other.variant == row.variant;
    let folders: Vec<String> =
        rows.iter().filter(same).map(|row| folder(&row.first().file)).collect();
    let own = folder(file);
    match folders.iter().filter(|other| **other == own).count() {
        _ if folders.len() == 1 => row.variant.clone(),
        1 => format!("{} ({own})", row.variant),
        _ => format!("{} ({})", row.variant, from[*named].display()),
    }
}

/// The folder that a result is known by; the file itself where it has a name of its own.
fn folder(file: &Path) -> String {
    let whole = file.canonicalize().unwrap_or(file.to_owned());
    match whole.parent() {
        Some(folder) if out::result(folder) == whole => name(folder),
        _ => name(file),
    }
}

/// Drops runs of rounds that a variant of the same place has not, or that were interrupted, and
/// says how many rounds that were. Where no round is complete, all are kept to be looked at.
fn drop_incomplete(rows: &mut [GatheredVariant], tree: usize) -> usize {
    let mut own: Vec<&mut GatheredVariant> =
        rows.iter_mut().filter(|row| row.is_of_tree(tree)).collect();
    let rounds = own.iter().flat_map(|row| row.runs.iter().map(|entry| entry.round.clone()));
    let rounds: BTreeSet<String> = rounds.collect();
    let has = |row: &GatheredVariant, round: &String| {
        let complete =
            |entry: &RunEntry| entry.round == *round && entry.run.interrupted_by.is_none();
        row.runs.iter().any(complete)
    };
    let complete: BTreeSet<&String> =
        rounds.iter().filter(|round| own.iter().all(|row| has(row, round))).collect();
    if complete.is_empty() {
        return 0;
    }
    own.iter_mut().for_each(|row| row.runs.retain(|entry| complete.contains(&entry.round)));
    rounds.len() - complete.len()
}

/// The name, with a number behind it where another variant has it already.
fn unique(name: String, taken: &[String]) -> String {
    let numbered = (2..).map(|n| format!("{name}-{n}"));
    let mut names = [name.clone()].into_iter().chain(numbered);
    names.find(|name| !taken.contains(name)).unwrap_or(name)
}
