//! Text of users in messages: a name may hold anything, and a terminal must not obey it.
//!
//! Control characters are escaped, and what is too long for a line loses its middle: both ends of a
//! name tell more than its first half.

use std::path::{Path, PathBuf};

/// Longer words are cut to so many characters.
const MAX_WORD: usize = 80;
/// A message that lists keys is longer than one that holds a value.
const MAX_MESSAGE: usize = 1000;
/// Users copy paths, so only paths are cut that are too long to read anyway.
const MAX_PATH: usize = 400;

/// A word, fit for a message.
pub fn shown(word: &str) -> String {
    escaped(&cut(word, MAX_WORD))
}

/// A message of another library, fit for a line: what it quotes may be of any length.
pub fn brief(message: &str) -> String {
    let in_quotes = |message: &str, quote: &str| {
        let pieces = message.split(quote).enumerate();
        let pieces = pieces.map(|(i, piece)| match i % 2 {
            1 => cut(piece, MAX_WORD),
            _ => piece.to_owned(),
        });
        pieces.collect::<Vec<_>>().join(quote)
    };
    let message = in_quotes(&in_quotes(message.trim_end(), "\""), "`");
    escaped(&cut(&message, MAX_MESSAGE))
}

/// A number, fit for a message: with an exponent where its digits would fill lines.
pub fn figure(value: f64) -> String {
    match value.abs() {
        0.0 | 1e-4..1e16 => value.to_string(),
        _ => format!("{value:e}"),
    }
}

/// A path, fit for a message. Parts that lead nowhere are left out: `/tmp/./run` is `/tmp/run`.
pub fn shown_path(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut short = path.components().collect::<PathBuf>().to_string_lossy().into_owned();
    // It tells that a folder is meant.
    if text.ends_with('/') && !short.ends_with('/') {
        short.push('/');
    }
    escaped(&cut(&short, MAX_PATH))
}

/// The same text with escapes instead of characters that must not reach a terminal.
pub fn escaped(text: &str) -> String {
    replaced(text, must_be_escaped, |c| c.escape_default().to_string())
}

/// Escapes as [`escaped`], but leaves line breaks and tabs.
pub fn escaped_lines(text: &str) -> String {
    replaced(text, is_not_layout, |c| c.escape_default().to_string())
}

/// A JSON document that says the same, with JSON's escapes for what must not reach a terminal.
pub fn escaped_json(document: &str) -> String {
    replaced(document, is_not_layout, |c| {
        let units = c.encode_utf16(&mut [0; 2]).to_vec();
        units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
    })
}

fn replaced(text: &str, which: fn(char) -> bool, by: impl Fn(char) -> String) -> String {
    text.chars().map(|c| if which(c) { by(c) } else { c.to_string() }).collect()
}

fn is_not_layout(c: char) -> bool {
    must_be_escaped(c) && !matches!(c, '\n' | '\t')
}

/// Whether a terminal would obey a character, show others in another order because of it, or not
/// show it: control characters, Unicode's Bidi_Control and separators, and marks without width.
pub fn must_be_escaped(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

fn cut(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(length - half).collect();
    format!("{first}…{last}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_the_rest_is_left_as_it_is() {
        assert_eq!(shown("a\u{202e}txt.exe"), "a\\u{202e}txt.exe");
        assert_eq!(shown("a\u{200b}\u{2067}\u{feff}"), "a\\u{200b}\\u{2067}\\u{feff}");
        assert_eq!(shown("\u{ad}\u{180e}\u{e0041}"), "\\u{ad}\\u{180e}\\u{e0041}");
        assert_eq!(shown("a\u{1b}[31mb\r\n\u{9b}c"), "a\\u{1b}[31mb\\r\\n\\u{9b}c");
        assert_eq!(shown("été 'x' \"y\" \\z"), "été 'x' \"y\" \\z");
    }

    #[test]
    fn lines_keep_their_breaks_and_documents_their_meaning() {
        assert_eq!(escaped_lines("a\tb\u{7}\r\nc\u{9b}"), "a\tb\\u{7}\\r\nc\\u{9b}");
        assert_eq!(
            escaped_json("{\n\t\"a\u{9b}\": \"\u{202e}é\"\n}"),
            "{\n\t\"a\\u009b\": \"\\u202eé\"\n}"
        );
        assert_eq!(escaped_json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
    }

    #[test]
    fn paths_are_shown_without_parts_that_lead_nowhere() {
        for (path, expected) in
            [("/tmp/./run", "/tmp/run"), ("./run", "./run"), ("a//b/./", "a/b/"), ("/", "/")]
        {
            assert_eq!(shown_path(Path::new(path)), expected);
        }
    }

    #[test]
    fn messages_keep_all_but_long_values() {
        let keys = (0..99).map(|i| format!("`key{i}`")).collect::<Vec<_>>().join(", ");
        assert_eq!(brief(&keys), keys);
        let long = "a ".repeat(50_000);
        let cut = brief(&format!("invalid type: string \"{long}\", expected f64"));
        assert!(
            cut.starts_with("invalid type: string \"a a") && cut.ends_with("a \", expected f64")
        );
        assert!(cut.chars().count() < 200, "{cut}");
        assert_eq!(brief(&long).chars().count(), MAX_MESSAGE + 1);
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 1.5, 1e9, 1e308, -1e-320, f64::NAN, f64::INFINITY].map(figure);
        assert_eq!(shown, ["0", "1.5", "1000000000", "1e308", "-1e-320", "NaN", "inf"]);
    }

    #[test]
    fn long_words_keep_both_ends() {
        let long = format!("first{}last", "é".repeat(500));
        let shown = shown(&long);
        assert_eq!(shown.chars().count(), MAX_WORD + 1);
        assert!(shown.starts_with("firsté") && shown.ends_with("élast"), "{shown}");
        assert_eq!(shown_path(Path::new(&"x".repeat(MAX_PATH))), "x".repeat(MAX_PATH));
    }
}
