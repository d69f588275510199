//! The WARP device model: a deterministic SSD with Flexible Data Placement (FDP).
//!
//! ```text
//! write, deallocate, update -> Device -> placement (open reclaim units) -> maps (L2P, P2L, valid)
//!                                |           |
//!                                |           +-> collect (victim, copies, erase) -> media (erases)
//!                                +-> Stats, Events
//! ```
//!
//! A [`DeviceConfig`] describes a [`Device`]. The device maps logical pages, places them by reclaim
//! unit handle, collects garbage, maintains counters and reports events. The caller passes the time
//! and the configuration contains the random seed. Equal calls therefore give equal devices on
//! every machine. A drive without FDP is the same code with one handle in use.
//!
//! The model stores no data, knows no NVMe commands or statuses, reads no clock and starts no
//! threads. Only [`snapshot`] and [`checkpoint`] do I/O, on behalf of the caller.

#![warn(missing_docs)]

mod cast;
pub mod checkpoint;
pub mod config;
pub mod device;
pub mod endurance;
pub mod error;
pub mod event;
pub mod gc;
pub mod layout;
mod maps;
mod recency;
pub mod recent;
mod ring;
pub mod snapshot;
pub mod stats;
pub mod timing;
pub mod types;
pub mod unit;

pub use base::PlacementIndex;
pub use checkpoint::Checkpoint;
pub use config::{DeviceConfig, EnduranceConfig};
pub use device::{Device, Engine, UnitView};
pub use endurance::{Endurance, Wear};
pub use error::{CheckpointEnded, ConfigError, HostError, SnapshotError};
pub use event::{Event, EventSink};
pub use layout::Layout;
pub use recent::{EventsSince, RecentEvent, RecentEvents};
pub use ring::Ring;
pub use stats::{OwnerStats, Stats, Totals};
pub use timing::{Completion, Location, TimingConfig};
pub use types::{Lpn, MappedRun, Nanos, Owner, Placement, PlacementList, Ppn, RgId, RuId, RuhId, Write};
