//! What a comparison in a folder is of, so that it can be gone on with later: `compare-plan.json`.
//!
//! Rounds are samples of one thing only if programs, variants, settings and machine stayed the
//! same. All these are therefore written beside the rounds. A command that resumes the comparison
//! must have the same ones; each difference is named. The number of rounds may change, and so may
//! the programs' executables, which are not looked into. Of the shell's environment [what decides
//! how programs run](crate::environment) counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cosched_results::whole_file;
use cosched_workload::input;
use cosched_workload::{ProgramSpec, Repeat, Streams, Workload, shown_path};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::Variant;
use crate::environment;
use crate::how::{How, Optional};
use crate::session::Session;
use crate::ui::failure::Failure;

const SCHEMA: &str = "cosched-compare-plan/2";
const FILE: &str = "compare-plan.json";
/// More than any such file has.
const MOST_BYTES: u64 = 64 << 20;
const VARIANTS: &str = "--policies";
const PROGRAMS: &str = "the programs, in their order";
/// What stands between a key of the workload file and a program's name.
const OF_PROGRAM: &str = " of the program '";
/// What stands between a setting and the variant's name, now and in older files.
const OF_VARIANT: &str = " of the variant '";
const OF_VARIANT_EARLIER: &str = " of the way '";

/// All that decides about a comparison, by the name that people know it by.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct ExperimentRecord {
    schema: String,
    #[serde(deserialize_with = "named")]
    settings: BTreeMap<String, Value>,
}

/// Settings by the names of today: a variant was called a way.
fn named<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, Value>, D::Error> {
    let settings = BTreeMap::<String, Value>::deserialize(from)?.into_iter();
    Ok(settings
        .map(|(name, value)| (name.replace(OF_VARIANT_EARLIER, OF_VARIANT), value))
        .collect())
}

impl ExperimentRecord {
    /// Of a comparison on this machine or on a simulated one.
    pub fn new(workload: &Workload, variants: &[Variant], session: &Session) -> ExperimentRecord {
        let machine = &session.description;
        let variants: Vec<String> = variants.iter().map(Variant::to_string).collect();
        let names: Vec<&str> = workload.programs.iter().map(|spec| spec.name.as_str()).collect();
        let mut settings = BTreeMap::from([
            (VARIANTS.to_owned(), json!(variants.join(","))),
            ("the machine's CPUs".to_owned(), json!(session.usable.cpus.to_string())),
            ("the machine's model".to_owned(), json!(machine.model)),
            ("the kernel".to_owned(), json!(machine.kernel)),
            (PROGRAMS.to_owned(), json!(names.join(", "))),
        ]);
        let inherited = environment::deciding(&session.environment, &workload.programs);
        settings
            .extend(inherited.map(|(name, value)| (format!("{name} of the shell"), json!(value))));
        for spec in &workload.programs {
            let threads = session.threads(spec);
            settings.extend(
                program(spec, threads)
                    .into_iter()
                    .map(|(key, value)| (format!("{key}{OF_PROGRAM}{}'", spec.name), value)),
            );
        }
        ExperimentRecord { schema: SCHEMA.to_owned(), settings }
    }

    /// With an option of the command line.
    pub fn with(mut self, option: &str, value: impl Serialize) -> ExperimentRecord {
        self.settings.insert(option.to_owned(), json!(value));
        self
    }

    /// With how policies and the machine do their work, in all variants and in those that have
    /// options of their own.
    pub fn with_how(mut self, how: &How, variants: &[Variant]) -> ExperimentRecord {
        self.settings.extend(settings(how));
        for variant in variants.iter().filter(|variant| variant.words().is_some()) {
            let of_variant = |(option, value): (String, Value)| {
                (format!("{option}{OF_VARIANT}{variant}'"), value)
            };
            self.settings.extend(settings(&variant.how(how)).map(of_variant));
            self.settings.insert(policy_of(&variant.to_string()), json!(variant.kind().name()));
        }
        self
    }

    /// Checks that the folder holds no comparison yet.
    pub(super) fn check_free(&self, folder: &Path) -> Result<(), Failure> {
        match file(folder).symlink_metadata() {
            Err(_) => Ok(()),
            Ok(_) => Err(Failure::Input(format!(
                "--out {}: it already holds a comparison; continue it with --resume, or choose \
                 another folder",
                shown_path(folder)
            ))),
        }
    }

    /// Whether the folder holds a comparison; it has to be of the same.
    pub(super) fn is_in(&self, folder: &Path) -> Result<bool, Failure> {
        let file = file(folder);
        if !file.exists() {
            return Ok(false);
        }
        let shown = shown_path(&file);
        let refuse = |what: String| {
            Failure::Input(format!(
                "--resume: {shown}: {what}, or choose another folder with --out"
            ))
        };
        let text = input::read(&file, MOST_BYTES).map_err(|error| {
            let remedy = input::remedy(&error, "put the original file back");
            refuse(format!("cannot be read: {error}; {remedy}"))
        })?;
        let found: ExperimentRecord = cosched_results::json::read(&text)
            .map_err(|error| refuse(format!("is damaged: {error}; take an undamaged copy")))?;
        if found.schema != SCHEMA {
            return Err(refuse(format!(
                "was written by another version of cosched (its schema is '{}', not '{SCHEMA}'); \
                 use that version",
                found.schema
            )));
        }
        let mut names: BTreeSet<&String> =
            self.settings.keys().chain(found.settings.keys()).collect();
        if found.settings.get(PROGRAMS) != self.settings.get(PROGRAMS) {
            // Whatever else is known of other programs differs, too.
            names.retain(|name| !name.contains(OF_PROGRAM));
        }
        let differ = names.into_iter().filter_map(|name| {
            let (there, now) = (found.settings.get(name), self.settings.get(name));
            (there != now).then(|| format!("there, {name}: {}; now: {}", value(there), value(now)))
        });
        let differ: Vec<String> = differ.collect();
        match differ.is_empty() {
            true => Ok(true),
            false => Err(refuse(format!(
                "{}. Such rounds cannot be compared; use the same settings as before",
                differ.join(". "),
            ))),
        }
    }

    /// The variants of the comparison in a folder, in their order, each with the policy that runs
    /// it, where that is known; `None` where nothing tells.
    pub fn variants(folder: &Path) -> Option<Vec<(String, Option<String>)>> {
        let text = input::read(&file(folder), MOST_BYTES).ok()?;
        let found: ExperimentRecord = serde_json::from_slice(&text).ok()?;
        let variants = found.settings.get(VARIANTS)?.as_str()?;
        let policy = |variant: &str| match found.settings.get(&policy_of(variant)) {
            Some(recorded) => recorded.as_str().map(str::to_owned),
            None => variant.parse::<Variant>().ok().map(|variant| variant.kind().name().to_owned()),
        };
        Some(variants.split(',').map(|variant| (variant.to_owned(), policy(variant))).collect())
    }

    /// The variant that a run in the folder of a comparison is of; `run` is the run's folder or its
    /// file.
    pub fn variant_of(run: &Path) -> Option<String> {
        let whole = run.canonicalize().ok()?;
        let folder = if whole.is_dir() { &whole } else { whole.parent()? };
        let name = folder.file_name()?.to_str()?;
        // Where there are several rounds, a folder for each stands between.
        let variants = folder.ancestors().skip(1).take(2).find_map(ExperimentRecord::variants)?;
        variants.into_iter().map(|(variant, _)| variant).find(|variant| variant == name)
    }

    /// The failure where a run has no record: it is unknown what the run is of.
    pub(super) fn missing(folder: &Path, run: &Path) -> Failure {
        Failure::Input(format!(
            "--resume: {} does not exist, so nothing says what {} is a run of; put it back, or \
             choose another folder \
             with --out",
            shown_path(&file(folder)),
            shown_path(run)
        ))
    }

    /// Writes it beside the rounds, whole or not at all.
    pub(super) fn save(&self, folder: &Path) -> Result<(), Failure> {
        let file = file(folder);
        let text = serde_json::to_string_pretty(self).map_err(Failure::broken)? + "\n";
        whole_file::write(&file, text.as_bytes()).map_err(|error| {
            Failure::Input(format!(
                "--out {}: nothing can be written there: {error}; choose another folder",
                shown_path(folder)
            ))
        })
    }
}

/// How policies and the machine do their work, by the options of the command line.
fn settings(how: &How) -> impl Iterator<Item = (String, Value)> {
    let choices = how.each().filter(|(option, _)| *option != "set");
    let others: [(_, &dyn Optional); 2] = [("barrier", &how.waiting), ("grace", &Some(how.grace))];
    let options = choices.chain(others);
    let options = options.map(|(option, choice)| (format!("--{option}"), choice.recorded()));
    let set = how.policy.set.iter().map(|(name, value)| (name.to_owned(), json!(value)));
    options.chain(set).collect::<Vec<_>>().into_iter()
}

/// The setting that tells the policy of a variant of `--variant`.
fn policy_of(variant: &str) -> String {
    format!("the policy{OF_VARIANT}{variant}'")
}

fn file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

fn value(found: Option<&Value>) -> String {
    found.map_or("nothing".to_owned(), Value::to_string)
}

/// What decides about a program, by the keys of the workload file.
fn program(spec: &ProgramSpec, threads: u16) -> Vec<(&'static str, Value)> {
    let ProgramSpec {
        places: _,
        name: _,
        command,
        threads: _,
        env,
        cwd,
        // Outputs go to the comparison's own folder.
        streams: Streams { stdin, stdout: _, stderr: _ },
        start,
        after,
        weight,
        misses_per_kilo_instruction,
        miss_ratio,
        memory_gigabytes_per_second,
        repeat,
        freezable,
        group,
        malleable,
        moldable,
        progress,
        barrier,
        model,
    } = spec;
    let repeat = match repeat {
        Repeat::Times(times) => json!(times),
        Repeat::UntilAllFinish => json!("until-all-finish"),
    };
    let always = [
        ("command", json!(command)),
        ("threads", json!(threads)),
        ("env", json!(env)),
        ("cwd", json!(cwd.to_string_lossy())),
        ("start", json!(start.0)),
        ("weight", json!(weight)),
        ("misses_per_kilo_instruction", json!(misses_per_kilo_instruction)),
        ("miss_ratio", json!(miss_ratio)),
        ("memory_gigabytes_per_second", json!(memory_gigabytes_per_second)),
        ("repeat", repeat),
        ("freezable", json!(freezable)),
        ("group", json!(group)),
        ("malleable", json!(malleable)),
        ("moldable", json!(moldable)),
        ("progress", json!(progress)),
        ("barrier", json!(barrier)),
        ("model", json!(model)),
    ];
    // Older comparisons know nothing of these keys, and can still be gone on with.
    let stdin = stdin.as_ref().map(|file| ("stdin", json!(file.path.to_string_lossy())));
    let names = after.iter().map(|after| match after.any_exit {
        true => format!("{} (any exit)", after.program),
        false => after.program.clone(),
    });
    let names: Vec<String> = names.collect();
    let after = (!names.is_empty()).then(|| ("after", json!(names.join(", "))));
    always.into_iter().chain(stdin).chain(after).collect()
}
