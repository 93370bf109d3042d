//! The workloads of the check: each stands for one way in which programs hinder each other, from
//! barely to badly.

use super::program::{KernelProgram, KernelRun};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Mixture {
    pub(super) name: &'static str,
    pub(super) programs: Vec<KernelRun>,
}

/// All workloads for a machine of so many CPUs. Each program takes some tenths of a second alone.
pub(super) fn all(cpus: u16) -> Vec<Mixture> {
    let storm =
        |grain, work| KernelRun { kernel: KernelProgram::Barriers { grain }, threads: cpus, work };
    let lock = |gap, work| KernelRun {
        kernel: KernelProgram::Lock { hold: 300.0, gap },
        threads: cpus,
        work,
    };
    let compute = |threads, work| KernelRun { kernel: KernelProgram::Compute, threads, work };
    let triad = |threads, work| KernelRun {
        kernel: KernelProgram::Triad { mebibytes: 96.0 },
        threads,
        work,
    };
    let mixture = |name, programs: &[&[KernelRun]]| Mixture { name, programs: programs.concat() };
    vec![
        mixture("barriers-30us x2", &[&[storm(30.0, 0.15); 2]]),
        mixture("barriers-300us x2", &[&[storm(300.0, 0.2); 2]]),
        mixture("barriers-300us x4", &[&[storm(300.0, 0.15); 4]]),
        mixture("barriers-3ms x3", &[&[storm(3000.0, 0.2); 3]]),
        mixture("barriers-300us, 1 hog", &[&[storm(300.0, 0.2)], &[compute(1, 0.13)]]),
        mixture("barriers-300us, 4 hogs", &[&[storm(300.0, 0.15)], &[compute(1, 0.1); 4]]),
        mixture("lock-1us x2", &[&[lock(1000.0, 0.2); 2]]),
        mixture("lock-3us x3", &[&[lock(3000.0, 0.2); 3]]),
        mixture("lock-10us, 2 hogs", &[&[lock(10_000.0, 0.2)], &[compute(1, 0.1); 2]]),
        mixture("compute x2", &[&[compute(cpus, 0.3); 2]]),
        mixture("compute x5", &[&[compute(1, 0.1); 5]]),
        mixture("triad x2", &[&[triad(cpus, 0.2); 2]]),
        mixture("triad-1 x4", &[&[triad(1, 0.1); 4]]),
        mixture("triad, 2 hogs", &[&[triad(cpus, 0.2)], &[compute(1, 0.1); 2]]),
        mixture(
            "mixed",
            &[&[storm(300.0, 0.15), lock(3000.0, 0.2), compute(1, 0.1), triad(cpus, 0.15)]],
        ),
    ]
}

/// Enough to see that everything works.
pub(super) fn quick(cpus: u16) -> Vec<Mixture> {
    let little = |mixture: &Mixture| Mixture {
        programs: mixture
            .programs
            .iter()
            .map(|p| KernelRun { work: p.work / 20.0, ..*p })
            .collect(),
        ..mixture.clone()
    };
    let chosen = ["barriers-3ms x3", "mixed"];
    all(cpus).iter().filter(|mixture| chosen.contains(&mixture.name)).map(little).collect()
}

#[cfg(test)]
mod tests {
    use super::super::constants::ConstantRuns;
    use super::*;

    #[test]
    fn what_is_checked_was_not_calibrated_with() {
        let runs = ConstantRuns::new(2, 1.0);
        let checked: Vec<KernelRun> =
            all(2).into_iter().flat_map(|mixture| mixture.programs).collect();
        assert!(checked.iter().all(|program| !runs.programs().contains(program)));
        // Nor with the same parameters of a kernel, where it has any.
        let knobs = |program: &KernelRun| {
            (program.kernel != KernelProgram::Compute).then_some(program.kernel)
        };
        let calibrated: Vec<KernelProgram> = runs.programs().iter().filter_map(knobs).collect();
        assert!(checked.iter().filter_map(knobs).all(|kernel| !calibrated.contains(&kernel)));
    }
}
