//! Placement feedback: which data should be written with another placement identifier, from what the drive reports of its
//! garbage collection (Kang & Shin, "Optimizing Stream Separation Using Event Logs in FDP Storage Devices").
//!
//! ```text
//! FDP event log  -> Feed (what is new, what was lost) -> Evidence (events and bytes per owner) -> Policy -> moves
//! FDP statistics -> bytes written and copied since the last reading -------------------------------/
//! OwnerMap: whose logical blocks these are (files, ranges, streams) ----/
//! ```
//!
//! An [`Advisor`] takes one reading of a drive's log pages after another and says which owners should move. Where readings
//! come from (the lab, a served drive, the kernel), and who carries the moves out, is the caller's matter. It reads no
//! clock and no file, and the same readings give the same advice.

pub mod advisor;
pub mod evidence;
pub mod feed;
pub mod owners;
pub mod policy;

pub use advisor::{Advice, Advisor, Counters};
pub use evidence::{Evidence, Row};
pub use feed::{Event, Feed, FreshEvents, Loss};
pub use owners::{Owner, OwnerError, OwnerMap};
pub use policy::{Move, Policy, PolicyName, Reason, View};
