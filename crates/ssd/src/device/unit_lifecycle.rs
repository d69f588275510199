//! Life cycle of reclaim units: allocation, opening, closing and release.

use crate::cast::index;
use crate::config::{Allocation, GcDestination, HandleConfig, Isolation, UnitOpenPolicy};
use crate::device::engine::DeviceCore;
use crate::device::open::OpenUnit;
use crate::device::state::Superblock;
use crate::event::{CloseReason, DeviceEvent, EventEmitter};
use crate::layout::SizeClass;
use crate::types::{Nanos, Placement, RgId, RuId, RuhId, UnitOwner};
use crate::unit::{NONE, ReclaimUnit, UnitState};

impl DeviceCore {
    /// Opens the reclaim units that an eager device has open from the start.
    pub(super) fn open_all_units(&mut self, events: &mut EventEmitter<'_>) {
        for group in (0..self.layout.groups).map(RgId) {
            for handle in 0..self.layout.handle_count() {
                let placement = Placement { group, handle: RuhId(handle) };
                let slots = self.layout.open_slots(&self.layout.handles[usize::from(handle)]);
                for slot in 0..usize::from(slots) {
                    self.open_for_host(events, 0, placement, slot);
                }
                if self.config.gc.copies == GcDestination::WithHost {
                    continue;
                }
                if self.layout.handles[usize::from(handle)].isolation == Isolation::PersistentlyIsolated {
                    self.open_for_collection(
                        events,
                        group,
                        UnitOwner::from_handle(placement.handle),
                        self.class_of_handle(placement.handle),
                    );
                }
            }
            let shares = |handle: &HandleConfig| handle.isolation != Isolation::PersistentlyIsolated;
            if self.config.gc.copies == GcDestination::Apart && self.layout.handles.iter().any(shares) {
                self.open_for_collection(events, group, UnitOwner::SHARED_POOL, 0);
            }
        }
    }

    /// Size class of a handle's reclaim units.
    pub(super) fn class_of_handle(&self, handle: RuhId) -> u8 {
        let size = self.layout.handles[handle.index()].reclaim_unit;
        self.layout.class_of_size(&self.config, size)
    }

    /// Opens a reclaim unit for a handle. Runs collection first if the group is short of free
    /// units.
    #[cold]
    pub(super) fn open_for_host(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        placement: Placement,
        slot: usize,
    ) {
        let Placement { group, handle } = placement;
        let class = self.class_of_handle(handle);
        self.collect_in_foreground(events, now, placement, slot, class);
        self.collect_until_open(events, now, placement, slot, class);
        if self.is_open(placement, slot) {
            // Copies that share the unit have already opened it.
            return;
        }
        let open = self.take(events, group, class, UnitOwner::from_handle(handle), false);
        self.open_in_time(now, open.unit);
        let members = &mut self.state.groups[group.index()];
        assert!(
            members.free_superblocks.len() >= index(self.layout.superblocks_kept()),
            "a host took a superblock that is reserved for collection"
        );
        let before = members.owners[handle.index()].open[slot].replace(open);
        assert!(before.is_none(), "handle {} has a reclaim unit open there already", handle.0);
    }

    /// Returns true if a handle has a reclaim unit open in a slot. Copies that share the slot may
    /// have opened the unit that the handle waits for.
    pub(super) fn is_open(&self, Placement { group, handle }: Placement, slot: usize) -> bool {
        self.state.groups[group.index()].owners[handle.index()].open[slot].is_some()
    }

    /// Slot of the open reclaim unit that takes an owner's copies. `owner` is the row index.
    pub(super) fn copies_slot(&mut self, group: RgId, owner: usize) -> &mut Option<OpenUnit> {
        let owner = &mut self.state.groups[group.index()].owners[owner];
        match self.config.gc.copies {
            GcDestination::Apart => &mut owner.collecting,
            GcDestination::WithHost => &mut owner.open[0],
        }
    }

    /// Returns true if a reclaim unit is open and takes copies.
    pub(super) fn takes_copies(&self, unit: RuId) -> bool {
        let entry = self.unit(unit);
        match self.config.gc.copies {
            GcDestination::Apart => entry.state == UnitState::OpenForCollection,
            GcDestination::WithHost => {
                let position = self.owner_index(entry.owner);
                let Some(handle) = self.layout.handles.get(position) else {
                    return false;
                };
                let keeps_copies = handle.isolation == Isolation::PersistentlyIsolated;
                let owner = &self.state.groups[usize::from(entry.group)].owners[position];
                (keeps_copies || entry.owner == self.layout.pooled_copies)
                    && owner.open[0].as_ref().is_some_and(|open| open.unit == unit)
            }
        }
    }

    /// Opens a reclaim unit for an owner's copies from a victim of `class`. Uses the same class, so
    /// that emptying a divided superblock divides at most one other.
    pub(super) fn open_for_collection(
        &mut self,
        events: &mut EventEmitter<'_>,
        group: RgId,
        owner: UnitOwner,
        class: u8,
    ) {
        let for_collection = self.config.gc.copies == GcDestination::Apart;
        let open = self.take(events, group, class, owner, for_collection);
        let before = self.copies_slot(group, self.owner_index(owner)).replace(open);
        assert!(before.is_none(), "{owner} already has a reclaim unit for copies");
    }

    /// Allocates a reclaim unit for an owner.
    fn take(
        &mut self,
        events: &mut EventEmitter<'_>,
        group: RgId,
        class: u8,
        owner: UnitOwner,
        for_collection: bool,
    ) -> OpenUnit {
        let unit = self.take_part(group, class);
        let pages = self.layout.classes[usize::from(class)].pages;
        let state = if for_collection { UnitState::OpenForCollection } else { UnitState::OpenForHost };
        self.state.units[unit.index()] = ReclaimUnit {
            group: group.0,
            owner,
            state,
            class,
            pages,
            last_invalidation: self.state.host_pages_written,
            last_write: self.state.host_pages_written,
            ..ReclaimUnit::FREE
        };
        self.state.stats.owner_mut(owner).units_opened += 1;
        events.emit(|| DeviceEvent::Open { group, unit, owner, unit_pages: pages, for_collection });
        OpenUnit { unit, position: 0, run_end: pages, written: 0, remapped: Vec::new() }
    }

    /// Takes a part of a divided superblock, or divides a free superblock.
    fn take_part(&mut self, group: RgId, class: u8) -> RuId {
        let SizeClass { divisor, pages, slices, .. } = self.layout.classes[usize::from(class)];
        let next = self.next_superblock(group);
        let members = &mut self.state.groups[group.index()];
        assert!(members.free_slices >= u64::from(slices), "group {} has no space for a reclaim unit", group.0);
        let unit = members.free_parts[usize::from(class)].pop_front().unwrap_or_else(|| {
            let superblock = members.free_superblocks.remove(next);
            let superblock = superblock.expect("the layout keeps superblocks free for host and collection");
            let first = superblock * self.layout.slices_per_superblock;
            let parts_used = self.state.superblocks[index(superblock)].parts_used;
            assert_eq!(parts_used, 0, "superblock {superblock} is divided while in use");
            self.state.superblocks[index(superblock)] = Superblock { class, parts_used: 0 };
            members.free_parts[usize::from(class)].extend((1..divisor).map(|part| first + part * slices));
            first
        });
        members.free_slices -= u64::from(slices);
        let superblock = &mut self.state.superblocks[index(unit / self.layout.slices_per_superblock)];
        superblock.parts_used += 1;
        assert_eq!(superblock.class, class, "unit {unit} is part of a superblock of another class");
        assert!(superblock.parts_used <= divisor, "more parts of a superblock are used than it has");
        let state = self.state.units[index(unit)].state;
        assert_eq!(state, UnitState::Free, "reclaim unit {unit} is taken while in use");
        // Checks one word of the bitmap for each 64 pages that will be written.
        let is_blank = self.maps.is_blank(self.first_page(RuId(unit)), pages);
        assert!(is_blank, "reclaim unit {unit} is taken with valid pages");
        let of_slices = self.state.unit_of_slice.iter_mut();
        for slice in of_slices.skip(index(unit)).take(index(slices)) {
            *slice = unit;
        }
        RuId(unit)
    }

    /// Position of the next superblock in the list of free superblocks.
    fn next_superblock(&self, group: RgId) -> usize {
        match self.config.gc.allocation {
            Allocation::Oldest => 0,
            Allocation::LeastWorn => {
                let free = &self.state.groups[group.index()].free_superblocks;
                let least = free.iter().enumerate().min_by_key(|(_, superblock)| self.erases(**superblock));
                least.map_or(0, |(position, _)| position)
            }
        }
    }

    /// Total erases of all blocks of a superblock.
    pub(super) fn erases(&self, superblock: u32) -> u64 {
        let first = superblock * self.layout.blocks_per_superblock;
        let places = first..first + self.layout.blocks_per_superblock;
        let block = |place: u32| self.state.block_at.get(index(place)).copied().unwrap_or(place);
        places.map(|place| u64::from(self.state.erase_counts[index(block(place))])).sum()
    }

    /// Returns an erased reclaim unit to the free space.
    pub(super) fn release(&mut self, unit: RuId) {
        let entry = &self.state.units[unit.index()];
        assert_eq!(entry.state, UnitState::Closed, "reclaim unit {} is released while open, or twice", unit.0);
        assert_eq!(entry.member, NONE, "reclaim unit {} is released while it is a candidate", unit.0);
        let (group, class) = (usize::from(entry.group), usize::from(entry.class));
        let SizeClass { slices, .. } = self.layout.classes[class];
        self.state.units[unit.index()] = ReclaimUnit::FREE;
        let superblock = unit.0 / self.layout.slices_per_superblock;
        let members = &mut self.state.groups[group];
        members.free_slices += u64::from(slices);
        assert!(
            members.free_slices <= self.layout.slices_per_group(),
            "group {group} has more free slices than slices"
        );
        let parts_used = &mut self.state.superblocks[index(superblock)].parts_used;
        assert!(*parts_used > 0, "superblock {superblock} releases more parts than are in use");
        *parts_used -= 1;
        if *parts_used == 0 {
            let in_superblock = |part: &u32| part / self.layout.slices_per_superblock == superblock;
            members.free_parts[class].retain(|part| !in_superblock(part));
            members.free_superblocks.push_back(superblock);
            assert!(
                members.free_superblocks.len() <= index(self.layout.superblocks_per_group),
                "superblock {superblock} is free twice"
            );
        } else if members.draining != Some(superblock) {
            members.free_parts[class].push_back(unit.0);
        }
    }

    /// Handles the end of a run of a host's reclaim unit. Continues with the next run or closes the
    /// unit.
    #[cold]
    pub(super) fn end_host_run(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        placement: Placement,
        slot: usize,
    ) {
        let Placement { group, handle } = placement;
        let class = |unit: RuId| self.layout.classes[usize::from(self.state.units[unit.index()].class)];
        let owner = &mut self.state.groups[group.index()].owners[handle.index()];
        let open = owner.open[slot].as_mut().expect("a run ends in an open reclaim unit");
        if open.find_run(class(open.unit), self.layout.program_unit_pages) {
            return;
        }
        let open = owner.open[slot].take().expect("still open");
        self.close_in_time(now, &open);
        self.close(events, &open, CloseReason::Full);
        if self.config.handles.opening == UnitOpenPolicy::Eager {
            self.open_for_host(events, now, placement, slot);
        }
    }

    /// Closes the open reclaim units of the handle's next command, for hot pages and for others, if
    /// they have written pages. Returns their number of unwritten pages.
    pub(super) fn close_for_host(&mut self, events: &mut EventEmitter<'_>, now: Nanos, placement: Placement) -> u32 {
        let owner = &self.state.groups[placement.group.index()].owners[placement.handle.index()];
        let hot_slot = (self.layout.separation_pages > 0).then(|| owner.open.len() - 1);
        let slots = [Some(owner.turn), hot_slot];
        let close = |slot| self.close_slot_for_host(events, now, placement, slot);
        slots.into_iter().flatten().map(close).sum()
    }

    fn close_slot_for_host(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        placement: Placement,
        slot: usize,
    ) -> u32 {
        let Placement { group, handle } = placement;
        let owner = &mut self.state.groups[group.index()].owners[handle.index()];
        let Some(open) = owner.open[slot].take_if(|open| open.written > 0) else {
            return 0;
        };
        self.close_in_time(now, &open);
        let unwritten_pages = self.close(events, &open, CloseReason::HostUpdate);
        if self.config.handles.opening == UnitOpenPolicy::Eager {
            self.open_for_host(events, now, placement, slot);
        }
        unwritten_pages
    }

    /// Closes an open reclaim unit and makes it a candidate for collection. Returns its number of
    /// unwritten pages.
    pub(super) fn close(&mut self, events: &mut EventEmitter<'_>, open: &OpenUnit, reason: CloseReason) -> u32 {
        let entry = &mut self.state.units[open.unit.index()];
        assert!(
            matches!(entry.state, UnitState::OpenForHost | UnitState::OpenForCollection),
            "reclaim unit {} is closed although it is not open",
            open.unit.0
        );
        assert!(
            entry.valid_pages <= open.written,
            "reclaim unit {} holds more valid pages than were written to it",
            open.unit.0
        );
        assert_eq!(entry.watch, 0, "reclaim unit {} was watched before it was closed", open.unit.0);
        entry.state = UnitState::Closed;
        entry.last_invalidation = self.state.host_pages_written;
        entry.closed_sequence = self.state.units_closed;
        self.state.units_closed += 1;
        let (group, owner, class) = (RgId(entry.group), entry.owner, usize::from(entry.class));
        assert!(open.written <= entry.pages, "more was written to reclaim unit {} than it holds", open.unit.0);
        let (unit_pages, unwritten_pages) = (entry.pages, entry.pages - open.written);
        let index = self.owner_index(owner);
        let members = &mut self.state.groups[group.index()];
        let lazy = members.closed[index][class].insert(&mut self.state.units, open.unit.0);
        members.lazy_units += u64::from(lazy);
        match reason {
            CloseReason::Full => assert_eq!(unwritten_pages, 0, "a full reclaim unit has unwritten pages"),
            CloseReason::HostUpdate => self.state.stats.units_closed_by_host += 1,
            CloseReason::RoomNeeded | CloseReason::IsolationChanged => self.state.stats.units_closed_early += 1,
        }
        self.maps.pack(self.first_page(open.unit), unit_pages);
        events.emit(|| DeviceEvent::Close { group, unit: open.unit, owner, unwritten_pages, reason });
        unwritten_pages
    }
}
