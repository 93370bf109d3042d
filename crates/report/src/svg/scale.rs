//! An axis: the places of figures along it, and the round numbers next to it.

use super::Drawing;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    /// The values at both ends; the first one is smaller.
    pub(super) values: (f64, f64),
    /// The places of these, in pixels.
    pub(super) places: (f64, f64),
}

impl Scale {
    /// Where a value is; values beyond an end are at the end.
    pub(super) fn at(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
        self.places.0 + share * (self.places.1 - self.places.0)
    }

    /// At most about `count` round numbers within the axis, and the decimals that they need.
    pub(super) fn ticks(&self, count: usize) -> (Vec<f64>, usize) {
        let (low, high) = self.values;
        let rough = (high - low) / count.max(1) as f64;
        if !(rough > 0.0 && rough.is_finite()) {
            return (vec![low], 0);
        }
        let power = rough.log10().floor();
        let unit = 10f64.powf(power);
        let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * unit >= rough).unwrap_or(10.0);
        let step = factor * unit;
        // Half a millionth of a step may be lost on the way.
        let (first, last) =
            ((low / step - 5e-7).ceil() as i64, (high / step + 5e-7).floor() as i64);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        ((first..=last).map(|n| n as f64 * step).collect(), decimals)
    }

    /// Draws lines from `top` to `bottom` at round numbers, writes these below, and the axis' name
    /// at its right end.
    pub(super) fn draw_below(&self, drawing: &mut Drawing, top: f64, bottom: f64, name: &str) {
        let room = (self.places.1 - self.places.0) / 70.0;
        // A single number does not show how long the axis is.
        let (ticks, decimals) = self.ticks((room as usize).max(3));
        for tick in ticks {
            let x = self.at(tick);
            drawing.line((x, top), (x, bottom), "line");
            drawing.text(x, bottom + 14.0, "middle", "soft", format_args!("{tick:.decimals$}"));
        }
        drawing.text(self.places.1, bottom + 30.0, "end", "soft", name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_within_the_axis() {
        let scale = |low, high| Scale { values: (low, high), places: (0.0, 100.0) };
        assert_eq!(scale(0.0, 10.0).ticks(5), (vec![0.0, 2.0, 4.0, 6.0, 8.0, 10.0], 0));
        let (ticks, decimals) = scale(0.13, 0.61).ticks(5);
        let shown: Vec<String> = ticks.iter().map(|tick| format!("{tick:.decimals$}")).collect();
        assert_eq!(shown, ["0.2", "0.3", "0.4", "0.5", "0.6"]);
        assert_eq!(scale(3.0, 3.0).ticks(5), (vec![3.0], 0));
        assert_eq!(scale(0.0, 600.0).at(300.0), 50.0);
        assert_eq!(scale(0.0, 0.0).at(7.0), 0.0);
    }
}
