//! The options that were given, as words: a hint repeats them.

use std::borrow::Cow;
use std::ffi::OsStr;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};

use super::HowArgs;

/// The options of [`HowArgs`] that were given, as words of a command line.
///
/// In a command it has to stand before those: the parser takes their values away one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenWords(pub(crate) Vec<String>);

impl FromArgMatches for GivenWords {
    fn from_arg_matches(matches: &ArgMatches) -> Result<GivenWords, Error> {
        let all = HowArgs::augment_args(Command::new("how"));
        Ok(GivenWords(all.get_arguments().flat_map(|argument| words(argument, matches)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = GivenWords::from_arg_matches(matches)?;
        Ok(())
    }
}

/// It adds no option of its own.
impl Args for GivenWords {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// An option with its values, as often as it was given.
fn words(argument: &Arg, matches: &ArgMatches) -> Vec<String> {
    let id = argument.get_id().as_str();
    let is_given = matches.value_source(id) == Some(ValueSource::CommandLine);
    let Some(long) = argument.get_long().filter(|_| is_given) else { return Vec::new() };
    let option = format!("--{long}");
    if !argument.get_action().takes_values() {
        return vec![option];
    }
    let times = matches.get_raw_occurrences(id).into_iter().flatten();
    let one = |values: Vec<Cow<'_, str>>| [option.clone(), values.join(",")];
    times.flat_map(|values| one(values.map(OsStr::to_string_lossy).collect())).collect()
}
