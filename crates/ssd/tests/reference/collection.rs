//! Garbage collection of the reference: triggers, relocation and emergency collection.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use ssd::config::{GcDestination, Isolation, ReportedPage};
use ssd::event::{CloseReason, MovedRun, ReclaimRecord, Trigger};
use ssd::unit::UnitState;
use ssd::{DeviceEvent, Lpn, RgId, RuId, UnitOwner};

use super::model::Reference;
use super::selection;

impl Reference {
    /// Reclaims one victim after a host command, if the free slices are at or below the background
    /// watermark.
    pub fn collect_in_background(&mut self, now: u64, group: usize) {
        if self.free_slices(group) <= self.layout.background_free_slices {
            self.collect_one(now, group, Trigger::Background);
        }
    }

    /// Reclaims victims until the group stays below the foreground watermark after the handle takes
    /// a unit of the class. Stops early if the handle has got a unit or no victim exists.
    pub fn collect_in_foreground(&mut self, now: u64, group: usize, class: usize, (handle, slot): (usize, usize)) {
        loop {
            let slices = match self.groups[group].open[handle][slot] {
                None => u64::from(self.layout.classes[class].slices),
                Some(_) => 0,
            };
            if self.free_slices(group) >= self.layout.foreground_free_slices + slices
                || !self.collect_one(now, group, Trigger::Foreground)
            {
                return;
            }
        }
    }

    /// Empties superblocks until those for collection and in reserve are free, plus a part or a
    /// superblock for the host. Stops early if the host has its unit.
    pub fn make_room(&mut self, now: u64, group: usize, class: usize, (handle, slot): (usize, usize)) {
        let kept = (self.layout.collection_superblocks + self.layout.reserve_superblocks) as usize;
        loop {
            let free = self.groups[group].free_superblocks.len();
            let has_part = !self.groups[group].free_parts[class].is_empty();
            let has_unit = self.groups[group].open[handle][slot].is_some();
            if has_unit || free > kept || (free == kept && has_part) {
                return;
            }
            self.emergency_gc(now, group);
        }
    }

    /// Makes both decisions and reclaims the victim. Returns false if no victim exists or its
    /// copies lack space.
    fn collect_one(&mut self, now: u64, group: usize, trigger: Trigger) -> bool {
        let lazy = trigger == Trigger::Background;
        let gc = self.config.gc.clone();
        let holders = selection::holders(self, group, lazy);
        let mut units = holders.iter().flat_map(|(_, units)| units);
        if lazy && !units.any(|unit| unit.candidate) {
            return false;
        }
        let mut victim = None;
        for holders in selection::order(gc.source_policy, holders, self.layout.handles.len()) {
            let chosen = selection::select(gc.victim_policy, &holders, self.host_pages_written, &mut self.random);
            if let Some(chosen) = chosen {
                victim = Some(chosen.unit);
                break;
            }
        }
        let Some(victim) = victim else { return false };
        let destination = self.destination(group, self.unit(victim).owner);
        if !self.affordable(group, victim, destination) {
            self.refused_victims += 1;
            return false;
        }
        self.reclaim(now, victim, destination, trigger, gc.victim_policy.name());
        true
    }

    /// A whole superblock returns as much space as its copies take. A part does not. It is only
    /// taken if its copies fit, or go to a free part, or more superblocks are free than collection
    /// needs.
    fn affordable(&mut self, group: usize, victim: u32, destination: UnitOwner) -> bool {
        let open = *self.place_for_copies(group, self.row_index(destination));
        let room = open.map_or(0, |unit| self.unit_pages(unit) - self.programmed_pages(unit));
        let fits = self.valid_pages(victim) <= room;
        let free_superblocks = self.groups[group].free_superblocks.len() as u32;
        let class = self.unit(victim).class;
        let has_part = !self.groups[group].free_parts[class].is_empty();
        class == 0 || fits || has_part || free_superblocks > self.layout.collection_superblocks
    }

    /// Owner of the copies of an owner's data: the owner itself if it is isolated persistently or
    /// currently, the shared pool if not.
    fn destination(&mut self, group: usize, owner: UnitOwner) -> UnitOwner {
        let Some(handle) = owner.handle() else { return owner };
        let row = usize::from(handle.0);
        match self.layout.handles[row].isolation {
            Isolation::InitiallyIsolated if self.pool() == self.layout.handles.len() => UnitOwner::SHARED_POOL,
            Isolation::InitiallyIsolated => UnitOwner(self.pool() as u16),
            Isolation::PersistentlyIsolated => owner,
            Isolation::Adaptive => {
                self.groups[group].isolated[row] = self.can_afford_isolation(group, row);
                if self.groups[group].isolated[row] {
                    return owner;
                }
                if let Some(unit) = self.groups[group].copies[row].take() {
                    self.close(unit, CloseReason::IsolationChanged);
                }
                UnitOwner::SHARED_POOL
            }
        }
    }

    /// Compares the spare reclaim units for each handle with data with the threshold, or 3/4 of it
    /// if already isolated.
    fn can_afford_isolation(&self, group: usize, row: usize) -> bool {
        let takes_host_data = |row: &usize| self.groups[group].open[*row].iter().any(Option::is_some);
        let has_closed = |row: &usize| {
            let mut sets = self.groups[group].closed.iter();
            sets.any(|((owner, _), members)| owner == row && !members.is_empty())
        };
        let holds_data = |row: &usize| takes_host_data(row) || has_closed(row);
        let holders = (0..self.layout.handles.len()).filter(holds_data).count();
        let superblock_pages = u64::from(self.layout.superblock_pages);
        let live_superblocks = self.live_pages(group).div_ceil(superblock_pages) as i64;
        let usable = i64::from(self.layout.superblocks_per_group) - i64::from(self.layout.reserve_superblocks);
        let share = if self.groups[group].isolated[row] { 0.75 } else { 1.0 };
        let wanted = self.config.gc.adaptive_isolation_spare * holders as f64 * share;
        (usable - live_superblocks) as f64 >= wanted
    }

    /// Moves the valid pages of a closed unit, then erases and frees it.
    fn reclaim(&mut self, now: u64, victim: u32, destination: UnitOwner, trigger: Trigger, policy: &'static str) {
        let entry = self.unit(victim).clone();
        assert_eq!(entry.state, UnitState::Closed);
        let row = self.row_index(entry.owner);
        let members = self.groups[entry.group].closed.get_mut(&(row, entry.class));
        let members = members.expect("a closed unit is in a set");
        let position = members.iter().position(|&unit| unit == victim);
        members.swap_remove(position.expect("a closed unit is in its set"));

        let (unit_pages, valid_pages) = (self.unit_pages(victim), self.valid_pages(victim));
        let blank_blocks = self.remap_full_blocks(entry.group, victim, destination);
        let blocks_remapped = blank_blocks.len() as u32;
        let copied = self.copy_valid(entry.group, victim, destination);
        let pages_copied = copied.len() as u32;
        self.erase_and_free(victim, &blank_blocks);

        match trigger {
            Trigger::Background => self.stats.background_collections += 1,
            Trigger::Foreground => self.stats.foreground_collections += 1,
            Trigger::Forced => self.stats.forced_collections += 1,
        }
        let block_pages = self.layout.block_pages;
        let row = self.row_mut(entry.owner);
        row.gc_pages_copied += u64::from(pages_copied);
        row.blocks_remapped += u64::from(blocks_remapped);
        row.pages_remapped += u64::from(valid_pages - pages_copied);
        row.units_reclaimed += 1;
        row.pages_erased += u64::from(unit_pages - blocks_remapped * block_pages);
        row.valid_pages_reclaimed += u64::from(valid_pages);
        self.row_mut(destination).gc_pages_received += u64::from(pages_copied);
        self.events.push(DeviceEvent::Reclaim(ReclaimRecord {
            host_pages_written: self.host_pages_written,
            now,
            trigger,
            policy,
            group: RgId(entry.group as u16),
            victim: RuId(victim),
            victim_owner: entry.owner,
            destination_owner: destination,
            unit_pages,
            valid_pages,
            pages_copied,
            moved: self.reported(&copied, victim),
            blocks_remapped,
            elapsed_ns: 0,
        }));
        self.level_wear(entry.group, victim / self.layout.slices_per_superblock);
    }

    /// Moves the data of a superblock of closed units into the blocks of a superblock that has become
    /// free, if its erases are fewer by more than the threshold for each block. Of several it is the
    /// one written first. The data keeps its place, and the blocks change theirs.
    fn level_wear(&mut self, group: usize, worn: u32) {
        let blocks = self.layout.blocks_per_superblock as usize;
        let places = |superblock: u32| superblock as usize * blocks..(superblock as usize + 1) * blocks;
        let erases = |reference: &Reference, superblock: u32| -> u64 {
            let count = |place| u64::from(reference.erase_counts[reference.block_at[place]]);
            places(superblock).map(count).sum()
        };
        let is_closed = |unit: u32| self.unit(unit).state == UnitState::Closed;
        let first = group as u32 * self.layout.superblocks_per_group;
        let threshold = u64::from(self.config.gc.wear_levelling_erases) * blocks as u64;
        if threshold == 0 || self.units_of(worn).next().is_some() {
            return;
        }
        let cold = (first..first + self.layout.superblocks_per_group)
            .filter(|&superblock| self.units_of(superblock).next().is_some())
            .filter(|&superblock| self.units_of(superblock).all(is_closed))
            .filter(|&superblock| erases(self, superblock) + threshold < erases(self, worn))
            .min_by_key(|&superblock| self.units_of(superblock).map(|unit| self.unit(unit).last_write).max());
        let Some(cold) = cold else {
            return;
        };
        for unit in self.units_of(cold).collect::<Vec<u32>>() {
            for block in 0..self.layout.classes[self.unit(unit).class].blocks {
                let physical = self.block_at[self.block_place(unit, block)];
                self.erase_counts[physical] += 1;
            }
            let (unit_pages, pages_copied) = (self.unit_pages(unit), self.valid_pages(unit));
            (0..pages_copied).for_each(|_| self.count_data_page());
            let owner = self.unit(unit).owner;
            let row = self.row_mut(owner);
            row.wear_levelling_pages += u64::from(pages_copied);
            row.wear_levelling_pages_erased += u64::from(unit_pages);
            row.pages_erased += u64::from(unit_pages);
            self.events.push(DeviceEvent::LevelWear {
                group: RgId(group as u16),
                unit: RuId(unit),
                owner,
                unit_pages,
                pages_copied,
            });
        }
        for (one, other) in places(cold).zip(places(worn)) {
            self.block_at.swap(one, other);
        }
    }

    /// Copied pages that the event names.
    fn reported(&self, copied: &[u32], victim: u32) -> Option<MovedRun> {
        let single = |&page: &u32| MovedRun { first: Lpn(page), pages: 1 };
        match self.config.events.reported_page {
            ReportedPage::LongestRun => longest_run(copied),
            ReportedPage::First => copied.first().map(single),
            ReportedPage::Random if copied.is_empty() => None,
            ReportedPage::Random => {
                let seed = self.config.seed ^ self.host_pages_written.rotate_left(32) ^ u64::from(victim);
                let draw = Xoshiro256PlusPlus::seed_from_u64(seed).next_u64();
                copied.get((draw % copied.len() as u64) as usize).map(single)
            }
            ReportedPage::None => None,
        }
    }

    /// Copies page by page, in the fill order of the victim. Returns the logical pages in that
    /// order.
    fn copy_valid(&mut self, group: usize, victim: u32, destination: UnitOwner) -> Vec<u32> {
        let class = self.unit(victim).class;
        let mut copied = Vec::new();
        for physical in self.pages_of(victim) {
            if !self.is_valid(physical) {
                continue;
            }
            let page = self.programmed[physical].expect("a valid page was programmed");
            let unit = self.unit_for_copies(group, destination, class);
            self.append(unit, page);
            copied.push(page);
            self.close_copies_if_full(group, destination);
        }
        copied
    }

    fn unit_for_copies(&mut self, group: usize, owner: UnitOwner, class: usize) -> u32 {
        let row = self.row_index(owner);
        match *self.place_for_copies(group, row) {
            Some(unit) => unit,
            None => self.open_for_copies(group, row, class),
        }
    }

    fn close_copies_if_full(&mut self, group: usize, owner: UnitOwner) {
        let row = self.row_index(owner);
        let unit = self.place_for_copies(group, row).expect("copies have just been written");
        if self.is_full(unit) {
            *self.place_for_copies(group, row) = None;
            self.close(unit, CloseReason::Full);
        }
    }

    /// Exchanges each fully valid block of the victim with the block at its place in the
    /// destination, if that block is blank and the units have the same size. Returns the places of
    /// the victim that are now blank.
    fn remap_full_blocks(&mut self, group: usize, victim: u32, destination: UnitOwner) -> Vec<u32> {
        let class = self.unit(victim).class;
        let is_full = |block: &u32| {
            let pages = self.pages_of_block(victim, *block);
            pages.into_iter().all(|page| self.is_valid(page))
        };
        let full: Vec<u32> = (0..self.layout.classes[class].blocks).filter(is_full).collect();
        if !self.config.gc.block_remapping || full.is_empty() {
            return Vec::new();
        }
        let unit = self.unit_for_copies(group, destination, class);
        if self.unit(unit).class != class {
            return Vec::new();
        }
        let is_blank = |block: &u32| {
            let pages = self.pages_of_block(unit, *block);
            pages.into_iter().all(|page| self.programmed[page].is_none())
        };
        let exchanged: Vec<u32> = full.into_iter().filter(is_blank).collect();
        for &block in &exchanged {
            self.exchange_block(victim, unit, block);
        }
        if !exchanged.is_empty() {
            self.unit_mut(unit).last_write = self.host_pages_written;
            self.close_copies_if_full(group, destination);
        }
        exchanged
    }

    /// Moves the data of a block to the same place of another unit without programming it.
    fn exchange_block(&mut self, from: u32, to: u32, block: u32) {
        let pages = self.pages_of_block(from, block).into_iter().zip(self.pages_of_block(to, block));
        for (old, new) in pages {
            let page = self.programmed[old].take().expect("a valid page was programmed");
            self.programmed[new] = Some(page);
            self.map[page as usize] = Some(new as u32);
        }
        let (place, other) = (self.block_place(from, block), self.block_place(to, block));
        self.block_at.swap(place, other);
    }

    /// Physical pages of a block of a unit. Program units rotate over the blocks of the unit.
    fn pages_of_block(&self, unit: u32, block: u32) -> Vec<usize> {
        let blocks = self.layout.classes[self.unit(unit).class].blocks as usize;
        let program_unit = self.layout.program_unit_pages as usize;
        let in_block = |(index, _): &(usize, usize)| index / program_unit % blocks == block as usize;
        let pages = self.pages_of(unit).enumerate().filter(in_block);
        pages.map(|(_, page)| page).collect()
    }

    /// Place of a block of a unit among all blocks of the drive.
    fn block_place(&self, unit: u32, block: u32) -> usize {
        let first_page = unit * self.layout.slice_pages;
        (first_page / self.layout.block_pages + block) as usize
    }

    /// Erases and frees a unit. Blocks that came in blank are not erased again.
    fn erase_and_free(&mut self, unit: u32, blank_blocks: &[u32]) {
        let blocks = 0..self.layout.classes[self.unit(unit).class].blocks;
        for block in blocks.filter(|block| !blank_blocks.contains(block)) {
            let physical = self.block_at[self.block_place(unit, block)];
            self.erase_counts[physical] += 1;
        }
        for page in self.pages_of(unit) {
            self.programmed[page] = None;
        }
        let entry = self.units[unit as usize].take().expect("a unit in use");
        let superblock = unit / self.layout.slices_per_superblock;
        let still_used = self.units_of(superblock).next().is_some();
        let slices = self.layout.slices_per_superblock;
        let group = &mut self.groups[entry.group];
        if !still_used {
            group.free_parts[entry.class].retain(|part| part / slices != superblock);
            group.free_superblocks.push(superblock);
        } else if group.draining != Some(superblock) {
            group.free_parts[entry.class].push(unit);
        }
    }

    /// Units in use of a superblock.
    fn units_of(&self, superblock: u32) -> impl Iterator<Item = u32> + '_ {
        let slices = self.layout.slices_per_superblock;
        (superblock * slices..(superblock + 1) * slices).filter(|&slice| self.units[slice as usize].is_some())
    }

    /// Emergency collection. Empties the superblock whose units have the most pages that are not
    /// valid. If no unit has any, takes the emptiest of the partly free superblocks whose units fit
    /// into others of the class.
    fn emergency_gc(&mut self, now: u64, group: usize) {
        let superblock = self.most_waste(group).or_else(|| {
            self.moved_full_parts += 1;
            self.emptiest_partly_free(group)
        });
        let superblock = superblock.expect("space is short, so something can be reclaimed");
        let slices = self.layout.slices_per_superblock;
        for parts in &mut self.groups[group].free_parts {
            parts.retain(|part| part / slices != superblock);
        }
        self.groups[group].draining = Some(superblock);
        let units: Vec<u32> = self.units_of(superblock).collect();
        for unit in units {
            self.close_if_open_for_host(group, unit);
            let destination = self.destination(group, self.unit(unit).owner);
            self.reclaim(now, unit, destination, Trigger::Forced, "squeeze");
        }
        self.groups[group].draining = None;
    }

    fn close_if_open_for_host(&mut self, group: usize, unit: u32) {
        for slot in self.groups[group].open.iter_mut().flatten() {
            if *slot == Some(unit) {
                *slot = None;
                self.close(unit, CloseReason::RoomNeeded);
                return;
            }
        }
    }

    /// Superblocks of a group in use without open units for copies.
    fn emptiable(&self, group: usize) -> Vec<u32> {
        let first = group as u32 * self.layout.superblocks_per_group;
        let with_host = self.config.gc.copies == GcDestination::WithHost;
        let places = self.groups[group].open.iter().enumerate();
        let takes_copies_too =
            |row: usize| self.layout.handles[row].isolation == Isolation::PersistentlyIsolated || row == self.pool();
        let shared: Vec<u32> =
            places.filter(|(row, _)| with_host && takes_copies_too(*row)).filter_map(|(_, slots)| slots[0]).collect();
        let takes_copies = |unit: u32| self.unit(unit).state == UnitState::OpenForCollection || shared.contains(&unit);
        (first..first + self.layout.superblocks_per_group)
            .filter(|&superblock| self.units_of(superblock).next().is_some())
            .filter(|&superblock| !self.units_of(superblock).any(takes_copies))
            .collect()
    }

    fn most_waste(&self, group: usize) -> Option<u32> {
        let waste = |superblock: u32| -> u32 {
            let not_valid = |unit| self.unit_pages(unit) - self.valid_pages(unit);
            self.units_of(superblock).map(not_valid).sum()
        };
        let mut best: Option<(u32, u32)> = None;
        for superblock in self.emptiable(group) {
            let pages = waste(superblock);
            if pages > best.map_or(0, |(most, _)| most) {
                best = Some((pages, superblock));
            }
        }
        best.map(|(_, superblock)| superblock)
    }

    fn emptiest_partly_free(&self, group: usize) -> Option<u32> {
        let class = |superblock: u32| self.units_of(superblock).next().map(|unit| self.unit(unit).class);
        let parts = |superblock: u32| class(superblock).map_or(0, |class| self.layout.classes[class].divisor as usize);
        let used = |superblock: u32| self.units_of(superblock).count();
        let emptiable = self.emptiable(group);
        let partly_free = |superblock: &&u32| used(**superblock) < parts(**superblock);
        let partly_free: Vec<u32> = emptiable.iter().filter(partly_free).copied().collect();
        let same_class = |one: u32| partly_free.iter().filter(|&&other| class(other) == class(one)).count();
        let movable = partly_free.iter().copied().filter(|&superblock| same_class(superblock) > 1);
        movable.min_by_key(|&superblock| (used(superblock), superblock))
    }
}

/// Longest run of consecutive logical pages in a list, the first among equals.
fn longest_run(pages: &[u32]) -> Option<MovedRun> {
    let runs = pages.chunk_by(|one, next| *next == one + 1);
    let moved = runs.map(|run| MovedRun { first: Lpn(run[0]), pages: run.len() as u32 });
    moved.rev().max_by_key(|run| run.pages)
}
