//! Arrays of drives (RAID and erasure codes) as a translation of requests, without I/O.
//!
//! ```text
//! ArraySettings -> Array (checks sizes) -> translate(host request) -> MemberIo, in phases
//!                                      \-> rebuild_row, scrub_row  -> MemberIo, in phases
//! ```
//!
//! `geometry` says where data, copies and parity lie. `in_place` updates stripes where they lie, as
//! Linux md does. `log_structured` collects writes into full stripes and collects garbage itself.
//! The caller executes the member I/O on its drives. An I/O of a phase may begin when all I/O of the
//! earlier phases of its request is complete.
//!
//! The crate has no stripe cache: two requests for one stripe each read what they need. The caller
//! may merge consecutive writes before it translates them. The crate does not model write holes,
//! journals, bitmaps or bad blocks.

mod geometry;
mod in_place;
mod log_structured;
mod member_io;
mod members;
mod page_set;
mod settings;
mod translator;

pub use member_io::{IoCause, MemberIo};
pub use settings::{
    ArrayAction, ArrayEvent, ArrayLevel, ArraySettings, DataPlacement, ParityPlacement, ParityRotation, ResyncExtent,
    WritePolicy,
};
pub use translator::Array;

/// Smallest unit of an array in bytes: the pages of Linux md.
pub const PAGE_BYTES: u64 = 4096;
