//! The device's questions to its times.

use crate::device::place::OpenUnit;
use crate::device::{Engine, Write};
use crate::timing::{Completion, Location, Timing, UnitPlace, WriteProgress};
use crate::types::{Lpn, Nanos, Ppn, RuId};

impl Engine {
    pub(super) fn read_checked(&mut self, now: Nanos, first: Lpn, pages: u32) -> Completion {
        let Some(mut timing) = self.timing.take() else {
            return Completion::now(now);
        };
        let at = timing.begin_read(now, pages);
        let (mut done, run) = self.read_run(&mut timing, at, first, pages);
        if run < pages {
            done = done.and(self.read_runs(&mut timing, at, Lpn(first.0 + run), pages - run));
        }
        let done = timing.end_read(done);
        self.timing = Some(timing);
        done
    }

    /// Where a page is.
    #[inline]
    pub(super) fn locate(&self, lpn: Lpn) -> Option<Location> {
        let timing = self.timing.as_ref()?;
        let ppn = self.lookup(lpn)?;
        Some(timing.locate(ppn, self.place(self.unit_of(ppn))))
    }

    /// Reads a page.
    #[inline(always)]
    pub(super) fn read_located(&mut self, now: Nanos, location: &Location) -> Completion {
        let timing = self
            .timing
            .as_mut()
            .expect("a page is located only if the device has times");
        let at = timing.begin_read(now, 1);
        let done = timing.read_located(at, 1, location);
        timing.end_read(done)
    }

    /// Reads the pages of an extent that follow each other in a reclaim unit, or are unmapped; returns how many too.
    /// Most extents are no more than that.
    #[inline(always)]
    fn read_run(&self, timing: &mut Timing, at: Nanos, lpn: Lpn, pages: u32) -> (Completion, u32) {
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
    fn read_runs(&self, timing: &mut Timing, at: Nanos, mut lpn: Lpn, mut left: u32) -> Completion {
        let mut done = Completion::now(at);
        while left > 0 {
            let (sent, run) = self.read_run(timing, at, lpn, left);
            done = done.and(sent);
            lpn.0 += run;
            left -= run;
        }
        done
    }

    /// The controller takes a write, and reads what it covers only a part of.
    pub(super) fn begin_write(&mut self, now: Nanos, write: &Write) -> WriteProgress {
        let mut timing = self.timing.take().expect("a write has a time only if the device has");
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

    /// Tells new times of the reclaim units that hosts have open.
    pub(super) fn resume_in_time(&mut self) {
        let Some(mut timing) = self.timing.take() else {
            return;
        };
        let owners = self.state.groups.iter().flat_map(|group| &group.owners);
        for open in owners.flat_map(|owner| owner.open.iter().flatten()) {
            timing.resume(self.place(open.unit), open.position);
        }
        self.timing = Some(timing);
    }

    /// Pages go to a reclaim unit that the host has open.
    pub(super) fn append_in_time(&mut self, writing: &mut WriteProgress, unit: RuId, position: u32, pages: u32) {
        let place = self.place(unit);
        let timing = self.timing.as_mut().expect("a write has a time only if the device has");
        timing.append(writing, place, position, pages);
    }

    /// Writes of a page each were appended to a reclaim unit from a position on: when they are done.
    pub(super) fn append_pages_in_time(
        &mut self,
        times: &[Nanos],
        unit: RuId,
        position: u32,
        done: &mut Vec<Completion>,
    ) {
        let place = self.place(unit);
        let timing = self.timing.as_mut().expect("a write has a time only if the device has");
        timing.write_pages(times, place, position, done);
    }

    /// All of a write is placed: when it is done.
    pub(super) fn end_write(&mut self, writing: WriteProgress) -> Completion {
        let timing = self.timing.as_mut().expect("a write has a time only if the device has");
        timing.end_write(writing)
    }

    /// Valid pages of a victim go to another reclaim unit.
    pub(super) fn copy_in_time(&mut self, victim: RuId, from: &[u32], unit: RuId, position: u32) {
        let (source, destination) = (self.place(victim), self.place(unit));
        if let Some(timing) = &mut self.timing {
            timing.copy(source, from, destination, position);
        }
    }

    /// A victim has been emptied and is erased; returns how long all of it takes.
    pub(super) fn reclaim_in_time(&mut self, now: Nanos, victim: RuId) -> Nanos {
        let (place, superblock) = (self.place(victim), self.superblock_of(victim));
        match &mut self.timing {
            Some(timing) => timing.reclaim(now, place, superblock),
            None => 0,
        }
    }

    /// A host begins to write to a reclaim unit.
    pub(super) fn open_in_time(&mut self, now: Nanos, unit: RuId) {
        let (place, superblock) = (self.place(unit), self.superblock_of(unit));
        if let Some(timing) = &mut self.timing {
            timing.open(now, place, superblock);
        }
    }

    /// A reclaim unit that a host had open is closed.
    pub(super) fn close_in_time(&mut self, now: Nanos, open: &OpenUnit) {
        let place = self.place(open.unit);
        if let Some(timing) = &mut self.timing {
            timing.close(now, place, open.position);
        }
    }

    /// What times depend on of a reclaim unit.
    #[inline]
    fn place(&self, unit: RuId) -> UnitPlace {
        let entry = self.unit(unit);
        let class = usize::from(entry.class);
        let part = match self.layout.slices_per_superblock {
            1 => 0,
            slices => unit.0 % slices / self.layout.classes[class].slices,
        };
        UnitPlace {
            first: Ppn(unit.0 * self.layout.slice_pages),
            group: entry.group,
            class,
            part,
        }
    }

    fn superblock_of(&self, unit: RuId) -> u32 {
        unit.0 / self.layout.slices_per_superblock
    }
}
