//! The device: what a host can ask of it, and its state.
//!
//! A [`Device`] is an `Engine`, which does everything, and the sink that hears of it. The engine does not know the type
//! of the sink, so it is compiled once, here, and turns to a listener only where there is something to tell.
//!
//! A write takes the open reclaim unit of its (reclaim group, handle), invalidates where its pages were, appends them
//! and maps them (`write.rs`). Opening a reclaim unit is the moment at which room is needed and collection runs
//! (`place.rs` takes and returns reclaim units, `collect.rs` reclaims them). `check.rs` proves the whole state by full
//! scan, for tests.

pub(crate) mod blocks;
mod check;
mod collect;
mod place;
mod timed;
mod view;
mod write;

use std::collections::{BTreeSet, VecDeque};

use base::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};
use strength_reduce::StrengthReducedU32;

use crate::cast::{count, index, narrow, wide};
use crate::config::{DeviceConfig, HandleConfig, Isolation, Opening};
use crate::endurance::{ERASES_MAX, Endurance, Wear};
use crate::error::{ConfigError, HostError};
use crate::event::{EventSink, Events};
use crate::gc::VictimPolicy;
use crate::gc::index::ClosedSet;
use crate::layout::Layout;
use crate::maps::Maps;
use crate::recency::Recency;
use crate::stats::{Stats, Totals};
use crate::timing::{Completion, Location, Timing, TimingConfig};
use crate::types::{Lpn, MappedRun, Nanos, Owner, Placement, Ppn, RgId, RuId, RuhId, Write};
use crate::unit::{ReclaimUnit, UnitState};
use blocks::{BlockTable, Noted, NotedRoom};
use place::OpenUnit;

pub use view::UnitView;

/// A drive. `S` receives its events; `()` costs nothing.
#[derive(Clone)]
pub struct Device<S = ()> {
    engine: Engine,
    sink: S,
}

/// A drive without its sink.
#[derive(Clone)]
pub(crate) struct Engine {
    config: DeviceConfig,
    layout: Layout,
    slice_divisor: StrengthReducedU32,
    maps: Maps,
    state: State,
    /// What everything waits for, if it takes time. Not in snapshots: a drive that is loaded is idle.
    timing: Option<Box<Timing>>,
    /// Chooses victims instead of `config.gc.unit_selection`.
    victim_policy: ExternalPolicy,
    /// Scratch of the copy loop: where pages were, and which they are.
    moving: Vec<MappedRun>,
}

/// A victim policy from outside; it stays with its device, not with copies of it.
#[derive(Default)]
struct ExternalPolicy(Option<Box<dyn VictimPolicy + Send + Sync>>);

impl Clone for ExternalPolicy {
    fn clone(&self) -> ExternalPolicy {
        ExternalPolicy(None)
    }
}

/// Everything but the page maps and what follows from the configuration.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct State {
    /// An entry for each slice; a reclaim unit uses the one of its first slice.
    units: Vec<ReclaimUnit>,
    /// First slice of the reclaim unit that each slice belongs to; empty if every unit is one slice.
    unit_of_slice: Vec<u32>,
    superblocks: Vec<Superblock>,
    groups: Vec<Group>,
    /// Reclaim group of the next command without a placement.
    default_group: RgId,
    stats: Stats,
    /// Pages written by the host: the time that policies know.
    host_pages_written: u64,
    units_closed: u64,
    random: Xoshiro256PlusPlus,
    /// Physical block at each place of each superblock; empty as long as blocks cannot be remapped.
    block_at: BlockTable,
    erase_counts: BlockTable,
    /// What the host wrote last, if hot data is separated.
    recency: Option<Recency>,
}

/// How a superblock is divided.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Superblock {
    class: u8,
    parts_used: u32,
}

/// One reclaim group.
#[derive(Clone, Serialize, Deserialize)]
struct Group {
    free_superblocks: VecDeque<u32>,
    /// Free parts of divided superblocks, for each class.
    free_parts: Vec<VecDeque<u32>>,
    free_slices: u64,
    live_pages: u64,
    /// Closed reclaim units that background collection may take, over all sets.
    lazy_units: u64,
    /// What each owner has open: the handles in order, then the shared pool.
    owners: Vec<OwnerState>,
    /// Closed reclaim units of each owner and class.
    closed: Vec<Vec<ClosedSet>>,
    /// Superblock that is being emptied and whose free parts are withheld.
    draining: Option<u32>,
}

/// What an owner has open in one reclaim group.
#[derive(Clone, Serialize, Deserialize)]
struct OwnerState {
    /// For host writes ([`Layout::open_slots`]); empty for the shared pool.
    open: Vec<Option<OpenUnit>>,
    /// Which of them takes the next command.
    turn: usize,
    /// For copies that do not share the first of them ([`crate::config::Copies`]).
    collecting: Option<OpenUnit>,
    /// Whether copies keep the handle.
    isolated: bool,
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

impl Device {
    /// Makes an empty drive that keeps its events to itself.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn new(config: &DeviceConfig) -> Result<Device, ConfigError> {
        Device::with_sink(config, ())
    }

    /// A drive that was there before: its maps and its state.
    pub(crate) fn from_parts(config: DeviceConfig, layout: Layout, maps: Maps, state: State) -> Device {
        let engine = Engine::from_parts(config, layout, maps, state);
        Device { engine, sink: () }
    }
}

impl<S: EventSink> Device<S> {
    /// Has the system provide the memory of the mapping table now, 4 bytes a logical page, by all threads of the pool that
    /// it is called from. It pays where the whole of a large drive is going to be written, because a kernel in a virtual
    /// machine may take seconds for a GiB. Results do not depend on it.
    pub fn populate(&self) {
        self.engine.maps.populate();
    }

    /// Makes an empty drive that reports to `sink`.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn with_sink(config: &DeviceConfig, mut sink: S) -> Result<Device<S>, ConfigError> {
        let engine = Engine::new(config, &mut Events::of(&mut sink))?;
        Ok(Device { engine, sink })
    }

    /// A copy without events, or an error where [`Clone`] would end the process: for those who serve others meanwhile.
    ///
    /// # Errors
    /// The system has no memory or no address space for it.
    pub fn try_clone(&self) -> std::io::Result<Device> {
        let no_memory = |_| std::io::Error::from(std::io::ErrorKind::OutOfMemory);
        let maps = self.engine.maps.try_clone()?;
        // What the rest takes is a small part of what the maps do. If there is room for so much in one piece, there is
        // for the pieces.
        let rest_bytes = self.layout().memory_bytes() / 4 + (1 << 20);
        let rest_bytes = usize::try_from(rest_bytes).unwrap_or(usize::MAX);
        Vec::<u8>::new().try_reserve_exact(rest_bytes).map_err(no_memory)?;
        let engine = &self.engine;
        Ok(Device {
            engine: Engine {
                config: engine.config.clone(),
                layout: engine.layout.clone(),
                slice_divisor: engine.slice_divisor,
                maps,
                state: engine.state.clone(),
                timing: engine.timing.clone(),
                victim_policy: ExternalPolicy(None),
                moving: Vec::new(),
            },
            sink: (),
        })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The same drive, reporting to another sink from now on.
    pub fn replace_sink<T: EventSink>(self, sink: T) -> (Device<T>, S) {
        let Device { engine, sink: before } = self;
        (Device { engine, sink }, before)
    }

    /// Lets `policy` choose victims from now on, instead of the one that the configuration names; `None` goes back to
    /// that. Clones of the device and its snapshots do not have it. In the GC log it is called `external`.
    ///
    /// # Panics
    /// Later, when the policy chooses a reclaim unit that is not among the candidates.
    pub fn set_victim_policy(&mut self, policy: Option<Box<dyn VictimPolicy + Send + Sync>>) {
        self.engine.victim_policy = ExternalPolicy(policy);
    }

    /// Takes over the counters and the wear of the device that it replaces, as when a drive's placement configuration
    /// is changed: the flash and its history stay, the reclaim units and the data do not. What was in use counts as
    /// reclaimed, and is erased if anything was written to it.
    ///
    /// # Panics
    /// This device has been written to, or the two are not of the same flash.
    pub fn take_over<T: EventSink>(&mut self, before: &Device<T>) {
        self.engine.take_over(&before.engine);
    }

    /// Raises the totals to what hosts were told before what the device knows of was lost, as far as they are below. What no drive
    /// can have counted is passed over.
    pub fn raise_totals(&mut self, at_least: &Totals) {
        let state = &mut self.engine.state;
        if !state.can_raise(at_least, self.engine.layout.block_pages) {
            return;
        }
        let (pages, erased) = state.stats.raise(at_least, u64::from(self.engine.layout.block_pages));
        // The time that policies know goes on with the pages, and the wear with the blocks: with all of them alike.
        state.host_pages_written += pages;
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
        let capacity = self.engine.layout.logical_pages;
        self.engine.maps.prefetch_places(pages.filter(|lpn| lpn.0 < capacity));
    }

    /// Asks for what writing or deallocating these pages will touch besides, a moment after [`Device::expect`] was told of them.
    #[inline]
    pub fn expect_overwritten(&self, pages: impl Iterator<Item = Lpn>) {
        let capacity = self.engine.layout.logical_pages;
        self.engine.maps.prefetch_valid(pages.filter(|lpn| lpn.0 < capacity));
    }

    /// Where a command writes that names no placement, or one that does not exist: through the first placement handle of its
    /// namespace, `handle`, the reclaim groups in turn. The standard leaves the group to the controller (NVMe 2.1, Flexible Data
    /// Placement). This is the only such rule: whoever carries out a host's commands asks here once for each; the turn is part of
    /// the drive's state, so that snapshots go on with it.
    #[inline]
    pub fn default_placement(&mut self, handle: RuhId) -> Placement {
        let groups = self.engine.layout.groups;
        let group = self.engine.state.default_group;
        assert!(group.0 < groups, "the turn is that of a reclaim group");
        self.engine.state.default_group = RgId(if group.0 + 1 == groups { 0 } else { group.0 + 1 });
        Placement { group, handle }
    }

    /// Writes an extent.
    ///
    /// # Errors
    /// The extent or the placement does not exist; nothing was done.
    pub fn write(&mut self, now: Nanos, write: &Write) -> Result<Completion, HostError> {
        self.engine.write(&mut Events::of(&mut self.sink), now, write)
    }

    /// Writes extents one after the other; the same as [`Device::write`] on each, but much faster for small ones,
    /// because the memory that all of them touch is fetched together.
    ///
    /// # Errors
    /// An extent or placement does not exist; nothing was done.
    pub fn write_batch(&mut self, now: Nanos, writes: &[Write]) -> Result<Completion, HostError> {
        self.engine.write_batch(&mut Events::of(&mut self.sink), now, writes)
    }

    /// Writes extents at times that do not go back, each of `times` one of `writes`: the same as [`Device::write`] on each, but
    /// faster for small ones. Their completions are appended to `done`.
    ///
    /// # Errors
    /// An extent or placement does not exist; nothing was done.
    ///
    /// # Panics
    /// There are not as many times as writes.
    pub fn write_at_times(
        &mut self,
        times: &[Nanos],
        writes: &[Write],
        done: &mut Vec<Completion>,
    ) -> Result<(), HostError> {
        assert_eq!(times.len(), writes.len(), "each write comes at a time");
        for write in writes {
            self.engine.check_write(write)?;
        }
        let events = &mut Events::of(&mut self.sink);
        self.engine.write_in_times(events, times, writes, done);
        Ok(())
    }

    /// A write that comes at `now` is not done before, whatever the drive does: those that come until then can be given to it
    /// together with this one ([`Device::write_at_times`]). `now` without timing.
    #[inline]
    pub fn soonest_write(&self, now: Nanos) -> Nanos {
        let timing = self.engine.timing.as_ref();
        timing.map_or(now, |timing| timing.soonest_write(now))
    }

    /// A read that comes at `now` is not done before. `now` without timing.
    #[inline]
    pub fn soonest_read(&self, now: Nanos) -> Nanos {
        let timing = self.engine.timing.as_ref();
        timing.map_or(now, |timing| timing.soonest_read(now))
    }

    /// Deallocates an extent: its pages read as nothing and cost collection nothing.
    ///
    /// # Errors
    /// The extent does not exist; nothing was done.
    pub fn deallocate(&mut self, now: Nanos, first: Lpn, pages: u32) -> Result<Completion, HostError> {
        self.engine
            .deallocate(&mut Events::of(&mut self.sink), now, first, pages)
    }

    /// Zeroes an extent: with `deallocate` (the DEAC bit of Write Zeroes) by deallocating it, otherwise by writing.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn write_zeroes(&mut self, now: Nanos, write: &Write, deallocate: bool) -> Result<Completion, HostError> {
        if deallocate {
            self.check_write(write)?;
            self.deallocate(now, write.first, write.pages)
        } else {
            self.write(now, write)
        }
    }

    /// Reclaim unit handle update: the handle closes the reclaim unit that it writes to and takes another one. Returns
    /// the pages of the closed one that were never written, 0 if there was nothing to close.
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn update_handle(&mut self, now: Nanos, placement: Placement) -> Result<u32, HostError> {
        self.engine.check_placement(placement)?;
        let events = &mut Events::of(&mut self.sink);
        Ok(self.engine.close_for_host(events, now, placement))
    }

    /// Pages that the host can still write before the handle's current reclaim unit is full (RUAMW, in pages).
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn available_media_writes(&self, placement: Placement) -> Result<u32, HostError> {
        self.engine.check_placement(placement)?;
        Ok(self.engine.available_media_writes(placement))
    }

    /// Whether the host has written to the handle's current reclaim unit; `false` also if it has none yet.
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn is_unit_begun(&self, placement: Placement) -> Result<bool, HostError> {
        self.engine.check_placement(placement)?;
        let open = self.engine.open_for_next(placement);
        Ok(open.is_some_and(|open| open.written > 0))
    }

    /// Reads an extent: nothing changes, but it takes time. Pages that are not mapped are not looked for in the flash.
    ///
    /// # Errors
    /// The extent does not exist.
    ///
    /// # Panics
    /// The device has timing and `now` is 292 years (2^63 ns) or later.
    pub fn read(&mut self, now: Nanos, first: Lpn, pages: u32) -> Result<Completion, HostError> {
        self.engine.check_extent(first, pages)?;
        Ok(self.engine.read_checked(now, first, pages))
    }

    /// Where a page is that will be read soon: to find out is a good part of reading it, and takes less time for many pages than for
    /// one. `None` if it is not mapped, or the device has no timing.
    ///
    /// # Panics
    /// The page is outside of the device.
    #[inline]
    pub fn locate(&self, lpn: Lpn) -> Option<Location> {
        self.engine.locate(lpn)
    }

    /// As [`Device::read`] of one page, which is where it was located. Nothing may have been written or deallocated since, in
    /// whatever place.
    ///
    /// # Panics
    /// The page is not there any more, or as [`Device::read`].
    #[inline]
    pub fn read_located(&mut self, now: Nanos, lpn: Lpn, location: &Location) -> Completion {
        assert!(
            self.engine.lookup(lpn) == Some(location.ppn),
            "a page is read where it is"
        );
        self.engine.read_located(now, location)
    }

    /// Pages that were read and were not mapped, since the device was made, loaded or given its times; 0 without timing.
    pub fn unmapped_pages_read(&self) -> u64 {
        self.engine
            .timing
            .as_ref()
            .map_or(0, |timing| timing.unmapped_pages_read())
    }

    /// A command that does nothing to the flash: how long the controller needs for it.
    pub fn command(&mut self, now: Nanos) -> Completion {
        self.engine.command(now)
    }

    /// Changes what takes how long; the drive is idle then.
    ///
    /// # Errors
    /// The drive cannot be like that.
    pub fn set_timing(&mut self, timing: Option<TimingConfig>) -> Result<(), ConfigError> {
        self.engine.set_timing(timing)
    }

    /// Where a logical page is, or `None` if it is not mapped.
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        self.engine.lookup(lpn)
    }

    /// The reclaim unit that a physical page belongs to.
    pub fn unit_of(&self, ppn: Ppn) -> RuId {
        self.engine.unit_of(ppn)
    }

    /// State of a reclaim unit.
    pub fn unit(&self, unit: RuId) -> &ReclaimUnit {
        self.engine.unit(unit)
    }

    /// The counters.
    pub fn stats(&self) -> &Stats {
        &self.engine.state.stats
    }

    /// The configuration.
    pub fn config(&self) -> &DeviceConfig {
        &self.engine.config
    }

    /// The numbers derived from it.
    pub fn layout(&self) -> &Layout {
        &self.engine.layout
    }

    /// The event sink.
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The event sink, to take out what it has collected.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Pages written by the host so far: the time that policies know.
    pub fn host_pages_written(&self) -> u64 {
        self.engine.state.host_pages_written
    }

    /// Erase count of each block, in the order of their dies.
    pub fn block_erase_counts(&self) -> &[u32] {
        &self.engine.state.erase_counts
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
        let Engine {
            config, layout, state, ..
        } = &self.engine;
        let endurance = config.endurance.as_ref()?;
        let erases = &state.erase_counts;
        Some(Endurance::of(endurance, config.seed, layout, &state.stats, erases))
    }

    /// Logical pages mapped.
    pub fn live_pages(&self) -> u64 {
        let groups = &self.engine.state.groups;
        groups.iter().map(|group| group.live_pages).sum()
    }

    /// What each owner holds, over all groups: the handles in order, then the shared pool.
    pub fn occupancy(&self) -> Vec<Occupancy> {
        self.engine.occupancy()
    }

    /// Proves every invariant of the state by full scan. For tests; takes as long as reading all maps.
    ///
    /// # Errors
    /// Says which invariant does not hold, and where.
    pub fn check(&self) -> Result<(), String> {
        check::check(&self.engine)
    }

    /// Refuses a write whose extent or placement does not exist.
    ///
    /// # Errors
    /// As [`Device::write`].
    #[inline]
    pub fn check_write(&self, write: &Write) -> Result<(), HostError> {
        self.engine.check_write(write)
    }

    /// Refuses an extent that does not exist.
    ///
    /// # Errors
    /// As [`Device::read`].
    #[inline]
    pub fn check_extent(&self, first: Lpn, pages: u32) -> Result<(), HostError> {
        self.engine.check_extent(first, pages)
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
    fn new(config: &DeviceConfig, events: &mut Events<'_>) -> Result<Engine, ConfigError> {
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

    fn from_parts(config: DeviceConfig, layout: Layout, maps: Maps, state: State) -> Engine {
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

    /// See [`Device::take_over`].
    fn take_over(&mut self, before: &Engine) {
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

    /// What the handle's next command would go to.
    fn open_for_next(&self, placement: Placement) -> Option<&OpenUnit> {
        let owner = &self.state.groups[placement.group.index()].owners[placement.handle.index()];
        owner.open[owner.turn].as_ref()
    }

    fn available_media_writes(&self, placement: Placement) -> u32 {
        match self.open_for_next(placement) {
            Some(open) => self.unit(open.unit).pages - open.written,
            None => self.layout.classes[usize::from(self.class_of_handle(placement.handle))].pages,
        }
    }

    fn command(&mut self, now: Nanos) -> Completion {
        match &mut self.timing {
            Some(timing) => timing.command(now),
            None => Completion::now(now),
        }
    }

    fn set_timing(&mut self, timing: Option<TimingConfig>) -> Result<(), ConfigError> {
        let config = DeviceConfig {
            timing,
            ..self.config.clone()
        };
        Layout::new(&config)?;
        self.timing = Timing::new(&config, &self.layout);
        self.config = config;
        self.resume_in_time();
        Ok(())
    }

    #[inline]
    fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.maps.lookup(lpn);
        (ppn != Ppn::UNMAPPED).then_some(ppn)
    }

    #[inline]
    fn unit_of(&self, ppn: Ppn) -> RuId {
        self.state.unit_of(self.slice_divisor, ppn)
    }

    /// The first page of a reclaim unit.
    #[inline]
    fn first_page(&self, unit: RuId) -> Ppn {
        Ppn(unit.0 * self.layout.slice_pages)
    }

    #[inline]
    fn unit(&self, unit: RuId) -> &ReclaimUnit {
        &self.state.units[unit.index()]
    }

    fn occupancy(&self) -> Vec<Occupancy> {
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
        rows
    }

    /// The owner at a position in the rows of a group: the handles in order, then the shared pool.
    fn owner_at(&self, position: usize) -> Owner {
        if position == self.layout.handles.len() {
            Owner::SHARED
        } else {
            Owner::of(RuhId::of(position))
        }
    }

    /// Position of an owner in the rows of a group.
    #[inline]
    fn owner_index(&self, owner: Owner) -> usize {
        owner
            .handle()
            .map_or(self.layout.handles.len(), |handle| handle.index())
    }
}

impl State {
    /// The reclaim unit that a physical page belongs to; `slices` divides by the pages of a slice.
    #[inline(always)]
    fn unit_of(&self, slices: StrengthReducedU32, ppn: Ppn) -> RuId {
        let slice = ppn.0 / slices;
        match self.unit_of_slice.get(index(slice)) {
            Some(&unit) => RuId(unit),
            None => RuId(slice),
        }
    }

    /// The reclaim unit that the first of `left` consecutive physical pages belongs to, and how many of them do.
    #[inline(always)]
    fn unit_part(&self, slices: StrengthReducedU32, layout: &Layout, ppn: Ppn, left: u32) -> (RuId, u32) {
        let unit = self.unit_of(slices, ppn);
        // The layout keeps the numbers of pages below 2^32.
        let pages = left.min(unit.0 * layout.slice_pages + self.units[unit.index()].pages - ppn.0);
        assert!(pages > 0, "{ppn:?} is invalidated behind the end of its reclaim unit");
        (unit, pages)
    }

    fn new(config: &DeviceConfig, layout: &Layout) -> State {
        let slices = index(layout.slices());
        let divided = layout.slices_per_superblock > 1;
        let remaps = config.gc.block_remapping;
        State {
            units: vec![ReclaimUnit::FREE; slices],
            unit_of_slice: if divided {
                (0..layout.slices()).collect()
            } else {
                Vec::new()
            },
            superblocks: vec![
                Superblock {
                    class: 0,
                    parts_used: 0
                };
                index(layout.superblocks())
            ],
            groups: (0..layout.groups)
                .map(|group| Group::new(config, layout, group))
                .collect(),
            default_group: RgId(0),
            stats: Stats::new(layout.page_bytes, layout.handle_count()),
            host_pages_written: 0,
            units_closed: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed),
            block_at: if remaps {
                BlockTable::from((0..narrow(layout.blocks())).collect::<Vec<u32>>())
            } else {
                BlockTable::default()
            },
            erase_counts: BlockTable::from(vec![0; index(narrow(layout.blocks()))]),
            recency: (layout.separation_pages > 0).then(|| Recency::new(layout.separation_pages)),
        }
    }
}

/// Memory for the tables of a state: all that it takes but for lists of reclaim units and the window of separation. It is touched, so a copy that
/// goes there waits for nothing.
pub(crate) struct StateRoom {
    units: Vec<ReclaimUnit>,
    unit_of_slice: Vec<u32>,
    superblocks: Vec<Superblock>,
    block_at: Vec<u32>,
    erase_counts: Vec<u32>,
    noted: [NotedRoom; 2],
}

impl StateRoom {
    pub(crate) fn of(layout: &Layout) -> StateRoom {
        // Anything but zero, of which the system has pages to give that are not there.
        const TOUCHED: u32 = u32::MAX;
        let slices = index(layout.slices());
        let divided = layout.slices_per_superblock > 1;
        let blocks = index(narrow(layout.blocks()));
        let superblock = Superblock {
            class: u8::MAX,
            parts_used: TOUCHED,
        };
        StateRoom {
            units: vec![ReclaimUnit::FREE; slices],
            unit_of_slice: vec![TOUCHED; if divided { slices } else { 0 }],
            superblocks: vec![superblock; index(layout.superblocks())],
            block_at: vec![TOUCHED; blocks],
            erase_counts: vec![TOUCHED; blocks],
            noted: [NotedRoom::new(), NotedRoom::new()],
        }
    }
}

/// A copy of a state that is whole when its block tables are.
pub(crate) struct StateCopy {
    pub(crate) state: State,
    /// Blocks before this one are copied.
    blocks_copied: u32,
}

impl StateCopy {
    pub(crate) fn blocks_left(&self) -> u32 {
        count(self.state.erase_counts.len()) - self.blocks_copied
    }

    /// Copies the next blocks; false if more has changed meanwhile than is kept.
    pub(crate) fn copy_blocks(&mut self, of: &mut State) -> bool {
        let blocks = count(of.erase_counts.len());
        let part = self.blocks_copied..blocks.min(self.blocks_copied + blocks::PART_BLOCKS);
        assert!(!part.is_empty(), "blocks are copied while there are some left");
        self.blocks_copied = part.end;
        self.state.erase_counts.copy_part(&of.erase_counts, part.clone());
        if !of.block_at.is_empty() {
            self.state.block_at.copy_part(&of.block_at, part);
        }
        if self.blocks_copied < blocks {
            return true;
        }
        let noted = of.end_copy().map(|noted| noted.expect("what is copied is noted"));
        self.state.erase_counts.take_back(&noted[0]) && self.state.block_at.take_back(&noted[1])
    }
}

impl State {
    /// A copy in memory that is there already, but for the block tables: [`StateCopy::copy_blocks`] follows.
    pub(crate) fn begin_copy(&mut self, mut room: StateRoom) -> StateCopy {
        room.units.clone_from(&self.units);
        room.unit_of_slice.clone_from(&self.unit_of_slice);
        room.superblocks.clone_from(&self.superblocks);
        room.block_at.resize(self.block_at.len(), 0);
        room.erase_counts.resize(self.erase_counts.len(), 0);
        let [erases_noted, places_noted] = room.noted;
        self.erase_counts.begin_copy(erases_noted);
        self.block_at.begin_copy(places_noted);
        let state = State {
            units: room.units,
            unit_of_slice: room.unit_of_slice,
            superblocks: room.superblocks,
            groups: self.groups.clone(),
            default_group: self.default_group,
            stats: self.stats.clone(),
            host_pages_written: self.host_pages_written,
            units_closed: self.units_closed,
            random: self.random.clone(),
            block_at: BlockTable::from(room.block_at),
            erase_counts: BlockTable::from(room.erase_counts),
            recency: self.recency.clone(),
        };
        StateCopy {
            state,
            blocks_copied: 0,
        }
    }

    /// Whether the counters, raised to these, are still such that a drive can go on with them.
    fn can_raise(&self, at_least: &Totals, block_pages: u32) -> bool {
        const BYTES_MAX: u64 = 1 << 58;
        let Totals {
            host_bytes_written,
            media_bytes_written,
            media_bytes_erased,
        } = *at_least;
        let block_bytes = self.stats.page_bytes * u64::from(block_pages);
        let erases = media_bytes_erased / block_bytes / wide(self.erase_counts.len());
        let most = self.erase_counts.iter().max().copied().unwrap_or(0);
        host_bytes_written.max(media_bytes_written).max(media_bytes_erased) <= BYTES_MAX
            && erases + u64::from(most) < u64::from(ERASES_MAX)
    }

    /// Ends what [`State::begin_copy`] began.
    pub(crate) fn end_copy(&mut self) -> [Option<Noted>; 2] {
        [self.erase_counts.end_copy(), self.block_at.end_copy()]
    }

    /// Whether the tables have the sizes that a layout demands.
    pub(crate) fn fits(&self, layout: &Layout) -> bool {
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
            && match &self.recency {
                Some(recency) => recency.fits(layout.separation_pages, layout.logical_pages),
                None => layout.separation_pages == 0,
            }
    }
}

impl Group {
    /// As [`State::fits`].
    fn fits(&self, layout: &Layout) -> bool {
        let slots = |handle: Option<&HandleConfig>| handle.map_or(0, |handle| usize::from(layout.open_slots(handle)));
        let handles = layout.handles.iter().map(Some).chain([None]);
        self.free_parts.len() == layout.classes.len()
            && self.owners.len() == layout.handles.len() + 1
            && self
                .owners
                .iter()
                .zip(handles)
                .all(|(owner, handle)| owner.open.len() == slots(handle))
            && self.closed.len() == self.owners.len()
            && self.closed.iter().all(|sets| sets.len() == layout.classes.len())
    }

    fn new(config: &DeviceConfig, layout: &Layout, group: u16) -> Group {
        let first = u32::from(group) * layout.superblocks_per_group;
        let owner = |handle: u16| OwnerState {
            open: vec![None; usize::from(layout.open_slots(&layout.handles[usize::from(handle)]))],
            turn: 0,
            collecting: None,
            isolated: layout.handles[usize::from(handle)].isolation == Isolation::PersistentlyIsolated,
        };
        let shared = OwnerState {
            open: Vec::new(),
            turn: 0,
            collecting: None,
            isolated: false,
        };
        let set = |class: &crate::layout::SizeClass| ClosedSet::new(class.pages, config.gc.lazy_valid_share);
        let sets: Vec<ClosedSet> = layout.classes.iter().map(set).collect();
        Group {
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
