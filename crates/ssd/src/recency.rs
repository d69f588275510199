//! The pages that the host wrote last: what tells hot data from the rest inside a drive.
//!
//! A window of so many pages over all that the host writes, in order; a page is recent while it is in there. What is
//! written to a recent page goes to a reclaim unit apart (see `Handles::separation_bytes`). Nothing here knows where
//! pages are.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::cast::{count, index};
use crate::types::Lpn;

/// See the module.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Window", into = "Window")]
pub(crate) struct Recency {
    window: Window,
    /// How often each page stands in the window.
    times: FxHashMap<u32, u32>,
}

/// The window as snapshots keep it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Window {
    pages_max: u32,
    /// Logical pages, the one written first at the front.
    pages: VecDeque<u32>,
}

impl From<Window> for Recency {
    fn from(window: Window) -> Recency {
        let mut times = FxHashMap::default();
        for page in &window.pages {
            *times.entry(*page).or_insert(0) += 1;
        }
        Recency { window, times }
    }
}

impl From<Recency> for Window {
    fn from(recency: Recency) -> Window {
        recency.window
    }
}

impl Recency {
    pub(crate) fn new(pages_max: u32) -> Recency {
        assert!(pages_max > 0, "a window holds a page");
        Recency::from(Window {
            pages_max,
            pages: VecDeque::new(),
        })
    }

    /// Whether it is a window of so many pages and holds no more.
    pub(crate) fn fits(&self, pages_max: u32) -> bool {
        self.window.pages_max == pages_max && self.window.pages.len() <= index(pages_max)
    }

    /// Whether the first page is recent, and how many from it on are alike.
    pub(crate) fn run(&self, first: Lpn, pages_max: u32) -> (bool, u32) {
        let is_recent = |page: u32| self.times.contains_key(&page);
        let recent = is_recent(first.0);
        let alike = (first.0..first.0 + pages_max).take_while(|page| is_recent(*page) == recent);
        let run = count(alike.count());
        assert!(run > 0, "a page is like itself");
        (recent, run)
    }

    /// The host has written an extent.
    pub(crate) fn wrote(&mut self, first: Lpn, pages: u32) {
        for page in first.0..first.0 + pages {
            if self.window.pages.len() == index(self.window.pages_max) {
                let oldest = self.window.pages.pop_front().expect("a full window holds a page");
                let times = self.times.get_mut(&oldest).expect("what is in the window is counted");
                *times -= 1;
                if *times == 0 {
                    self.times.remove(&oldest);
                }
            }
            self.window.pages.push_back(page);
            *self.times.entry(page).or_insert(0) += 1;
        }
        assert!(
            self.times.len() <= self.window.pages.len(),
            "more pages are counted than are in the window"
        );
    }
}
