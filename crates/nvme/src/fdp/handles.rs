//! Reclaim unit handles. This file resolves the placement of writes, executes Reclaim Unit Handle
//! Status and Update (I/O Management Receive and Send), and enforces the time limit of open reclaim
//! units.

use std::collections::BTreeMap;

use nvme_spec::Status;
use nvme_spec::fdp::{RuhStatusDescriptor, RuhStatusHeader};
use ssd::{Device, DeviceEvent, Nanos, Placement, PlacementList, RgId, RuhId};
use zerocopy::IntoBytes;

use super::FdpState;
use super::configuration::{placement_identifier, split_placement_identifier};
use super::directive::WriteDirective;
use super::events::{EventSource, FdpEventSink, ReportedNamespace, kind};
use crate::completion::{CommandResult, Execution};
use crate::error::{Failure, Parameter};
use crate::io::context::IoContext;
use crate::namespace::Namespace;
use crate::subsystem::Subsystem;

const SECOND_NS: Nanos = 1_000_000_000;

/// Times of the first write to each handle's reclaim unit, for the time limit (ERUTL).
#[derive(Debug)]
pub(crate) struct RuOpenTimes {
    since: BTreeMap<(u16, u16), Nanos>,
    /// Seconds that a reclaim unit may stay open, or 0 for no limit.
    limit_s: u32,
}

impl RuOpenTimes {
    pub(crate) fn new(limit_s: u32) -> RuOpenTimes {
        RuOpenTimes { since: BTreeMap::new(), limit_s }
    }

    /// True if a time limit exists. Without one, no times are recorded.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.limit_s > 0
    }

    pub(crate) fn clear(&mut self) {
        self.since.clear();
    }

    /// Records a write to a handle's reclaim unit. `filled` is true if the write filled the
    /// previous unit. `is_begun` is true if the current unit has data.
    fn note_written(&mut self, now: Nanos, placement: Placement, is_begun: bool, filled: bool) {
        let key = key_of(placement);
        if !is_begun {
            // The write filled the unit to its last page. The next write begins another one.
            self.since.remove(&key);
        } else if filled {
            self.since.insert(key, now);
        } else {
            self.since.entry(key).or_insert(now);
        }
        let since = self.since.get(&key);
        assert_eq!(since.is_some(), is_begun, "the time of a reclaim unit begins with its first page");
        assert!(since.is_none_or(|&since| since <= now), "no reclaim unit opened in the future");
    }

    /// Forgets a handle's reclaim unit, because the handle has a new one.
    fn forget(&mut self, placement: Placement) {
        self.since.remove(&key_of(placement));
    }

    /// Estimated seconds until a handle's reclaim unit reaches the limit, or 0 without limit
    /// (EARUTR).
    fn seconds_left(&self, now: Nanos, placement: Placement) -> u32 {
        match self.since.get(&key_of(placement)) {
            _ if self.limit_s == 0 => 0,
            None => self.limit_s,
            Some(since) => self.limit_s.saturating_sub(((now - since) / SECOND_NS) as u32),
        }
    }

    fn expired(&self, now: Nanos) -> Vec<Placement> {
        if self.limit_s == 0 {
            return Vec::new();
        }
        let limit_ns = u64::from(self.limit_s) * SECOND_NS;
        let expired = self.since.iter().filter(|(_, since)| now - **since >= limit_ns);
        expired.map(|(&(group, handle), _)| Placement::new(group, handle)).collect()
    }
}

fn key_of(placement: Placement) -> (u16, u16) {
    (placement.group.0, placement.handle.0)
}

/// Reason why a directive leads to no placement.
pub(crate) enum UnresolvedDirective {
    NotEnabled,
    Unknown(u16),
}

/// Placement that a command names, or `None` for a command without a placement directive.
#[inline]
pub(crate) fn named_placement(
    fdp: &FdpState,
    namespace: &Namespace,
    groups: u16,
    directive: WriteDirective,
) -> Result<Option<Placement>, UnresolvedDirective> {
    match directive {
        WriteDirective::None => Ok(None),
        WriteDirective::Placement(_) if !fdp.enabled => Err(UnresolvedDirective::NotEnabled),
        WriteDirective::Placement(pid) => {
            let (group, position) = split_placement_identifier(pid, groups);
            let named = PlacementList::new(&namespace.placement_handles, groups).at(group, position);
            named.map(Some).ok_or(UnresolvedDirective::Unknown(pid))
        }
    }
}

/// Placement of a write that names a placement, or the default placement.
#[inline]
pub(crate) fn named_or_default(
    device: &mut Device<FdpEventSink>,
    namespace: &Namespace,
    named: Option<Placement>,
) -> Placement {
    named.unwrap_or_else(|| device.default_placement(namespace.placement_handles[0]))
}

pub(super) fn check_enabled(fdp: &FdpState) -> Result<(), Failure> {
    if fdp.enabled {
        return Ok(());
    }
    Err(Failure::new(Status::FDP_DISABLED, "Flexible Data Placement is not enabled in the endurance group"))
}

/// Records a write to a handle's reclaim unit. `filled` is true if the write filled the previous
/// unit.
fn note_unit_written(
    device: &Device<FdpEventSink>,
    units: &mut RuOpenTimes,
    now: Nanos,
    placement: Placement,
    filled: bool,
) {
    let is_begun = device.is_unit_written(placement).expect("a handle of the device");
    units.note_written(now, placement, is_begun, filled);
}

impl IoContext<'_> {
    /// Resolves the placement of a write.
    ///
    /// An unknown placement identifier is no error. The data goes to the default placement
    /// ([`ssd::Device::default_placement`]), and the host event log gets an entry (NVMe 2.1,
    /// Flexible Data Placement).
    pub(crate) fn resolve(&mut self, directive: WriteDirective) -> Result<Placement, Failure> {
        let groups = self.device.layout().groups;
        let named = match named_placement(self.fdp, self.namespace, groups, directive) {
            Ok(named) => named,
            Err(UnresolvedDirective::NotEnabled) => {
                let cause = "the data placement directive needs Flexible Data Placement, which is disabled";
                return Err(Failure::invalid_field(Parameter::dword(12, 20), cause));
            }
            Err(UnresolvedDirective::Unknown(pid)) => {
                let source = EventSource::new(self.device, self.clock);
                let of = ReportedNamespace::new(self.nsid, self.namespace);
                self.fdp.events.note_invalid_identifier(&source, &of, pid);
                None
            }
        };
        let placement = named_or_default(self.device, self.namespace, named);
        assert!(
            self.namespace.placement_handles.contains(&placement.handle),
            "a write goes through a handle of its namespace"
        );
        Ok(placement)
    }

    /// Remaining pages of a handle's reclaim units in all groups, if a time limit exists. The
    /// result is for [`IoContext::note_pages_written`] after the write.
    pub(crate) fn pages_before_writing(&mut self, handle: RuhId) -> Option<Vec<u32>> {
        // Drops redirections of an earlier command that failed.
        self.device.sink_mut().forget_redirected();
        let left =
            |group| self.device.available_media_writes(Placement { group, handle }).expect("a handle of the device");
        let groups = 0..self.device.layout().groups;
        self.units.is_limited().then(|| groups.map(RgId).map(left).collect())
    }

    /// Updates the open times after a write. The time of a reclaim unit starts with its first page.
    /// A full reclaim group redirects pages to other groups, and their reclaim units are then the
    /// written ones.
    pub(crate) fn note_pages_written(&mut self, placement: Placement, pages: u64, left_before: Option<Vec<u32>>) {
        let Some(left_before) = left_before else {
            return self.device.sink_mut().forget_redirected();
        };
        let mut by_group = self.device.sink_mut().take_redirected();
        let redirected = by_group.values().sum::<u64>();
        assert!(redirected <= pages, "no more pages are redirected than written");
        *by_group.entry(placement.group.0).or_default() += pages - redirected;
        for (group, pages) in by_group {
            let filled = pages >= u64::from(left_before[usize::from(group)]);
            if pages > 0 {
                let placement = Placement::new(group, placement.handle.0);
                note_unit_written(self.device, self.units, self.clock.now(), placement, filled);
            }
        }
    }

    /// Executes Reclaim Unit Handle Status. The result has a descriptor for each placement handle
    /// and reclaim group, cut to the size of the host's buffer. The header counts all of them.
    pub(crate) fn handle_status(&mut self, bytes: u64, data: &mut Vec<u8>) -> CommandResult {
        check_enabled(self.fdp)?;
        let groups = self.device.layout().groups;
        let placements = PlacementList::new(&self.namespace.placement_handles, groups);
        let blocks_per_page = self.page_bytes >> self.namespace.block_bytes_log2();
        let header = RuhStatusHeader { nruhsd: placements.count().into(), ..RuhStatusHeader::default() };
        data.clear();
        data.extend_from_slice(header.as_bytes());
        for (index, placement) in (0..).zip(placements.iter()) {
            let pages = self.device.available_media_writes(placement);
            let pages = u64::from(pages.expect("a handle of the device"));
            let descriptor = RuhStatusDescriptor {
                pid: placement_identifier(placement.group.0, index / groups, groups).into(),
                ruhid: placement.handle.0.into(),
                earutr: self.units.seconds_left(self.clock.now(), placement).into(),
                ruamw: (pages * blocks_per_page).into(),
                ..RuhStatusDescriptor::default()
            };
            data.extend_from_slice(descriptor.as_bytes());
        }
        assert_eq!(data.len() as u64, status_bytes(placements), "the header counts the descriptors");
        data.truncate(bytes as usize);
        Ok(Execution::DONE)
    }

    /// Executes Reclaim Unit Handle Update. Each listed placement identifier gets a new reclaim
    /// unit.
    pub(crate) fn handle_update(&mut self, data: &[u8]) -> CommandResult {
        check_enabled(self.fdp)?;
        let groups = self.device.layout().groups;
        let mut placements = Vec::with_capacity(data.len() / 2);
        for bytes in data.chunks_exact(2) {
            let pid = u16::from_le_bytes([bytes[0], bytes[1]]);
            let (group, position) = split_placement_identifier(pid, groups);
            let listed = PlacementList::new(&self.namespace.placement_handles, groups).at(group, position);
            placements.push(listed.ok_or_else(|| {
                let cause = format!("placement identifier {pid:#x} does not exist in namespace {}", self.nsid);
                Failure::invalid_field(Parameter::DATA_POINTER, cause)
            })?);
        }
        for placement in placements {
            self.leave_reclaim_unit(placement, kind::RU_NOT_FULLY_WRITTEN);
        }
        Ok(Execution::DONE)
    }

    /// Closes a handle's reclaim unit before it is full, and logs the event of this type.
    fn leave_reclaim_unit(&mut self, placement: Placement, event_kind: u8) {
        let left = self.device.update_handle(self.clock.now(), placement);
        let unwritten = left.expect("a handle of the device");
        self.units.forget(placement);
        if unwritten > 0 {
            let source = EventSource::new(self.device, self.clock);
            let of = ReportedNamespace::new(self.nsid, self.namespace);
            self.fdp.events.note_unit_left(&source, &of, placement, event_kind);
        }
    }
}

fn status_bytes(placements: PlacementList<'_>) -> u64 {
    let descriptors = usize::from(placements.count());
    (size_of::<RuhStatusHeader>() + descriptors * size_of::<RuhStatusDescriptor>()) as u64
}

impl Subsystem {
    pub(crate) fn handle_status_bytes(&self, id: u16, nsid: u32) -> Result<u64, Failure> {
        let namespace = self.state.namespaces.active(id, nsid)?;
        Ok(status_bytes(PlacementList::new(&namespace.placement_handles, self.device.layout().groups)))
    }

    /// Closes reclaim units that have been open for longer than the time limit.
    pub(crate) fn check_time_limits(&mut self) {
        for placement in self.fdp.units.expired(self.clock.now()) {
            match self.state.namespaces.of_handle(placement.handle) {
                Some(nsid) => self.namespace_io(nsid).leave_reclaim_unit(placement, kind::RU_TIME_LIMIT_EXCEEDED),
                None => self.fdp.units.forget(placement),
            }
        }
        assert!(
            self.fdp.units.expired(self.clock.now()).is_empty(),
            "no reclaim unit is open for longer than the limit"
        );
    }

    pub(crate) fn overflow_host_events(&mut self) {
        if self.state.fdp.enabled {
            self.state.fdp.events.overflow_host_events(&EventSource::new(&self.device, &self.clock));
        }
    }

    pub(crate) fn note_device_events(&mut self) {
        let events = self.device.sink_mut().take();
        if !self.state.fdp.enabled {
            return;
        }
        let source = EventSource::new(&self.device, &self.clock);
        let (namespaces, log) = (&self.state.namespaces, &mut self.state.fdp.events);
        for event in events {
            match event {
                DeviceEvent::Close { group, owner, .. } => {
                    let handle = owner.handle().expect("a reported event belongs to a handle");
                    let placement = Placement { group, handle };
                    // The command that closed the unit may have written to its successor already.
                    note_unit_written(&self.device, &mut self.fdp.units, self.clock.now(), placement, true);
                    if let Some(nsid) = namespaces.of_handle(handle) {
                        let of = ReportedNamespace::new(nsid, namespaces.get(nsid));
                        log.note_unit_left(&source, &of, placement, kind::IMPLICITLY_MODIFIED_RUH);
                    }
                }
                DeviceEvent::Reclaim(reclaim) => log.note_collection(&source, namespaces.reported(), &reclaim),
                other => unreachable!("{other:?} does not become an event"),
            }
        }
    }

    /// Reports to every namespace that its handles reference other reclaim units than before.
    /// Called after a restart that lost the units.
    pub fn note_handles_modified_by_reset(&mut self) {
        if self.state.fdp.enabled {
            let source = EventSource::new(&self.device, &self.clock);
            for of in self.state.namespaces.reported() {
                self.state.fdp.events.note_reset(&source, &of);
            }
        }
    }
}
