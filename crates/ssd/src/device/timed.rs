//! Interface of the device to its timing model.

use super::engine::DeviceCore;
use super::open::OpenUnit;
use crate::config::DeviceConfig;
use crate::error::{ConfigError, HostError};
use crate::layout::DeviceLayout;
use crate::timing::{CompletionTime, PageLocation, TimingConfig, TimingModel, UnitPlace, WriteProgress};
use crate::types::{Lpn, MappedRun, Nanos, Ppn, RuId, WriteRequest};
use crate::unit::UnitState;

impl DeviceCore {
    /// Lower bound of the completion time of a write submitted at `now`. The caller can submit all
    /// writes until then together ([`Device::write_at_times`](crate::Device::write_at_times)).
    /// Returns `now` without timing.
    #[inline]
    pub fn soonest_write(&self, now: Nanos) -> Nanos {
        let timing = self.timing.as_ref();
        timing.map_or(now, |timing| timing.soonest_write(now, self.state.absorbing.is_none()))
    }

    /// Lower bound of the completion time of a read submitted at `now`. Returns `now` without
    /// timing.
    #[inline]
    pub fn soonest_read(&self, now: Nanos) -> Nanos {
        let timing = self.timing.as_ref();
        timing.map_or(now, |timing| timing.soonest_read(now))
    }

    /// Number of unmapped pages read since the device was created, loaded or given a timing. 0
    /// without timing.
    pub fn unmapped_pages_read(&self) -> u64 {
        self.timing.as_ref().map_or(0, |timing| timing.unmapped_pages_read())
    }

    /// Completion of a command without flash operations, which takes only controller time.
    pub fn command(&mut self, now: Nanos) -> CompletionTime {
        match &mut self.timing {
            Some(timing) => timing.command(now),
            None => CompletionTime::now(now),
        }
    }

    /// Replaces the timing. The drive becomes idle.
    ///
    /// # Errors
    /// The configuration with this timing is invalid.
    pub fn set_timing(&mut self, timing: Option<TimingConfig>) -> Result<(), ConfigError> {
        let config = DeviceConfig { timing, ..self.config.clone() };
        DeviceLayout::new(&config)?;
        self.timing = TimingModel::new(&config, &self.layout);
        self.config = config;
        self.resume_in_time();
        Ok(())
    }

    /// Reads an extent. Changes no data, but takes time. Unmapped pages cause no flash reads.
    ///
    /// # Errors
    /// The extent does not exist.
    ///
    /// # Panics
    /// The device has timing and `now` is 292 years (2^63 ns) or later.
    pub fn read(&mut self, now: Nanos, first: Lpn, pages: u32) -> Result<CompletionTime, HostError> {
        self.check_extent(first, pages)?;
        let Some(mut timing) = self.timing.take() else {
            return Ok(CompletionTime::now(now));
        };
        let at = timing.begin_read(now, pages);
        let (mut done, run) = self.read_run(&mut timing, at, first, pages);
        if run < pages {
            done = done.and(self.read_runs(&mut timing, at, Lpn(first.0 + run), pages - run));
        }
        let done = timing.end_read(done);
        assert!(done.at >= now, "a read completes after its submission");
        self.timing = Some(timing);
        Ok(done)
    }

    /// Locates a page ahead of a read. The lookup is a large part of the cost of a read and is
    /// faster for many pages together. Returns `None` if the page is unmapped or the device has no
    /// timing.
    ///
    /// # Panics
    /// The page is outside of the device.
    #[inline]
    pub fn locate(&self, lpn: Lpn) -> Option<PageLocation> {
        let timing = self.timing.as_ref()?;
        let ppn = self.lookup(lpn)?;
        Some(timing.locate(ppn, self.place(self.unit_of(ppn))))
    }

    /// Same as [`DeviceCore::read`] for one page at a known location. The caller must not have
    /// written or deallocated any page since it called [`DeviceCore::locate`].
    ///
    /// # Panics
    /// The page has moved, or the conditions of [`DeviceCore::read`].
    #[inline]
    pub fn read_located(&mut self, now: Nanos, lpn: Lpn, location: &PageLocation) -> CompletionTime {
        assert!(self.lookup(lpn) == Some(location.ppn), "a read page is at its mapped place");
        let timing = self.timing.as_mut().expect("a page is located only on a device with timing");
        let at = timing.begin_read(now, 1);
        let done = timing.read_located(at, 1, location);
        timing.end_read(done)
    }

    /// Reads the leading pages of an extent that are contiguous in a reclaim unit, or that are
    /// unmapped. Also returns their number. Most extents consist of a single such run.
    #[inline(always)]
    fn read_run(&self, timing: &mut TimingModel, at: Nanos, lpn: Lpn, pages: u32) -> (CompletionTime, u32) {
        let (ppn, run) = self.maps.mapped_run(lpn, pages);
        if ppn == Ppn::UNMAPPED {
            return (timing.send_unmapped(at, run), run);
        }
        let unit = self.unit_of(ppn);
        let place = self.place(unit);
        let run = match run {
            1 => 1,
            _ => run.min(place.first.0 + self.unit(unit).pages - ppn.0),
        };
        (timing.read(at, ppn, run, place), run)
    }

    #[inline(never)]
    fn read_runs(&self, timing: &mut TimingModel, at: Nanos, mut lpn: Lpn, mut left: u32) -> CompletionTime {
        let mut done = CompletionTime::now(at);
        while left > 0 {
            let (sent, run) = self.read_run(timing, at, lpn, left);
            done = done.and(sent);
            lpn.0 += run;
            left -= run;
        }
        done
    }

    /// Starts a write. Reads the pages that the write covers only partially.
    pub(super) fn begin_write(&mut self, now: Nanos, write: &WriteRequest) -> WriteProgress {
        let mut timing = self.timing.take().expect("a write has a completion time only on a device with timing");
        let mut writing = timing.begin_write(now, write.pages, write.host_bytes);
        if write.host_bytes < u64::from(write.pages) * self.layout.page_bytes {
            let last = Lpn(write.first.0 + write.pages - 1);
            let ends = [Some(write.first), (write.pages > 1).then_some(last)];
            for ppn in ends.into_iter().flatten().filter_map(|lpn| self.lookup(lpn)) {
                let place = self.place(self.unit_of(ppn));
                timing.read_before_write(&mut writing, ppn, place);
            }
        }
        self.timing = Some(timing);
        writing
    }

    /// Informs a new timing model of the reclaim units that hosts have open.
    pub(super) fn resume_in_time(&mut self) {
        let Some(mut timing) = self.timing.take() else {
            return;
        };
        let owners = self.state.groups.iter().flat_map(|group| &group.owners);
        for open in owners.flat_map(|owner| owner.open.iter().flatten()) {
            assert!(open.position <= self.unit(open.unit).pages, "an open reclaim unit is written beyond its end");
            timing.resume(self.place(open.unit), open.position);
        }
        self.timing = Some(timing);
    }

    /// Times pages that go to an open reclaim unit of the host.
    pub(super) fn append_in_time(&mut self, writing: &mut WriteProgress, unit: RuId, position: u32, pages: u32) {
        let place = self.place(unit);
        let timing = self.timing.as_mut().expect("a write has a completion time only on a device with timing");
        timing.append(writing, place, position, pages);
    }

    /// Times single-page writes that were appended to a reclaim unit from a position on. Appends
    /// their completions to `done`.
    pub(super) fn append_pages_in_time(
        &mut self,
        times: &[Nanos],
        unit: RuId,
        position: u32,
        done: &mut Vec<CompletionTime>,
    ) {
        let place = self.place(unit);
        let timing = self.timing.as_mut().expect("a write has a completion time only on a device with timing");
        timing.write_pages(times, place, position, done);
    }

    /// Ends a write whose pages are all placed, and returns its completion.
    pub(super) fn end_write(&mut self, writing: WriteProgress) -> CompletionTime {
        let timing = self.timing.as_mut().expect("a write has a completion time only on a device with timing");
        timing.end_write(writing)
    }

    /// Times the copies of a victim's runs of valid pages to another reclaim unit.
    pub(super) fn copy_in_time<'a>(
        &mut self,
        victim: RuId,
        runs: impl Iterator<Item = &'a MappedRun>,
        unit: RuId,
        position: u32,
    ) {
        assert_ne!(victim, unit, "a victim is copied into itself");
        let (source, destination) = (self.place(victim), self.place(unit));
        if let Some(timing) = &mut self.timing {
            timing.copy(source, runs.map(MappedRun::physical_pages), destination, position);
        }
    }

    /// Times the erase of an emptied victim. Returns the duration of the whole collection.
    pub(super) fn reclaim_in_time(&mut self, now: Nanos, victim: RuId) -> Nanos {
        let (place, superblock) = (self.place(victim), self.superblock_of(victim));
        match &mut self.timing {
            Some(timing) => timing.reclaim(now, place, superblock),
            None => 0,
        }
    }

    /// Times the move of a closed reclaim unit to the same blocks of another superblock, `worn`,
    /// which takes the unit's blocks in exchange.
    pub(super) fn move_in_time(&mut self, now: Nanos, unit: RuId, worn: u32) {
        let Some(mut timing) = self.timing.take() else { return };
        let source = self.place(unit);
        let in_superblock = source.first.0 % self.layout.superblock_pages;
        let destination = UnitPlace { first: Ppn(worn * self.layout.superblock_pages + in_superblock), ..source };
        let pages = source.first.0..source.first.0 + self.unit(unit).pages;
        let valid: Vec<u32> = pages.filter(|page| self.maps.is_valid(Ppn(*page))).collect();
        timing.copy_and_fill(source, &valid, destination);
        // The erased blocks come to the place of the worn ones.
        let _ = timing.reclaim(now, destination, worn);
        self.timing = Some(timing);
    }

    /// Times the opening of a reclaim unit for host writes.
    pub(super) fn open_in_time(&mut self, now: Nanos, unit: RuId) {
        assert!(self.unit(unit).state != UnitState::Free, "a free reclaim unit is written to");
        let (place, superblock) = (self.place(unit), self.superblock_of(unit));
        if let Some(timing) = &mut self.timing {
            timing.open(now, place, superblock);
        }
    }

    /// Times the closing of a reclaim unit that a host had open.
    pub(super) fn close_in_time(&mut self, now: Nanos, open: &OpenUnit) {
        let place = self.place(open.unit);
        if let Some(timing) = &mut self.timing {
            timing.close(now, place, open.position);
        }
    }

    /// Properties of a reclaim unit that its timing depends on.
    #[inline]
    fn place(&self, unit: RuId) -> UnitPlace {
        let entry = self.unit(unit);
        let class = usize::from(entry.class);
        let part = match self.layout.slices_per_superblock {
            1 => 0,
            slices => unit.0 % slices / self.layout.classes[class].slices,
        };
        UnitPlace { first: Ppn(unit.0 * self.layout.slice_pages), group: entry.group, class, part }
    }

    fn superblock_of(&self, unit: RuId) -> u32 {
        unit.0 / self.layout.slices_per_superblock
    }
}
