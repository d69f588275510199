//! What a host's commands do to the maps: writing extents and deallocating them.

use crate::cast::{index, narrow};
use crate::device::{Engine, Write};
use crate::error::HostError;
use crate::event::{Event, Events};
use crate::timing::Completion;
use crate::types::{Lpn, Nanos, Placement, Ppn, RgId, RuId};

impl Engine {
    pub(super) fn write(
        &mut self,
        events: &mut Events<'_>,
        now: Nanos,
        write: &Write,
    ) -> Result<Completion, HostError> {
        self.check_write(write)?;
        Ok(self.write_checked(events, now, write))
    }

    pub(super) fn write_batch(
        &mut self,
        events: &mut Events<'_>,
        now: Nanos,
        writes: &[Write],
    ) -> Result<Completion, HostError> {
        /// Enough to hide a cache miss behind the others, few enough to stay in the first-level cache.
        const TOGETHER: usize = 32;
        let mut checked = None;
        for write in writes {
            self.check_extent(write.first, write.pages)?;
            // Mostly they are all of one placement.
            if checked != Some(write.placement) {
                self.check_placement(write.placement)?;
                checked = Some(write.placement);
            }
        }
        let mut done = Completion::now(now);
        self.prefetch_entries(&writes[..writes.len().min(TOGETHER)]);
        let mut left = writes;
        while !left.is_empty() {
            let (together, later) = left.split_at(left.len().min(TOGETHER));
            // What comes after these is on its way while these are carried out.
            self.prefetch_entries(&later[..later.len().min(TOGETHER)]);
            self.maps.prefetch_valid(together.iter().map(|write| write.first));
            done = done.and(self.write_together(events, now, together));
            left = later;
        }
        Ok(done)
    }

    /// Asks for the entries of the L2P map that writes will change.
    #[inline]
    fn prefetch_entries(&self, writes: &[Write]) {
        /// Entries in a line of the cache.
        const LINE_ENTRIES: usize = 16;
        self.maps.prefetch_places(writes.iter().map(|write| write.first));
        for write in writes.iter().filter(|write| write.pages > 1) {
            let lines = (write.first.0..write.first.0 + write.pages).step_by(LINE_ENTRIES);
            let last = Lpn(write.first.0 + write.pages - 1);
            self.maps
                .prefetch_places(lines.skip(1).take(LINE_ENTRIES).map(Lpn).chain([last]));
        }
    }

    /// Carries out writes one after the other.
    fn write_together(&mut self, events: &mut Events<'_>, now: Nanos, writes: &[Write]) -> Completion {
        let mut done = Completion::now(now);
        let mut left = writes;
        while let Some(first) = left.first() {
            let mut carried_out = self.append_together(events, now, left);
            if carried_out == 0 {
                done = done.and(self.write_checked(events, now, first));
                carried_out = 1;
            }
            left = &left[carried_out..];
        }
        done
    }

    /// Carries out the writes from the first on, as far as they are of one placement, the reclaim unit that it has open takes all of them, and
    /// nothing is collected in between: the same as [`Engine::write_checked`] on each, but what is the same for all of them is done
    /// once. Returns how many there were; none where times, a choice of reclaim units or their turns make each write another case.
    fn append_together(&mut self, events: &mut Events<'_>, now: Nanos, writes: &[Write]) -> usize {
        let placement = writes[0].placement;
        let Placement { group, handle } = placement;
        let takes_turns = self.layout.handles[handle.index()].open_reclaim_units > 1;
        if takes_turns || self.timing.is_some() || self.state.recency.is_some() {
            return 0;
        }
        let members = &self.state.groups[group.index()];
        let room = self.layout.group_live_pages_max - members.live_pages;
        let background = members.free_slices <= self.layout.background_free_slices;
        let Some(open) = &members.owners[handle.index()].open[0] else {
            return 0;
        };
        let unit = open.unit;
        let first = self.first_page(unit).0 + open.position;
        let pages_max = narrow(room.min(u64::from(open.run_end - open.position)));
        let fits = |write: &&Write| write.placement == placement;
        let singles = writes
            .iter()
            .take(index(pages_max))
            .take_while(|write| fits(write) && write.pages == 1);
        let (carried_out, pages) = match singles.count() {
            0 => {
                let (mut carried_out, mut pages) = (0, 0);
                for write in writes.iter().take_while(fits) {
                    if write.pages > pages_max - pages {
                        break;
                    }
                    self.append(group, unit, Ppn(first + pages), write.first, write.pages);
                    pages += write.pages;
                    carried_out += 1;
                    if background && self.state.groups[group.index()].lazy_units > 0 {
                        break;
                    }
                }
                (carried_out, pages)
            }
            singles => {
                let pages = self.append_pages(group, unit, Ppn(first), &writes[..singles], background);
                (index(pages), pages)
            }
        };
        if carried_out == 0 {
            return 0;
        }
        let carried_out_writes = &writes[..carried_out];
        events.host_writes(carried_out_writes);
        let host_bytes = carried_out_writes.iter().map(|write| write.host_bytes).sum::<u64>();
        self.end_append(group, unit);
        let row = &mut self.state.stats.handles[handle.index()];
        row.host_bytes_written += host_bytes;
        row.host_pages_written += u64::from(pages);
        let open = self.state.groups[group.index()].owners[handle.index()].open[0].as_mut();
        if open.expect("it was open").advance(pages) {
            self.end_host_run(events, now, placement, 0);
        }
        self.collect_in_background(events, now, group);
        carried_out
    }

    /// Maps writes of a page each to the pages of an open reclaim unit from `first` on, as [`Engine::append`] does one after the other;
    /// returns how many: all of them, or up to the first that makes a lazy candidate, if that is to be seen to (`until_lazy`).
    fn append_pages(&mut self, group: RgId, unit: RuId, first: Ppn, writes: &[Write], until_lazy: bool) -> u32 {
        let host_pages_written = self.state.host_pages_written;
        let (mut pages, mut counted) = (0, 0);
        for write in writes {
            let before = self.maps.move_page(write.first, Ppn(first.0 + pages));
            if before != Ppn::UNMAPPED {
                if before.0.wrapping_sub(first.0) < pages {
                    // It was one of these writes.
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
        self.state.units[unit.index()].valid_pages += pages;
        self.state.groups[group.index()].live_pages += u64::from(pages);
    }

    /// Maps an extent to the next pages of an open reclaim unit, `at`; where it was before becomes invalid.
    #[inline(always)]
    fn append(&mut self, group: RgId, unit: RuId, at: Ppn, lpn: Lpn, pages: u32) {
        self.invalidate(lpn, pages);
        self.maps.map(lpn, at, pages);
        self.state.host_pages_written += u64::from(pages);
        self.state.units[unit.index()].valid_pages += pages;
        self.state.groups[group.index()].live_pages += u64::from(pages);
    }

    /// What holds after extents were appended to a reclaim unit.
    #[inline]
    fn end_append(&mut self, group: RgId, unit: RuId) {
        let entry = &mut self.state.units[unit.index()];
        assert!(
            entry.valid_pages <= entry.pages,
            "reclaim unit {} holds more than it can",
            unit.0
        );
        entry.last_write = self.state.host_pages_written;
        assert!(
            self.state.groups[group.index()].live_pages <= self.layout.group_live_pages_max,
            "group {} holds more than it may",
            group.0
        );
    }

    pub(super) fn deallocate(
        &mut self,
        events: &mut Events<'_>,
        now: Nanos,
        first: Lpn,
        pages: u32,
    ) -> Result<Completion, HostError> {
        self.check_extent(first, pages)?;
        let mapped = self.invalidate(first, pages);
        self.maps.unmap(first, pages);
        assert!(mapped <= pages, "{mapped} of {pages} pages were mapped");
        self.state.stats.pages_deallocated += u64::from(mapped);
        events.command(|| Event::Deallocate { pages: mapped });
        Ok(self.command(now))
    }

    #[inline]
    pub(super) fn check_write(&self, write: &Write) -> Result<(), HostError> {
        self.check_extent(write.first, write.pages)?;
        self.check_placement(write.placement)
    }

    #[inline]
    pub(super) fn check_extent(&self, first: Lpn, pages: u32) -> Result<(), HostError> {
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

    fn write_checked(&mut self, events: &mut Events<'_>, now: Nanos, write: &Write) -> Completion {
        let row = &mut self.state.stats.handles[write.placement.handle.index()];
        row.host_bytes_written += write.host_bytes;
        row.host_pages_written += u64::from(write.pages);
        events.host_writes(std::slice::from_ref(write));
        // Without timing nothing of it is compiled into the loop.
        let (group, done) = match &self.timing {
            None => (
                self.write_extent(events, now, write, |_, _, _, _| {}),
                Completion::now(now),
            ),
            Some(_) => self.write_extent_in_time(events, now, write),
        };
        let owner = &mut self.state.groups[group.index()].owners[write.placement.handle.index()];
        let taking_turns = usize::from(self.layout.handles[write.placement.handle.index()].open_reclaim_units);
        if taking_turns > 1 {
            owner.turn = (owner.turn + 1) % taking_turns;
        }
        if let Some(recency) = &mut self.state.recency {
            recency.wrote(write.first, write.pages);
        }
        self.collect_in_background(events, now, group);
        done
    }

    #[inline(never)]
    fn write_extent_in_time(&mut self, events: &mut Events<'_>, now: Nanos, write: &Write) -> (RgId, Completion) {
        let mut writing = self.begin_write(now, write);
        let group = self.write_extent(events, now, write, |device, unit, position, pages| {
            device.append_in_time(&mut writing, unit, position, pages);
        });
        (group, self.end_write(writing))
    }

    /// Places and maps an extent, and tells `appended` each reclaim unit, position and number of pages; returns the
    /// group that took its last page.
    #[inline]
    fn write_extent(
        &mut self,
        events: &mut Events<'_>,
        now: Nanos,
        write: &Write,
        mut appended: impl FnMut(&mut Self, RuId, u32, u32),
    ) -> RgId {
        let handle = write.placement.handle;
        let mut group = write.placement.group;
        let (mut lpn, mut left) = (write.first, write.pages);
        while left > 0 {
            let mut pages = left;
            if self.layout.groups > 1 {
                (group, pages) = self.group_with_room(write.placement.group, left);
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
            self.append(group, unit, Ppn(self.first_page(unit).0 + position), lpn, pages);
            self.end_append(group, unit);
            if group != write.placement.group {
                self.state.stats.pages_redirected += u64::from(pages);
                events.emit(|| Event::Redirect {
                    from: write.placement.group,
                    to: group,
                    pages,
                });
            }
            appended(self, unit, position, pages);
            if run_ends {
                self.end_host_run(events, now, Placement { group, handle }, slot);
            }
            lpn.0 += pages;
            left -= pages;
        }
        group
    }

    /// The group asked for if it can hold more, otherwise the one with the most room; and how many pages it can take.
    fn group_with_room(&self, asked: RgId, pages: u32) -> (RgId, u32) {
        let room = |group: usize| self.layout.group_live_pages_max - self.state.groups[group].live_pages;
        let mut group = asked.index();
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
        (RgId::of(group), narrow(u64::from(pages).min(room(group))))
    }

    /// Marks the physical pages of an extent invalid; returns how many there were.
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
            let unit = self.unit_of(ppn);
            let entry = &mut self.state.units[unit.index()];
            // The layout keeps the numbers of pages below 2^32.
            let pages = left.min(unit.0 * self.layout.slice_pages + entry.pages - ppn.0);
            assert!(pages > 0, "{ppn:?} is invalidated behind the end of its reclaim unit");
            let before = entry.valid_pages;
            assert!(
                pages <= before,
                "reclaim unit {} loses more valid pages than it holds",
                unit.0
            );
            entry.valid_pages -= pages;
            let group = usize::from(entry.group);
            if entry.valid_pages < entry.watch {
                let (owner, class) = (entry.owner, usize::from(entry.class));
                let owner = self.owner_index(owner);
                let now = self.state.host_pages_written;
                let members = &mut self.state.groups[group];
                let becomes_lazy = members.closed[owner][class].update(&mut self.state.units, unit.0, before, now);
                members.lazy_units += u64::from(becomes_lazy);
            }
            let live_pages = &mut self.state.groups[group].live_pages;
            assert!(
                *live_pages >= u64::from(pages),
                "group {group} loses more pages than it holds"
            );
            *live_pages -= u64::from(pages);
            self.maps.clear_valid(ppn, pages);
            ppn.0 = ppn.0.wrapping_add(pages);
            left -= pages;
        }
    }
}
