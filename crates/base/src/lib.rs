//! Shared utilities: sizes, error hints, memory information, input files and atomic replacement of
//! files.
//!
//! ```text
//! TOML -> size (integers, "256MiB") -> settings of devices and workloads
//! u64  -> HumanBytes                -> every size that a person reads
//! an unknown name -> nearest, hint -> the end of an error message
//! a value of TOML or JSON -> read_value -> settings, or Misfit with the field's path
//! a library's message about a value -> translate_message -> the user's words
//! a path -> input (regular files, limited), FilePlace (an open folder, atomic files) -> all files
//! /proc/meminfo -> memory_available_bytes, memory_total_bytes -> runs, served drives
//! table!        -> tables of names, tests
//! gcd           -> fractions of superblocks, the tick of a trace's times
//! names of files without their numbers -> captures, traces
//! a position in a namespace's list -> PlacementIndex -> workloads and the device
//! ```
//!
//! The crate depends on no other crate of this workspace, and knows neither drives nor workloads.

mod bytes;
mod distinct;
mod divisor;
mod file_kind;
pub mod file_place;
mod file_state;
pub mod input;
mod memory;
mod placement;
mod read;
pub mod size;
mod suggestions;
mod table;
mod wording;

pub use bytes::{HumanBytes, significant};
pub use distinct::distinct;
pub use divisor::gcd;
pub use file_kind::file_kind;
pub use file_place::FilePlace;
pub use file_state::FileState;
pub use memory::{memory_available_bytes, memory_total_bytes};
pub use placement::PlacementIndex;
pub use read::{Misfit, read_value};
pub use suggestions::{hint, hinted, nearest, similar_names};
pub use wording::{capitalized, translate_message, with_short_numbers};
