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
        let (page_ns, command_ns) = (self.channel_speed.transfer_ns(self.page_bytes), self.config.channel.command_ns);
        let source_operation_pages = self.geometry.operation_pages(source).get();
        let mut pages = 0;
        for Range { start: mut page, end } in from {
            pages += end - page;
            // The pages of a program operation are on one die.
            while page < end {
                let first = self.geometry.locate(Ppn(page), source);
                let until = end.min(first.operation() + source_operation_pages);
                let mut sensed = first.sensing();
                let (mut senses, mut sense_ns) = match self.collection.last_sensed == Some(sensed) {
                    true => (0, 0),
                    false => (1, self.geometry.read_ns(first.flash_page)),
                };
                if until > first.end().0 {
                    let others = self.geometry.sense_others(source, &mut sensed, first.ppn, Ppn(until - 1));
                    senses += others.count;
                    sense_ns += others.ns;
                }
                self.collection.last_sensed = Some(sensed);
                let transfer_ns = page_ns * u64::from(until - page);
                let work_ns = sense_ns + command_ns * u64::from(senses) + transfer_ns;
                let place = (first.flash_page.die, first.flash_page.channel);
                self.collection.add(place, senses, work_ns, transfer_ns);
                page = until;
            }
        }
        let operation_pages = self.geometry.operation_pages(destination);
        let transfer_ns = self.operation_transfer_ns(u64::from(operation_pages.get()) * self.page_bytes);
        let work_ns = transfer_ns + self.geometry.program_ns();
        let first = position / operation_pages;
        let operations = (position + pages) / operation_pages - first;
        // Operations a row apart are on the same die.
        let row = self.geometry.row_operations(destination);
        for operation in 0..operations.min(row) {
            let place = self.geometry.flash_page_at(destination, (first + operation) * operation_pages.get());
            let count = (operations - operation).div_ceil(row);
            let (work_ns, transfer_ns) = (work_ns * u64::from(count), transfer_ns * u64::from(count));
            self.collection.add((place.die, place.channel), count, work_ns, transfer_ns);
        }
        if self.overhead.millionths > 0 {
            for _ in 0..operations {
                if let Some(turn) = self.overhead.next(operation_pages.get(), operation_pages.get()) {
                    let place = self.geometry.die_in_turn(destination.group, turn);
                    self.collection.add(place, 1, work_ns, transfer_ns);
                }
            }
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

#[cfg(test)]
mod tests {
    use rand::RngExt;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::config::DeviceConfig;
    use crate::layout::DeviceLayout;

    fn drive(program_unit: &str, planes: u32) -> DeviceConfig {
        let text = format!(
            r#"
            seed = 1
            [geometry]
            physical_bytes = "48MiB"
            over_provisioning = 0.5
            reclaim_unit_bytes = "3MiB"
            channels = 2
            dies_per_channel = 2
            planes_per_die = {planes}
            program_unit_bytes = "{program_unit}"
            media_overhead_share = 0.1
            [timing]
            write_buffer_bytes = "4MiB"
            nand = {{ page_bytes = "16KiB", bits_per_cell = 3, read_ns = [40, 50, 60], program_ns = 700, erase_ns = 3000 }}
            channel = {{ bytes_per_second = 1000000000, command_ns = 2 }}
            controller = {{ cores = 1, read_ns = 1, write_ns = 1, page_ns = 1, read_pipeline_ns = 1, write_pipeline_ns = 1 }}
            link = {{ generation = 1, lanes = 4, payload_share = 1.0 }}
            "#
        );
        toml::from_str(&text).expect("a device")
    }

    #[test]
    fn runs_take_the_work_of_their_pages() {
        for (program_unit, planes) in [("4KiB", 1), ("4KiB", 2), ("16KiB", 4), ("48KiB", 1), ("48KiB", 2), ("48KiB", 4)]
        {
            let config = drive(program_unit, planes);
            let layout = DeviceLayout::new(&config).expect("the drive is possible");
            let model = TimingModel::new(&config, &layout).expect("the drive has timing");
            let unit = |superblock| UnitPlace {
                first: Ppn(superblock * layout.superblock_pages),
                group: 0,
                class: 0,
                part: 0,
            };
            let (source, destination) = (unit(1), unit(2));
            for seed in 0..50 {
                let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
                let (mut by_runs, mut by_pages) = (model.clone(), model.clone());
                let (mut first, mut position) = (source.first.0, 0);
                while first < source.first.0 + layout.superblock_pages {
                    let mut runs = Vec::new();
                    for _ in 0..random.random_range(1..6) {
                        let start = first + random.random_range(0..2) * random.random_range(0..40);
                        first = start + random.random_range(1..300);
                        runs.push(start..first);
                    }
                    runs.retain_mut(|run| {
                        run.end = run.end.min(source.first.0 + layout.superblock_pages);
                        run.start < run.end
                    });
                    by_runs.copy(source, runs.iter().cloned(), destination, position);
                    for page in runs.into_iter().flatten() {
                        by_pages.copy(source, std::iter::once(page..page + 1), destination, position);
                        position += 1;
                    }
                }
                let of_dies = |model: &TimingModel| -> Vec<(Nanos, u32)> {
                    model.collection.dies.iter().map(|work| (work.ns, work.count)).collect()
                };
                assert_eq!(of_dies(&by_runs), of_dies(&by_pages), "{program_unit}, {planes} planes, seed {seed}");
                assert_eq!(by_runs.collection.channels, by_pages.collection.channels);
                assert_eq!(by_runs.collection.last_sensed, by_pages.collection.last_sensed);
            }
        }
    }
}
