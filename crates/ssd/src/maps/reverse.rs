//! Reverse map: the logical page of each valid physical page, stored as runs.
//!
//! ```text
//! region    16384 physical pages (fewer if needed to divide reclaim units), with as many entries
//! starts    a bit for each physical page, set if a run of consecutive logical pages begins there
//! entries   first logical page of each run of a region, packed from the region's first entry on
//! ```
//!
//! Pages written at random take an entry each, as in an array. Larger requests take one entry each,
//! and sequential requests hardly any. Entries that are never touched take no memory, because the
//! array is on small pages. The entry of a page follows from the number of runs that begin before
//! it in its region. A [`Cursor`] counts the runs while it walks through the pages in order.
//!
//! Runs are appended in flash order, which is the order of programming. A write before the last
//! written page of a region (exchanged blocks, or reclaim units smaller than a region) makes the
//! region flat: a run begins at every page. The region stays flat until all of it is erased.
//!
//! On a compact map a region has entries only while it needs them. It takes a slot of the array at
//! its first write and returns the slot when its unit is packed ([`super::packed`]) or erased.

use crate::cast::{count, index};
use crate::maps::{PageSize, ZeroedArray};
use crate::types::{Lpn, MappedRun, Ppn};

/// Maximum pages of a region. One entry per page then takes 16 small pages of memory, and one entry
/// per 32 pages takes half a small page.
const REGION_PAGES_MAX: u32 = 1 << 14;

/// Append position of a region. All zero but the first entry if the region is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct AppendPosition {
    /// End of the written pages, or [`AppendPosition::FLAT`] if a run begins at every page.
    written: u32,
    runs: u32,
    /// `!` of the logical page that would continue the last run, or 0.
    next_inverted: u32,
    /// Index of the region's first entry.
    first_entry: u32,
}

impl AppendPosition {
    const FLAT: u32 = u32::MAX;
    /// Value of `written` for a region without entries, larger than any offset.
    const WITHOUT_ENTRIES: u32 = u32::MAX - 1;

    fn empty(first_entry: u32) -> AppendPosition {
        AppendPosition { first_entry, ..AppendPosition::default() }
    }

    fn flat(first_entry: u32) -> AppendPosition {
        AppendPosition { written: AppendPosition::FLAT, ..AppendPosition::empty(first_entry) }
    }

    fn without_entries() -> AppendPosition {
        AppendPosition { written: AppendPosition::WITHOUT_ENTRIES, ..AppendPosition::default() }
    }

    /// Appends logical pages from `lpn` on at `offset`, after all written pages. Returns the index
    /// of the new run, or `None` if they continue the last run.
    #[inline(always)]
    fn append(&mut self, offset: u32, lpn: u32, pages: u32) -> Option<u32> {
        // Consecutive logical pages may follow a gap of physical pages.
        let begins = (self.written != offset) | (self.next_inverted != !lpn);
        let entry = begins.then_some(self.runs);
        self.runs += u32::from(begins);
        self.written = offset + pages;
        self.next_inverted = !(lpn + pages);
        entry
    }
}

/// Position of a walk through the reverse map, one word at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor {
    /// Index of the next word, which covers 64 physical pages.
    word: u32,
    /// Runs of the region that begin before the word.
    runs: u32,
    /// Start of the last of these runs.
    run_start: u32,
}

impl Cursor {
    /// First physical page of the next word.
    #[inline]
    pub(super) fn first_page(&self) -> u32 {
        self.word * 64
    }

    /// Returns true if the next word has a physical page before `end`.
    #[inline]
    pub(crate) fn is_before(&self, end: u32) -> bool {
        u64::from(self.word) * 64 < u64::from(end)
    }
}

#[derive(Clone)]
pub(super) struct ReverseMap {
    entries: ZeroedArray<u32>,
    starts: ZeroedArray<u64>,
    regions: Vec<AppendPosition>,
    /// First entries of the free slots of a compact map.
    free_slots: Option<Vec<u32>>,
    /// Binary logarithm of the region size in pages, at least that of a word.
    region_bits: u32,
    physical_pages: u32,
}

impl ReverseMap {
    /// Creates an empty map. Reclaim units are multiples of `slice_pages`, aligned to it.
    ///
    /// # Errors
    /// The system has no memory or no address space for the map.
    pub(super) fn new(physical_pages: u32, slice_pages: u32) -> std::io::Result<ReverseMap> {
        let whole = slice_pages.trailing_zeros();
        // If no region size divides the slices, regions shared by several reclaim units become
        // flat.
        let bits_max = REGION_PAGES_MAX.trailing_zeros();
        let region_bits = if whole < 6 { bits_max } else { whole.min(bits_max) };
        Ok(ReverseMap {
            entries: ZeroedArray::zeroed_on(index(physical_pages), PageSize::Small)?,
            starts: ZeroedArray::zeroed(index(physical_pages.div_ceil(64)))?,
            regions: (0..physical_pages).step_by(1 << region_bits).map(AppendPosition::empty).collect(),
            free_slots: None,
            region_bits,
            physical_pages,
        })
    }

    /// Clones the map.
    ///
    /// # Errors
    /// The system has no address space for the copy.
    pub(super) fn try_clone(&self) -> std::io::Result<ReverseMap> {
        Ok(ReverseMap {
            entries: self.entries.try_clone()?,
            starts: self.starts.try_clone()?,
            regions: self.regions.clone(),
            free_slots: self.free_slots.clone(),
            region_bits: self.region_bits,
            physical_pages: self.physical_pages,
        })
    }

    #[inline]
    fn region_pages(&self) -> u32 {
        1 << self.region_bits
    }

    /// Region of a physical page, and the page's offset in it.
    #[inline]
    fn region_of(&self, ppn: u32) -> (u32, u32) {
        (ppn >> self.region_bits, ppn & (self.region_pages() - 1))
    }

    pub(super) fn physical_pages(&self) -> u32 {
        self.physical_pages
    }

    /// Adds logical pages from `lpn` on, written to the physical pages from `ppn` on.
    #[inline(always)]
    pub(super) fn append(&mut self, ppn: u32, lpn: u32, pages: u32) {
        let (region, offset) = self.region_of(ppn);
        let region_pages = self.region_pages();
        let state = &mut self.regions[index(region)];
        // Both conditions are false for a flat region.
        if state.written > offset || pages > region_pages - offset {
            return self.write_out_of_order(ppn, lpn, pages);
        }
        if let Some(entry) = state.append(offset, lpn, pages) {
            // Each run has at least one page, so its index is at most its offset.
            assert!(entry <= offset, "region {region} has more runs than pages");
            self.entries.set(index(state.first_entry + entry), lpn);
            let word = index(ppn / 64);
            self.starts.set(word, self.starts.at(word) | 1 << (ppn % 64));
        }
    }

    /// Same as [`ReverseMap::append`] for several runs. Each run is a logical page and a number of
    /// pages.
    #[inline(always)]
    pub(super) fn append_all(&mut self, mut ppn: u32, mut runs: impl Iterator<Item = (u32, u32)>) {
        let mut next = runs.next();
        while let Some((lpn, pages)) = next {
            let (region, offset) = self.region_of(ppn);
            let (first, end) = (ppn - offset, self.region_end(region));
            let AppendPosition { written, first_entry, .. } = self.regions[index(region)];
            let entries = &mut self.entries.get_mut()[index(first_entry)..][..index(end - first)];
            let run_start = ppn;
            if written == AppendPosition::FLAT {
                while let Some((lpn, 1)) = next
                    && ppn < end
                {
                    entries[index(ppn - first)] = lpn;
                    ppn += 1;
                    next = runs.next();
                }
            } else if written <= ppn - first {
                let mut state = self.regions[index(region)];
                let starts = self.starts.get_mut();
                // Collects the start bits of a word before storing them.
                let (mut word, mut begins) = (ppn / 64, 0);
                while let Some((lpn, pages)) = next
                    && pages <= end - ppn
                {
                    if ppn / 64 != word {
                        starts[index(word)] |= std::mem::take(&mut begins);
                        word = ppn / 64;
                    }
                    if let Some(entry) = state.append(ppn - first, lpn, pages) {
                        entries[index(entry)] = lpn;
                        begins |= 1 << (ppn % 64);
                    }
                    ppn += pages;
                    next = runs.next();
                }
                starts[index(word)] |= begins;
                assert!(state.runs <= state.written, "a region has more runs than pages");
                self.regions[index(region)] = state;
            }
            if ppn == run_start {
                self.write_out_of_order(ppn, lpn, pages);
                ppn += pages;
                next = runs.next();
            }
        }
    }

    /// Same as [`ReverseMap::append`] for writes that cross regions, go to flat regions or make a
    /// region flat.
    #[inline(never)]
    fn write_out_of_order(&mut self, mut ppn: u32, mut lpn: u32, mut pages: u32) {
        while pages > 0 {
            let (region, offset) = self.region_of(ppn);
            let here = pages.min(self.region_pages() - offset);
            if self.regions[index(region)].written == AppendPosition::WITHOUT_ENTRIES {
                self.take_slot(region);
            }
            let AppendPosition { written, first_entry, .. } = self.regions[index(region)];
            if written <= offset {
                self.append(ppn, lpn, here);
            } else {
                if written != AppendPosition::FLAT {
                    self.flatten(region);
                }
                let entries = &mut self.entries.get_mut()[index(first_entry + offset)..][..index(here)];
                for (entry, logical) in entries.iter_mut().zip(lpn..lpn + here) {
                    *entry = logical;
                }
            }
            ppn += here;
            lpn += here;
            pages -= here;
        }
    }

    /// Makes a region flat.
    #[cold]
    fn flatten(&mut self, region: u32) {
        let first = region << self.region_bits;
        let end = self.region_end(region);
        let first_entry = self.regions[index(region)].first_entry;
        let mut logical = Vec::with_capacity(index(end - first));
        let (mut runs, mut next) = (0, 0);
        for ppn in first..end {
            if self.begins(ppn) {
                next = self.entries.at(index(first_entry + runs));
                runs += 1;
            }
            logical.push(next);
            next = next.wrapping_add(1);
        }
        assert_eq!(runs, self.regions[index(region)].runs, "region {region} lost a run");
        self.entries.get_mut()[index(first_entry)..][..logical.len()].copy_from_slice(&logical);
        self.words_of(region).fill(u64::MAX);
        self.regions[index(region)] = AppendPosition::flat(first_entry);
    }

    /// Removes erased physical pages.
    pub(super) fn erase(&mut self, ppn: u32, pages: u32) {
        let end = ppn + pages;
        // Partially erased regions keep their runs, because invalid pages are never looked up.
        for region in ppn.div_ceil(self.region_pages())..end.div_ceil(self.region_pages()) {
            if self.region_end(region) <= end {
                self.words_of(region).fill(0);
                let AppendPosition { written, first_entry, .. } = self.regions[index(region)];
                self.regions[index(region)] = match &mut self.free_slots {
                    None => AppendPosition::empty(first_entry),
                    Some(free) => {
                        if written != AppendPosition::WITHOUT_ENTRIES {
                            free.push(first_entry);
                        }
                        AppendPosition::without_entries()
                    }
                };
            }
        }
    }

    /// Makes an empty map compact.
    ///
    /// # Panics
    /// Panics if the map has entries.
    pub(super) fn make_compact(&mut self) {
        assert!(self.regions.iter().all(|region| region.written == 0), "a map becomes compact before its first write");
        assert!(self.physical_pages.is_multiple_of(self.region_pages()), "all slots have the same size");
        // Slots are taken from the end, so that the same memory is used again.
        let slots = self.regions.iter().rev().map(|region| region.first_entry);
        self.free_slots = Some(slots.collect());
        self.regions.fill(AppendPosition::without_entries());
    }

    /// Gives a region of a compact map entries.
    #[cold]
    fn take_slot(&mut self, region: u32) {
        let free = self.free_slots.as_mut().expect("only regions of compact maps have no entries");
        let first_entry = free.pop().expect("there is a slot for each region");
        self.regions[index(region)] = AppendPosition::empty(first_entry);
    }

    fn region_end(&self, region: u32) -> u32 {
        // The end of the last region may exceed the range of 32 bits.
        (region << self.region_bits).saturating_add(self.region_pages()).min(self.physical_pages)
    }

    fn words_of(&mut self, region: u32) -> &mut [u64] {
        let end = self.region_end(region).div_ceil(64);
        &mut self.starts.get_mut()[index((region << self.region_bits) / 64)..index(end)]
    }

    fn begins(&self, ppn: u32) -> bool {
        self.starts.at(index(ppn / 64)) >> (ppn % 64) & 1 == 1
    }

    /// Cursor at the word that contains a physical page.
    pub(super) fn cursor(&self, ppn: u32) -> Cursor {
        let word = ppn / 64;
        let (_, offset) = self.region_of(word * 64);
        let first = word - offset / 64;
        let mut cursor = Cursor { word: first, runs: 0, run_start: first * 64 };
        while cursor.word < word {
            self.pass(&mut cursor);
        }
        cursor
    }

    /// Advances the cursor to the next word.
    #[inline]
    fn pass(&self, cursor: &mut Cursor) {
        let starts = self.starts.at(index(cursor.word));
        if starts != 0 {
            cursor.runs += starts.count_ones();
            cursor.run_start = cursor.word * 64 + 63 - starts.leading_zeros();
        }
        cursor.word += 1;
        if cursor.word.is_multiple_of(self.region_pages() / 64) {
            cursor.runs = 0;
        }
    }

    /// Appends to `runs` the pages of the cursor's word that are set in `bits`, and advances the
    /// cursor. All these pages must be written.
    #[inline]
    pub(super) fn valid_runs(&self, cursor: &mut Cursor, mut bits: u64, runs: &mut Vec<MappedRun>) {
        let base = cursor.word * 64;
        let (region, offset) = self.region_of(base);
        let AppendPosition { written, first_entry, .. } = self.regions[index(region)];
        if written == AppendPosition::FLAT {
            // The region may have become flat since the previous word. The caller copies
            // the pages that it reads, possibly into the same region.
            cursor.runs = offset;
        }
        let starts = self.starts.at(index(cursor.word));
        let first_entry = index(first_entry + cursor.runs);
        if starts == u64::MAX {
            // A run begins at every page. Reads only the entries of requested pages, because the
            // map may end within the word.
            let entries = &self.entries.get()[first_entry..];
            let before = runs.len();
            runs.resize(before + index(bits.count_ones()), MappedRun::PAGE);
            for run in &mut runs[before..] {
                let shift = bits.trailing_zeros();
                run.ppn.0 = base + shift;
                run.lpn.0 = entries[index(shift)];
                bits &= bits.wrapping_sub(1);
            }
        } else {
            while bits != 0 {
                let shift = bits.trailing_zeros();
                let until = (bits >> shift).trailing_ones();
                let before = starts & (u64::MAX >> (63 - shift));
                let begun_before = index(before.count_ones());
                let run_start = match before {
                    0 => cursor.run_start,
                    _ => base + 63 - before.leading_zeros(),
                };
                // A page without a run before it in its region was never written.
                let entry = self.entries.at(first_entry + begun_before - 1);
                // Distance to the next run, or beyond the word if no run follows in the word.
                let next = 1 + (starts >> shift >> 1).trailing_zeros();
                let here = until.min(next);
                append_run(
                    runs,
                    MappedRun { ppn: Ppn(base + shift), lpn: Lpn(entry + (base + shift - run_start)), pages: here },
                );
                bits &= !((u64::MAX >> (64 - here)) << shift);
            }
        }
        self.pass(cursor);
    }

    /// Logical page that was last written to a physical page. Counts the runs of a region.
    pub(super) fn logical(&self, ppn: Ppn) -> Lpn {
        let mut found = Vec::with_capacity(1);
        self.valid_runs(&mut self.cursor(ppn.0), 1 << (ppn.0 % 64), &mut found);
        found[0].lpn
    }

    /// Marks the start of a run. All runs must be marked before [`ReverseMapLoader::run`] adds
    /// their logical pages.
    pub(super) fn restore_start(&mut self, ppn: u32, pages: u32) {
        let end = ppn + pages;
        let mut first = ppn;
        while first < end {
            let word = index(first / 64);
            self.starts.set(word, self.starts.at(word) | 1 << (first % 64));
            let (region, offset) = self.region_of(first);
            let region_end = end.min(self.region_end(region));
            let state = &mut self.regions[index(region)];
            state.runs += 1;
            state.written = state.written.max(region_end - (first - offset));
            first = region_end;
        }
    }

    /// Starts adding the logical pages of the marked runs.
    pub(super) fn restore_runs(&mut self) -> ReverseMapLoader<'_> {
        let mut runs = 0;
        let words = (0..).zip(self.starts.get());
        let runs_before = words
            .map(|(word, starts): (u32, &u64)| {
                if word.is_multiple_of(self.region_pages() / 64) {
                    runs = 0;
                }
                let before = runs;
                runs += count(index(starts.count_ones()));
                u16::try_from(before).expect("a region has fewer runs before its last word than a u16 holds")
            })
            .collect();
        ReverseMapLoader { map: self, runs_before }
    }
}

/// Appends a run. Merges it with the last run if it continues that run.
#[inline]
fn append_run(runs: &mut Vec<MappedRun>, run: MappedRun) {
    if let Some(last) = runs.last_mut()
        && (last.ppn.0 + last.pages == run.ppn.0) & (last.lpn.0 + last.pages == run.lpn.0)
    {
        last.pages += run.pages;
        return;
    }
    runs.push(run);
}

/// Receives the runs of a loaded map, in any order.
pub(super) struct ReverseMapLoader<'a> {
    map: &'a mut ReverseMap,
    /// Number of runs that begin before each word, within its region.
    runs_before: Vec<u16>,
}

impl ReverseMapLoader<'_> {
    /// Adds the logical pages of a marked run.
    pub(super) fn run(&mut self, ppn: u32, lpn: u32, pages: u32) {
        let (mut first, mut lpn, end) = (ppn, lpn, ppn + pages);
        while first < end {
            let ((region, _), word) = (self.map.region_of(first), index(first / 64));
            let before = self.map.starts.at(word) & ((1 << (first % 64)) - 1);
            let runs = u32::from(self.runs_before[word]) + before.count_ones();
            self.map.entries.set(index(self.map.regions[index(region)].first_entry + runs), lpn);
            let here = end.min(self.map.region_end(region)) - first;
            first += here;
            lpn += here;
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    /// Checks that a walk through the map finds the same pages as an array.
    fn agree(map: &ReverseMap, logical: &[Option<u32>]) {
        let mut runs = Vec::new();
        let mut cursor = map.cursor(0);
        for word in logical.chunks(64) {
            let bits = (0..).zip(word).filter(|(_, lpn)| lpn.is_some());
            map.valid_runs(&mut cursor, bits.fold(0, |bits, (bit, _)| bits | 1 << bit), &mut runs);
        }
        let pages = runs.iter().flat_map(|run| run.physical_pages().zip(run.lpn.0..));
        let expected = (0..).zip(logical).filter_map(|(ppn, lpn): (u32, &Option<u32>)| Some((ppn, (*lpn)?)));
        assert!(pages.eq(expected), "going through the map finds other pages");
    }

    #[test]
    fn it_says_what_an_array_says() {
        for seed in 0..20 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut draw = |below: u32| u32::try_from(random.next_u64() % u64::from(below)).expect("it is below");
            let physical_pages = 3 * REGION_PAGES_MAX + 1 + draw(200);
            // Reclaim units of whole regions, of parts of a region, and of arbitrary sizes.
            let unit_pages = [REGION_PAGES_MAX, REGION_PAGES_MAX / 8, 1000, 2 * REGION_PAGES_MAX + 5][index(draw(4))];
            // Regions divide the units or are larger.
            let slice_pages = [unit_pages, REGION_PAGES_MAX][index(draw(2))];
            let longest_run = [1, 3, 40, 5000][index(draw(4))];
            let mut map = ReverseMap::new(physical_pages, slice_pages).expect("memory");
            let mut logical = vec![None; index(physical_pages)];
            let units = physical_pages / unit_pages;
            let mut positions = vec![0; index(units)];
            for _ in 0..2000 {
                let unit = draw(units);
                let position = &mut positions[index(unit)];
                let first = unit * unit_pages + *position;
                if *position == unit_pages {
                    map.erase(unit * unit_pages, unit_pages);
                    logical[index(unit * unit_pages)..][..index(unit_pages)].fill(None);
                    *position = 0;
                    continue;
                }
                let pages = (1 + draw(longest_run)).min(unit_pages - *position);
                let lpn = draw(1 << 20);
                map.append(first, lpn, pages);
                for (entry, lpn) in logical[index(first)..].iter_mut().zip(lpn..lpn + pages) {
                    *entry = Some(lpn);
                }
                // Some writes follow a gap, as after remapped blocks.
                *position = unit_pages.min(*position + pages + draw(2));
                if draw(50) == 0 && *position > 0 {
                    let before = unit * unit_pages + draw(*position);
                    map.append(before, 7, 1);
                    logical[index(before)] = Some(7);
                }
            }
            agree(&map, &logical);
            agree(&map.try_clone().expect("there is memory"), &logical);
            for (ppn, lpn) in (0..).zip(&logical).step_by(97) {
                assert!(lpn.is_none_or(|lpn| map.logical(Ppn(ppn)).0 == lpn), "page {ppn}, seed {seed}");
            }

            let mut restored = ReverseMap::new(physical_pages, slice_pages).expect("memory");
            let mut runs: Vec<MappedRun> = Vec::new();
            for (ppn, lpn) in (0..).zip(&logical).filter_map(|(ppn, lpn)| Some((ppn, (*lpn)?))) {
                let page = MappedRun { ppn: Ppn(ppn), lpn: Lpn(lpn), pages: 1 };
                append_run(&mut runs, page);
            }
            runs.sort_by_key(|run| run.lpn);
            for run in &runs {
                restored.restore_start(run.ppn.0, run.pages);
            }
            let mut restoring = restored.restore_runs();
            for run in &runs {
                restoring.run(run.ppn.0, run.lpn.0, run.pages);
            }
            agree(&restored, &logical);
        }
    }

    #[test]
    fn who_goes_through_a_region_that_becomes_flat_goes_on() {
        let mut map = ReverseMap::new(REGION_PAGES_MAX, REGION_PAGES_MAX).expect("memory");
        map.append(64, 1000, 192);
        let mut runs = Vec::new();
        let mut cursor = map.cursor(64);
        map.valid_runs(&mut cursor, u64::MAX, &mut runs);
        map.append(0, 5000, 64);
        assert_eq!(map.regions[0], AppendPosition::flat(0));
        map.valid_runs(&mut cursor, 1, &mut runs);
        let pages = [(64, 1000, 64), (128, 1064, 1)];
        assert!(runs.iter().map(|run| (run.ppn.0, run.lpn.0, run.pages)).eq(pages));
    }

    #[test]
    fn requests_take_an_entry_each_and_what_goes_on_takes_none() {
        let mut map = ReverseMap::new(2 * REGION_PAGES_MAX, 2 * REGION_PAGES_MAX).expect("memory");
        for request in 0..100 {
            map.append(request * 32, 1_000_000 - request * 64, 32);
        }
        assert_eq!(map.regions[0].runs, 100);
        for page in 0..100 {
            map.append(REGION_PAGES_MAX + page, 5 + page, 1);
        }
        assert_eq!(map.regions[1].runs, 1);
        map.append(REGION_PAGES_MAX + 50, 9, 1);
        assert_eq!(map.regions[1], AppendPosition::flat(REGION_PAGES_MAX));
        map.erase(REGION_PAGES_MAX, REGION_PAGES_MAX - 1);
        assert_eq!(map.regions[1], AppendPosition::flat(REGION_PAGES_MAX));
        map.erase(REGION_PAGES_MAX, REGION_PAGES_MAX);
        assert_eq!(map.regions[1], AppendPosition::empty(REGION_PAGES_MAX));
    }
}
