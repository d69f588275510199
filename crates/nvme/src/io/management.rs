//! Placement of I/O commands: placement identifiers, reclaim unit handle status and update, and what becomes an FDP
//! event.

use nvme_spec::Status;
use nvme_spec::fdp::{RuhStatusDescriptor, RuhStatusHeader};
use ssd::event::Reclaim;
use ssd::{Event, Placement, PlacementList, RgId, RuhId};
use zerocopy::IntoBytes;

use super::Directive;
use crate::completion::Success;
use crate::error::{Failure, Parameter};
use crate::fdp::{self, FdpEvent, Reallocation, kind};
use crate::namespace::Namespace;
use crate::subsystem::Subsystem;

/// Why a directive leads to no placement.
pub(super) enum Unnamed {
    /// Flexible Data Placement is not enabled.
    NotEnabled,
    /// The namespace has no such placement identifier.
    Unknown(u16),
}

impl Subsystem {
    /// Where a write goes.
    ///
    /// A placement identifier that does not exist is no error: the data goes where it would go without one
    /// ([`ssd::Device::default_placement`]), and the host event log says so (NVMe 2.1, Flexible Data Placement).
    pub(super) fn resolve(&mut self, nsid: u32, directive: Directive) -> Result<Placement, Failure> {
        let named = match self.named_placement(nsid, directive) {
            Ok(named) => named,
            Err(Unnamed::NotEnabled) => {
                let cause = "the data placement directive needs Flexible Data Placement, which is not enabled";
                return Err(Failure::invalid_field(Parameter::dword(12, 20), cause));
            }
            Err(Unnamed::Unknown(pid)) => {
                self.log_host_event(
                    nsid,
                    0,
                    FdpEvent {
                        pid: Some(pid),
                        ..self.new_event(kind::INVALID_PLACEMENT_IDENTIFIER, nsid)
                    },
                );
                None
            }
        };
        Ok(self.named_or_default(nsid, named))
    }

    /// The placement that a command names, if it names one.
    pub(super) fn named_placement(&self, nsid: u32, directive: Directive) -> Result<Option<Placement>, Unnamed> {
        match directive {
            Directive::None => Ok(None),
            Directive::Placement(_) if !self.state.fdp.enabled => Err(Unnamed::NotEnabled),
            Directive::Placement(pid) => self.placement(nsid, pid).map(Some).ok_or(Unnamed::Unknown(pid)),
        }
    }

    /// Where a write goes that names this, or nothing.
    pub(super) fn named_or_default(&mut self, nsid: u32, named: Option<Placement>) -> Placement {
        let first = self.namespace(nsid).placement_handles[0];
        named.unwrap_or_else(|| self.device.default_placement(first))
    }

    /// Pages left in a handle's reclaim unit of every group, if they matter: for [`Subsystem::note_pages_written`]
    /// after writing.
    pub(super) fn pages_before_writing(&mut self, handle: RuhId) -> Option<Vec<u32>> {
        // Left by a command that failed on its way.
        self.device.sink_mut().forget_redirected();
        let left = |group| {
            self.device
                .available_media_writes(Placement { group, handle })
                .expect("a handle of the device")
        };
        let matters = self.config.reclaim_unit_time_limit_s > 0;
        matters.then(|| (0..self.device.layout().groups).map(RgId).map(left).collect())
    }

    /// The time of a reclaim unit begins with the first page that is written to it. A reclaim group that is full passes
    /// pages on to others, and then it is their reclaim units that are written.
    pub(super) fn note_pages_written(&mut self, placement: Placement, pages: u64, left_before: Option<Vec<u32>>) {
        let Some(left_before) = left_before else {
            return self.device.sink_mut().forget_redirected();
        };
        let mut by_group = self.device.sink_mut().take_redirected();
        let asked = pages - by_group.values().sum::<u64>();
        *by_group.entry(placement.group.0).or_default() += asked;
        for (group, pages) in by_group {
            let filled = pages >= u64::from(left_before[usize::from(group)]);
            if pages > 0 {
                let group = RgId(group);
                self.note_unit_written(Placement { group, ..placement }, filled);
            }
        }
    }

    /// A handle's reclaim unit was written to, in the course of which the one that it had before was `filled` or not.
    fn note_unit_written(&mut self, placement: Placement, filled: bool) {
        let key = (placement.group.0, placement.handle.0);
        if !self.device.is_unit_begun(placement).expect("a handle of the device") {
            // Filled to the last page: the next write begins another one.
            self.opened.remove(&key);
        } else if filled {
            self.opened.insert(key, self.now);
        } else {
            self.opened.entry(key).or_insert(self.now);
        }
    }

    /// The handle and group of a placement identifier, `None` if the namespace has no such handle or the drive no such
    /// group.
    fn placement(&self, nsid: u32, pid: u16) -> Option<Placement> {
        let (group, placement_handle) = fdp::split_placement_identifier(pid, self.device.layout().groups);
        self.placements(nsid).at(group, placement_handle)
    }

    /// What a namespace may use.
    fn placements(&self, nsid: u32) -> PlacementList<'_> {
        self.placements_of(self.namespace(nsid))
    }

    fn placements_of<'a>(&self, namespace: &'a Namespace) -> PlacementList<'a> {
        PlacementList::new(&namespace.placement_handles, self.device.layout().groups)
    }

    pub(crate) fn require_fdp(&self) -> Result<(), Failure> {
        if self.state.fdp.enabled {
            return Ok(());
        }
        let cause = "Flexible Data Placement is not enabled in the endurance group";
        Err(Failure::new(Status::FDP_DISABLED, cause))
    }

    /// Bytes of the whole reclaim unit handle status of a namespace.
    pub(super) fn handle_status_bytes(&self, id: u16, nsid: u32) -> Result<u64, Failure> {
        let descriptors = usize::from(self.placements_of(self.active_namespace(id, nsid)?).count());
        Ok((size_of::<RuhStatusHeader>() + descriptors * size_of::<RuhStatusDescriptor>()) as u64)
    }

    /// Reclaim unit handle status: a descriptor for each placement handle and reclaim group, as much as the host has
    /// room for; the header counts them all.
    pub(super) fn handle_status(&mut self, nsid: u32, bytes: u64, data: &mut Vec<u8>) -> Result<Success, Failure> {
        self.require_fdp()?;
        let namespace = self.namespace(nsid);
        let (groups, placements) = (self.device.layout().groups, self.placements_of(namespace));
        let blocks_per_page = self.page_bytes() >> namespace.block_bytes_log2();
        let header = RuhStatusHeader {
            nruhsd: placements.count().into(),
            ..RuhStatusHeader::default()
        };
        data.clear();
        data.extend_from_slice(header.as_bytes());
        for (index, placement) in (0..).zip(placements.iter()) {
            let pages = self
                .device
                .available_media_writes(placement)
                .expect("a handle of the device");
            let descriptor = RuhStatusDescriptor {
                pid: fdp::placement_identifier(placement.group.0, index / groups, groups).into(),
                ruhid: placement.handle.0.into(),
                earutr: self.seconds_left(placement).into(),
                ruamw: (u64::from(pages) * blocks_per_page).into(),
                ..RuhStatusDescriptor::default()
            };
            data.extend_from_slice(descriptor.as_bytes());
        }
        data.truncate(bytes as usize);
        Ok(Success::DONE)
    }

    /// Estimated time until the reclaim unit of a handle reaches the time limit, in seconds; 0 without limit (EARUTR).
    fn seconds_left(&self, placement: Placement) -> u32 {
        let limit = self.config.reclaim_unit_time_limit_s;
        match self.opened.get(&(placement.group.0, placement.handle.0)) {
            _ if limit == 0 => 0,
            None => limit,
            Some(since) => limit.saturating_sub(((self.now - since) / 1_000_000_000) as u32),
        }
    }

    /// Reclaim unit handle update: each placement identifier in the list goes on in a new reclaim unit.
    pub(super) fn handle_update(&mut self, nsid: u32, data: &[u8]) -> Result<Success, Failure> {
        self.require_fdp()?;
        let mut placements = Vec::with_capacity(data.len() / 2);
        for bytes in data.chunks_exact(2) {
            let pid = u16::from_le_bytes([bytes[0], bytes[1]]);
            let Some(placement) = self.placement(nsid, pid) else {
                let cause = format!("placement identifier {pid:#x} does not exist in namespace {nsid}");
                return Err(Failure::invalid_field(Parameter::DATA_POINTER, cause));
            };
            placements.push((pid, placement));
        }
        for (pid, placement) in placements {
            self.leave_reclaim_unit(nsid, pid, placement, kind::RU_NOT_FULLY_WRITTEN);
        }
        Ok(Success::DONE)
    }

    /// Closes a handle's reclaim unit before it is full, with the event that says why.
    fn leave_reclaim_unit(&mut self, nsid: u32, pid: u16, placement: Placement, event_kind: u8) {
        let unwritten = self
            .device
            .update_handle(self.now, placement)
            .expect("a handle of the device");
        self.opened.remove(&(placement.group.0, placement.handle.0));
        if unwritten > 0 {
            let (_, index) = fdp::split_placement_identifier(pid, self.device.layout().groups);
            let event = FdpEvent {
                pid: Some(pid),
                location: Some(placement),
                ..self.new_event(event_kind, nsid)
            };
            self.log_host_event(nsid, index, event);
        }
    }

    /// Closes reclaim units that have been open for longer than the time limit.
    pub(crate) fn check_time_limits(&mut self) {
        let limit_ns = u64::from(self.config.reclaim_unit_time_limit_s) * 1_000_000_000;
        if limit_ns == 0 {
            return;
        }
        let now = self.now;
        let expired = self.opened.iter().filter(|(_, since)| now - **since >= limit_ns);
        let expired: Vec<(u16, u16)> = expired.map(|(&key, _)| key).collect();
        for (group, handle) in expired {
            let placement = Placement::new(group, handle);
            match self.namespace_of_handle(placement) {
                Some((nsid, pid)) => self.leave_reclaim_unit(nsid, pid, placement, kind::RU_TIME_LIMIT_EXCEEDED),
                None => {
                    self.opened.remove(&(group, handle));
                }
            }
        }
    }

    /// The first namespace that writes through a handle, with its placement identifier for it.
    fn namespace_of_handle(&self, placement: Placement) -> Option<(u32, u16)> {
        let groups = self.device.layout().groups;
        self.namespaces().find_map(|(nsid, namespace)| {
            let placement_handle = self.placements_of(namespace).placement_handle(placement.handle)?;
            Some((
                nsid,
                fdp::placement_identifier(placement.group.0, placement_handle, groups),
            ))
        })
    }

    /// An event of now, without particulars.
    fn new_event(&self, kind: u8, nsid: u32) -> FdpEvent {
        FdpEvent {
            kind,
            pid: None,
            nsid: Some(nsid),
            location: None,
            timestamp: self.timestamp(),
            reallocated: None,
        }
    }

    /// Puts an event in the host log, if the placement handle has it enabled.
    fn log_host_event(&mut self, nsid: u32, placement_handle: u16, event: FdpEvent) {
        assert!(kind::is_host_event(event.kind), "{} is a controller event", event.kind);
        if self.is_event_enabled(nsid, placement_handle, event.kind) {
            self.add_host_event(event);
        }
    }

    fn add_host_event(&mut self, event: FdpEvent) {
        let entries = usize::from(self.device.config().events.log_entries);
        self.state.fdp.host_events.push(event, entries);
    }

    /// Fills the host log with events that say nothing, so that all that was in it is lost.
    pub(crate) fn overflow_host_events(&mut self) {
        if !self.state.fdp.enabled {
            return;
        }
        let event = FdpEvent {
            nsid: None,
            ..self.new_event(kind::INVALID_PLACEMENT_IDENTIFIER, 0)
        };
        for _ in 0..self.device.config().events.log_entries {
            self.add_host_event(event.clone());
        }
    }

    fn log_controller_event(&mut self, event: FdpEvent) {
        assert!(!kind::is_host_event(event.kind), "{} is a host event", event.kind);
        let entries = usize::from(self.device.config().events.log_entries);
        self.state.fdp.controller_events.push(event, entries);
    }

    fn is_event_enabled(&self, nsid: u32, placement_handle: u16, kind: u8) -> bool {
        let masks = &self.namespace(nsid).events_enabled;
        masks
            .get(usize::from(placement_handle))
            .is_some_and(|mask| mask.contains(kind))
    }

    /// Makes controller events of what the device reported.
    pub(crate) fn note_device_events(&mut self) {
        let events = self.device.sink_mut().take();
        if !self.state.fdp.enabled {
            return;
        }
        for event in events {
            match event {
                Event::Close { group, owner, .. } => {
                    let handle = owner.handle().expect("a handle's unit, or it is not reported");
                    self.note_modified(Placement { group, handle });
                }
                Event::Reclaim(reclaim) => self.note_reallocated(&reclaim),
                other => unreachable!("{other:?} becomes no event"),
            }
        }
    }

    fn note_modified(&mut self, placement: Placement) {
        // The command that made room may have gone on to write to the reclaim unit after it.
        self.note_unit_written(placement, true);
        let Some((nsid, pid)) = self.namespace_of_handle(placement) else {
            return;
        };
        let (_, index) = fdp::split_placement_identifier(pid, self.device.layout().groups);
        if self.is_event_enabled(nsid, index, kind::IMPLICITLY_MODIFIED_RUH) {
            let event = FdpEvent {
                pid: Some(pid),
                location: Some(placement),
                ..self.new_event(kind::IMPLICITLY_MODIFIED_RUH, nsid)
            };
            self.log_controller_event(event);
        }
    }

    /// Media Reallocated: for the namespace that the named page belongs to, or, if none is named, the one that writes
    /// with the handle. Data that was written through a handle of the namespace is reported if that placement handle
    /// has the event enabled; data that collection has already mixed with others' if any has.
    fn note_reallocated(&mut self, reclaim: &Reclaim) {
        let page_bytes = self.page_bytes();
        let &Reclaim { group, moved, .. } = reclaim;
        let handle = reclaim.victim_owner.handle();
        let location = handle.map(|handle| Placement { group, handle });
        let named = moved.and_then(|moved| {
            self.namespaces()
                .find_map(|(nsid, namespace)| Some((nsid, namespace.block_of(moved.first, page_bytes)?)))
        });
        let (nsid, lba) = match (named, moved, location) {
            (Some((nsid, lba)), ..) => (nsid, Some(lba)),
            (None, None, Some(location)) => match self.namespace_of_handle(location) {
                Some((nsid, _)) => (nsid, None),
                None => return,
            },
            // Of data that is mixed already, and of which none is named, there is nothing to tell anybody.
            (None, ..) => return,
        };
        let namespace = self.namespace(nsid);
        let placement_handle = handle.and_then(|handle| self.placements_of(namespace).placement_handle(handle));
        let enabled = match placement_handle {
            Some(position) => self.is_event_enabled(nsid, position, kind::MEDIA_REALLOCATED),
            None => namespace
                .events_enabled
                .iter()
                .any(|mask| mask.contains(kind::MEDIA_REALLOCATED)),
        };
        if !enabled {
            return;
        }
        let groups = self.device.layout().groups;
        let blocks = (u64::from(reclaim.pages_copied) * page_bytes) >> namespace.block_bytes_log2();
        let event = FdpEvent {
            pid: placement_handle.map(|position| fdp::placement_identifier(group.0, position, groups)),
            location,
            reallocated: Some(Reallocation {
                blocks: u16::try_from(blocks).unwrap_or(u16::MAX),
                lba,
            }),
            ..self.new_event(kind::MEDIA_REALLOCATED, nsid)
        };
        self.log_controller_event(event);
    }

    /// Tells every namespace that its handles reference other reclaim units than before (after a restart that lost
    /// them).
    pub fn note_handles_modified_by_reset(&mut self) {
        if !self.state.fdp.enabled {
            return;
        }
        let nsids: Vec<u32> = self.namespaces().map(|(nsid, _)| nsid).collect();
        for nsid in nsids {
            let enabled = |mask: &crate::namespace::EventMask| mask.contains(kind::CONTROLLER_RESET_MODIFIED_RUHS);
            if self.namespace(nsid).events_enabled.iter().any(enabled) {
                let event = self.new_event(kind::CONTROLLER_RESET_MODIFIED_RUHS, nsid);
                self.add_host_event(event);
            }
        }
    }
}
