//! Host commands that change the maps: writing and deallocating extents.

use crate::cast::{index, narrow};
use crate::device::engine::DeviceCore;
use crate::error::HostError;
use crate::event::{DeviceEvent, EventEmitter};
use crate::recency::RecencyWindow;
use crate::timing::{CompletionTime, WriteProgress};
use crate::types::{Lpn, Nanos, Placement, Ppn, RgId, RuId, RuhId, UnitOwner, WriteRequest};

impl DeviceCore {
    pub(super) fn write(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        write: &WriteRequest,
    ) -> Result<CompletionTime, HostError> {
        self.check_write(write)?;
        Ok(self.write_checked(events, now, write))
    }

    pub(super) fn write_batch(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        writes: &[WriteRequest],
    ) -> Result<CompletionTime, HostError> {
        /// Enough writes for their cache misses to overlap, and few enough to stay in the
        /// first-level cache.
        const BATCH_WRITES: usize = 32;
        let mut checked = None;
        for write in writes {
            self.check_extent(write.first, write.pages)?;
            // Usually all writes have the same placement.
            if checked != Some(write.placement) {
                self.check_placement(write.placement)?;
                checked = Some(write.placement);
            }
        }
        let mut done = CompletionTime::now(now);
        self.prefetch_entries(&writes[..writes.len().min(BATCH_WRITES)]);
        let mut left = writes;
        while !left.is_empty() {
            let (batch, later) = left.split_at(left.len().min(BATCH_WRITES));
            // Prefetches the next writes while the current ones execute.
            self.prefetch_entries(&later[..later.len().min(BATCH_WRITES)]);
            self.maps.prefetch_valid(batch.iter().map(|write| write.first));
            done = done.and(self.write_in_batches(events, now, batch));
            left = later;
        }
        Ok(done)
    }

    /// Prefetches the L2P entries that writes will change.
    #[inline]
    fn prefetch_entries(&self, writes: &[WriteRequest]) {
        /// Number of entries in a cache line.
        const LINE_ENTRIES: usize = 16;
        self.maps.prefetch_places(writes.iter().map(|write| write.first));
        for write in writes.iter().filter(|write| write.pages > 1) {
            let lines = (write.first.0..write.first.0 + write.pages).step_by(LINE_ENTRIES);
            let last = Lpn(write.first.0 + write.pages - 1);
            self.maps.prefetch_places(lines.skip(1).take(LINE_ENTRIES).map(Lpn).chain([last]));
        }
    }

    /// Executes writes in order. Batches those that [`DeviceCore::append_batch`] can execute
    /// together.
    fn write_in_batches(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        writes: &[WriteRequest],
    ) -> CompletionTime {
        let mut done = CompletionTime::now(now);
        let mut left = writes;
        while let Some(first) = left.first() {
            let is_batch = left.get(1).is_some_and(|next| next.placement == first.placement);
            let appended = if is_batch && self.timing.is_none() && self.has_single_open_unit(first.placement) {
                self.append_batch(events, left)
            } else {
                None
            };
            let executed = if let Some(appended) = appended {
                self.end_batch(events, now, first.placement, &appended);
                appended.writes
            } else {
                done = done.and(self.write_checked(events, now, first));
                1
            };
            left = &left[executed..];
        }
        done
    }

    /// Executes writes at times that do not decrease. Equivalent to [`DeviceCore::write_checked`]
    /// on each.
    pub(super) fn write_in_times(
        &mut self,
        events: &mut EventEmitter<'_>,
        times: &[Nanos],
        writes: &[WriteRequest],
        done: &mut Vec<CompletionTime>,
    ) {
        assert!(times.is_sorted(), "times of commands do not go back");
        let done_before = done.len();
        let (mut times, mut left) = (times, writes);
        while let (Some(first), Some(now)) = (left.first(), times.first()) {
            let executed = if let Some(appended) = self.append_page_batch(events, left) {
                let batch_times = &times[..appended.writes];
                self.append_pages_in_time(batch_times, appended.unit, appended.position, done);
                let last = batch_times.last().expect("a write has at least one extent");
                self.end_batch(events, *last, first.placement, &appended);
                appended.writes
            } else {
                done.push(self.write_checked(events, *now, first));
                1
            };
            (times, left) = (&times[executed..], &left[executed..]);
        }
        assert_eq!(done.len() - done_before, writes.len(), "each write has a completion");
    }

    /// Same as [`DeviceCore::append_batch`], for writes of one whole page each on a device with
    /// timing. Not applicable if timing has random components.
    fn append_page_batch(&mut self, events: &mut EventEmitter<'_>, writes: &[WriteRequest]) -> Option<AppendResult> {
        let has_random_times = self.timing.as_ref().is_none_or(|timing| timing.has_tails());
        if has_random_times || !self.has_single_open_unit(writes[0].placement) {
            return None;
        }
        let page_bytes = self.layout.page_bytes;
        let is_page = |write: &&WriteRequest| write.pages == 1 && write.host_bytes == page_bytes;
        let pages = writes.iter().take_while(is_page).count();
        match pages {
            0 => None,
            _ => self.append_batch(events, &writes[..pages]),
        }
    }

    /// Returns true if the handle has a single open reclaim unit, so that all writes of a placement
    /// take the same path.
    #[inline]
    fn has_single_open_unit(&self, placement: Placement) -> bool {
        let rotates = self.layout.handles[placement.handle.index()].open_reclaim_units > 1;
        !rotates && self.state.recency.is_none() && self.state.absorbing.is_none()
    }

    /// Executes the longest prefix of writes with one placement that fits into its open reclaim
    /// unit without a collection in between. Equivalent to [`DeviceCore::write_checked`] on each,
    /// but executes the common steps once. The caller handles timing and then calls
    /// [`DeviceCore::end_batch`]. Returns `None` if the prefix is empty.
    fn append_batch(&mut self, events: &mut EventEmitter<'_>, writes: &[WriteRequest]) -> Option<AppendResult> {
        let placement = writes[0].placement;
        let Placement { group, handle } = placement;
        assert!(self.has_single_open_unit(placement), "writes of handle {} alternate between reclaim units", handle.0);
        let members = &self.state.groups[group.index()];
        let group_free_pages = self.layout.group_live_pages_max - members.live_pages;
        let background = members.free_slices <= self.layout.background_free_slices;
        let open = members.owners[handle.index()].open[0].as_ref()?;
        let (unit, position) = (open.unit, open.position);
        let first = self.first_page(unit).0 + position;
        let pages_max = narrow(group_free_pages.min(u64::from(open.run_end - open.position)));
        let same_placement = |write: &&WriteRequest| write.placement == placement;
        let singles =
            writes.iter().take(index(pages_max)).take_while(|write| same_placement(write) && write.pages == 1);
        let (executed, pages) = match singles.count() {
            0 => {
                let (mut executed, mut pages) = (0, 0);
                for write in writes.iter().take_while(same_placement) {
                    if write.pages > pages_max - pages {
                        break;
                    }
                    self.append(group, unit, Ppn(first + pages), write.first, write.pages);
                    pages += write.pages;
                    executed += 1;
                    if background && self.state.groups[group.index()].lazy_units > 0 {
                        break;
                    }
                }
                (executed, pages)
            }
            singles => {
                let pages = self.append_pages(group, unit, Ppn(first), &writes[..singles], background);
                (index(pages), pages)
            }
        };
        if executed == 0 {
            return None;
        }
        assert!(
            pages <= pages_max,
            "the batch has {pages} pages, but reclaim unit {} has space for {pages_max}",
            unit.0
        );
        let appended_writes = &writes[..executed];
        events.host_writes(appended_writes);
        let host_bytes = appended_writes.iter().map(|write| write.host_bytes).sum::<u64>();
        self.end_append(group, unit);
        let row = &mut self.state.stats.handles[handle.index()];
        row.host_bytes_written += host_bytes;
        row.host_pages_written += u64::from(pages);
        let open = self.state.groups[group.index()].owners[handle.index()].open[0].as_mut();
        Some(AppendResult {
            writes: executed,
            unit,
            position,
            run_ends: open.expect("the reclaim unit was open").advance(pages),
        })
    }

    /// Final steps after a batch of appended writes.
    fn end_batch(&mut self, events: &mut EventEmitter<'_>, now: Nanos, placement: Placement, appended: &AppendResult) {
        if appended.run_ends {
            self.end_host_run(events, now, placement, 0);
        }
        self.collect_in_background(events, now, placement.group);
    }

    /// Maps single-page writes to the pages of an open reclaim unit from `first` on. Equivalent to
    /// [`DeviceCore::append`] for each. Returns the number of executed writes. With `until_lazy` it
    /// stops after the first write if the group then has a candidate of background collection.
    fn append_pages(&mut self, group: RgId, unit: RuId, first: Ppn, writes: &[WriteRequest], until_lazy: bool) -> u32 {
        let host_pages_written = self.state.host_pages_written;
        let (mut pages, mut counted) = (0, 0);
        for write in writes {
            let before = self.maps.move_page(write.first, Ppn(first.0 + pages));
            if before != Ppn::UNMAPPED {
                if before.0.wrapping_sub(first.0) < pages {
                    // An earlier write of this batch wrote the page.
                    self.count_appended(group, unit, Ppn(first.0 + counted), pages - counted);
                    counted = pages;
                }
                self.state.host_pages_written = host_pages_written + u64::from(pages);
                self.invalidate_physical(before, 1);
            }
            pages += 1;
            if until_lazy && self.state.groups[group.index()].lazy_units > 0 {
                break;
            }
        }
        self.state.host_pages_written = host_pages_written + u64::from(pages);
        self.count_appended(group, unit, Ppn(first.0 + counted), pages - counted);
        let lpns = writes[..index(pages)].iter().map(|write| write.first);
        self.maps.end_moves(first, lpns);
        pages
    }

    /// Counts pages that were appended to an open reclaim unit, and marks them valid.
    #[inline]
    fn count_appended(&mut self, group: RgId, unit: RuId, first: Ppn, pages: u32) {
        self.maps.set_valid(first, pages);
        self.add_valid_pages(group, unit, pages);
    }

    /// Maps an extent to the pages of an open reclaim unit from `at` on. Invalidates the old pages.
    #[inline(always)]
    fn append(&mut self, group: RgId, unit: RuId, at: Ppn, lpn: Lpn, pages: u32) {
        self.invalidate(lpn, pages);
        self.maps.map(lpn, at, pages);
        self.count_written(group, unit, pages);
    }

    /// Counts host pages that were appended to an open reclaim unit.
    #[inline(always)]
    pub(super) fn count_written(&mut self, group: RgId, unit: RuId, pages: u32) {
        self.state.host_pages_written += u64::from(pages);
        self.add_valid_pages(group, unit, pages);
    }

    /// Adds valid pages to an open reclaim unit and its group.
    #[inline(always)]
    fn add_valid_pages(&mut self, group: RgId, unit: RuId, pages: u32) {
        self.state.units[unit.index()].valid_pages += pages;
        self.state.groups[group.index()].live_pages += u64::from(pages);
    }

    /// Updates and checks a reclaim unit after extents were appended to it.
    #[inline]
    fn end_append(&mut self, group: RgId, unit: RuId) {
        let entry = &mut self.state.units[unit.index()];
        assert!(entry.valid_pages <= entry.pages, "reclaim unit {} exceeds its size", unit.0);
        entry.last_write = self.state.host_pages_written;
        assert!(
            self.state.groups[group.index()].live_pages <= self.layout.group_live_pages_max,
            "group {} exceeds its maximum of valid pages",
            group.0
        );
    }

    pub(super) fn deallocate(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        first: Lpn,
        pages: u32,
    ) -> Result<CompletionTime, HostError> {
        self.check_extent(first, pages)?;
        let live_before = self.live_pages();
        let mapped = self.invalidate(first, pages);
        self.maps.unmap(first, pages);
        assert!(mapped <= pages, "{mapped} of {pages} pages were mapped");
        assert_eq!(self.live_pages() + u64::from(mapped), live_before, "the groups and the map lose the same pages");
        self.state.stats.pages_deallocated += u64::from(mapped);
        events.command(|| DeviceEvent::Deallocate { pages: mapped });
        Ok(self.command(now))
    }

    /// Rejects a write whose extent or placement does not exist.
    ///
    /// # Errors
    /// Same as [`Device::write`](crate::Device::write).
    #[inline]
    pub fn check_write(&self, write: &WriteRequest) -> Result<(), HostError> {
        self.check_extent(write.first, write.pages)?;
        self.check_placement(write.placement)
    }

    /// Rejects an extent that does not exist.
    ///
    /// # Errors
    /// Same as [`DeviceCore::read`].
    #[inline]
    pub fn check_extent(&self, first: Lpn, pages: u32) -> Result<(), HostError> {
        let capacity = self.layout.logical_pages;
        if pages == 0 || first.0 >= capacity || pages > capacity - first.0 {
            return Err(HostError::OutOfRange { first: first.0, pages, capacity });
        }
        Ok(())
    }

    #[inline]
    pub(super) fn check_placement(&self, Placement { group, handle }: Placement) -> Result<(), HostError> {
        if group.0 < self.layout.groups && handle.index() < self.layout.handles.len() {
            return Ok(());
        }
        Err(HostError::InvalidPlacement {
            group: group.0,
            handle: handle.0,
            groups: self.layout.groups,
            handles: self.layout.handle_count(),
        })
    }

    #[inline]
    fn write_checked(&mut self, events: &mut EventEmitter<'_>, now: Nanos, write: &WriteRequest) -> CompletionTime {
        // Two instances of `write_placed`, so that the one without timing contains no timing code.
        let (group, done) = match &self.timing {
            None => (self.write_placed(events, now, write, &mut UntimedWriter), CompletionTime::now(now)),
            Some(_) => self.write_in_time(events, now, write),
        };
        self.collect_in_background(events, now, group);
        done
    }

    #[inline(never)]
    fn write_in_time(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        write: &WriteRequest,
    ) -> (RgId, CompletionTime) {
        let mut writing = self.begin_write(now, write);
        let group = self.write_placed(events, now, write, &mut writing);
        (group, self.end_write(writing))
    }

    /// Counts a write, allocates its pages and stores them through `writer`. Returns the group that
    /// took the last page.
    #[inline]
    fn write_placed(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        write: &WriteRequest,
        writer: &mut impl ExtentWriter,
    ) -> RgId {
        let row = &mut self.state.stats.handles[write.placement.handle.index()];
        row.host_bytes_written += write.host_bytes;
        row.host_pages_written += u64::from(write.pages);
        events.host_writes(std::slice::from_ref(write));
        let group = self.write_extent(events, now, write, writer);
        let owner = &mut self.state.groups[group.index()].owners[write.placement.handle.index()];
        let rotating_units = usize::from(self.layout.handles[write.placement.handle.index()].open_reclaim_units);
        if rotating_units > 1 {
            owner.turn = (owner.turn + 1) % rotating_units;
        }
        if let Some(recency) = &mut self.state.recency {
            recency.record_write(write.first, write.pages);
        }
        group
    }

    /// Allocates the pages of an extent and stores each part through `writer`. Returns the group
    /// that took the last page.
    #[inline]
    fn write_extent(
        &mut self,
        events: &mut EventEmitter<'_>,
        now: Nanos,
        write: &WriteRequest,
        writer: &mut impl ExtentWriter,
    ) -> RgId {
        let handle = write.placement.handle;
        let mut group = write.placement.group;
        let (mut lpn, mut left) = (write.first, write.pages);
        while left > 0 {
            let mut pages = left;
            if let Some(window) = &self.state.absorbing {
                let (absorbable, run) = self.absorbable_run(window, write.placement, lpn, left);
                if absorbable {
                    self.absorb(events, handle, run);
                    lpn.0 += run;
                    left -= run;
                    continue;
                }
                pages = run;
            }
            if self.layout.groups > 1 {
                (group, pages) = self.group_with_space(write.placement.group, pages);
            }
            let owner = &mut self.state.groups[group.index()].owners[handle.index()];
            let mut slot = owner.turn;
            if let Some(recency) = &self.state.recency {
                let (recent, run) = recency.run(lpn, pages);
                pages = run;
                if recent {
                    slot = owner.open.len() - 1;
                }
            }
            let Some(open) = owner.open[slot].as_mut() else {
                self.open_for_host(events, now, Placement { group, handle }, slot);
                continue;
            };
            let pages = pages.min(open.run_end - open.position);
            let (unit, position) = (open.unit, open.position);
            assert!(pages > 0, "a write to reclaim unit {} makes no progress", unit.0);
            let run_ends = open.advance(pages);
            writer.append(self, group, unit, position, lpn, pages);
            if let Some(window) = &mut self.state.absorbing {
                window.record_write(lpn, pages);
            }
            if group != write.placement.group {
                self.state.stats.pages_redirected += u64::from(pages);
                events.emit(|| DeviceEvent::Redirect { from: write.placement.group, to: group, pages });
            }
            if run_ends {
                self.end_host_run(events, now, Placement { group, handle }, slot);
            }
            lpn.0 += pages;
            left -= pages;
        }
        group
    }

    /// Returns true if the next write of a page replaces it in the write buffer, and the number of
    /// pages from it on in the same state, at most `pages`.
    ///
    /// A page waits in the buffer while it is among the last `absorption_pages` pages programmed for
    /// hosts. Absorbed pages are not programmed and do not count. A write is absorbed if the page is
    /// mapped and still in a reclaim unit of the requested handle and group.
    #[inline(never)]
    fn absorbable_run(&self, window: &RecencyWindow, placement: Placement, lpn: Lpn, pages: u32) -> (bool, u32) {
        let (mut absorbable, mut run) = (None, 0);
        while run < pages {
            let next = Lpn(lpn.0 + run);
            let (waits, part) = window.run(next, pages - run);
            let (is_absorbable, part) = match waits {
                true => (self.is_placed(next, placement), 1),
                false => (false, part),
            };
            if *absorbable.get_or_insert(is_absorbable) != is_absorbable {
                break;
            }
            run += part;
        }
        (absorbable.expect("an extent has a page"), run)
    }

    /// Returns true if a page is in a reclaim unit of a placement.
    fn is_placed(&self, lpn: Lpn, Placement { group, handle }: Placement) -> bool {
        self.lookup(lpn).is_some_and(|ppn| {
            let entry = self.unit(self.unit_of(ppn));
            entry.owner == UnitOwner::from_handle(handle) && entry.group == group.0
        })
    }

    /// Counts host pages that replace waiting ones.
    fn absorb(&mut self, events: &mut EventEmitter<'_>, handle: RuhId, pages: u32) {
        self.state.host_pages_written += u64::from(pages);
        self.state.stats.handles[handle.index()].host_pages_absorbed += u64::from(pages);
        events.command(|| DeviceEvent::Absorb { handle, pages });
    }

    /// Number of further valid pages that a group can take before it reaches its limit.
    fn group_free_pages(&self, group: RgId) -> u64 {
        self.layout.group_live_pages_max - self.state.groups[group.index()].live_pages
    }

    /// Returns the requested group if it has space, and if not the group with the most space. Also
    /// returns the number of pages that the group can take.
    fn group_with_space(&self, requested: RgId, pages: u32) -> (RgId, u32) {
        let mut group = requested;
        if self.group_free_pages(group) == 0 {
            let by_space =
                |a: &RgId, b: &RgId| self.group_free_pages(*a).cmp(&self.group_free_pages(*b)).then(b.cmp(a));
            group = (0..self.layout.groups).map(RgId).max_by(by_space).expect("a device has a group");
            assert!(
                self.group_free_pages(group) > 0,
                "all reclaim groups are full, but the layout guarantees space for every logical page"
            );
        }
        (group, narrow(u64::from(pages).min(self.group_free_pages(group))))
    }

    /// Marks the physical pages of an extent invalid. Returns their number.
    #[inline(always)]
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

    #[inline(always)]
    fn invalidate_physical(&mut self, mut ppn: Ppn, mut left: u32) {
        while left > 0 {
            let (unit, pages) = self.state.unit_part(self.slice_divisor, &self.layout, ppn, left);
            self.remove_valid_pages(unit, pages);
            self.maps.clear_valid(ppn, pages);
            ppn.0 = ppn.0.wrapping_add(pages);
            left -= pages;
        }
    }

    /// Removes valid pages from a reclaim unit and its group.
    #[inline(always)]
    fn remove_valid_pages(&mut self, unit: RuId, pages: u32) {
        let now = self.state.host_pages_written;
        let entry = &mut self.state.units[unit.index()];
        let before = entry.valid_pages;
        assert!(pages <= before, "reclaim unit {} loses more valid pages than it holds", unit.0);
        entry.valid_pages -= pages;
        let group = usize::from(entry.group);
        if entry.valid_pages < entry.watch {
            let (owner, class) = (entry.owner, usize::from(entry.class));
            let owner = self.owner_index(owner);
            let members = &mut self.state.groups[group];
            let becomes_lazy = members.closed[owner][class].update(&mut self.state.units, unit.0, before, now);
            members.lazy_units += u64::from(becomes_lazy);
        }
        let live_pages = &mut self.state.groups[group].live_pages;
        assert!(*live_pages >= u64::from(pages), "group {group} loses more pages than it holds");
        *live_pages -= u64::from(pages);
    }
}

/// Result of a batch of appended writes.
struct AppendResult {
    writes: usize,
    /// Reclaim unit of the writes, and the position of their first page.
    unit: RuId,
    position: u32,
    /// True if the writes reach the end of the current run of writable pages.
    run_ends: bool,
}

/// Writes parts of an extent to their allocated positions, with or without timing.
trait ExtentWriter {
    /// Stores logical pages at a position of an open reclaim unit.
    fn append(&mut self, engine: &mut DeviceCore, group: RgId, unit: RuId, position: u32, lpn: Lpn, pages: u32);
}

/// Stores pages without timing.
struct UntimedWriter;

impl ExtentWriter for UntimedWriter {
    #[inline(always)]
    fn append(&mut self, engine: &mut DeviceCore, group: RgId, unit: RuId, position: u32, lpn: Lpn, pages: u32) {
        let at = Ppn(engine.first_page(unit).0 + position);
        engine.append(group, unit, at, lpn, pages);
        engine.end_append(group, unit);
    }
}

impl ExtentWriter for WriteProgress {
    #[inline(always)]
    fn append(&mut self, engine: &mut DeviceCore, group: RgId, unit: RuId, position: u32, lpn: Lpn, pages: u32) {
        UntimedWriter.append(engine, group, unit, position, lpn, pages);
        engine.append_in_time(self, unit, position, pages);
    }
}
