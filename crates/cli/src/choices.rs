//! Values that are chosen from a list: help, man pages and completions show the same one that the parser knows.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use cosched_core::Actuator;
use cosched_policy::{Kind, Placement};
use cosched_sim::Kernel;

use crate::args;

/// A policy, each with what it does.
pub(crate) fn policy() -> impl TypedValueParser<Value = Kind> {
    let known = Kind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.description()));
    PossibleValuesParser::new(known).try_map(|name| name.parse::<Kind>())
}

/// What can be done to the threads of a program.
pub(crate) fn actuator() -> impl TypedValueParser<Value = Actuator> {
    PossibleValuesParser::new(Actuator::ALL.map(Actuator::name))
        .try_map(|name| name.parse::<Actuator>())
}

/// Where the threads of a program go.
pub(crate) fn placement() -> impl TypedValueParser<Value = Placement> {
    PossibleValuesParser::new(Placement::ALL.map(Placement::name))
        .try_map(|name| name.parse::<Placement>())
}

/// The kernel of a simulated machine.
pub(crate) fn kernel() -> impl TypedValueParser<Value = Kernel> {
    PossibleValuesParser::new(Kernel::NAMES).try_map(|name| args::kernel(&name))
}
