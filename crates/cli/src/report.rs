//! `cosched report`: what runs and comparisons show, as one HTML page and as plots for a paper.

mod gather;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use cosched_core::workload::shown_path;
use cosched_report::Report;
use cosched_report::html::GENERATOR;

use crate::args::duration;
use crate::failure::Failure;
use crate::session::{print, say};

/// The page and its plots.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Folders that `cosched run --out`, `cosched compare --out` or `cosched sim --out` made; or a file with what
    /// `cosched compare --json` printed.
    #[arg(required = true, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Where to write the page, or - for standard output. An earlier report is replaced, any other file is not
    /// [default: report.html]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A folder for every plot as an SVG file; made if it is not there. Without --out, no page is written then.
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// What the others are held against [default: linux, or else what ran first]
    #[arg(long, value_name = "WAY")]
    against: Option<String>,
    /// Where the snapshots of who ran when begin [default: the beginning]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    begin: Option<Duration>,
    /// Where they end; in the page one can move on from there [default: 50 quanta on]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    end: Option<Duration>,
}

/// Reads the results, and writes what they show.
pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let window = window(args.begin, args.end)?;
    let found = gather::gather(&args.from, args.against.as_deref())?;
    let report = Report {
        title: title(&args.from),
        notes: found.notes,
        comparison: found.comparison,
        ways: found.ways,
        window,
    };
    if let Some(folder) = &args.svg {
        let plots = report.plots();
        for (name, plot) in &plots {
            write(&folder.join(name), plot, is_plot)?;
        }
        say(format_args!("{}: {} plots", folder.display(), plots.len()));
    }
    let page = PathBuf::from("report.html");
    match (&args.out, &args.svg) {
        (None, Some(_)) => {}
        (Some(out), _) if out == Path::new("-") => print(&report.html())?,
        (out, _) => {
            let file = out.as_ref().unwrap_or(&page);
            let html = report.html();
            write(file, &html, is_report)?;
            say(format_args!("{}: {} kB", file.display(), html.len().div_ceil(1000)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What the snapshots show, seconds.
fn window(begin: Option<Duration>, end: Option<Duration>) -> Result<Option<(f64, f64)>, Failure> {
    let from = begin.unwrap_or_default().as_secs_f64();
    let to = end.map_or(f64::INFINITY, |end| end.as_secs_f64());
    match (begin, end) {
        (None, None) => Ok(None),
        _ if from < to => Ok(Some((from, to))),
        _ => Err(Failure::Input("--begin: it must come before --end".to_owned())),
    }
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

/// Writes a file and the folder that it is in, but over nothing that we did not make.
fn write(file: &Path, text: &str, is_ours: fn(&str) -> bool) -> Result<(), Failure> {
    let shown = shown_path(file);
    if file.symlink_metadata().is_ok() {
        let mut beginning = Vec::new();
        let read =
            fs::File::open(file).and_then(|open| open.take(4096).read_to_end(&mut beginning));
        if read.is_err() || !is_ours(&String::from_utf8_lossy(&beginning)) {
            return Err(Failure::Input(format!(
                "{shown}: is there and was not made by `cosched report`; choose another name, or move it away"
            )));
        }
    }
    let made = match file.parent() {
        Some(folder) => fs::create_dir_all(folder),
        None => Ok(()),
    };
    made.and_then(|()| fs::write(file, text)).map_err(|error| {
        Failure::Input(format!("{shown}: cannot be written: {error}; choose another place"))
    })
}

fn is_report(beginning: &str) -> bool {
    beginning.contains(GENERATOR)
}

fn is_plot(beginning: &str) -> bool {
    beginning.starts_with("<svg xmlns=")
}
