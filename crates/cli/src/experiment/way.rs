//! The ways in which programs can share a machine: our policies, and the honest rivals.
//!
//! A rival is what somebody can do without cosched: nothing, tell waiting threads to sleep at once,
//! preload a runtime that waits differently, use one thread per program, or [split](super::split) the CPUs. It is plain
//! Linux with programs that were started differently, so it is measured by the same code as every policy.
//!
//! A way can be held against itself (A/A), to see how much of a difference is chance: `linux-2` is `linux` once more.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cosched_core::workload::{ProgramSpec, Workload};
use cosched_policy::Kind;

use super::split;
use crate::failure::Failure;
use crate::session::Session;

/// Where distributions put LLVM's OpenMP runtime, which can stand in for that of GCC.
const LLVM_RUNTIME: [&str; 3] = ["libomp.so.5", "libomp.so", "libiomp5.so"];

/// One way of running a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    manner: Manner,
    /// 1, or higher for the same once more.
    number: u16,
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Under a policy.
    Policy(Kind),
    /// Under plain Linux, with OpenMP threads that sleep as soon as they wait.
    Passive,
    /// Under plain Linux, with LLVM's OpenMP runtime in the place of GCC's.
    Llvm,
    /// Under plain Linux, with one thread for each program.
    OneThread,
    /// Under plain Linux, with CPUs of its own for each program.
    Split,
}

const RIVALS: [Manner; 4] = [Manner::Passive, Manner::Llvm, Manner::OneThread, Manner::Split];

impl Way {
    /// The policy that runs it.
    pub(crate) fn kind(self) -> Kind {
        match self.manner {
            Manner::Policy(kind) => kind,
            _ => Kind::Linux,
        }
    }

    /// Whether a simulator can show it: it knows how long threads spin and how many there are, but no runtime and no
    /// mask that a program was started with.
    pub(crate) fn can_be_simulated(self) -> bool {
        match self.manner {
            Manner::Policy(_) | Manner::Passive | Manner::OneThread => true,
            Manner::Llvm | Manner::Split => false,
        }
    }

    /// The workload as it is run this way.
    pub(crate) fn prepare(
        self,
        workload: &Workload,
        session: &Session,
    ) -> Result<Workload, Failure> {
        let mut workload = workload.clone();
        let programs = &mut workload.programs;
        match self.manner {
            Manner::Policy(_) => {}
            Manner::Passive => programs.iter_mut().for_each(|spec| {
                set(spec, "OMP_WAIT_POLICY", "passive");
                if let Some(model) = &mut spec.model {
                    model.insert("spin".to_owned(), "0s".into());
                }
            }),
            Manner::Llvm => {
                let runtime = llvm_runtime()?;
                programs.iter_mut().for_each(|spec| set(spec, "LD_PRELOAD", &runtime));
            }
            Manner::OneThread => programs.iter_mut().for_each(|spec| spec.threads = Some(1)),
            Manner::Split => split::split(programs, session)?,
        }
        Ok(workload)
    }
}

/// Each way is there once, and what is there once more stands beside what it repeats, in the order of the numbers: a
/// name is a column of the table, and `linux-3` without `linux-2` tells of a way that is missing.
pub(crate) fn check_names(ways: &[Way]) -> Result<(), Failure> {
    let names: Vec<String> = ways.iter().map(Way::to_string).collect();
    let refuse = |why: String| Err(Failure::Input(format!("--policies: {why}")));
    for (i, way) in names.iter().enumerate() {
        let (first, number) = numbered(way);
        let missing = |number: &u16| !names.contains(&again(first, *number));
        if names[..i].contains(way) {
            let unused = (2..).find(missing).unwrap_or(u16::MAX);
            return refuse(format!(
                "'{way}' is there twice; name each way once, and use --runs. To hold a way against itself, call it \
                 '{}' the second time",
                again(first, unused)
            ));
        }
        if let Some(missing) = (1..number).find(missing) {
            let missing = again(first, missing);
            return refuse(format!(
                "'{way}' is '{first}' once more, and '{missing}' is not there: call it '{missing}'"
            ));
        }
    }
    Ok(())
}

/// What a way is called that is there for the second time, or the third.
fn again(first: &str, number: u16) -> String {
    match number {
        1 => first.to_owned(),
        number => format!("{first}-{number}"),
    }
}

/// The name that a name repeats, and how many there are with it: only as [`again`] writes it, since it is a folder's
/// name, too.
fn numbered(name: &str) -> (&str, u16) {
    let split = name.rsplit_once('-').and_then(|(first, number)| {
        let number: u16 = number.parse().ok()?;
        (number > 1 && again(first, number) == name).then_some((first, number))
    });
    split.unwrap_or((name, 1))
}

fn set(spec: &mut ProgramSpec, key: &str, value: &str) {
    spec.env.insert(key.into(), value.into());
}

impl fmt::Display for Manner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Manner::Policy(kind) => kind.fmt(f),
            Manner::Passive => f.write_str("passive"),
            Manner::Llvm => f.write_str("llvm"),
            Manner::OneThread => f.write_str("one-thread"),
            Manner::Split => f.write_str("split"),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&again(&self.manner.to_string(), self.number))
    }
}

impl FromStr for Way {
    type Err = String;

    fn from_str(text: &str) -> Result<Way, String> {
        let (name, number) = numbered(text);
        let manner = match RIVALS.into_iter().find(|rival| rival.to_string() == name) {
            Some(rival) => rival,
            None => name.parse().map(Manner::Policy).map_err(|error: <Kind as FromStr>::Err| {
                let rivals = RIVALS.map(|rival| rival.to_string()).join(", ");
                format!("{error}; the rivals are {rivals}")
            })?,
        };
        Ok(Way { manner, number })
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
    use cosched_core::Topology;
    use cosched_core::result::{MachineDescription, SIMULATED};

    use super::*;

    fn workload() -> Workload {
        Workload::from_commands(vec![vec!["cg".to_owned()]], "/tmp".as_ref()).unwrap()
    }

    fn prepared(way: &str, workload: &Workload) -> Workload {
        let machine = MachineDescription { cpus: 2, model: None, kernel: SIMULATED.to_owned() };
        let session = Session::of(Topology::regular(1, 1, 1, 2, 1), machine);
        way.parse::<Way>().unwrap().prepare(workload, &session).unwrap()
    }

    #[test]
    fn ways_are_named_as_they_are_shown_and_an_unknown_one_is_told_all_names() {
        for name in
            ["linux", "gang", "passive", "llvm", "one-thread", "split", "gang-2", "split-12"]
        {
            assert_eq!(name.parse::<Way>().unwrap().to_string(), name);
        }
        for name in ["gagn", "gang-1", "gang-02", "gang-", "linux-groups-x"] {
            let error = name.parse::<Way>().unwrap_err();
            assert!(error.contains("gang") && error.contains("one-thread, split"), "{error}");
        }
    }

    #[test]
    fn a_way_that_is_there_once_more_is_the_same_under_another_name() {
        let (first, again) = ("gang".parse::<Way>().unwrap(), "gang-2".parse::<Way>().unwrap());
        assert_ne!(first, again);
        assert_eq!((first.kind(), again.kind()), (Kind::Gang, Kind::Gang));
    }

    #[test]
    fn a_way_is_there_once_more_only_beside_those_before_it() {
        let check = |names: &str| {
            let ways: Vec<Way> = names.split(',').map(|name| name.parse().unwrap()).collect();
            check_names(&ways).map_err(|failure| format!("{failure:?}"))
        };
        for fine in ["linux", "linux,linux-2", "gang-2,linux,gang", "linux,linux-2,linux-3"] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for (refused, told) in [
            ("linux,gang,linux", "call it 'linux-2' the second time"),
            ("linux,linux-2,linux-2", "call it 'linux-3' the second time"),
            (
                "linux-2",
                "'linux-2' is 'linux' once more, and 'linux' is not there: call it 'linux'",
            ),
            ("linux,linux-3", "and 'linux-2' is not there: call it 'linux-2'"),
            ("gang,linux-2", "'linux' is not there"),
        ] {
            let found = check(refused).unwrap_err();
            assert!(found.contains(told), "{refused}: {found}");
        }
    }

    #[test]
    fn a_rival_is_plain_linux_with_programs_started_differently() {
        assert_eq!(prepared("passive", &workload()).programs[0].env["OMP_WAIT_POLICY"], "passive");
        assert_eq!(prepared("one-thread", &workload()).programs[0].threads, Some(1));
        assert_eq!("one-thread".parse::<Way>().unwrap().kind(), Kind::Linux);
        assert_eq!(prepared("gang", &workload()), workload());
    }

    #[test]
    fn threads_of_a_model_that_wait_passively_do_not_spin() {
        let mut workload = workload();
        workload.programs[0].model = Some(toml::from_str("spin = '1s'\nrepeat = 2").unwrap());
        let passive = prepared("passive", &workload);
        let model = passive.programs[0].model.as_ref().unwrap();
        assert_eq!((model["spin"].as_str(), model["repeat"].as_integer()), (Some("0s"), Some(2)));
        assert_eq!(prepared("linux", &workload), workload);
    }
}
