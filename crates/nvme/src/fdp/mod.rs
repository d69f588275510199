//! Flexible Data Placement (FDP), as far as NVMe 2.1 defines it and this drive supports it.
//!
//! ```text
//! Write with a placement identifier -> directive -> handles (placement) -> ssd::Device
//! ssd::DeviceEvent -> FdpEventSink (during a command) -> EventLog (rules) -> log_pages -> host
//!                 \-> RecentEvents -> monitoring
//! ```
//!
//! | file | contents |
//! |---|---|
//! | `configuration` | the configurations that a drive offers, placement identifiers |
//! | `directive` | the Data Placement directive of writes, Directive Send and Receive |
//! | `handles` | placement of writes, Reclaim Unit Handle Status and Update, time limit, events |
//! | `events` | the FDP event log and its reporting rules |
//! | `log_pages` | log pages 20h (configurations), 21h (handle usage), 22h (statistics), 23h (events) |
//! | `features` | features 1Dh (FDP) and 1Eh (FDP events) |
//!
//! The device model has reclaim groups, reclaim units and handles. This module converts them to the
//! standard's layouts. Every log entry passes `EventLog::append`. Its callers are
//! `Subsystem::note_device_events` (the device's events), the executors of `handles` (host events)
//! and, in simulated runs, placement feedback with the same [`EventLog`].

mod configuration;
mod directive;
mod events;
mod features;
mod handles;
mod log_pages;

use serde::{Deserialize, Serialize};
use ssd::DeviceConfig;

pub(crate) use configuration::default_handles;
pub use configuration::{
    configurations, is_same_flash, placement_identifier, reclaim_group_identifier_bits, split_placement_identifier,
    without_fdp,
};
pub(crate) use directive::{DirectiveReceive, DirectiveSend, WriteDirective, parse_receive, parse_send};
pub use events::{EventLog, EventSource, FdpEvent, FdpEventSink, Reallocation, ReportedNamespace, kind};
pub(crate) use features::{event_descriptors_bytes, event_list_bytes};
pub(crate) use handles::{RuOpenTimes, named_or_default, named_placement};

/// Flexible Data Placement of the endurance group, non-volatile.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FdpState {
    /// FDPE of feature 1Dh.
    pub enabled: bool,
    /// Index of the FDP configuration.
    pub configuration: u8,
    /// The FDP event log.
    pub events: EventLog,
}

/// Flexible Data Placement since the drive's start, derived from its profile. It includes the open
/// times of reclaim units.
#[derive(Debug)]
pub(crate) struct FdpRuntime {
    /// Device configurations of the offered FDP configurations.
    pub(crate) configurations: Vec<DeviceConfig>,
    pub(crate) units: RuOpenTimes,
}

impl FdpRuntime {
    /// State for a drive with this profile. Reclaim units may stay open for `time_limit_s` seconds,
    /// or without limit if 0.
    pub(crate) fn new(profile: &DeviceConfig, time_limit_s: u32) -> FdpRuntime {
        FdpRuntime { configurations: configurations(profile), units: RuOpenTimes::new(time_limit_s) }
    }
}
