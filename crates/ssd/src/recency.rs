//! The pages that the host wrote last: what tells hot data from the rest inside a drive.
//!
//! A window of so many pages over all that the host writes, in order; a page is recent while it is in there. What is
//! written to a recent page goes to a reclaim unit apart (see `Handles::separation_bytes`). Nothing here knows where
//! pages are.
//!
//! Each page that is written comes into the window, and one leaves it: two changes of a table for each, which was half of
//! all work of a run. So the table is of our own: small entries side by side, and no mark left behind by what has gone.

use serde::{Deserialize, Serialize};

use crate::cast::{count, index};
use crate::types::Lpn;

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Window", into = "Window")]
pub(crate) struct Recency {
    pages_max: u32,
    /// The pages of the window; once it is full, from `oldest` on and around.
    pages: Vec<u32>,
    oldest: usize,
    times: Times,
}

/// The window as snapshots keep it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Window {
    pages_max: u32,
    /// Logical pages, the one written first at the front.
    pages: Vec<u32>,
}

impl From<Window> for Recency {
    fn from(window: Window) -> Recency {
        let mut times = Times::default();
        window.pages.iter().for_each(|page| times.add(*page));
        Recency {
            pages_max: window.pages_max,
            pages: window.pages,
            oldest: 0,
            times,
        }
    }
}

impl From<Recency> for Window {
    fn from(recency: Recency) -> Window {
        let mut pages = recency.pages;
        pages.rotate_left(recency.oldest);
        Window {
            pages_max: recency.pages_max,
            pages,
        }
    }
}

impl Recency {
    pub(crate) fn new(pages_max: u32) -> Recency {
        assert!(pages_max > 0, "a window holds a page");
        Recency::from(Window {
            pages_max,
            pages: Vec::new(),
        })
    }

    /// Whether it is a window of so many pages and holds no more.
    pub(crate) fn fits(&self, pages_max: u32) -> bool {
        self.pages_max == pages_max && self.pages.len() <= index(pages_max)
    }

    /// Whether the first page is recent, and how many from it on are alike.
    #[inline]
    pub(crate) fn run(&self, first: Lpn, pages_max: u32) -> (bool, u32) {
        let recent = self.times.holds(first.0);
        let alike = (first.0..first.0 + pages_max).take_while(|page| self.times.holds(*page) == recent);
        let run = count(alike.count());
        assert!(run > 0, "a page is like itself");
        (recent, run)
    }

    /// The host has written an extent.
    pub(crate) fn wrote(&mut self, first: Lpn, pages: u32) {
        for page in first.0..first.0 + pages {
            if self.pages.len() < index(self.pages_max) {
                self.pages.push(page);
            } else {
                let oldest = std::mem::replace(&mut self.pages[self.oldest], page);
                self.oldest += 1;
                if self.oldest == self.pages.len() {
                    self.oldest = 0;
                }
                self.times.remove(oldest);
            }
            self.times.add(page);
        }
        assert!(
            self.times.len <= self.pages.len(),
            "more pages are counted than are in the window"
        );
    }
}

/// How often each page stands in the window: a table with open addressing, at most half full, in which the entries of a run of
/// taken places stand as near to their own place as they can.
#[derive(Clone, Debug)]
struct Times {
    /// A power of two of them.
    entries: Box<[Entry]>,
    /// Entries that are taken.
    len: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    page: u32,
    /// 0: nothing is here.
    times: u32,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            entries: vec![Entry::default(); 16].into(),
            len: 0,
        }
    }
}

impl Times {
    /// Where a page would stand first: neighbours are spread (Knuth, "The Art of Computer Programming" 6.4, Fibonacci hashing).
    #[inline]
    fn home(&self, page: u32) -> usize {
        // 2^32 by the golden ratio, odd.
        let hash = page.wrapping_mul(0x9e37_79b1);
        index(hash >> (32 - self.entries.len().trailing_zeros()))
    }

    #[inline]
    fn next(&self, place: usize) -> usize {
        (place + 1) & (self.entries.len() - 1)
    }

    /// Where a page stands, or would.
    #[inline]
    fn find(&self, page: u32) -> usize {
        let mut place = self.home(page);
        loop {
            let entry = self.entries[place];
            if entry.times == 0 || entry.page == page {
                return place;
            }
            place = self.next(place);
        }
    }

    #[inline]
    fn holds(&self, page: u32) -> bool {
        self.entries[self.find(page)].times > 0
    }

    #[inline]
    fn add(&mut self, page: u32) {
        let place = self.find(page);
        let entry = &mut self.entries[place];
        let is_new = entry.times == 0;
        *entry = Entry {
            page,
            times: entry.times + 1,
        };
        if is_new {
            self.len += 1;
            if 2 * self.len > self.entries.len() {
                self.grow();
            }
        }
    }

    /// Takes a page away once.
    ///
    /// # Panics
    /// It is not there.
    #[inline]
    fn remove(&mut self, page: u32) {
        let place = self.find(page);
        let entry = &mut self.entries[place];
        assert!(entry.times > 0, "what leaves the window was in it");
        entry.times -= 1;
        if entry.times == 0 {
            self.len -= 1;
            self.close(place);
        }
    }

    /// An entry has gone: those behind it that may stand nearer to their own place move up.
    #[inline]
    fn close(&mut self, mut hole: usize) {
        let mask = self.entries.len() - 1;
        let mut place = self.next(hole);
        while self.entries[place].times > 0 {
            let way = place.wrapping_sub(self.home(self.entries[place].page)) & mask;
            if way >= (place.wrapping_sub(hole) & mask) {
                self.entries[hole] = self.entries[place];
                hole = place;
            }
            place = self.next(place);
        }
        self.entries[hole].times = 0;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = vec![Entry::default(); 2 * self.entries.len()];
        let before = std::mem::replace(&mut self.entries, larger.into());
        for entry in before.iter().filter(|entry| entry.times > 0) {
            let place = self.find(entry.page);
            self.entries[place] = *entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, VecDeque};

    use rand::RngExt;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    use super::*;

    /// Against a window and counts of the standard library, with pages that collide and runs that wrap around.
    #[test]
    fn it_agrees_with_counting() {
        for seed in 0..40 {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
            let pages_max = random.random_range(1..200);
            let spread = random.random_range(1..1000);
            let mut recency = Recency::new(pages_max);
            let (mut window, mut times) = (VecDeque::new(), HashMap::new());
            for step in 0..3000 {
                let first = random.random_range(0..spread);
                let pages = random.random_range(1..4);
                recency.wrote(Lpn(first), pages);
                for page in first..first + pages {
                    if window.len() == index(pages_max) {
                        let oldest: u32 = window.pop_front().expect("it is full");
                        *times.get_mut(&oldest).expect("it was counted") -= 1;
                    }
                    window.push_back(page);
                    *times.entry(page).or_insert(0) += 1;
                }
                let page = random.random_range(0..spread + 4);
                let is_recent = |page: &u32| times.get(page).is_some_and(|times| *times > 0);
                let alike = (page..page + 3).take_while(|other| is_recent(other) == is_recent(&page));
                let expected = (is_recent(&page), count(alike.count()));
                assert_eq!(recency.run(Lpn(page), 3), expected, "seed {seed}, step {step}");
            }
            let kept = Window::from(recency.clone());
            assert!(kept.pages.iter().eq(window.iter()), "seed {seed}");
            assert_eq!(recency.times.len, times.values().filter(|times| **times > 0).count());
            assert!(Recency::from(kept).fits(pages_max));
        }
    }
}
