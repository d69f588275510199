//! Verification of a device's state by full scan, for tests and for every loaded state.
//!
//! A state from a file may hold arbitrary values, so this file checks each value before it uses it
//! as an index. The rest of the device relies only on conditions that [`DeviceState::check`]
//! verifies.

use crate::cast::{index, wide};
use crate::config::{DeviceConfig, GcDestination, Isolation};
use crate::device::engine::DeviceCore;
use crate::device::open::OpenUnit;
use crate::device::state::{DeviceState, ReclaimGroup};
use crate::endurance::ERASES_MAX;
use crate::gc::index::ClosedSet;
use crate::layout::{DeviceLayout, SizeClass};
use crate::maps::PageMaps;
use crate::types::{Lpn, Ppn, RgId, RuhId, UnitOwner};
use crate::unit::{ReclaimUnit, UnitState};

/// Maximum of an event counter, far above any realistic count.
const COUNT_MAX: u64 = 1 << 62;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

impl DeviceCore {
    /// Verifies every invariant of the state by a full scan, for tests. Takes as long as reading
    /// all maps.
    ///
    /// # Errors
    /// Names the violated invariant and its location.
    pub fn check(&self) -> Result<(), String> {
        maps(self)?;
        self.state.check(&self.config, &self.layout, &self.maps)
    }
}

impl DeviceState {
    /// Checks that the state is possible for a device of this configuration with this map. Requires
    /// tables of the right sizes ([`DeviceState::fits`]). Returns the first violation.
    pub(crate) fn check(&self, config: &DeviceConfig, layout: &DeviceLayout, maps: &PageMaps) -> Result<(), String> {
        self.counters(config, layout)?;
        self.units(layout)?;
        self.agrees(layout, maps)?;
        self.superblocks(layout, maps)?;
        for position in 0..self.groups.len() {
            GroupCheck {
                config,
                layout,
                maps,
                state: self,
                group: &self.groups[position],
                name: RgId::from_index(position).0,
            }
            .check()?;
        }
        Ok(())
    }

    /// Checks that the bitmap agrees with the valid counts of reclaim units and groups. Returns the
    /// first violation. Takes as long as reading the bitmap.
    fn agrees(&self, layout: &DeviceLayout, maps: &PageMaps) -> Result<(), String> {
        let mut valid_pages = 0;
        for (position, group) in self.groups.iter().enumerate() {
            let name = RgId::from_index(position).0;
            let slices = layout.superblocks_per_group * layout.slices_per_superblock;
            let first = u32::from(name) * slices;
            let mut live_pages = 0;
            for unit in first..first + slices {
                let entry = &self.units[index(unit)];
                if entry.state == UnitState::Free {
                    continue;
                }
                let first_page = unit * layout.slice_pages;
                ensure!(entry.pages <= layout.physical_pages - first_page, "unit {unit} extends beyond the flash");
                let counted = maps.count_valid(Ppn(first_page), entry.pages);
                ensure!(
                    counted == entry.valid_pages,
                    "unit {unit} claims {} valid pages but has {counted}",
                    entry.valid_pages
                );
                live_pages += u64::from(counted);
            }
            ensure!(
                live_pages == group.live_pages,
                "group {name} claims {} valid pages but has {live_pages}",
                group.live_pages
            );
            valid_pages += live_pages;
        }
        let counted = maps.count_valid(Ppn(0), layout.physical_pages);
        ensure!(
            u64::from(counted) == valid_pages,
            "{counted} pages are valid, but only {valid_pages} of them are in reclaim units"
        );
        Ok(())
    }
}

/// Checks that L2P, P2L and the bitmap agree.
fn maps(device: &DeviceCore) -> Result<(), String> {
    let mut mapped = 0;
    let unpacked = device.maps.is_compact().then(|| {
        let closed = device.state.units.iter().zip(0..).filter(|(unit, _)| unit.state == UnitState::Closed);
        device.maps.unpacked(closed.map(|(unit, at)| (Ppn(at * device.layout.slice_pages), unit.pages)))
    });
    let maps = unpacked.as_ref().unwrap_or(&device.maps);
    for lpn in (0..device.layout.logical_pages).map(Lpn) {
        let ppn = device.maps.lookup(lpn);
        if ppn == Ppn::UNMAPPED {
            continue;
        }
        mapped += 1;
        ensure!(ppn.0 < device.layout.physical_pages, "{lpn:?} maps to {ppn:?}, beyond the flash");
        ensure!(device.maps.is_valid(ppn), "{lpn:?} maps to {ppn:?}, which is invalid");
        ensure!(maps.logical(ppn) == lpn, "{ppn:?} does not point back to {lpn:?}");
    }
    let valid = device.maps.count_valid(Ppn(0), device.layout.physical_pages);
    ensure!(valid == mapped, "{valid} physical pages are valid, but {mapped} logical pages are mapped");
    Ok(())
}

impl DeviceState {
    /// Checks each reclaim unit by itself.
    fn units(&self, layout: &DeviceLayout) -> Result<(), String> {
        let handles = layout.handles.len();
        for (at, unit) in (0u32..).zip(&self.units) {
            if unit.state == UnitState::Free {
                ensure!(*unit == ReclaimUnit::FREE, "unit {at} is free but not reset");
                continue;
            }
            let class = layout.classes.get(usize::from(unit.class));
            let Some(class) = class else {
                return Err(format!("unit {at} has the unknown class {}", unit.class));
            };
            let in_superblock = at % layout.slices_per_superblock;
            ensure!(
                in_superblock.is_multiple_of(class.slices) && unit.pages == class.pages,
                "unit {at} does not match its class"
            );
            let group = u64::from(at) / layout.slices_per_group();
            ensure!(u64::from(unit.group) == group, "unit {at} claims group {}", unit.group);
            let has_owner = match unit.owner.handle() {
                Some(handle) => handle.index() < handles,
                None => layout.pooled_copies == UnitOwner::SHARED_POOL,
            };
            ensure!(has_owner, "unit {at} has the unknown owner {}", unit.owner);
            ensure!(unit.valid_pages <= unit.pages, "unit {at} exceeds its size");
            ensure!(
                unit.last_write <= self.host_pages_written && unit.last_invalidation <= self.host_pages_written,
                "unit {at} has a write time in the future"
            );
            let is_closed = unit.state == UnitState::Closed;
            ensure!(!is_closed || unit.closed_sequence < self.units_closed, "unit {at} has a close time in the future");
            // Only a closed unit uses the list fields and the fields that lists need.
            let alone = ReclaimUnit {
                member: ReclaimUnit::FREE.member,
                watch: 0,
                closed_sequence: 0,
                bucket_previous: ReclaimUnit::FREE.bucket_previous,
                bucket_next: ReclaimUnit::FREE.bucket_next,
                order_previous: ReclaimUnit::FREE.order_previous,
                order_next: ReclaimUnit::FREE.order_next,
                ..unit.clone()
            };
            ensure!(is_closed || *unit == alone, "unit {at} is both open and in a list");
            if !self.unit_of_slice.is_empty() {
                let slices = &self.unit_of_slice[index(at)..index(at + class.slices)];
                ensure!(slices.iter().all(|unit| *unit == at), "unit {at} contains slices of another unit");
            }
        }
        let is_slice = |unit: &u32| index(*unit) < self.units.len();
        ensure!(self.unit_of_slice.iter().all(is_slice), "a slice belongs to a unit that does not exist");
        Ok(())
    }

    /// Checks that each superblock agrees with its reclaim units.
    fn superblocks(&self, layout: &DeviceLayout, maps: &PageMaps) -> Result<(), String> {
        for superblock in 0..layout.superblocks() {
            let entry = &self.superblocks[index(superblock)];
            ensure!(
                usize::from(entry.class) < layout.classes.len(),
                "superblock {superblock} has the unknown class {}",
                entry.class
            );
            let first = superblock * layout.slices_per_superblock;
            let slices = &self.units[index(first)..][..index(layout.slices_per_superblock)];
            let used = || slices.iter().filter(|unit| unit.state != UnitState::Free);
            ensure!(
                index(entry.parts_used) == used().count(),
                "superblock {superblock} claims {} parts",
                entry.parts_used
            );
            ensure!(
                used().all(|unit| unit.class == entry.class),
                "superblock {superblock} contains a unit of another class"
            );
            let valid_pages: u32 = used().map(|unit| unit.valid_pages).sum();
            let counted = maps.count_valid(Ppn(first * layout.slice_pages), layout.superblock_pages);
            ensure!(counted == valid_pages, "superblock {superblock} has valid pages outside its reclaim units");
        }
        Ok(())
    }

    /// Checks that the counters agree with each other and with the tables, and that none is close
    /// to overflow.
    fn counters(&self, config: &DeviceConfig, layout: &DeviceLayout) -> Result<(), String> {
        ensure!(self.stats.page_bytes == layout.page_bytes, "the counters use another page size");
        ensure!(self.stats.overhead == config.geometry.media_overhead(), "the counters use another overhead");
        ensure!(self.stats.is_countable(), "a counter has an impossible value");
        ensure!(self.units_closed <= COUNT_MAX, "the number of closed units is impossible");
        let total = self.stats.total();
        ensure!(
            total.gc_pages_copied == total.gc_pages_received,
            "the numbers of pages copied from and to owners differ"
        );
        let copied_or_remapped = total.gc_pages_copied + total.pages_remapped;
        ensure!(total.valid_pages_reclaimed == copied_or_remapped, "reclaimed pages were neither copied nor remapped");
        ensure!(total.host_pages_written == self.host_pages_written, "host pages are counted twice or not at all");
        let erases = self.erase_counts.iter();
        ensure!(erases.clone().all(|count| *count <= ERASES_MAX), "the number of erases of a block is impossible");
        let erased: u64 = erases.map(|count| u64::from(*count)).sum();
        let erased_pages = u128::from(erased) * u128::from(layout.block_pages);
        ensure!(
            erased_pages == u128::from(total.pages_erased),
            "the blocks count {erased_pages} erased pages, but the owners count {}",
            total.pages_erased
        );
        let in_use = self.units.iter().filter(|unit| unit.state != UnitState::Free).count();
        ensure!(
            total.units_opened == total.units_reclaimed + wide(in_use),
            "the number of reclaim units in use contradicts the counters"
        );
        ensure!(
            self.block_at.is_empty() != config.gc.moves_blocks(),
            "the presence of block places contradicts the configuration"
        );
        let mut blocks = vec![false; self.block_at.len()];
        for &block in self.block_at.iter() {
            let is_new = blocks.get_mut(index(block)).is_some_and(|seen| !std::mem::replace(seen, true));
            ensure!(is_new, "block {block} has two places or does not exist");
        }
        Ok(())
    }
}

/// A group with its context.
struct GroupCheck<'a> {
    config: &'a DeviceConfig,
    layout: &'a DeviceLayout,
    maps: &'a PageMaps,
    state: &'a DeviceState,
    group: &'a ReclaimGroup,
    name: u16,
}

impl GroupCheck<'_> {
    fn slices(&self) -> u32 {
        self.layout.superblocks_per_group * self.layout.slices_per_superblock
    }

    /// First slice of the group.
    fn first(&self) -> u32 {
        u32::from(self.name) * self.slices()
    }

    /// Checks that free lists, open reclaim units and closed sets contain each slice once, and that
    /// the counters agree.
    fn check(&self) -> Result<(), String> {
        let (layout, group, name) = (self.layout, self.group, self.name);
        // Slices of the group that are in a list.
        let mut listed = vec![false; index(self.slices())];
        let free = self.free_slices(&mut listed)?;
        ensure!(free == group.free_slices, "group {name} claims {} free slices but has {free}", group.free_slices);
        ensure!(group.draining.is_none(), "group {name} has a superblock that is being reclaimed");
        for position in 0..group.owners.len() {
            self.owner(position, &mut listed)?;
        }
        let mut used_slices = 0;
        for (slice, is_listed) in (self.first()..).zip(&listed) {
            let entry = &self.state.units[index(slice)];
            if entry.state == UnitState::Free {
                continue;
            }
            ensure!(*is_listed, "unit {slice} is in use but in no list");
            used_slices += u64::from(layout.classes[usize::from(entry.class)].slices);
        }
        // Sums of numbers from a file may overflow 64 bits.
        let lazy_units: u128 = group.closed.iter().flatten().map(|set| u128::from(set.lazy_units)).sum();
        ensure!(
            lazy_units == u128::from(group.lazy_units),
            "group {name} claims {} lazy units but has {lazy_units}",
            group.lazy_units
        );
        ensure!(
            used_slices + free == u64::from(self.slices()),
            "group {name} uses {used_slices} of {} slices, but its free slices are not the rest",
            self.slices()
        );
        ensure!(group.live_pages <= layout.group_live_pages_max, "group {name} has more valid pages than its maximum");
        ensure!(
            group.free_superblocks.len() >= index(layout.collection_superblocks),
            "group {name} has too few free superblocks for garbage collection"
        );
        Ok(())
    }

    /// Marks a slice as the start of a list entry.
    fn list(&self, slice: u32, listed: &mut [bool]) -> Result<(), String> {
        let place = slice.checked_sub(self.first()).and_then(|at| listed.get_mut(index(at)));
        let is_new = place.is_some_and(|seen| !std::mem::replace(seen, true));
        ensure!(is_new, "slice {slice} is listed twice or in another group");
        Ok(())
    }

    /// Checks the free superblocks and parts. Returns their number of slices.
    fn free_slices(&self, listed: &mut [bool]) -> Result<u64, String> {
        let layout = self.layout;
        let mut free = 0;
        for &superblock in &self.group.free_superblocks {
            let first = u64::from(superblock) * u64::from(layout.slices_per_superblock);
            self.list(u32::try_from(first).unwrap_or(u32::MAX), listed)?;
            let used = self.state.superblocks[index(superblock)].parts_used;
            ensure!(used == 0, "superblock {superblock} is both free and in use");
            free += u64::from(layout.slices_per_superblock);
        }
        for (position, parts) in self.group.free_parts.iter().enumerate() {
            let class = layout.classes[position];
            for &part in parts {
                self.list(part, listed)?;
                let superblock = part / layout.slices_per_superblock;
                let entry = &self.state.superblocks[index(superblock)];
                let is_part = (part % layout.slices_per_superblock).is_multiple_of(class.slices);
                ensure!(
                    is_part && entry.parts_used > 0 && usize::from(entry.class) == position,
                    "slice {part} is not a free part of class {position}"
                );
                let state = self.state.units[index(part)].state;
                ensure!(state == UnitState::Free, "slice {part} is both free and in use");
                free += u64::from(class.slices);
            }
        }
        Ok(free)
    }

    /// Checks that an owner's open and closed reclaim units agree with their entries.
    fn owner(&self, position: usize, listed: &mut [bool]) -> Result<(), String> {
        let (layout, group) = (self.layout, self.group);
        let owner = &group.owners[position];
        let handle = layout.handles.get(position);
        let name = handle.map_or(UnitOwner::SHARED_POOL, |_| UnitOwner::from_handle(RuhId::from_index(position)));
        let turns = handle.map_or(1, |handle| usize::from(handle.open_reclaim_units));
        ensure!(owner.turn < turns, "the next open unit of {name} is number {} of {turns}", owner.turn);
        for open in owner.open.iter().flatten() {
            self.listed_unit(open.unit.0, name, UnitState::OpenForHost, listed)?;
            let class = handle.map_or(0, |handle| layout.class_of_size(self.config, handle.reclaim_unit));
            let found = self.state.units[open.unit.index()].class;
            ensure!(found == class, "{:?} has a class that {name} does not use", open.unit);
            self.open_unit(open)?;
        }
        if let Some(open) = &owner.collecting {
            let is_shared = |handle: &crate::config::HandleConfig| handle.isolation != Isolation::PersistentlyIsolated;
            let collects = match handle {
                Some(handle) => handle.isolation != Isolation::InitiallyIsolated,
                None => layout.handles.iter().any(is_shared),
            };
            ensure!(
                collects && self.config.gc.copies == GcDestination::Apart,
                "{name} has an open reclaim unit for copies that the configuration excludes"
            );
            self.listed_unit(open.unit.0, name, UnitState::OpenForCollection, listed)?;
            self.open_unit(open)?;
        }
        for (class, set) in group.closed[position].iter().enumerate() {
            for &unit in &set.members {
                self.listed_unit(unit, name, UnitState::Closed, listed)?;
                let found = usize::from(self.state.units[index(unit)].class);
                ensure!(found == class, "unit {unit} is in the set of another class");
            }
            let empty = ClosedSet::new(layout.classes[class].pages, self.config.gc.lazy_valid_share);
            set.check(&self.state.units, &empty)?;
        }
        Ok(())
    }

    fn listed_unit(&self, unit: u32, owner: UnitOwner, state: UnitState, listed: &mut [bool]) -> Result<(), String> {
        self.list(unit, listed)?;
        let entry = &self.state.units[index(unit)];
        ensure!(entry.state == state, "unit {unit} is {:?} but listed as {state:?}", entry.state);
        ensure!(entry.owner == owner, "unit {unit} belongs to {} but is listed for {owner}", entry.owner);
        Ok(())
    }

    /// Checks that the rest of an open reclaim unit is empty and that its written pages are
    /// counted.
    fn open_unit(&self, open: &OpenUnit) -> Result<(), String> {
        let unit = open.unit;
        let entry = &self.state.units[unit.index()];
        let class = self.layout.classes[usize::from(entry.class)];
        let (written, run_end) = self.written(open, class)?;
        ensure!(
            open.position < open.run_end && open.run_end == run_end,
            "{unit:?} has its next write at page {} and its run end at page {}",
            open.position,
            open.run_end
        );
        ensure!(
            open.written == written && entry.valid_pages <= written,
            "{unit:?} claims {} written pages but has {written}",
            open.written
        );
        Ok(())
    }

    /// Returns the number of written pages of an open reclaim unit and the end of its current run.
    fn written(&self, open: &OpenUnit, class: SizeClass) -> Result<(u32, u32), String> {
        let (unit, position) = (open.unit, open.position);
        ensure!(position < class.pages, "{unit:?} has its next write behind its end");
        let first = unit.0 * self.layout.slice_pages;
        let is_blank = |from: u32, to: u32| self.maps.count_valid(Ppn(first + from), to - from) == 0;
        if open.remapped.is_empty() {
            ensure!(is_blank(position, class.pages), "{unit:?} has valid pages behind its next write");
            return Ok((position, class.pages));
        }
        ensure!(open.remapped.len() == index(class.blocks), "{unit:?} has another number of blocks");
        let program = self.layout.program_unit_pages;
        let (mut written, mut run_end) = (0, None);
        for (number, at) in (0..class.pages).step_by(index(program)).enumerate() {
            let end = at + program;
            if open.remapped[number % index(class.blocks)] {
                written += program;
                // The run at the position ends at the first remapped block after it.
                if end > position {
                    ensure!(at > position, "{unit:?} has its next write in a remapped block");
                    run_end = run_end.or(Some(at));
                }
            } else {
                written += position.clamp(at, end) - at;
                ensure!(is_blank(position.clamp(at, end), end), "{unit:?} has valid pages behind its next write");
            }
        }
        Ok((written, run_end.unwrap_or(class.pages)))
    }
}
