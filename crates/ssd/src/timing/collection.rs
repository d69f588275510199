//! Times of garbage collection. Copies and erases add to the backlog of the dies.

use std::ops::Range;

use super::TimingModel;
use super::flash_geometry::UnitPlace;
use crate::cast::{count, index};
use crate::types::{Nanos, Ppn};

impl TimingModel {
    /// Copies runs of pages out of a reclaim unit, in ascending order, to `position` of another
    /// unit.
    pub(crate) fn copy(
        &mut self,
        source: UnitPlace,
        from: impl Iterator<Item = Range<u32>>,
        destination: UnitPlace,
        position: u32,
    ) {
        let page_ns = self.channel_speed.transfer_ns(self.page_bytes);
        let (mut pages, mut flash_page_end) = (0, 0);
        // Die and channel of the flash page, with the sense and the transfers of its pages.
        let (mut place, mut sense_ns, mut transfers_ns) = ((0, 0), 0, 0);
        for Range { start: mut page, end } in from {
            pages += end - page;
            while page < end {
                if page >= flash_page_end {
                    self.collection.add(place, sense_ns + transfers_ns, transfers_ns);
                    let location = self.geometry.locate(Ppn(page), source);
                    flash_page_end = location.end().0;
                    place = (location.flash_page.die, location.flash_page.channel);
                    (sense_ns, transfers_ns) = (0, 0);
                    let sensing = Some(location.sensing());
                    if sensing != self.collection.last_sensed {
                        self.collection.last_sensed = sensing;
                        sense_ns = self.geometry.read_ns(location.flash_page) + self.config.channel.command_ns;
                        self.collection.dies[index(place.0)].count += 1;
                    }
                }
                let until = flash_page_end.min(end);
                transfers_ns += page_ns * u64::from(until - page);
                page = until;
            }
        }
        self.collection.add(place, sense_ns + transfers_ns, transfers_ns);
        let operation_pages = self.geometry.operation_pages(destination).get();
        let transfer_ns = self.operation_transfer_ns(u64::from(operation_pages) * self.page_bytes);
        let work_ns = transfer_ns + self.geometry.program_ns();
        let mut end = (position / operation_pages + 1) * operation_pages;
        while end <= position + pages {
            let place = self.geometry.flash_page_at(destination, end - operation_pages);
            let place = (place.die, place.channel);
            self.collection.add_program(place, work_ns, transfer_ns);
            if let Some(turn) = self.overhead.next(operation_pages, operation_pages) {
                let place = self.geometry.die_in_turn(destination.group, turn);
                self.collection.add_program(place, work_ns, transfer_ns);
            }
            end += operation_pages;
        }
    }

    /// Copies pages out of a reclaim unit, `from` in ascending order, to another unit that takes no
    /// others. Its last operation may be incomplete.
    pub(crate) fn copy_and_fill(&mut self, source: UnitPlace, from: &[u32], destination: UnitPlace) {
        let pages = count(from.len());
        let end = pages.next_multiple_of(self.geometry.operation_pages(destination).get());
        self.copy(source, from.iter().map(|page| *page..page + 1), destination, end - pages);
    }

    /// Ends a collection after all copies. Adds the erase and the copies to the dies' backlog.
    /// Returns the duration of the collection if no host command interrupts it.
    pub(crate) fn reclaim(&mut self, now: Nanos, unit: UnitPlace, superblock: u32) -> Nanos {
        for die in self.geometry.dies_of(unit) {
            let work = &mut self.collection.dies[index(die)];
            work.ns += self.config.nand.erase_ns;
            work.count += 1;
        }
        let dies = self.geometry.dies_of_group(unit.group);
        let mut positions = Vec::with_capacity(dies.len());
        let mut elapsed_ns = 0;
        for die in dies.clone() {
            let work = std::mem::take(&mut self.collection.dies[index(die)]);
            let server = &mut self.dies[index(die)];
            positions.push(server.collect(now, work));
            if work.ns > 0 {
                elapsed_ns = elapsed_ns.max(server.backlog_ns(now));
            }
        }
        assert!(self.collection.dies.iter().all(|left| left.ns == 0), "collection worked on dies of another group");
        let channels = self.geometry.channels_of(dies);
        for (channel, work_ns) in
            self.channels[channels.clone()].iter_mut().zip(&mut self.collection.channels[channels])
        {
            channel.share_with_collection(now, elapsed_ns, std::mem::take(work_ns));
        }
        assert!(
            self.collection.channels.iter().all(|left_ns| *left_ns == 0),
            "collection used channels of another group"
        );
        self.collection.last_sensed = None;
        match self.erase_positions.get_mut(&superblock) {
            None => _ = self.erase_positions.insert(superblock, positions.into()),
            Some(earlier) => earlier.copy_from_slice(&positions),
        }
        elapsed_ns
    }

    /// Opens a reclaim unit for host writes, which must wait for its erase.
    pub(crate) fn open(&mut self, now: Nanos, unit: UnitPlace, superblock: u32) {
        let Some(positions) = self.erase_positions.get(&superblock) else {
            return;
        };
        let dies = &mut self.dies[index(self.geometry.dies_of_group(unit.group).start)..];
        let ends = dies.iter_mut().zip(positions).map(|(die, position)| die.wait_for(now, *position));
        let erased_at = ends.max().unwrap_or(now);
        if erased_at > now {
            self.erased_at.insert(unit.first.0, erased_at);
        } else {
            self.erase_positions.remove(&superblock);
        }
    }
}
