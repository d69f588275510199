//! What several rooms need and none of them owns, so that it is there once.
//!
//! ```text
//! TOML -> size (integers, "256MiB") -> settings of devices and workloads
//! u64  -> Bytes                     -> every size that a person reads
//! a name that is not known -> nearest, hint -> the end of an error's sentence
//! a library's words about a value -> plain_words
//! a path -> input (regular files, bounded), FilePlace (a folder that is held, files that appear as a whole) -> everything that reads or writes files
//! /proc/meminfo -> memory_available_bytes, memory_total_bytes -> runs, served drives
//! table!        -> tables of names, tests
//! gcd           -> fractions of superblocks, the tick of a trace's times
//! a position in a namespace's list -> PlacementIndex -> workloads that name it, the device that knows where it leads
//! ```
//!
//! It depends on nothing of ours and knows neither drives nor workloads.

mod bytes;
mod digits;
mod distinct;
mod divisor;
pub mod file_place;
mod file_state;
pub mod input;
mod memory;
mod nearest;
mod placement;
pub mod size;
mod table;
mod wording;

pub use bytes::Bytes;
pub use digits::significant;
pub use distinct::distinct;
pub use divisor::gcd;
pub use file_place::FilePlace;
pub use file_state::FileState;
pub use memory::{memory_available_bytes, memory_total_bytes};
pub use nearest::{hint, hinted, near, nearest};
pub use placement::PlacementIndex;
pub use wording::plain_words;
