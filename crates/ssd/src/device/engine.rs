//! A drive without its event sink: construction, and the host operations that report no events.

use std::collections::BTreeSet;

use base::HumanBytes;
use strength_reduce::StrengthReducedU32;

use super::open::OpenUnit;
use super::state::DeviceState;
use crate::cast::{count, index, wide};
use crate::config::{DeviceConfig, UnitOpenPolicy};
use crate::error::{ConfigError, HostError};
use crate::event::EventEmitter;
use crate::gc::VictimPolicy;
use crate::layout::DeviceLayout;
use crate::maps::PageMaps;
use crate::stats::FdpTotals;
use crate::timing::TimingModel;
use crate::types::{Lpn, MappedRun, Placement, Ppn, RgId, RuId, RuhId, UnitOwner};
use crate::unit::{ReclaimUnit, UnitState};

/// A drive without its event sink.
#[derive(Clone)]
pub struct DeviceCore {
    pub(super) config: DeviceConfig,
    pub(super) layout: DeviceLayout,
    pub(super) slice_divisor: StrengthReducedU32,
    pub(super) maps: PageMaps,
    pub(super) state: DeviceState,
    /// Timing model, if the configuration has one. Snapshots do not contain it, so a loaded drive
    /// is idle.
    pub(super) timing: Option<Box<TimingModel>>,
    /// External victim policy, used instead of `config.gc.victim_policy`.
    pub(super) victim_policy: ExternalPolicy,
    /// Fewest erases of a block when they were last counted, a lower bound for wear levelling.
    pub(super) fewest_erases: u32,
    /// Scratch buffer of collection with runs of pages to move.
    pub(super) moving: Vec<MappedRun>,
}

/// External victim policy. Clones of the device do not inherit it.
#[derive(Default)]
pub(super) struct ExternalPolicy(pub(super) Option<Box<dyn VictimPolicy + Send + Sync>>);

impl Clone for ExternalPolicy {
    fn clone(&self) -> ExternalPolicy {
        ExternalPolicy(None)
    }
}

/// Error for page maps that exceed the available memory or address space.
fn no_memory(layout: &DeviceLayout, error: &std::io::Error) -> ConfigError {
    let (capacity, maps) = (HumanBytes(layout.capacity_bytes()), HumanBytes(layout.memory_bytes()));
    let sentence =
        format!("the system refuses the {maps} for its page maps ({error}). Reduce the capacity, or see `ulimit -v`");
    ConfigError::new("geometry.capacity_bytes", capacity, sentence)
}

impl DeviceCore {
    /// Creates an empty drive.
    pub(super) fn new(config: &DeviceConfig, events: &mut EventEmitter<'_>) -> Result<DeviceCore, ConfigError> {
        let layout = DeviceLayout::new(config)?;
        let state = DeviceState::new(config, &layout);
        let maps = PageMaps::new(layout.logical_pages, layout.physical_pages, layout.slice_pages);
        let maps = maps.map_err(|error| no_memory(&layout, &error))?;
        let mut engine = DeviceCore::from_parts(config.clone(), layout, maps, state);
        if config.handles.opening == UnitOpenPolicy::Eager {
            engine.open_all_units(events);
        }
        Ok(engine)
    }

    pub(super) fn from_parts(
        config: DeviceConfig,
        layout: DeviceLayout,
        maps: PageMaps,
        state: DeviceState,
    ) -> DeviceCore {
        assert!(state.fits(&layout), "the tables have the sizes of the layout");
        let counted = state.stats.total().host_pages_written;
        assert_eq!(counted, state.host_pages_written, "host pages are counted twice or not at all");
        let mut engine = DeviceCore {
            timing: TimingModel::new(&config, &layout),
            victim_policy: ExternalPolicy::default(),
            slice_divisor: StrengthReducedU32::new(layout.slice_pages),
            config,
            layout,
            maps,
            state,
            fewest_erases: 0,
            moving: Vec::new(),
        };
        engine.resume_in_time();
        engine
    }

    pub(crate) fn parts(&self) -> (&DeviceConfig, &DeviceState, &PageMaps) {
        (&self.config, &self.state, &self.maps)
    }

    pub(crate) fn parts_mut(&mut self) -> (&mut DeviceState, &mut PageMaps) {
        (&mut self.state, &mut self.maps)
    }

    /// Clones the drive without its victim policy. Returns an error where [`Clone`] would abort the
    /// process.
    pub(super) fn try_clone(&self) -> std::io::Result<DeviceCore> {
        let no_memory = |_| std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let maps = self.maps.try_clone()?;
        // The other tables are small compared with the maps. If one allocation of this size
        // succeeds, so will their smaller allocations.
        let rest_bytes = self.layout.memory_bytes() / 4 + (1 << 20);
        let rest_bytes = usize::try_from(rest_bytes).unwrap_or(usize::MAX);
        Vec::<u8>::new().try_reserve_exact(rest_bytes).map_err(no_memory)?;
        Ok(DeviceCore {
            config: self.config.clone(),
            layout: self.layout.clone(),
            slice_divisor: self.slice_divisor,
            maps,
            state: self.state.clone(),
            timing: self.timing.clone(),
            victim_policy: ExternalPolicy(None),
            fewest_erases: self.fewest_erases,
            moving: Vec::new(),
        })
    }

    /// Keeps the maps in less memory from now on ([`DeviceLayout::compact_memory_bytes`]). Collection
    /// and the closing of reclaim units take longer. Results do not depend on it. The maps stay as
    /// they are if that would not save memory.
    ///
    /// # Errors
    /// The system has no address space for it.
    ///
    /// # Panics
    /// Panics if the drive has been written to.
    pub fn make_compact(&mut self) -> Result<(), ConfigError> {
        let made = self.maps.make_compact(self.layout.slice_pages);
        made.map_err(|error| no_memory(&self.layout, &error))
    }

    /// Returns true if [`DeviceCore::make_compact`] made the maps compact.
    pub fn is_compact(&self) -> bool {
        self.maps.is_compact()
    }

    /// Populates the memory of the mapping table now, 4 bytes per logical page, with all threads of
    /// the current thread pool. Use it before writing the whole of a large drive, because a kernel
    /// in a virtual machine may need seconds per GiB. Results do not depend on it.
    pub fn populate(&self) {
        self.maps.populate();
    }

    /// Sets an external victim policy, or with `None` returns to the configured one. Clones and
    /// snapshots of the device do not include the policy. The GC log names it `external`.
    ///
    /// # Panics
    /// Later, if the policy selects a reclaim unit that is not a candidate.
    pub fn set_victim_policy(&mut self, policy: Option<Box<dyn VictimPolicy + Send + Sync>>) {
        self.victim_policy = ExternalPolicy(policy);
    }

    /// Takes over the counters and the wear of the device that this one replaces, as after a change
    /// of the placement configuration. The flash and its history stay, the reclaim units and the
    /// data do not. Reclaim units in use count as reclaimed, and also as erased if they hold
    /// written pages.
    ///
    /// # Panics
    /// This device has been written to, or the two devices differ in their flash.
    pub fn continue_counters(&mut self, before: &DeviceCore) {
        let (old, new) = (&before.state, &mut self.state);
        assert_eq!(new.host_pages_written, 0, "only an empty device can take over");
        assert_eq!(new.erase_counts.len(), old.erase_counts.len(), "the same flash has as many blocks");
        new.stats.continue_from(&old.stats);
        new.erase_counts = old.erase_counts.clone();
        new.host_pages_written = old.host_pages_written;
        let owners = old.groups.iter().flat_map(|group| &group.owners);
        let open = owners.flat_map(|owner| owner.open.iter().flatten().chain(&owner.collecting));
        let blank: BTreeSet<u32> = open.filter(|open| open.written == 0).map(|open| open.unit.0).collect();
        let in_use = old.units.iter().enumerate().filter(|(_, unit)| unit.state != UnitState::Free);
        for (slice, unit) in in_use {
            let row = new.stats.owner_mut(unit.owner);
            row.units_reclaimed += 1;
            if blank.contains(&count(slice)) {
                continue;
            }
            row.pages_erased += u64::from(unit.pages);
            for place in 0..before.layout.classes[usize::from(unit.class)].blocks {
                let block = before.block_of(RuId(count(slice)), place);
                new.erase_counts.set(block, new.erase_counts[index(block)] + 1);
            }
        }
        let in_use = self.state.units.iter().filter(|unit| unit.state != UnitState::Free);
        let (in_use, total) = (wide(in_use.count()), self.state.stats.total());
        assert_eq!(total.units_opened, total.units_reclaimed + in_use, "reclaim units were opened and never reclaimed");
        let erases: u64 = self.state.erase_counts.iter().map(|count| u64::from(*count)).sum();
        assert_eq!(
            erases * u64::from(self.layout.block_pages),
            total.pages_erased,
            "blocks count other erases than owners"
        );
    }

    /// Raises counters that are below `at_least`, the values reported to hosts before the device
    /// lost its recent state. Ignores values that no drive can have counted.
    pub fn raise_totals(&mut self, at_least: &FdpTotals) {
        let state = &mut self.state;
        if !state.can_raise(at_least, self.layout.block_pages) {
            return;
        }
        let (pages, erased) = state.stats.raise(at_least, u64::from(self.layout.block_pages));
        // The policies' clock advances with the pages. The wear is spread evenly over all blocks.
        state.host_pages_written += pages;
        assert_eq!(
            state.host_pages_written,
            state.stats.total().host_pages_written,
            "host pages are counted twice or not at all"
        );
        let blocks = count(state.erase_counts.len());
        for block in 0..blocks {
            let more = erased / u64::from(blocks) + u64::from(u64::from(block) < erased % u64::from(blocks));
            let more = u32::try_from(more).expect("the caller has bounded the erases");
            state.erase_counts.set(block, state.erase_counts[index(block)] + more);
        }
    }

    /// Prefetches the L2P entries of logical pages that will be read or written soon, at most some
    /// dozens. The state is unchanged. Ignores pages that do not exist.
    #[inline]
    pub fn prefetch(&self, pages: impl Iterator<Item = Lpn>) {
        let capacity = self.layout.logical_pages;
        self.maps.prefetch_places(pages.filter(|lpn| lpn.0 < capacity));
    }

    /// Prefetches the further memory that writing or deallocating these pages touches. Call it a
    /// moment after [`DeviceCore::prefetch`] for the same pages.
    #[inline]
    pub fn prefetch_overwritten(&self, pages: impl Iterator<Item = Lpn>) {
        let capacity = self.layout.logical_pages;
        self.maps.prefetch_valid(pages.filter(|lpn| lpn.0 < capacity));
    }

    /// Placement of a command that names no placement or one that does not exist. Uses `handle`,
    /// the first placement handle of the namespace, and rotates over the reclaim groups. The
    /// standard leaves the choice of group to the controller (NVMe 2.1, Flexible Data Placement).
    /// All callers that execute host commands must call this function once per such command. The
    /// rotation is part of the drive's state, so snapshots preserve it.
    #[inline]
    pub fn default_placement(&mut self, handle: RuhId) -> Placement {
        let groups = self.layout.groups;
        let group = self.state.default_group;
        assert!(group.0 < groups, "the next default reclaim group does not exist");
        self.state.default_group = RgId(if group.0 + 1 == groups { 0 } else { group.0 + 1 });
        Placement { group, handle }
    }

    /// Open reclaim unit of the handle's next command.
    fn open_for_next(&self, placement: Placement) -> Option<&OpenUnit> {
        let owner = &self.state.groups[placement.group.index()].owners[placement.handle.index()];
        owner.open[owner.turn].as_ref()
    }

    /// Pages that the host can still write before the handle's current reclaim unit is full (RUAMW,
    /// in pages).
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn available_media_writes(&self, placement: Placement) -> Result<u32, HostError> {
        self.check_placement(placement)?;
        Ok(match self.open_for_next(placement) {
            Some(open) => self.unit(open.unit).pages - open.written,
            None => self.layout.classes[usize::from(self.class_of_handle(placement.handle))].pages,
        })
    }

    /// Returns true if the host has written to the handle's current reclaim unit. Returns `false`
    /// if the handle has no open unit.
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn is_unit_written(&self, placement: Placement) -> Result<bool, HostError> {
        self.check_placement(placement)?;
        let open = self.open_for_next(placement);
        Ok(open.is_some_and(|open| open.written > 0))
    }

    /// Physical page of a logical page, or `None` if it is unmapped.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.maps.lookup(lpn);
        (ppn != Ppn::UNMAPPED).then_some(ppn)
    }

    /// Reclaim unit of a physical page.
    #[inline]
    pub fn unit_of(&self, ppn: Ppn) -> RuId {
        self.state.unit_of(self.slice_divisor, ppn)
    }

    /// First physical page of a reclaim unit.
    #[inline]
    pub(super) fn first_page(&self, unit: RuId) -> Ppn {
        Ppn(unit.0 * self.layout.slice_pages)
    }

    /// State of a reclaim unit.
    #[inline]
    pub fn unit(&self, unit: RuId) -> &ReclaimUnit {
        &self.state.units[unit.index()]
    }

    /// Owner at a row index of a group. The handles come first, in order, then the shared pool.
    pub(super) fn owner_at(&self, position: usize) -> UnitOwner {
        if position == self.layout.handles.len() {
            UnitOwner::SHARED_POOL
        } else {
            UnitOwner::from_handle(RuhId::from_index(position))
        }
    }

    /// Row index of an owner in a group.
    #[inline]
    pub(super) fn owner_index(&self, owner: UnitOwner) -> usize {
        owner.handle().map_or(self.layout.handles.len(), |handle| handle.index())
    }
}
