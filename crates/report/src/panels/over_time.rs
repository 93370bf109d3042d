//! Averages over equal parts of a run, from changes at single instants.
//!
//! A plot is some hundred pixels wide, and a run has thousands of quanta. An average over each part
//! keeps the picture small, and shows what dots for single quanta would hide.

/// As many parts as a plot can show.
const PARTS: usize = 200;

/// The time-weighted average of a figure in each part of a run. `known` has its values in order of
/// time, each with the time from which on it holds. Before the first of these the figure is zero.
pub(super) fn averages(known: &[(f64, f64)], total: f64) -> Vec<f64> {
    let ends = known.iter().skip(1).map(|(at, _)| *at).chain([total]);
    let spans = known.iter().zip(ends).map(|((from, value), to)| (*from, to, *value));
    sums(spans, total)
}

/// For each part of a run, the sum of the values of the spans (from, to, value) in it, each
/// weighted with the share of the part that it covers.
pub(super) fn sums(spans: impl Iterator<Item = (f64, f64, f64)>, total: f64) -> Vec<f64> {
    let mut parts = vec![0.0; PARTS];
    let width = total / PARTS as f64;
    if width <= 0.0 {
        return parts;
    }
    for (from, to, value) in spans {
        let first = ((from / width) as usize).min(PARTS - 1);
        let last = ((to / width) as usize).min(PARTS - 1);
        for (part, sum) in parts.iter_mut().enumerate().take(last + 1).skip(first) {
            let (begin, end) = (part as f64 * width, (part + 1) as f64 * width);
            *sum += value * (to.min(end) - from.max(begin)).max(0.0) / width;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shows_the_average_of_what_lies_in_it() {
        // 200 parts of a second; 4 until the middle of the second one, 8 from then on.
        let averages = averages(&[(0.0, 4.0), (1.5, 8.0)], 200.0);
        assert_eq!((averages.len(), averages[0], averages[1], averages[2]), (200, 4.0, 6.0, 8.0));
        assert_eq!(averages[199], 8.0);
        assert!(super::averages(&[], 1.0).iter().all(|value| *value == 0.0));
    }
}
