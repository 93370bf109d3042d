//! What can go wrong, and the exit code that tells it: [`EXIT_CODES`], for people in
//! docs/safety.md.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cosched_core::engine::outcome::Ended;
use cosched_core::{Exit, Interruption};
use cosched_workload::shown_path;
use rustix::process::{Resource, getrlimit};

/// The contract with scripts, for every subcommand. `--help` and the man pages print it.
pub const EXIT_CODES: [(u8, &str); 5] = [
    (0, "done, and every program succeeded"),
    (1, "a program failed, or cosched could not go on"),
    (2, "bad input: nothing was started"),
    (130, "ended by Ctrl-C"),
    (143, "ended by SIGTERM, or by the end of the terminal"),
];

/// What `--help` says of them.
pub fn exit_codes() -> String {
    let lines = EXIT_CODES.map(|(code, meaning)| format!("  {code:<3}  {meaning}"));
    format!("Exit codes:\n{}", lines.join("\n"))
}

/// The folder in which cosched was started.
///
/// # Errors
/// When it was removed, or may not be entered.
pub fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::Input(format!(
            "the current directory cannot be found: {error}; change to another one, as by `cd ~`"
        ))
    })
}

/// Limits of a process or a user, of which the kernel tells only a number.
const LIMITS: [(&str, &str); 4] = [
    ("(os error 27)", NO_FILE_SIZE),
    (NO_FILE, "raise the limit of open files: `ulimit -n 1024`"),
    (NO_PROCESS, NO_MEMORY),
    (
        NO_PROCESS,
        "the limit of processes and threads is reached: raise `ulimit -u`, or pids.max of the \
         cgroup",
    ),
];

const NO_FILE_SIZE: &str = "raise the limit of file sizes: `ulimit -f unlimited`";
const NO_FILE: &str = "(os error 24)";
/// No run of a single program needs fewer open files. Where the hard limit is lower, nothing was
/// started.
const FEWEST_FILES: u64 = 64;

/// EAGAIN: also said of a thread if the limit of memory does not allow its stack.
const NO_PROCESS: &str = "(os error 11)";
const NO_MEMORY: &str =
    "the limit of memory allows no further thread: raise it, as by `ulimit -v unlimited`";

/// Why a command ends without doing what was asked.
#[derive(Debug)]
pub enum Failure {
    /// The user has to change something; nothing was started.
    Input(String),
    /// Something broke on the way.
    Broken(String),
}

impl Failure {
    /// Bad input, in the words of an error, with the remedy if a limit was reached.
    pub fn input(error: impl std::fmt::Display) -> Failure {
        Failure::Input(with_remedy(error.to_string()))
    }

    /// Something that broke, in the words of an error, with the remedy if a limit was reached.
    pub fn broken(error: impl std::fmt::Display) -> Failure {
        let text = error.to_string();
        match has_too_few_files(&text) {
            true => Failure::input(text),
            false => Failure::Broken(with_remedy(text)),
        }
    }

    /// A place that cannot be written. Another one has to be named; but a full disk shows only on
    /// the way.
    pub fn unwritable(place: &Path, error: &io::Error, remedy: &str) -> Failure {
        let remedy = match error.kind() {
            ErrorKind::FileTooLarge => NO_FILE_SIZE,
            ErrorKind::NotFound => &format!("make the folder, or {remedy}"),
            _ => remedy,
        };
        let text = format!("{}: cannot be written: {error}; {remedy}", shown_path(place));
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Failure::Broken(text)
            }
            _ => Failure::Input(text),
        }
    }

    /// Says on standard error why the command ends.
    pub fn report(&self) -> ExitCode {
        crate::messages::say_last(format_args!("{}", self.text()));
        ExitCode::from(match self {
            Failure::Input(_) => 2,
            Failure::Broken(_) => 1,
        })
    }

    /// The same, where each mistake is one of this.
    pub fn of(self, what: &str) -> Failure {
        match self {
            Failure::Input(text) => {
                together(each(&text).iter().map(|mistake| format!("{what}: {mistake}")).collect())
            }
            broken => broken,
        }
    }

    /// What is said.
    pub fn text(&self) -> &str {
        match self {
            Failure::Input(text) | Failure::Broken(text) => text,
        }
    }
}

/// All mistakes in an input at once. The first failure that is none ends the search.
///
/// # Errors
/// When there is a mistake: [`Failure::Input`] with a line for each, and how many there are. A
/// failure that is no mistake is returned as it is.
pub fn all<T>(checked: impl IntoIterator<Item = Result<T, Failure>>) -> Result<Vec<T>, Failure> {
    let (mut right, mut mistakes) = (Vec::new(), Vec::new());
    for checked in checked {
        match checked {
            Ok(checked) => right.push(checked),
            Err(Failure::Input(text)) => mistakes.push(text),
            Err(broken) => return Err(broken),
        }
    }
    if mistakes.is_empty() { Ok(right) } else { Err(together(mistakes)) }
}

/// What two checks have found, or the mistakes of both.
///
/// # Errors
/// When one of them has failed.
pub fn both<A, B>(one: Result<A, Failure>, other: Result<B, Failure>) -> Result<(A, B), Failure> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(Failure::Input(one)), Err(Failure::Input(other))) => Err(together(vec![one, other])),
        (Err(failure), _) | (_, Err(failure)) => Err(failure),
    }
}

/// Mistakes in an input: a line for each, and how many there are. A text may have several already.
/// What is there twice is told once.
pub fn together(texts: Vec<String>) -> Failure {
    let mut mistakes: Vec<&str> = Vec::new();
    for mistake in texts.iter().flat_map(|text| each(text)) {
        if !mistakes.contains(&mistake) {
            mistakes.push(mistake);
        }
    }
    let count = format!("{} {NOTHING_STARTED}", mistakes.len());
    if mistakes.len() > 1 {
        mistakes.push(&count);
    }
    Failure::Input(mistakes.join("\n"))
}

/// The end of the line that says how many mistakes there are.
const NOTHING_STARTED: &str = "errors; nothing was started";

/// The mistakes in a text, without how many there are.
fn each(text: &str) -> Vec<&str> {
    match text.rsplit_once('\n') {
        Some((mistakes, count)) if count.ends_with(NOTHING_STARTED) => mistakes.lines().collect(),
        _ => vec![text],
    }
}

/// Whether no run can have begun.
fn has_too_few_files(text: &str) -> bool {
    let hard = getrlimit(Resource::Nofile).maximum;
    text.ends_with(NO_FILE) && hard.is_some_and(|hard| hard < FEWEST_FILES)
}

fn with_remedy(text: String) -> String {
    if has_too_few_files(&text) {
        return format!(
            "{text}; too few for any run: raise the hard limit (`ulimit -Hn 1024` as root, \
             LimitNOFILE= in a systemd unit)"
        );
    }
    with_remedy_under(text, getrlimit(Resource::As).current.is_some())
}

fn with_remedy_under(text: String, limits_memory: bool) -> String {
    let mut limits = LIMITS.iter().filter(|(_, remedy)| limits_memory || *remedy != NO_MEMORY);
    match limits.find(|(number, _)| text.ends_with(number)) {
        Some((_, remedy)) => format!("{text}; {remedy}"),
        None => text,
    }
}

/// The exit code of a run, by whether all programs succeeded.
pub fn exit_code(ended: Ended, all_succeeded: bool) -> ExitCode {
    match (ended, all_succeeded) {
        (Ended::Interrupted(by), _) => ExitCode::from(interruption_code(by)),
        (Ended::Complete, true) => ExitCode::SUCCESS,
        (Ended::Complete, false) => ExitCode::FAILURE,
    }
}

/// The exit code of a cosched that was asked to end.
pub fn interruption_code(by: Interruption) -> u8 {
    match by {
        Interruption::Interrupt => 130,
        _ => 143,
    }
}

/// The exit code of a cosched that ends as its only program did; of a signal 128 more.
pub fn exit_code_of(exit: Exit) -> ExitCode {
    match exit {
        Exit::Code(code) => ExitCode::from(code),
        Exit::Signal(signal) => ExitCode::from(128 | signal),
        // What was wrong with it is said already.
        Exit::Failed(_) => ExitCode::from(2),
        Exit::Unknown => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_of_several_checks_are_told_together() {
        let wrong = |text: &str| -> Result<(), Failure> { Err(Failure::Input(text.to_owned())) };
        let two = both(wrong("a"), wrong("b")).unwrap_err();
        assert_eq!(two.text(), "a\nb\n2 errors; nothing was started");
        let three = both(Err::<(), _>(two.of("x")), all([wrong("c"), wrong("x: a")])).unwrap_err();
        assert_eq!(three.text(), "x: a\nx: b\nc\n3 errors; nothing was started");
        assert_eq!(both(Ok(()), wrong("a")).unwrap_err().text(), "a");
    }

    #[test]
    fn the_remedy_for_a_place_fits_the_error() {
        let said = |number| {
            let error = io::Error::from_raw_os_error(number);
            Failure::unwritable(Path::new("x"), &error, "choose another").text().to_owned()
        };
        assert!(said(2).ends_with("; make the folder, or choose another"), "{}", said(2));
        assert!(said(13).ends_with("; choose another"), "{}", said(13));
        assert!(said(27).ends_with("`ulimit -f unlimited`"), "{}", said(27));
    }

    #[test]
    fn a_limit_that_is_reached_is_named() {
        let under = |number, limits_memory| {
            with_remedy_under(io::Error::from_raw_os_error(number).to_string(), limits_memory)
        };
        let said = |number| under(number, false);
        assert!(said(24).ends_with("`ulimit -n 1024`"), "{}", said(24));
        assert!(said(11).contains("`ulimit -u`"), "{}", said(11));
        assert!(under(11, true).contains("`ulimit -v"), "{}", under(11, true));
        assert!(said(27).ends_with("`ulimit -f unlimited`"), "{}", said(27));
        assert!(said(5).ends_with("(os error 5)"), "{}", said(5));
    }
}
