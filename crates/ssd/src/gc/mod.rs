//! Garbage collection as two decisions: whose reclaim units to look at, then which of them to reclaim.
//!
//! [`index`] keeps the closed reclaim units of each owner so that both decisions are cheap; [`handle_selection`] and
//! [`unit_selection`] each hold the names that a configuration can say, what they mean and what they do. Adding a
//! policy touches one of these files. Moving the data is the device's work (`device/collect.rs`).

pub(crate) mod handle_selection;
pub(crate) mod index;
pub(crate) mod unit_selection;

/// The device's generator of random numbers.
pub type Random = rand_xoshiro::Xoshiro256PlusPlus;

pub use handle_selection::HandleSelection;
pub use unit_selection::{Candidates, UnitSelection, VictimPolicy};
