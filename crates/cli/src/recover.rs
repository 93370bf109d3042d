//! `cosched recover`: undoes what a killed cosched and its killed sentinel have left behind.

use std::process::ExitCode;

use cosched_linux::procfs::Proc;
use cosched_linux::undo::{self, Log};

use crate::args::RecoverArgs;
use crate::failure::Failure;

/// Undoes every log whose cosched is gone.
pub(crate) fn recover(args: &RecoverArgs) -> Result<ExitCode, Failure> {
    let proc = Proc::own().map_err(Failure::input)?;
    let folder = undo::log_folder().map_err(Failure::input)?;
    let leftovers = Log::leftovers(&folder, &proc).map_err(Failure::broken)?;
    let mut undone = Vec::new();
    let mut complete = true;
    for path in &leftovers {
        let restored = undo::restore(&Log::load(path, &proc).map_err(Failure::broken)?, &proc);
        for failed in &restored.failed {
            eprintln!("cosched: {}: {failed}", path.display());
        }
        complete &= restored.failed.is_empty();
        if restored.failed.is_empty() {
            Log::delete_at(path).map_err(Failure::broken)?;
        }
        undone.push(serde_json::json!({
            "log": path,
            "processes_continued": restored.continued,
            "threads_unpinned": restored.masks,
            "threads_rescheduled": restored.attrs,
            "processes_moved": restored.moved,
            "cgroups_removed": restored.cgroups,
            "failed": restored.failed.len(),
        }));
    }
    let report = serde_json::json!({ "schema": "cosched-recover/1", "undone": undone });
    match (args.json, leftovers.is_empty()) {
        (true, _) => println!("{report:#}"),
        (false, true) => println!("Nothing was left behind."),
        (false, false) => undone.iter().for_each(|one| println!("{one:#}")),
    }
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
