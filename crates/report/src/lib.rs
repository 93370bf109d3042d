//! Shows what cosched did.
//!
//! A result ([`cosched_core::result`]) holds what happened: who ran when, on which CPUs, and why. From it this crate
//! makes what people look at, and nothing else: it runs nothing, measures nothing, and touches no file. Everything is
//! a pure function from results to text or bytes, so that the same result always gives the same picture.

#![forbid(unsafe_code)]

pub mod openmetrics;
pub mod screen;
#[cfg(test)]
mod standing;
