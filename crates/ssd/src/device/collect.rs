//! Garbage collection: triggers, and relocation of data.
//!
//! Collection runs in the background after a host command (one victim each) and in the foreground
//! before a handle gets a reclaim unit. Policies choose victims. If they find none and space is
//! still short, `emergency_gc` empties whole superblocks, which always succeeds (see
//! [`crate::layout`]).
//!
//! The *place* of a block is its index in its reclaim unit. Block remapping exchanges the physical
//! blocks at one place of two reclaim units.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::cast::{count, index, to_f64, wide};
use crate::config::{GcDestination, Isolation};
use crate::device::engine::DeviceCore;
use crate::device::open::OpenUnit;
use crate::event::{CloseReason, DeviceEvent, EventEmitter, MovedRun, ReclaimRecord, ReportedPagePicker, Trigger};
use crate::gc::index::{ClosedSet, find_lowest};
use crate::gc::{VictimCandidates, VictimPolicy, VictimRule};
use crate::layout::SizeClass;
use crate::types::{MappedRun, Nanos, Placement, Ppn, RgId, RuId, UnitOwner};
use crate::unit::{ReclaimUnit, UnitState};

/// Policy name in the GC log for emergency collections, which choose no victim by policy.
const NO_POLICY: &str = "squeeze";
/// Policy name in the GC log for an external policy.
const EXTERNAL_POLICY: &str = "external";

impl DeviceCore {
    /// Reclaims one lazy candidate if the group is above the background watermark.
    #[inline]
    pub(super) fn collect_in_background(&mut self, events: &mut EventEmitter<'_>, now: Nanos, group: RgId) {
        let members = &self.state.groups[group.index()];
        if members.free_slices <= self.layout.background_free_slices && members.lazy_units > 0 {
            self.collect_one(events, now, group, Trigger::Background);
        }
    }

    /// Reclaims until the group stays below the foreground watermark after the handle takes a
    /// reclaim unit of this class, or until the policy finds no victim.
    pub(super) fn collect_in_foreground(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        placement: Placement,
        slot: usize,
        class: u8,
    ) {
        let group = placement.group;
        let is_short = |device: &Self| {
            let slices = u64::from(device.layout.classes[usize::from(class)].slices);
            let taken = if device.is_open(placement, slot) { 0 } else { slices };
            device.state.groups[group.index()].free_slices < device.layout.foreground_free_slices + taken
        };
        while is_short(self) && self.collect_one(events, now, group, Trigger::Foreground) {}
    }

    /// Runs emergency collection until the handle can open a reclaim unit of this class, or has one
    /// open.
    pub(super) fn collect_until_open(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        placement: Placement,
        slot: usize,
        class: u8,
    ) {
        let group = placement.group;
        let reserved = index(self.layout.superblocks_kept());
        // A free part of this class alone is not sufficient. Emptying a superblock may have
        // consumed more reserved superblocks than it returned.
        let has_space = |device: &Self| {
            let members = &device.state.groups[group.index()];
            let needed = reserved + usize::from(members.free_parts[usize::from(class)].is_empty());
            members.free_superblocks.len() >= needed || device.is_open(placement, slot)
        };
        // The loop terminates. Each iteration frees the waste of a superblock or merges two partly
        // free ones.
        for _ in 0..self.layout.slices_per_group().max(1000) {
            if has_space(self) {
                return;
            }
            self.emergency_gc(events, now, group);
        }
        panic!("emergency collection frees no space in group {}", group.0);
    }

    /// Reclaims a victim that the policy selects. Returns false if the policy finds none or the
    /// copies lack space.
    fn collect_one(&mut self, events: &mut EventEmitter<'_>, now: Nanos, group: RgId, trigger: Trigger) -> bool {
        let lazy = trigger == Trigger::Background;
        let members = &mut self.state.groups[group.index()];
        let mut victim = None;
        let selection = self.config.gc.source_policy;
        let order = selection.order(&members.closed, &self.state.units);
        let is_external = self.victim_policy.0.is_some();
        let is_greedy = self.config.gc.victim_policy == VictimRule::Greedy;
        for owners in &order {
            // An external policy may call the built-in one.
            if is_greedy || is_external {
                find_lowest(&mut members.closed, owners, &mut self.state.units);
            }
            // The greedy policy looks at no other unit.
            let is_searched = |set: &&ClosedSet| match is_greedy && !is_external {
                true => set.lowest_unit.is_some(),
                false => !set.members.is_empty(),
            };
            let candidates = VictimCandidates {
                units: &self.state.units,
                sets: owners.iter().flat_map(|&owner| &members.closed[owner]).filter(is_searched).collect(),
                lazy,
                host_pages_written: self.state.host_pages_written,
            };
            let random = &mut self.state.random;
            victim = match &mut self.victim_policy.0 {
                None => self.config.gc.victim_policy.select(&candidates, random),
                Some(policy) => policy.select(&candidates, random),
            };
            // Reclaiming a unit without an invalid page would free no space, endlessly.
            assert!(
                victim.is_none_or(|unit| candidates.contains(unit)),
                "the victim policy chose {victim:?}, which is not a candidate"
            );
            if victim.is_some() {
                break;
            }
        }
        let Some(victim) = victim else { return false };
        let destination = self.destination(events, group, self.state.units[victim.index()].owner);
        if !self.affordable(group, victim, destination) {
            return false;
        }
        let policy = match &self.victim_policy.0 {
            None => self.config.gc.victim_policy.name(),
            Some(_) => EXTERNAL_POLICY,
        };
        self.reclaim(events, now, victim, destination, trigger, policy);
        true
    }

    /// Returns true if reclaiming the victim leaves the superblocks reserved for collection. A
    /// victim of a whole superblock returns as much space as its copies take. The copies of a
    /// smaller victim may take a free part, but must not divide one of the last free superblocks.
    fn affordable(&self, group: RgId, victim: RuId, destination: UnitOwner) -> bool {
        let members = &self.state.groups[group.index()];
        let entry = &self.state.units[victim.index()];
        if entry.class == 0 {
            return true;
        }
        assert_eq!(self.config.gc.copies, GcDestination::Apart, "host data and copies share whole superblocks only");
        let free_pages = members.owners[self.owner_index(destination)]
            .collecting
            .as_ref()
            .map_or(0, |open| self.state.units[open.unit.index()].pages - open.written);
        free_pages >= entry.valid_pages
            || !members.free_parts[usize::from(entry.class)].is_empty()
            || members.free_superblocks.len() > index(self.layout.collection_superblocks)
    }

    /// Owner of the copies of an owner's data. Updates the isolation of an adaptive handle.
    fn destination(&mut self, events: &mut EventEmitter<'_>, group: RgId, owner: UnitOwner) -> UnitOwner {
        let pool = self.layout.pooled_copies;
        let Some(handle) = owner.handle() else {
            assert_eq!(pool, owner, "a reclaim unit belongs to a pool that does not exist");
            return pool;
        };
        match self.layout.handles[handle.index()].isolation {
            Isolation::InitiallyIsolated => pool,
            Isolation::PersistentlyIsolated => owner,
            Isolation::Adaptive => {
                let isolated = self.spare_allows_isolation(group, owner);
                let state = &mut self.state.groups[group.index()].owners[handle.index()];
                state.isolated = isolated;
                if isolated {
                    return owner;
                }
                if let Some(open) = state.collecting.take() {
                    self.close(events, &open, CloseReason::IsolationChanged);
                }
                pool
            }
        }
    }

    /// Returns true if the group has enough spare for a reclaim unit that only this handle's copies
    /// fill.
    fn spare_allows_isolation(&self, group: RgId, owner: UnitOwner) -> bool {
        /// Share of the threshold below which an isolated handle becomes initially isolated again.
        const HYSTERESIS: f64 = 0.75;
        let members = &self.state.groups[group.index()];
        let has_units = |index: &usize| {
            members.owners[*index].open.iter().any(Option::is_some)
                || members.closed[*index].iter().any(|set| !set.members.is_empty())
        };
        let handles_with_units = (0..self.layout.handles.len()).filter(has_units).count();
        let live_superblocks = members.live_pages.div_ceil(u64::from(self.layout.superblock_pages));
        let usable = self.layout.superblocks_per_group - self.layout.reserve_superblocks;
        assert!(handles_with_units > 0, "{owner} has data, but no handle has reclaim units");
        let spare = f64::from(usable) - to_f64(live_superblocks);
        let threshold = self.config.gc.adaptive_isolation_spare * to_f64(wide(handles_with_units));
        let isolated = members.owners[self.owner_index(owner)].isolated;
        spare >= if isolated { threshold * HYSTERESIS } else { threshold }
    }

    /// Moves the valid pages of a closed reclaim unit, erases the unit and frees it.
    fn reclaim(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        victim: RuId,
        destination: UnitOwner,
        trigger: Trigger,
        policy: &'static str,
    ) {
        let ReclaimUnit { group, owner, class, pages: unit_pages, valid_pages, state, .. } =
            self.state.units[victim.index()];
        assert_eq!(state, UnitState::Closed, "reclaim unit {} is not closed", victim.0);
        assert!(
            destination == owner || destination == self.layout.pooled_copies,
            "copies of {owner} would mix with the data of {destination}"
        );
        let group = RgId(group);
        let live_pages = self.state.groups[group.index()].live_pages;
        let owner_index = self.owner_index(owner);
        let members = &mut self.state.groups[group.index()];
        let lazy = members.closed[owner_index][usize::from(class)].remove(&mut self.state.units, victim.0);
        members.lazy_units -= u64::from(lazy);
        self.maps.unpack(self.first_page(victim), unit_pages);

        let blank_blocks = self.remap_full_blocks(events, group, victim, destination);
        let blocks_remapped = count(blank_blocks.len());
        let pages_remapped = blocks_remapped * self.layout.block_pages;
        let pages_copied = valid_pages - pages_remapped;
        let moved = self.copy_valid(events, group, victim, destination, pages_copied);
        self.erase(victim, &blank_blocks);
        let elapsed_ns = self.reclaim_in_time(now, victim);
        self.release(victim);
        assert_eq!(
            self.state.groups[group.index()].live_pages,
            live_pages,
            "collection changes the number of valid pages of group {}",
            group.0
        );

        let reclaim = ReclaimRecord {
            host_pages_written: self.state.host_pages_written,
            now,
            trigger,
            policy,
            group,
            victim,
            victim_owner: owner,
            destination_owner: destination,
            unit_pages,
            valid_pages,
            pages_copied,
            moved,
            blocks_remapped,
            elapsed_ns,
        };
        self.count_collection(&reclaim, pages_remapped);
        events.emit(|| DeviceEvent::Reclaim(reclaim));
        if self.config.gc.wear_levelling_erases > 0 {
            self.level_wear(events, now, victim.0 / self.layout.slices_per_superblock);
        }
    }

    /// Counts a collection. `pages_remapped` pages left the victim without a copy.
    fn count_collection(&mut self, reclaim: &ReclaimRecord, pages_remapped: u32) {
        let stats = &mut self.state.stats;
        match reclaim.trigger {
            Trigger::Background => stats.background_collections += 1,
            Trigger::Foreground => stats.foreground_collections += 1,
            Trigger::Forced => stats.forced_collections += 1,
        }
        let row = stats.owner_mut(reclaim.victim_owner);
        row.gc_pages_copied += u64::from(reclaim.pages_copied);
        row.blocks_remapped += u64::from(reclaim.blocks_remapped);
        row.pages_remapped += u64::from(pages_remapped);
        row.units_reclaimed += 1;
        row.pages_erased += u64::from(reclaim.unit_pages - pages_remapped);
        row.valid_pages_reclaimed += u64::from(reclaim.valid_pages);
        stats.owner_mut(reclaim.destination_owner).gc_pages_received += u64::from(reclaim.pages_copied);
    }

    /// Copies the valid pages of a victim to the destination's reclaim unit, in batches whose cache
    /// misses overlap. Returns the moved pages that the event of the collection reports. `None` if
    /// the sink receives no events.
    fn copy_valid(
        &mut self,
        events: &mut EventEmitter<'_>,
        group: RgId,
        victim: RuId,
        destination: UnitOwner,
        pages_to_copy: u32,
    ) -> Option<MovedRun> {
        /// Number of pages of a batch. The last bitmap word may exceed it.
        const BATCH_PAGES: u32 = 512;
        let ReclaimUnit { pages, .. } = self.state.units[victim.index()];
        let first = victim.0 * self.layout.slice_pages;
        let end = first + pages;
        let mut moving = std::mem::take(&mut self.moving);
        assert!(pages_to_copy <= pages, "reclaim unit {} exceeds its size", victim.0);
        let mut copied = 0;
        let mut reporter =
            ReportedPagePicker::new(self.config.events.reported_page, pages_to_copy, self.draw_for_report(victim));
        let mut cursor = self.maps.cursor(Ppn(first));
        while copied < pages_to_copy {
            moving.clear();
            let mut gathered = 0;
            while cursor.is_before(end) && gathered < BATCH_PAGES {
                gathered += self.maps.gather(&mut cursor, first, end, &mut moving);
            }
            assert!(gathered > 0, "reclaim unit {} holds fewer valid pages than it counts", victim.0);
            events.copied(&moving, &mut reporter);
            self.append_copies(events, group, victim, destination, &mut moving, gathered);
            copied += gathered;
        }
        assert_eq!(copied, pages_to_copy, "reclaim unit {} holds more valid pages than it counts", victim.0);
        self.moving = moving;
        reporter.finish()
    }

    /// Random number derived from each collection instead of `state.random`, so that reports have
    /// no influence on victim selection.
    fn draw_for_report(&self, victim: RuId) -> u64 {
        let seed = self.config.seed ^ self.state.host_pages_written.rotate_left(32) ^ u64::from(victim.0);
        Xoshiro256PlusPlus::seed_from_u64(seed).next_u64()
    }

    /// Copies runs of valid pages of a victim, `pages` in total.
    fn append_copies(
        &mut self,
        events: &mut EventEmitter<'_>,
        group: RgId,
        victim: RuId,
        destination: UnitOwner,
        mut runs: &mut [MappedRun],
        mut pages: u32,
    ) {
        let class = self.state.units[victim.index()].class;
        let owner = self.owner_index(destination);
        while pages > 0 {
            let open = self.collection_unit(events, group, destination, class);
            let here = pages.min(open.run_end - open.position);
            let (unit, position) = (open.unit, open.position);
            assert!(here > 0, "copies to reclaim unit {} make no progress", unit.0);
            assert_ne!(unit, victim, "reclaim unit {} is copied into itself", unit.0);
            let run_ends = self.copies_slot(group, owner).as_mut().expect("just taken").advance(here);
            let whole_runs = if here == pages { runs.len() } else { runs_within(runs, here) };
            let (whole, left) = runs.split_at_mut(whole_runs);
            let to = Ppn(self.first_page(unit).0 + position);
            let placed = self.maps.relocate(whole, to);
            // Splits the run that does not fit completely. Its rest goes to the next reclaim unit
            // or run.
            let part = (placed < here).then(|| left[0].take_front(here - placed));
            if let Some(part) = part {
                self.maps.relocate(&[part], Ppn(to.0 + placed));
            }
            assert!(self.takes_copies(unit), "reclaim unit {} takes copies and is not open for them", unit.0);
            let entry = &mut self.state.units[unit.index()];
            entry.valid_pages += here;
            assert!(entry.valid_pages <= entry.pages, "reclaim unit {} exceeds its size", unit.0);
            entry.last_write = self.state.host_pages_written;
            if self.timing.is_some() {
                self.copy_in_time(victim, whole.iter().chain(&part), unit, position);
            }
            if run_ends {
                self.end_collection_run(events, group, destination);
            }
            runs = left;
            pages -= here;
        }
    }

    /// Reclaim unit that takes an owner's copies. Opens one for a victim of `class` if the owner
    /// has none.
    fn collection_unit(
        &mut self,
        events: &mut EventEmitter<'_>,
        group: RgId,
        owner: UnitOwner,
        class: u8,
    ) -> &mut OpenUnit {
        let index = self.owner_index(owner);
        if self.copies_slot(group, index).is_none() {
            self.open_for_collection(events, group, owner, class);
        }
        self.copies_slot(group, index).as_mut().expect("a reclaim unit for copies was opened if there was none")
    }

    /// Handles the end of a run of a reclaim unit for copies. Continues with the next run or closes
    /// the unit.
    fn end_collection_run(&mut self, events: &mut EventEmitter<'_>, group: RgId, owner: UnitOwner) {
        let index = self.owner_index(owner);
        let open = self.copies_slot(group, index).take();
        let mut open = open.expect("a run ends in an open reclaim unit");
        let class = self.layout.classes[usize::from(self.unit(open.unit).class)];
        if open.find_run(class, self.layout.program_unit_pages) {
            *self.copies_slot(group, index) = Some(open);
        } else {
            self.close(events, &open, CloseReason::Full);
        }
    }

    /// Moves the fully valid blocks of a victim into the destination's reclaim unit by exchanging
    /// physical blocks. The data stays in its block, and no page is programmed. Only unwritten
    /// places of the destination can be exchanged, and only between reclaim units of the same size.
    /// Returns the places of the blocks, which are now blank in the victim.
    fn remap_full_blocks(
        &mut self,
        events: &mut EventEmitter<'_>,
        group: RgId,
        victim: RuId,
        destination: UnitOwner,
    ) -> Vec<u32> {
        let entry = &self.state.units[victim.index()];
        let class_index = entry.class;
        let class = self.layout.classes[usize::from(class_index)];
        if !self.config.gc.block_remapping || entry.valid_pages < self.layout.block_pages {
            return Vec::new();
        }
        let full = self.full_blocks(victim, class);
        if full.is_empty() {
            return Vec::new();
        }
        let (program_unit_pages, block_pages) = (self.layout.program_unit_pages, self.layout.block_pages);
        let open = self.collection_unit(events, group, destination, class_index);
        let (unit, position) = (open.unit, open.position);
        if self.state.units[unit.index()].class != class_index {
            return Vec::new();
        }
        let open = self.collection_unit(events, group, destination, class_index);
        let untouched = |block: &u32| {
            position <= block * program_unit_pages && !open.remapped.get(index(*block)).is_some_and(|taken| *taken)
        };
        let blocks: Vec<u32> = full.into_iter().filter(untouched).collect();
        if blocks.is_empty() {
            return Vec::new();
        }
        open.remapped.resize(index(class.blocks), false);
        for &block in &blocks {
            open.remapped[index(block)] = true;
        }
        let pages = count(blocks.len()) * block_pages;
        open.written += pages;
        assert!(open.written <= class.pages, "reclaim unit {} takes more blocks than it has places for", unit.0);
        for &block in &blocks {
            self.exchange_block(victim, unit, block, class);
        }
        let host_pages_written = self.state.host_pages_written;
        let entry = &mut self.state.units[unit.index()];
        entry.valid_pages += pages;
        assert!(entry.valid_pages <= entry.pages, "reclaim unit {} exceeds its size", unit.0);
        entry.last_write = host_pages_written;
        self.end_collection_run(events, group, destination);
        blocks
    }

    /// Places of the blocks of a reclaim unit whose pages are all valid.
    fn full_blocks(&self, unit: RuId, class: SizeClass) -> Vec<u32> {
        let first = unit.0 * self.layout.slice_pages;
        let program_unit = self.layout.program_unit_pages;
        if program_unit == 1 {
            // A row has one page of each block, so the bitmap has a bit for each block.
            let mut full = Vec::new();
            for place in (0..class.blocks).step_by(64) {
                let blocks = (class.blocks - place).min(64);
                let mut bits = u64::MAX >> (64 - blocks);
                let mut row = first + place;
                while bits != 0 && row < first + class.pages {
                    bits &= self.maps.valid_bits(Ppn(row), blocks);
                    row += class.blocks;
                }
                while bits != 0 {
                    full.push(place + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
            return full;
        }
        let mut full: Vec<u32> = (0..class.blocks).collect();
        for row in 0..self.layout.block_pages / program_unit {
            full.retain(|block| {
                let ppn = Ppn(first + (row * class.blocks + block) * program_unit);
                self.maps.count_valid(ppn, program_unit) == program_unit
            });
            if full.is_empty() {
                break;
            }
        }
        full
    }

    /// Exchanges the physical blocks at one place of two reclaim units of the same class. The data
    /// moves with its block.
    fn exchange_block(&mut self, from: RuId, to: RuId, block: u32, class: SizeClass) {
        let (place_from, place_to) = (self.block_place(from, class) + block, self.block_place(to, class) + block);
        assert_ne!(place_from, place_to, "a block is exchanged with itself");
        assert_eq!(
            self.unit(from).class,
            self.unit(to).class,
            "blocks are exchanged between reclaim units of one size"
        );
        self.state.block_at.swap(place_from, place_to);
        let program_unit = self.layout.program_unit_pages;
        let mut runs = std::mem::take(&mut self.moving);
        for row in 0..self.layout.block_pages / program_unit {
            let offset = (row * class.blocks + block) * program_unit;
            let old = from.0 * self.layout.slice_pages + offset;
            let new = to.0 * self.layout.slice_pages + offset;
            runs.clear();
            let mut cursor = self.maps.cursor(Ppn(old));
            while cursor.is_before(old + program_unit) {
                self.maps.gather(&mut cursor, old, old + program_unit, &mut runs);
            }
            let moved = self.maps.relocate(&runs, Ppn(new));
            assert_eq!(moved, program_unit, "all pages of a block that is exchanged are valid");
            self.maps.clear_valid(Ppn(old), program_unit);
        }
        self.moving = runs;
    }

    /// Position of a reclaim unit's first block in the block tables.
    fn block_place(&self, unit: RuId, class: SizeClass) -> u32 {
        let superblock = unit.0 / self.layout.slices_per_superblock;
        let part = unit.0 % self.layout.slices_per_superblock / class.slices;
        superblock * self.layout.blocks_per_superblock + part * class.blocks
    }

    /// Erases the blocks of a reclaim unit, except the blank ones that remapping has moved into it.
    fn erase(&mut self, unit: RuId, blank_blocks: &[u32]) {
        let entry = &self.state.units[unit.index()];
        let class = self.layout.classes[usize::from(entry.class)];
        assert_eq!(entry.state, UnitState::Closed, "reclaim unit {} is erased while it takes pages", unit.0);
        assert!(blank_blocks.len() <= index(class.blocks), "reclaim unit {} has more blank blocks than blocks", unit.0);
        self.maps.erase(Ppn(unit.0 * self.layout.slice_pages), entry.pages);
        let first = self.block_place(unit, class);
        for place in (0..class.blocks).filter(|place| !blank_blocks.contains(place)) {
            let block = self.block_at_place(first + place);
            let erases = self.state.erase_counts[index(block)] + 1;
            self.state.erase_counts.set(block, erases);
        }
    }

    /// Physical block at a place of a reclaim unit.
    pub(super) fn block_of(&self, unit: RuId, place: u32) -> u32 {
        let class = self.layout.classes[usize::from(self.state.units[unit.index()].class)];
        assert!(place < class.blocks, "reclaim unit {} has no block {place}", unit.0);
        self.block_at_place(self.block_place(unit, class) + place)
    }

    /// Physical block at a place of the block tables.
    #[inline]
    fn block_at_place(&self, place: u32) -> u32 {
        self.state.block_at.get(index(place)).copied().unwrap_or(place)
    }

    /// Emergency collection. Empties the superblock with the most waste and closes the units that
    /// handles have open in it.
    ///
    /// Skips superblocks with a reclaim unit that takes copies. If none of the rest has an invalid
    /// or unwritten page, moves the parts of a partly free superblock to free parts of other
    /// superblocks. The layout guarantees that one of the two is possible whenever space is short.
    fn emergency_gc(&mut self, events: &mut EventEmitter<'_>, now: Nanos, group: RgId) {
        let first = u32::from(group.0) * self.layout.superblocks_per_group;
        let all = first..first + self.layout.superblocks_per_group;
        let usages: Vec<SuperblockUsage> = all.filter_map(|superblock| self.superblock_usage(superblock)).collect();
        let wasteful = usages.iter().filter(|usage| usage.waste_pages > 0);
        let most_waste = wasteful.max_by_key(|usage| (usage.waste_pages, std::cmp::Reverse(usage.superblock)));
        // The superblock with the fewest parts in use is then partly free itself.
        let can_join = |usage: &&SuperblockUsage| {
            let parts = index(self.layout.classes[usize::from(usage.class)].divisor);
            let partly_free = |other: &&SuperblockUsage| other.class == usage.class && other.units.len() < parts;
            usages.iter().filter(partly_free).count() > 1
        };
        let fewest_units = |usage: &&SuperblockUsage| (usage.units.len(), usage.superblock);
        let chosen = most_waste.or_else(|| usages.iter().filter(can_join).min_by_key(fewest_units));
        let chosen = chosen.expect("the layout guarantees something to reclaim when space is short");
        let (superblock, class, units) = (chosen.superblock, usize::from(chosen.class), chosen.units.clone());

        let in_superblock = |part: &u32| part / self.layout.slices_per_superblock == superblock;
        let members = &mut self.state.groups[group.index()];
        members.free_parts[class].retain(|part| !in_superblock(part));
        assert_eq!(members.draining, None, "two superblocks are emptied at once");
        members.draining = Some(superblock);
        for unit in units {
            self.close_for_emergency(events, now, group, unit);
            let destination = self.destination(events, group, self.state.units[unit.index()].owner);
            self.reclaim(events, now, unit, destination, Trigger::Forced, NO_POLICY);
        }
        self.state.groups[group.index()].draining = None;
        let parts_used = self.state.superblocks[index(superblock)].parts_used;
        assert_eq!(parts_used, 0, "superblock {superblock} was emptied and is in use");
    }

    /// Closes a reclaim unit before emergency collection if it is open for host data.
    fn close_for_emergency(&mut self, events: &mut EventEmitter<'_>, now: Nanos, group: RgId, unit: RuId) {
        let entry = &self.state.units[unit.index()];
        if entry.state != UnitState::OpenForHost {
            return;
        }
        let index = self.owner_index(entry.owner);
        let open = &mut self.state.groups[group.index()].owners[index].open;
        let slot = open.iter_mut().find(|slot| slot.as_ref().is_some_and(|open| open.unit == unit));
        let open = slot.and_then(Option::take).expect("an open reclaim unit belongs to a handle");
        self.close_in_time(now, &open);
        self.close(events, &open, CloseReason::RoomNeeded);
    }

    /// Contents of a superblock. `None` if it is free or takes copies.
    fn superblock_usage(&self, superblock: u32) -> Option<SuperblockUsage> {
        if self.state.superblocks[index(superblock)].parts_used == 0 {
            return None;
        }
        let units: Vec<RuId> = self.units_in_use(superblock).collect();
        if units.iter().any(|unit| self.takes_copies(*unit)) {
            return None;
        }
        assert_eq!(
            units.len(),
            index(self.state.superblocks[index(superblock)].parts_used),
            "superblock {superblock} counts other parts than are in use"
        );
        let waste_pages = units.iter().map(|unit| self.unit(*unit).invalid_pages()).sum();
        Some(SuperblockUsage { superblock, class: self.state.superblocks[index(superblock)].class, units, waste_pages })
    }
}

/// Number of leading runs that have at most `pages` pages in total.
fn runs_within(runs: &[MappedRun], pages: u32) -> usize {
    let ends = runs.iter().scan(0, |end, run| {
        *end += run.pages;
        Some(*end)
    });
    ends.take_while(|end| *end <= pages).count()
}

struct SuperblockUsage {
    superblock: u32,
    class: u8,
    units: Vec<RuId>,
    /// Invalid and unwritten pages of its reclaim units.
    waste_pages: u32,
}
