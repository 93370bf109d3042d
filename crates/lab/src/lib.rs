//! What compares and measures: experiments, profiles, advice, and simulated machines.
//!
//! | module | what it holds |
//! |---|---|
//! | [`values`] | values that users write: times, numbers, files |
//! | [`stat`] | what was seen of running programs |
//! | [`stop`] | why measuring ends early |
//! | `slowdown_document` | tables of slowdowns |
//! | `alone` | each program alone, measured and kept |
//! | [`experiment`] | several runs are compared |
//! | [`gather`] | which runs belong together, and are compared |
//! | [`gaps`] | how long a switch between gangs takes |
//! | [`sim`] | simulated machines, and how they are measured and checked |
//! | [`profile`] | how programs run alone, shown |
//! | [`advise`] | how many threads each program should have |
//! | [`quanta`] | which slice suits which scaling factor |
//! | [`slowdowns`] | how much streams through memory slow each other down |
//! | [`stats`] | what times show that another program measured |
//!
//! A module uses only those above it.

#![forbid(unsafe_code)]

pub mod advise;
mod alone;
pub mod experiment;
pub mod gaps;
pub mod gather;
pub mod profile;
pub mod quanta;
pub mod sim;
mod slowdown_document;
pub mod slowdowns;
pub mod stat;
pub mod stats;
pub mod stop;
pub mod values;

use cosched_run::{deviations, environment, how, out, replace, session, source, store, table};
use cosched_ui as ui;
