//! Where programs read from, and where they write to.
//!
//! *Problem.* A workload file may name files for the standard streams of its programs. A mistake
//! there would destroy a file of the user's, mix the outputs of two programs, or show only when a
//! program starts, hours after the first one.
//!
//! *Idea.* The rules of the [output folder](crate::out) hold for every file that is written:
//! nothing that exists is overwritten, no link is followed, and all of it is checked before
//! anything starts. What is read must be there by then, too.
//!
//! Commands that run the same programs several times do not write these files. They keep outputs
//! in their own folders, by the names of the programs.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use cosched_core::Exit;
use cosched_linux::process::launch::OutputTo;
use cosched_results::result::RunResult;
use cosched_results::whole_file;
use cosched_workload::{ProgramSpec, StreamFile, Workload, WorkloadError, shown, shown_path};
use rustix::fs::{Access, access};

use super::request::Request;
use crate::out::{self, Folder};
use crate::ui::failure::Failure;

/// The longest name of a file on Linux (NAME_MAX), bytes.
const LONGEST_NAME: usize = 255;

impl Request<'_> {
    /// The file that takes an output of a program; `None`: it writes where cosched does.
    pub fn output(&self, spec: &ProgramSpec, stream: &str) -> Option<PathBuf> {
        let named = spec.streams.outputs().find(|(key, _)| *key == stream && self.redirects);
        match named {
            Some((_, file)) => Some(file.path.clone()),
            None => self.out.map(|out| out::output(out, &spec.name, stream)),
        }
    }

    /// Where programs that failed have said something about it. None after an interruption, which
    /// makes programs end with an error.
    pub fn said_by_failed(&self, result: &RunResult) -> Vec<PathBuf> {
        if result.interrupted_by.is_some() {
            return Vec::new();
        }
        let programs = self.workload.programs.iter().zip(&result.programs);
        let failed = programs.filter(|(_, program)| program.exit != Some(Exit::Code(0)));
        let said = failed.filter_map(|(spec, _)| self.output(spec, "stderr"));
        said.filter(|file| file.metadata().is_ok_and(|found| found.len() > 0)).collect()
    }

    /// Whether all that programs write goes to files.
    pub(super) fn outputs_go_elsewhere(&self) -> bool {
        let has_files = |spec: &ProgramSpec| {
            ["stdout", "stderr"].iter().all(|stream| self.output(spec, stream).is_some())
        };
        self.workload.programs.iter().all(has_files)
    }

    /// The file that a program reads as standard input, or that a program before it makes.
    pub(super) fn input(&self, spec: &ProgramSpec) -> Option<PathBuf> {
        let file = spec.streams.stdin.as_ref()?;
        let Some((_, writer, stream)) = writer(self.workload, spec, file) else {
            return Some(file.path.clone());
        };
        let made = self.output(writer, stream).unwrap_or(file.path.clone());
        // The program may start in another folder.
        Some(out::for_others(std::path::absolute(&made).unwrap_or(made)))
    }
}

/// Checks that what a program reads is there, unless a program before it makes it.
pub(crate) fn check_together(workload: &Workload, spec: &ProgramSpec) -> Result<(), WorkloadError> {
    let Some(file) = &spec.streams.stdin else { return Ok(()) };
    match writer(workload, spec, file) {
        None => check_readable(file),
        Some((_, writer, _)) if workload.comes_after(spec, writer) => Ok(()),
        Some((slot, writer, stream)) => {
            let why = format!(
                "which is {}; start this one later: after = [\"{}\"]",
                described(writer, slot, stream),
                shown(&writer.name)
            );
            Err(refused("stdin", file, &why))
        }
    }
}

/// The output that a program reads of another one.
fn writer<'w>(
    workload: &'w Workload,
    reader: &ProgramSpec,
    file: &StreamFile,
) -> Option<(usize, &'w ProgramSpec, &'static str)> {
    let others = workload.programs.iter().enumerate().filter(|(_, spec)| spec.name != reader.name);
    let mut outputs = others.flat_map(|(slot, spec)| {
        spec.streams.outputs().map(move |(key, output)| (slot, spec, key, output))
    });
    outputs
        .find(|(.., output)| output.path == file.path && !is_device(output))
        .map(|(slot, spec, key, _)| (slot, spec, key))
}

/// Checks that a program finds what it reads where it is run alone.
pub(crate) fn check_alone(workload: &Workload, spec: &ProgramSpec) -> Result<(), WorkloadError> {
    let Some(file) = &spec.streams.stdin else { return Ok(()) };
    match writer(workload, spec, file) {
        Some((slot, writer, stream)) if !file.path.exists() => {
            let made = described(writer, slot, stream);
            let why =
                format!("which is {made}; programs are run alone here, so make the file first");
            Err(refused("stdin", file, &why))
        }
        _ => check_readable(file),
    }
}

/// Checks that the program can read what it is to read.
fn check_readable(file: &StreamFile) -> Result<(), WorkloadError> {
    let closed = |error: &dyn std::fmt::Display| {
        format!("cannot be read: {error}; see to its permissions, and to those of its folders")
    };
    let why = match file.path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "does not exist; make it, or correct the path".to_owned()
        }
        Err(error) => closed(&error),
        Ok(found) if found.is_dir() => "is a folder; name a file".to_owned(),
        Ok(found) if found.file_type().is_fifo() || found.file_type().is_socket() => {
            "is a pipe or a socket; name a file or a device".to_owned()
        }
        Ok(_) => match access(&file.path, Access::READ_OK) {
            Ok(()) => return Ok(()),
            Err(errno) => closed(&io::Error::from(errno)),
        },
    };
    Err(refused("stdin", file, &format!("which {why}")))
}

/// Finds the files that cannot be made among those that these programs name for their outputs, or
/// that are of two programs. `out`: the folder of the run.
pub(crate) fn check_outputs(
    programs: &[(usize, &ProgramSpec)],
    out: Option<&Path>,
) -> Vec<WorkloadError> {
    let run = out.map(canonical);
    let mut taken: HashMap<PathBuf, (usize, String)> = HashMap::new();
    if let Some(run) = &run {
        for file in [out::result(run), whole_file::part(&out::result(run))] {
            taken.insert(file, (usize::MAX, "the result of the run".to_owned()));
        }
        for &(slot, spec) in programs {
            let others = ["stdout", "stderr"]
                .into_iter()
                .filter(|stream| spec.streams.outputs().all(|(key, _)| key != *stream));
            taken.extend(others.map(|stream| {
                (out::output(run, &spec.name, stream), (slot, described(spec, slot, stream)))
            }));
        }
    }
    let mut mistakes = Vec::new();
    for &(slot, spec) in programs {
        for (key, file) in spec.streams.outputs().filter(|(_, file)| !is_device(file)) {
            let (parent, name) = (folder_of(file), file.path.file_name().unwrap_or_default());
            let whole = canonical(parent);
            let place = whole.join(name);
            let checked = match taken.get(&place) {
                Some((other, described)) if *other != slot => {
                    Err(format!("which takes {described}, too; name another file"))
                }
                _ if file.path.is_dir() => Err("which is a folder; name a file in it".to_owned()),
                _ if file.path.symlink_metadata().is_ok() => Err("which is there and would be \
                    overwritten; name another file, or move it away"
                    .to_owned()),
                // The folder's own path is checked with the folder.
                _ if name.len() > LONGEST_NAME => {
                    Err(format!("with a name longer than {LONGEST_NAME} bytes; shorten it"))
                }
                // The folder of the run is made later.
                _ if Some(whole) == run => Ok(()),
                _ => check_folder(parent),
            };
            taken.entry(place).or_insert_with(|| (slot, described(spec, slot, key)));
            mistakes.extend(checked.err().map(|why| refused(key, file, &why)));
        }
    }
    mistakes
}

/// Holds the folders of the outputs open, and has the outputs go there, whatever takes the folders'
/// names meanwhile. `run`: the folder of the run.
pub(super) fn hold_folders<'a>(
    outputs: impl Iterator<Item = &'a mut OutputTo>,
    run: Option<(&Path, &Folder)>,
) -> Result<Vec<Folder>, Failure> {
    let mut held: Vec<(PathBuf, Folder)> = Vec::new();
    for output in outputs {
        let OutputTo::File { path, .. } = output else { continue };
        let parent = path.parent().unwrap_or(Path::new("/")).to_owned();
        if path.symlink_metadata().is_ok_and(|found| found.file_type().is_char_device()) {
            continue;
        }
        if let Some((_, folder)) = run.filter(|(out, _)| parent == *out) {
            *path = folder.place(path);
            continue;
        }
        let known = held.iter().position(|(path, _)| *path == parent);
        let known = match known {
            Some(known) => known,
            None => {
                let folder = Folder::hold(&parent).map_err(|error| {
                    Failure::Input(format!(
                        "{}: cannot be opened: {error}; name files in another folder",
                        shown_path(&parent)
                    ))
                })?;
                held.push((parent, folder));
                held.len() - 1
            }
        };
        *path = held[known].1.place(path);
    }
    Ok(held.into_iter().map(|(_, folder)| folder).collect())
}

/// Writing to a device overwrites nothing.
fn is_device(file: &StreamFile) -> bool {
    file.path.symlink_metadata().is_ok_and(|found| found.file_type().is_char_device())
}

fn folder_of(file: &StreamFile) -> &Path {
    file.path.parent().unwrap_or(Path::new("/"))
}

fn check_folder(folder: &Path) -> Result<(), String> {
    let why = match folder.metadata() {
        Ok(found) if !found.is_dir() => "which is no folder; correct the path".to_owned(),
        Ok(_) => match access(folder, Access::WRITE_OK | Access::EXEC_OK) {
            Ok(()) => return Ok(()),
            Err(errno) => {
                let error = io::Error::from(errno);
                format!("where nothing can be written: {error}; see to its permissions")
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            "which does not exist; make it, or correct the path".to_owned()
        }
        Err(error) => format!("which cannot be used: {error}; correct the path"),
    };
    Err(format!("in the folder {}, {why}", shown_path(folder)))
}

fn described(spec: &ProgramSpec, slot: usize, stream: &str) -> String {
    format!("the {stream} of program {} ({})", slot + 1, shown(&spec.name))
}

/// The folder by its true name, as far as it is there.
fn canonical(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or(folder.to_owned());
    let mut there = whole.ancestors().filter_map(|path| Some((path, path.canonicalize().ok()?)));
    there.next().map_or_else(
        || whole.clone(),
        |(path, found)| found.join(whole.strip_prefix(path).unwrap_or(Path::new(""))),
    )
}

fn refused(key: &str, file: &StreamFile, why: &str) -> WorkloadError {
    let what = format!("{key} is {}, {why}", shown_path(&file.path));
    WorkloadError::Unusable { place: file.place.clone(), what }
}
