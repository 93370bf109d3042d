//! Profiles as a table and as JSON.

use serde::Serialize;

use super::Profiled;
use super::curve::{ideal_threads, speedup};
use crate::ui::table::{self, known};

const SCHEMA: &str = "cosched-profile/1";

#[derive(Serialize)]
struct ProfileDocument<'a> {
    schema: &'static str,
    programs: Vec<ProfiledProgram<'a>>,
}

#[derive(Serialize)]
struct ProfiledProgram<'a> {
    name: &'a str,
    command: &'a [String],
    placement: String,
    threads: Vec<PointDocument>,
    /// `null` where fewer than two thread counts were measured.
    ideal_threads: Option<u16>,
}

#[derive(Serialize)]
struct PointDocument {
    threads: u16,
    solo_seconds: f64,
    runs: u16,
    run_seconds: Vec<f64>,
    /// Against the smallest thread count that was measured.
    speedup: Option<f64>,
    misses_per_kilo_instruction: Option<f64>,
    miss_ratio: Option<f64>,
    /// What disturbed the times, so that none was kept.
    disturbed: Option<String>,
}

pub(super) fn json(profiles: &[Profiled<'_>]) -> String {
    let programs = profiles.iter().map(|program| {
        let curve = program.curve();
        let points = program.entries.iter().zip(&curve).zip(&program.disturbed);
        let points = points.map(|(((threads, entry), point), disturbed)| PointDocument {
            threads: *threads,
            solo_seconds: entry.solo.as_secs_f64(),
            runs: entry.runs,
            run_seconds: entry.times.iter().map(|time| time.as_secs_f64()).collect(),
            speedup: speedup(&curve, *point),
            misses_per_kilo_instruction: entry.misses_per_kilo_instruction,
            miss_ratio: entry.miss_ratio,
            disturbed: disturbed.clone(),
        });
        ProfiledProgram {
            name: &program.spec.name,
            command: &program.spec.command,
            placement: program.placement.to_string(),
            threads: points.collect(),
            ideal_threads: ideal_threads(&curve),
        }
    });
    let document = ProfileDocument { schema: SCHEMA, programs: programs.collect() };
    serde_json::to_string_pretty(&document).expect("there is no map, so it can be written as JSON")
}

/// The profiles for people: a row per program and thread count.
pub(super) fn table(profiles: &[Profiled<'_>]) -> String {
    let header = ["program", "threads", "solo s", "runs", "speedup", "misses/1000 instr.", "ideal"];
    let mut table = table::figures(&header);
    for program in profiles {
        let curve = program.curve();
        let ideal = ideal_threads(&curve);
        for ((threads, entry), point) in program.entries.iter().zip(&curve) {
            table.add_row([
                program.spec.name.clone(),
                threads.to_string(),
                format!("{:.3}", entry.solo.as_secs_f64()),
                entry.runs.to_string(),
                known(speedup(&curve, *point), 2),
                known(entry.misses_per_kilo_instruction, 2),
                if ideal == Some(*threads) { "*" } else { "" }.to_owned(),
            ]);
        }
    }
    match profiles.iter().any(|program| program.entries.len() > 1) {
        true => format!("{table}\n* the fewest threads with 80 % of the best speedup."),
        false => table.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use cosched_core::Nanos;
    use cosched_policy::Placement;
    use cosched_workload::Workload;

    use super::*;
    use crate::store::SoloRecord;

    fn shown(times: &[(u16, u64)], show: fn(&[Profiled<'_>]) -> String) -> String {
        let commands = vec![vec!["cg".to_owned()]];
        let workload = Workload::from_commands(commands, "/tmp".as_ref()).unwrap();
        let entry = |(threads, seconds): &(u16, u64)| {
            let solo = Nanos::from_secs(*seconds);
            let measured_at = String::new();
            let (misses_per_kilo_instruction, miss_ratio) = (None, None);
            let (runs, times) = (3, vec![solo; 3]);
            let entry = SoloRecord {
                solo,
                runs,
                times,
                cpu: None,
                misses_per_kilo_instruction,
                miss_ratio,
                measured_at,
            };
            (*threads, entry)
        };
        let entries = times.iter().map(entry).collect();
        let (spec, placement) = (&workload.programs[0], Placement::Spread);
        show(&[Profiled { spec, placement, entries, disturbed: vec![None; times.len()] }])
    }

    #[test]
    fn scripts_find_the_curve_and_the_ideal_count() {
        let document: serde_json::Value =
            serde_json::from_str(&shown(&[(1, 10), (2, 5), (4, 4)], json)).unwrap();
        assert_eq!(document["schema"], "cosched-profile/1");
        let program = &document["programs"][0];
        assert_eq!(program["name"], "cg");
        assert_eq!(program["command"][0], "cg");
        assert_eq!(program["placement"], "spread");
        assert_eq!(program["ideal_threads"], 2);
        let point = serde_json::json!({
            "threads": 4, "solo_seconds": 4.0, "runs": 3, "run_seconds": [4.0, 4.0, 4.0],
            "speedup": 2.5,
            "misses_per_kilo_instruction": null, "miss_ratio": null,
            "disturbed": null
        });
        assert_eq!(program["threads"][2], point);
    }

    #[test]
    fn people_see_the_ideal_count_marked() {
        let text = shown(&[(1, 10), (2, 5), (4, 4)], table);
        let marked: Vec<&str> =
            text.lines().filter(|line| line.trim_end().ends_with('*')).collect();
        assert_eq!(marked.len(), 1, "{text}");
        assert!(marked[0].contains("5.000") && marked[0].contains("2.00"), "{text}");
    }

    #[test]
    fn misses_are_shown_where_they_were_counted() {
        assert_eq!(known(Some(2.504), 2), "2.50");
        let text = shown(&[(2, 5)], table);
        assert!(text.contains("misses/1000 instr.") && text.contains('–'), "{text}");
    }

    #[test]
    fn a_single_count_is_shown_without_a_mark() {
        assert!(!shown(&[(2, 5)], table).contains('*'));
    }
}
