//! Events of the device and the trait of the sinks that receive them.
//!
//! [`crate::Device`] is generic over the sink, but [`crate::DeviceCore`] is not. Each call wraps
//! the sink in an [`EventEmitter`]. The core creates an event only if the sink's filter includes
//! it. Tests check the counters against the events ([`crate::stats::DeviceStats::apply`]). The GC
//! log is made from events.

use serde::{Deserialize, Serialize};

use crate::cast::narrow;
use crate::config::ReportedPage;
use crate::types::{Lpn, MappedRun, Nanos, Placement, RgId, RuId, RuhId, UnitOwner, WriteRequest};

/// Kinds of events that a sink wants to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventFilter {
    /// No events. The device does not create them.
    None,
    /// Life-cycle events of reclaim units, and pages redirected to another group. These are rare
    /// compared with host commands.
    ReclaimUnits,
    /// Also host commands ([`DeviceEvent::HostWrite`], [`DeviceEvent::Absorb`],
    /// [`DeviceEvent::Deallocate`]), with a call for each.
    All,
}

/// Receives the events of a device in order.
pub trait EventSink {
    /// Returns the kinds of events to receive. The device calls it for every operation.
    fn event_filter(&self) -> EventFilter {
        EventFilter::All
    }

    /// Receives one event.
    fn event(&mut self, event: &DeviceEvent);

    /// Receives a batch of host writes. Equivalent to a [`DeviceEvent::HostWrite`] for each, in
    /// order.
    fn host_writes(&mut self, writes: &[WriteRequest]) {
        for write in writes {
            self.event(&DeviceEvent::HostWrite(HostWrite::from(write)));
        }
    }

    /// Receives runs of pages that collection copies. All runs of a collection come in flash order
    /// before its [`DeviceEvent::Reclaim`]. A run may be split over several calls.
    fn copied(&mut self, runs: &[MappedRun]) {
        let _ = runs;
    }
}

impl EventSink for () {
    fn event_filter(&self) -> EventFilter {
        EventFilter::None
    }

    fn event(&mut self, _event: &DeviceEvent) {}
}

/// Event emitter of one device call.
pub(crate) struct EventEmitter<'a> {
    listener: Option<&'a mut dyn EventSink>,
    wants_commands: bool,
}

impl<'a> EventEmitter<'a> {
    #[inline]
    pub(crate) fn new(sink: &'a mut impl EventSink) -> EventEmitter<'a> {
        let filter = sink.event_filter();
        EventEmitter {
            listener: (filter != EventFilter::None).then_some(sink as &mut dyn EventSink),
            wants_commands: filter == EventFilter::All,
        }
    }

    /// Emits an event about a reclaim unit.
    #[inline]
    pub(crate) fn emit(&mut self, event: impl FnOnce() -> DeviceEvent) {
        if let Some(listener) = &mut self.listener {
            listener.event(&event());
        }
    }

    /// Emits an event about a host command.
    #[inline]
    pub(crate) fn command(&mut self, event: impl FnOnce() -> DeviceEvent) {
        if self.wants_commands {
            self.emit(event);
        }
    }

    /// Emits a batch of host writes.
    #[inline]
    pub(crate) fn host_writes(&mut self, writes: &[WriteRequest]) {
        if self.wants_commands
            && let Some(listener) = &mut self.listener
        {
            listener.host_writes(writes);
        }
    }

    /// Emits the copied pages and adds them to `report`. Does neither without a listener.
    pub(crate) fn copied(&mut self, runs: &[MappedRun], report: &mut ReportedPagePicker) {
        if let Some(listener) = &mut self.listener {
            report.extend(runs);
            listener.copied(runs);
        }
    }
}

impl EventSink for Vec<DeviceEvent> {
    fn event(&mut self, event: &DeviceEvent) {
        self.push(event.clone());
    }
}

impl<F: FnMut(&DeviceEvent)> EventSink for F {
    fn event(&mut self, event: &DeviceEvent) {
        self(event);
    }
}

/// An event inside the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum DeviceEvent {
    /// The host wrote an extent.
    HostWrite(HostWrite),
    /// The host deallocated this many mapped pages.
    Deallocate {
        /// Pages that were mapped before.
        pages: u32,
    },
    /// Pages of a host write replaced waiting pages in the write buffer
    /// (`handles.write_absorption_bytes`).
    Absorb {
        /// Handle of the write.
        handle: RuhId,
        /// Number of pages.
        pages: u32,
    },
    /// Pages of a host write went to another reclaim group because the requested group is full.
    Redirect {
        /// Requested group.
        from: RgId,
        /// Group that took the pages.
        to: RgId,
        /// Number of pages.
        pages: u32,
    },
    /// A free reclaim unit was opened.
    Open {
        /// Reclaim group of the unit.
        group: RgId,
        /// Identity of the reclaim unit.
        unit: RuId,
        /// Owner of the reclaim unit.
        owner: UnitOwner,
        /// Size of the reclaim unit in pages.
        unit_pages: u32,
        /// True if only collection writes to the unit, not the host.
        for_collection: bool,
    },
    /// A reclaim unit was closed and takes no more pages.
    Close {
        /// Reclaim group of the unit.
        group: RgId,
        /// Identity of the reclaim unit.
        unit: RuId,
        /// Owner of the reclaim unit.
        owner: UnitOwner,
        /// Pages that were never written.
        unwritten_pages: u32,
        /// Reason for closing.
        reason: CloseReason,
    },
    /// A reclaim unit was reclaimed and erased.
    Reclaim(ReclaimRecord),
    /// Static wear levelling moved the data of a closed reclaim unit to more worn blocks. The unit
    /// keeps its identity and its place.
    LevelWear {
        /// Reclaim group of the unit.
        group: RgId,
        /// Identity of the reclaim unit.
        unit: RuId,
        /// Owner of the reclaim unit.
        owner: UnitOwner,
        /// Size of the reclaim unit in pages, all of which are erased.
        unit_pages: u32,
        /// Valid pages, which are copied.
        pages_copied: u32,
    },
}

/// A host write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostWrite {
    /// Requested placement.
    pub placement: Placement,
    /// Bytes that the host sent.
    pub host_bytes: u64,
    /// Number of pages, programmed or absorbed.
    pub pages: u32,
}

impl From<&WriteRequest> for HostWrite {
    #[inline]
    fn from(write: &WriteRequest) -> HostWrite {
        HostWrite { placement: write.placement, host_bytes: write.host_bytes, pages: write.pages }
    }
}

/// Reason why a reclaim unit was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloseReason {
    /// The unit is full.
    Full,
    /// The host requested another unit (reclaim unit handle update, NVMe 2.1 I/O Management Send).
    HostUpdate,
    /// The device needed the space of its unwritten pages.
    RoomNeeded,
    /// The isolation of the handle changed, and its copies now go to another reclaim unit.
    IsolationChanged,
}

/// Reason why a reclaim unit was reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// Usage exceeds the background watermark.
    Background,
    /// Usage exceeds the foreground watermark.
    Foreground,
    /// Emergency collection. The policy found no victim, and the device needed space.
    Forced,
}

impl Trigger {
    /// Name in logs and tables.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Background => "background",
            Trigger::Foreground => "foreground",
            Trigger::Forced => "forced",
        }
    }
}

/// A garbage collection, which is one row of the GC log (WARP section 4.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReclaimRecord {
    /// Pages that the host had written before the collection, which is the device's own clock.
    pub host_pages_written: u64,
    /// Time of the caller's clock at the start.
    pub now: Nanos,
    /// Reason for the collection.
    pub trigger: Trigger,
    /// Name of the victim policy, as in the configuration.
    pub policy: &'static str,
    /// Reclaim group of the collection.
    pub group: RgId,
    /// Reclaim unit that was reclaimed.
    pub victim: RuId,
    /// Owner of the victim's data.
    pub victim_owner: UnitOwner,
    /// Owner of the reclaim unit that took the copies.
    pub destination_owner: UnitOwner,
    /// Size of the victim in pages.
    pub unit_pages: u32,
    /// Number of valid pages in the victim.
    pub valid_pages: u32,
    /// Number of pages copied. Less than `valid_pages` if blocks were remapped.
    pub pages_copied: u32,
    /// Copied pages that the event names. `None` if no page was copied or the configuration names
    /// none.
    pub moved: Option<MovedRun>,
    /// Number of blocks moved without copying.
    pub blocks_remapped: u32,
    /// Time until the victim was erased, in nanoseconds. 0 without timing.
    pub elapsed_ns: Nanos,
}

/// Copied pages that the event of a collection names (`events.reported_page`). With `longest_run`
/// these are the longest run, so that the host learns the largest piece of misplaced data (Kang &
/// Shin, section II). With the other settings it is a single page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MovedRun {
    /// First logical page.
    pub first: Lpn,
    /// Number of consecutive logical pages, copied one after the other. At least 1.
    pub pages: u32,
}

/// Selects the copied pages to report. Receives the pages in copy order.
pub(crate) enum ReportedPagePicker {
    /// Selects the longest run.
    LongestRun(LongestRun),
    /// Selects the page after this many other pages. The second field holds the page once it has
    /// come.
    Page(u32, Option<Lpn>),
    /// Selects no page.
    Silent,
}

impl ReportedPagePicker {
    /// Creates a reporter for `pages` copied pages. `draw` is a random number for the choice of a
    /// random page.
    pub(crate) fn new(reported: ReportedPage, pages: u32, draw: u64) -> ReportedPagePicker {
        match reported {
            ReportedPage::LongestRun => ReportedPagePicker::LongestRun(LongestRun::default()),
            ReportedPage::First => ReportedPagePicker::Page(0, None),
            ReportedPage::Random => ReportedPagePicker::Page(narrow(draw % u64::from(pages.max(1))), None),
            ReportedPage::None => ReportedPagePicker::Silent,
        }
    }

    #[inline]
    pub(crate) fn extend(&mut self, runs: &[MappedRun]) {
        match self {
            ReportedPagePicker::LongestRun(longest) => longest.extend(runs),
            ReportedPagePicker::Page(before, found) if found.is_none() => {
                for run in runs {
                    if *before < run.pages {
                        *found = Some(Lpn(run.lpn.0 + *before));
                        break;
                    }
                    *before -= run.pages;
                }
            }
            ReportedPagePicker::Page(..) | ReportedPagePicker::Silent => {}
        }
    }

    pub(crate) fn finish(self) -> Option<MovedRun> {
        match self {
            ReportedPagePicker::LongestRun(run) => run.finish(),
            ReportedPagePicker::Page(_, found) => found.map(|first| MovedRun { first, pages: 1 }),
            ReportedPagePicker::Silent => None,
        }
    }
}

/// Longest run of consecutive logical pages, in copy order. Among runs of equal length the first.
#[derive(Default)]
pub(crate) struct LongestRun {
    longest: Option<MovedRun>,
    current: Option<MovedRun>,
}

impl LongestRun {
    #[inline]
    pub(crate) fn extend(&mut self, runs: &[MappedRun]) {
        for run in runs {
            match &mut self.current {
                Some(current) if run.lpn.0 == current.first.0 + current.pages => current.pages += run.pages,
                _ => {
                    self.end_run();
                    self.current = Some(MovedRun { first: run.lpn, pages: run.pages });
                }
            }
        }
    }

    fn end_run(&mut self) {
        let longest = self.longest.map_or(0, |run| run.pages);
        if let Some(run) = self.current.take().filter(|run| run.pages > longest) {
            self.longest = Some(run);
        }
    }

    pub(crate) fn finish(mut self) -> Option<MovedRun> {
        self.end_run();
        self.longest
    }
}
