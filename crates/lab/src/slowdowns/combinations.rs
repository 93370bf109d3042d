//! Which variants run together, and the table that follows from what was measured.

use std::collections::BTreeMap;

use cosched_results::statistics::median;

use crate::slowdown_document::SlowdownTable;

/// A variant at a place: places are sets of CPUs, so a variant alone is compared on the same CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlacedVariant {
    pub(super) place: usize,
    pub(super) variant: usize,
}

/// Every variant alone at every place, every pair, and every triple if there are three places.
pub(super) fn combinations(variants: usize, places: usize) -> Vec<Vec<PlacedVariant>> {
    let alone = (0..variants)
        .flat_map(|variant| (0..places).map(move |place| vec![PlacedVariant { place, variant }]));
    let pairs = (0..variants).flat_map(|a| (a..variants).map(move |b| vec![a, b]));
    let triples = (0..variants).flat_map(move |a| {
        (a..variants).flat_map(move |b| (b..variants).map(move |c| vec![a, b, c]))
    });
    let together = pairs.chain(triples.filter(|_| places > 2));
    let placed = together.map(|variants| {
        let placed = variants.into_iter().enumerate();
        placed.map(|(place, variant)| PlacedVariant { place, variant }).collect()
    });
    alone.chain(placed).collect()
}

/// What a combination is called in messages.
pub(super) fn kind(combination: &[PlacedVariant]) -> &'static str {
    match combination.len() {
        1 => "alone",
        2 => "in pairs",
        _ => "in triples",
    }
}

/// The traffic of each variant alone, and the slowdowns: medians over whole rounds, each of which
/// has the GB/s of every program of every combination. A program is compared with itself alone at
/// its place in the same round.
pub(super) fn derive(
    combinations: &[Vec<PlacedVariant>],
    rounds: &[&[Vec<f64>]],
) -> (Vec<f64>, SlowdownTable) {
    let mut levels: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut slowdowns: BTreeMap<(usize, Vec<usize>), Vec<f64>> = BTreeMap::new();
    for round in rounds {
        let alone = |one: PlacedVariant| {
            let at = combinations.iter().position(|other| other[..] == [one]);
            at.map_or(f64::NAN, |at| round[at][0])
        };
        for (together, rates) in combinations.iter().zip(*round) {
            for (position, one) in together.iter().enumerate() {
                let others: Vec<usize> = together
                    .iter()
                    .enumerate()
                    .filter(|(other, _)| *other != position)
                    .map(|(_, other)| other.variant)
                    .collect();
                if others.is_empty() && one.place == 0 {
                    levels.entry(one.variant).or_default().push(rates[position]);
                } else if !others.is_empty() {
                    let slowdown = alone(*one) / rates[position];
                    slowdowns.entry((one.variant, others)).or_default().push(slowdown);
                }
            }
        }
    }
    let middle = |values: &Vec<f64>| median(values).unwrap_or(f64::NAN);
    let levels = levels.values().map(|rates| (100.0 * middle(rates)).round() / 100.0).collect();
    let table = slowdowns.iter().map(|(key, values)| (key.clone(), middle(values))).collect();
    (levels, SlowdownTable(table))
}

#[cfg(test)]
mod tests {
    use cosched_policy::Slowdowns;

    use super::*;

    fn count(variants: usize, places: usize) -> [usize; 3] {
        let all = combinations(variants, places);
        [1, 2, 3].map(|size| all.iter().filter(|together| together.len() == size).count())
    }

    /// The thesis' five variants: 15 pairs and 35 triples.
    #[test]
    fn five_variants_make_15_pairs_and_35_triples() {
        assert_eq!(count(5, 3), [15, 15, 35]);
        assert_eq!(count(5, 2), [10, 15, 0]);
    }

    /// Alone, a quiet variant moves 2 GB/s, and a loud one 10 GB/s at the first place, 8 at the
    /// second, and 5 at the third. Together each moves a part of that.
    fn round(part: impl Fn(usize, &[usize]) -> f64, places: usize) -> Vec<Vec<f64>> {
        let alone = |one: &PlacedVariant| match one.variant {
            0 => 2.0,
            _ => [10.0, 8.0, 5.0][one.place],
        };
        let rates = |together: &Vec<PlacedVariant>| {
            let variants: Vec<usize> = together.iter().map(|one| one.variant).collect();
            together.iter().map(|one| alone(one) * part(one.variant, &variants)).collect()
        };
        combinations(2, places).iter().map(rates).collect()
    }

    /// In a pair of loud ones each has half, and in a triple a third; all others lose nothing.
    fn usual(variant: usize, together: &[usize]) -> f64 {
        let loud = together.iter().filter(|one| **one == 1).count();
        if variant == 1 { 1.0 / loud as f64 } else { 1.0 }
    }

    #[test]
    fn a_variant_is_compared_with_itself_at_the_same_place() {
        let usual = round(usual, 3);
        // A disturbed round, in which the pairs of loud ones seem much slower.
        let busy = round(|_, together| if together == [1, 1] { 0.1 } else { 1.0 }, 3);
        let all = combinations(2, 3);
        let (levels, table) = derive(&all, &[&usual, &busy, &usual]);
        assert_eq!(levels, [2.0, 10.0]);
        let text = table.spread_out("s", "m".to_owned(), levels).toml();
        let read = Slowdowns::parse(&text).unwrap();
        let of = |own: f64, others: &[f64]| (read.of(own, others) * 1e3).round() / 1e3;
        assert_eq!(of(10.0, &[10.0]), 2.0);
        assert_eq!(of(10.0, &[2.0]), 1.0);
        assert_eq!(of(2.0, &[10.0, 10.0]), 1.0);
        assert_eq!([of(10.0, &[10.0, 2.0]), of(10.0, &[10.0, 10.0])], [2.0, 3.0]);
    }

    #[test]
    fn two_places_give_a_table_of_pairs() {
        let usual = round(usual, 2);
        let (levels, table) = derive(&combinations(2, 2), &[&usual]);
        let text = table.spread_out("s", "m".to_owned(), levels).toml();
        assert!(!text.contains("triples"), "{text}");
        let read = Slowdowns::parse(&text).unwrap();
        assert!((read.of(10.0, &[10.0]) - 2.0).abs() < 1e-3);
    }
}
