//! Scans all reclaim units of a served drive without delaying its hosts.
//!
//! ```text
//! poll, if a scan is due: lock -> part of the superblocks -> unlock -> next part -> UnitSnapshot
//!       otherwise:        UnitSnapshot of the previous scan
//! ```
//!
//! A drive has tens of thousands of reclaim units, and millions of blocks. A scan reads a few
//! thousand per lock. The drive is locked for less than 1/[`HELD_PARTS`] of the time.
//! Scans begin at most ten times a second, regardless of the number of requests. The parts of a
//! scan therefore belong to slightly different moments. A unit collected during the scan may appear
//! twice or not at all. Sums over units may differ from counters by the events since
//! [`UnitSnapshot::began_ns`].

use std::ops::Range;
use std::sync::Arc;

use ssd::device::Occupancy;
use ssd::{DeviceLayout, Nanos, RuhId, UnitOwner, UnitView, WearSummary};

use crate::{ServerClock, SharedSubsystem, lock, yield_to_waiters};

/// Reclaim units read per lock.
const PART_UNITS: u32 = 2048;
/// Blocks whose erase counts are read per lock.
const PART_BLOCKS: usize = 1 << 16;
/// Shortest time between two scans.
const INTERVAL_NS: Nanos = 100_000_000;
/// Reciprocal of the largest share of time for which scans lock the drive.
pub const HELD_PARTS: u64 = 250;
/// Attempts at a scan, which restarts when the drive's layout changes.
const BEGINNINGS_MAX: u32 = 3;

/// The reclaim units of a drive at approximately one moment.
#[derive(Clone, Debug)]
pub struct UnitSnapshot {
    /// Start of the scan, in nanoseconds since the server's start.
    pub began_ns: Nanos,
    pub layout: Arc<DeviceLayout>,
    /// All reclaim units in flash order.
    pub units: Vec<UnitView>,
    /// Occupancy by owner: the handles in order, then the shared pool.
    pub holdings: Vec<Occupancy>,
    /// Summary of erase counts.
    pub wear: WearSummary,
    /// Erase count of each block, in the order of the dies.
    pub block_erases: Vec<u32>,
}

pub struct ReclaimUnitScanner {
    shared: SharedSubsystem,
    clock: ServerClock,
    last: Option<Arc<UnitSnapshot>>,
    /// Earliest time of the next scan.
    next_at: Nanos,
}

impl ReclaimUnitScanner {
    /// A scanner before its first scan.
    pub fn new(shared: SharedSubsystem, clock: ServerClock) -> ReclaimUnitScanner {
        ReclaimUnitScanner { shared, clock, last: None, next_at: 0 }
    }

    /// The current reclaim units, or those of the last scan if the next is not due. `None` if the
    /// layout changed during every attempt and no earlier scan exists.
    pub fn poll(&mut self) -> Option<Arc<UnitSnapshot>> {
        if self.last.is_none() || self.clock.now() >= self.next_at {
            let mut look = ScanPass::new(&self.shared, self.clock);
            let units = (0..BEGINNINGS_MAX).find_map(|_| look.units());
            self.next_at = self.clock.now() + INTERVAL_NS.max(look.lock_ns.saturating_mul(HELD_PARTS));
            if let Some(units) = units {
                self.last = Some(Arc::new(units));
            }
        }
        self.last.clone()
    }
}

struct ScanPass<'a> {
    shared: &'a SharedSubsystem,
    clock: ServerClock,
    lock_ns: Nanos,
}

impl ScanPass<'_> {
    fn new(shared: &SharedSubsystem, clock: ServerClock) -> ScanPass<'_> {
        ScanPass { shared, clock, lock_ns: 0 }
    }

    /// Runs `work` with the drive locked, after waiting threads had their turn.
    fn part<T>(&mut self, work: impl FnOnce(&nvme::Subsystem) -> T) -> T {
        yield_to_waiters();
        let subsystem = lock(self.shared);
        let began = self.clock.now();
        let done = work(&subsystem);
        drop(subsystem);
        self.lock_ns += self.clock.now() - began;
        done
    }

    /// Scans all reclaim units. `None` if the layout changed during the scan.
    fn units(&mut self) -> Option<UnitSnapshot> {
        let began_ns = self.clock.now();
        let layout = self.part(|subsystem| subsystem.device().layout().clone());
        let (mut units, mut part) = (Vec::new(), Vec::with_capacity(PART_UNITS as usize));
        let superblocks = (PART_UNITS / layout.slices_per_superblock).max(1);
        for first in (0..layout.superblocks()).step_by(superblocks as usize) {
            let range = first..(first + superblocks).min(layout.superblocks());
            self.scan_units(&layout, range, &mut part)?;
            // The vector grows without the lock.
            units.append(&mut part);
        }
        let block_erases = self.scan_blocks(&layout)?;
        Some(UnitSnapshot {
            began_ns,
            holdings: OwnerUsage::from_units(&layout, &units).rows,
            layout: Arc::new(layout),
            units,
            wear: WearSummary::from_erases(&block_erases),
            block_erases,
        })
    }

    fn scan_units(&mut self, layout: &DeviceLayout, superblocks: Range<u32>, part: &mut Vec<UnitView>) -> Option<()> {
        part.reserve(superblocks.len() * layout.slices_per_superblock as usize);
        self.part(|subsystem| {
            let device = subsystem.device();
            let is_same = device.layout() == layout;
            is_same.then(|| part.extend(device.units_of(superblocks)))
        })
    }

    fn scan_blocks(&mut self, layout: &DeviceLayout) -> Option<Vec<u32>> {
        let blocks = layout.blocks() as usize;
        let mut erases = Vec::with_capacity(blocks);
        for first in (0..blocks).step_by(PART_BLOCKS) {
            self.part(|subsystem| {
                let device = subsystem.device();
                let range = first..(first + PART_BLOCKS).min(blocks);
                let part = (device.layout() == layout).then(|| &device.block_erase_counts()[range])?;
                erases.extend_from_slice(part);
                Some(())
            })?;
        }
        assert_eq!(erases.len(), blocks, "every block was examined");
        Some(erases)
    }
}

/// Occupancy by owner, counted unit by unit. Served and simulated drives share this code.
#[derive(Clone, Debug)]
pub struct OwnerUsage {
    /// The handles in order, then the shared pool.
    pub rows: Vec<Occupancy>,
}

impl OwnerUsage {
    pub fn empty(layout: &DeviceLayout) -> OwnerUsage {
        let owners = (0..layout.handles.len()).map(|handle| UnitOwner::from_handle(RuhId(handle as u16)));
        let empty = |owner| Occupancy { owner, units: 0, pages: 0, valid_pages: 0 };
        OwnerUsage { rows: owners.chain([UnitOwner::SHARED_POOL]).map(empty).collect() }
    }

    /// Occupancy of these units.
    pub fn from_units(layout: &DeviceLayout, units: &[UnitView]) -> OwnerUsage {
        let mut holdings = OwnerUsage::empty(layout);
        units.iter().for_each(|unit| holdings.count(unit));
        holdings
    }

    /// Counts a unit. Call once per unit.
    pub fn count(&mut self, unit: &UnitView) {
        let Some(owner) = unit.owner else { return };
        assert!(
            unit.valid_pages <= unit.pages,
            "a reclaim unit of {} pages has {} valid ones",
            unit.pages,
            unit.valid_pages
        );
        let handles = self.rows.len() - 1;
        let row = &mut self.rows[owner.handle().map_or(handles, |handle| usize::from(handle.0))];
        assert_eq!(row.owner, owner, "owners stand in their order");
        row.units += 1;
        row.pages += u64::from(unit.pages);
        row.valid_pages += u64::from(unit.valid_pages);
    }
}
