//! hwloc's synthetic topologies: `package:4 l3:1 l2:3 core:2 pu:1`, the number of each in one of
//! the level before.
//!
//! The syntax is that of hwloc 2: full and short names in any case (`Package`, `pack`, `L3Cache`,
//! `L3`), with attributes in parentheses and memory in brackets (`L3Cache:1(size=32MB)`,
//! `[NUMANode(memory=1GB)]`). Numbers alone (`2 4 2`) get types from wide to narrow: package, NUMA
//! node, L3, L2, L1, core, PU. Which of these are used depends on the number of levels, as in
//! hwloc's `topology-synthetic.c`.
//!
//! The model knows packages, L3, L2, cores and PUs. Other levels between them (machine, group, die,
//! NUMA node, L1, L4, L5) divide the next level: `die:2 core:4` are eight cores. Attributes are
//! skipped: the cache's size is `cache_mib`, and CPUs are numbered in their order. Without cores
//! every PU is one.

use cosched_core::{MAX_CPUS, Topology};

/// The levels that the model knows, from wide to narrow.
const LEVELS: [&str; 5] = ["package", "l3", "l2", "core", "pu"];
const CORE: usize = 3;
const PU: usize = 4;

const HELP: &str = "write it as 'package:4 l3:1 l2:3 core:2 pu:1', from wide to narrow; the types \
                    are machine, group, package (socket), die, numanode (node), l5 to l1 (l3cache, \
                    l1d, l1i), core and pu, short names too, and those of package, l3, l2, core \
                    and pu come at most once";

/// The meaning of a word.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    /// A position in [`LEVELS`].
    Known(usize),
    /// It divides the next one.
    Between,
}

/// Reads an hwloc synthetic string.
///
/// # Errors
/// When a word is no type with a count, a level comes twice or in the wrong order, or there are too
/// many CPUs.
pub fn topology(text: &str) -> Result<Topology, String> {
    let bare = without_attributes(text)?;
    let words: Vec<&str> = bare.split_whitespace().collect();
    let untyped = words.iter().all(|word| !word.contains(':'));
    let types = untyped.then(|| types_of(words.len()));
    let mut counts = [1u16; 5];
    let (mut from, mut between, mut given) = (0, 1u16, [false; 5]);
    for (position, word) in words.iter().enumerate() {
        let wrong = || format!("'{word}' is not understood; {HELP}");
        let (kind, count) = match (word.split_once(':'), &types) {
            (Some((name, count)), _) => (type_of(name).ok_or_else(wrong)?, count),
            (None, Some(types)) => (types[position], *word),
            // hwloc takes the last one for PUs.
            (None, None) if position + 1 == words.len() => (Type::Known(PU), *word),
            (None, None) => return Err(wrong()),
        };
        let count = match count.parse::<u64>() {
            Ok(0) => {
                return Err(format!("'{word}' is not understood: a count is 1 or more; {HELP}"));
            }
            Ok(count) => u16::try_from(count).map_err(|_| too_many(count))?,
            Err(_) => return Err(wrong()),
        };
        let count = count.checked_mul(between).ok_or_else(|| too_many(u64::from(count)))?;
        match kind {
            Type::Between => between = count,
            Type::Known(level) if level < from => return Err(wrong()),
            Type::Known(level) => {
                (counts[level], given[level]) = (count, true);
                (from, between) = (level + 1, 1);
            }
        }
    }
    if between > 1 || !given.contains(&true) {
        let problem = if words.is_empty() { "is empty" } else { "has no cores or PUs" };
        return Err(format!("{problem}; {HELP}"));
    }
    if !given[CORE] {
        counts.swap(CORE, PU);
    }
    let cpus: u64 = counts.iter().fold(1, |all: u64, count| all.saturating_mul(u64::from(*count)));
    let [packages, llcs, l2s, cores, smt] = counts;
    match cpus <= MAX_CPUS as u64 {
        true => Ok(Topology::regular(packages, llcs, l2s, cores, smt)),
        false => Err(too_many(cpus)),
    }
}

fn too_many(cpus: u64) -> String {
    format!("has {cpus} CPUs, and the most are {MAX_CPUS}")
}

/// The string without the parts in parentheses and brackets.
///
/// # Errors
/// When one of these is not closed.
pub(super) fn without_attributes(text: &str) -> Result<String, String> {
    let mut open: Vec<char> = Vec::new();
    let mut bare = String::new();
    for sign in text.chars() {
        match sign {
            '(' => open.push(')'),
            '[' => open.push(']'),
            ')' | ']' if open.pop() == Some(sign) => bare.push(' '),
            ')' | ']' => return Err(format!("'{sign}' closes nothing; {HELP}")),
            _ if open.is_empty() => bare.push(sign),
            _ => {}
        }
    }
    match open.pop() {
        Some(sign) => Err(format!("'{sign}' is missing; {HELP}")),
        None => Ok(bare),
    }
}

/// The type of a name as hwloc reads it: at least two letters of it, in any case; a cache by its
/// level and kind; a group may have a number.
fn type_of(name: &str) -> Option<Type> {
    const NAMES: [(&str, Type); 9] = [
        ("package", Type::Known(0)),
        ("socket", Type::Known(0)),
        ("core", Type::Known(CORE)),
        ("pu", Type::Known(PU)),
        ("machine", Type::Between),
        ("die", Type::Between),
        ("numanode", Type::Between),
        ("node", Type::Between),
        ("group", Type::Between),
    ];
    let name = name.to_lowercase();
    let stem = match name.strip_prefix("group") {
        Some(number) if number.chars().all(|digit| digit.is_ascii_digit()) => "group",
        _ => &name,
    };
    let is_it = |full: &str| stem.len() >= 2 && full.starts_with(stem);
    let found = NAMES.into_iter().find(|(full, _)| is_it(full)).map(|(_, kind)| kind);
    found.or_else(|| cache(&name))
}

/// `l3`, `l3cache`, `l1d`, `l1icache`, `l2u`.
fn cache(name: &str) -> Option<Type> {
    let mut signs = name.strip_prefix('l')?.chars();
    let level = signs.next().filter(|level| ('1'..='5').contains(level))?;
    let rest = signs.as_str();
    let rest = rest.strip_prefix(['d', 'i', 'u']).unwrap_or(rest);
    let kind = LEVELS.iter().position(|known| *known == format!("l{level}"));
    "cache".starts_with(rest).then(|| kind.map_or(Type::Between, Type::Known))
}

/// The types that hwloc gives to this many numbers without types. There are always PUs; NUMA nodes,
/// packages, cores, up to four caches and groups are added with more numbers.
fn types_of(numbers: usize) -> Vec<Type> {
    let more = numbers.saturating_sub(1);
    let caches = more.saturating_sub(3).min(4);
    let groups = more.saturating_sub(3 + caches);
    let l3 = (caches >= 3).then_some(Type::Known(1));
    let l2 = (caches >= 1).then_some(Type::Known(2));
    let l1 = caches - usize::from(l3.is_some()) - usize::from(l2.is_some());
    let mut types = vec![Type::Between; groups];
    types.extend((more >= 2).then_some(Type::Known(0)));
    types.extend((more >= 1).then_some(Type::Between));
    types.extend(l3.into_iter().chain(l2));
    types.extend(vec![Type::Between; l1]);
    types.extend((more >= 3).then_some(Type::Known(CORE)));
    types.extend((numbers >= 1).then_some(Type::Known(PU)));
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(text: &str, expected: &str) {
        let (found, expected) = (topology(text).unwrap(), topology(expected).unwrap());
        assert_eq!(found.cpus(), expected.cpus(), "{text}");
    }

    #[test]
    fn full_and_short_names_in_any_case_are_the_same() {
        let plain = "package:2 l3:1 core:8 pu:2";
        same("Package:2 L3Cache:1 Core:8 PU:2", plain);
        same("PACK:2 L3:1 co:8 Pu:2", plain);
        same("socket:2 L3uCache:1 core:8 L1d:1 L1iCache:1 pu:2", plain);
        same("machine:1 group0:2 Package:1 l3:1 core:8 2", plain);
    }

    #[test]
    fn unknown_levels_divide_the_next_one() {
        same("package:2 die:2 l3:1 core:4 pu:1", "package:2 l3:2 core:4 pu:1");
        same("NUMANode:2 pack:1 core:4", "package:2 core:4");
        same("pack:1 NUMANode:2 core:4 pu:2", "package:1 core:8 pu:2");
        same("package:2 l4:2 l2:1 l1:2 core:1", "package:2 l2:2 core:2");
    }

    #[test]
    fn attributes_and_memory_are_skipped() {
        let exported = "[NUMANode(memory=8054648832 memorysidecachesize=1024)] \
                        Package:1(indexes=0) L3Cache:1(size=6291456) L2Cache:2(size=262144) \
                        L1dCache:1(size=32768) Core:1 PU:2(indexes=2*2:1*2)";
        same(exported, "package:1 l3:1 l2:2 core:1 pu:2");
        same("pack:2 [NUMANode(memory=1GB)] core:4 [numa] pu:2", "package:2 core:4 pu:2");
    }

    #[test]
    fn numbers_alone_have_the_types_that_hwloc_gives_them() {
        same("8", "core:8");
        same("2 4", "core:8");
        same("2 4 2", "package:2 core:8");
        same("2 2 3 2", "package:2 core:6 pu:2");
        same("2 2 3 2 1", "package:2 l2:6 core:2 pu:1");
        same("2 1 2 3 2 1 2", "package:2 l3:2 l2:3 core:2 pu:2");
    }

    #[test]
    fn unreadable_words_are_refused_with_the_remedy() {
        let refusal = |text: &str| topology(text).unwrap_err();
        for text in
            ["cores:3", "package:0", "core:2 package:2", "l3:1 l3:2", "l6:1", "p:2", "core:x"]
        {
            let message = refusal(text);
            assert!(
                message.contains("is not understood") && message.contains("numanode"),
                "{message}"
            );
        }
        assert!(refusal("").starts_with("is empty"));
        assert!(refusal("die:4").starts_with("has no cores"));
        assert!(refusal("core:0").contains("a count is 1 or more"));
        let most = format!("has 100000 CPUs, and the most are {MAX_CPUS}");
        assert_eq!(refusal("core:100000"), most);
        assert!(refusal("2 core:4").contains("'2' is not understood"));
        assert!(refusal("core:2(size=1").starts_with("')' is missing"));
        assert!(refusal("core:2]").starts_with("']' closes nothing"));
        assert!(refusal("package:2 core:3 pu:2000").contains("12000 CPUs"));
        assert!(refusal("die:60000 die:60000 core:1").contains("CPUs"));
        assert!(
            refusal("pack:65535 l3:65535 l2:65535 core:65535 pu:65535").contains("the most are")
        );
    }
}
