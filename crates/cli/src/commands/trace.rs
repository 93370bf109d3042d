//! `cosched trace`: a run as a file that Perfetto opens.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use cosched_core::format::count;
use cosched_report::Trace;
use cosched_workload::shown_path;
use serde::Serialize;

use crate::out;
use crate::replace::{FileKind, replace};
use crate::ui::failure::Failure;
use crate::ui::{print_json, put, say};

/// What may be replaced.
const TRACE: FileKind =
    FileKind { made_by: "cosched trace", option: "--out", is_one: cosched_report::is_trace };

#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// An earlier run: its folder, or its run.json.
    run: PathBuf,
    /// Where to write the trace, or - for standard output. An earlier trace is replaced, no other
    /// file is [default: run.pftrace beside run.json]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print what was written as JSON.
    #[arg(long)]
    json: bool,
}

impl TraceArgs {
    pub(crate) fn prints_result(&self) -> bool {
        self.json || self.out.as_deref() == Some(Path::new("-"))
    }
}

/// What was written.
#[derive(Debug, Serialize)]
struct WrittenTrace<'a> {
    schema: &'static str,
    file: &'a Path,
    bytes: usize,
    tracks: usize,
    events: usize,
}

/// Writes the trace, and tells how to look at it.
pub(crate) fn trace(args: &TraceArgs) -> Result<ExitCode, Failure> {
    let trace = cosched_report::trace(&out::load(&args.run)?);
    match &args.out {
        Some(file) if file.as_os_str() == "-" && args.json => {
            return Err(Failure::Input(
                "--json: standard output already takes the trace; name a file with --out"
                    .to_owned(),
            ));
        }
        Some(file) if file.as_os_str() == "-" => put(&trace.bytes)?,
        Some(file) => to_file(&trace, file, args.json)?,
        None => {
            let no_folder = || {
                Failure::Input(format!(
                    "{}: there is no folder to write the trace to; name a file with --out",
                    shown_path(&args.run)
                ))
            };
            to_file(&trace, &out::beside(&args.run, out::TRACE).ok_or_else(no_folder)?, args.json)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn to_file(trace: &Trace, file: &Path, json: bool) -> Result<(), Failure> {
    replace(file, &trace.bytes, TRACE)?;
    let written = WrittenTrace {
        schema: "cosched-trace/1",
        file,
        bytes: trace.bytes.len(),
        tracks: trace.tracks,
        events: trace.events,
    };
    if json {
        return print_json(&serde_json::to_string(&written).map_err(Failure::broken)?);
    }
    say(format_args!(
        "{}: {}, {}, {} kB; open it with Perfetto (https://ui.perfetto.dev reads it \
         in the browser and sends it nowhere)",
        file.display(),
        count(written.tracks, "track", "tracks"),
        count(written.events, "event", "events"),
        written.bytes.div_ceil(1000),
    ));
    Ok(())
}
