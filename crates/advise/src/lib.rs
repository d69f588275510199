//! Placement feedback from the drive's FDP event log.
//!
//! An [`Advisor`] recommends which data to write with another placement identifier. Its input is
//! the drive's reports on garbage collection (Kang & Shin, "Optimizing Stream Separation Using
//! Event Logs in FDP Storage Devices").
//!
//! ```text
//! FDP event log  -> EventCursor (new and lost events) -> Evidence (per owner) -> MovePolicy -> OwnerMove
//! FDP statistics -> bytes written and copied since the last reading ---------/
//! OwnerMap: owners of logical blocks (files, ranges, streams) ------/
//! ```
//!
//! The caller passes successive readings of a drive's log pages to the advisor. The caller also
//! obtains the readings (from the lab, a served drive, the kernel) and executes the moves. This
//! crate reads no clock and no file. The same readings always give the same advice.

pub mod advisor;
pub mod evidence;
pub mod feed;
pub mod owners;
pub mod policy;

pub use advisor::{Advice, Advisor, WriteStatistics};
pub use evidence::{Evidence, EvidenceRow};
pub use feed::{EventCursor, EventLoss, FreshEvents, ReallocationEvent};
pub use owners::{DataOwner, OwnerError, OwnerMap};
pub use policy::{MovePolicy, MoveReason, OwnerMove, PolicyInput, PolicyName};
