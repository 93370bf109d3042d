//! What of a program the machine has to know: how it is started, with which environment, and where
//! its input and output are.

use std::ffi::OsString;

use cosched_linux::hook::{self, BARRIER_MODE, Hook, Uses};
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
        if barrier == BarrierMode::Tidon && !request.is_by_ext() {
            return Err(Failure::Input(format!(
                "{}: the barrier tidon needs cosched's scheduler in the kernel (remedy: add \
                 --scheduler ext, or choose another barrier, such as donate)",
                spec.places.command
            )));
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
