//! How much the memory of a machine carries at most.
//!
//! It is measured once, by `cosched profile --machine`, and is the same for all programs: so it is
//! kept under the machine's name alone.

use cosched_results::result::MachineDescription;
use serde::{Deserialize, Serialize};

use super::{MACHINES, Store, StoreError, json};
use crate::ui::say;

/// Raised when a key is made of other parts, or the figures mean something else.
const VERSION: u32 = 1;
/// Cache lines per microsecond of one GB/s.
const LINES: f64 = 1e3 / 64.0;

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// All cache lines that go to memory and come from there, those that are written back included.
    pub gigabytes_per_second: f64,
    /// How many threads moved the most.
    pub threads: usize,
    /// When, RFC 3339.
    pub measured_at: String,
}

#[derive(Serialize)]
struct PeakParts<'a> {
    version: u32,
    model: Option<&'a str>,
    cpus: usize,
}

impl Peak {
    /// Cache lines of 64 bytes.
    pub fn lines_per_microsecond(&self) -> f64 {
        self.gigabytes_per_second * LINES
    }
}

impl Store {
    /// What was measured of a machine; damage is only told.
    pub fn peak(&self, machine: &MachineDescription) -> Option<Peak> {
        let text = self.machines.get(&key(machine))?;
        let peak = serde_json::from_str(text).map_err(|error| self.damaged(error));
        peak.map_err(|error| say(format_args!("the memory's peak bandwidth is not known: {error}")))
            .ok()
    }

    /// Keeps it, in place of what was known before.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn put_peak(
        &mut self,
        machine: &MachineDescription,
        peak: &Peak,
    ) -> Result<(), StoreError> {
        let text = json(peak);
        self.write(MACHINES, &key(machine), &text)?;
        self.machines.insert(key(machine), text);
        Ok(())
    }
}

fn key(machine: &MachineDescription) -> String {
    json(&PeakParts { version: VERSION, model: machine.model.as_deref(), cpus: machine.cpus })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_peak_of_this_machine_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cosched/profiles.redb");
        let machine =
            MachineDescription { cpus: 2, model: Some("Fast".into()), kernel: "6.18".into() };
        let peak = |gigabytes_per_second| Peak {
            gigabytes_per_second,
            threads: 2,
            measured_at: "2026-01-01T00:00:00Z".into(),
        };
        let mut store = Store::open_at(&file).unwrap();
        assert_eq!(store.peak(&machine), None);
        store.put_peak(&machine, &peak(6.4)).unwrap();
        store.put_peak(&machine, &peak(12.8)).unwrap();
        assert_eq!(store.peak(&machine), Some(peak(12.8)));
        let store = Store::open_at(&file).unwrap();
        let found = store.peak(&MachineDescription { kernel: "7.1".into(), ..machine.clone() });
        assert_eq!(found.map(|peak| peak.lines_per_microsecond()), Some(200.0));
        assert_eq!(store.peak(&MachineDescription { cpus: 4, ..machine }), None);
    }
}
