//! The WARP device model: a deterministic SSD with Flexible Data Placement (FDP).
//!
//! ```text
//! write, deallocate, update -> Device -> placement (open reclaim units) -> maps (L2P, P2L, valid)
//!                                |           |
//!                                |           +-> collect (victim, copies, erase) -> media (erases)
//!                                +-> stats, events
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

mod bounded_log;
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
mod overhead;
mod recency;
pub mod recent_events;
pub mod snapshot;
pub mod stats;
pub mod timing;
pub mod types;
pub mod unit;

pub use base::PlacementIndex;
pub use bounded_log::BoundedLog;
pub use checkpoint::Checkpoint;
pub use config::{DeviceConfig, EnduranceConfig};
pub use device::{Device, DeviceCore, Occupancy, UnitView};
pub use endurance::{Endurance, WearSummary};
pub use error::{CheckpointAbort, ConfigError, HostError, SnapshotError};
pub use event::{DeviceEvent, EventSink};
pub use layout::DeviceLayout;
pub use overhead::MediaOverhead;
pub use recent_events::{EventsSince, RecentEvent, RecentEvents};
pub use stats::{DeviceStats, FdpTotals, OwnerStats};
pub use timing::{CompletionTime, PageLocation, TimingConfig};
pub use types::{Lpn, MappedRun, Nanos, Placement, PlacementList, Ppn, RgId, RuId, RuhId, UnitOwner, WriteRequest};
