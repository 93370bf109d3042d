//! `cosched report`: what runs and comparisons show, as one HTML page and as plots for a paper.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cosched_core::Nanos;
use cosched_lab::gather::gather;
use cosched_report::html::GENERATOR;
use cosched_report::svg::MARK;
use cosched_report::{Report, VariantRuns};
use cosched_workload::shown_path;
use serde::Serialize;

use crate::args::instant;
use crate::out;
use crate::replace::{self, FileKind, replace};
use crate::ui::failure::Failure;
use crate::ui::{print_json, put, say};

/// The page and its plots.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folders made by `cosched run --out`, `cosched compare --out` or `cosched sim --out`, or a
    /// file with the output of `cosched compare --json`.
    #[arg(required = true, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Where to write the page, or - for standard output. An earlier report is replaced, no other
    /// file is [default: report.html beside the result]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A folder for the plots as SVG files; made if it does not exist. The page is then written
    /// only with --out.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// The variant with which the others are compared [default: linux, or else the first one]
    #[arg(long, value_name = "VARIANT")]
    against: Option<String>,
    /// Where the pictures of what ran when begin: seconds since the start of the run, or a time
    /// such as 350ms or 2min [default: the start]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = instant)]
    begin: Option<Nanos>,
    /// Where these pictures end; the page itself can show more [default: the end of the run]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = instant)]
    end: Option<Nanos>,
    /// Print what was written as JSON.
    #[arg(long)]
    json: bool,
}

impl ReportArgs {
    pub(crate) fn prints_result(&self) -> bool {
        self.json || self.out.as_deref() == Some(Path::new("-"))
    }
}

const PAGE: FileKind = FileKind { made_by: "cosched report", option: "--out", is_one: is_page };
const PLOT: FileKind = FileKind { made_by: "cosched report", option: "--svg", is_one: is_plot };

/// What was written.
#[derive(Debug, Serialize)]
struct WrittenReport {
    schema: &'static str,
    files: Vec<WrittenFile>,
    variants: Vec<WrittenVariant>,
    /// Whether the variants are held against each other.
    compared: bool,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct WrittenFile {
    file: PathBuf,
    kind: &'static str,
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct WrittenVariant {
    name: String,
    runs: Vec<String>,
    sections: Vec<&'static str>,
}

/// Reads the results, and writes what they show.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let to_stdout = args.out.as_deref() == Some(Path::new("-"));
    if to_stdout && args.json {
        return Err(Failure::Input(
            "--json: standard output already takes the page; name a file with --out".to_owned(),
        ));
    }
    let window = window(args.begin, args.end)?;
    let found = gather(&args.from, args.against.as_deref())?;
    check_window(window, args.begin, &found.variants)?;
    let mut notes = found.notes;
    notes.extend(found.variants.iter().filter_map(|variant| too_short(variant, window)));
    let report = Report {
        title: title(&args.from),
        notes,
        comparison: found.comparison,
        variants: found.variants,
        window,
    };
    let mut files = Vec::new();
    let default = args.svg.is_none().then(|| default_page(&args.from));
    let page = args.out.as_ref().or(default.as_ref()).filter(|_| !to_stdout);
    let plots: Vec<(PathBuf, String)> = args.svg.as_ref().map_or_else(Vec::new, |folder| {
        let named = report.plots().into_iter();
        named.map(|(name, plot)| (folder.join(name), plot)).collect()
    });
    // What is refused for one of them is known before the first one is written.
    page.map_or(Ok(()), |page| replace::check(page, PAGE))?;
    args.svg.as_deref().map_or(Ok(()), make)?;
    plots.iter().try_for_each(|(file, _)| replace::check(file, PLOT))?;
    for (file, plot) in &plots {
        files.push(write(file, plot, "plot", PLOT)?);
    }
    if let Some(folder) = args.svg.as_ref().filter(|_| !args.json) {
        say(format_args!("{}: {} plots", folder.display(), plots.len()));
    }
    if to_stdout {
        put(format!("{}\n", report.html()).as_bytes())?;
    }
    if let Some(page) = page {
        let page = write(page, &report.html(), "page", PAGE)?;
        if !args.json {
            say(format_args!("{}: {} kB", page.file.display(), page.bytes.div_ceil(1000)));
        }
        files.push(page);
    }
    if args.json {
        let written = written(&report, found.files, files);
        print_json(&serde_json::to_string(&written).map_err(Failure::broken)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn written(report: &Report, runs: Vec<Vec<PathBuf>>, files: Vec<WrittenFile>) -> WrittenReport {
    let variant = |(variant, runs): (&VariantRuns, Vec<PathBuf>)| WrittenVariant {
        name: variant.name.clone(),
        // A folder's name need not be text.
        runs: runs.iter().map(|run| run.to_string_lossy().into_owned()).collect(),
        sections: report.sections(variant),
    };
    let shown: Vec<WrittenVariant> = report.variants.iter().zip(runs).map(variant).collect();
    // Of a comparison in one file there is no run.
    let printed = report.comparison.iter().flat_map(|comparison| &comparison.variants);
    let printed = printed.filter(|variant| shown.iter().all(|shown| shown.name != variant.name));
    let printed = printed.map(|variant| WrittenVariant {
        name: variant.name.clone(),
        runs: Vec::new(),
        sections: Vec::new(),
    });
    let variants = printed.collect::<Vec<_>>().into_iter().chain(shown).collect();
    WrittenReport {
        schema: "cosched-report/2",
        files,
        variants,
        compared: report.comparison.is_some(),
        notes: report.notes.clone(),
    }
}

/// What the snapshots show, seconds.
fn window(begin: Option<Nanos>, end: Option<Nanos>) -> Result<Option<(f64, f64)>, Failure> {
    let from = begin.unwrap_or_default().as_secs_f64();
    let to = end.map_or(f64::INFINITY, Nanos::as_secs_f64);
    match (begin, end) {
        (None, None) => Ok(None),
        _ if from < to => Ok(Some((from, to))),
        (None, _) => Err(Failure::Input("--end: it must come after the beginning".to_owned())),
        _ => Err(Failure::Input("--begin: it must come before --end".to_owned())),
    }
}

/// Checks that the window begins within a run: there is no picture of what never was.
fn check_window(
    window: Option<(f64, f64)>,
    begin: Option<Nanos>,
    variants: &[VariantRuns],
) -> Result<(), Failure> {
    let Some((from, _)) = window else { return Ok(()) };
    let totals =
        variants.iter().filter_map(|variant| variant.typical()).map(|run| run.total_seconds);
    let Some(longest) = totals.reduce(f64::max) else {
        let option = begin.map_or("--end", |_| "--begin");
        return Err(Failure::Input(format!(
            "{option}: a comparison in one file holds no runs; name the folder of its runs"
        )));
    };
    match from < longest {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "--begin {from} s: the run took {longest} s; name a time within it"
        ))),
    }
}

/// A note about a variant: its run ended before the window.
fn too_short(variant: &VariantRuns, window: Option<(f64, f64)>) -> Option<String> {
    let ((from, _), run) = window.zip(variant.typical())?;
    (from >= run.total_seconds).then(|| {
        format!(
            "{} ended after {} s, before --begin: all of it is shown.",
            variant.name, run.total_seconds
        )
    })
}

/// Where the page goes: beside a single result, or into the current folder.
fn default_page(from: &[PathBuf]) -> PathBuf {
    let beside = match from {
        [result] => out::beside(result, out::REPORT),
        _ => None,
    };
    beside.unwrap_or_else(|| PathBuf::from(out::REPORT))
}

/// What the reader knows the results by.
fn title(from: &[PathBuf]) -> String {
    let name = |path: &PathBuf| {
        let whole = path.canonicalize().unwrap_or(path.clone());
        whole.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    };
    let names: Vec<String> = from.iter().map(name).collect();
    format!("cosched: {}", names.join(", "))
}

/// Makes the folder of the plots.
fn make(folder: &Path) -> Result<(), Failure> {
    fs::create_dir_all(folder).map_err(|error| {
        let (shown, option) = (shown_path(folder), PLOT.option);
        Failure::Input(format!(
            "{shown}: the folder cannot be made: {error}; choose another place with {option}"
        ))
    })
}

fn write(
    file: &Path,
    text: &str,
    what: &'static str,
    kind: FileKind,
) -> Result<WrittenFile, Failure> {
    replace(file, text.as_bytes(), kind)?;
    Ok(WrittenFile { file: file.to_owned(), kind: what, bytes: text.len() })
}

fn is_page(beginning: &[u8]) -> bool {
    String::from_utf8_lossy(beginning).contains(GENERATOR)
}

fn is_plot(beginning: &[u8]) -> bool {
    let beginning = String::from_utf8_lossy(beginning);
    beginning.starts_with("<svg xmlns=") && beginning.contains(MARK)
}
