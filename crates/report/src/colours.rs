//! The colours, by daylight and at night.
//!
//! The six colours of programs are from a search: of many random sets, this one has the largest
//! distance in OKLab between its two most similar colours. The distance counts with full colour
//! vision and without each of the three kinds of cones (Machado et al., 2009). Each colour has a
//! contrast of at least 3 to 1 with the paper. Colour is never the only sign: the seventh program
//! and later ones are hatched, names stand next to and in the bars, and every picture has a table.

use std::fmt::Write;

/// Colours by name.
pub(crate) type Palette = [(&'static str, &'static str); 12];

/// On white paper.
pub(crate) const DAY: Palette = [
    ("paper", "#ffffff"),
    ("card", "#f6f8fa"),
    ("ink", "#1b1f24"),
    ("soft", "#57606a"),
    ("line", "#d8dee4"),
    ("accent", "#0a5cad"),
    ("c0", "#cc6f0f"),
    ("c1", "#06a0b4"),
    ("c2", "#112d5e"),
    ("c3", "#921dd6"),
    ("c4", "#733412"),
    ("c5", "#1d6f7a"),
];

/// On a dark screen.
pub(crate) const NIGHT: Palette = [
    ("paper", "#14171c"),
    ("card", "#1d2229"),
    ("ink", "#e8ebef"),
    ("soft", "#a3adb8"),
    ("line", "#343b45"),
    ("accent", "#6cb6ff"),
    ("c0", "#c9a23c"),
    ("c1", "#34abd1"),
    ("c2", "#4460d7"),
    ("c3", "#dee515"),
    ("c4", "#a86244"),
    ("c5", "#3ee8db"),
];

/// How plots look, with colours by name.
pub(crate) const PLOTS: &str = include_str!("html/plots.css");

/// The palette as custom properties of a style sheet.
pub(crate) fn properties(palette: &Palette) -> String {
    palette.iter().fold(String::new(), |mut text, (name, value)| {
        write!(text, "--{name}:{value};").expect("a string takes any text");
        text
    })
}

/// How plots look, with values instead of names: programs that draw for papers do not support
/// custom properties.
pub(crate) fn plain(palette: &Palette) -> String {
    palette
        .iter()
        .fold(PLOTS.to_owned(), |css, (name, value)| css.replace(&format!("var(--{name})"), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the Web Content Accessibility Guidelines define them.
    fn contrast(a: &str, b: &str) -> f64 {
        let channel = |colour: &str, i: usize| {
            let value = u8::from_str_radix(&colour[i..i + 2], 16).unwrap();
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let luminance = |colour: &str| {
            0.2126 * channel(colour, 1) + 0.7152 * channel(colour, 3) + 0.0722 * channel(colour, 5)
        };
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        a.max(b) / a.min(b)
    }

    #[test]
    fn text_and_shapes_stand_out_from_the_paper() {
        for palette in [DAY, NIGHT] {
            let get = |key: &str| palette.iter().find(|(name, _)| *name == key).unwrap().1;
            for paper in [get("paper"), get("card")] {
                for text in ["ink", "soft", "accent"] {
                    assert!(contrast(get(text), paper) >= 4.5, "{text} on {paper}");
                }
            }
            for series in ["c0", "c1", "c2", "c3", "c4", "c5"] {
                assert!(contrast(get(series), get("paper")) >= 3.0, "{series}");
            }
        }
    }

    #[test]
    fn a_plot_of_its_own_has_no_colour_names() {
        assert!(PLOTS.contains("var(--c0)"));
        assert!(!plain(&DAY).contains("var("));
    }
}
