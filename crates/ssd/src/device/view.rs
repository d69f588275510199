//! A device seen from outside: its configuration, counters, wear and reclaim units, and other rules for the same state.

use std::ops::Range;

use serde::Serialize;

use super::engine::Engine;
use crate::cast::{index, wide};
use crate::config::{DeviceConfig, GcConfig};
use crate::endurance::{Endurance, Wear};
use crate::error::ConfigError;
use crate::layout::Layout;
use crate::stats::Stats;
use crate::timing::Activity;
use crate::types::{Owner, RgId, RuId};
use crate::unit::UnitState;

/// A reclaim unit, or the free room of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnitView {
    /// Which.
    pub unit: RuId,
    /// Its reclaim group.
    pub group: RgId,
    /// Whose data it holds; `None` while it is free.
    pub owner: Option<Owner>,
    /// Where it is in its life.
    pub state: UnitState,
    /// Its size in pages. A superblock that is free and not divided is one unit.
    pub pages: u32,
    /// Valid pages.
    pub valid_pages: u32,
    /// Pages that take no more: of an open unit those that hold data, of a closed one all, of a free one none.
    pub written_pages: u32,
}

/// What one owner holds, for reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Occupancy {
    /// Whose.
    pub owner: Owner,
    /// Reclaim units, open and closed.
    pub units: u64,
    /// Pages of them.
    pub pages: u64,
    /// Valid pages in them.
    pub valid_pages: u64,
}

impl Engine {
    /// The counters.
    pub fn stats(&self) -> &Stats {
        &self.state.stats
    }

    /// The configuration.
    pub fn config(&self) -> &DeviceConfig {
        &self.config
    }

    /// The numbers derived from it.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Pages written by the host so far: the time that policies know.
    pub fn host_pages_written(&self) -> u64 {
        self.state.host_pages_written
    }

    /// Erase count of each block, in the order of their dies.
    pub fn block_erase_counts(&self) -> &[u32] {
        &self.state.erase_counts
    }

    /// How often the blocks were erased. Looks at each of them.
    pub fn wear(&self) -> Wear {
        Wear::of(self.block_erase_counts())
    }

    /// [`Endurance::life_used`] by itself, which only counts erases: what each block survives is drawn for nobody.
    pub fn life_used(&self) -> Option<f64> {
        let endurance = self.config().endurance.as_ref()?;
        Some(endurance.life_used(&self.wear()))
    }

    /// How the drive has worn; `None` if its configuration does not say what the flash survives.
    pub fn endurance(&self) -> Option<Endurance> {
        let (endurance, state) = (self.config.endurance.as_ref()?, &self.state);
        let erases = &state.erase_counts;
        Some(Endurance::of(
            endurance,
            self.config.seed,
            &self.layout,
            &state.stats,
            erases,
        ))
    }

    /// Logical pages mapped.
    pub fn live_pages(&self) -> u64 {
        let groups = &self.state.groups;
        groups.iter().map(|group| group.live_pages).sum()
    }

    /// What each owner holds, over all groups: the handles in order, then the shared pool.
    pub fn occupancy(&self) -> Vec<Occupancy> {
        let empty = |position| Occupancy {
            owner: self.owner_at(position),
            units: 0,
            pages: 0,
            valid_pages: 0,
        };
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

    /// Every reclaim unit, in the order of the flash. Takes as long as there are units.
    pub fn units(&self) -> impl Iterator<Item = UnitView> {
        self.units_of(0..self.layout.superblocks())
    }

    /// The reclaim units of some superblocks, in the order of the flash: for whoever must not hold the device for as long as all of
    /// them take.
    ///
    /// # Panics
    /// The drive has fewer superblocks.
    pub fn units_of(&self, superblocks: Range<u32>) -> impl Iterator<Item = UnitView> {
        assert!(
            index(superblocks.end) <= self.state.superblocks.len(),
            "superblocks of the drive"
        );
        superblocks.flat_map(move |superblock| {
            let entry = &self.state.superblocks[index(superblock)];
            // Room that is free is whole again, whatever it was divided into before.
            let class = if entry.parts_used == 0 { 0 } else { entry.class };
            let class = self.layout.classes[usize::from(class)];
            let first = superblock * self.layout.slices_per_superblock;
            let group = RgId::of(index(superblock / self.layout.superblocks_per_group));
            (0..class.divisor).map(move |part| self.unit_view(RuId(first + part * class.slices), group, class.pages))
        })
    }

    /// Room for reclaim units that is free, in slices: the smallest parts that a handle can be given.
    pub fn free_slices(&self) -> u64 {
        let groups = &self.state.groups;
        groups.iter().map(|group| group.free_slices).sum()
    }

    /// Keeps from now on what dies and channels do, on a drive with timing: the last `pieces` of all, of each an equal part.
    pub fn keep_activity(&mut self, pieces: usize) {
        if let Some(timing) = &mut self.timing {
            timing.keep_activity(pieces);
        }
    }

    /// What is kept of each die, in the order of channels and then dies, and of each channel; nothing where nobody asked for it.
    pub fn activity(&self) -> (Vec<&Activity>, Vec<&Activity>) {
        self.timing.as_ref().map(|timing| timing.activity()).unwrap_or_default()
    }

    fn unit_view(&self, unit: RuId, group: RgId, pages: u32) -> UnitView {
        let entry = &self.state.units[unit.index()];
        let free = UnitView {
            unit,
            group,
            owner: None,
            state: UnitState::Free,
            pages,
            valid_pages: 0,
            written_pages: 0,
        };
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

    /// Pages that hold data in an open reclaim unit.
    fn open_pages(&self, unit: RuId, group: RgId, owner: Owner) -> u32 {
        let owner = &self.state.groups[group.index()].owners[self.owner_index(owner)];
        let mut open = owner.open.iter().flatten().chain(&owner.collecting);
        let open = open.find(|open| open.unit == unit);
        open.expect("an open reclaim unit is open for its owner").written
    }

    /// Lets other rules choose what is collected, and when, from now on: `handle_selection`, `unit_selection`, `allocation` and the two
    /// marks. What is on the drive stays as it is.
    ///
    /// # Errors
    /// Another setting of collection would change what the drive is made of, or the marks are none; nothing is changed then.
    pub fn set_gc_rules(&mut self, gc: &GcConfig) -> Result<(), ConfigError> {
        let config = DeviceConfig {
            gc: gc.clone(),
            ..self.config.clone()
        };
        let layout = Layout::new(&config)?;
        let rules_of = |gc: &GcConfig| GcConfig {
            handle_selection: self.config.gc.handle_selection,
            unit_selection: self.config.gc.unit_selection,
            background_mark: self.config.gc.background_mark,
            foreground_mark: self.config.gc.foreground_mark,
            allocation: self.config.gc.allocation,
            ..gc.clone()
        };
        ConfigError::unless(
            rules_of(gc) == self.config.gc,
            "gc",
            "other settings",
            "only handle_selection, unit_selection, allocation and the marks can change while a drive is in use; make a new one for the others",
        )?;
        let marks_of = |layout: &Layout| Layout {
            background_free_slices: self.layout.background_free_slices,
            foreground_free_slices: self.layout.foreground_free_slices,
            ..layout.clone()
        };
        assert_eq!(
            marks_of(&layout),
            self.layout,
            "rules of collection change nothing of the layout but the marks"
        );
        assert_eq!(
            wide(self.state.units.len()),
            u64::from(layout.slices()),
            "the tables fit"
        );
        self.config = config;
        self.layout = layout;
        Ok(())
    }
}
