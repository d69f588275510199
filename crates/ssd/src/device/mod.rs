//! The device: what a host can ask of it, and its state.
//!
//! A write takes the open reclaim unit of its (reclaim group, handle), invalidates where its pages were, appends them
//! and maps them (`write_extent`). Opening a reclaim unit is the moment at which room is needed and collection runs
//! (`place.rs` takes and returns reclaim units, `collect.rs` reclaims them). `check.rs` proves the whole state by full
//! scan, for tests.

mod check;
mod collect;
mod place;
mod timed;

use std::collections::{BTreeSet, VecDeque};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use serde::{Deserialize, Serialize};

use crate::config::{DeviceConfig, Isolation, Opening};
use crate::divisor::Divisor;
use crate::endurance::Endurance;
use crate::error::{ConfigError, HostError};
use crate::event::{Event, EventSink, HostWrite};
use crate::gc::VictimPolicy;
use crate::gc::index::ClosedSet;
use crate::layout::Layout;
use crate::maps::Maps;
use crate::stats::Stats;
use crate::timing::{Done, Timing, TimingConfig};
use crate::types::{Lpn, Nanos, Owner, Placement, Ppn, RgId, RuId};
use crate::unit::{ReclaimUnit, UnitState};
use place::OpenUnit;

/// One host write, in mapping units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// First logical page.
    pub first: Lpn,
    /// Pages; at least 1.
    pub pages: u32,
    /// Bytes that the host sent: less than the pages hold where the first or last one is written in part, which the
    /// device turns into a read-modify-write of the whole page.
    pub host_bytes: u64,
    /// Where the host wants it.
    pub placement: Placement,
}

/// A drive. `S` receives its events; `()` costs nothing.
#[derive(Clone)]
pub struct Device<S = ()> {
    config: DeviceConfig,
    layout: Layout,
    slice_divisor: Divisor,
    maps: Maps,
    state: State,
    /// What everything waits for, if it takes time. Not in snapshots: a drive that is loaded is idle.
    timing: Option<Box<Timing>>,
    /// Chooses victims instead of `config.gc.unit_selection`.
    victim_policy: ExternalPolicy,
    /// Scratch of the copy loop: where pages were, and which they are.
    moving_from: Vec<u32>,
    moving_lpns: Vec<u32>,
    sink: S,
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
    stats: Stats,
    /// Pages written by the host: the time that policies know.
    host_pages_written: u64,
    units_closed: u64,
    random: Xoshiro256PlusPlus,
    /// Physical block at each place of each superblock; empty as long as blocks cannot be remapped.
    block_at: Vec<u32>,
    erase_counts: Vec<u32>,
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
    /// Owner whose turn it is in round robin.
    turn: usize,
    /// Superblock that is being emptied and whose free parts are withheld.
    draining: Option<u32>,
}

/// What an owner has open in one reclaim group.
#[derive(Clone, Serialize, Deserialize)]
struct OwnerState {
    /// For host writes; empty for the shared pool.
    open: Vec<Option<OpenUnit>>,
    /// Which of them takes the next command.
    turn: usize,
    /// For copies.
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
}

impl<S: EventSink> Device<S> {
    /// Makes an empty drive that reports to `sink`.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn with_sink(config: &DeviceConfig, sink: S) -> Result<Device<S>, ConfigError> {
        let layout = Layout::new(config)?;
        let state = State::new(config, &layout);
        let maps = Maps::new(layout.logical_pages, layout.physical_pages);
        let mut device = Device::from_parts(config.clone(), layout, maps, state, sink);
        if config.handles.opening == Opening::Eager {
            device.open_everything();
        }
        Ok(device)
    }

    pub(crate) fn from_parts(config: DeviceConfig, layout: Layout, maps: Maps, state: State, sink: S) -> Device<S> {
        let slice_divisor = Divisor::new(layout.slice_pages);
        let timing = Timing::new(&config, &layout);
        Device {
            timing,
            victim_policy: ExternalPolicy::default(),
            config,
            layout,
            slice_divisor,
            maps,
            state,
            moving_from: Vec::new(),
            moving_lpns: Vec::new(),
            sink,
        }
    }

    pub(crate) fn parts(&self) -> (&DeviceConfig, &State, &Maps) {
        (&self.config, &self.state, &self.maps)
    }

    /// The same drive, reporting to another sink from now on.
    pub fn replace_sink<T: EventSink>(self, sink: T) -> (Device<T>, S) {
        let mut device = Device::from_parts(self.config, self.layout, self.maps, self.state, sink);
        device.timing = self.timing;
        device.victim_policy = self.victim_policy;
        (device, self.sink)
    }

    /// Lets `policy` choose victims from now on, instead of the one that the configuration names; `None` goes back to that. Clones of the
    /// device and its snapshots do not have it. In the GC log it is called `external`.
    ///
    /// # Panics
    /// Later, when the policy chooses a reclaim unit that is not among the candidates.
    pub fn set_victim_policy(&mut self, policy: Option<Box<dyn VictimPolicy + Send + Sync>>) {
        self.victim_policy = ExternalPolicy(policy);
    }

    /// Takes over the counters and the wear of the device that it replaces, as when a drive's placement configuration is
    /// changed: the flash and its history stay, the reclaim units and the data do not. What was in use counts as reclaimed,
    /// and is erased if anything was written to it.
    ///
    /// # Panics
    /// This device has been written to, or the two are not of the same flash.
    pub fn take_over<T: EventSink>(&mut self, before: &Device<T>) {
        let (old, new) = (&before.state, &mut self.state);
        assert_eq!(new.host_pages_written, 0, "only an empty device can take over");
        assert_eq!(
            new.erase_counts.len(),
            old.erase_counts.len(),
            "the same flash has as many blocks"
        );
        new.stats.take_over(&old.stats);
        new.erase_counts.clone_from(&old.erase_counts);
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
            if blank.contains(&(slice as u32)) {
                continue;
            }
            row.pages_erased += u64::from(unit.pages);
            for place in 0..before.layout.classes[usize::from(unit.class)].blocks {
                new.erase_counts[before.block_of(RuId(slice as u32), place) as usize] += 1;
            }
        }
    }

    /// Brings the map entries of logical pages into the processor's caches: called with some dozens of pages that will be read
    /// or written soon, their cache misses overlap. Pages that do not exist are passed over.
    #[inline]
    pub fn touch(&self, pages: impl Iterator<Item = Lpn>) {
        let capacity = self.layout.logical_pages;
        self.maps.touch_places(pages.filter(|lpn| lpn.0 < capacity));
    }

    /// Writes an extent.
    ///
    /// # Errors
    /// The extent or the placement does not exist; nothing was done.
    pub fn write(&mut self, now: Nanos, write: &Write) -> Result<Done, HostError> {
        self.check_write(write)?;
        Ok(self.write_checked(now, write))
    }

    /// Writes extents one after the other; the same as [`Device::write`] on each, but much faster for small ones,
    /// because the memory that all of them touch is fetched together.
    ///
    /// # Errors
    /// An extent or placement does not exist; nothing was done.
    pub fn write_batch(&mut self, now: Nanos, writes: &[Write]) -> Result<Done, HostError> {
        /// Enough to hide a cache miss behind the others, few enough to stay in the first-level cache.
        const TOGETHER: usize = 64;
        for write in writes {
            self.check_write(write)?;
        }
        let mut done = Done::now(now);
        for together in writes.chunks(TOGETHER) {
            self.maps.touch(together.iter().map(|write| write.first));
            if together.iter().any(|write| write.pages > 1) {
                self.maps
                    .touch(together.iter().map(|write| Lpn(write.first.0 + write.pages - 1)));
            }
            for write in together {
                done = done.and(self.write_checked(now, write));
            }
        }
        Ok(done)
    }

    /// Deallocates an extent: its pages read as nothing and cost collection nothing.
    ///
    /// # Errors
    /// The extent does not exist; nothing was done.
    pub fn deallocate(&mut self, now: Nanos, first: Lpn, pages: u32) -> Result<Done, HostError> {
        self.check_extent(first, pages)?;
        let mapped = self.invalidate(first, pages);
        self.maps.unmap(first, pages);
        self.state.stats.pages_deallocated += u64::from(mapped);
        self.emit(|| Event::Deallocate { pages: mapped });
        Ok(self.command(now))
    }

    /// Zeroes an extent: with `deallocate` (the DEAC bit of Write Zeroes) by deallocating it, otherwise by writing.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn write_zeroes(&mut self, now: Nanos, write: &Write, deallocate: bool) -> Result<Done, HostError> {
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
        self.check_placement(placement)?;
        Ok(self.close_for_host(now, placement))
    }

    /// Pages that the host can still write before the handle's current reclaim unit is full (RUAMW, in pages).
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn available_media_writes(&self, placement: Placement) -> Result<u32, HostError> {
        self.check_placement(placement)?;
        let owner = &self.state.groups[usize::from(placement.group.0)].owners[usize::from(placement.handle.0)];
        let class = self.class_for_next(placement);
        let pages = self.layout.classes[usize::from(class)].pages;
        Ok(owner.open[owner.turn].as_ref().map_or(pages, |open| {
            self.state.units[open.unit.0 as usize].pages - open.written
        }))
    }

    /// Whether the host has written to the handle's current reclaim unit; `false` also if it has none yet.
    ///
    /// # Errors
    /// The placement does not exist.
    pub fn is_unit_begun(&self, placement: Placement) -> Result<bool, HostError> {
        self.check_placement(placement)?;
        let owner = &self.state.groups[usize::from(placement.group.0)].owners[usize::from(placement.handle.0)];
        Ok(owner.open[owner.turn].as_ref().is_some_and(|open| open.written > 0))
    }

    /// Reads an extent: nothing changes, but it takes time. Pages that are not mapped are not looked for in the flash.
    ///
    /// # Errors
    /// The extent does not exist.
    pub fn read(&mut self, now: Nanos, first: Lpn, pages: u32) -> Result<Done, HostError> {
        self.check_extent(first, pages)?;
        Ok(self.read_checked(now, first, pages))
    }

    /// A command that does nothing to the flash: how long the controller needs for it.
    pub fn command(&mut self, now: Nanos) -> Done {
        match &mut self.timing {
            Some(timing) => timing.command(now),
            None => Done::now(now),
        }
    }

    /// Changes what takes how long; the drive is idle then.
    ///
    /// # Errors
    /// The drive cannot be like that.
    pub fn set_timing(&mut self, timing: Option<TimingConfig>) -> Result<(), ConfigError> {
        let config = DeviceConfig {
            timing,
            ..self.config.clone()
        };
        Layout::new(&config)?;
        self.timing = Timing::new(&config, &self.layout);
        self.config = config;
        Ok(())
    }

    /// Where a logical page is, or `None` if it is not mapped.
    pub fn lookup(&self, lpn: Lpn) -> Option<Ppn> {
        let ppn = self.maps.lookup(lpn);
        (ppn != Ppn::UNMAPPED).then_some(ppn)
    }

    /// The reclaim unit that a physical page belongs to.
    pub fn unit_of(&self, ppn: Ppn) -> RuId {
        let slice = self.slice_divisor.divide(ppn.0);
        match self.state.unit_of_slice.get(slice as usize) {
            Some(&unit) => RuId(unit),
            None => RuId(slice),
        }
    }

    /// State of a reclaim unit.
    pub fn unit(&self, unit: RuId) -> &ReclaimUnit {
        &self.state.units[unit.0 as usize]
    }

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
        self.state.host_pages_written
    }

    /// Erase count of each block, in the order of their dies.
    pub fn block_erase_counts(&self) -> &[u32] {
        &self.state.erase_counts
    }

    /// How the drive has worn; `None` if its configuration does not say what the flash survives.
    pub fn endurance(&self) -> Option<Endurance> {
        let config = self.config.endurance.as_ref()?;
        let (state, seed) = (&self.state, self.config.seed);
        Some(Endurance::of(
            config,
            seed,
            &self.layout,
            &state.stats,
            &state.erase_counts,
        ))
    }

    /// Logical pages mapped.
    pub fn live_pages(&self) -> u64 {
        self.state.groups.iter().map(|group| group.live_pages).sum()
    }

    /// Share of a handle's closed pages in a group that are invalid and lie in reclaim units which still hold valid
    /// ones, 0 to 1: what adaptive reclaim unit sizing and noisy-first selection go by.
    pub fn noise(&self, placement: Placement) -> f64 {
        let group = &self.state.groups[usize::from(placement.group.0)];
        crate::gc::handle_selection::noise(&group.closed[usize::from(placement.handle.0)], &self.state.units)
    }

    /// What each owner holds, over all groups: the handles in order, then the shared pool.
    pub fn occupancy(&self) -> Vec<Occupancy> {
        let handles = self.layout.handles.len();
        let owner = |index: usize| {
            if index == handles {
                Owner::SHARED
            } else {
                Owner(index as u16)
            }
        };
        let empty = |index| Occupancy {
            owner: owner(index),
            units: 0,
            pages: 0,
            valid_pages: 0,
        };
        let mut rows: Vec<_> = (0..=handles).map(empty).collect();
        for unit in self.state.units.iter().filter(|unit| unit.state != UnitState::Free) {
            let row = &mut rows[self.owner_index(unit.owner)];
            row.units += 1;
            row.pages += u64::from(unit.pages);
            row.valid_pages += u64::from(unit.valid_pages);
        }
        rows
    }

    /// Proves every invariant of the state by full scan. For tests; takes as long as reading all maps.
    ///
    /// # Errors
    /// Says which invariant does not hold, and where.
    pub fn check(&self) -> Result<(), String> {
        check::check(self)
    }

    /// Refuses a write whose extent or placement does not exist.
    ///
    /// # Errors
    /// As [`Device::write`].
    pub fn check_write(&self, write: &Write) -> Result<(), HostError> {
        self.check_extent(write.first, write.pages)?;
        self.check_placement(write.placement)
    }

    /// Refuses an extent that does not exist.
    ///
    /// # Errors
    /// As [`Device::read`].
    #[inline]
    pub fn check_extent(&self, first: Lpn, pages: u32) -> Result<(), HostError> {
        let capacity = self.layout.logical_pages;
        if pages == 0 || first.0 >= capacity || pages > capacity - first.0 {
            return Err(HostError::OutOfRange {
                first: first.0,
                pages,
                capacity,
            });
        }
        Ok(())
    }

    #[inline]
    fn check_placement(&self, Placement { group, handle }: Placement) -> Result<(), HostError> {
        let (groups, handles) = (self.layout.groups, self.layout.handles.len() as u16);
        if group.0 >= groups || handle.0 >= handles {
            return Err(HostError::InvalidPlacement {
                group: group.0,
                handle: handle.0,
                groups,
                handles,
            });
        }
        Ok(())
    }

    fn write_checked(&mut self, now: Nanos, write: &Write) -> Done {
        let row = &mut self.state.stats.handles[usize::from(write.placement.handle.0)];
        row.host_bytes_written += write.host_bytes;
        row.host_pages_written += u64::from(write.pages);
        self.emit(|| {
            Event::HostWrite(HostWrite {
                placement: write.placement,
                host_bytes: write.host_bytes,
                pages: write.pages,
            })
        });
        let (group, done) = match self.begin_write(now, write) {
            // Without timing nothing of it is compiled into the loop.
            None => (self.write_extent(now, write, |_, _, _, _| {}), Done::now(now)),
            Some(mut writing) => {
                let group = self.write_extent(now, write, |device, unit, position, pages| {
                    device.append_in_time(&mut writing, unit, position, pages);
                });
                (group, self.end_write(writing))
            }
        };
        let owner = &mut self.state.groups[usize::from(group.0)].owners[usize::from(write.placement.handle.0)];
        if owner.open.len() > 1 {
            owner.turn = (owner.turn + 1) % owner.open.len();
        }
        self.collect_in_background(now, group);
        done
    }

    /// Places and maps an extent, and tells `appended` each reclaim unit, position and number of pages; returns the group that
    /// took its last page.
    #[inline]
    fn write_extent(&mut self, now: Nanos, write: &Write, mut appended: impl FnMut(&mut Self, RuId, u32, u32)) -> RgId {
        let handle = write.placement.handle;
        let mut group = write.placement.group;
        let (mut lpn, mut left) = (write.first, write.pages);
        while left > 0 {
            let mut pages = left;
            if self.layout.groups > 1 {
                (group, pages) = self.group_with_room(write.placement.group, left);
            }
            let owner = &mut self.state.groups[usize::from(group.0)].owners[usize::from(handle.0)];
            let slot = owner.turn;
            let Some(open) = owner.open[slot].as_mut() else {
                self.open_for_host(now, Placement { group, handle }, slot);
                continue;
            };
            let pages = pages.min(open.run_end - open.position);
            let (unit, position) = (open.unit, open.position);
            let run_ends = open.advance(pages);
            self.invalidate(lpn, pages);
            self.maps
                .map(lpn, Ppn(unit.0 * self.layout.slice_pages + position), pages);
            self.state.host_pages_written += u64::from(pages);
            let entry = &mut self.state.units[unit.0 as usize];
            entry.valid_pages += pages;
            entry.last_write = self.state.host_pages_written;
            self.state.groups[usize::from(group.0)].live_pages += u64::from(pages);
            if group != write.placement.group {
                self.state.stats.pages_redirected += u64::from(pages);
                self.emit(|| Event::Redirect {
                    from: write.placement.group,
                    to: group,
                    pages,
                });
            }
            appended(self, unit, position, pages);
            if run_ends {
                self.end_host_run(now, Placement { group, handle }, slot);
            }
            lpn.0 += pages;
            left -= pages;
        }
        group
    }

    /// The group asked for if it can hold more, otherwise the one with the most room; and how many pages it can take.
    fn group_with_room(&self, asked: RgId, pages: u32) -> (RgId, u32) {
        let room = |group: usize| self.layout.group_live_pages_max - self.state.groups[group].live_pages;
        let mut group = usize::from(asked.0);
        if room(group) == 0 {
            let by_room = |a: &usize, b: &usize| room(*a).cmp(&room(*b)).then(b.cmp(a));
            group = (0..self.state.groups.len())
                .max_by(by_room)
                .expect("a device has a group");
            assert!(
                room(group) > 0,
                "all reclaim groups are full: the layout promised room for every logical page"
            );
        }
        (RgId(group as u16), u64::from(pages).min(room(group)) as u32)
    }

    /// Marks the physical pages of an extent invalid; returns how many there were.
    #[inline]
    fn invalidate(&mut self, first: Lpn, pages: u32) -> u32 {
        let (mut lpn, mut left, mut mapped) = (first, pages, 0);
        while left > 0 {
            let (ppn, run) = self.maps.mapped_run(lpn, left);
            if ppn != Ppn::UNMAPPED {
                self.invalidate_physical(ppn, run);
                mapped += run;
            }
            lpn.0 += run;
            left -= run;
        }
        mapped
    }

    #[inline]
    fn invalidate_physical(&mut self, mut ppn: Ppn, mut left: u32) {
        while left > 0 {
            let unit = self.unit_of(ppn);
            let entry = &mut self.state.units[unit.0 as usize];
            let end = u64::from(unit.0) * u64::from(self.layout.slice_pages) + u64::from(entry.pages);
            let pages = left.min((end - u64::from(ppn.0)) as u32);
            let before = entry.valid_pages;
            entry.valid_pages -= pages;
            entry.last_invalidation = self.state.host_pages_written;
            let group = usize::from(entry.group);
            if entry.valid_pages < entry.watch {
                let (owner, class) = (entry.owner, usize::from(entry.class));
                let owner = self.owner_index(owner);
                let members = &mut self.state.groups[group];
                let becomes_lazy = members.closed[owner][class].update(&mut self.state.units, unit.0, before);
                members.lazy_units += u64::from(becomes_lazy);
            }
            self.state.groups[group].live_pages -= u64::from(pages);
            self.maps.clear_valid(ppn, pages);
            ppn.0 = ppn.0.wrapping_add(pages);
            left -= pages;
        }
    }

    #[inline]
    fn emit(&mut self, event: impl FnOnce() -> Event) {
        if S::ENABLED {
            self.sink.event(&event());
        }
    }

    /// Position of an owner in the rows of a group.
    fn owner_index(&self, owner: Owner) -> usize {
        owner
            .handle()
            .map_or(self.layout.handles.len(), |handle| usize::from(handle.0))
    }
}

impl State {
    fn new(config: &DeviceConfig, layout: &Layout) -> State {
        let slices = layout.slices() as usize;
        let divided = layout.slices_per_superblock > 1;
        let remaps = config.gc.block_remapping;
        State {
            units: vec![ReclaimUnit::FREE; slices],
            unit_of_slice: if divided {
                (0..slices as u32).collect()
            } else {
                Vec::new()
            },
            superblocks: vec![
                Superblock {
                    class: 0,
                    parts_used: 0
                };
                layout.superblocks() as usize
            ],
            groups: (0..layout.groups)
                .map(|group| Group::new(config, layout, group))
                .collect(),
            stats: Stats::new(layout.page_bytes, layout.handles.len() as u16),
            host_pages_written: 0,
            units_closed: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed),
            block_at: if remaps {
                (0..layout.blocks() as u32).collect()
            } else {
                Vec::new()
            },
            erase_counts: vec![0; layout.blocks() as usize],
        }
    }
}

impl State {
    /// Whether the tables have the sizes that a layout demands.
    pub(crate) fn fits(&self, layout: &Layout) -> bool {
        let slices = layout.slices() as usize;
        let owners = layout.handles.len() + 1;
        self.units.len() == slices
            && (self.unit_of_slice.is_empty() || self.unit_of_slice.len() == slices)
            && self.superblocks.len() == layout.superblocks() as usize
            && self.groups.len() == usize::from(layout.groups)
            && self
                .groups
                .iter()
                .all(|group| group.owners.len() == owners && group.closed.len() == owners)
            && self.stats.handles.len() == layout.handles.len()
            && (self.block_at.is_empty() || self.block_at.len() as u64 == layout.blocks())
            && self.erase_counts.len() as u64 == layout.blocks()
    }
}

impl Group {
    fn new(config: &DeviceConfig, layout: &Layout, group: u16) -> Group {
        let first = u32::from(group) * layout.superblocks_per_group;
        let owner = |handle: u16| OwnerState {
            open: vec![None; usize::from(layout.handles[usize::from(handle)].open_reclaim_units)],
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
            owners: (0..layout.handles.len() as u16).map(owner).chain([shared]).collect(),
            closed: vec![sets; layout.handles.len() + 1],
            turn: 0,
            draining: None,
        }
    }
}
