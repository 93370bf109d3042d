//! The other end of the hook: a door for each program that has it inside, and what makes its
//! processes come to it.
//!
//! A program whose workload file says `malleable = true`, `barrier = "donate"` or `progress = true`
//! is started with the hook's library preloaded and the name of its [`Door`] in its environment.
//! Each of its processes that has a use for it connects, and gets a [page](cosched_page) of its
//! own. What processes ask for becomes one number of threads for the program, the most that any of
//! them wants; the grant holds for each of them. Where the barriers are the hook's, the [table of
//! threads](crate::runstate) comes with the page.
//!
//! Everything that comes in may be a lie. A process that is not of the program is sent away. A
//! process that says what makes no sense is not heard. Of what comes without end, only so much is
//! heard in a second ([`Door::hear`]). The memory of a page is sealed: neither side can take it
//! away from the other.

mod door;
mod guest;
mod preload;

use std::path::PathBuf;

pub use cosched_page::BARRIER_WAY;
pub use door::{Door, Heard, Uses};
pub use guest::Told;
pub use preload::{LIBRARY, NoLibrary, PRELOAD, library, preloaded};

/// The library inside a program, and what it is there for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Its file.
    pub library: PathBuf,
    /// What cosched does by it.
    pub uses: Uses,
}
