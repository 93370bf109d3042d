//! The other end of the hook: a door for each malleable program, and what makes its processes come to it.
//!
//! A program whose workload file says `malleable = true` is started with the hook's library preloaded and the name of its
//! [`Door`] in its environment. Each of its processes that wants threads connects, and gets a [page](cosched_page) of its own.
//! What processes ask for becomes one number for the program, the most that any of them wants; the grant holds for each of
//! them.
//!
//! Everything that comes in may be a lie. A process that is not of the program is sent away, one that says what makes no
//! sense is not heard, and a program that knocks without end is not heard any more ([`Door::hear`]); it has what it wants
//! then. The memory of a page is sealed: nobody can take it away from under the other.

mod door;
mod guest;
mod preload;

pub use door::{Door, Heard};
pub use preload::{LIBRARY, NoLibrary, library, preloaded};
