//! Stores: location policies for the pages that are written back.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::output::{BTreeOutput, BTreeStream};
use super::zones::Zones;
use super::{BLOCK_BYTES, BTreeSettings};
use workload::{WorkloadError, WorkloadTarget};

/// Location policy of page writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PageUpdate {
    /// Every page has a fixed location.
    InPlace,
    /// Sequentially in zones.
    OutOfPlace,
    /// First free location.
    CopyOnWrite,
}

/// Protection against torn pages in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TornPages {
    /// None, because the drive writes pages atomically.
    None,
    /// Writes pages twice, first to the doublewrite buffer (InnoDB).
    Doublewrite,
    /// Logs the whole page at its first change after a checkpoint (PostgreSQL's
    /// `full_page_writes`).
    FullPageWrites,
}

pub(super) enum PageStore {
    InPlace(InPlace),
    OutOfPlace(Box<Zones>),
    CopyOnWrite(ShadowPages),
}

impl PageStore {
    /// Creates a store for `pages` pages behind the log.
    pub(super) fn new(
        settings: &BTreeSettings,
        pages: u32,
        log_bytes: u64,
        target: &WorkloadTarget,
    ) -> Result<PageStore, WorkloadError> {
        let unit_bytes = settings.page_bytes.max(target.unit_bytes());
        let first_bytes = log_bytes.next_multiple_of(unit_bytes);
        let capacity_bytes = target.capacity_bytes();
        let no_room = |needed_bytes: u64, remedy: &str| {
            let needed = base::HumanBytes(needed_bytes);
            let problem = format!(
                "needs {needed} with log and buffers, but the drive has {}. {remedy}",
                base::HumanBytes(capacity_bytes)
            );
            WorkloadError::setting(format!("data_percent = {}", settings.data_percent), problem)
        };
        if settings.layout == PageUpdate::InPlace {
            let ring_bytes = match settings.torn_pages {
                TornPages::Doublewrite => settings.scaled(settings.doublewrite_bytes, target),
                TornPages::None | TornPages::FullPageWrites => 0,
            };
            let place = InPlace {
                page_bytes: settings.page_bytes,
                ring_start: first_bytes,
                ring_bytes,
                ring_end: 0,
                pages_start: (first_bytes + ring_bytes).next_multiple_of(unit_bytes),
            };
            let needed_bytes = place.offset_bytes(pages);
            if needed_bytes > capacity_bytes {
                return Err(no_room(needed_bytes, "Use less data, or a smaller log"));
            }
            return Ok(PageStore::InPlace(place));
        }
        let space_bytes = (capacity_bytes as f64 * settings.space_percent / 100.0) as u64;
        let space_bytes = space_bytes.min(capacity_bytes - first_bytes.min(capacity_bytes));
        let stored_bytes = ((settings.page_bytes as f64 * settings.compressed_percent / 100.0) as u64).max(1);
        let found = if settings.layout == PageUpdate::OutOfPlace {
            let zone_bytes = settings.scaled(settings.zone_bytes, target);
            Zones::new(pages, stored_bytes, (first_bytes, space_bytes), zone_bytes, settings)
                .map(|zones| PageStore::OutOfPlace(Box::new(zones)))
        } else {
            ShadowPages::new(pages, stored_bytes, (first_bytes, space_bytes), settings).map(PageStore::CopyOnWrite)
        };
        found.map_err(|needed_bytes| {
            no_room(needed_bytes, "Use less data, more space_percent, fewer groups or smaller zones")
        })
    }

    /// Writes pages back, or for the first time.
    pub(super) fn write(&mut self, pages: &[u32], output: &mut BTreeOutput) {
        match self {
            PageStore::InPlace(place) => place.write(pages, output),
            PageStore::OutOfPlace(zones) => zones.write(pages, output),
            PageStore::CopyOnWrite(copies) => copies.write(pages, output),
        }
    }

    /// Reads a page that was written before.
    pub(super) fn read(&self, page: u32, output: &mut BTreeOutput) {
        match self {
            PageStore::InPlace(place) => output.read(place.offset_bytes(page), place.page_bytes),
            PageStore::OutOfPlace(zones) => {
                let (offset, bytes) = zones.blocks_of(page);
                output.read(offset, bytes);
            }
            PageStore::CopyOnWrite(copies) => {
                output.read(copies.offset_bytes(copies.slot_of[page as usize]), copies.slot_bytes);
            }
        }
    }

    pub(super) fn checkpoint(&mut self, output: &mut BTreeOutput) {
        if let PageStore::CopyOnWrite(copies) = self {
            copies.checkpoint(output);
        }
    }

    /// Number of inner pages written, if the store writes them.
    pub(super) fn inner_page_writes(&self) -> Option<u64> {
        match self {
            PageStore::CopyOnWrite(copies) => Some(copies.inner.writes),
            PageStore::InPlace(_) | PageStore::OutOfPlace(_) => None,
        }
    }
}

/// Store with a fixed location for every page.
pub(super) struct InPlace {
    page_bytes: u64,
    ring_start: u64,
    ring_bytes: u64,
    /// Bytes written to the doublewrite buffer so far.
    ring_end: u64,
    pages_start: u64,
}

impl InPlace {
    fn offset_bytes(&self, page: u32) -> u64 {
        self.pages_start + u64::from(page) * self.page_bytes
    }

    fn write(&mut self, pages: &[u32], output: &mut BTreeOutput) {
        let mut left = if self.ring_bytes > 0 { pages.len() as u64 * self.page_bytes } else { 0 };
        while left > 0 {
            let at = self.ring_end % self.ring_bytes;
            let bytes = left.min(self.ring_bytes - at);
            output.write(BTreeStream::Doublewrite, self.ring_start + at, bytes);
            self.ring_end += bytes;
            left -= bytes;
        }
        for page in pages {
            output.write(BTreeStream::Pages(0), self.offset_bytes(*page), self.page_bytes);
        }
    }
}

const NONE: u32 = u32::MAX;

/// Inner pages up to the root. A page that moves changes the inner page that points to it. A
/// checkpoint therefore writes all ancestors of moved leaves.
struct InnerPages {
    children: u32,
    /// Page numbers of each level, behind the leaves, with the root last. Empty if inner pages are
    /// omitted.
    levels: Vec<Range<u32>>,
    /// Pages of the lowest level with a child that moved since the last checkpoint.
    stale: BTreeSet<u32>,
    writes: u64,
}

impl InnerPages {
    fn new(leaves: u32, children: u32) -> InnerPages {
        let mut levels: Vec<Range<u32>> = Vec::new();
        let mut below = leaves;
        while children > 0 && below > 1 {
            let start = levels.last().map_or(leaves, |level| level.end);
            below = below.div_ceil(children);
            levels.push(start..start + below);
        }
        InnerPages { children, levels, stale: BTreeSet::new(), writes: 0 }
    }

    fn pages(&self) -> u32 {
        self.levels.iter().map(|level| level.len() as u32).sum()
    }

    fn record_move(&mut self, leaf: u32) {
        if !self.levels.is_empty() {
            self.stale.insert(leaf / self.children);
        }
    }

    /// Takes the pages that a checkpoint writes, from the lowest level to the root.
    fn take_stale(&mut self) -> Vec<u32> {
        let mut places: Vec<u32> = std::mem::take(&mut self.stale).into_iter().collect();
        let mut pages = Vec::new();
        for level in &self.levels {
            pages.extend(places.iter().map(|place| level.start + place));
            for place in &mut places {
                *place /= self.children;
            }
            places.dedup();
        }
        self.writes += pages.len() as u64;
        pages
    }
}

/// Store that writes every page to the first free slot. All slots have the same size.
pub(super) struct ShadowPages {
    start_bytes: u64,
    slot_bytes: u64,
    slots: u32,
    /// First slot that was never used.
    untouched: u32,
    free: BinaryHeap<Reverse<u32>>,
    /// Slots of the leaves, followed by those of the inner pages.
    pub(super) slot_of: Vec<u32>,
    inner: InnerPages,
    /// Slots freed before each of the kept checkpoints, oldest first. The last entry has those
    /// since the last checkpoint.
    left: VecDeque<Vec<u32>>,
}

impl ShadowPages {
    /// Creates the store, or returns the number of bytes that it needs.
    fn new(
        leaves: u32,
        stored_bytes: u64,
        (start_bytes, space_bytes): (u64, u64),
        settings: &BTreeSettings,
    ) -> Result<ShadowPages, u64> {
        let slot_bytes = stored_bytes.next_multiple_of(BLOCK_BYTES);
        let slots = space_bytes / slot_bytes;
        let inner = InnerPages::new(leaves, settings.children_per_inner_page);
        let pages = u64::from(leaves) + u64::from(inner.pages());
        // Pages changed by a checkpoint exist twice.
        let least = pages + u64::from(inner.pages()) + pages / 20 + 64;
        if slots < least {
            return Err(start_bytes + least * slot_bytes);
        }
        Ok(ShadowPages {
            start_bytes,
            slot_bytes,
            slots: slots.min(u64::from(NONE - 1)) as u32,
            untouched: 0,
            free: BinaryHeap::new(),
            slot_of: vec![NONE; pages as usize],
            inner,
            left: vec![Vec::new(); settings.checkpoints_kept as usize].into(),
        })
    }

    fn offset_bytes(&self, slot: u32) -> u64 {
        self.start_bytes + u64::from(slot) * self.slot_bytes
    }

    fn write(&mut self, leaves: &[u32], output: &mut BTreeOutput) {
        for leaf in leaves {
            for _ in 0..self.left.len() {
                // The file may not grow, so the checkpoint comes early. It may have to write all
                // inner pages.
                let free_slots = self.slots - self.untouched + self.free.len() as u32;
                if free_slots <= self.inner.pages() {
                    self.checkpoint(output);
                }
            }
            self.write_page(*leaf, output);
            self.inner.record_move(*leaf);
        }
    }

    fn write_page(&mut self, page: u32, output: &mut BTreeOutput) {
        let slot = self.free.pop().map_or(self.untouched, |Reverse(slot)| slot);
        self.untouched = self.untouched.max(slot + 1);
        assert!(slot < self.slots, "there is always a free place: {} pages lie on {}", self.slot_of.len(), self.slots);
        let left = std::mem::replace(&mut self.slot_of[page as usize], slot);
        if left != NONE {
            self.left.back_mut().expect("one is kept at least").push(left);
        }
        output.write(BTreeStream::Pages(0), self.offset_bytes(slot), self.slot_bytes);
    }

    fn checkpoint(&mut self, output: &mut BTreeOutput) {
        for page in self.inner.take_stale() {
            self.write_page(page, output);
        }
        let mut oldest = self.left.pop_front().expect("one is kept at least");
        self.free.extend(oldest.drain(..).map(Reverse));
        self.left.push_back(oldest);
    }

    /// Offset and length of every page, bytes.
    #[cfg(test)]
    pub(super) fn places(&self) -> Vec<(u64, u64)> {
        let written = self.slot_of.iter().filter(|slot| **slot != NONE);
        written.map(|slot| (self.offset_bytes(*slot), self.slot_bytes)).collect()
    }
}
