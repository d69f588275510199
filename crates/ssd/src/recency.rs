//! Recency of host writes, which separates hot data from other data inside a drive.
//!
//! A window contains the last pages that the host wrote, in order. A page is recent while it is in
//! the window. Writes to recent pages go to a separate reclaim unit (see
//! `HandlesConfig::hot_window_bytes`). The window does not know physical locations.
//!
//! Each written page enters the window, and one page leaves it. To make this cheap, the window
//! stores extents. A custom hash table counts how often each page is in the window. Each entry
//! holds 32 neighbouring pages, whose counts change together.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::cast::{index, wide};
use crate::types::{Lpn, Ppn};

/// Window of the pages that the host wrote last.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "WindowSnapshot", into = "WindowSnapshot")]
pub(crate) struct RecencyWindow {
    pages_max: u32,
    /// First page and length of each extent in the window, oldest first.
    extents: VecDeque<(u32, u32)>,
    /// Total pages of the extents.
    pages: u64,
    times: OccurrenceCounts,
}

/// Snapshot format of the window.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct WindowSnapshot {
    pages_max: u32,
    /// Logical pages, oldest first.
    pages: Vec<u32>,
}

impl TryFrom<WindowSnapshot> for RecencyWindow {
    type Error = &'static str;

    fn try_from(window: WindowSnapshot) -> Result<RecencyWindow, &'static str> {
        if window.pages_max == 0 || wide(window.pages.len()) > u64::from(window.pages_max) {
            return Err("the window of recent pages exceeds its size");
        }
        if window.pages.contains(&Ppn::UNMAPPED.0) {
            return Err("the window of recent pages contains a page that does not exist");
        }
        let mut recency = RecencyWindow {
            pages_max: window.pages_max,
            extents: VecDeque::new(),
            pages: 0,
            times: OccurrenceCounts::default(),
        };
        window.pages.iter().for_each(|page| recency.add(*page, 1));
        Ok(recency)
    }
}

impl From<RecencyWindow> for WindowSnapshot {
    fn from(recency: RecencyWindow) -> WindowSnapshot {
        let pages = recency.extents.iter().flat_map(|&(first, pages)| first..first + pages);
        WindowSnapshot { pages_max: recency.pages_max, pages: pages.collect() }
    }
}

impl RecencyWindow {
    pub(crate) fn new(pages_max: u32) -> RecencyWindow {
        assert!(pages_max > 0, "a window holds a page");
        RecencyWindow { pages_max, extents: VecDeque::new(), pages: 0, times: OccurrenceCounts::default() }
    }

    /// Returns true if the window has this size and contains only pages of a drive of
    /// `logical_pages`.
    pub(crate) fn fits(&self, pages_max: u32, logical_pages: u32) -> bool {
        let is_there = |&(first, pages): &(u32, u32)| first < logical_pages && pages <= logical_pages - first;
        self.pages_max == pages_max && self.pages <= u64::from(pages_max) && self.extents.iter().all(is_there)
    }

    /// Returns true if the first page is recent, and the number of pages from it on in the same
    /// state.
    #[inline]
    pub(crate) fn run(&self, first: Lpn, pages_max: u32) -> (bool, u32) {
        let mut group = first.0 / GROUP_PAGES;
        let mut pages = self.times.recent(group) >> (first.0 % GROUP_PAGES);
        let recent = pages & 1 == 1;
        let mut here = GROUP_PAGES - first.0 % GROUP_PAGES;
        let mut run = 0;
        loop {
            let alike = if recent { pages.trailing_ones() } else { pages.trailing_zeros() };
            run += alike.min(here);
            if alike < here || run >= pages_max {
                break;
            }
            group += 1;
            pages = self.times.recent(group);
            here = GROUP_PAGES;
        }
        assert!(run > 0, "a page is like itself");
        (recent, run.min(pages_max))
    }

    /// Adds an extent that the host has written.
    pub(crate) fn record_write(&mut self, first: Lpn, pages: u32) {
        self.add(first.0, pages);
        while self.pages > u64::from(self.pages_max) {
            let (oldest, left) = self.extents.front_mut().expect("pages are of an extent");
            let leaving = (self.pages - u64::from(self.pages_max)).min(u64::from(*left));
            let (first, leaving) = (*oldest, u32::try_from(leaving).expect("it is part of an extent"));
            *oldest += leaving;
            *left -= leaving;
            if *left == 0 {
                self.extents.pop_front();
            }
            self.pages -= u64::from(leaving);
            each_group(first, leaving, |group, pages| self.times.remove(group, pages));
        }
        assert!(
            wide(self.times.len) <= self.pages,
            "more groups of pages are counted than there are pages in the window"
        );
    }

    #[inline]
    fn add(&mut self, first: u32, pages: u32) {
        self.extents.push_back((first, pages));
        self.pages += u64::from(pages);
        each_group(first, pages, |group, pages| self.times.add(group, pages));
    }
}

/// Number of pages in a group, which are counted together.
const GROUP_PAGES: u32 = 32;

/// Calls `call` with each group of an extent and a bit mask of its pages.
#[inline(always)]
fn each_group(mut first: u32, pages: u32, mut call: impl FnMut(u32, u32)) {
    let mut left = pages;
    while left > 0 {
        let here = left.min(GROUP_PAGES - first % GROUP_PAGES);
        call(first / GROUP_PAGES, u32::MAX >> (GROUP_PAGES - here) << (first % GROUP_PAGES));
        // The last page may have the highest 32-bit number.
        first = first.wrapping_add(here);
        left -= here;
    }
}

/// Number of occurrences of each page in the window. A hash table with open addressing, at most
/// half full. Entries of a cluster are as near to their home slots as possible.
#[derive(Clone, Debug)]
struct OccurrenceCounts {
    /// Entries. Their number is a power of two.
    entries: Box<[CountEntry]>,
    /// Number of used entries.
    len: usize,
    /// Number of fours for each page with a count of four or more.
    fours: FxHashMap<u32, u32>,
}

/// A group of pages, with one bit per page in each digit of its count.
#[derive(Clone, Copy, Debug, Default)]
struct CountEntry {
    group: u32,
    ones: u32,
    twos: u32,
    /// Set for pages that have fours.
    fours: u32,
}

impl CountEntry {
    /// Pages with a count above 0. An entry without pages is empty.
    #[inline]
    fn pages(&self) -> u32 {
        self.ones | self.twos | self.fours
    }
}

impl Default for OccurrenceCounts {
    fn default() -> OccurrenceCounts {
        OccurrenceCounts { entries: vec![CountEntry::default(); 16].into(), len: 0, fours: FxHashMap::default() }
    }
}

impl OccurrenceCounts {
    /// Home slot of a group. Spreads neighbouring groups (Knuth, "The Art of Computer Programming"
    /// 6.4, Fibonacci hashing).
    #[inline]
    fn home(&self, group: u32) -> usize {
        // 2^32 divided by the golden ratio, odd.
        let hash = group.wrapping_mul(0x9e37_79b1);
        index(hash >> (32 - self.entries.len().trailing_zeros()))
    }

    #[inline]
    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.entries.len() - 1)
    }

    /// Slot of a group, or the slot for inserting it.
    #[inline]
    fn find(&self, group: u32) -> usize {
        let mut place = self.home(group);
        loop {
            let entry = &self.entries[place];
            if entry.group == group || entry.pages() == 0 {
                return place;
            }
            place = self.next(place);
        }
    }

    /// Pages of a group that are in the window.
    #[inline]
    fn recent(&self, group: u32) -> u32 {
        self.entries[self.find(group)].pages()
    }

    /// Increments the counts of pages of a group.
    #[inline]
    fn add(&mut self, group: u32, pages: u32) {
        let place = self.find(group);
        let entry = &mut self.entries[place];
        let is_new = entry.pages() == 0;
        let carry = entry.ones & pages;
        let fours = entry.twos & carry;
        *entry = CountEntry { group, ones: entry.ones ^ pages, twos: entry.twos ^ carry, fours: entry.fours | fours };
        if fours != 0 {
            self.add_fours(group, fours);
        }
        if is_new {
            self.len += 1;
            if 2 * self.len > self.entries.len() {
                self.grow();
            }
        }
    }

    /// Decrements the counts of pages of a group.
    ///
    /// # Panics
    /// A page has a count of 0.
    #[inline]
    fn remove(&mut self, group: u32, pages: u32) {
        let place = self.find(group);
        let entry = &mut self.entries[place];
        assert_eq!(entry.pages() & pages, pages, "a removed page was in the window");
        let borrow = !entry.ones & pages;
        let fours = !entry.twos & borrow;
        entry.ones ^= pages;
        entry.twos ^= borrow;
        if fours != 0 {
            self.remove_fours(place, fours);
        }
        if self.entries[place].pages() == 0 {
            self.len -= 1;
            self.close(place);
        }
    }

    #[inline(never)]
    fn add_fours(&mut self, group: u32, pages: u32) {
        for page in ones(pages) {
            *self.fours.entry(group * GROUP_PAGES + page).or_insert(0) += 1;
        }
    }

    #[inline(never)]
    fn remove_fours(&mut self, place: usize, pages: u32) {
        let entry = &mut self.entries[place];
        for page in ones(pages) {
            let number = entry.group * GROUP_PAGES + page;
            let fours = self.fours.get_mut(&number).expect("a lending page has runs of four");
            *fours -= 1;
            if *fours == 0 {
                self.fours.remove(&number);
                entry.fours &= !(1 << page);
            }
        }
    }

    /// Fills a freed slot. Moves later entries of the cluster that may be nearer to their home
    /// slots.
    #[inline]
    fn close(&mut self, mut hole: usize) {
        let mask = self.entries.len() - 1;
        let mut place = self.next(hole);
        while self.entries[place].pages() > 0 {
            let way = place.wrapping_sub(self.home(self.entries[place].group)) & mask;
            if way >= (place.wrapping_sub(hole) & mask) {
                self.entries[hole] = self.entries[place];
                hole = place;
            }
            place = self.next(place);
        }
        self.entries[hole] = CountEntry::default();
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![CountEntry::default(); 2 * self.entries.len()];
        let before = std::mem::replace(&mut self.entries, larger.into());
        for entry in before.iter().filter(|entry| entry.pages() > 0) {
            let place = self.find(entry.group);
            self.entries[place] = *entry;
        }
    }
}

/// Positions of the set bits.
fn ones(bits: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).filter(move |bit| bits >> bit & 1 == 1)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use rand::RngExt;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;
    use crate::cast::count;

    /// Compares with a window and counts of the standard library, with pages that collide and
    /// clusters that wrap around.
    #[test]
    fn it_agrees_with_counting() {
        for seed in 0..40 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let pages_max = random.random_range(1..200);
            let spread = random.random_range(1..1000);
            let longest = [2, 4, 100][seed as usize % 3];
            let mut recency = RecencyWindow::new(pages_max);
            let (mut window, mut times) = (VecDeque::new(), HashMap::new());
            for step in 0..3000 {
                let first = random.random_range(0..spread);
                let pages = random.random_range(1..longest);
                recency.record_write(Lpn(first), pages);
                for page in first..first + pages {
                    if window.len() == index(pages_max) {
                        let oldest: u32 = window.pop_front().expect("it is full");
                        *times.get_mut(&oldest).expect("it was counted") -= 1;
                    }
                    window.push_back(page);
                    *times.entry(page).or_insert(0) += 1;
                }
                let page = random.random_range(0..spread + 100);
                let is_recent = |page: &u32| times.get(page).is_some_and(|times| *times > 0);
                let alike = (page..page + 70).take_while(|other| is_recent(other) == is_recent(&page));
                let expected = (is_recent(&page), count(alike.count()));
                assert_eq!(recency.run(Lpn(page), 70), expected, "seed {seed}, step {step}");
            }
            let kept = WindowSnapshot::from(recency.clone());
            assert!(kept.pages.iter().eq(window.iter()), "seed {seed}");
            let counted = recency.times.entries.iter().map(|entry| entry.pages().count_ones()).sum::<u32>();
            assert_eq!(index(counted), times.values().filter(|times| **times > 0).count());
            assert_eq!(recency.times.len, recency.times.entries.iter().filter(|entry| entry.pages() > 0).count());
            assert!(RecencyWindow::try_from(kept).is_ok_and(|kept| kept.fits(pages_max, u32::MAX)));
        }
    }
}
