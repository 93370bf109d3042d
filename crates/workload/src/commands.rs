//! Which commands a program consists of: behind wrappers, in texts for a shell, and in scripts.
//!
//! Small scripts of shells and of Python are read, and the scripts in the same folder that they
//! name.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use cosched_core::Nanos;

use crate::build_tool::{KEYWORDS, LIGHT, SHELLS, WRAPPERS, base_name, sets_variable, wrapped};
use crate::pauses::{PauseRisks, SeesStops, WATCHDOG};
use crate::runners::test_runner;
use crate::small_script::{interpreter_line, names_shell, small_text};
use crate::spec::ProgramSpec;
use crate::workers::{Workers, pools_of_libraries, started_by_manager, started_workers};

/// The most commands and scripts that start each other.
const DEEPEST: usize = 8;
/// The most scripts that are read for one program.
const MOST_SCRIPTS: usize = 16;
/// The most commands of a script that are looked at.
const MOST_COMMANDS: usize = 1000;

/// What a command line tells of a program.
#[derive(Debug, Default)]
pub(crate) struct CommandTraits {
    pub(crate) risks: PauseRisks,
    /// How many processes it starts to work at the same time, if it only does that.
    pub(crate) workers: Option<Workers>,
}

impl ProgramSpec {
    /// What the command tells. Scripts are read only if they may be: what is simulated is the same
    /// on every machine.
    pub(crate) fn command_traits(
        &self,
        inherited: &[(OsString, OsString)],
        may_read_scripts: bool,
    ) -> CommandTraits {
        let variable = |name: &str| self.variable(name, inherited);
        let folder: Option<&Path> = may_read_scripts.then_some(self.cwd.as_path());
        let mut search = Search::new(&variable, folder);
        search.command(&self.command);
        if search.says_pools {
            search.found.workers = None;
        }
        search.found
    }

    /// The value of a variable in its environment.
    pub(crate) fn variable(
        &self,
        name: &str,
        inherited: &[(OsString, OsString)],
    ) -> Option<String> {
        let is_it = |(known, _): &&(OsString, OsString)| known == OsStr::new(name);
        let own = self.env.get(name).cloned();
        own.or_else(|| inherited.iter().find(is_it)?.1.to_str().map(str::to_owned))
    }
}

struct Search<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// The working directory, if scripts may be read.
    folder: Option<&'a Path>,
    scripts: usize,
    depth: usize,
    /// Variables that the text of a shell sets.
    assigned: Vec<String>,
    /// Whether a command says itself how many threads libraries have.
    says_pools: bool,
    found: CommandTraits,
}

impl<'a> Search<'a> {
    fn new(variable: &'a dyn Fn(&str) -> Option<String>, folder: Option<&'a Path>) -> Search<'a> {
        let (assigned, found) = Default::default();
        Search { variable, folder, scripts: 0, depth: 0, assigned, says_pools: false, found }
    }

    fn command(&mut self, words: &[String]) {
        if self.depth == DEEPEST {
            return;
        }
        self.depth += 1;
        self.one(words);
        self.depth -= 1;
    }

    fn one(&mut self, words: &[String]) {
        self.says_pools |= words.iter().any(|word| sets_pool(word));
        let own = words.iter().take_while(|word| sets_variable(word)).count();
        self.variables(&words[..own]);
        let Some((first, rest)) = words[own..].split_first() else { return };
        let name = base_name(first);
        match name {
            "timeout" => self.timeout(rest),
            "export" => self.variables(rest),
            _ if KEYWORDS.contains(&name) => self.command(rest),
            _ if SHELLS.contains(&name) => self.shell(rest),
            _ if WRAPPERS.contains(&name) => {
                let behind = wrapped(rest);
                self.variables(&rest[..rest.len() - behind.len()]);
                self.command(behind);
            }
            _ if name.starts_with("python") || name.starts_with("pypy") => self.python(rest),
            _ => {
                if let Some(behind) = started_by_manager(name, rest) {
                    self.command(behind);
                }
                self.starts_workers(first, rest);
                match test_runner(name, rest) {
                    Some(runner) => self.runs_tests(runner),
                    None if first.contains('/') => self.script(Path::new(first), false),
                    None => {}
                }
            }
        }
    }

    /// Variables that the command sets for what it starts.
    fn variables(&mut self, words: &[String]) {
        let mut pairs = words.iter().filter_map(|word| word.split_once('='));
        self.found.risks.has_watchdog |=
            pairs.any(|(name, value)| name == WATCHDOG && !value.is_empty());
    }

    /// `timeout [OPTIONS] DURATION COMMAND`; 0 is no limit.
    fn timeout(&mut self, rest: &[String]) {
        let mut words = rest.iter().enumerate();
        while let Some((place, word)) = words.next() {
            match word.as_str() {
                "-k" | "--kill-after" | "-s" | "--signal" => drop(words.next()),
                option if option.starts_with('-') => {}
                limit => {
                    let limit = duration(limit).filter(|limit| *limit > Nanos::ZERO);
                    let before = self.found.risks.time_limit;
                    self.found.risks.time_limit = before.into_iter().chain(limit).min();
                    return self.command(&rest[place + 1..]);
                }
            }
        }
    }

    fn shell(&mut self, rest: &[String]) {
        let mut words = rest.iter();
        let mut has_text = false;
        while let Some(word) = words.next() {
            match word.strip_prefix('-') {
                Some(letters) if !letters.starts_with('-') => {
                    has_text |= letters.contains('c');
                    self.found.risks.is_interactive |= letters.contains('i');
                    let option = letters.contains('o').then(|| words.next()).flatten();
                    if letters.contains('m') || option.is_some_and(|word| word == "monitor") {
                        self.sees_stops(SeesStops::JobControl);
                    }
                }
                Some(_) if ["--init-file", "--rcfile"].contains(&word.as_str()) => {
                    words.next();
                }
                Some(_) => {}
                None if word.starts_with('+') => {}
                None if has_text => return self.text(word),
                None => return self.script(Path::new(word), true),
            }
        }
    }

    fn python(&mut self, rest: &[String]) {
        let mut words = rest.iter().enumerate();
        while let Some((place, word)) = words.next() {
            match word.as_str() {
                "-c" => return,
                "-W" | "-X" => drop(words.next()),
                "-m" => {
                    let module = words.next().map(|(_, module)| module.as_str());
                    let arguments = rest.get(place + 2..).unwrap_or_default();
                    let Some(module) = module else { return };
                    self.starts_workers(module, arguments);
                    let runner = test_runner(module, arguments);
                    return runner.into_iter().for_each(|runner| self.runs_tests(runner));
                }
                option if option.starts_with('-') => {}
                script => return self.script(Path::new(script), true),
            }
        }
    }

    fn text(&mut self, text: &str) {
        let text = text.replace("\\\n", " ");
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let (before, mut all, mut others) = (self.found.workers.take(), None, false);
        let mut pieces = lines.flat_map(|line| line.split([';', '|', '&']));
        for piece in pieces.by_ref().take(MOST_COMMANDS) {
            let raw = piece.split_whitespace().take_while(|word| !word.starts_with('#'));
            let raw: Vec<&str> = raw.collect();
            let words: Vec<String> = raw.iter().map(|word| self.without_signs(word)).collect();
            match words.split_first() {
                Some((set, options)) if set == "set" => {
                    let has_letter = |word: &String| word.starts_with('-') && word.contains('m');
                    let is_named = |pair: &[String]| pair[0] == "-o" && pair[1] == "monitor";
                    let end = options.iter().position(|word| word == "--");
                    let options = &options[..end.unwrap_or(options.len())];
                    if options.iter().any(has_letter) || options.windows(2).any(is_named) {
                        self.sees_stops(SeesStops::JobControl);
                    }
                }
                _ => self.command(&words),
            }
            let workers = self.found.workers.take();
            others |= workers.is_none() && !is_light(&raw) || is_nested(&raw);
            all = all.max(workers);
            let sets = raw.iter().skip_while(|word| **word == "export");
            let sets = sets.take_while(|word| sets_variable(word));
            self.assigned.extend(sets.filter_map(|word| Some(word.split_once('=')?.0.to_owned())));
        }
        others |= pieces.next().is_some();
        self.found.workers = before.max(all.filter(|_| !others));
    }

    /// A word without the signs of a shell around it, or the value of the variable that it is.
    fn without_signs(&self, word: &str) -> String {
        let word = word.trim_start_matches("$(").trim_matches(['"', '\'', '(', ')', '`']);
        let Some(name) = word.strip_prefix('$') else { return word.to_owned() };
        let name = name.trim_start_matches('{').trim_end_matches('}');
        let (name, default) = match name.split_once(":-").or_else(|| name.split_once('-')) {
            Some((name, default)) => (name, Some(default)),
            None => (name, None),
        };
        // Which value holds there is not known.
        if self.assigned.iter().any(|assigned| assigned == name) {
            return word.to_owned();
        }
        let value = (self.variable)(name).filter(|value| !value.is_empty());
        value.or_else(|| default.map(str::to_owned)).unwrap_or_else(|| word.to_owned())
    }

    /// A file that may be a script. With `is_one`, it needs no `#!` line.
    fn script(&mut self, file: &Path, is_one: bool) {
        let Some(folder) = self.folder else { return };
        let file = folder.join(file);
        if self.scripts == MOST_SCRIPTS || self.depth == DEEPEST {
            return;
        }
        let Some(text) = small_text(&file) else { return };
        let first = interpreter_line(&text);
        if !is_one && first.is_none() {
            return;
        }
        self.scripts += 1;
        self.depth += 1;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if text.contains("WUNTRACED") {
            self.sees_stops(SeesStops::Script(name.clone()));
        }
        if first.map_or(!name.ends_with(".py"), names_shell) {
            self.text(&text);
        }
        // Scripts usually find each other by `$(dirname "$0")/other.py`.
        let is_between = |c: char| c.is_whitespace() || "\"'()".contains(c);
        let named = text.split(is_between).filter_map(|word| word.rsplit_once('/'));
        let others = named.map(|(_, other)| other);
        // Those that are only named need not be what it starts.
        let workers = self.found.workers;
        for other in others.filter(|other| other.ends_with(".py") || other.ends_with(".sh")) {
            if other != name {
                self.script(&file.with_file_name(other), true);
            }
        }
        self.found.workers = workers;
        self.depth -= 1;
    }

    fn starts_workers(&mut self, name: &str, arguments: &[String]) {
        let started = started_workers(name, arguments, self.folder);
        self.found.workers = self.found.workers.max(started);
    }

    fn runs_tests(&mut self, runner: String) {
        self.found.risks.test_runner.get_or_insert(runner);
    }

    fn sees_stops(&mut self, how: SeesStops) {
        self.found.risks.sees_stops.get_or_insert(how);
    }
}

/// Whether a command of a script hardly computes.
fn is_light(words: &[&str]) -> bool {
    let mut rest = words.iter().filter(|word| !sets_variable(word) && !KEYWORDS.contains(word));
    match rest.next().copied().unwrap_or_default() {
        // An environment of Python.
        "." | "source" => rest.next().is_some_and(|file| file.ends_with("/activate")),
        // Only assignments, or what is left of `2>&1`.
        "" => true,
        first => LIGHT.contains(&first) || first.parse::<u8>().is_ok(),
    }
}

/// Whether a command starts others within it, but for the folder of its script; or is not split as
/// a shell would split it.
fn is_nested(words: &[&str]) -> bool {
    let starts = |word: &&str| ["$(", "`", "<(", ">("].iter().any(|sign| word.contains(sign));
    let is_open = |word: &&str| sets_variable(word) && word.matches(['"', '\'']).count() % 2 == 1;
    let nested = words.iter().filter(|word| starts(word)).count();
    let own_folder = usize::from(words.iter().any(|word| word.ends_with("$(dirname")));
    nested > own_folder || words.iter().any(is_open)
}

/// Whether a word says how many threads the libraries have that compute.
fn sets_pool(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| pools_of_libraries().any(|pool| pool == name))
}

/// What `timeout` takes for a duration: `8`, `0.5s`, `10m`, `2h`, `1d`.
fn duration(word: &str) -> Option<Nanos> {
    let units = [("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86400.0)];
    let of = |(unit, seconds): (&str, f64)| Some((word.strip_suffix(unit)?, seconds));
    let (number, unit) = units.into_iter().find_map(of).unwrap_or((word, 1.0));
    let seconds = number.parse::<f64>().ok().filter(|number| number.is_finite())? * unit;
    Some(Nanos((seconds * 1e9).max(0.0) as u64))
}
