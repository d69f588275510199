//! Reference device: state, host commands, opening and closing of reclaim units.
//!
//! The state is the map (logical to physical page), the content of each physical page since its
//! last erase, the reclaim units in use, and the queues whose order is part of the behaviour. A
//! physical page is valid if the map points at it. Valid counts, free space, live pages and write
//! positions come from scans.

use std::collections::BTreeMap;
use std::ops::Range;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use ssd::config::{Allocation, GcDestination, Isolation, ReclaimUnitSize, UnitOpenPolicy};
use ssd::event::{CloseReason, HostWrite};
use ssd::layout::SizeClass;
use ssd::unit::UnitState;
use ssd::{DeviceConfig, DeviceEvent, DeviceLayout, DeviceStats, HostError, Lpn, OwnerStats, WriteRequest};
use ssd::{Placement, RgId, RuId, RuhId, UnitOwner};

/// Pages that a unit must lose to become younger. This is the smallest power of two that divides a
/// unit into at most 256 steps.
fn step_pages(unit_pages: u32) -> u32 {
    let mut step = 1;
    while unit_pages.div_ceil(step) > 256 {
        step *= 2;
    }
    step
}

/// A reclaim unit in use. Free units have no entry.
#[derive(Clone, Debug)]
pub struct Unit {
    pub group: usize,
    pub owner: UnitOwner,
    pub state: UnitState,
    pub class: usize,
    /// Host pages written to the device when the unit was closed or last lost a step of its pages,
    /// and when a page was last added.
    pub last_invalidation: u64,
    pub last_write: u64,
    /// Number of units closed before this one.
    pub closed_sequence: u64,
}

/// One reclaim group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Free superblocks, in allocation order.
    pub free_superblocks: Vec<u32>,
    pub free_parts: Vec<Vec<u32>>,
    /// Open units of each handle for the host, and the slot of the next command.
    pub open: Vec<Vec<Option<u32>>>,
    pub turn: Vec<usize>,
    /// Open unit of each owner for copies (the handles, then the shared pool), and true if its
    /// copies stay with the owner.
    pub copies: Vec<Option<u32>>,
    pub isolated: Vec<bool>,
    /// Closed units by owner and class, in the order for random policies. A removed unit is
    /// replaced by the last.
    pub closed: BTreeMap<(usize, usize), Vec<u32>>,
    /// Superblock that is being emptied.
    pub draining: Option<u32>,
}

/// The reference device.
#[derive(Clone, Debug)]
pub struct Reference {
    pub config: DeviceConfig,
    pub layout: DeviceLayout,
    /// Physical page of each logical page.
    pub map: Vec<Option<u32>>,
    /// Logical page that each physical page was programmed with since its last erase.
    pub programmed: Vec<Option<u32>>,
    /// Handle that each logical page was last written through.
    pub written_through: Vec<Option<u16>>,
    /// Reclaim units in use, by their first slice.
    pub units: Vec<Option<Unit>>,
    pub groups: Vec<Group>,
    pub stats: DeviceStats,
    pub host_pages_written: u64,
    /// Data pages programmed, overhead pages, and the millionths of a page that are due.
    pub data_pages: u64,
    pub overhead_pages: u64,
    pub overhead_due: u64,
    /// Pages in the hot-data window, oldest first.
    pub written_last: Vec<u32>,
    /// Host pages programmed last, which wait in the write buffer, oldest first.
    pub programmed_last: Vec<u32>,
    pub units_closed: u64,
    pub random: Xoshiro256PlusPlus,
    /// Physical block at each place.
    pub block_at: Vec<usize>,
    pub erase_counts: Vec<u32>,
    /// Events since they were last taken.
    pub events: Vec<DeviceEvent>,
    /// Number of times that paths without a counter were taken.
    pub moved_full_parts: u64,
    pub refused_victims: u64,
    pub begun_by_copies: u64,
}

impl Reference {
    /// Creates an empty device of an accepted layout.
    pub fn new(config: &DeviceConfig, layout: DeviceLayout) -> Reference {
        let groups = (0..usize::from(layout.groups)).map(|group| Group::new(&layout, group));
        let mut reference = Reference {
            config: config.clone(),
            map: vec![None; layout.logical_pages as usize],
            programmed: vec![None; layout.physical_pages as usize],
            written_through: vec![None; layout.logical_pages as usize],
            units: vec![None; layout.slices() as usize],
            groups: groups.collect(),
            stats: DeviceStats::new(layout.page_bytes, layout.handles.len() as u16)
                .with_overhead(config.geometry.media_overhead()),
            host_pages_written: 0,
            data_pages: 0,
            overhead_pages: 0,
            overhead_due: 0,
            written_last: Vec::new(),
            programmed_last: Vec::new(),
            units_closed: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(config.seed),
            block_at: (0..layout.blocks() as usize).collect(),
            erase_counts: vec![0; layout.blocks() as usize],
            events: Vec::new(),
            moved_full_parts: 0,
            refused_victims: 0,
            begun_by_copies: 0,
            layout,
        };
        if config.handles.opening == UnitOpenPolicy::Eager {
            reference.open_everything();
        }
        reference
    }

    /// Opens the units of an eager device: one for each slot of each handle, one for the copies of
    /// each persistently isolated handle, and one for the copies of all others together. Units for
    /// copies are omitted if copies go among host data.
    fn open_everything(&mut self) {
        let handles = self.layout.handles.clone();
        for group in 0..self.groups.len() {
            for (index, handle) in handles.iter().enumerate() {
                for slot in 0..usize::from(self.layout.open_slots(handle)) {
                    self.open_for_host(0, group, index, slot);
                }
                let shares_with_copies = self.config.gc.copies == GcDestination::WithHost;
                if handle.isolation == Isolation::PersistentlyIsolated && !shares_with_copies {
                    let class = self.class_of_handle(index);
                    self.open_for_copies(group, index, class);
                }
            }
            let shares = |handle: &ssd::config::HandleConfig| handle.isolation != Isolation::PersistentlyIsolated;
            if handles.iter().any(shares) && self.config.gc.copies == GcDestination::Apart {
                self.open_for_copies(group, handles.len(), 0);
            }
        }
    }

    /// Writes an extent.
    pub fn write(&mut self, now: u64, write: &WriteRequest) -> Result<(), HostError> {
        self.check_extent(write.first, write.pages)?;
        self.check_placement(write.placement)?;
        let handle = usize::from(write.placement.handle.0);
        self.stats.handles[handle].host_bytes_written += write.host_bytes;
        self.stats.handles[handle].host_pages_written += u64::from(write.pages);
        self.events.push(DeviceEvent::HostWrite(HostWrite {
            placement: write.placement,
            host_bytes: write.host_bytes,
            pages: write.pages,
        }));
        let group = self.place(now, write);
        // The handle's next command goes to the next of its open units.
        let taking_turns = usize::from(self.layout.handles[handle].open_reclaim_units);
        self.groups[group].turn[handle] = (self.groups[group].turn[handle] + 1) % taking_turns;
        self.written_last.extend(write.first.0..write.first.0 + write.pages);
        let forgotten = self.written_last.len().saturating_sub(self.separation_pages());
        self.written_last.drain(..forgotten);
        self.collect_in_background(now, group);
        Ok(())
    }

    /// Writes several extents, or none of them if one is invalid.
    pub fn write_batch(&mut self, now: u64, writes: &[WriteRequest]) -> Result<(), HostError> {
        for write in writes {
            self.check_extent(write.first, write.pages)?;
            self.check_placement(write.placement)?;
        }
        writes.iter().try_for_each(|write| self.write(now, write))
    }

    /// Deallocates an extent.
    pub fn deallocate(&mut self, first: Lpn, pages: u32) -> Result<(), HostError> {
        self.check_extent(first, pages)?;
        let pages = self.invalidate(first.0..first.0 + pages);
        self.stats.pages_deallocated += u64::from(pages);
        self.events.push(DeviceEvent::Deallocate { pages });
        Ok(())
    }

    /// Zeroes an extent.
    pub fn write_zeroes(&mut self, now: u64, write: &WriteRequest, deallocate: bool) -> Result<(), HostError> {
        if !deallocate {
            return self.write(now, write);
        }
        self.check_extent(write.first, write.pages)?;
        self.check_placement(write.placement)?;
        self.deallocate(write.first, write.pages)
    }

    /// Closes the handle's reclaim unit for the host. Keeps a unit without data.
    pub fn update_handle(&mut self, now: u64, placement: Placement) -> Result<u32, HostError> {
        self.check_placement(placement)?;
        let (group, handle) = (usize::from(placement.group.0), usize::from(placement.handle.0));
        let mut slots = vec![self.groups[group].turn[handle]];
        if self.separation_pages() > 0 {
            slots.push(usize::from(self.layout.handles[handle].open_reclaim_units));
        }
        let mut unwritten_pages = 0;
        for slot in slots {
            let written = |unit: &u32| self.programmed_pages(*unit) > 0;
            let Some(unit) = self.groups[group].open[handle][slot].filter(written) else {
                continue;
            };
            self.groups[group].open[handle][slot] = None;
            unwritten_pages += self.close(unit, CloseReason::HostUpdate);
            if self.config.handles.opening == UnitOpenPolicy::Eager {
                self.open_for_host(now, group, handle, slot);
            }
        }
        Ok(unwritten_pages)
    }

    /// Pages left in the unit of the handle's next command, or in a new unit if none is open.
    pub fn available_media_writes(&self, group: usize, handle: usize) -> u32 {
        match self.groups[group].open[handle][self.groups[group].turn[handle]] {
            Some(unit) => self.unit_pages(unit) - self.programmed_pages(unit),
            None => self.layout.classes[self.class_of_handle(handle)].pages,
        }
    }

    fn separation_pages(&self) -> usize {
        self.config.handles.hot_window_bytes.div_ceil(self.layout.page_bytes) as usize
    }

    fn absorption_pages(&self) -> usize {
        self.config.handles.write_absorption_bytes.div_ceil(self.layout.page_bytes) as usize
    }

    fn check_extent(&self, first: Lpn, pages: u32) -> Result<(), HostError> {
        let end = u64::from(first.0) + u64::from(pages);
        if pages == 0 || end > u64::from(self.layout.logical_pages) {
            let (first, capacity) = (first.0, self.layout.logical_pages);
            return Err(HostError::OutOfRange { first, pages, capacity });
        }
        Ok(())
    }

    fn check_placement(&self, placement: Placement) -> Result<(), HostError> {
        let (group, handle) = (placement.group.0, placement.handle.0);
        if usize::from(group) >= self.groups.len() || usize::from(handle) >= self.layout.handles.len() {
            return Err(HostError::InvalidPlacement {
                group,
                handle,
                groups: self.layout.groups,
                handles: self.layout.handles.len() as u16,
            });
        }
        Ok(())
    }

    /// Appends an extent to the handle's unit, and opens further units as needed. Returns the group
    /// of its last page.
    fn place(&mut self, now: u64, write: &WriteRequest) -> usize {
        let (asked, handle) = (usize::from(write.placement.group.0), usize::from(write.placement.handle.0));
        let mut pages: Range<u32> = write.first.0..write.first.0 + write.pages;
        let mut group = asked;
        while !pages.is_empty() {
            let absorbable = self.is_absorbable(pages.start, asked, handle);
            let is_alike = |page: &u32| self.is_absorbable(*page, asked, handle) == absorbable;
            let same_fate = pages.clone().take_while(is_alike).count() as u32;
            if absorbable {
                pages.start += same_fate;
                self.host_pages_written += u64::from(same_fate);
                self.stats.handles[handle].host_pages_absorbed += u64::from(same_fate);
                self.events.push(DeviceEvent::Absorb { handle: write.placement.handle, pages: same_fate });
                continue;
            }
            let (chosen, room) = self.group_with_room(asked);
            group = chosen;
            let recent = self.written_last.contains(&pages.start);
            let slot = if recent {
                usize::from(self.layout.handles[handle].open_reclaim_units)
            } else {
                self.groups[group].turn[handle]
            };
            let Some(unit) = self.groups[group].open[handle][slot] else {
                self.open_for_host(now, group, handle, slot);
                continue;
            };
            let unwritten = self.next_run(unit);
            let is_alike = |page: &u32| self.written_last.contains(page) == recent;
            let alike = pages.clone().take_while(is_alike).count() as u64;
            let count = alike.min(room).min(u64::from(unwritten)).min(u64::from(same_fate)) as u32;
            let now_placed = pages.start..pages.start + count;
            pages.start += count;
            self.invalidate(now_placed.clone());
            self.host_pages_written += u64::from(count);
            for page in now_placed {
                self.append(unit, page);
                self.written_through[page as usize] = Some(write.placement.handle.0);
                self.programmed_last.push(page);
            }
            let programmed = self.programmed_last.len().saturating_sub(self.absorption_pages());
            self.programmed_last.drain(..programmed);
            if group != asked {
                self.stats.pages_redirected += u64::from(count);
                self.events.push(DeviceEvent::Redirect {
                    from: write.placement.group,
                    to: RgId(group as u16),
                    pages: count,
                });
            }
            if self.is_full(unit) {
                self.groups[group].open[handle][slot] = None;
                self.close(unit, CloseReason::Full);
                if self.config.handles.opening == UnitOpenPolicy::Eager {
                    self.open_for_host(now, group, handle, slot);
                }
            }
        }
        group
    }

    /// Returns true if a write of a page replaces it in the write buffer: the page waits there and
    /// lies in a unit of the requested handle and group.
    fn is_absorbable(&self, page: u32, group: usize, handle: usize) -> bool {
        let lies_there = |physical: u32| {
            let unit = self.unit(self.unit_at(physical));
            unit.group == group && self.row_index(unit.owner) == handle
        };
        self.programmed_last.contains(&page) && self.map[page as usize].is_some_and(lies_there)
    }

    /// Returns the requested group while it may hold more live pages, and then the group with the
    /// most space (the first of equals). Also returns the number of pages that the group can take.
    fn group_with_room(&self, asked: usize) -> (usize, u64) {
        if self.groups.len() == 1 {
            return (asked, u64::MAX);
        }
        let mut rooms = vec![self.layout.group_live_pages_max; self.groups.len()];
        for physical in self.map.iter().flatten() {
            let room = &mut rooms[(physical / self.group_pages()) as usize];
            *room = room.checked_sub(1).expect("no group holds more than it may");
        }
        if rooms[asked] > 0 {
            return (asked, rooms[asked]);
        }
        let most = rooms.iter().copied().max().expect("a device has a group");
        assert!(most > 0, "a full drive has a group with space");
        let first = rooms.iter().position(|room| *room == most);
        (first.expect("the greatest is one of them"), most)
    }

    /// Unmaps logical pages. Returns the number of pages that were mapped.
    fn invalidate(&mut self, pages: Range<u32>) -> u32 {
        let mut mapped = 0;
        for page in pages {
            if let Some(physical) = self.map[page as usize].take() {
                mapped += 1;
                let unit = self.unit_at(physical);
                // The page is not mapped any more.
                let (valid, pages) = (self.valid_pages(unit), self.unit_pages(unit));
                let step = step_pages(pages);
                if self.unit(unit).state == UnitState::Closed && valid.div_ceil(step) < (valid + 1).div_ceil(step) {
                    self.unit_mut(unit).last_invalidation = self.host_pages_written;
                }
            }
        }
        mapped
    }

    /// Programs the next free page of a unit. Skips pages that came in with a remapped block.
    pub fn append(&mut self, unit: u32, page: u32) {
        let free = self.pages_of(unit).find(|&physical| self.programmed[physical].is_none());
        let physical = free.expect("the unit has an unwritten page");
        self.programmed[physical] = Some(page);
        self.map[page as usize] = Some(physical as u32);
        self.unit_mut(unit).last_write = self.host_pages_written;
        self.count_data_page();
    }

    /// Counts a data page, and an overhead page if one is due.
    pub fn count_data_page(&mut self) {
        self.data_pages += 1;
        self.overhead_due += (self.config.geometry.media_overhead_share * 1e6).round() as u64;
        if self.overhead_due >= 1_000_000 {
            self.overhead_due -= 1_000_000;
            self.overhead_pages += 1;
        }
    }

    /// Number of pages of a unit that can be programmed next without skipping remapped blocks.
    fn next_run(&self, unit: u32) -> u32 {
        let is_blank = |physical: &usize| self.programmed[*physical].is_none();
        let from_first_blank = self.pages_of(unit).skip_while(|physical| !is_blank(physical));
        from_first_blank.take_while(is_blank).count() as u32
    }

    /// Opens a unit for a handle. Collects down to the foreground watermark and ensures a free unit
    /// first. Copies that share the unit may already have opened it.
    fn open_for_host(&mut self, now: u64, group: usize, handle: usize, slot: usize) {
        let class = self.class_of_handle(handle);
        self.collect_in_foreground(now, group, class, (handle, slot));
        self.make_room(now, group, class, (handle, slot));
        if self.groups[group].open[handle][slot].is_some() {
            self.begun_by_copies += 1;
            return;
        }
        let unit = self.take(group, class, UnitOwner(handle as u16), false);
        self.groups[group].open[handle][slot] = Some(unit);
    }

    /// Opens a unit for an owner's copies, of the victim's class.
    pub fn open_for_copies(&mut self, group: usize, row: usize, class: usize) -> u32 {
        let owner = if row == self.layout.handles.len() { UnitOwner::SHARED_POOL } else { UnitOwner(row as u16) };
        let unit = self.take(group, class, owner, self.config.gc.copies == GcDestination::Apart);
        assert!(self.place_for_copies(group, row).replace(unit).is_none());
        unit
    }

    /// Slot of the unit that takes an owner's copies.
    pub fn place_for_copies(&mut self, group: usize, row: usize) -> &mut Option<u32> {
        let group = &mut self.groups[group];
        match self.config.gc.copies {
            GcDestination::Apart => &mut group.copies[row],
            GcDestination::WithHost => &mut group.open[row][0],
        }
    }

    /// Owner of the copies of handles that do not keep them. This is the shared pool or, where
    /// copies go among host data, the first such handle.
    pub fn pool(&self) -> usize {
        let gives_away = |handle: &ssd::config::HandleConfig| handle.isolation == Isolation::InitiallyIsolated;
        match self.config.gc.copies {
            GcDestination::Apart => self.layout.handles.len(),
            GcDestination::WithHost => {
                self.layout.handles.iter().position(gives_away).expect("somebody gives copies away")
            }
        }
    }

    /// Position of the next superblock in the free list. This is the oldest, or the first of the
    /// least erased ones.
    fn next_superblock(&self, group: usize) -> usize {
        if self.config.gc.allocation == Allocation::Oldest {
            return 0;
        }
        let blocks = self.layout.blocks_per_superblock as usize;
        let erases = |superblock: u32| -> u64 {
            let places = superblock as usize * blocks..(superblock as usize + 1) * blocks;
            places.map(|place| u64::from(self.erase_counts[self.block_at[place]])).sum()
        };
        let free = &self.groups[group].free_superblocks;
        let least = free.iter().map(|&superblock| erases(superblock)).min();
        free.iter().position(|&superblock| Some(erases(superblock)) == least).expect("a superblock is free")
    }

    /// Takes the part of a divided superblock that has been free for longest. Divides the
    /// superblock that has been free for longest if no part is free.
    fn take(&mut self, group: usize, class: usize, owner: UnitOwner, for_collection: bool) -> u32 {
        let SizeClass { divisor, slices, pages, .. } = self.layout.classes[class];
        if self.groups[group].free_parts[class].is_empty() {
            assert!(!self.groups[group].free_superblocks.is_empty(), "no superblock is free");
            let next = self.next_superblock(group);
            let first = self.groups[group].free_superblocks.remove(next) * self.layout.slices_per_superblock;
            let parts = (0..divisor).map(|part| first + part * slices);
            self.groups[group].free_parts[class].extend(parts);
        }
        let unit = self.groups[group].free_parts[class].remove(0);
        let state = Unit {
            group,
            owner,
            state: if for_collection { UnitState::OpenForCollection } else { UnitState::OpenForHost },
            class,
            last_invalidation: self.host_pages_written,
            last_write: self.host_pages_written,
            closed_sequence: 0,
        };
        assert!(self.units[unit as usize].replace(state).is_none(), "a free unit was in use");
        self.row_mut(owner).units_opened += 1;
        self.events.push(DeviceEvent::Open {
            group: RgId(group as u16),
            unit: RuId(unit),
            owner,
            unit_pages: pages,
            for_collection,
        });
        unit
    }

    /// Closes an open unit and makes it a candidate for collection. The caller has removed it from
    /// its slot.
    pub fn close(&mut self, unit: u32, reason: CloseReason) -> u32 {
        let sequence = self.units_closed;
        self.units_closed += 1;
        let unwritten_pages = self.unit_pages(unit) - self.programmed_pages(unit);
        let now = self.host_pages_written;
        let entry = self.unit_mut(unit);
        entry.state = UnitState::Closed;
        entry.closed_sequence = sequence;
        entry.last_invalidation = now;
        let (group, owner, class) = (entry.group, entry.owner, entry.class);
        let row = self.row_index(owner);
        self.groups[group].closed.entry((row, class)).or_default().push(unit);
        match reason {
            CloseReason::Full => assert_eq!(unwritten_pages, 0),
            CloseReason::HostUpdate => self.stats.units_closed_by_host += 1,
            CloseReason::RoomNeeded | CloseReason::IsolationChanged => self.stats.units_closed_early += 1,
        }
        self.events.push(DeviceEvent::Close {
            group: RgId(group as u16),
            unit: RuId(unit),
            owner,
            unwritten_pages,
            reason,
        });
        unwritten_pages
    }

    /// Class of a handle's units, from its configured size.
    pub fn class_of_handle(&self, handle: usize) -> usize {
        let geometry = &self.config.geometry;
        let groups = u32::from(geometry.reclaim_groups);
        // A channel that holds several groups counts as one channel of each.
        let channels = (geometry.channels / groups).max(1);
        let divisor = match self.layout.handles[handle].reclaim_unit {
            ReclaimUnitSize::Superblock => 1,
            ReclaimUnitSize::Fraction(parts) => parts,
            ReclaimUnitSize::Channel => channels,
            ReclaimUnitSize::Die => geometry.channels * geometry.dies_per_channel / groups,
        };
        let class = self.layout.classes.iter().position(|class| class.divisor == divisor);
        class.expect("each size has a class")
    }

    /// Pages of a unit.
    pub fn unit_pages(&self, unit: u32) -> u32 {
        self.layout.classes[self.unit(unit).class].pages
    }

    /// Physical pages of a unit in fill order.
    pub fn pages_of(&self, unit: u32) -> Range<usize> {
        let first = unit as usize * self.layout.slice_pages as usize;
        first..first + self.unit_pages(unit) as usize
    }

    /// Pages of a unit that were programmed, valid or not.
    pub fn programmed_pages(&self, unit: u32) -> u32 {
        self.programmed[self.pages_of(unit)].iter().flatten().count() as u32
    }

    pub fn is_full(&self, unit: u32) -> bool {
        self.programmed_pages(unit) == self.unit_pages(unit)
    }

    /// Returns true if the map points at a physical page.
    pub fn is_valid(&self, physical: usize) -> bool {
        self.programmed[physical].is_some_and(|page| self.map[page as usize] == Some(physical as u32))
    }

    pub fn valid_pages(&self, unit: u32) -> u32 {
        self.pages_of(unit).filter(|&physical| self.is_valid(physical)).count() as u32
    }

    /// Unit in use that contains a physical page.
    pub fn unit_at(&self, physical: u32) -> u32 {
        let slice = physical / self.layout.slice_pages;
        let unit = (0..=slice).rev().find(|&slice| self.units[slice as usize].is_some());
        let unit = unit.expect("data lies in a unit");
        assert!(self.pages_of(unit).contains(&(physical as usize)), "data lies in a unit");
        unit
    }

    /// Physical pages of a group.
    fn group_pages(&self) -> u32 {
        self.layout.superblocks_per_group * self.layout.superblock_pages
    }

    /// Logical pages that lie in a group.
    pub fn live_pages(&self, group: usize) -> u64 {
        let group_pages = group as u32 * self.group_pages()..(group as u32 + 1) * self.group_pages();
        let in_group = |physical: &&u32| group_pages.contains(*physical);
        self.map.iter().flatten().filter(in_group).count() as u64
    }

    /// Slices of a group that belong to no unit in use.
    pub fn free_slices(&self, group: usize) -> u64 {
        let units = self.units.iter().flatten().filter(|unit| unit.group == group);
        let used: u32 = units.map(|unit| self.layout.classes[unit.class].slices).sum();
        u64::from(self.layout.superblocks_per_group * self.layout.slices_per_superblock - used)
    }

    /// A unit in use.
    pub fn unit(&self, unit: u32) -> &Unit {
        self.units[unit as usize].as_ref().expect("the unit is in use")
    }

    pub fn unit_mut(&mut self, unit: u32) -> &mut Unit {
        self.units[unit as usize].as_mut().expect("the unit is in use")
    }

    /// Row index of an owner. The handles come first, in order, then the shared pool.
    pub fn row_index(&self, owner: UnitOwner) -> usize {
        match owner.handle() {
            Some(RuhId(handle)) => usize::from(handle),
            None => self.layout.handles.len(),
        }
    }

    pub fn row_mut(&mut self, owner: UnitOwner) -> &mut OwnerStats {
        match owner.handle() {
            Some(RuhId(handle)) => &mut self.stats.handles[usize::from(handle)],
            None => &mut self.stats.shared,
        }
    }
}

impl Group {
    fn new(layout: &DeviceLayout, group: usize) -> Group {
        let first = group as u32 * layout.superblocks_per_group;
        let handles = &layout.handles;
        Group {
            free_superblocks: (first..first + layout.superblocks_per_group).collect(),
            free_parts: vec![Vec::new(); layout.classes.len()],
            open: handles.iter().map(|handle| vec![None; usize::from(layout.open_slots(handle))]).collect(),
            turn: vec![0; handles.len()],
            copies: vec![None; handles.len() + 1],
            isolated: vec![false; handles.len()],
            closed: BTreeMap::new(),
            draining: None,
        }
    }
}
