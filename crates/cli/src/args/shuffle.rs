//! The options of the policy `shuffling`: between which CPUs threads are moved, and when.

use clap::Args;
use cosched_policy::{GroupBy, Sockets, SortBy};

use crate::args::choices;
use crate::how::shuffle::ShuffleChoices;

/// How threads are shuffled.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ShuffleArgs {
    /// Groups of CPUs between which threads are moved, such as 0-3,4-7. '+' joins ranges into one
    /// group, as in 0-3+8-11,4-7+12-15 (shuffling)
    #[arg(long, value_name = "CPUS,CPUS", value_parser = groups, conflicts_with = "group_by")]
    pub(crate) groups: Option<Sockets>,
    /// Make these groups of the CPUs that share a package, an llc (last-level cache) or a numa node
    /// (shuffling) [default: the largest of these of which the machine has several]
    #[arg(long, value_parser = choices::listed(GroupBy::ALL, GroupBy::name),
          hide_possible_values = true)]
    pub(crate) group_by: Option<GroupBy>,
    /// Shuffle a program if its threads spend more than this share of their time at locks: 0 to 1
    /// (shuffling) [default: 0.1]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = share)]
    pub(crate) threshold: Option<f64>,
    /// Move threads again only if the threads of a group become more alike by this share of their
    /// time: 0 to 1 (shuffling) [default: 0.02; with --no-guard new groups at each interval]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = share)]
    pub(crate) hysteresis: Option<f64>,
    /// What threads are sorted by: lock (the lock, if it is known, then the time at it), lock-time
    /// (as in the paper's slides), misses, birth (shuffling) [default: lock]
    #[arg(long, value_parser = choices::listed(SortBy::ALL, SortBy::name),
          hide_possible_values = true)]
    pub(crate) sort_by: Option<SortBy>,
}

impl ShuffleArgs {
    pub(super) fn choices(&self) -> ShuffleChoices {
        let ShuffleArgs { groups, group_by, threshold, hysteresis, sort_by } = self.clone();
        ShuffleChoices { groups, group_by, threshold, hysteresis, sort_by }
    }
}

/// Groups of CPUs as users write them.
pub(crate) fn groups(text: &str) -> Result<Sockets, String> {
    Sockets::named(text).map_err(|error| error.to_string())
}

/// A part of a whole.
fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("write a share from 0 to 1, such as 0.1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use cosched_policy::ShufflingOptions;

    use super::*;

    /// A command with nothing but these options.
    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        shuffle: ShuffleArgs,
    }

    fn read(words: &[&str]) -> Result<ShuffleChoices, String> {
        let words = ["only"].iter().chain(words);
        Only::try_parse_from(words)
            .map(|only| only.shuffle.choices())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_said_of_groups_holds_and_all_else_is_as_usual() {
        let usual = ShufflingOptions::default();
        assert_eq!(read(&[]).unwrap().options(), usual);
        let said = read(&["--group-by", "llc", "--threshold", "0.3"]).unwrap().options();
        assert_eq!((said.sockets, said.threshold), (Sockets::By(GroupBy::Llc), 0.3));
        let named = read(&["--groups", "0-3,4-7"]).unwrap().options();
        assert_eq!(named.sockets, Sockets::named("0-3,4-7").unwrap());
        assert_eq!(named.hysteresis, usual.hysteresis);
    }

    #[test]
    fn a_variants_groups_replace_those_of_all() {
        let all = read(&["--groups", "0,1", "--sort-by", "misses"]).unwrap();
        let options = read(&["--group-by", "numa"]).unwrap().over(&all).options();
        assert_eq!((options.sockets, options.sort), (Sockets::By(GroupBy::Numa), SortBy::Misses));
        let options = read(&[]).unwrap().over(&all).options();
        assert_eq!(options.sockets, Sockets::named("0,1").unwrap());
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_option_and_a_remedy() {
        for (words, said) in [
            (["--groups", "0-3"], "more than one group"),
            (["--groups", "0-3,3"], "CPU 3 is in two groups"),
            (["--groups", "a,b"], "'a' is not a group of CPUs"),
            (["--threshold", "10"], "a share from 0 to 1"),
            (["--threshold", "-1"], "a share from 0 to 1"),
            (["--hysteresis", "x"], "a share from 0 to 1"),
            (["--group-by", "socket"], "package, llc, numa"),
        ] {
            let error = read(&words).unwrap_err();
            assert!(error.contains(said) && error.contains(words[0]), "{error}");
        }
        assert!(read(&["--groups", "0,1", "--group-by", "llc"]).is_err(), "one of the two");
    }
}
