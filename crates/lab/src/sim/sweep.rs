//! `cosched sim --sweep`: the same workload with every combination of some settings, in one table.
//!
//! Everything is checked first: a wrong value in the last combination is told before the first one
//! is simulated. Runs do not know of each other, so they are spread over all CPUs, and their
//! results are the same as one by one.

mod axis;
mod report;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cosched_policy::Kind;
use cosched_workload::Workload;
use indicatif::{ProgressBar, ProgressStyle};

use super::options::RunOptions;
use super::simulator::{PreparedPrograms, Scene, SimulatedSolo, Simulator, tell_unscaled};
use crate::ui::failure::{self, Failure, both};
use crate::ui::{print, print_json, watched};
use axis::Axis;
use report::{SweepReport, SweepRow};

/// Simulates every combination, and shows what came of them.
pub(super) fn sweep(args: &RunOptions) -> Result<ExitCode, Failure> {
    let axes = axis::axes(args)?;
    let scenes = combinations(args, &axes)?;
    let kinds: Vec<Kind> = scenes.iter().map(|scene| scene.policy).collect();
    let used = both(args.how.check_use(&kinds), axis::check_use(&axes, &kinds));
    let ready = Simulator::with_workload(&scenes[0], args).and_then(|(_, workload)| {
        let point = |scene| SweepPoint::new(scene, &workload, args.max_events);
        let points = failure::all(scenes.iter().map(point))?;
        Ok((workload, points))
    });
    let (_, (workload, points)) = both(used, ready)?;

    if args.no_solo {
        tell_unscaled(&workload, &kinds);
    }
    let solos = match args.no_solo {
        true => Vec::new(),
        false => solo_tasks(&points, workload.programs.len()),
    };
    let bar = bar(solos.len() + points.len());
    let alone = parallel(&solos, &bar, |task| {
        let SweepPoint { simulator, prepared, .. } = &points[task.point];
        simulator.alone(&workload.programs[task.program], &prepared.jobs[task.program])
    })?;
    let rows = parallel(&points, &bar, |point| {
        let mut profiles = point.prepared.profiles.clone();
        for (program, profile) in profiles.iter_mut().enumerate() {
            if let Some(run) = found(&solos, &alone, &point.solo_key(), program) {
                run.note_in(profile);
            }
        }
        let scene = &point.simulator.scene;
        if !args.no_solo {
            point.simulator.scale(&workload, scene.policy, &mut profiles)?;
        }
        let jobs = &point.prepared.jobs;
        let ran = point.simulator.run(&workload, scene.policy, jobs, &profiles);
        let (.., result) = ran.map_err(|error| match error {
            Failure::Broken(text) => Failure::Broken(format!("{}: {text}", axis::name(scene))),
            other => other,
        })?;
        Ok(SweepRow::new(&axes, scene, &result))
    })?;
    bar.finish_and_clear();
    let report = SweepReport::new(&axes, rows);
    match args.json {
        true => print_json(&serde_json::to_string_pretty(&report).map_err(Failure::broken)?)?,
        false => print(&report.show())?,
    }
    Ok(if report.all_succeeded() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One combination, ready to be simulated.
struct SweepPoint {
    simulator: Simulator,
    prepared: PreparedPrograms,
}

impl SweepPoint {
    fn new(scene: &Scene, workload: &Workload, max_events: u64) -> Result<SweepPoint, Failure> {
        let mut simulator = Simulator::new(scene)?;
        simulator.pace.most_events = max_events;
        let prepared = simulator.prepare(workload)?;
        Ok(SweepPoint { simulator, prepared })
    }

    /// What the solo times depend on.
    fn solo_key(&self) -> SoloKey {
        let scene = &self.simulator.scene;
        let kernel = format!("{:?}", scene.kernel);
        (scene.machine.clone(), kernel, scene.how.placement().to_string(), scene.seed)
    }
}

type SoloKey = (String, String, String, u64);

/// A program to be run alone.
struct Solo {
    key: SoloKey,
    /// One of the points that need it.
    point: usize,
    program: usize,
}

/// Every program alone, once for all points for which that is the same.
fn solo_tasks(points: &[SweepPoint], programs: usize) -> Vec<Solo> {
    let mut tasks: Vec<Solo> = Vec::new();
    for (point, of) in points.iter().enumerate() {
        let key = of.solo_key();
        if !tasks.iter().any(|task| task.key == key) {
            let task = |program| Solo { key: key.clone(), point, program };
            tasks.extend((0..programs).map(task));
        }
    }
    tasks
}

fn found(
    tasks: &[Solo],
    runs: &[SimulatedSolo],
    key: &SoloKey,
    program: usize,
) -> Option<SimulatedSolo> {
    let position = tasks.iter().position(|task| task.key == *key && task.program == program)?;
    Some(runs[position])
}

/// All scenes, the last key changing fastest. Settings that a policy does not support are not
/// varied for it.
fn combinations(args: &RunOptions, axes: &[Axis]) -> Result<Vec<Scene>, Failure> {
    let mut scenes: Vec<Scene> = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let count: usize = axes.iter().map(Axis::len).product();
    for number in 0..count {
        let mut args = args.clone();
        let mut rest = number;
        for axis in axes.iter().rev() {
            axis.apply(rest % axis.len(), &mut args);
            rest /= axis.len();
        }
        let scene = Scene::of(&args, "; or several, with --sweep machine=A,B")?;
        let name = axis::name(&scene);
        if !seen.contains(&name) {
            seen.push(name);
            scenes.push(scene);
        }
    }
    Ok(scenes)
}

/// Does something with every item, on all CPUs; the results are in the order of the items.
fn parallel<T: Sync, R: Send>(
    items: &[T],
    bar: &ProgressBar,
    work: impl Fn(&T) -> Result<R, Failure> + Sync,
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<R, Failure>)>> = Mutex::default();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cpus.min(items.len()) {
            scope.spawn(|| {
                loop {
                    let position = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(position) else { return };
                    let result = work(item);
                    if result.is_err() {
                        // The others are not needed any more.
                        next.store(items.len(), Ordering::Relaxed);
                    }
                    bar.inc(1);
                    results
                        .lock()
                        .unwrap_or_else(|broken| broken.into_inner())
                        .push((position, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(|broken| broken.into_inner());
    results.sort_by_key(|(position, _)| *position);
    results.into_iter().map(|(_, result)| result).collect()
}

/// A bar that shows how far it is, where a user watches.
fn bar(tasks: usize) -> ProgressBar {
    if !watched() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:40} {pos} of {len} simulations, {eta} left");
    let bar = ProgressBar::new(tasks as u64);
    style.map_or(bar.clone(), |style| bar.with_style(style))
}
