//! Solo times that other processes disturbed: they are shown with the reason, and never kept.

use std::fmt;

use cosched_core::format::list;

use super::SoloRun;

/// What other processes did while a program was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Disturbance {
    /// In words, as part of a sentence.
    pub(super) what: String,
    /// How many CPUs other processes used.
    pub(super) cpus: f64,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

pub(super) fn worst(made: &[SoloRun]) -> Option<&Disturbance> {
    let all = made.iter().filter_map(|run| run.disturbed.as_ref());
    all.max_by(|a, b| a.cpus.total_cmp(&b.cpus))
}

/// Says that times were not kept, why, and what to do; `None`: all were kept. `same`: the names of
/// other programs that are the same.
pub(super) fn not_kept(
    name: &str,
    same: &[String],
    threads: u16,
    made: &[SoloRun],
) -> Option<String> {
    let what = &worst(made)?.what;
    let disturbed = made.iter().filter(|run| run.disturbed.is_some()).count();
    let of_them = match (disturbed, made.len()) {
        (1, 1) => String::new(),
        (n, all) => {
            let were = if n == 1 { "was" } else { "were" };
            format!(" {n} of {all} runs {were} disturbed and")
        }
    };
    let worst = if disturbed > 1 { " in the worst one" } else { "" };
    let same = match same {
        [] => String::new(),
        same => format!(" (the same as {})", list(same)),
    };
    Some(format!(
        "{name}{same} alone, threads: {threads}:{of_them} not kept: {what}{worst}; run it again \
         when the machine is idle."
    ))
}

#[cfg(test)]
mod tests {
    use cosched_core::Nanos;

    use super::*;

    #[test]
    fn what_is_not_kept_is_said_with_the_worst_disturbance() {
        let run = |cpus: Option<f64>| SoloRun {
            turnaround: Nanos::from_secs(1),
            disturbed: cpus.map(|cpus| Disturbance {
                what: format!("other processes used {cpus:.1} of 2 CPUs"),
                cpus,
            }),
            ..SoloRun::default()
        };
        assert_eq!(not_kept("cg", &[], 2, &[run(None), run(None)]), None);
        assert_eq!(
            not_kept("cg", &[], 2, &[run(Some(1.2))]).unwrap(),
            "cg alone, threads: 2: not kept: other processes used 1.2 of 2 CPUs; run it again when \
             the machine is idle."
        );
        let several = not_kept("cg", &[], 2, &[run(Some(0.4)), run(None), run(Some(1.2))]).unwrap();
        let part = "2 of 3 runs were disturbed and not kept: other processes used 1.2 of 2 CPUs in \
                    the worst one;";
        assert!(several.contains(part), "{several}");
    }
}
