//! State of a drive without the page maps: reclaim units, groups, owners, counters and blocks.

use std::collections::VecDeque;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use strength_reduce::StrengthReducedU32;

use super::blocks::BlockTable;
use super::open::OpenUnit;
use crate::cast::{index, narrow, wide};
use crate::config::{DeviceConfig, HandleConfig, Isolation};
use crate::endurance::ERASES_MAX;
use crate::gc::index::ClosedSet;
use crate::layout::DeviceLayout;
use crate::recency::RecencyWindow;
use crate::stats::{DeviceStats, FdpTotals};
use crate::types::{Ppn, RgId, RuId};
use crate::unit::{ReclaimUnit, UnitState};

/// State of a drive without the page maps and without values derived from the configuration.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct DeviceState {
    /// Entry of each slice. A reclaim unit uses the entry of its first slice.
    pub(super) units: Vec<ReclaimUnit>,
    /// First slice of the reclaim unit that contains each slice. Empty if each unit is one slice.
    pub(super) unit_of_slice: Vec<u32>,
    pub(super) superblocks: Vec<Superblock>,
    pub(super) groups: Vec<ReclaimGroup>,
    /// Reclaim group of the next command without a placement.
    pub(super) default_group: RgId,
    pub(super) stats: DeviceStats,
    /// Pages written by the host, which is the policies' clock.
    pub(super) host_pages_written: u64,
    pub(super) units_closed: u64,
    pub(super) random: Xoshiro256PlusPlus,
    /// Physical block at each place of each superblock. Empty if blocks never move.
    pub(super) block_at: BlockTable,
    pub(super) erase_counts: BlockTable,
    /// Recency of the pages that the host wrote last, if hot data is separated.
    pub(super) recency: Option<RecencyWindow>,
    /// Host pages that were programmed last and wait in the write buffer, if it absorbs writes.
    pub(super) absorbing: Option<RecencyWindow>,
}

/// Division of a superblock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Superblock {
    pub(super) class: u8,
    pub(super) parts_used: u32,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ReclaimGroup {
    pub(super) free_superblocks: VecDeque<u32>,
    /// Free parts of divided superblocks, for each class.
    pub(super) free_parts: Vec<VecDeque<u32>>,
    pub(super) free_slices: u64,
    pub(super) live_pages: u64,
    /// Closed reclaim units that background collection may take, over all sets.
    pub(super) lazy_units: u64,
    /// State of each owner. The handles come first, in order, then the shared pool.
    pub(super) owners: Vec<OwnerState>,
    /// Closed reclaim units of each owner and class.
    pub(super) closed: Vec<Vec<ClosedSet>>,
    /// Superblock that emergency collection is emptying. Its free parts are not allocated.
    pub(super) draining: Option<u32>,
}

/// Open reclaim units of an owner in one reclaim group.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct OwnerState {
    /// Open reclaim units for host writes ([`DeviceLayout::open_slots`]). Empty for the shared
    /// pool.
    pub(super) open: Vec<Option<OpenUnit>>,
    /// Index of the slot that takes the next command.
    pub(super) turn: usize,
    /// Open reclaim unit for copies, unless they share the first slot
    /// ([`crate::config::GcDestination`]).
    pub(super) collecting: Option<OpenUnit>,
    /// True if copies stay with the handle.
    pub(super) isolated: bool,
}

impl DeviceState {
    /// Reclaim unit of a physical page. `slices` divides by the pages of a slice.
    #[inline(always)]
    pub(super) fn unit_of(&self, slices: StrengthReducedU32, ppn: Ppn) -> RuId {
        let slice = ppn.0 / slices;
        match self.unit_of_slice.get(index(slice)) {
            Some(&unit) => RuId(unit),
            None => RuId(slice),
        }
    }

    /// Reclaim unit of the first of `left` consecutive physical pages, and the number of these
    /// pages in the unit.
    #[inline(always)]
    pub(super) fn unit_part(
        &self,
        slices: StrengthReducedU32,
        layout: &DeviceLayout,
        ppn: Ppn,
        left: u32,
    ) -> (RuId, u32) {
        let unit = self.unit_of(slices, ppn);
        // The sum does not overflow, because the layout keeps page numbers below 2^32.
        let pages = left.min(unit.0 * layout.slice_pages + self.units[unit.index()].pages - ppn.0);
        assert!(pages > 0, "{ppn:?} is invalidated behind the end of its reclaim unit");
        (unit, pages)
    }

    pub(super) fn new(config: &DeviceConfig, layout: &DeviceLayout) -> DeviceState {
        let slices = index(layout.slices());
        let divided = layout.slices_per_superblock > 1;
        let state = DeviceState {
            units: vec![ReclaimUnit::FREE; slices],
            unit_of_slice: if divided { (0..layout.slices()).collect() } else { Vec::new() },
            superblocks: vec![Superblock { class: 0, parts_used: 0 }; index(layout.superblocks())],
            groups: (0..layout.groups).map(|group| ReclaimGroup::new(config, layout, group)).collect(),
            default_group: RgId(0),
            stats: DeviceStats::new(layout.page_bytes, layout.handle_count())
                .with_overhead(config.geometry.media_overhead()),
            host_pages_written: 0,
            units_closed: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed),
            block_at: if config.gc.moves_blocks() {
                BlockTable::from((0..narrow(layout.blocks())).collect::<Vec<u32>>())
            } else {
                BlockTable::default()
            },
            erase_counts: BlockTable::from(vec![0; index(narrow(layout.blocks()))]),
            recency: window_of(layout.separation_pages),
            absorbing: window_of(layout.absorption_pages),
        };
        assert!(state.fits(layout), "a new state has the sizes of its layout");
        assert_eq!(state.groups.iter().map(|group| group.free_slices).sum::<u64>(), u64::from(layout.slices()));
        state
    }

    /// Computes the watch counts, which snapshots leave out. Accepts any values from a file.
    pub(crate) fn derive_watch_counts(&mut self, config: &DeviceConfig, layout: &DeviceLayout) {
        let sets = empty_sets(config, layout);
        for unit in self.units.iter_mut().filter(|unit| unit.state == UnitState::Closed) {
            unit.watch = sets.get(usize::from(unit.class)).map_or(0, |set| set.watch(unit.valid_pages));
        }
    }

    /// Returns true if the counters can be raised to these values without a risk of overflow later.
    pub(super) fn can_raise(&self, at_least: &FdpTotals, block_pages: u32) -> bool {
        const BYTES_MAX: u64 = 1 << 58;
        let FdpTotals { host_bytes_written, media_bytes_written, media_bytes_erased } = *at_least;
        let block_bytes = self.stats.page_bytes * u64::from(block_pages);
        let erases = media_bytes_erased / block_bytes / wide(self.erase_counts.len());
        let most = self.erase_counts.iter().max().copied().unwrap_or(0);
        host_bytes_written.max(media_bytes_written).max(media_bytes_erased) <= BYTES_MAX
            && erases + u64::from(most) < u64::from(ERASES_MAX)
    }

    /// Returns true if the tables have the sizes of the layout.
    pub(crate) fn fits(&self, layout: &DeviceLayout) -> bool {
        let slices = index(layout.slices());
        self.units.len() == slices
            && self.unit_of_slice.len() == if layout.slices_per_superblock > 1 { slices } else { 0 }
            && self.superblocks.len() == index(layout.superblocks())
            && self.groups.len() == usize::from(layout.groups)
            && self.default_group.0 < layout.groups
            && self.groups.iter().all(|group| group.fits(layout))
            && self.stats.handles.len() == layout.handles.len()
            && (self.block_at.is_empty() || wide(self.block_at.len()) == layout.blocks())
            && wide(self.erase_counts.len()) == layout.blocks()
            && window_fits(self.recency.as_ref(), layout.separation_pages, layout)
            && window_fits(self.absorbing.as_ref(), layout.absorption_pages, layout)
    }
}

/// Empty window of a size, or none if it is disabled.
fn window_of(pages: u32) -> Option<RecencyWindow> {
    (pages > 0).then(|| RecencyWindow::new(pages))
}

fn window_fits(window: Option<&RecencyWindow>, pages: u32, layout: &DeviceLayout) -> bool {
    match window {
        Some(window) => window.fits(pages, layout.logical_pages),
        None => pages == 0,
    }
}

/// An empty set for each size class.
fn empty_sets(config: &DeviceConfig, layout: &DeviceLayout) -> Vec<ClosedSet> {
    layout.classes.iter().map(|class| ClosedSet::new(class.pages, config.gc.lazy_valid_share)).collect()
}

impl ReclaimGroup {
    /// Same as [`DeviceState::fits`], for a group.
    fn fits(&self, layout: &DeviceLayout) -> bool {
        let slots = |handle: Option<&HandleConfig>| handle.map_or(0, |handle| usize::from(layout.open_slots(handle)));
        let handles = layout.handles.iter().map(Some).chain([None]);
        self.free_parts.len() == layout.classes.len()
            && self.owners.len() == layout.handles.len() + 1
            && self.owners.iter().zip(handles).all(|(owner, handle)| owner.open.len() == slots(handle))
            && self.closed.len() == self.owners.len()
            && self.closed.iter().all(|sets| sets.len() == layout.classes.len())
    }

    fn new(config: &DeviceConfig, layout: &DeviceLayout, group: u16) -> ReclaimGroup {
        let first = u32::from(group) * layout.superblocks_per_group;
        let owner = |handle: u16| OwnerState {
            open: vec![None; usize::from(layout.open_slots(&layout.handles[usize::from(handle)]))],
            turn: 0,
            collecting: None,
            isolated: layout.handles[usize::from(handle)].isolation == Isolation::PersistentlyIsolated,
        };
        let shared = OwnerState { open: Vec::new(), turn: 0, collecting: None, isolated: false };
        let sets = empty_sets(config, layout);
        ReclaimGroup {
            free_superblocks: (first..first + layout.superblocks_per_group).collect(),
            free_parts: vec![VecDeque::new(); layout.classes.len()],
            free_slices: u64::from(layout.superblocks_per_group) * u64::from(layout.slices_per_superblock),
            live_pages: 0,
            lazy_units: 0,
            owners: (0..layout.handle_count()).map(owner).chain([shared]).collect(),
            closed: vec![sets; layout.handles.len() + 1],
            draining: None,
        }
    }
}
