//! The mode that `auto` has chosen, and the reason for it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The mode: how programs run that are present at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Manner {
    /// Running together: the kernel shares the CPUs.
    SideBySide,
    /// Taking turns.
    InGangs,
    /// A mode that only earlier versions of cosched had.
    #[serde(other)]
    Earlier,
}

impl Manner {
    /// The mode's name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Manner::SideBySide => "side-by-side",
            Manner::InGangs => "in-gangs",
            Manner::Earlier => "earlier",
        }
    }
}

impl fmt::Display for Manner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The reason code of a [`Manner`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ground {
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
    NobodyWide,
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
    use super::*;

    #[test]
    fn choices_of_earlier_versions_can_be_read() {
        let manner = |text| serde_json::from_str::<Manner>(text).unwrap();
        assert_eq!(manner("\"in-gangs\""), Manner::InGangs);
        assert_eq!(manner("\"fewer-threads\""), Manner::Earlier);
        let ground = |text| serde_json::from_str::<Ground>(text).unwrap();
        assert_eq!(ground("\"gangs-idle\""), Ground::GangsIdle);
        assert_eq!(ground("\"much-waiting\""), Ground::Earlier);
        let why = |text| serde_json::from_str::<crate::Why>(text).unwrap();
        assert_eq!(why(r#"{"why":"looks-back","moment":5}"#), crate::Why::Earlier);
        let chosen = r#"{"why":"chosen","manner":"in-gangs","ground":"further-in-turns","side_by_side":1.5,
            "in_gangs":null,"speedups":{"side_by_side":0.5,"in_turns":1.0},"others":0.7,"explored":3}"#;
        assert!(matches!(why(chosen), crate::Why::Chosen { ground: Ground::Earlier, .. }));
    }
}
