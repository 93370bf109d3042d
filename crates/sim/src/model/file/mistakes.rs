//! All mistakes of a model, so that its user corrects them in one go.

use cosched_core::Nanos;
use cosched_workload::{brief, figure, shown};
use serde_path_to_error::{Path, Segment};
use toml::{Table, Value};

use super::{ModelFile, time};

/// More mistakes are not looked for: what has so many is no model.
const MOST: usize = 50;

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct ModelError {
    path: String,
    what: String,
}

impl From<toml::de::Error> for ModelError {
    /// The error of a text that is no model at all.
    fn from(error: toml::de::Error) -> ModelError {
        ModelError { path: String::new(), what: brief(error.message()) }
    }
}

impl ModelError {
    /// The path of the key in the model, there or missing.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// Mistakes, while they are found.
#[derive(Default)]
pub(in crate::model) struct ModelMistakes {
    found: Vec<ModelError>,
    /// The phase that is looked at: where keys are that begin with `phase.`.
    pub(super) phase: usize,
    /// The stage that is looked at.
    pub(in crate::model) stage: Option<usize>,
}

impl ModelMistakes {
    /// The keys that have a known name and the right type, and the mistakes in the others.
    pub(super) fn of_types(table: &Table) -> Result<(ModelFile, ModelMistakes), Vec<ModelError>> {
        let (mut model, mut found) = (Value::Table(table.clone()), Vec::new());
        loop {
            let error = match serde_path_to_error::deserialize(model.clone()) {
                Ok(read) => return Ok((read, ModelMistakes { found, ..ModelMistakes::default() })),
                Err(error) => error,
            };
            let (error, path): (toml::de::Error, Path) =
                (error.inner().clone(), error.path().clone());
            let what = format!("{}: {}", shown(&path.to_string()), plain(error.message()));
            found.push(ModelError { path: path.to_string(), what });
            if found.len() == MOST || take_out(&mut model, &path).is_none() {
                return Err(found);
            }
        }
    }

    /// What was read, if nothing is wrong with it.
    pub(super) fn or<T>(self, read: T) -> Result<T, Vec<ModelError>> {
        if self.found.is_empty() { Ok(read) } else { Err(self.found) }
    }

    fn path(&self, key: &str) -> String {
        let path = key.replacen("phase.", &format!("phase[{}].", self.phase), 1);
        match self.stage {
            Some(stage) => path.replacen("stages.", &format!("stages[{stage}]."), 1),
            None => path,
        }
    }

    fn push(&mut self, key: &str, what: String) {
        if self.found.len() < MOST {
            self.found.push(ModelError { path: self.path(key), what });
        }
    }

    pub(super) fn add(&mut self, key: &str, found: &str, allowed: &str) {
        self.push(key, format!("{key} is {found}, but must be {allowed}"));
    }

    /// Whether a value is right by itself; if not, that is a mistake.
    pub(in crate::model) fn check(
        &mut self,
        key: &str,
        value: f64,
        allowed: &str,
        right: impl Fn(f64) -> bool,
    ) -> bool {
        let is_right = right(value);
        if !is_right {
            self.add(key, &figure(value), allowed);
        }
        is_right
    }

    /// Whether a value of a phase fits the others, if these are right. What follows from a mistake
    /// is not to be told as another one.
    pub(in crate::model) fn check_fit(
        &mut self,
        key: &str,
        value: f64,
        allowed: &str,
        fits: impl Fn(f64) -> bool,
    ) -> bool {
        self.is_phase_right() && self.check(key, value, allowed, fits)
    }

    /// Whether no mistake was found in the phase that is looked at, and none that matters to all.
    pub(in crate::model) fn is_phase_right(&self) -> bool {
        let phase = format!("phase[{}]", self.phase);
        let matters = |path: &str| path.starts_with(&phase) || path == "malleable";
        !self.found.iter().any(|mistake| matters(&mistake.path))
    }

    /// The value of a key that must be there. `what`: what it says.
    pub(in crate::model) fn required<T>(
        &mut self,
        key: &str,
        value: Option<T>,
        what: &str,
    ) -> Option<T> {
        let path = self.path(key);
        let is_around = |mistake: &ModelError| {
            let rest = path.strip_prefix(&mistake.path);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        if value.is_none() && !self.found.iter().any(is_around) {
            self.push(key, format!("{key} is missing; say {what}"));
        }
        value
    }

    /// A time; none where it is wrong.
    pub(super) fn time(&mut self, key: &str, text: &str) -> Nanos {
        time(text).unwrap_or_else(|| {
            let allowed = "a time with its unit, such as \"300us\"";
            self.add(key, &format!("\"{}\"", shown(text)), allowed);
            Nanos::ZERO
        })
    }
}

/// What the parser says, where it names types as users know them.
fn plain(message: &str) -> String {
    let Some((found, expected)) = message.trim_end().rsplit_once(", expected ") else {
        return brief(message);
    };
    let expected = match expected {
        "f64" => "a number",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "a sequence" => "an array of tables",
        table if table.starts_with("struct ") => "a table",
        other => other,
    };
    brief(&format!("{found}, expected {expected}"))
}

/// Takes a value out of a model. An element of an array leaves an empty table, so that the others
/// keep their positions. `None`: there is no such value.
fn take_out(model: &mut Value, path: &Path) -> Option<()> {
    let segments: Vec<&Segment> = path.iter().collect();
    let (last, around) = segments.split_last()?;
    let mut inside = model;
    for segment in around {
        inside = match segment {
            Segment::Map { key } => inside.get_mut(key)?,
            Segment::Seq { index } => inside.get_mut(index)?,
            _ => return None,
        };
    }
    match last {
        Segment::Map { key } => inside.as_table_mut()?.remove(key).map(drop),
        Segment::Seq { index } => {
            *inside.get_mut(index)? = Value::Table(Table::new());
            Some(())
        }
        _ => None,
    }
}
