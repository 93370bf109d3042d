//! A scope of systemd's user manager: a cgroup that belongs to an ordinary user.
//!
//! *Problem.* Turns by weight need a CPU group per program. An ordinary user's login is in a cgroup
//! of the system's, or in one with other processes, and cannot make groups there. systemd's user
//! manager can: it has a part of the cgroup tree, by default with the `cpu` controller.
//!
//! *Idea.* cosched has the manager put this very process into a new scope that is delegated to
//! the user. `systemd-run --user --scope -p Delegate=yes` does the same before it starts a command.
//! Here no command is started: process number, terminal, standard input, environment and signals
//! stay as they are, and there is no loop to guard against. When the manager refuses, cosched stays
//! where it was.
//!
//! *Lifetime.* A scope lives until its last process has ended. Programs that outlive a killed
//! cosched keep it; systemd kills none of them for that. The [sentinel](crate::safety::sentinel) is
//! in another cgroup. When the user's last login ends, systemd ends the manager with all its
//! scopes, unless lingering is enabled for the user.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};

use super::controllers::PASSED_ON;
use super::dir::Dir;
use super::find::Hierarchies;
use crate::kernel::clock::monotonic;
use crate::kernel::files::{self, FileError};
use crate::kernel::procfs::{Proc, status_field};

/// How long the manager may take to move this process.
const MOVING: Duration = Duration::from_secs(3);
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// The scopes of logins, desktop applications (GNOME, KDE), VTE's windows and tmux's panes begin
/// like this.
const TERMINALS: [&str; 4] = ["session-", "app-", "vte-spawn-", "tmux-spawn-"];

/// The facts that decide whether a scope would help.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    is_root: bool,
    /// The `cpu` controller is in a tree of version 2 that the caller sees.
    has_tree: bool,
    /// The caller's own cgroup already gives CPU groups.
    has_groups: bool,
    /// The caller is in the cgroup of a login or of a terminal window. Any other cgroup may have
    /// limits that the user, or a batch system, has set on purpose.
    is_login: bool,
    /// The user's manager runs, as its folder in `$XDG_RUNTIME_DIR` shows.
    has_manager: bool,
    /// The user's message bus is there, and its client `busctl`.
    has_bus: bool,
    manager_has_cpu: bool,
    has_idle_groups: bool,
    /// The caller shall outlive its login: it ignores SIGHUP, as under `nohup`.
    outlives_login: bool,
    lingers: bool,
}

/// Why a scope is unavailable, or would not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScopeLack {
    /// CPU groups are there already.
    #[error("cosched can make CPU groups where it is")]
    NotNeeded,
    /// Root has no user manager, but the system's.
    #[error("this cgroup holds other processes, or does not pass the cpu controller on")]
    Root,
    /// The cgroup may have a purpose, such as a limit of memory.
    #[error("cosched does not leave the service, scope, container or batch job that it is in")]
    Elsewhere,
    /// The host has the controller elsewhere, or not at all.
    #[error("no cgroup v2 tree has the cpu controller")]
    NoTree,
    /// There is no user manager.
    #[error("no systemd user manager runs for this user")]
    NoManager,
    /// The manager cannot be reached.
    #[error("systemd's user manager cannot be reached: the user's D-Bus, or busctl, is missing")]
    NoBus,
    /// The manager has no CPU groups to give.
    #[error("systemd's user manager was not given the cpu controller")]
    NoCpu,
    /// The kernel is too old.
    #[error("this kernel has no idle CPU groups (cpu.idle)")]
    OldKernel,
    /// The scope would end with the login, and cosched shall not.
    #[error("SIGHUP is ignored (nohup), and systemd's user manager ends with the last login")]
    EndsWithLogin,
}

impl ScopeLack {
    /// What to type or to do; `None`: nothing helps, or nothing is missing.
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            ScopeLack::NotNeeded => None,
            ScopeLack::Root => Some("type `systemd-run --scope -p Delegate=yes cosched ...`"),
            ScopeLack::NoTree => Some(
                "run cosched as root, or boot with systemd.unified_cgroup_hierarchy=1 and log in \
                 anew",
            ),
            ScopeLack::NoManager => Some(
                "log in through systemd (console, ssh, `machinectl shell`) instead of su or sudo",
            ),
            ScopeLack::NoBus => Some(
                "install dbus-user-session and log in anew, or type \
                 `systemd-run --user --scope -p Delegate=yes cosched ...`",
            ),
            ScopeLack::NoCpu => Some(
                "`sudo systemctl edit user@.service` with `[Service]` and \
                 `Delegate=cpu cpuset io memory pids`, then log in anew",
            ),
            ScopeLack::Elsewhere => {
                Some("add `Delegate=yes` to that unit, with cosched as its only process")
            }
            ScopeLack::OldKernel => Some("use Linux 5.15 or later"),
            ScopeLack::EndsWithLogin => Some("type `loginctl enable-linger` once"),
        }
    }

    /// Whether the user has a manager, and one step would give turns by weight.
    pub fn is_worth_a_word(self) -> bool {
        matches!(self, ScopeLack::NoBus | ScopeLack::NoCpu | ScopeLack::EndsWithLogin)
    }
}

/// Why this process is in no scope of its own.
#[derive(Debug, thiserror::Error)]
pub enum ScopeError {
    /// No scope is available.
    #[error(transparent)]
    Lack(#[from] ScopeLack),
    /// The facts about the host cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// `busctl` could not be started.
    #[error("busctl cannot be started: {0}")]
    Messenger(io::Error),
    /// The manager has refused.
    #[error("systemd's user manager refuses a scope: {0}")]
    Refused(String),
    /// The manager has agreed, but this process was not moved.
    #[error(
        "systemd's user manager promised a scope, but did not move cosched within {} s",
        MOVING.as_secs()
    )]
    NotMoved,
}

impl Facts {
    /// Finds the facts for this process.
    ///
    /// # Errors
    /// When `/proc/self` cannot be read.
    pub fn find(proc: &Proc) -> Result<Facts, FileError> {
        let user = rustix::process::geteuid();
        let trees = Hierarchies::find(proc)?;
        let Some(tree) = trees.v2().filter(|_| trees.v1("cpu").is_none()) else {
            return Ok(Facts { is_root: user.is_root(), ..Facts::default() });
        };
        let runtime = runtime_folder(user.as_raw());
        let is_there =
            |name: &str| runtime.as_ref().is_some_and(|folder| folder.join(name).exists());
        let uid = user.as_raw();
        let manager = format!("user.slice/user-{uid}.slice/user@{uid}.service");
        let manager = Dir::new(tree.mount.join(manager), tree.own.version());
        let lists_cpu = |list: Option<String>| {
            list.is_some_and(|list| list.split_whitespace().any(|name| name == "cpu"))
        };
        Ok(Facts {
            is_root: user.is_root(),
            has_tree: lists_cpu(
                Dir::new(&tree.mount, tree.own.version()).read_if_there(CONTROLLERS)?,
            ),
            has_groups: gives_groups(&tree.own, &tree.controllers),
            is_login: is_login(&tree.own, uid),
            has_manager: is_there("systemd/private") && manager.path().is_dir(),
            has_bus: is_there("bus") && is_in_path("busctl"),
            manager_has_cpu: lists_cpu(manager.read_if_there(CONTROLLERS)?),
            has_idle_groups: manager.has("cpu.idle"),
            outlives_login: ignores_hangup(proc)?,
            lingers: lingers(),
        })
    }

    /// Whether a scope would give CPU groups that are unavailable without it.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self) -> Result<(), ScopeLack> {
        let obstacles = [
            (self.has_groups, ScopeLack::NotNeeded),
            (self.is_root, ScopeLack::Root),
            (!self.has_tree, ScopeLack::NoTree),
            (!self.has_manager, ScopeLack::NoManager),
            (!self.manager_has_cpu, ScopeLack::NoCpu),
            (!self.has_idle_groups, ScopeLack::OldKernel),
            (!self.has_bus, ScopeLack::NoBus),
            (!self.is_login, ScopeLack::Elsewhere),
            (self.outlives_login && !self.lingers, ScopeLack::EndsWithLogin),
        ];
        match obstacles.into_iter().find(|(is_there, _)| *is_there) {
            Some((_, lack)) => Err(lack),
            None => Ok(()),
        }
    }
}

const CONTROLLERS: &str = "cgroup.controllers";

/// Moves this process into a scope of its own, if that gives CPU groups that it lacks. To be called
/// before there are threads and children, which may not move along.
///
/// # Errors
/// The reason why it stays where it is.
pub fn enter(proc: &Proc) -> Result<(), ScopeError> {
    Facts::find(proc)?.check()?;
    let pid = std::process::id().to_string();
    // A scope with the same number may still exist with programs of a killed cosched.
    let name = format!("cosched-{pid}-{}.scope", monotonic());
    send_request(&name, &pid)?;
    let until = Instant::now() + MOVING;
    while !is_in(proc, &name)? {
        if Instant::now() > until {
            return Err(ScopeError::NotMoved);
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    Ok(())
}

fn send_request(name: &str, pid: &str) -> Result<(), ScopeError> {
    let manager = [
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
    ];
    // A name, what to do if there is such a scope, the number of properties, and no further units.
    let unit = ["StartTransientUnit", "ssa(sv)a(sa(sv))", name, "fail", "4"];
    let properties = [
        &["PIDs", "au", "1", pid] as &[&str],
        &["Delegate", "b", "true"],
        &["CollectMode", "s", "inactive-or-failed"],
        &["Description", "s", "Programs under cosched"],
    ];
    let mut command = Command::new("busctl");
    command.args(["--user", "--timeout=5", "call"]).args(manager).args(unit);
    command.args(properties.concat()).arg("0");
    // Another kind of bus, such as that of dbus-launch, does not lead to the manager.
    if let Some(folder) = runtime_folder(rustix::process::geteuid().as_raw()) {
        let mut address = OsString::from("unix:path=");
        address.push(folder.join("bus"));
        command.env("DBUS_SESSION_BUS_ADDRESS", address);
    }
    let said = command.stdin(Stdio::null()).output().map_err(ScopeError::Messenger)?;
    match said.status.success() {
        true => Ok(()),
        false => Err(ScopeError::Refused(String::from_utf8_lossy(&said.stderr).trim().to_owned())),
    }
}

fn is_in(proc: &Proc, name: &str) -> Result<bool, FileError> {
    let trees = Hierarchies::find(proc)?;
    Ok(trees.v2().is_some_and(|tree| tree.own.path().ends_with(name)))
}

/// `$XDG_RUNTIME_DIR`, if it belongs to this user: after `su` it may be that of another.
fn runtime_folder(user: u32) -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("XDG_RUNTIME_DIR")?);
    let owner = std::fs::metadata(&folder).ok()?.uid();
    (owner == user).then_some(folder)
}

/// Whether a cgroup of version 2 can enable `cpu` for children that the caller makes.
fn gives_groups(own: &Dir, controllers: &[String]) -> bool {
    let is_mine = |file: &str| access(own.path().join(file), Access::WRITE_OK).is_ok();
    let is_open = is_mine("") && is_mine("cgroup.procs") && is_mine(PASSED_ON);
    let me = std::process::id() as i32;
    is_open
        && controllers.iter().any(|name| name == "cpu")
        && own.procs().is_ok_and(|here| here.iter().all(|pid| *pid == me))
}

/// Whether a cgroup is that of a login, or of a window or pane that a terminal has opened.
fn is_login(own: &Dir, uid: u32) -> bool {
    let slice = format!("user-{uid}.slice");
    let names: Vec<_> = own.path().iter().filter_map(|name| name.to_str()).collect();
    let is_unit = |name: &&&str| name.ends_with(".scope") || name.ends_with(".service");
    let unit = names.iter().rev().find(is_unit);
    let is_terminal = |unit: &&str| {
        unit.ends_with(".scope") && TERMINALS.iter().any(|prefix| unit.starts_with(prefix))
    };
    names.contains(&slice.as_str()) && unit.is_some_and(is_terminal)
}

fn is_in_path(command: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| access(folder.join(command), Access::EXEC_OK).is_ok())
}

fn ignores_hangup(proc: &Proc) -> Result<bool, FileError> {
    let status = files::read(&proc.root().join("self/status"))?;
    let mask = status_field(&status, "SigIgn");
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok());
    Ok(mask.is_some_and(|mask| mask & (1 << (libc::SIGHUP - 1)) != 0))
}

fn lingers() -> bool {
    let user = std::env::var_os("USER").or_else(|| std::env::var_os("LOGNAME"));
    user.is_some_and(|user| Path::new("/var/lib/systemd/linger").join(user).exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::Version;

    /// An ordinary user who has logged in on a usual host.
    fn usual() -> Facts {
        Facts {
            has_tree: true,
            is_login: true,
            has_manager: true,
            has_bus: true,
            manager_has_cpu: true,
            has_idle_groups: true,
            ..Facts::default()
        }
    }

    #[test]
    fn an_ordinary_login_benefits_from_a_scope() {
        assert_eq!(usual().check(), Ok(()));
        assert_eq!(Facts { outlives_login: true, lingers: true, ..usual() }.check(), Ok(()));
    }

    #[test]
    fn each_obstacle_is_named() {
        let cases = [
            (Facts { has_groups: true, is_root: true, ..usual() }, ScopeLack::NotNeeded),
            (Facts { is_root: true, ..usual() }, ScopeLack::Root),
            (Facts { has_tree: false, ..usual() }, ScopeLack::NoTree),
            (Facts { is_login: false, ..usual() }, ScopeLack::Elsewhere),
            (Facts { has_manager: false, ..usual() }, ScopeLack::NoManager),
            (Facts { manager_has_cpu: false, ..usual() }, ScopeLack::NoCpu),
            (Facts { has_idle_groups: false, ..usual() }, ScopeLack::OldKernel),
            (Facts { has_bus: false, ..usual() }, ScopeLack::NoBus),
            (Facts { outlives_login: true, ..usual() }, ScopeLack::EndsWithLogin),
            (Facts::default(), ScopeLack::NoTree),
        ];
        for (facts, lack) in cases {
            assert_eq!(facts.check(), Err(lack), "{facts:?}");
            let has_remedy = lack != ScopeLack::NotNeeded;
            assert_eq!(lack.remedy().is_some(), has_remedy, "{lack:?}");
        }
    }

    #[test]
    fn only_logins_and_terminals_are_left() {
        let below = |path: &str| {
            let path = format!("/sys/fs/cgroup/user.slice/user-7.slice/{path}");
            is_login(&Dir::new(path, Version::V2), 7)
        };
        assert!(below("session-3.scope"));
        assert!(below("user@7.service/app.slice/app-org.gnome.Terminal-12.scope"));
        assert!(below("user@7.service/app.slice/vte-spawn-1-2.scope"));
        assert!(!below("user@7.service/app.slice/run-r0a.scope"), "it may have limits");
        assert!(!below("user@7.service/app.slice/night.service"), "stopping it stops programs");
        let job = Dir::new("/sys/fs/cgroup/system.slice/slurmstepd.scope/job_1", Version::V2);
        assert!(!is_login(&job, 7));
    }

    #[test]
    fn only_a_process_that_ignores_hangups_outlives_its_login() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("self")).unwrap();
        for (mask, expected) in [("0000000000000001", true), ("0000000000001000", false)] {
            let status = format!("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t{mask}\n");
            std::fs::write(root.path().join("self/status"), status).unwrap();
            assert_eq!(ignores_hangup(&Proc::new(root.path())).unwrap(), expected);
        }
    }

    #[test]
    fn a_folder_that_is_no_cgroup_gives_no_groups() {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::new(root.path(), Version::V2);
        assert!(!gives_groups(&dir, &["cpu".to_owned()]));
    }
}
