//! Read access to a device (configuration, counters, wear, reclaim units) and changes of its GC
//! rules.

use std::ops::Range;

use serde::Serialize;

use super::engine::DeviceCore;
use crate::cast::{index, wide};
use crate::config::{DeviceConfig, GcConfig};
use crate::endurance::{Endurance, WearSummary};
use crate::error::ConfigError;
use crate::layout::DeviceLayout;
use crate::stats::DeviceStats;
use crate::timing::ActivityLog;
use crate::types::{RgId, RuId, UnitOwner};
use crate::unit::UnitState;

/// Snapshot of a reclaim unit or of free space of that size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnitView {
    /// Identity of the reclaim unit.
    pub unit: RuId,
    /// Its reclaim group.
    pub group: RgId,
    /// Owner of its data, or `None` while it is free.
    pub owner: Option<UnitOwner>,
    /// Life-cycle state.
    pub state: UnitState,
    /// Size in pages. A free superblock that is not divided is one unit.
    pub pages: u32,
    /// Number of valid pages.
    pub valid_pages: u32,
    /// Number of pages in use. An open unit counts the pages with data, a closed unit all pages, a
    /// free unit none.
    pub written_pages: u32,
}

/// Space that one owner holds, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// Owner of the reclaim units.
    pub owner: UnitOwner,
    /// Number of reclaim units, open and closed.
    pub units: u64,
    /// Number of pages in these units.
    pub pages: u64,
    /// Number of valid pages in these units.
    pub valid_pages: u64,
}

impl DeviceCore {
    /// Counters of the device.
    pub fn stats(&self) -> &DeviceStats {
        &self.state.stats
    }

    /// Configuration of the device.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// Layout derived from the configuration.
    pub fn layout(&self) -> &DeviceLayout {
        &self.layout
    }

    /// Pages written by the host so far, which is the clock of the GC policies.
    pub fn host_pages_written(&self) -> u64 {
        self.state.host_pages_written
    }

    /// Erase count of each block, in the order of the dies.
    pub fn block_erase_counts(&self) -> &[u32] {
        &self.state.erase_counts
    }

    /// Summary of the erase counts. Scans every block.
    pub fn wear(&self) -> WearSummary {
        WearSummary::from_erases(self.block_erase_counts())
    }

    /// Same as [`Endurance::life_used`], but reads only erase counts and does not draw the limit of
    /// each block.
    pub fn life_used(&self) -> Option<f64> {
        let endurance = self.config().endurance.as_ref()?;
        Some(endurance.life_used(&self.wear()))
    }

    /// Wear of the drive. `None` if the configuration has no endurance.
    pub fn endurance(&self) -> Option<Endurance> {
        let (endurance, state) = (self.config.endurance.as_ref()?, &self.state);
        let erases = &state.erase_counts;
        Some(Endurance::new(endurance, self.config.seed, &self.layout, &state.stats, erases))
    }

    /// Number of mapped logical pages.
    pub fn live_pages(&self) -> u64 {
        let groups = &self.state.groups;
        groups.iter().map(|group| group.live_pages).sum()
    }

    /// Space that each owner holds over all groups. The handles come first, in order, then the
    /// shared pool.
    pub fn occupancy(&self) -> Vec<Occupancy> {
        let empty = |position| Occupancy { owner: self.owner_at(position), units: 0, pages: 0, valid_pages: 0 };
        let mut rows: Vec<_> = (0..=self.layout.handles.len()).map(empty).collect();
        for unit in self.state.units.iter().filter(|unit| unit.state != UnitState::Free) {
            let row = &mut rows[self.owner_index(unit.owner)];
            row.units += 1;
            row.pages += u64::from(unit.pages);
            row.valid_pages += u64::from(unit.valid_pages);
        }
        let valid_pages: u64 = rows.iter().map(|row| row.valid_pages).sum();
        assert_eq!(valid_pages, self.live_pages(), "owners and groups hold the same pages");
        rows
    }

    /// Iterates over all reclaim units in flash order. The time is linear in the number of units.
    pub fn units(&self) -> impl Iterator<Item = UnitView> {
        self.units_of(0..self.layout.superblocks())
    }

    /// Iterates over the reclaim units of some superblocks in flash order, for callers that must
    /// release the device lock between parts of a scan.
    ///
    /// # Panics
    /// The drive has fewer superblocks.
    pub fn units_of(&self, superblocks: Range<u32>) -> impl Iterator<Item = UnitView> {
        assert!(index(superblocks.end) <= self.state.superblocks.len(), "superblocks of the drive");
        superblocks.flat_map(move |superblock| {
            let entry = &self.state.superblocks[index(superblock)];
            // Free space counts as undivided, whatever its former division.
            let class = if entry.parts_used == 0 { 0 } else { entry.class };
            let class = self.layout.classes[usize::from(class)];
            let first = superblock * self.layout.slices_per_superblock;
            let group = RgId::from_index(index(superblock / self.layout.superblocks_per_group));
            (0..class.divisor).map(move |part| self.unit_view(RuId(first + part * class.slices), group, class.pages))
        })
    }

    /// Free space in slices, the smallest parts that a handle can receive.
    pub fn free_slices(&self) -> u64 {
        let groups = &self.state.groups;
        groups.iter().map(|group| group.free_slices).sum()
    }

    /// Enables the activity log of dies and channels on a drive with timing. Keeps the last
    /// `pieces` entries, divided equally.
    pub fn enable_activity_log(&mut self, pieces: usize) {
        if let Some(timing) = &mut self.timing {
            timing.enable_activity_log(pieces);
        }
    }

    /// Logged activity of each die, in channel order and then die order, and of each channel. Empty
    /// unless enabled by [`DeviceCore::enable_activity_log`].
    pub fn activity(&self) -> (Vec<&ActivityLog>, Vec<&ActivityLog>) {
        self.timing.as_ref().map(|timing| timing.activity()).unwrap_or_default()
    }

    fn unit_view(&self, unit: RuId, group: RgId, pages: u32) -> UnitView {
        let entry = &self.state.units[unit.index()];
        let free =
            UnitView { unit, group, owner: None, state: UnitState::Free, pages, valid_pages: 0, written_pages: 0 };
        if entry.state == UnitState::Free {
            return free;
        }
        assert_eq!(entry.pages, pages, "a reclaim unit has the size of its class");
        assert_eq!(entry.group, group.0, "a reclaim unit lies in its group");
        UnitView {
            owner: Some(entry.owner),
            state: entry.state,
            valid_pages: entry.valid_pages,
            written_pages: match entry.state {
                UnitState::Closed => pages,
                _ => self.open_pages(unit, group, entry.owner),
            },
            ..free
        }
    }

    /// Number of pages with data in an open reclaim unit.
    fn open_pages(&self, unit: RuId, group: RgId, owner: UnitOwner) -> u32 {
        let owner = &self.state.groups[group.index()].owners[self.owner_index(owner)];
        let mut open = owner.open.iter().flatten().chain(&owner.collecting);
        let open = open.find(|open| open.unit == unit);
        open.expect("an open reclaim unit is open for its owner").written
    }

    /// Replaces the GC rules that a live drive can change: `source_policy`, `victim_policy`,
    /// `allocation` and the two watermarks. The data stays in place.
    ///
    /// # Errors
    /// Another GC setting differs and would change the layout, or the watermarks are invalid. The
    /// device is unchanged.
    pub fn set_gc_rules(&mut self, gc: &GcConfig) -> Result<(), ConfigError> {
        let config = DeviceConfig { gc: gc.clone(), ..self.config.clone() };
        let layout = DeviceLayout::new(&config)?;
        let rules_of = |gc: &GcConfig| GcConfig {
            source_policy: self.config.gc.source_policy,
            victim_policy: self.config.gc.victim_policy,
            background_watermark: self.config.gc.background_watermark,
            foreground_watermark: self.config.gc.foreground_watermark,
            allocation: self.config.gc.allocation,
            ..gc.clone()
        };
        ConfigError::require(
            rules_of(gc) == self.config.gc,
            "gc",
            "changed",
            "only source_policy, victim_policy, allocation and the watermarks can change while a drive is in use. \
             Create a new drive for other settings",
        )?;
        let watermark_base = |layout: &DeviceLayout| DeviceLayout {
            background_free_slices: self.layout.background_free_slices,
            foreground_free_slices: self.layout.foreground_free_slices,
            ..layout.clone()
        };
        assert_eq!(
            watermark_base(&layout),
            self.layout,
            "new collection settings change only the watermarks of the layout"
        );
        assert_eq!(wide(self.state.units.len()), u64::from(layout.slices()), "the tables fit");
        self.config = config;
        self.layout = layout;
        Ok(())
    }
}
