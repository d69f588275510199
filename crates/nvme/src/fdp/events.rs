//! The FDP event log of the endurance group, and the rules that select the events for hosts.
//!
//! ```text
//! ssd::DeviceEvent -> FdpEventSink (filter) -> EventLog (namespace, enabled?) -> FdpEvent
//! ```
//!
//! Host events (types 00h to 7Fh) and controller events have separate rings. A full ring drops its
//! oldest entry. The log has no access to the device or a controller. An [`EventSource`] and
//! [`ReportedNamespace`]s provide the needed data. The controller and the placement feedback of
//! simulated runs report through the same functions.

use std::collections::BTreeMap;

use nvme_spec::fdp::MAX_FDP_EVENTS;
use serde::{Deserialize, Serialize};
use ssd::event::{CloseReason, EventFilter, MovedRun, ReclaimRecord};
use ssd::{BoundedLog, Device, DeviceEvent, EventSink, Lpn, Placement, PlacementList, RecentEvents, RuhId};

use super::configuration::placement_identifier;
use crate::clock::DriveClock;
use crate::namespace::{EventMask, Namespace, PageExtent};

/// One event of the FDP Events log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdpEvent {
    /// Event type ([`kind`]).
    pub kind: u8,
    /// Placement identifier, if present (PIV).
    pub pid: Option<u16>,
    /// Namespace, if present (NSIDV).
    pub nsid: Option<u32>,
    /// Reclaim group and handle, if known (LV).
    pub location: Option<Placement>,
    /// Timestamp feature at the event, 8 bytes.
    pub timestamp: u64,
    /// Logical blocks moved, only for Media Reallocated.
    pub reallocated: Option<Reallocation>,
}

/// Event data that only Media Reallocated has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reallocation {
    /// Logical blocks moved, at most 65535 (NLBAM).
    pub blocks: u16,
    /// One of the moved blocks, chosen by `events.reported_page`. `None` if the drive names no
    /// block.
    pub lba: Option<u64>,
}

/// Event types, as numbers of the FDP Events log page.
pub mod kind {
    use nvme_spec::fdp::FdpEventType;

    pub(crate) const RU_NOT_FULLY_WRITTEN: u8 = FdpEventType::RuNotWrittenToCapacity.code();
    pub(crate) const RU_TIME_LIMIT_EXCEEDED: u8 = FdpEventType::RuTimeLimitExceeded.code();
    pub(crate) const CONTROLLER_RESET_MODIFIED_RUHS: u8 = FdpEventType::ControllerResetModifiedRuhs.code();
    pub(crate) const INVALID_PLACEMENT_IDENTIFIER: u8 = FdpEventType::InvalidPlacementIdentifier.code();
    /// Controller event. Garbage collection moved data.
    pub const MEDIA_REALLOCATED: u8 = FdpEventType::MediaReallocated.code();
    pub(crate) const IMPLICITLY_MODIFIED_RUH: u8 = FdpEventType::ImplicitlyModifiedRuh.code();
    /// All types that the controller can report.
    pub(crate) const SUPPORTED: [u8; 6] = [
        RU_NOT_FULLY_WRITTEN,
        RU_TIME_LIMIT_EXCEEDED,
        CONTROLLER_RESET_MODIFIED_RUHS,
        INVALID_PLACEMENT_IDENTIFIER,
        MEDIA_REALLOCATED,
        IMPLICITLY_MODIFIED_RUH,
    ];

    /// True for types of the host event log, false for types of the controller event log.
    pub(crate) const fn is_host_event(kind: u8) -> bool {
        kind < 0x80
    }
}

/// Drive state that the reporting rules need.
#[derive(Clone, Copy, Debug)]
pub struct EventSource {
    /// Number of reclaim groups.
    pub groups: u16,
    /// Size of a device page, in bytes.
    pub page_bytes: u64,
    /// Capacity of each ring of the log, in entries.
    pub log_entries: u16,
    /// Timestamp of the event.
    pub timestamp: u64,
    /// Receiver of events about collections of already mixed data without a named page. With `None`
    /// no namespace gets these events, because the owner of the data is unknown.
    pub sole_nsid: Option<u32>,
}

/// Namespace data that the reporting rules need.
#[derive(Clone, Copy, Debug)]
pub struct ReportedNamespace<'a> {
    /// Namespace identifier.
    pub nsid: u32,
    /// Pages of the namespace, in the order of its logical blocks.
    pub extents: &'a [PageExtent],
    /// Reclaim unit handle of each placement handle.
    pub placement_handles: &'a [RuhId],
    /// Enabled events of each placement handle.
    pub events_enabled: &'a [EventMask],
    /// Log2 of the bytes of a logical block.
    pub block_bytes_log2: u8,
}

impl<'a> ReportedNamespace<'a> {
    pub(crate) fn new(nsid: u32, namespace: &'a Namespace) -> ReportedNamespace<'a> {
        ReportedNamespace {
            nsid,
            extents: &namespace.extents,
            placement_handles: &namespace.placement_handles,
            events_enabled: &namespace.events_enabled,
            block_bytes_log2: namespace.block_bytes_log2(),
        }
    }

    /// First logical block of a page of the drive, if this namespace has the page.
    pub(crate) fn block_of(&self, page: Lpn, page_bytes: u64) -> Option<u64> {
        let mut before = 0;
        for extent in self.extents {
            if page.0 >= extent.first && page.0 - extent.first < extent.pages {
                let pages = before + u64::from(page.0 - extent.first);
                return Some((pages * page_bytes) >> self.block_bytes_log2);
            }
            before += u64::from(extent.pages);
        }
        None
    }

    pub(crate) fn placement_handle(&self, handle: RuhId) -> Option<u16> {
        PlacementList::new(self.placement_handles, 1).placement_handle(handle)
    }

    fn is_enabled(&self, placement_handle: u16, kind: u8) -> bool {
        let mask = self.events_enabled.get(usize::from(placement_handle));
        mask.is_some_and(|mask| mask.contains(kind))
    }

    fn is_enabled_anywhere(&self, kind: u8) -> bool {
        self.events_enabled.iter().any(|mask| mask.contains(kind))
    }
}

impl EventSource {
    pub(crate) fn new(device: &Device<FdpEventSink>, clock: &DriveClock) -> EventSource {
        EventSource {
            groups: device.layout().groups,
            page_bytes: device.layout().page_bytes,
            log_entries: device.config().events.log_entries,
            timestamp: clock.timestamp(),
            sole_nsid: None,
        }
    }

    fn event(&self, kind: u8, nsid: Option<u32>) -> FdpEvent {
        FdpEvent { kind, pid: None, nsid, location: None, timestamp: self.timestamp, reallocated: None }
    }
}

/// The FDP event log, with host events and controller events, each oldest first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EventLog {
    host: BoundedLog<FdpEvent>,
    controller: BoundedLog<FdpEvent>,
}

impl EventLog {
    /// Host events.
    pub fn host(&self) -> &BoundedLog<FdpEvent> {
        &self.host
    }

    /// Controller events.
    pub fn controller(&self) -> &BoundedLog<FdpEvent> {
        &self.controller
    }

    /// Refuses a stored log that no drive can have written. The error is a sentence without its
    /// end.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (ring, is_host) in [(&self.host, true), (&self.controller, false)] {
            if ring.iter().len() > MAX_FDP_EVENTS {
                return Err("an event log has more entries than its log page can contain".to_string());
            }
            if ring.iter().any(|event| kind::is_host_event(event.kind) != is_host) {
                return Err("an event log contains an event that belongs to the other log".to_string());
            }
        }
        Ok(())
    }

    fn append(&mut self, source: &EventSource, event: FdpEvent) {
        let is_of_media = event.kind == kind::MEDIA_REALLOCATED;
        assert_eq!(event.reallocated.is_some(), is_of_media, "only collections report moved pages");
        assert!(
            event.location.is_none_or(|location| location.group.0 < source.groups),
            "an event is of a reclaim group of its drive"
        );
        let ring = match kind::is_host_event(event.kind) {
            true => &mut self.host,
            false => &mut self.controller,
        };
        let end = ring.end();
        ring.push(event, usize::from(source.log_entries));
        assert_eq!(ring.end(), end + 1, "each event counts once");
    }

    /// Logs a write with a placement identifier that its namespace does not have. Placement handle
    /// 0 enables this event.
    pub(crate) fn note_invalid_identifier(&mut self, source: &EventSource, of: &ReportedNamespace<'_>, pid: u16) {
        if of.is_enabled(0, kind::INVALID_PLACEMENT_IDENTIFIER) {
            let event = FdpEvent { pid: Some(pid), ..source.event(kind::INVALID_PLACEMENT_IDENTIFIER, Some(of.nsid)) };
            self.append(source, event);
        }
    }

    pub(crate) fn note_unit_left(
        &mut self,
        source: &EventSource,
        of: &ReportedNamespace<'_>,
        placement: Placement,
        kind: u8,
    ) {
        let position = of.placement_handle(placement.handle);
        let position = position.expect("the namespace writes through the handle");
        if of.is_enabled(position, kind) {
            let event = FdpEvent {
                pid: Some(placement_identifier(placement.group.0, position, source.groups)),
                location: Some(placement),
                ..source.event(kind, Some(of.nsid))
            };
            self.append(source, event);
        }
    }

    pub(crate) fn note_reset(&mut self, source: &EventSource, of: &ReportedNamespace<'_>) {
        if of.is_enabled_anywhere(kind::CONTROLLER_RESET_MODIFIED_RUHS) {
            let event = source.event(kind::CONTROLLER_RESET_MODIFIED_RUHS, Some(of.nsid));
            self.append(source, event);
        }
    }

    pub(crate) fn overflow_host_events(&mut self, source: &EventSource) {
        for _ in 0..source.log_entries {
            self.append(source, source.event(kind::INVALID_PLACEMENT_IDENTIFIER, None));
        }
        assert!(self.host.iter().all(|event| event.nsid.is_none()), "the old events are removed");
    }

    /// Logs Media Reallocated after the device collected a reclaim unit.
    ///
    /// The event belongs to the namespace of the named page, or without a named page to the first
    /// namespace that writes through the handle. Unmixed data needs the event enabled for its
    /// placement handle. Data that an earlier collection mixed with other data needs it enabled for
    /// any placement handle.
    pub fn note_collection<'a>(
        &mut self,
        source: &EventSource,
        mut namespaces: impl Iterator<Item = ReportedNamespace<'a>> + Clone,
        reclaim: &ReclaimRecord,
    ) {
        if !is_reallocation(reclaim) {
            return;
        }
        assert!(reclaim.pages_copied <= reclaim.valid_pages, "only valid pages are copied");
        let is_copied = |moved: MovedRun| (1..=reclaim.pages_copied).contains(&moved.pages);
        assert!(reclaim.moved.is_none_or(is_copied), "the reported page was copied");
        let handle = reclaim.victim_owner.handle();
        let location = handle.map(|handle| Placement { group: reclaim.group, handle });
        let found = match (reclaim.moved, handle) {
            (Some(moved), _) => namespaces.find_map(|of| {
                let block = of.block_of(moved.first, source.page_bytes)?;
                Some((of, Some(block)))
            }),
            (None, handle) => {
                let writes =
                    |of: &ReportedNamespace<'_>| handle.and_then(|handle| of.placement_handle(handle)).is_some();
                let sole = |of: &ReportedNamespace<'_>| source.sole_nsid == Some(of.nsid);
                let writer = namespaces.clone().find(writes);
                writer.or_else(|| namespaces.find(sole)).map(|of| (of, None))
            }
        };
        let Some((of, lba)) = found else { return };
        let position = handle.and_then(|handle| of.placement_handle(handle));
        let is_enabled = match position {
            Some(position) => of.is_enabled(position, kind::MEDIA_REALLOCATED),
            None => of.is_enabled_anywhere(kind::MEDIA_REALLOCATED),
        };
        if !is_enabled {
            return;
        }
        let blocks = (u64::from(reclaim.pages_copied) * source.page_bytes) >> of.block_bytes_log2;
        let event = FdpEvent {
            pid: position.map(|position| placement_identifier(reclaim.group.0, position, source.groups)),
            location,
            reallocated: Some(Reallocation { blocks: u16::try_from(blocks).unwrap_or(u16::MAX), lba }),
            ..source.event(kind::MEDIA_REALLOCATED, Some(of.nsid))
        };
        self.append(source, event);
    }
}

fn is_reallocation(reclaim: &ReclaimRecord) -> bool {
    reclaim.pages_copied > 0
}

/// Pending device events that become FDP events, and the device's recent events.
#[derive(Clone, Debug, Default)]
pub struct FdpEventSink {
    pending: Vec<DeviceEvent>,
    /// Pages that missed their requested reclaim group, by the group that received them.
    redirected: BTreeMap<u16, u64>,
    recent: RecentEvents,
}

impl EventSink for FdpEventSink {
    fn event_filter(&self) -> EventFilter {
        EventFilter::ReclaimUnits
    }

    fn event(&mut self, event: &DeviceEvent) {
        self.recent.record(event);
        let becomes_an_event = match event {
            DeviceEvent::Redirect { to, pages, .. } => {
                *self.redirected.entry(to.0).or_default() += u64::from(*pages);
                false
            }
            DeviceEvent::Reclaim(reclaim) => is_reallocation(reclaim),
            DeviceEvent::Close { owner, reason, .. } => *reason == CloseReason::RoomNeeded && owner.handle().is_some(),
            _ => false,
        };
        if becomes_an_event {
            self.pending.push(event.clone());
        }
    }
}

impl FdpEventSink {
    /// Sink for a device that replaces another one. It has no pending events and keeps the recent
    /// events for monitoring.
    pub fn after(before: &FdpEventSink) -> FdpEventSink {
        FdpEventSink { recent: before.recent.clone(), ..FdpEventSink::default() }
    }

    /// Recent events of reclaim units, for monitoring.
    pub fn recent(&self) -> &RecentEvents {
        &self.recent
    }

    /// True without pending events.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes the pending events.
    pub fn take(&mut self) -> Vec<DeviceEvent> {
        std::mem::take(&mut self.pending)
    }

    /// Takes the redirected pages by receiving reclaim group. Pages are redirected when the
    /// requested group is full.
    pub fn take_redirected(&mut self) -> BTreeMap<u16, u64> {
        std::mem::take(&mut self.redirected)
    }

    /// Drops the redirected pages.
    #[inline]
    pub fn forget_redirected(&mut self) {
        if !self.redirected.is_empty() {
            self.redirected.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_the_second_extent_comes_after_those_of_the_first() {
        let extent = |first| PageExtent { first, pages: 4 };
        let namespace = ReportedNamespace {
            nsid: 1,
            extents: &[extent(10), extent(100)],
            placement_handles: &[RuhId(0)],
            events_enabled: &[],
            block_bytes_log2: 12,
        };
        assert_eq!(namespace.block_of(Lpn(101), 4096), Some(5));
        assert_eq!(namespace.block_of(Lpn(14), 4096), None);
    }
}
