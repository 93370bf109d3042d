//! Workloads: which programs to run, as users write them in jobs files.
//!
//! A workload comes from a TOML file or from the command line. Both end in the same unchecked
//! drafts, and one function (`check`) turns drafts into [`ProgramSpec`]s. Every rule therefore
//! stands in one place. Code that has a [`Workload`] may rely on it: at least one command each,
//! unique names that can serve as file names, directories that exist, numbers in range.
//!
//! All mistakes are found before anything starts. Each message names the file,
//! line and column, the program, the key and the remedy. A key that is not
//! known is a mistake too: `thread = 2` silently ignored would measure the
//! wrong thing.
//!
//! ```toml
//! [[program]]
//! command = ["./cg", "--work", "4"]  # or one string, split as a shell does
//! name = "cg"             # default: its script, or its command, made unique by -2, -3, ...
//! threads = 2             # set as OMP_NUM_THREADS and the like; default: what the program takes
//! env = { OMP_PROC_BIND = "false" }
//! cwd = "."               # relative to the file
//! stdin = "in.txt"        # relative to cwd; default: /dev/null
//! stdout = "out.txt"      # relative to cwd; default: as without the key
//! stderr = "err.txt"      # as stdout; both may be the same file
//! start = "0s"            # when it arrives, after the start of the run
//! after = ["a"]           # must end before, with 0; or { program = "a", exit = "any" }
//! weight = 1.0            # its share, relative to the other programs
//! misses_per_kilo_instruction = 3.0  # of the last-level cache, alone; default: what was profiled
//! miss_ratio = 0.3        # share of its references that miss, alone; default: what was profiled
//! memory_gigabytes_per_second = 4.0  # between caches and memory, alone
//! repeat = 1              # how often to run it, or "until-all-finish"
//! freezable = true        # default: derived from what the program holds open
//! group = "solver"        # freezes and runs together with its group; default: found out
//! malleable = false       # whether it lets cosched choose its thread count while it runs
//! moldable = false        # whether it lets cosched start it with fewer threads
//! progress = false        # whether the program reports its progress
//! barrier = "own"         # how its threads wait at barriers; others are cosched's ("donate")
//! model = {}              # what the simulator takes it for; usually as [program.model]
//! ```
//!
//! `docs/jobs-file.md` is the same for users, with ranges.

#![forbid(unsafe_code)]

mod after;
mod barrier;
mod build_tool;
mod check;
mod commands;
mod environment;
mod error;
mod executable;
mod file;
mod found;
pub mod input;
mod interpreter;
mod mistakes;
mod names;
pub mod nearest;
mod pauses;
mod reading;
mod runners;
mod script;
pub mod shell;
mod shell_paths;
mod shown;
mod small_script;
mod spec;
mod streams;
mod thread_variables;
mod toml_mistake;
mod workers;

pub use after::After;
pub use barrier::BarrierMode;
pub use error::{Place, Position, Problem, WorkloadError};
pub use executable::{CommandProblem, ExecutableError};
pub use found::Found;
pub use pauses::{PauseRisks, SeesStops};
pub use reading::Reading;
pub use shown::{
    brief, escaped, escaped_json, escaped_lines, figure, must_be_escaped, shown, shown_path,
};
pub use spec::{LONGEST_WORD, MAX_BYTES, MAX_PROGRAMS, Places, ProgramSpec, SEPARATOR, Workload};
pub use streams::{StreamFile, Streams};
pub use thread_variables::{OPENMP, THREAD_VARIABLES};
pub use toml_mistake::toml_mistake;
pub use workers::{Workers, pools_of_libraries};

pub use cosched_core::engine::Repeat;

/// Splits `CMD ARGS ::: CMD ARGS` at the separator. Nothing before, between or after separators
/// is an empty command, which [`Workload::from_commands`] refuses by its number.
pub fn split_commands<T: Clone + PartialEq<str>>(words: &[T], separator: &str) -> Vec<Vec<T>> {
    words.split(|word| *word == *separator).map(<[T]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{self, Read};
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn words(line: &[&str]) -> Vec<String> {
        line.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn commands_are_split_and_run_in_the_given_directory() {
        let commands = split_commands(&words(&["./cg", "4", ":::", "lu", ":::", "cg"]), ":::");
        let workload = Workload::from_commands(commands, Path::new("/tmp")).unwrap();
        let names: Vec<_> = workload.programs.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(names, ["cg", "lu", "cg-2"]);
        assert_eq!(workload.programs[0].command, ["./cg", "4"]);
        assert_eq!(workload.programs[2].cwd, Path::new("/tmp"));
    }

    #[test]
    fn an_empty_command_between_separators_is_refused_by_its_number() {
        for (line, number) in [(&["a", ":::"] as &[_], 2), (&[":::", "a"], 1), (&[], 1)] {
            let commands = split_commands(&words(line), ":::");
            let refusal = Workload::from_commands(commands, Path::new("/tmp")).unwrap_err();
            let expected =
                format!("command line: program {number}: command is empty; name a program to run");
            assert_eq!(refusal.to_string(), expected);
        }
    }

    #[test]
    fn command_lines_are_split_as_a_shell_splits_words() {
        let lines = words(&["./cg 'a b'", "lu"]);
        let read = |lines| Reading::of_command_lines(lines, Path::new("/tmp"))?.finish();
        let workload = read(lines).unwrap();
        assert_eq!(workload.programs[0].command, ["./cg", "a b"]);
        let refusal = read(words(&["lu", "cg 'a"])).unwrap_err().to_string();
        assert!(
            refusal.starts_with("command line: program 2: command cannot be split"),
            "{refusal}"
        );
    }

    #[test]
    fn a_file_is_read_with_its_folder_as_working_directory() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("jobs.toml");
        fs::write(&file, "[[program]]\ncommand = 'cg'").unwrap();
        assert_eq!(Workload::load(&file).unwrap().programs[0].cwd, folder.path());
    }

    #[test]
    fn an_input_without_an_end_is_refused_at_the_limit() {
        let read = |input: &mut dyn Read| -> Result<Workload, WorkloadError> {
            Reading::read(input, "jobs.toml".as_ref(), "/tmp".as_ref())?.finish()
        };
        let refusal = read(&mut io::repeat(b' ')).unwrap_err().to_string();
        assert!(refusal.starts_with("jobs.toml: is larger than 16 MiB"), "{refusal}");
        let text: &[u8] = b"[[program]]\ncommand = 'cg'\n";
        let blank = io::repeat(b' ').take(MAX_BYTES - text.len() as u64);
        let workload = read(&mut text.chain(blank)).unwrap();
        assert_eq!(workload.programs[0].cwd, Path::new("/tmp"));
    }

    #[test]
    fn a_pipe_is_refused_with_the_way_to_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let refusal = Workload::load(&pipe).unwrap_err().to_string();
        assert!(refusal.contains("write `- <FILE` in its place"), "{refusal}");
    }

    #[test]
    fn files_that_are_not_there_or_not_text_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("jobs.toml");
        let refusal = Workload::load(&file).unwrap_err().to_string();
        assert!(refusal.contains("jobs.toml: cannot be read: No such file"), "{refusal}");
        let refusal = Workload::load(folder.path()).unwrap_err().to_string();
        assert!(
            refusal.contains("is a folder, not a jobs file; name the file itself"),
            "{refusal}"
        );
        symlink("loop.toml", folder.path().join("loop.toml")).unwrap();
        let refusal = Workload::load(&folder.path().join("loop.toml")).unwrap_err().to_string();
        assert!(refusal.contains("loop.toml: is a loop of symbolic links"), "{refusal}");
        fs::remove_file(folder.path().join("loop.toml")).unwrap();
        fs::write(&file, "").unwrap();
        let refusal = Workload::load(folder.path()).unwrap_err().to_string();
        assert!(refusal.contains("name the file, such as /") && refusal.ends_with("/jobs.toml"));
        fs::write(&file, b"[[program]]\nname = '\xff'").unwrap();
        let refusal = Workload::load(&file).unwrap_err().to_string();
        assert!(
            refusal.ends_with("jobs.toml:2: is not UTF-8 text; save the file as UTF-8"),
            "{refusal}"
        );
    }
}
