//! A drive without the sink of its events: how it is made, and what a host can ask of it without an event.

use std::collections::BTreeSet;

use base::Bytes;
use strength_reduce::StrengthReducedU32;

use super::open::OpenUnit;
use super::state::State;
use crate::cast::{count, index, wide};
use crate::config::{DeviceConfig, Opening};
use crate::error::{ConfigError, HostError};
use crate::event::Events;
use crate::gc::VictimPolicy;
use crate::layout::Layout;
use crate::maps::Maps;
use crate::stats::Totals;
use crate::timing::Timing;
use crate::types::{Lpn, MappedRun, Owner, Placement, Ppn, RgId, RuId, RuhId};
use crate::unit::{ReclaimUnit, UnitState};

/// A drive without its sink.
#[derive(Clone)]
pub struct Engine {
    pub(super) config: DeviceConfig,
    pub(super) layout: Layout,
    pub(super) slice_divisor: StrengthReducedU32,
    pub(super) maps: Maps,
    pub(super) state: State,
    /// What everything waits for, if it takes time. Not in snapshots: a drive that is loaded is idle.
    pub(super) timing: Option<Box<Timing>>,
    /// Chooses victims instead of `config.gc.unit_selection`.
    pub(super) victim_policy: ExternalPolicy,
    /// Scratch of the copy loop: where pages were, and which they are.
    pub(super) moving: Vec<MappedRun>,
}

/// A victim policy from outside; it stays with its device, not with copies of it.
#[derive(Default)]
pub(super) struct ExternalPolicy(pub(super) Option<Box<dyn VictimPolicy + Send + Sync>>);

impl Clone for ExternalPolicy {
    fn clone(&self) -> ExternalPolicy {
        ExternalPolicy(None)
    }
}

/// The system refuses memory, or addresses, for the page maps.
fn no_memory(layout: &Layout, error: &std::io::Error) -> ConfigError {
    let (capacity, maps) = (Bytes(layout.capacity_bytes()), Bytes(layout.memory_bytes()));
    let sentence =
        format!("the page maps need {maps}, which the system refuses ({error}); choose less, or see `ulimit -v`");
    ConfigError::new("geometry.capacity_bytes", capacity, sentence)
}

impl Engine {
    /// An empty drive.
    pub(super) fn new(config: &DeviceConfig, events: &mut Events<'_>) -> Result<Engine, ConfigError> {
        let layout = Layout::new(config)?;
        let state = State::new(config, &layout);
        let maps = Maps::new(layout.logical_pages, layout.physical_pages, layout.slice_pages);
        let maps = maps.map_err(|error| no_memory(&layout, &error))?;
        let mut engine = Engine::from_parts(config.clone(), layout, maps, state);
        if config.handles.opening == Opening::Eager {
            engine.open_everything(events);
        }
        Ok(engine)
    }

    pub(super) fn from_parts(config: DeviceConfig, layout: Layout, maps: Maps, state: State) -> Engine {
        assert!(state.fits(&layout), "the tables have the sizes of the layout");
        let counted = state.stats.total().host_pages_written;
        assert_eq!(
            counted, state.host_pages_written,
            "host pages are counted twice or not at all"
        );
        let mut engine = Engine {
            timing: Timing::new(&config, &layout),
            victim_policy: ExternalPolicy::default(),
            slice_divisor: StrengthReducedU32::new(layout.slice_pages),
            config,
            layout,
            maps,
            state,
            moving: Vec::new(),
        };
        engine.resume_in_time();
        engine
    }

    pub(crate) fn parts(&self) -> (&DeviceConfig, &State, &Maps) {
        (&self.config, &self.state, &self.maps)
    }

    pub(crate) fn parts_mut(&mut self) -> (&mut State, &mut Maps) {
        (&mut self.state, &mut self.maps)
    }

    /// A copy without its victim policy, or an error where [`Clone`] would end the process.
    pub(super) fn try_clone(&self) -> std::io::Result<Engine> {
        let no_memory = |_| std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let maps = self.maps.try_clone()?;
        // What the rest takes is a small part of what the maps do. If there is room for so much in one piece, there is
        // for the pieces.
        let rest_bytes = self.layout.memory_bytes() / 4 + (1 << 20);
        let rest_bytes = usize::try_from(rest_bytes).unwrap_or(usize::MAX);
        Vec::<u8>::new().try_reserve_exact(rest_bytes).map_err(no_memory)?;
        Ok(Engine {
            config: self.config.clone(),
            layout: self.layout.clone(),
            slice_divisor: self.slice_divisor,
            maps,
            state: self.state.clone(),
            timing: self.timing.clone(),
            victim_policy: ExternalPolicy(None),
            moving: Vec::new(),
        })
    }

    /// Has the system provide the memory of the mapping table now, 4 bytes a logical page, by all threads of the pool that
    /// it is called from. It pays where the whole of a large drive is going to be written, because a kernel in a virtual
    /// machine may take seconds for a GiB. Results do not depend on it.
    pub fn populate(&self) {
        self.maps.populate();
    }

    /// Lets `policy` choose victims from now on, instead of the one that the configuration names; `None` goes back to
    /// that. Clones of the device and its snapshots do not have it. In the GC log it is called `external`.
    ///
    /// # Panics
    /// Later, when the policy chooses a reclaim unit that is not among the candidates.
    pub fn set_victim_policy(&mut self, policy: Option<Box<dyn VictimPolicy + Send + Sync>>) {
        self.victim_policy = ExternalPolicy(policy);
    }

    /// Takes over the counters and the wear of the device that it replaces, as when a drive's placement configuration
    /// is changed: the flash and its history stay, the reclaim units and the data do not. What was in use counts as
    /// reclaimed, and is erased if anything was written to it.
    ///
    /// # Panics
    /// This device has been written to, or the two are not of the same flash.
    pub fn take_over(&mut self, before: &Engine) {
        let (old, new) = (&before.state, &mut self.state);
        assert_eq!(new.host_pages_written, 0, "only an empty device can take over");
        assert_eq!(
            new.erase_counts.len(),
            old.erase_counts.len(),
            "the same flash has as many blocks"
        );
        new.stats.take_over(&old.stats);
        new.erase_counts = old.erase_counts.clone();
        new.host_pages_written = old.host_pages_written;
        let owners = old.groups.iter().flat_map(|group| &group.owners);
        let open = owners.flat_map(|owner| owner.open.iter().flatten().chain(&owner.collecting));
        let blank: BTreeSet<u32> = open.filter(|open| open.written == 0).map(|open| open.unit.0).collect();
        let in_use = old
            .units
            .iter()
            .enumerate()
            .filter(|(_, unit)| unit.state != UnitState::Free);
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
        assert_eq!(
            total.units_opened,
            total.units_reclaimed + in_use,
            "reclaim units were opened and never reclaimed"
        );
        let erases: u64 = self.state.erase_counts.iter().map(|count| u64::from(*count)).sum();
        assert_eq!(
            erases * u64::from(self.layout.block_pages),
            total.pages_erased,
            "blocks count other erases than owners"
        );
    }

    /// Raises the totals to what hosts were told before what the device knows of was lost, as far as they are below. What no drive
    /// can have counted is passed over.
    pub fn raise_totals(&mut self, at_least: &Totals) {
        let state = &mut self.state;
        if !state.can_raise(at_least, self.layout.block_pages) {
            return;
        }
        let (pages, erased) = state.stats.raise(at_least, u64::from(self.layout.block_pages));
        // The time that policies know goes on with the pages, and the wear with the blocks: with all of them alike.
        state.host_pages_written += pages;
        assert_eq!(
            state.host_pages_written,
            state.stats.total().host_pages_written,
            "host pages are counted twice or not at all"
        );
        let blocks = count(state.erase_counts.len());
        for block in 0..blocks {
            let more = erased / u64::from(blocks) + u64::from(u64::from(block) < erased % u64::from(blocks));
            let erases = state.erase_counts[index(block)].saturating_add(u32::try_from(more).unwrap_or(u32::MAX));
            state.erase_counts.set(block, erases);
        }
    }

    /// Asks for the entries of the L2P map of logical pages that will be read or written soon, some dozens at most, so that they are in the
    /// processor's caches by then. It changes nothing; pages that do not exist are passed over.
    #[inline]
    pub fn expect(&self, pages: impl Iterator<Item = Lpn>) {
        let capacity = self.layout.logical_pages;
        self.maps.prefetch_places(pages.filter(|lpn| lpn.0 < capacity));
    }

    /// Asks for what writing or deallocating these pages will touch besides, a moment after [`Engine::expect`] was told of them.
    #[inline]
    pub fn expect_overwritten(&self, pages: impl Iterator<Item = Lpn>) {
        let capacity = self.layout.logical_pages;
        self.maps.prefetch_valid(pages.filter(|lpn| lpn.0 < capacity));
    }

    /// Where a command writes that names no placement, or one that does not exist: through the first placement handle of its
    /// namespace, `handle`, the reclaim groups in turn. The standard leaves the group to the controller (NVMe 2.1, Flexible Data
    /// Placement). This is the only such rule: whoever carries out a host's commands asks here once for each; the turn is part of
    /// the drive's state, so that snapshots go on with it.
    #[inline]
    pub fn default_placement(&mut self, handle: RuhId) -> Placement {
        let groups = self.layout.groups;
        let group = self.state.default_group;
        assert!(group.0 < groups, "the turn is that of a reclaim group");
        self.state.default_group = RgId(if group.0 + 1 == groups { 0 } else { group.0 + 1 });
        Placement { group, handle }
    }

    /// What the handle's next command would go to.
    fn open_for_next(&self, placement: Placement) -> Option<&OpenUnit> {
        let owner = &self.state.groups[placement.group.index()].owners[placement.handle.index()];
        owner.open[owner.turn].as_ref()
    }

    /// Pages that the host can still write before the handle's current reclaim unit is full (RUAMW, in pages).
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

    /// Whether the host has written to the handle's current reclaim unit; `false` also if it has none yet.
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn is_unit_begun(&self, placement: Placement) -> Result<bool, HostError> {
        self.check_placement(placement)?;
        let open = self.open_for_next(placement);
        Ok(open.is_some_and(|open| open.written > 0))
    }

    /// Where a logical page is, or `None` if it is not mapped.
    #[inline]
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.maps.lookup(lpn);
        (ppn != Ppn::UNMAPPED).then_some(ppn)
    }

    /// The reclaim unit that a physical page belongs to.
    #[inline]
    pub fn unit_of(&self, ppn: Ppn) -> RuId {
        self.state.unit_of(self.slice_divisor, ppn)
    }

    /// The first page of a reclaim unit.
    #[inline]
    pub(super) fn first_page(&self, unit: RuId) -> Ppn {
        Ppn(unit.0 * self.layout.slice_pages)
    }

    /// State of a reclaim unit.
    #[inline]
    pub fn unit(&self, unit: RuId) -> &ReclaimUnit {
        &self.state.units[unit.index()]
    }

    /// The owner at a position in the rows of a group: the handles in order, then the shared pool.
    pub(super) fn owner_at(&self, position: usize) -> Owner {
        if position == self.layout.handles.len() {
            Owner::SHARED
        } else {
            Owner::of(RuhId::of(position))
        }
    }

    /// Position of an owner in the rows of a group.
    #[inline]
    pub(super) fn owner_index(&self, owner: Owner) -> usize {
        owner
            .handle()
            .map_or(self.layout.handles.len(), |handle| handle.index())
    }
}
