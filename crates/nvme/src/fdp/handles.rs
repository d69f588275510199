//! Reclaim unit handles: where writes go, Reclaim Unit Handle Status and Update (I/O Management Receive and Send), and
//! the time for which reclaim units may stay open.

use std::collections::BTreeMap;

use nvme_spec::Status;
use nvme_spec::fdp::{RuhStatusDescriptor, RuhStatusHeader};
use ssd::{Event, Nanos, Placement, PlacementList, RgId, RuhId};
use zerocopy::IntoBytes;

use super::configuration::{placement_identifier, split_placement_identifier};
use super::directive::WriteDirective;
use super::events::{EventSource, ReportedNamespace, kind};
use crate::completion::Success;
use crate::error::{Failure, Parameter};
use crate::namespace::Namespace;
use crate::subsystem::Subsystem;

const SECOND_NS: Nanos = 1_000_000_000;

/// The time at which each handle's reclaim unit was first written to, for the time limit (ERUTL).
#[derive(Debug, Default)]
pub(crate) struct OpenUnits {
    /// By reclaim group and handle.
    since: BTreeMap<(u16, u16), Nanos>,
    /// Seconds that a reclaim unit may stay open; 0 for no limit.
    limit_s: u32,
}

impl OpenUnits {
    /// Nothing is open.
    pub(crate) fn new(limit_s: u32) -> OpenUnits {
        OpenUnits {
            since: BTreeMap::new(),
            limit_s,
        }
    }

    /// Whether there is a time limit. Without one nothing is noted.
    #[inline]
    pub(crate) fn is_limited(&self) -> bool {
        self.limit_s > 0
    }

    /// All reclaim units are gone.
    pub(crate) fn clear(&mut self) {
        self.since.clear();
    }

    /// A handle's reclaim unit was written to, in the course of which the one that it had before was `filled` or not.
    /// `is_begun`: whether something is in the one that it has now.
    fn note_written(&mut self, now: Nanos, placement: Placement, is_begun: bool, filled: bool) {
        let key = key_of(placement);
        if !is_begun {
            // Filled to the last page: the next write begins another one.
            self.since.remove(&key);
        } else if filled {
            self.since.insert(key, now);
        } else {
            self.since.entry(key).or_insert(now);
        }
        let since = self.since.get(&key);
        assert_eq!(
            since.is_some(),
            is_begun,
            "the time of a reclaim unit begins with its first page"
        );
        assert!(
            since.is_none_or(|&since| since <= now),
            "no reclaim unit is open since later"
        );
    }

    /// A handle has a new reclaim unit.
    fn forget(&mut self, placement: Placement) {
        self.since.remove(&key_of(placement));
    }

    /// Estimated time until a handle's reclaim unit reaches the limit, in seconds; 0 without limit (EARUTR).
    fn seconds_left(&self, now: Nanos, placement: Placement) -> u32 {
        match self.since.get(&key_of(placement)) {
            _ if self.limit_s == 0 => 0,
            None => self.limit_s,
            Some(since) => self.limit_s.saturating_sub(((now - since) / SECOND_NS) as u32),
        }
    }

    /// The handles whose reclaim units have been open for as long as the limit.
    fn expired(&self, now: Nanos) -> Vec<Placement> {
        if self.limit_s == 0 {
            return Vec::new();
        }
        let limit_ns = u64::from(self.limit_s) * SECOND_NS;
        let expired = self.since.iter().filter(|(_, since)| now - **since >= limit_ns);
        expired
            .map(|(&(group, handle), _)| Placement::new(group, handle))
            .collect()
    }
}

fn key_of(placement: Placement) -> (u16, u16) {
    (placement.group.0, placement.handle.0)
}

/// Reason why a directive leads to no placement.
pub(crate) enum UnresolvedDirective {
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
    pub(crate) fn resolve(&mut self, nsid: u32, directive: WriteDirective) -> Result<Placement, Failure> {
        let named = match self.named_placement(nsid, directive) {
            Ok(named) => named,
            Err(UnresolvedDirective::NotEnabled) => {
                let cause = "the data placement directive needs Flexible Data Placement, which is not enabled";
                return Err(Failure::invalid_field(Parameter::dword(12, 20), cause));
            }
            Err(UnresolvedDirective::Unknown(pid)) => {
                let source = self.event_source();
                let of = reported(&self.state.namespaces, nsid);
                self.state.fdp.events.note_invalid_identifier(&source, &of, pid);
                None
            }
        };
        Ok(self.named_or_default(nsid, named))
    }

    /// The placement that a command names, if it names one.
    pub(crate) fn named_placement(
        &self,
        nsid: u32,
        directive: WriteDirective,
    ) -> Result<Option<Placement>, UnresolvedDirective> {
        match directive {
            WriteDirective::None => Ok(None),
            WriteDirective::Placement(_) if !self.state.fdp.enabled => Err(UnresolvedDirective::NotEnabled),
            WriteDirective::Placement(pid) => self
                .placement(nsid, pid)
                .map(Some)
                .ok_or(UnresolvedDirective::Unknown(pid)),
        }
    }

    /// Where a write goes that names this, or nothing.
    pub(crate) fn named_or_default(&mut self, nsid: u32, named: Option<Placement>) -> Placement {
        let first = self.namespace(nsid).placement_handles[0];
        named.unwrap_or_else(|| self.device.default_placement(first))
    }

    /// Pages left in a handle's reclaim unit of every group, if they matter: for [`Subsystem::note_pages_written`]
    /// after writing.
    pub(crate) fn pages_before_writing(&mut self, handle: RuhId) -> Option<Vec<u32>> {
        // Left by a command that failed on its way.
        self.device.sink_mut().forget_redirected();
        let left = |group| {
            self.device
                .available_media_writes(Placement { group, handle })
                .expect("a handle of the device")
        };
        let matters = self.opened.is_limited();
        matters.then(|| (0..self.device.layout().groups).map(RgId).map(left).collect())
    }

    /// The time of a reclaim unit begins with the first page that is written to it. A reclaim group that is full passes
    /// pages on to others, and then it is their reclaim units that are written.
    pub(crate) fn note_pages_written(&mut self, placement: Placement, pages: u64, left_before: Option<Vec<u32>>) {
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

    fn note_unit_written(&mut self, placement: Placement, filled: bool) {
        let is_begun = self.device.is_unit_begun(placement).expect("a handle of the device");
        self.opened.note_written(self.now, placement, is_begun, filled);
    }

    /// The handle and group of a placement identifier, `None` if the namespace has no such handle or the drive no such
    /// group.
    fn placement(&self, nsid: u32, pid: u16) -> Option<Placement> {
        let (group, placement_handle) = split_placement_identifier(pid, self.device.layout().groups);
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
    pub(crate) fn handle_status_bytes(&self, id: u16, nsid: u32) -> Result<u64, Failure> {
        let descriptors = usize::from(self.placements_of(self.active_namespace(id, nsid)?).count());
        Ok((size_of::<RuhStatusHeader>() + descriptors * size_of::<RuhStatusDescriptor>()) as u64)
    }

    /// Reclaim unit handle status: a descriptor for each placement handle and reclaim group, as much as the host has
    /// room for; the header counts them all.
    pub(crate) fn handle_status(&mut self, nsid: u32, bytes: u64, data: &mut Vec<u8>) -> Result<Success, Failure> {
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
                pid: placement_identifier(placement.group.0, index / groups, groups).into(),
                ruhid: placement.handle.0.into(),
                earutr: self.opened.seconds_left(self.now, placement).into(),
                ruamw: (u64::from(pages) * blocks_per_page).into(),
                ..RuhStatusDescriptor::default()
            };
            data.extend_from_slice(descriptor.as_bytes());
        }
        data.truncate(bytes as usize);
        Ok(Success::DONE)
    }

    /// Reclaim unit handle update: each placement identifier in the list goes on in a new reclaim unit.
    pub(crate) fn handle_update(&mut self, nsid: u32, data: &[u8]) -> Result<Success, Failure> {
        self.require_fdp()?;
        let mut placements = Vec::with_capacity(data.len() / 2);
        for bytes in data.chunks_exact(2) {
            let pid = u16::from_le_bytes([bytes[0], bytes[1]]);
            let Some(placement) = self.placement(nsid, pid) else {
                let cause = format!("placement identifier {pid:#x} does not exist in namespace {nsid}");
                return Err(Failure::invalid_field(Parameter::DATA_POINTER, cause));
            };
            placements.push(placement);
        }
        for placement in placements {
            self.leave_reclaim_unit(nsid, placement, kind::RU_NOT_FULLY_WRITTEN);
        }
        Ok(Success::DONE)
    }

    /// Closes a handle's reclaim unit before it is full, with the event that says why.
    fn leave_reclaim_unit(&mut self, nsid: u32, placement: Placement, event_kind: u8) {
        let left = self.device.update_handle(self.now, placement);
        let unwritten = left.expect("a handle of the device");
        self.opened.forget(placement);
        if unwritten > 0 {
            let source = self.event_source();
            let of = reported(&self.state.namespaces, nsid);
            self.state
                .fdp
                .events
                .note_unit_left(&source, &of, placement, event_kind);
        }
    }

    /// Closes reclaim units that have been open for longer than the time limit.
    pub(crate) fn check_time_limits(&mut self) {
        for placement in self.opened.expired(self.now) {
            match self.namespace_of_handle(placement.handle) {
                Some(nsid) => self.leave_reclaim_unit(nsid, placement, kind::RU_TIME_LIMIT_EXCEEDED),
                None => self.opened.forget(placement),
            }
        }
    }

    /// The first namespace that writes through a handle.
    fn namespace_of_handle(&self, handle: RuhId) -> Option<u32> {
        let writes = |namespace: &Namespace| namespace.placement_handles.contains(&handle);
        let found = self.namespaces().find(|(_, namespace)| writes(namespace));
        found.map(|(nsid, _)| nsid)
    }

    /// The drive as the reporting rules see it now.
    fn event_source(&self) -> EventSource {
        EventSource {
            groups: self.device.layout().groups,
            page_bytes: self.page_bytes(),
            log_entries: self.device.config().events.log_entries,
            timestamp: self.timestamp(),
            sole_nsid: None,
        }
    }

    /// Fills the host log with events that say nothing, so that all that was in it is lost.
    pub(crate) fn overflow_host_events(&mut self) {
        if self.state.fdp.enabled {
            let source = self.event_source();
            self.state.fdp.events.overflow_host_events(&source);
        }
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
                Event::Reclaim(reclaim) => {
                    let source = self.event_source();
                    let namespaces = all_reported(&self.state.namespaces);
                    self.state.fdp.events.note_collection(&source, namespaces, &reclaim);
                }
                other => unreachable!("{other:?} becomes no event"),
            }
        }
    }

    fn note_modified(&mut self, placement: Placement) {
        // The command that made room may have gone on to write to the reclaim unit after it.
        self.note_unit_written(placement, true);
        if let Some(nsid) = self.namespace_of_handle(placement.handle) {
            let source = self.event_source();
            let of = reported(&self.state.namespaces, nsid);
            let kind = kind::IMPLICITLY_MODIFIED_RUH;
            self.state.fdp.events.note_unit_left(&source, &of, placement, kind);
        }
    }

    /// Tells every namespace that its handles reference other reclaim units than before (after a restart that lost
    /// them).
    pub fn note_handles_modified_by_reset(&mut self) {
        if self.state.fdp.enabled {
            let source = self.event_source();
            for of in all_reported(&self.state.namespaces) {
                self.state.fdp.events.note_reset(&source, &of);
            }
        }
    }
}

/// The namespaces as the reporting rules see them.
fn all_reported(namespaces: &[Option<Namespace>]) -> impl Iterator<Item = ReportedNamespace<'_>> + Clone {
    let numbered = (1..).zip(namespaces);
    numbered.filter_map(|(nsid, namespace)| Some(ReportedNamespace::of(nsid, namespace.as_ref()?)))
}

/// One that exists.
fn reported(namespaces: &[Option<Namespace>], nsid: u32) -> ReportedNamespace<'_> {
    let namespace = namespaces[nsid as usize - 1].as_ref();
    ReportedNamespace::of(nsid, namespace.expect("an active namespace"))
}
