//! Garbage collection as two decisions: whose reclaim units to look at, then which of them to reclaim.
//!
//! [`index`] keeps the closed reclaim units of each owner so that both decisions are cheap; [`handle_selection`] and
//! [`victim`] each hold the names that a configuration can say, what they mean and what they do. Adding a
//! policy touches one of these files. The device asks both decisions in `Engine::collect_one` (`device/collect.rs`). It may refuse a
//! victim for which there is no room, and it moves the data.

pub(crate) mod handle_selection;
pub(crate) mod index;
pub(crate) mod victim;

/// The device's generator of random numbers.
pub type Random = rand_xoshiro::Xoshiro256PlusPlus;

pub use handle_selection::HandleSelection;
pub use victim::{Candidates, UnitSelection, VictimPolicy};
