//! A look at every reclaim unit of a served drive, without being in its way.
//!
//! ```text
//! look: is it time? -> a part of the superblocks, the drive held -> let go -> the next part ... -> Units
//!            \-> the Units of the look before
//! ```
//!
//! A drive has tens of thousands of reclaim units, and millions of blocks. They are looked at a few thousand at a time, and the next
//! look comes no sooner than so long after the last that the drive is held for less than [`HELD_PARTS`] says of the time, and no more
//! than ten times a second, whoever asks. So the parts of a look are of slightly different moments: a unit that was collected
//! meanwhile may be told of twice or not at all, and sums over units may differ from counters by what happened between
//! [`Units::began_ns`] and [`Units::ended_ns`].

use std::ops::Range;
use std::sync::Arc;

use ssd::device::Occupancy;
use ssd::{Layout, Nanos, Owner, RuhId, UnitView, Wear};

use crate::{Clock, Shared, give_way, locked};

/// Reclaim units that are looked at while the drive is held.
const PART_UNITS: u32 = 2048;
/// Blocks whose erases are.
const PART_BLOCKS: usize = 1 << 16;
/// Time between two looks, at least.
const INTERVAL_NS: Nanos = 100_000_000;
/// The drive is held for less than one of so many parts of the time.
pub const HELD_PARTS: u64 = 250;
/// Times that a look begins anew because the drive was divided otherwise meanwhile.
const BEGINNINGS_MAX: u32 = 3;

/// The reclaim units of a drive, at about one moment.
#[derive(Clone, Debug)]
pub struct Units {
    /// When the first part was looked at, in nanoseconds since the server's start.
    pub began_ns: Nanos,
    /// When the last one was.
    pub ended_ns: Nanos,
    /// How the drive is divided.
    pub layout: Arc<Layout>,
    /// Every reclaim unit, in the order of the flash.
    pub units: Vec<UnitView>,
    /// What each owner holds: the handles in order, then the shared pool.
    pub holdings: Vec<Occupancy>,
    /// How often blocks were erased.
    pub wear: Wear,
    /// The same of each block, in the order of the dies.
    pub block_erases: Vec<u32>,
}

/// Looks at a drive's reclaim units. See the module.
pub struct Census {
    shared: Shared,
    clock: Clock,
    last: Option<Arc<Units>>,
    /// No look begins before.
    next_at: Nanos,
}

impl Census {
    /// One that has not looked yet.
    pub fn new(shared: Shared, clock: Clock) -> Census {
        Census {
            shared,
            clock,
            last: None,
            next_at: 0,
        }
    }

    /// The reclaim units as they are now, or were at the last look if that is too short ago. `None`: the drive was divided otherwise
    /// again and again, and there was no look before.
    pub fn look(&mut self) -> Option<Arc<Units>> {
        if self.last.is_none() || self.clock.now() >= self.next_at {
            let mut look = Look::new(&self.shared, self.clock);
            let units = (0..BEGINNINGS_MAX).find_map(|_| look.units());
            self.next_at = self.clock.now() + INTERVAL_NS.max(look.held_ns.saturating_mul(HELD_PARTS));
            if let Some(units) = units {
                self.last = Some(Arc::new(units));
            }
        }
        self.last.clone()
    }
}

/// A look that goes on.
struct Look<'a> {
    shared: &'a Shared,
    clock: Clock,
    /// How long the drive was held.
    held_ns: Nanos,
}

impl Look<'_> {
    fn new(shared: &Shared, clock: Clock) -> Look<'_> {
        Look {
            shared,
            clock,
            held_ns: 0,
        }
    }

    /// Holds the drive for a part, after those who wait for it.
    fn part<T>(&mut self, work: impl FnOnce(&nvme::Subsystem) -> T) -> T {
        give_way();
        let subsystem = locked(self.shared);
        let began = self.clock.now();
        let done = work(&subsystem);
        drop(subsystem);
        self.held_ns += self.clock.now() - began;
        done
    }

    /// All reclaim units; `None` if the drive was divided otherwise meanwhile.
    fn units(&mut self) -> Option<Units> {
        let began_ns = self.clock.now();
        let layout = self.part(|subsystem| subsystem.device().layout().clone());
        let (mut units, mut part) = (Vec::new(), Vec::with_capacity(PART_UNITS as usize));
        let superblocks = (PART_UNITS / layout.slices_per_superblock).max(1);
        for first in (0..layout.superblocks()).step_by(superblocks as usize) {
            let range = first..(first + superblocks).min(layout.superblocks());
            self.look_at_units(&layout, range, &mut part)?;
            // Room for them is made while nobody waits.
            units.append(&mut part);
        }
        let block_erases = self.look_at_blocks(&layout)?;
        Some(Units {
            began_ns,
            ended_ns: self.clock.now(),
            holdings: Holdings::of(&layout, &units).rows,
            layout: Arc::new(layout),
            units,
            wear: Wear::of(&block_erases),
            block_erases,
        })
    }

    fn look_at_units(&mut self, layout: &Layout, superblocks: Range<u32>, part: &mut Vec<UnitView>) -> Option<()> {
        part.reserve(superblocks.len() * layout.slices_per_superblock as usize);
        self.part(|subsystem| {
            let device = subsystem.device();
            let is_same = device.layout() == layout;
            is_same.then(|| part.extend(device.units_of(superblocks)))
        })
    }

    fn look_at_blocks(&mut self, layout: &Layout) -> Option<Vec<u32>> {
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
        assert_eq!(erases.len(), blocks, "every block was looked at");
        Some(erases)
    }
}

/// What each owner holds, counted unit by unit: the only place that counts it from views of units, of a served drive or of one in the
/// lab.
#[derive(Clone, Debug)]
pub struct Holdings {
    /// The handles in order, then the shared pool.
    pub rows: Vec<Occupancy>,
}

impl Holdings {
    /// Nothing is held.
    pub fn none(layout: &Layout) -> Holdings {
        let owners = (0..layout.handles.len()).map(|handle| Owner::of(RuhId(handle as u16)));
        let empty = |owner| Occupancy {
            owner,
            units: 0,
            pages: 0,
            valid_pages: 0,
        };
        Holdings {
            rows: owners.chain([Owner::SHARED]).map(empty).collect(),
        }
    }

    /// What is held of these units.
    pub fn of(layout: &Layout, units: &[UnitView]) -> Holdings {
        let mut holdings = Holdings::none(layout);
        units.iter().for_each(|unit| holdings.count(unit));
        holdings
    }

    /// Counts a unit, each once.
    pub fn count(&mut self, unit: &UnitView) {
        let Some(owner) = unit.owner else { return };
        let handles = self.rows.len() - 1;
        let row = &mut self.rows[owner.handle().map_or(handles, |handle| usize::from(handle.0))];
        assert_eq!(row.owner, owner, "owners stand in their order");
        row.units += 1;
        row.pages += u64::from(unit.pages);
        row.valid_pages += u64::from(unit.valid_pages);
    }
}
