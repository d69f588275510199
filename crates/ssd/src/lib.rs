//! The WARP device model: a deterministic SSD with Flexible Data Placement.
//!
//! ```text
//! write, deallocate, update  ->  Device  ->  placement (open reclaim units)  ->  maps (L2P, P2L, validity)
//!                                   |                     |
//!                                   |                     +-> collect (victim, copies, erase) -> media (erase counts)
//!                                   +-> Stats, Events
//! ```
//!
//! A [`Device`] is made from a [`DeviceConfig`]; it maps pages, places them by reclaim unit handle, collects garbage,
//! counts and tells. Time is an argument, randomness comes from the configuration's seed, so the same calls give the
//! same device on every machine. A drive without Flexible Data Placement is the same code with one handle in use.
//!
//! It does not: store data, know NVMe commands or statuses, read a clock, start threads, or do I/O (except
//! [`snapshot`] and [`checkpoint`], on the caller's behalf).

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
