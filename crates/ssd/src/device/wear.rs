//! Static wear levelling: data that does not change moves to worn blocks.
//!
//! A superblock that has just been erased is compared with those that hold data. Some may have
//! fewer erases by more than `gc.wear_levelling_erases`. The data of the one that was written first
//! is then copied into the blocks of the erased one, and its old blocks are erased. Both
//! superblocks keep their places and exchange their blocks, as in block remapping. So no logical
//! page changes its place, and no decision of garbage collection changes. A collection moves one
//! superblock at most.
//!
//! The least erased superblock would be the wrong choice. Its blocks may come from the last
//! exchange and hold data that changes often, so worn blocks would get this data again.

use crate::cast::index;
use crate::device::engine::DeviceCore;
use crate::event::{DeviceEvent, EventEmitter};
use crate::types::{Nanos, RgId, RuId};
use crate::unit::{ReclaimUnit, UnitState};

impl DeviceCore {
    /// Levels the wear after an erase in a superblock.
    pub(super) fn level_wear(&mut self, events: &mut EventEmitter<'_>, now: Nanos, worn: u32) {
        if self.state.superblocks[index(worn)].parts_used > 0 {
            return;
        }
        let blocks = self.layout.blocks_per_superblock;
        let threshold = u64::from(self.config.gc.wear_levelling_erases) * u64::from(blocks);
        let Some(limit) = self.erases(worn).checked_sub(threshold) else {
            return;
        };
        // No block has fewer erases than the fewest that were ever found. That saves most scans.
        if u64::from(self.fewest_erases) * u64::from(blocks) >= limit {
            return;
        }
        let Some(cold) = self.first_written_below(limit, worn / self.layout.superblocks_per_group) else {
            self.fewest_erases = self.wear().fewest_erases;
            return;
        };
        assert_ne!(cold, worn, "an erased superblock holds no data");
        let erases_before = self.erases(cold) + self.erases(worn);
        for unit in self.units_in_use(cold).collect::<Vec<RuId>>() {
            self.move_to_worn_blocks(events, now, unit, worn);
        }
        let erases_after = self.erases(cold) + self.erases(worn);
        assert!(erases_after > erases_before, "the old blocks of moved data are erased");
        for block in 0..blocks {
            self.state.block_at.swap(cold * blocks + block, worn * blocks + block);
        }
    }

    /// Superblock of a group that was written first, among those with fewer erases than `limit` whose
    /// reclaim units are all closed. Its data is the least likely to change.
    fn first_written_below(&self, limit: u64, group: u32) -> Option<u32> {
        let first = group * self.layout.superblocks_per_group;
        let is_closed = |unit: RuId| self.unit(unit).state == UnitState::Closed;
        (first..first + self.layout.superblocks_per_group)
            .filter(|superblock| self.state.superblocks[index(*superblock)].parts_used > 0)
            .filter(|superblock| self.erases(*superblock) < limit)
            .filter(|superblock| self.units_in_use(*superblock).all(is_closed))
            .min_by_key(|superblock| self.last_write(*superblock))
    }

    /// Host pages written to the device when a page was last added to a superblock.
    fn last_write(&self, superblock: u32) -> u64 {
        let writes = self.units_in_use(superblock).map(|unit| self.unit(unit).last_write);
        writes.max().unwrap_or(0)
    }

    /// Reclaim units of a superblock that are not free.
    pub(super) fn units_in_use(&self, superblock: u32) -> impl Iterator<Item = RuId> {
        let slices = self.layout.slices_per_superblock;
        let units = (superblock * slices..(superblock + 1) * slices).map(RuId);
        units.filter(|unit| self.unit(*unit).state != UnitState::Free)
    }

    /// Copies the valid pages of a closed reclaim unit to the blocks of a free superblock and erases
    /// its own blocks. The caller exchanges the blocks.
    fn move_to_worn_blocks(&mut self, events: &mut EventEmitter<'_>, now: Nanos, unit: RuId, worn: u32) {
        let ReclaimUnit { group, owner, class, pages, valid_pages, state, .. } = self.state.units[unit.index()];
        assert_eq!(state, UnitState::Closed, "{unit:?} moves while it is written");
        self.move_in_time(now, unit, worn);
        for place in 0..self.layout.classes[usize::from(class)].blocks {
            let block = self.block_of(unit, place);
            let erases = self.state.erase_counts[index(block)] + 1;
            self.state.erase_counts.set(block, erases);
        }
        let row = self.state.stats.owner_mut(owner);
        row.wear_levelling_pages += u64::from(valid_pages);
        row.wear_levelling_pages_erased += u64::from(pages);
        row.pages_erased += u64::from(pages);
        events.emit(|| DeviceEvent::LevelWear {
            group: RgId(group),
            unit,
            owner,
            unit_pages: pages,
            pages_copied: valid_pages,
        });
    }
}
