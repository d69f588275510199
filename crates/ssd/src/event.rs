//! What happens inside the device, as a stream of values to a sink.
//!
//! The sink is a type parameter of [`crate::Device`], but not of what works in there: each call makes a listener of it
//! ([`Events`]), and events are made only where the sink wants to hear them. Events are the second witness of the
//! counters ([`crate::stats::Stats::apply`]) and the source of the GC log.

use serde::{Deserialize, Serialize};

use crate::cast::narrow;
use crate::config::ReportedPage;
use crate::types::{Lpn, MappedRun, Nanos, Owner, Placement, RgId, RuId, Write};

/// How much a sink wants to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Nothing; events are not even made.
    Nothing,
    /// What becomes of reclaim units, and pages that go to another group: rare beside the commands of a host.
    ReclaimUnits,
    /// The commands of the host too ([`Event::HostWrite`], [`Event::Deallocate`]), a call for each.
    Everything,
}

/// Receives every event of a device that it wants to hear, in order.
pub trait EventSink {
    /// How much that is; asked with every call of the device.
    fn interest(&self) -> Interest {
        Interest::Everything
    }

    /// Takes one event.
    fn event(&mut self, event: &Event);

    /// Takes writes of the host that were carried out together: an [`Event::HostWrite`] for each, in order.
    fn host_writes(&mut self, writes: &[Write]) {
        for write in writes {
            self.event(&Event::HostWrite(HostWrite::from(write)));
        }
    }

    /// Takes runs of pages that collection copies: all of them, in their order in the flash, before the [`Event::Reclaim`] that they
    /// belong to. A run may be told in parts.
    fn copied(&mut self, runs: &[MappedRun]) {
        let _ = runs;
    }
}

impl EventSink for () {
    fn interest(&self) -> Interest {
        Interest::Nothing
    }

    fn event(&mut self, _event: &Event) {}
}

/// Who hears of what happens in one call of the device.
pub(crate) struct Events<'a> {
    listener: Option<&'a mut dyn EventSink>,
    hears_commands: bool,
}

impl<'a> Events<'a> {
    #[inline]
    pub(crate) fn of(sink: &'a mut impl EventSink) -> Events<'a> {
        let interest = sink.interest();
        Events {
            listener: (interest != Interest::Nothing).then_some(sink as &mut dyn EventSink),
            hears_commands: interest == Interest::Everything,
        }
    }

    /// Tells what became of a reclaim unit.
    #[inline]
    pub(crate) fn emit(&mut self, event: impl FnOnce() -> Event) {
        if let Some(listener) = &mut self.listener {
            listener.event(&event());
        }
    }

    /// Tells a command of the host.
    #[inline]
    pub(crate) fn command(&mut self, event: impl FnOnce() -> Event) {
        if self.hears_commands {
            self.emit(event);
        }
    }

    /// Tells writes of the host that were carried out together.
    #[inline]
    pub(crate) fn host_writes(&mut self, writes: &[Write]) {
        if self.hears_commands
            && let Some(listener) = &mut self.listener
        {
            listener.host_writes(writes);
        }
    }

    /// Tells which pages are copied, and `report` too; if nobody listens, neither.
    pub(crate) fn copied(&mut self, runs: &[MappedRun], report: &mut Reporter) {
        if let Some(listener) = &mut self.listener {
            report.extend(runs);
            listener.copied(runs);
        }
    }
}

impl EventSink for Vec<Event> {
    fn event(&mut self, event: &Event) {
        self.push(event.clone());
    }
}

impl<F: FnMut(&Event)> EventSink for F {
    fn event(&mut self, event: &Event) {
        self(event);
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Event {
    /// The host wrote an extent.
    HostWrite(HostWrite),
    /// The host deallocated this many mapped pages.
    Deallocate {
        /// Pages that were mapped before.
        pages: u32,
    },
    /// Pages of a host write went to another reclaim group, because the one asked for holds all it can.
    Redirect {
        /// The group asked for.
        from: RgId,
        /// The group that took them.
        to: RgId,
        /// How many.
        pages: u32,
    },
    /// A reclaim unit was taken from the free ones.
    Open {
        /// Its group.
        group: RgId,
        /// The reclaim unit.
        unit: RuId,
        /// For whom.
        owner: Owner,
        /// Its size.
        unit_pages: u32,
        /// Whether only collection writes to it, not the host.
        for_collection: bool,
    },
    /// A reclaim unit takes no more pages.
    Close {
        /// Its group.
        group: RgId,
        /// The reclaim unit.
        unit: RuId,
        /// Whose it is.
        owner: Owner,
        /// Pages that were never written.
        unwritten_pages: u32,
        /// Why.
        reason: CloseReason,
    },
    /// A reclaim unit was reclaimed and erased.
    Reclaim(Reclaim),
}

/// A host write, as given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostWrite {
    /// Where the host wanted it.
    pub placement: Placement,
    /// Bytes that the host sent.
    pub host_bytes: u64,
    /// Pages programmed.
    pub pages: u32,
}

impl From<&Write> for HostWrite {
    #[inline]
    fn from(write: &Write) -> HostWrite {
        HostWrite {
            placement: write.placement,
            host_bytes: write.host_bytes,
            pages: write.pages,
        }
    }
}

/// Why a reclaim unit was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloseReason {
    /// It is full.
    Full,
    /// The host asked for another one (reclaim unit handle update, NVMe 2.1 I/O Management Send).
    HostUpdate,
    /// Its unwritten pages were needed elsewhere.
    RoomNeeded,
    /// The handle's isolation changed and its copies go elsewhere now.
    IsolationChanged,
}

/// Why a reclaim unit was reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The background mark.
    Background,
    /// The foreground mark.
    Foreground,
    /// The policy found nothing, and room was needed.
    Forced,
}

impl Trigger {
    /// The name in logs and tables.
    pub fn name(self) -> &'static str {
        match self {
            Trigger::Background => "background",
            Trigger::Foreground => "foreground",
            Trigger::Forced => "forced",
        }
    }
}

/// One collection: the row of the GC log (WARP section 4.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reclaim {
    /// Pages that the host had written to the device before it: the device's own sense of when.
    pub host_pages_written: u64,
    /// The caller's time at its start.
    pub now: Nanos,
    /// What made it necessary.
    pub trigger: Trigger,
    /// The policy that chose the victim, as named in the configuration.
    pub policy: &'static str,
    /// The group it took place in.
    pub group: RgId,
    /// The reclaim unit reclaimed.
    pub victim: RuId,
    /// Whose data it held.
    pub victim_owner: Owner,
    /// Whose reclaim unit took the copies.
    pub destination_owner: Owner,
    /// Size of the victim.
    pub unit_pages: u32,
    /// Valid pages in it.
    pub valid_pages: u32,
    /// Pages copied; less than the valid ones where blocks were remapped.
    pub pages_copied: u32,
    /// The copied pages that are reported, `None` if nothing was copied or nothing is to be named.
    pub moved: Option<MovedRun>,
    /// Blocks moved without copying.
    pub blocks_remapped: u32,
    /// Time until the victim was erased; 0 without timing.
    pub elapsed_ns: Nanos,
}

/// The copied pages that the report of a collection names (`events.reported_page`): with `longest_run` that run, so
/// that the host learns the largest piece of data that was in the wrong place (Kang & Shin, section II), otherwise a
/// single page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MovedRun {
    /// First logical page.
    pub first: Lpn,
    /// Consecutive logical pages from it on that were copied one after the other; at least 1.
    pub pages: u32,
}

/// Finds what is reported of copied pages, which come in the order in which they are copied.
pub(crate) enum Reporter {
    /// The longest run.
    LongestRun(LongestRun),
    /// The page that comes after so many others, and what it is once it has come.
    Page(u32, Option<Lpn>),
    /// Nothing.
    Silent,
}

impl Reporter {
    /// `pages`: how many will come; `draw`: any number, for the choice of a random one.
    pub(crate) fn new(reported: ReportedPage, pages: u32, draw: u64) -> Reporter {
        match reported {
            ReportedPage::LongestRun => Reporter::LongestRun(LongestRun::default()),
            ReportedPage::First => Reporter::Page(0, None),
            ReportedPage::Random => Reporter::Page(narrow(draw % u64::from(pages.max(1))), None),
            ReportedPage::None => Reporter::Silent,
        }
    }

    #[inline]
    pub(crate) fn extend(&mut self, runs: &[MappedRun]) {
        match self {
            Reporter::LongestRun(longest) => longest.extend(runs),
            Reporter::Page(before, found) if found.is_none() => {
                for run in runs {
                    if *before < run.pages {
                        *found = Some(Lpn(run.lpn.0 + *before));
                        break;
                    }
                    *before -= run.pages;
                }
            }
            Reporter::Page(..) | Reporter::Silent => {}
        }
    }

    pub(crate) fn finish(self) -> Option<MovedRun> {
        match self {
            Reporter::LongestRun(run) => run.finish(),
            Reporter::Page(_, found) => found.map(|first| MovedRun { first, pages: 1 }),
            Reporter::Silent => None,
        }
    }
}

/// Finds the longest run of consecutive logical pages in the order in which they come; of equally long ones the first.
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
                    self.current = Some(MovedRun {
                        first: run.lpn,
                        pages: run.pages,
                    });
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
