//! The variants in which programs can share a machine: our policies, and the honest rivals.
//!
//! A rival is what a user can do without cosched: nothing, tell waiting threads to sleep at once,
//! preload a runtime that waits differently, use one thread per program, or [split] the CPUs. It is
//! plain Linux with programs that were started differently, so it is measured by the same code as
//! every policy.
//!
//! A variant can be held against itself (A/A), to see how much of a difference is chance: `linux-2`
//! is `linux` once more. And one policy can be there several times, with
//! [options](VariantOptions) of its own each.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cosched_policy::Kind;
use cosched_workload::{ProgramSpec, Workload};

use super::split;
use crate::how::How;
use crate::session::Session;
use crate::ui::failure::Failure;

/// Where distributions put LLVM's OpenMP runtime, which can stand in for that of GCC.
const LLVM_RUNTIME: [&str; 3] = ["libomp.so.5", "libomp.so", "libiomp5.so"];

/// One variant.
#[derive(Clone, Debug)]
pub struct Variant {
    /// As it is shown, and as its folder is called.
    name: String,
    method: Method,
    /// The options for it alone.
    own: Option<VariantOptions>,
}

/// The policy of a variant, and its options beyond those of all variants.
#[derive(Clone, Debug)]
pub struct VariantOptions {
    /// What decides.
    pub policy: Kind,
    /// The options for this variant alone.
    pub how: How,
    /// All of it as words of a shell.
    pub words: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
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

/// The rivals, by their names.
const RIVALS: [(&str, Method); 4] = [
    ("passive", Method::Passive),
    ("llvm", Method::Llvm),
    ("one-thread", Method::OneThread),
    ("split", Method::Split),
];

impl Variant {
    /// The names of the rivals.
    pub fn rivals() -> [&'static str; 4] {
        RIVALS.map(|(name, _)| name)
    }

    /// A policy with options of its own.
    ///
    /// # Errors
    /// When a variant without such options has the name.
    pub fn with_own(name: &str, own: VariantOptions) -> Result<Variant, String> {
        if name.parse::<Variant>().is_ok() {
            return Err(format!("'{name}' is already the name of a variant; choose another one"));
        }
        Ok(Variant { name: name.to_owned(), method: Method::Policy(own.policy), own: Some(own) })
    }

    /// The policy and the options for it alone, in words.
    pub fn words(&self) -> Option<&str> {
        self.own.as_ref().map(|own| own.words.as_str())
    }

    /// How policies do their work in it, where they do it so elsewhere.
    pub fn how(&self, elsewhere: &How) -> How {
        self.own.as_ref().map_or_else(|| elsewhere.clone(), |own| own.how.over(elsewhere))
    }

    /// Checks that its policy supports the options for it alone.
    ///
    /// # Errors
    /// When the policy does not support these options: all that it does not.
    pub fn check_use(&self) -> Result<(), Failure> {
        let Some(own) = &self.own else { return Ok(()) };
        let used = own.how.check_use(&[own.policy]);
        used.map_err(|failure| failure.of(&format!("--variant {}", self.name)))
    }

    /// The policy that runs it.
    pub fn kind(&self) -> Kind {
        match self.method {
            Method::Policy(kind) => kind,
            _ => Kind::Linux,
        }
    }

    /// Whether programs are started differently in it.
    pub(crate) fn is_rival(&self) -> bool {
        !matches!(self.method, Method::Policy(_))
    }

    /// Whether a simulator can show it: it knows how long threads spin and how many there are, but
    /// no runtime and no mask that a program was started with.
    pub fn can_be_simulated(&self) -> bool {
        match self.method {
            Method::Policy(_) | Method::Passive | Method::OneThread => true,
            Method::Llvm | Method::Split => false,
        }
    }

    /// The workload as this variant runs it.
    pub(crate) fn prepare(
        &self,
        workload: &Workload,
        session: &Session,
    ) -> Result<Workload, Failure> {
        let mut workload = workload.clone();
        let programs = &mut workload.programs;
        match self.method {
            Method::Policy(_) => {}
            Method::Passive => programs.iter_mut().for_each(|spec| {
                set(spec, "OMP_WAIT_POLICY", "passive");
                if let Some(model) = &mut spec.model {
                    model.insert("spin".to_owned(), "0s".into());
                }
            }),
            Method::Llvm => {
                let runtime = llvm_runtime()?;
                programs.iter_mut().for_each(|spec| set(spec, "LD_PRELOAD", &runtime));
            }
            Method::OneThread => programs.iter_mut().for_each(|spec| spec.threads = Some(1)),
            Method::Split => split::split(programs, session)?,
        }
        Ok(workload)
    }
}

/// Each variant is there once: a name is a column of the table, and a folder. Names that
/// [`Variant::with_own`] gives are free beside that; all others are numbered.
///
/// # Errors
/// When a name is there twice, or a number is missing.
pub fn check_names(variants: &[Variant]) -> Result<(), Failure> {
    let names: Vec<&str> = variants.iter().map(|variant| variant.name.as_str()).collect();
    for (i, variant) in variants.iter().enumerate() {
        let (name, twice) = (names[i], names[..i].contains(&names[i]));
        let wrong = match variant.own {
            Some(_) if twice => Some(format!(
                "--variant: '{name}' is there twice; give each variant a name of its own"
            )),
            Some(_) => None,
            None => misnumbered(name, twice, &names).map(|why| format!("--policies: {why}")),
        };
        if let Some(wrong) = wrong {
            return Err(Failure::Input(wrong));
        }
    }
    Ok(())
}

/// What is wrong with a name among these. What is there once more stands beside what it repeats, in
/// the order of the numbers: `linux-3` without `linux-2` tells of a variant that is missing.
fn misnumbered(name: &str, twice: bool, names: &[&str]) -> Option<String> {
    let (first, number) = numbered(name);
    let missing = |number: &u16| !names.contains(&again(first, *number).as_str());
    if twice {
        let unused = (2..).find(missing).unwrap_or(u16::MAX);
        return Some(format!(
            "'{name}' is there twice; name each variant once, and use --runs. To compare a \
             variant with itself, call \
             it '{}' the second time",
            again(first, unused)
        ));
    }
    (1..number).find(missing).map(|missing| {
        let missing = again(first, missing);
        format!("'{name}' is '{first}' again, but '{missing}' is missing; call it '{missing}'")
    })
}

/// What a variant is called that is there for the second time, or the third.
fn again(first: &str, number: u16) -> String {
    match number {
        1 => first.to_owned(),
        number => format!("{first}-{number}"),
    }
}

/// The name that a name repeats, and how many there are with it: only as [`again`] writes it, since
/// it is a folder's name, too.
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

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl FromStr for Variant {
    type Err = String;

    fn from_str(text: &str) -> Result<Variant, String> {
        let (first, _) = numbered(text);
        let method = match RIVALS.into_iter().find(|(name, _)| *name == first) {
            Some((_, rival)) => rival,
            None => {
                first.parse().map(Method::Policy).map_err(|error: <Kind as FromStr>::Err| {
                    let rivals = Variant::rivals().join(", ");
                    format!("{error}; other variants: {rivals}")
                })?
            }
        };
        Ok(Variant { name: text.to_owned(), method, own: None })
    }
}

fn llvm_runtime() -> Result<String, Failure> {
    let found = library_folders().into_iter().find_map(|folder| {
        LLVM_RUNTIME.iter().map(|name| folder.join(name)).find(|path| path.exists())
    });
    found.map(|path| path.display().to_string()).ok_or_else(|| {
        let names = LLVM_RUNTIME.join(" or ");
        Failure::Input(format!(
            "variant 'llvm' needs LLVM's OpenMP runtime, and the usual folders have no {names}; \
             install it (Debian, \
             Ubuntu: apt-get install libomp5-14, or a newer number), or leave the variant out"
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
    use cosched_results::result::{MachineDescription, SIMULATED};

    use super::*;
    use crate::how::PolicyChoices;

    fn workload() -> Workload {
        Workload::from_commands(vec![vec!["cg".to_owned()]], "/tmp".as_ref()).unwrap()
    }

    /// A gang with these options of its own.
    fn with_own(name: &str, words: &str) -> Variant {
        let how = PolicyChoices { fill: true, ..PolicyChoices::default() }.into();
        let own = VariantOptions { policy: Kind::Gang, how, words: words.to_owned() };
        Variant::with_own(name, own).unwrap()
    }

    fn prepared(variant: &str, workload: &Workload) -> Workload {
        let machine = MachineDescription { cpus: 2, model: None, kernel: SIMULATED.to_owned() };
        let session = Session::of(Topology::regular(1, 1, 1, 2, 1), machine);
        variant.parse::<Variant>().unwrap().prepare(workload, &session).unwrap()
    }

    #[test]
    fn variants_are_parsed_by_their_shown_names() {
        for name in
            ["linux", "gang", "passive", "llvm", "one-thread", "split", "gang-2", "split-12"]
        {
            assert_eq!(name.parse::<Variant>().unwrap().to_string(), name);
        }
        for name in ["gagn", "gang-1", "gang-02", "gang-", "linux-groups-x"] {
            let error = name.parse::<Variant>().unwrap_err();
            assert!(error.contains("gang") && error.contains("one-thread, split"), "{error}");
        }
    }

    #[test]
    fn a_repeated_variant_is_the_same_with_a_number() {
        let (first, again) =
            ("gang".parse::<Variant>().unwrap(), "gang-2".parse::<Variant>().unwrap());
        assert_ne!(first.to_string(), again.to_string());
        assert_eq!((first.kind(), again.kind()), (Kind::Gang, Kind::Gang));
    }

    #[test]
    fn a_variant_is_there_once_more_only_beside_those_before_it() {
        let check = |names: &str| {
            let variant = |text: &str| match text.split_once('=') {
                Some((name, options)) => with_own(name, options),
                None => text.parse().unwrap(),
            };
            let variants: Vec<Variant> = names.split(',').map(variant).collect();
            check_names(&variants).map_err(|failure| format!("{failure:?}"))
        };
        for fine in ["linux", "linux,linux-2", "gang-2,linux,gang", "linux,linux-2,linux-3"] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        assert_eq!(check("linux,fine-2=gang --quantum 5ms"), Ok(()), "a name that repeats none");
        for (refused, expected) in [
            ("linux,gang,linux", "call it 'linux-2' the second time"),
            ("linux,linux-2,linux-2", "call it 'linux-3' the second time"),
            ("linux-2", "'linux-2' is 'linux' again, but 'linux' is missing; call it 'linux'"),
            ("linux,linux-3", "but 'linux-2' is missing; call it 'linux-2'"),
            ("gang,linux-2", "'linux' is missing"),
            (
                "linux,a=gang,a=gang --fill",
                "--variant: 'a' is there twice; give each variant a name",
            ),
        ] {
            let found = check(refused).unwrap_err();
            assert!(found.contains(expected), "{refused}: {found}");
        }
    }

    #[test]
    fn a_rival_is_plain_linux_with_programs_started_differently() {
        assert_eq!(prepared("passive", &workload()).programs[0].env["OMP_WAIT_POLICY"], "passive");
        assert_eq!(prepared("one-thread", &workload()).programs[0].threads, Some(1));
        assert_eq!("one-thread".parse::<Variant>().unwrap().kind(), Kind::Linux);
        let unknown = "foo".parse::<Variant>().unwrap_err();
        let ends = "auto; other variants: passive, llvm, one-thread, split";
        assert!(unknown.ends_with(ends), "{unknown}");
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
