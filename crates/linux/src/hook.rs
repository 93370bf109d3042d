//! cosched's side of the hook: a hook server for each program with the library, and the environment
//! that makes its processes connect.
//!
//! A program with a jobs file that says `malleable = true`, `barrier = "donate"` or `progress =
//! true` is started with the hook's library preloaded and the name of its [`HookServer`] in its
//! environment. Each process that needs it connects, and gets its own [page](cosched_page). The
//! requests of the processes become one thread count for the program, the largest request of all;
//! the limit holds for each process. Where barriers are the hook's, the [table of
//! threads](crate::observe::runstate) comes with the page.
//!
//! All input may be a lie. A process of another program is rejected. A senseless message is
//! ignored. Of endless input, only a limited part is read per second ([`HookServer::hear`]). The
//! memory of a page is sealed: neither side can take it away from the other.

mod client;
mod preload;
mod server;
mod unpack;

use std::path::PathBuf;

pub use client::Reported;
pub use cosched_page::BARRIER_MODE;
pub use preload::preloaded;
pub use server::{HookServer, Received, Uses};
pub use unpack::{LIBRARY, NoLibrary, library};

/// The library inside a program, and its purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its file.
    pub library: PathBuf,
    /// What cosched uses it for.
    pub uses: Uses,
}
