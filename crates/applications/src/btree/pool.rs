//! The buffer pool: an LRU list of pages, with dirty pages ordered by their first change in the
//! log.

use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct PageFrame {
    page: u32,
    newer: u32,
    older: u32,
    /// Log position of the first change since the last write. `None` for a clean page.
    dirty_since: Option<u64>,
}

/// Pages in memory.
pub(super) struct Pool {
    frames: Vec<PageFrame>,
    capacity: u32,
    /// Frame of each page.
    of_page: Vec<u32>,
    newest: u32,
    oldest: u32,
    /// Dirty pages in the order of their first change. An entry is valid if the page is still dirty
    /// since that change.
    dirty: VecDeque<(u64, u32)>,
    dirty_pages: u32,
}

impl Pool {
    /// Creates a pool of `capacity` frames for a tree of `pages` pages.
    pub(super) fn new(pages: u32, capacity: u32) -> Pool {
        Pool {
            frames: Vec::new(),
            capacity: capacity.min(pages),
            of_page: vec![NONE; pages as usize],
            newest: NONE,
            oldest: NONE,
            dirty: VecDeque::new(),
            dirty_pages: 0,
        }
    }

    /// Uses a page. Returns true if it is in the pool.
    pub(super) fn access(&mut self, page: u32) -> bool {
        let frame = self.of_page[page as usize];
        if frame == NONE {
            return false;
        }
        if frame != self.newest {
            self.unlink(frame);
            self.link(frame);
        }
        true
    }

    /// Page that must leave before the next load, if the pool is full.
    pub(super) fn next_out(&self) -> Option<u32> {
        (self.frames.len() as u32 == self.capacity).then(|| self.frames[self.oldest as usize].page)
    }

    /// Loads an absent page in place of [`Pool::next_out`], which must be clean.
    pub(super) fn load(&mut self, page: u32) {
        assert_eq!(self.of_page[page as usize], NONE, "page {page} is loaded twice");
        let frame = if (self.frames.len() as u32) < self.capacity {
            self.frames.push(PageFrame { page, newer: NONE, older: NONE, dirty_since: None });
            self.frames.len() as u32 - 1
        } else {
            let frame = self.oldest;
            let held = &mut self.frames[frame as usize];
            assert!(held.dirty_since.is_none(), "page {} leaves the pool and is dirty", held.page);
            self.of_page[held.page as usize] = NONE;
            held.page = page;
            self.unlink(frame);
            frame
        };
        self.of_page[page as usize] = frame;
        self.link(frame);
    }

    /// Marks a page in the pool as changed. `log_bytes` is the log position, if the log tracks the
    /// oldest changes.
    pub(super) fn change(&mut self, page: u32, log_bytes: Option<u64>) {
        let frame = &mut self.frames[self.of_page[page as usize] as usize];
        if frame.dirty_since.is_none() {
            frame.dirty_since = Some(log_bytes.unwrap_or(0));
            self.dirty_pages += 1;
            self.forget_written();
            self.dirty.extend(log_bytes.map(|since| (since, page)));
        }
    }

    /// Marks a page as written. A page that has left the pool was clean already.
    pub(super) fn clean(&mut self, page: u32) {
        let frame = self.of_page[page as usize];
        if frame != NONE && self.frames[frame as usize].dirty_since.take().is_some() {
            self.dirty_pages -= 1;
        }
    }

    fn is_dirty_since(&self, page: u32, since: u64) -> bool {
        let frame = self.of_page[page as usize];
        frame != NONE && self.frames[frame as usize].dirty_since == Some(since)
    }

    pub(super) fn is_dirty(&self, page: u32) -> bool {
        let frame = self.of_page[page as usize];
        frame != NONE && self.frames[frame as usize].dirty_since.is_some()
    }

    /// Log position of the oldest unwritten change.
    pub(super) fn oldest_change(&mut self) -> Option<u64> {
        self.forget_written();
        self.dirty.front().map(|(since, _)| *since)
    }

    /// Drops invalid entries from the front. Without that, the list would grow if the oldest change
    /// is never requested.
    fn forget_written(&mut self) {
        while let Some(&(since, page)) = self.dirty.front()
            && !self.is_dirty_since(page, since)
        {
            self.dirty.pop_front();
        }
    }

    /// Collects up to `most` pages with the oldest changes.
    pub(super) fn oldest_dirty(&self, most: usize, pages: &mut Vec<u32>) {
        let valid = self.dirty.iter().filter(|(since, page)| self.is_dirty_since(*page, *since));
        pages.extend(valid.take(most).map(|(_, page)| *page));
    }

    /// Collects up to `most` dirty pages from the end of the LRU list. Examines at most eight times
    /// as many pages.
    pub(super) fn dirty_out(&self, most: usize, pages: &mut Vec<u32>) {
        let mut frame = self.oldest;
        for _ in 0..8 * most {
            if frame == NONE || pages.len() == most {
                return;
            }
            let held = self.frames[frame as usize];
            if held.dirty_since.is_some() {
                pages.push(held.page);
            }
            frame = held.newer;
        }
    }

    /// Collects all dirty pages in the order of their numbers.
    pub(super) fn all_dirty(&self, pages: &mut Vec<u32>) {
        let dirty = self.frames.iter().filter(|frame| frame.dirty_since.is_some());
        pages.extend(dirty.map(|frame| frame.page));
        pages.sort_unstable();
        assert_eq!(pages.len() as u32, self.dirty_pages, "dirty pages are counted");
    }

    /// Number of entries in the list of changes.
    #[cfg(test)]
    pub(super) fn remembered_changes(&self) -> usize {
        self.dirty.len()
    }

    fn unlink(&mut self, frame: u32) {
        let PageFrame { newer, older, .. } = self.frames[frame as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.frames[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.frames[older as usize].newer = newer,
        }
    }

    fn link(&mut self, frame: u32) {
        let held = &mut self.frames[frame as usize];
        (held.newer, held.older) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = frame,
            newest => self.frames[newest as usize].newer = frame,
        }
        self.newest = frame;
    }
}
