//! The mode that `auto` has chosen, and the reason for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The mode: how programs run that are present at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Running together: the kernel shares the CPUs.
    #[serde(alias = "side-by-side")]
    Corun,
    /// Taking turns.
    #[serde(alias = "in-gangs")]
    Gangs,
    /// A mode that only earlier versions of cosched had.
    #[serde(other)]
    Earlier,
}

impl Mode {
    /// The mode's name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Corun => "corun",
            Mode::Gangs => "gangs",
            Mode::Earlier => "earlier",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason code of a [`Mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReasonCode {
    /// Nothing has been measured yet.
    Begins,
    /// There is a CPU for each thread.
    EnoughCpus,
    /// Hardly any thread waits for a CPU.
    CpusIdle,
    /// There is one program.
    Alone,
    /// At most one program uses more than a little CPU time.
    OneCompetes,
    /// Each program is single-threaded, so no thread waits for a sibling that has no CPU.
    #[serde(alias = "nobody-wide")]
    AllSingleThreaded,
    /// Too few of the competing programs may be frozen for turns to help.
    FewFreezable,
    /// Taking turns does less work: alone, the programs leave CPUs idle, or spend much time in the
    /// kernel.
    GangsIdle,
    /// Taking turns does as much work: alone, each program uses all CPUs, and no thread waits for a
    /// sibling that has no CPU.
    GangsFill,
    /// A reason that only earlier versions of cosched had.
    #[serde(other)]
    Earlier,
}

#[cfg(test)]
mod tests {
    use cosched_core::{Nanos, Why};

    use super::*;
    use crate::auto::AutoReason;

    #[test]
    fn choices_of_earlier_versions_can_be_read() {
        let mode = |text| serde_json::from_str::<Mode>(text).unwrap();
        assert_eq!(mode("\"in-gangs\""), Mode::Gangs);
        assert_eq!(mode("\"fewer-threads\""), Mode::Earlier);
        let reason_code = |text| serde_json::from_str::<ReasonCode>(text).unwrap();
        assert_eq!(reason_code("\"gangs-idle\""), ReasonCode::GangsIdle);
        assert_eq!(reason_code("\"much-waiting\""), ReasonCode::Earlier);
        let why = |text| serde_json::from_str::<Why>(text).unwrap().read::<AutoReason>();
        assert_eq!(why(r#"{"why":"looks-back","moment":5}"#), None);
        let probes = AutoReason::SoloProbes { length: Nanos(5), probes: 2 };
        assert_eq!(why(r#"{"why":"looks-at-each","moment":5,"moments":2}"#), Some(probes));
        let chosen = why(
            r#"{"why":"chosen","manner":"in-gangs","ground":"further-in-turns","side_by_side":1.5,
            "in_gangs":null,"speedups":{"side_by_side":0.5,"in_turns":1.0},"others":0.7,
            "explored":3}"#,
        );
        assert!(matches!(
            chosen,
            Some(AutoReason::Chosen { reason_code: ReasonCode::Earlier, .. })
        ));
    }
}
