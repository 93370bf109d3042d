//! What of a program the machine has to know: how it is started, with which environment, and where
//! its input and output are.

use std::ffi::OsString;

use cosched_linux::hook::{self, BARRIER_MODE, Hook, Uses};
use cosched_linux::kernel::procfs::Proc;
use cosched_linux::machine::{Job, Origin};
use cosched_linux::process::launch::{LaunchOrder, LineLabels, OutputTo};
use cosched_workload::{BarrierMode, OPENMP, ProgramSpec};

use super::here::Session;
use super::request::Request;
use super::{barriers, sources};
use crate::ui::failure::Failure;

impl Session {
    pub(super) fn job(
        &self,
        origin: Origin,
        spec: &ProgramSpec,
        barrier: BarrierMode,
        request: &Request<'_>,
    ) -> Result<Job, Failure> {
        if let Origin::Running(_) = origin {
            return Ok(Job {
                origin,
                order: LaunchOrder::default(),
                stdout: OutputTo::Inherit,
                stderr: OutputTo::Inherit,
                freezable_for_sure: false,
                grouped_by_user: true,
                hook: None,
            });
        }
        if let Some(why) = self.has_no(barrier, request) {
            let places = &spec.places.command;
            return Err(Failure::Input(format!("{places}: the barrier {} {why}", barrier.name())));
        }
        let uses = Uses {
            threads: spec.malleable && origin == Origin::Started,
            barriers: barrier == BarrierMode::Donate,
            progress: request.hears_progress(),
            load: barrier == BarrierMode::LoadControl,
        };
        let hook = sources::is_inside(spec, request).then(|| hook_for(spec, uses)).transpose()?;
        let mut env = self.started_with(spec, request);
        // What an outer run has told its programs is not meant for those of this one.
        env.retain(|(name, _)| !spec.inherits(BARRIER_MODE) || name != BARRIER_MODE);
        if ![BarrierMode::Own, BarrierMode::Donate].contains(&barrier) {
            env.push((BARRIER_MODE.into(), barrier.name().into()));
        }
        if uses.barriers {
            env.extend(barriers::bound(&env).map(|(name, value)| (name.into(), value.into())));
        }
        if uses.threads {
            say_threads(&mut env, self.threads(spec));
        }
        let labels = request.labels(spec);
        if labels != LineLabels::default() {
            write_at_once(&mut env);
        }
        let order = LaunchOrder {
            executable: self.executable(spec)?,
            argv: spec.command.clone(),
            cwd: spec.cwd.clone(),
            stdin: request.input(spec),
            env,
            labels,
            ..LaunchOrder::default()
        };
        let file = |end: &str| request.output(spec, end);
        let output = |path: Option<_>, otherwise| match path {
            Some(path) => OutputTo::File { path, append: false },
            None => otherwise,
        };
        let taken = if request.stdout_is_taken { OutputTo::Stderr } else { OutputTo::Inherit };
        Ok(Job {
            origin,
            order,
            stdout: output(file("stdout"), taken),
            stderr: output(file("stderr"), OutputTo::Inherit),
            freezable_for_sure: spec.freezable == Some(true),
            grouped_by_user: spec.group.is_some(),
            hook,
        })
    }
}

impl Session {
    /// Why programs cannot wait so at barriers here, with a remedy.
    fn has_no(&self, barrier: BarrierMode, request: &Request<'_>) -> Option<String> {
        let all = self.topology.all().len();
        match barrier {
            BarrierMode::Tidon if !request.is_by_ext() => Some(
                "needs cosched's scheduler in the kernel (remedy: add --scheduler ext, or choose \
                 another barrier, such as donate)"
                    .to_owned(),
            ),
            BarrierMode::LoadControl if self.usable.cpus.len() < all => Some(format!(
                "goes by how many threads of the whole machine want to run, and this run may use \
                 {} of its {all} CPUs (remedy: let it use all of them, or choose another barrier, \
                 such as block)",
                self.usable.cpus.len()
            )),
            BarrierMode::LoadControl if running_threads().is_none() => Some(
                "needs the numbers of threads in /proc/loadavg, which cannot be read here \
                 (remedy: choose another barrier, such as block)"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// How many threads of the machine run or are ready to; `None`: the kernel does not say.
fn running_threads() -> Option<u64> {
    Proc::own().ok()?.running_threads()
}

/// Tells a malleable program how many threads it may request, unless its environment does.
/// Otherwise a process that it starts later, and that finds fewer CPUs in its mask by then, would
/// never request more.
fn say_threads(env: &mut Vec<(OsString, OsString)>, threads: u16) {
    if !env.iter().any(|(name, _)| name == OPENMP) {
        env.push((OPENMP.into(), threads.to_string().into()));
    }
}

/// Has a Python program write each line at once, as it does at a terminal: into the pipe behind a
/// label it would write only when many have come together.
fn write_at_once(env: &mut Vec<(OsString, OsString)>) {
    const UNBUFFERED: &str = "PYTHONUNBUFFERED";
    if !env.iter().any(|(name, _)| name == UNBUFFERED) {
        env.push((UNBUFFERED.into(), "1".into()));
    }
}

fn hook_for(spec: &ProgramSpec, uses: Uses) -> Result<Hook, Failure> {
    let what = match uses {
        Uses { threads: true, .. } => "malleable",
        Uses { barriers: false, progress: true, .. } => "progress",
        _ => "barrier",
    };
    let refused = |error| Failure::Input(format!("{}: {what}: {error}", spec.places.command));
    let library = hook::library().map_err(refused)?;
    Ok(Hook { library, uses })
}
