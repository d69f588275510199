//! Proof of a device's state by full scan.

use std::collections::HashSet;

use crate::cast::{index, wide};
use crate::device::{Engine, Group, State};
use crate::layout::Layout;
use crate::maps::Maps;
use crate::types::{Lpn, Ppn, RgId, RuId};
use crate::unit::UnitState;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+));
        }
    };
}

pub(super) fn check(device: &Engine) -> Result<(), String> {
    maps(device)?;
    device.state.agrees(&device.layout, &device.maps)?;
    units(device)?;
    groups(device)?;
    counters(device)
}

impl State {
    /// Whether the reclaim units and groups hold as many valid pages as the state counts, and nothing else does; otherwise
    /// where not. Takes as long as reading the bitmap.
    pub(crate) fn agrees(&self, layout: &Layout, maps: &Maps) -> Result<(), String> {
        let mut valid_pages = 0;
        for (position, group) in self.groups.iter().enumerate() {
            let name = RgId::of(position).0;
            let slices = layout.superblocks_per_group * layout.slices_per_superblock;
            let first = u32::from(name) * slices;
            let mut live_pages = 0;
            for unit in first..first + slices {
                let entry = &self.units[index(unit)];
                if entry.state == UnitState::Free {
                    continue;
                }
                let first_page = unit * layout.slice_pages;
                ensure!(
                    entry.pages <= layout.physical_pages - first_page,
                    "unit {unit} reaches beyond the flash"
                );
                let counted = maps.count_valid(Ppn(first_page), entry.pages);
                ensure!(
                    counted == entry.valid_pages,
                    "unit {unit} counts {} valid pages, has {counted}",
                    entry.valid_pages
                );
                live_pages += u64::from(counted);
            }
            ensure!(
                live_pages == group.live_pages,
                "group {name} counts {} live pages, has {live_pages}",
                group.live_pages
            );
            valid_pages += live_pages;
        }
        let counted = maps.count_valid(Ppn(0), layout.physical_pages);
        ensure!(
            u64::from(counted) == valid_pages,
            "{counted} pages are valid, {valid_pages} of them in reclaim units"
        );
        Ok(())
    }
}

/// L2P, P2L and the bitmap say the same.
fn maps(device: &Engine) -> Result<(), String> {
    let mut mapped = 0;
    for lpn in (0..device.layout.logical_pages).map(Lpn) {
        let ppn = device.maps.lookup(lpn);
        if ppn == Ppn::UNMAPPED {
            continue;
        }
        mapped += 1;
        ensure!(
            ppn.0 < device.layout.physical_pages,
            "{lpn:?} maps to {ppn:?}, beyond the flash"
        );
        ensure!(device.maps.is_valid(ppn), "{lpn:?} maps to {ppn:?}, which is not valid");
        ensure!(
            device.maps.logical(ppn) == lpn,
            "{ppn:?} does not point back to {lpn:?}"
        );
    }
    let valid = device.maps.count_valid(Ppn(0), device.layout.physical_pages);
    ensure!(
        valid == mapped,
        "{valid} physical pages are valid, {mapped} logical pages are mapped"
    );
    Ok(())
}

/// Each reclaim unit is what its superblock says.
fn units(device: &Engine) -> Result<(), String> {
    let layout = &device.layout;
    for superblock in 0..layout.superblocks() {
        let entry = &device.state.superblocks[index(superblock)];
        let first = superblock * layout.slices_per_superblock;
        let slices = (first..first + layout.slices_per_superblock).map(RuId);
        let used: Vec<RuId> = slices
            .filter(|unit| device.state.units[unit.index()].state != UnitState::Free)
            .collect();
        let class = layout.classes[usize::from(entry.class)];
        ensure!(
            index(entry.parts_used) == used.len(),
            "superblock {superblock} counts {} parts",
            entry.parts_used
        );
        let mut valid_pages = 0;
        for unit in used {
            let state = &device.state.units[unit.index()];
            ensure!(
                state.class == entry.class,
                "{unit:?} is of another class than its superblock"
            );
            ensure!(
                (unit.0 - first).is_multiple_of(class.slices),
                "{unit:?} does not begin at a part"
            );
            valid_pages += state.valid_pages;
        }
        let counted = device
            .maps
            .count_valid(Ppn(first * layout.slice_pages), layout.superblock_pages);
        ensure!(
            counted == valid_pages,
            "superblock {superblock} has valid pages outside of its reclaim units"
        );
    }
    Ok(())
}

/// Free lists, open reclaim units and closed sets hold each reclaim unit once, and the counters of a group agree.
fn groups(device: &Engine) -> Result<(), String> {
    let layout = &device.layout;
    for (position, group) in device.state.groups.iter().enumerate() {
        let name = RgId::of(position).0;
        let slices = layout.superblocks_per_group * layout.slices_per_superblock;
        let first = u32::from(name) * slices;
        let parts: usize = (group.free_parts.iter().zip(&layout.classes))
            .map(|(parts, class)| parts.len() * index(class.slices))
            .sum();
        let free = group.free_superblocks.len() * index(layout.slices_per_superblock) + parts;
        ensure!(
            wide(free) == group.free_slices,
            "group {name} counts {} free slices, has {free}",
            group.free_slices
        );
        let listed = listed_units(device, group)?;
        let mut used_slices = 0;
        for slice in first..first + slices {
            let entry = &device.state.units[index(slice)];
            if entry.state == UnitState::Free {
                continue;
            }
            ensure!(listed.contains(&slice), "unit {slice} is in use and listed nowhere");
            used_slices += u64::from(layout.classes[usize::from(entry.class)].slices);
        }
        let lazy_units: u64 = group.closed.iter().flatten().map(|set| u64::from(set.lazy_units)).sum();
        ensure!(
            lazy_units == group.lazy_units,
            "group {name} counts {} lazy units, has {lazy_units}",
            group.lazy_units
        );
        ensure!(
            used_slices + group.free_slices == u64::from(slices),
            "group {name} lost slices: {used_slices} used of {slices}"
        );
        ensure!(
            group.live_pages <= layout.group_live_pages_max,
            "group {name} holds more than it may"
        );
    }
    Ok(())
}

/// The reclaim units that the owners of a group have open or closed, each of which is what its entry says.
fn listed_units(device: &Engine, group: &Group) -> Result<HashSet<u32>, String> {
    let mut seen = HashSet::new();
    for (position, owner) in group.owners.iter().enumerate() {
        let name = device.owner_at(position);
        let open = owner.open.iter().flatten();
        let open = open.map(|open| (open.unit.0, UnitState::OpenForHost));
        let collecting = owner.collecting.iter();
        let collecting = collecting.map(|open| (open.unit.0, UnitState::OpenForCollection));
        let closed = group.closed[position].iter().flat_map(|set| &set.members);
        let closed = closed.map(|unit| (*unit, UnitState::Closed));
        for (unit, state) in open.chain(collecting).chain(closed) {
            let entry = &device.state.units[index(unit)];
            let found = entry.state;
            ensure!(found == state, "unit {unit} is {found:?}, listed as {state:?}");
            let found = entry.owner;
            ensure!(found == name, "unit {unit} is of {found}, listed for {name}");
            ensure!(seen.insert(unit), "unit {unit} is listed twice");
        }
        for (class, set) in group.closed[position].iter().enumerate() {
            closed_set(device, set, class)?;
        }
    }
    Ok(seen)
}

/// The index of closed units agrees with their valid counts.
fn closed_set(device: &Engine, set: &crate::gc::index::ClosedSet, class: usize) -> Result<(), String> {
    let units = &device.state.units;
    let least = set.members.iter().map(|unit| units[index(*unit)].valid_pages).min();
    let found = set.lowest(units).map(|unit| units[index(unit)].valid_pages).min();
    ensure!(
        least == found,
        "the lowest bucket has {found:?} valid pages at least, the set {least:?}"
    );
    let lazy = set
        .members
        .iter()
        .filter(|unit| units[index(**unit)].valid_pages <= set.lazy_valid_pages)
        .count();
    ensure!(
        lazy == index(set.lazy_units),
        "{lazy} units are lazy candidates, {} are counted",
        set.lazy_units
    );
    let ordered: Vec<u64> = set
        .in_order(units)
        .map(|unit| units[index(unit)].closed_sequence)
        .collect();
    ensure!(
        ordered.is_sorted() && ordered.len() == set.members.len(),
        "the order of closing is lost"
    );
    ensure!(
        set.members
            .iter()
            .all(|unit| usize::from(units[index(*unit)].class) == class),
        "a unit is in a wrong set"
    );
    Ok(())
}

/// The counters agree with each other and with the state.
fn counters(device: &Engine) -> Result<(), String> {
    let total = device.state.stats.total();
    ensure!(
        total.gc_pages_copied == total.gc_pages_received,
        "copies left and copies received differ"
    );
    let copied_or_remapped = total.gc_pages_copied + total.pages_remapped;
    ensure!(
        total.valid_pages_reclaimed == copied_or_remapped,
        "reclaimed pages were neither copied nor remapped"
    );
    ensure!(
        total.host_pages_written == device.state.host_pages_written,
        "host pages are counted twice or not at all"
    );
    let erased: u64 = device.state.erase_counts.iter().map(|count| u64::from(*count)).sum();
    let erased_pages = erased * u64::from(device.layout.block_pages);
    ensure!(
        erased_pages == total.pages_erased,
        "blocks count {erased_pages} erased pages, owners {}",
        total.pages_erased
    );
    let in_use = device
        .state
        .units
        .iter()
        .filter(|unit| unit.state != UnitState::Free)
        .count();
    ensure!(
        total.units_opened == total.units_reclaimed + wide(in_use),
        "reclaim units were opened and never reclaimed"
    );
    let mut blocks = vec![false; device.state.block_at.len()];
    for &block in device.state.block_at.iter() {
        ensure!(
            !std::mem::replace(&mut blocks[index(block)], true),
            "block {block} is at two places"
        );
    }
    Ok(())
}
