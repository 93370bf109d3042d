//! What `cosched stat` makes of what it has seen: figures of each interval, and what stood in the
//! way of each program.

mod arrivals;
pub mod conclusion;
mod counted;
mod show;

pub use arrivals::Arrivals;
pub use counted::Counted;
pub use show::StatDocument;
