//! Set of the pages of a drive that hold data.

use std::ops::Range;

/// A bit for each page.
#[derive(Clone, Debug)]
pub(crate) struct PageSet {
    words: Vec<u64>,
}

impl PageSet {
    pub(crate) fn with_room(pages: u64) -> PageSet {
        PageSet { words: vec![0; pages.div_ceil(64) as usize] }
    }

    pub(crate) fn set(&mut self, pages: Range<u64>, is_member: bool) {
        for page in pages {
            let (word, bit) = ((page / 64) as usize, 1 << (page % 64));
            if is_member {
                self.words[word] |= bit;
            } else {
                self.words[word] &= !bit;
            }
        }
    }

    pub(crate) fn contains(&self, page: u64) -> bool {
        self.words[(page / 64) as usize] & (1 << (page % 64)) != 0
    }

    /// Returns the runs of consecutive members within a range.
    pub(crate) fn runs(&self, within: Range<u64>) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for page in within.filter(|page| self.contains(*page)) {
            match runs.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => runs.push(page..page + 1),
            }
        }
        runs
    }
}
