//! A run on this machine: a workload, a policy and a machine become a result.
//!
//! | module | what it holds |
//! |---|---|
//! | [`environment`] | which variables decide how programs run |
//! | [`how`] | what was chosen of how policies and this machine work |
//! | [`store`] | what earlier runs have shown |
//! | [`out`] | the files that a run writes |
//! | [`live`] | what a run shows while it lasts |
//! | [`recover`] | undoing what killed runs left behind |
//! | [`replace`] | replacing a file that cosched made |
//! | `progress` | what the terminal shows while programs run |
//! | [`deviations`] | deviations in sentences |
//! | [`table`] | the table of a run |
//! | [`session`] | runs, and all that they need to know beforehand |
//! | [`source`] | from what the user named to a workload |
//!
//! A module uses only those above it.

#![forbid(unsafe_code)]

pub mod deviations;
pub mod environment;
pub mod how;
pub mod live;
pub mod out;
mod progress;
pub mod recover;
pub mod replace;
pub mod session;
pub mod source;
pub mod store;
pub mod table;

use cosched_ui as ui;
