//! Words as a user types them into a shell: commands that messages suggest.

use crate::shown::must_be_escaped;

/// A word of a command line. Characters that a terminal would obey stand in the `$'…'` form of bash
/// and POSIX of 2024, so that the word can be shown and typed.
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "@%+=:,./-_".contains(c);
    if !word.contains(must_be_escaped) {
        return match !word.is_empty() && word.chars().all(is_plain) {
            true => word.to_owned(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        };
    }
    let mut quoted = String::from("$'");
    for c in word.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\\' | '\'' => quoted.extend(['\\', c]),
            // Shells read all bytes of a character so, in every locale.
            c if must_be_escaped(c) => {
                let bytes = c.to_string().into_bytes();
                quoted.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
            }
            c => quoted.push(c),
        }
    }
    quoted + "'"
}

/// A whole command line.
pub fn join(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| quote(word.as_ref())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_shell_reads_what_is_suggested_as_it_was() {
        let words = [
            "a",
            "",
            "b  c",
            "it's",
            "\u{1b}[31m1",
            "x\ny\t'\\",
            "\u{202e}é",
            "\u{9b}7",
            "{a,b}",
            "!x",
            "~",
            "a*",
            "é=1",
        ];
        let line = join(words);
        assert!(!line.contains(must_be_escaped), "{line}");
        let script = format!("printf '%s\\0' {line}");
        let printed = Command::new("bash").args(["-c", &script]).output().unwrap().stdout;
        let read = String::from_utf8(printed).unwrap();
        assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), words);
        assert_eq!(quote("a\nb"), "$'a\\nb'");
        assert_eq!(join(["a", "it's"]), "a 'it'\\''s'");
    }
}
