//! Garbage collection policies, as two decisions: the owners to reclaim from, then the victim.
//!
//! [`index`] indexes the closed reclaim units of each owner, so that both decisions are cheap.
//! [`source_policy`] and [`victim`] hold the configuration names and the code of the policies. A
//! new policy touches only one of these files. The device makes both decisions in
//! `DeviceCore::collect_one` (`device/collect.rs`). It may reject a victim for lack of space, and
//! it moves the data.

pub(crate) mod index;
pub(crate) mod source_policy;
pub(crate) mod victim;

/// Random number generator of the device.
pub type DeviceRng = rand_xoshiro::Xoshiro256PlusPlus;

pub use source_policy::SourcePolicy;
pub use victim::{VictimCandidates, VictimPolicy, VictimRule};
