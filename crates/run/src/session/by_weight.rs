//! Whether programs can take turns by weight here, and what to type where they cannot.

use cosched_core::format::list;
use cosched_linux::cgroup::scope::{Facts, ScopeLack};
use cosched_linux::control::run_cgroups::ByWeight;
use cosched_linux::kernel::files::FileError;
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::kernel::topology::Sys;
use cosched_linux::rights::{Ability, Right, Rights};
use cosched_policy::{Kind, OptionGroup, binds_by_weight};
use serde::Serialize;

use super::here::Session;
use super::making::by_weight;
use crate::how::How;

/// Turns by weight on this host.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct ByWeightReport {
    /// Whether programs can take turns by weight here.
    pub available: bool,
    /// What gives them.
    by: Option<By>,
    /// What was found.
    detail: String,
    /// What to type where they are missing.
    remedy: Option<String>,
}

/// What gives CPU groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum By {
    /// The caller's own cgroup.
    Cgroup,
    /// A scope that cosched requests from systemd's user manager.
    Scope,
}

impl ByWeightReport {
    /// What this user gets on this host.
    ///
    /// # Errors
    /// When the files of the kernel that tell it cannot be read.
    pub fn new(proc: &Proc, rights: &Rights) -> Result<ByWeightReport, FileError> {
        let idle = rights.rights.iter().find(|right| right.name == Ability::IdleGroups);
        Ok(report(idle, Facts::find(proc)?.check()))
    }

    /// What is missing on this host, in one line; `None`: nothing.
    ///
    /// # Errors
    /// When files of the kernel cannot be read.
    pub fn lack() -> Result<Option<String>, FileError> {
        let proc = Proc::own()?;
        let report = ByWeightReport::new(&proc, &Rights::probe(&proc, &Sys::default())?)?;
        Ok((!report.available).then(|| report.text()))
    }

    /// The first lines for people: whether what is needed is there.
    pub fn verdict(&self) -> String {
        if self.available {
            return "Everything that is needed is here: programs can take turns by weight."
                .to_owned();
        }
        let missing = format!(
            "One thing that the default needs is missing: turns by weight ({}). Until then, \
             `cosched run` may pause programs.",
            self.detail
        );
        match &self.remedy {
            None => missing,
            Some(remedy) => format!("{missing}\nRemedy: {remedy}"),
        }
    }

    /// One line.
    pub fn text(&self) -> String {
        match (self.available, &self.remedy) {
            (true, _) => format!("Turns by weight: available, {}", self.detail),
            (false, None) => format!("Turns by weight: missing: {}", self.detail),
            (false, Some(remedy)) => {
                format!("Turns by weight: missing: {}. Remedy: {remedy}", self.detail)
            }
        }
    }
}

fn report(idle: Option<&Right>, scope: Result<(), ScopeLack>) -> ByWeightReport {
    let missing = |detail, remedy| ByWeightReport { available: false, by: None, detail, remedy };
    match (idle, scope) {
        (Some(idle), _) if idle.available => ByWeightReport {
            available: true,
            by: Some(By::Cgroup),
            detail: idle.detail.clone(),
            remedy: None,
        },
        (_, Ok(())) => ByWeightReport {
            available: true,
            by: Some(By::Scope),
            detail: "`cosched run` requests a scope from systemd's user manager".to_owned(),
            remedy: None,
        },
        // What was tried says more than that there is no manager.
        (Some(idle), Err(ScopeLack::NotNeeded | ScopeLack::NoTree)) => {
            missing(idle.detail.clone(), idle.remedy.clone())
        }
        (_, Err(lack)) => missing(lack.to_string(), lack.remedy().map(str::to_owned)),
    }
}

/// The options that were given and do nothing, since programs take turns by weight in each of these
/// runs that takes them: a note for pauses, and one for places.
pub fn unused_by_weight<'a>(
    session: &Session,
    runs: impl IntoIterator<Item = (Kind, &'a How)>,
) -> Vec<String> {
    let runs: Vec<(Kind, &How)> = runs.into_iter().collect();
    let binds = binds_by_weight(&session.topology, &session.usable.cpus);
    let pauses = unused(&runs, OptionGroup::Pauses, "none is paused");
    let why = "none is bound to CPUs, since all share one last-level cache";
    let places = || unused(&runs, OptionGroup::Places, why);
    pauses.into_iter().chain((!binds).then(places).flatten()).collect()
}

fn unused(runs: &[(Kind, &How)], group: OptionGroup, why: &str) -> Option<String> {
    let is_unused = |option: &&&str| {
        let takes = |(kind, how): &&(Kind, &How)| {
            kind.takes(group) && how.given().any(|given| given == **option)
        };
        let mut users = runs.iter().filter(takes).peekable();
        users.peek().is_some() && users.all(|(kind, how)| by_weight(*kind, how) != ByWeight::No)
    };
    let options: Vec<String> =
        group.options().iter().filter(is_unused).map(|option| format!("--{option}")).collect();
    let (have, them) = if options.len() == 1 { ("has", "it") } else { ("have", "them") };
    (!options.is_empty()).then(|| {
        format!(
            "{} {have} no effect here: programs take turns by weight, and {why}. Leave {them} out, \
             or use --turns freeze, which pauses programs",
            list(&options)
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use cosched_core::Topology;
    use cosched_linux::control::run_cgroups::PinningBackend;
    use cosched_policy::{Placement, Turns};
    use cosched_results::result::{MachineDescription, SIMULATED};

    use super::*;
    use crate::how::PolicyChoices;

    /// A machine with so many last-level caches.
    fn machine(caches: u16) -> Session {
        let machine = MachineDescription { cpus: 4, model: None, kernel: SIMULATED.to_owned() };
        Session::of(Topology::regular(1, caches, 1, 2, 1), machine)
    }

    /// All options of pauses and places, but for --freezer.
    fn options(turns: Option<Turns>) -> How {
        let (max_frozen, placement) = (Some(Duration::from_secs(2)), Some(Placement::Spread));
        let pinning = Some(PinningBackend::Affinity);
        let default = PolicyChoices::default();
        PolicyChoices { max_frozen, placement, pinning, turns, ..default }.into()
    }

    #[test]
    fn options_without_effect_under_turns_by_weight_are_named() {
        let how = options(None);
        let notes = unused_by_weight(&machine(1), [(Kind::Turns, &how)]);
        assert_eq!(
            notes,
            [
                "--max-frozen has no effect here: programs take turns by weight, and none is \
                 paused. Leave it out, or use --turns freeze, \
                 which pauses programs",
                "--placement and --pinning have no effect here: programs take turns by weight, \
                 and none is bound to CPUs, since all share one last-level cache. Leave them out, \
                 or use --turns freeze, which pauses programs",
            ]
        );
        let on_two = unused_by_weight(&machine(2), [(Kind::Turns, &how)]);
        assert_eq!(on_two, notes[..1], "programs are bound there");
        let none = How::from(PolicyChoices::default());
        assert!(unused_by_weight(&machine(1), [(Kind::Turns, &none)]).is_empty());
        let freezes = options(Some(Turns::Freeze));
        assert!(unused_by_weight(&machine(1), [(Kind::Turns, &freezes)]).is_empty());
    }

    #[test]
    fn an_option_that_another_variant_needs_is_not_named() {
        let how = options(None);
        let of = |kinds: &[Kind]| {
            unused_by_weight(&machine(1), kinds.iter().map(|kind| (*kind, &how))).len()
        };
        assert_eq!(of(&[Kind::Linux, Kind::Fcfs, Kind::Turns]), 2);
        assert_eq!(of(&[Kind::Linux, Kind::Turns, Kind::Gang]), 0);
    }

    fn idle(available: bool) -> Right {
        Right {
            name: Ability::IdleGroups,
            available,
            detail: if available { "in /cg" } else { "permission denied" }.to_owned(),
            gives: "",
            remedy: (!available).then(|| "be root".to_owned()),
        }
    }

    #[test]
    fn one_line_says_what_there_is_and_what_to_type() {
        let said = |available, scope| report(Some(&idle(available)), scope).text();
        let cases = [
            (said(true, Err(ScopeLack::NoTree)), "Turns by weight: available, in /cg"),
            (
                said(false, Ok(())),
                "available, `cosched run` requests a scope from systemd's user manager",
            ),
            (said(false, Err(ScopeLack::NoTree)), "missing: permission denied. Remedy: be root"),
            (said(false, Err(ScopeLack::NoManager)), "Remedy: log in through systemd"),
            (said(false, Err(ScopeLack::Root)), "Remedy: type `systemd-run --scope"),
        ];
        for (said, expected) in cases {
            assert!(said.contains(expected) && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn scripts_read_what_gives_turns_by_weight() {
        let json = serde_json::to_value(report(Some(&idle(false)), Ok(()))).unwrap();
        assert_eq!((&json["available"], &json["by"]), (&true.into(), &"scope".into()));
        let json = serde_json::to_value(report(Some(&idle(false)), Err(ScopeLack::NoCpu))).unwrap();
        assert!(json["by"].is_null() && json["remedy"].is_string(), "{json}");
    }
}
