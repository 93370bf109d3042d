//! The ways in which programs can share a machine: our policies, and the honest rivals.
//!
//! A rival is what somebody can do without cosched: nothing, tell waiting threads to sleep at once,
//! preload a runtime that waits differently, or use one thread per program. It is plain Linux with
//! programs that were started differently, so it is measured by the same code as every policy.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cosched_core::workload::Workload;
use cosched_policy::Kind;

use crate::failure::Failure;

/// Where distributions put LLVM's OpenMP runtime, which can stand in for that of GCC.
const LLVM_RUNTIME: [&str; 3] = ["libomp.so.5", "libomp.so", "libiomp5.so"];

/// One way of running a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Under a policy.
    Policy(Kind),
    /// Under plain Linux, with OpenMP threads that sleep as soon as they wait.
    Passive,
    /// Under plain Linux, with LLVM's OpenMP runtime in the place of GCC's.
    Llvm,
    /// Under plain Linux, with one thread for each program.
    OneThread,
}

impl Way {
    /// The policy that runs it.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Way::Policy(kind) => kind,
            Way::Passive | Way::Llvm | Way::OneThread => Kind::Linux,
        }
    }

    /// The workload as it is run this way.
    pub(crate) fn prepare(self, workload: &Workload) -> Result<Workload, Failure> {
        let mut workload = workload.clone();
        let runtime = match self {
            Way::Llvm => Some(llvm_runtime()?),
            _ => None,
        };
        for spec in &mut workload.programs {
            let mut set = |key: &str, value: &str| spec.env.insert(key.into(), value.into());
            match self {
                Way::Policy(_) => {}
                Way::Passive => drop(set("OMP_WAIT_POLICY", "passive")),
                Way::Llvm => drop(set("LD_PRELOAD", runtime.as_deref().unwrap_or_default())),
                Way::OneThread => spec.threads = Some(1),
            }
        }
        Ok(workload)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Policy(kind) => kind.fmt(f),
            Way::Passive => f.write_str("passive"),
            Way::Llvm => f.write_str("llvm"),
            Way::OneThread => f.write_str("one-thread"),
        }
    }
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Way, String> {
        match [Way::Passive, Way::Llvm, Way::OneThread].into_iter().find(|w| w.to_string() == text)
        {
            Some(way) => Ok(way),
            None => text.parse().map(Way::Policy).map_err(|error: <Kind as FromStr>::Err| {
                format!("{error}; the rivals are passive, llvm and one-thread")
            }),
        }
    }
}

fn llvm_runtime() -> Result<String, Failure> {
    let found = library_folders().into_iter().find_map(|folder| {
        LLVM_RUNTIME.iter().map(|name| folder.join(name)).find(|path| path.exists())
    });
    found.map(|path| path.display().to_string()).ok_or_else(|| {
        let names = LLVM_RUNTIME.join(" or ");
        Failure::Input(format!(
            "the way 'llvm' needs LLVM's OpenMP runtime, and there is no {names} in the usual folders: \
             install it (Debian, Ubuntu: apt-get install libomp5-14, or a newer number), or leave the way out"
        ))
    })
}

/// The folders of libraries: /usr/lib, what is directly in it, and what LLVM's packages put there.
fn library_folders() -> Vec<PathBuf> {
    let lib = Path::new("/usr/lib");
    let inside = std::fs::read_dir(lib).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<PathBuf> =
        inside.flat_map(|folder| [folder.join("lib"), folder]).collect();
    folders.extend([lib.into(), "/usr/lib64".into(), "/usr/local/lib".into()]);
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Workload {
        Workload::from_commands(vec![vec!["cg".to_owned()]], "/tmp".as_ref()).unwrap()
    }

    #[test]
    fn ways_are_named_as_they_are_shown_and_an_unknown_one_is_told_all_names() {
        for name in ["linux", "gang", "passive", "llvm", "one-thread"] {
            assert_eq!(name.parse::<Way>().unwrap().to_string(), name);
        }
        let error = "gagn".parse::<Way>().unwrap_err();
        assert!(error.contains("gang") && error.contains("one-thread"), "{error}");
    }

    #[test]
    fn a_rival_is_plain_linux_with_programs_started_differently() {
        let passive = Way::Passive.prepare(&workload()).unwrap();
        assert_eq!(passive.programs[0].env["OMP_WAIT_POLICY"], "passive");
        let one = Way::OneThread.prepare(&workload()).unwrap();
        assert_eq!(one.programs[0].threads, Some(1));
        assert_eq!(Way::OneThread.kind(), Kind::Linux);
        assert_eq!(Way::Policy(Kind::Gang).prepare(&workload()).unwrap(), workload());
    }
}
