//! Out-of-place store: pages in sequentially written zones with garbage collection.
//!
//! Compressed pages are packed. The next batch rewrites a partial block. A page's group follows
//! from its expected lifetime, the larger of its last lifetime and its current age. Groups differ
//! by a factor of four. The last group has pages that live for a rewrite of the whole tree or
//! longer.

use super::output::{BTreeOutput, BTreeStream};
use super::{BLOCK_BYTES, BTreeSettings};

const NONE: u32 = u32::MAX;

/// Location of a page: a zone, and the page's position among the writes of the zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ZonePosition {
    zone: u32,
    number: u32,
}

#[derive(Debug, Clone, Default)]
struct Zone {
    /// Pages written to the zone, and their first bytes, in order.
    pages: Vec<(u32, u64)>,
    filled_bytes: u64,
    /// Number of pages still valid.
    valid: u32,
    is_open: bool,
}

/// Lifetime of a page, in pages written by the database.
#[derive(Debug, Clone, Copy, Default)]
struct PageLifetime {
    written_at: u64,
    /// Last lifetime, or 0 if unknown.
    lasted: u64,
}

pub(super) struct Zones {
    start_bytes: u64,
    zone_bytes: u64,
    stored_bytes: u64,
    groups: u32,
    discard: bool,
    zones: Vec<Zone>,
    free: Vec<u32>,
    /// Open zone of each group.
    open: Vec<u32>,
    places: Vec<ZonePosition>,
    lives: Vec<PageLifetime>,
    /// Pages written by the database so far.
    now: u64,
    /// Number of zones collected, and number of pages moved.
    pub(super) collections: u64,
    pub(super) moved_pages: u64,
    scratch: Vec<Vec<u32>>,
}

impl Zones {
    /// Creates the store, or returns the number of bytes that it needs. `space` is start and length
    /// of the space.
    pub(super) fn new(
        pages: u32,
        stored_bytes: u64,
        space: (u64, u64),
        zone_bytes: u64,
        settings: &BTreeSettings,
    ) -> Result<Zones, u64> {
        let (start_bytes, space_bytes) = space;
        let groups = settings.groups;
        let count = space_bytes / zone_bytes;
        let pages_of_zone = (zone_bytes / stored_bytes).max(1);
        let needed = u64::from(pages).div_ceil(pages_of_zone) + u64::from(2 * groups) + 2;
        if count < needed {
            return Err(start_bytes + needed * zone_bytes);
        }
        Ok(Zones {
            start_bytes,
            zone_bytes,
            stored_bytes,
            groups,
            discard: settings.discard,
            zones: vec![Zone::default(); count as usize],
            free: (0..count as u32).rev().collect(),
            open: vec![NONE; groups as usize],
            places: vec![ZonePosition { zone: NONE, number: 0 }; pages as usize],
            lives: vec![PageLifetime::default(); pages as usize],
            now: 0,
            collections: 0,
            moved_pages: 0,
            scratch: vec![Vec::new(); groups as usize],
        })
    }

    /// Offset and length of the blocks of a page, bytes.
    pub(super) fn blocks_of(&self, page: u32) -> (u64, u64) {
        let place = self.places[page as usize];
        let (_, first) = self.zones[place.zone as usize].pages[place.number as usize];
        let start = first - first % BLOCK_BYTES;
        let end = (first + self.stored_bytes).next_multiple_of(BLOCK_BYTES);
        (self.offset_bytes(place.zone) + start, end - start)
    }

    fn offset_bytes(&self, zone: u32) -> u64 {
        self.start_bytes + u64::from(zone) * self.zone_bytes
    }

    /// Group of a page. A page without history belongs to the group with the longest lifetimes.
    fn group(&self, page: u32) -> u32 {
        let life = self.lives[page as usize];
        let expected = if life.lasted == 0 { u64::MAX } else { life.lasted.max(self.now - life.written_at) };
        let mut group = self.groups - 1;
        let mut bound = self.places.len() as u64;
        while group > 0 && expected < bound {
            group -= 1;
            bound /= 4;
        }
        group
    }

    /// Writes pages that the database has changed.
    pub(super) fn write(&mut self, pages: &[u32], output: &mut BTreeOutput) {
        // A part has at most the pages of one zone, so each group opens at most one zone.
        for part in pages.chunks((self.zone_bytes / self.stored_bytes) as usize) {
            self.write_part(part, output);
            while self.free.len() <= self.groups as usize {
                self.collect(output);
            }
        }
    }

    fn write_part(&mut self, pages: &[u32], output: &mut BTreeOutput) {
        let mut by_group = std::mem::take(&mut self.scratch);
        for page in pages {
            self.now += 1;
            let life = &mut self.lives[*page as usize];
            if self.places[*page as usize].zone != NONE {
                life.lasted = (self.now - life.written_at).max(1);
            }
            life.written_at = self.now;
            by_group[self.group(*page) as usize].push(*page);
        }
        for (group, pages) in by_group.iter_mut().enumerate() {
            self.append(BTreeStream::Pages(group as u32), pages, output);
            pages.clear();
        }
        self.scratch = by_group;
    }

    /// Packs pages into the open zone of a group.
    fn append(&mut self, stream: BTreeStream, pages: &[u32], output: &mut BTreeOutput) {
        let (BTreeStream::Pages(group) | BTreeStream::Moved(group)) = stream else {
            unreachable!("zones hold pages only");
        };
        let mut written = None;
        for page in pages {
            let open = self.open[group as usize];
            if open == NONE || self.zones[open as usize].filled_bytes + self.stored_bytes > self.zone_bytes {
                self.finish(stream, written.take(), output);
                self.open_zone(group);
            }
            let number = self.open[group as usize];
            let zone = &mut self.zones[number as usize];
            written.get_or_insert(zone.filled_bytes);
            let place = ZonePosition { zone: number, number: zone.pages.len() as u32 };
            zone.pages.push((*page, zone.filled_bytes));
            zone.filled_bytes += self.stored_bytes;
            zone.valid += 1;
            let left = std::mem::replace(&mut self.places[*page as usize], place);
            if left.zone != NONE {
                self.zones[left.zone as usize].valid -= 1;
            }
        }
        self.finish(stream, written, output);
    }

    /// Writes the blocks packed since `from` into the open zone of a group.
    fn finish(&mut self, stream: BTreeStream, from: Option<u64>, output: &mut BTreeOutput) {
        let (Some(from), BTreeStream::Pages(group) | BTreeStream::Moved(group)) = (from, stream) else {
            return;
        };
        let number = self.open[group as usize];
        let start = from - from % BLOCK_BYTES;
        let end = self.zones[number as usize].filled_bytes.next_multiple_of(BLOCK_BYTES);
        output.write(stream, self.offset_bytes(number) + start, end - start);
    }

    fn open_zone(&mut self, group: u32) {
        let zone = self.free.pop().expect("there is always a free zone: collecting keeps one for each group");
        let full = std::mem::replace(&mut self.open[group as usize], zone);
        if full != NONE {
            self.zones[full as usize].is_open = false;
        }
        let opened = &mut self.zones[zone as usize];
        assert!(opened.pages.is_empty() && opened.valid == 0, "zone {zone} is free and holds pages");
        opened.is_open = true;
    }

    /// Moves the valid pages of the full zone with the fewest of them, and frees the zone.
    fn collect(&mut self, output: &mut BTreeOutput) {
        let full = self.zones.iter().enumerate().filter(|(_, zone)| !zone.is_open && !zone.pages.is_empty());
        let (victim, _) = full.min_by_key(|(_, zone)| zone.valid).expect("zones that are not free are full or open");
        let victim = victim as u32;
        let written = std::mem::take(&mut self.zones[victim as usize].pages);
        let mut by_group = vec![Vec::new(); self.groups as usize];
        for (number, (page, _)) in written.iter().enumerate() {
            let number = number as u32;
            if self.places[*page as usize] == (ZonePosition { zone: victim, number }) {
                by_group[self.group(*page) as usize].push(*page);
            }
        }
        for (group, pages) in by_group.iter().enumerate() {
            self.moved_pages += pages.len() as u64;
            self.append(BTreeStream::Moved(group as u32), pages, output);
        }
        let zone = &mut self.zones[victim as usize];
        assert_eq!(zone.valid, 0, "all that was valid in zone {victim} has moved");
        *zone = Zone::default();
        self.free.push(victim);
        self.collections += 1;
        if self.discard {
            output.discard(self.offset_bytes(victim), self.zone_bytes);
        }
    }

    /// Offset and length of every written page. Checks the counts of valid pages.
    #[cfg(test)]
    pub(super) fn check(&self) -> Vec<(u64, u64)> {
        let mut valid = vec![0; self.zones.len()];
        let written = self.places.iter().filter(|place| place.zone != NONE);
        let places = written.map(|place| {
            valid[place.zone as usize] += 1;
            let (_, first) = self.zones[place.zone as usize].pages[place.number as usize];
            (self.offset_bytes(place.zone) + first, self.stored_bytes)
        });
        let places = places.collect();
        assert_eq!(valid, self.zones.iter().map(|zone| zone.valid).collect::<Vec<_>>());
        places
    }
}
