//! Suggestions for words that were mistyped: the known word that was probably meant.

/// At most one letter in so many may be wrong.
const LETTERS_PER_MISTAKE: usize = 3;
/// A shorter word is no beginning of another word, but chance.
const SHORTEST_BEGINNING: usize = 3;

/// The known word that is nearest to a mistyped one; `None` where none is near. A far-fetched
/// suggestion is worse than none: `stdout` does not mean `start`.
///
/// Near is a word that differs by few letters (missing, added, wrong or exchanged ones), or of
/// which one is the beginning of the other (`--output` for `--out`).
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().filter_map(|known| {
        let mistakes = strsim::damerau_levenshtein(word, known);
        let letters = word.chars().count().max(known.chars().count());
        let is_near = mistakes * LETTERS_PER_MISTAKE <= letters || begins(word, known);
        is_near.then_some((mistakes, known))
    });
    near.min_by_key(|(mistakes, _)| *mistakes).map(|(_, known)| known)
}

/// Whether one of two words is the beginning of the other.
fn begins(one: &str, other: &str) -> bool {
    let shorter = one.chars().count().min(other.chars().count());
    shorter >= SHORTEST_BEGINNING && (one.starts_with(other) || other.starts_with(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_words_find_the_one_that_was_meant() {
        let known = ["runs", "threads", "threshold", "policy", "out", "groups", "group-by"];
        for (word, meant) in [
            ("rounds", "runs"),
            ("thread", "threads"),
            ("polciy", "policy"),
            ("polcy", "policy"),
            ("output", "out"),
            ("group", "groups"),
        ] {
            assert_eq!(nearest(word, known), Some(meant), "{word}");
        }
    }

    #[test]
    fn words_that_only_look_alike_are_not_suggested() {
        for (word, known) in [
            ("stdout", "start"),
            ("stdin", "start"),
            ("threads", "threshold"),
            ("quux", "env"),
            ("no", "no-guard"),
        ] {
            assert_eq!(nearest(word, [known]), None, "{word}");
        }
    }
}
