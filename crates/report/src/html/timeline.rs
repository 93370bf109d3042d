//! A snapshot as small data for the page, which a script draws when the page is opened.
//!
//! Ten minutes of 100 ms quanta are 6000 turns and more. As shapes they would be megabytes, and
//! slow. A span is therefore three whole numbers: tenths of a millisecond since the end of the span
//! before, its length, and the number of its set of CPUs. Times are rounded before differences are
//! taken, so errors do not add up.

use std::collections::HashMap;

use cosched_core::CpuSet;
use cosched_workload::escaped;
use serde_json::{Value, json};

use crate::panels::{Lane, Rows, SnapshotPlot};

/// This many units of the whole numbers are a second.
const UNIT: f64 = 10_000.0;

/// The data that `page.js` draws.
pub(super) fn encode(snapshot: &SnapshotPlot) -> Value {
    let mut sets = Sets::default();
    let spans: Vec<Vec<u64>> = snapshot.programs.iter().map(|lane| flat(lane, &mut sets)).collect();
    let names: Vec<String> = snapshot.programs.iter().map(|lane| escaped(&lane.name)).collect();
    let rows: Vec<String> = snapshot.row_names().iter().map(|name| escaped(name)).collect();
    let set = |cpus: &Option<CpuSet>| {
        json!({
            "name": cpus.map_or("all CPUs".to_owned(), |cpus| format!("CPUs {cpus}")),
            "rows": snapshot.ranges(cpus.as_ref()),
        })
    };
    let mut before = 0;
    let quanta = snapshot.quanta.iter().map(|at| {
        let at = whole(*at);
        let gap = at.saturating_sub(before);
        before = at;
        gap
    });
    json!({
        "unit": UNIT,
        "total": snapshot.total,
        "window": snapshot.window,
        "rows": match snapshot.rows {
            Rows::Cpus => "cpus",
            Rows::Programs | Rows::Turns => "programs",
        },
        "names": rows,
        "programs": names,
        "quanta": quanta.collect::<Vec<u64>>(),
        "spans": spans,
        "sets": sets.all.iter().map(set).collect::<Vec<Value>>(),
    })
}

/// The sets of CPUs in a snapshot, each once.
#[derive(Default)]
struct Sets {
    all: Vec<Option<CpuSet>>,
    known: HashMap<Option<CpuSet>, usize>,
}

impl Sets {
    fn index(&mut self, cpus: Option<CpuSet>) -> usize {
        *self.known.entry(cpus).or_insert_with(|| {
            self.all.push(cpus);
            self.all.len() - 1
        })
    }
}

fn flat(lane: &Lane, sets: &mut Sets) -> Vec<u64> {
    let mut before = 0;
    let spans = lane.spans.iter().flat_map(|span| {
        let (from, to) = (whole(span.0).max(before), whole(span.1).max(before));
        let numbers = [from - before, to - from, sets.index(span.2) as u64];
        before = to;
        numbers
    });
    spans.collect()
}

fn whole(seconds: f64) -> u64 {
    (seconds * UNIT).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit;

    #[test]
    fn spans_are_differences_and_sets_are_numbered() {
        let mut run = testkit::gang();
        run.programs[1].timeline[1].2 = None;
        let encoded = encode(&SnapshotPlot::of(&run));
        assert_eq!(
            encoded["spans"],
            json!([[0, 1500, 0, 1500, 1500, 0], [1500, 1500, 0, 1500, 1500, 1]])
        );
        assert_eq!(encoded["quanta"], json!([0, 1500, 1500, 1500]));
        assert_eq!(encoded["sets"][0], json!({"name": "CPUs 0-1", "rows": [[0, 1]]}));
        assert_eq!(encoded["sets"][1]["name"], "all CPUs");
    }

    #[test]
    fn rounding_does_not_add_up() {
        let mut run = testkit::gang();
        // A third of the unit is lost or won at every end.
        run.programs[0].timeline = (0..3000)
            .map(|i| f64::from(i) * 0.2000333)
            .map(|at| cosched_results::result::TimelineEntry(at, at + 0.1000333, None))
            .collect();
        let encoded = encode(&SnapshotPlot::of(&run));
        let numbers = encoded["spans"][0].as_array().unwrap().chunks(3);
        let end: u64 = numbers.map(|n| n[0].as_u64().unwrap() + n[1].as_u64().unwrap()).sum();
        assert_eq!(end, whole(2999.0 * 0.2000333 + 0.1000333));
    }
}
