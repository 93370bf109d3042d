//! What was measured so far: a file of lines beside the table.
//!
//! The first line says what is measured, and each other line has the figures of one combination. A
//! line is added as soon as it is known, so an interruption costs one measurement. The file is
//! locked (`flock`) while it is measured, and removed once the table is written.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use cosched_workload::shown_path;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::ui::failure::Failure;

const SCHEMA: &str = "cosched-calibrate-slowdowns-measured/1";

/// Such a file has some kilobytes for each round.
const MOST_BYTES: u64 = 64 << 20;

/// What is measured. Figures of another setting cannot be mixed with these.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Setting {
    pub(super) machine: String,
    /// The CPUs of each place.
    pub(super) places: Vec<Vec<usize>>,
    pub(super) window_seconds: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Head {
    schema: String,
    #[serde(flatten)]
    setting: Setting,
    /// Of each variant, the quietest first.
    additions: Vec<u32>,
}

/// The open file, and what it holds.
#[derive(Debug)]
pub(super) struct Kept {
    path: PathBuf,
    file: File,
    setting: Setting,
    /// Of each variant; `None`: still to be found.
    pub(super) additions: Option<Vec<u32>>,
    /// The GB/s of each combination that was measured, in the order of the rounds.
    pub(super) measured: Vec<Vec<f64>>,
}

/// Where the measurements for a table are kept.
pub(super) fn beside(table: &Path) -> PathBuf {
    let mut name = table.file_name().unwrap_or_default().to_owned();
    name.push(".measured");
    table.with_file_name(name)
}

impl Kept {
    /// Opens the file, or makes it, and takes its lock. What is there already is taken over if it
    /// was measured in the same setting.
    pub(super) fn open(path: &Path, setting: Setting) -> Result<Kept, Failure> {
        let shown = shown_path(path);
        let refused =
            |error: &io::Error| Failure::unwritable(path, error, "choose another place with --out");
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
        let mut file = options.open(path).map_err(|error| refused(&error))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(Failure::Input(format!(
                "{shown}: another cosched is measuring for this table; wait for its end, or choose \
                 another place with --out"
            )));
        }
        let mut text = String::new();
        let read = Read::by_ref(&mut file).take(MOST_BYTES).read_to_string(&mut text);
        read.map_err(|error| {
            Failure::Input(format!(
                "{shown}: cannot be read: {error}; move it away, or choose another place with --out"
            ))
        })?;
        // The last line may have been cut off.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text[..whole].lines();
        let mut kept =
            Kept { path: path.to_owned(), file, setting, additions: None, measured: Vec::new() };
        match lines.next() {
            Some(head) => kept.additions = Some(kept.read_head(head)?),
            None if kept.begins_head(&text)? => {}
            None => return Err(kept.foreign()),
        }
        if text.len() as u64 == MOST_BYTES {
            return Err(kept.foreign());
        }
        let rest = lines.map(serde_json::from_str::<Vec<f64>>).collect::<Result<_, _>>();
        kept.measured = rest.map_err(|_| kept.foreign())?;
        // Only now is it known that the file is ours to change.
        kept.file.set_len(whole as u64).map_err(|error| refused(&error))?;
        kept.file.seek(SeekFrom::End(0)).map_err(|error| refused(&error))?;
        Ok(kept)
    }

    /// Refuses another number of variants or one with more additions than there can be, and lines
    /// that have not this many figures above 0, by their number.
    pub(super) fn check(
        &self,
        (variants, most): (usize, u32),
        figures: impl Fn(usize) -> usize,
    ) -> Result<(), Failure> {
        let known = self.additions.as_ref().is_none_or(|additions| {
            additions.len() == variants && additions.iter().all(|one| *one <= most)
        });
        let mut lines = self.measured.iter().enumerate();
        let is_measured = |(line, rates): (usize, &Vec<f64>)| {
            rates.len() == figures(line) && rates.iter().all(|rate| *rate > 0.0)
        };
        match known && lines.all(is_measured) {
            true => Ok(()),
            false => Err(self.foreign()),
        }
    }

    fn foreign(&self) -> Failure {
        Failure::Input(format!(
            "{}: was not made by `cosched calibrate slowdowns`; move it away, or choose another \
             place with --out",
            shown_path(&self.path)
        ))
    }

    fn read_head(&self, line: &str) -> Result<Vec<u32>, Failure> {
        let head: Head = serde_json::from_str(line).map_err(|_| self.foreign())?;
        if head.schema == SCHEMA && head.setting == self.setting {
            return Ok(head.additions);
        }
        Err(Failure::Input(format!(
            "{}: measured with other options, on another machine, or by another version; remove it \
             to begin again, or choose another place with --out",
            shown_path(&self.path)
        )))
    }

    /// Whether a text without a whole line is what an interrupted [`Kept::begin`] leaves.
    fn begins_head(&self, text: &str) -> Result<bool, Failure> {
        let head = serde_json::to_string(&self.head(&[])).map_err(Failure::broken)?;
        let before_figures = head.trim_end_matches("]}");
        Ok(match text.strip_prefix(before_figures) {
            Some(figures) => figures.chars().all(|c| c.is_ascii_digit() || ",]}".contains(c)),
            None => before_figures.starts_with(text),
        })
    }

    fn head(&self, additions: &[u32]) -> Head {
        Head {
            schema: SCHEMA.to_owned(),
            setting: self.setting.clone(),
            additions: additions.to_vec(),
        }
    }

    /// Keeps how many additions make the variants.
    pub(super) fn begin(&mut self, additions: &[u32]) -> Result<(), Failure> {
        self.additions = Some(additions.to_vec());
        self.add_line(&self.head(additions))
    }

    /// Keeps the figures of the next combination.
    pub(super) fn add(&mut self, rates: Vec<f64>) -> Result<(), Failure> {
        self.add_line(&rates)?;
        self.measured.push(rates);
        Ok(())
    }

    fn add_line(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        let mut text = serde_json::to_string(line).map_err(Failure::broken)?;
        text.push('\n');
        self.file.write_all(text.as_bytes()).map_err(|error| {
            Failure::unwritable(&self.path, &error, "choose another place with --out")
        })
    }

    /// Removes the file: the table holds what it was for.
    pub(super) fn remove(self) {
        // What is left over costs a few kilobytes, and the next call says what it is.
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(window_seconds: f64) -> Setting {
        Setting { machine: "m".to_owned(), places: vec![vec![0], vec![1]], window_seconds }
    }

    #[test]
    fn measurements_are_taken_over_after_an_interruption() {
        let folder = tempfile::tempdir().unwrap();
        let path = beside(&folder.path().join("t.toml"));
        assert!(path.ends_with("t.toml.measured"));
        let mut kept = Kept::open(&path, setting(0.5)).unwrap();
        assert_eq!((&kept.additions, kept.measured.len()), (&None, 0));
        kept.begin(&[9, 0]).unwrap();
        kept.add(vec![1.5]).unwrap();
        kept.add(vec![1.0, 2.25]).unwrap();
        drop(kept);
        let mut torn = fs::read(&path).unwrap();
        torn.extend(b"[1.0, 2");
        fs::write(&path, torn).unwrap();
        let mut kept = Kept::open(&path, setting(0.5)).unwrap();
        assert_eq!(kept.additions, Some(vec![9, 0]));
        assert_eq!(kept.measured, [vec![1.5], vec![1.0, 2.25]]);
        assert!(kept.check((2, 9), |line| line + 1).is_ok() && kept.check((2, 9), |_| 1).is_err());
        assert!(kept.check((5, 9), |line| line + 1).is_err(), "the head has too few variants");
        assert!(kept.check((2, 8), |line| line + 1).is_err(), "too many additions");
        for wrong in [0.0, -1.0] {
            kept.measured.push(vec![wrong; 3]);
            assert!(kept.check((2, 9), |line| line + 1).is_err(), "{wrong}");
            kept.measured.pop();
        }
        kept.add(vec![3.0]).unwrap();
        drop(kept);
        assert_eq!(Kept::open(&path, setting(0.5)).unwrap().measured.len(), 3, "the rest is gone");
    }

    #[test]
    fn only_one_process_measures_for_a_table() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        let first = Kept::open(&path, setting(0.5)).unwrap();
        let second = Kept::open(&path, setting(0.5)).unwrap_err();
        assert!(second.text().contains("another cosched is measuring"), "{}", second.text());
        first.remove();
        assert!(!path.exists());
    }

    #[test]
    fn measurements_of_another_setting_are_not_mixed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        Kept::open(&path, setting(0.5)).unwrap().begin(&[1, 0]).unwrap();
        let other = Kept::open(&path, setting(0.1)).unwrap_err();
        assert!(other.text().contains("measured with other options"), "{}", other.text());
    }

    #[test]
    fn a_file_without_text_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        fs::write(&path, b"\xff\xfe\n").unwrap();
        let refused = Kept::open(&path, setting(0.5)).unwrap_err();
        assert!(refused.text().contains("cannot be read"), "{}", refused.text());
    }

    #[test]
    fn a_file_of_the_user_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m");
        Kept::open(&path, setting(0.5)).unwrap().begin(&[10, 0]).unwrap();
        let head = fs::read_to_string(&path).unwrap();
        let other_figures = format!("{head}a line of the user\nand a beginning");
        for text in ["a file of the user\n", "a file of the user", &other_figures] {
            fs::write(&path, text).unwrap();
            let foreign = Kept::open(&path, setting(0.5)).unwrap_err();
            assert!(foreign.text().contains("was not made by"), "{}", foreign.text());
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        for end in 0..head.len() {
            fs::write(&path, &head[..end]).unwrap();
            assert_eq!(Kept::open(&path, setting(0.5)).unwrap().additions, None, "{end}");
        }
    }
}
