//! The user's options for fair progress.

/// Options of `fair-progress`.
#[derive(Clone, Debug, PartialEq)]
pub struct FairOptions {
    /// The realistic peak of the machine's memory, cache lines of 64 bytes per microsecond. `None`:
    /// it is not known, and only a program that runs alone has little interference.
    pub peak: Option<f64>,
    /// How much CPU time training may leave idle, as a share of what programs use; 0: no training;
    /// `None`: no limit.
    pub training_limit: Option<f64>,
    /// Whether training goes to the program of which least is known (section 4.5), or to the first.
    pub distribution: bool,
    /// Whether programs with fluctuating phases are trained in sequence (section 4.4).
    pub sequential: bool,
    /// Whether the speed of phases that never had little interference is taken from quanta with the
    /// co-runners that disturb them least.
    pub by_corunners: bool,
    /// Whether phases are distinguished, by samples of programs' positions in their code. Otherwise
    /// a program has one phase.
    pub phases: bool,
    /// Whether nothing is estimated: only a simulator can tell how long work takes alone (the
    /// paper's optimal policy).
    pub optimal: bool,
}

impl Default for FairOptions {
    fn default() -> FairOptions {
        FairOptions {
            peak: None,
            training_limit: Some(0.02),
            distribution: true,
            sequential: true,
            by_corunners: false,
            phases: true,
            optimal: false,
        }
    }
}
