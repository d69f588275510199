//! Undo log of the L2P map for a checkpoint. It contains the changes of entries that the checkpoint
//! has not copied yet, so that the checkpoint can revert them.
//!
//! ```text
//! begin     -> creates an empty log
//! a change  -> appends the previous value, if the entry is not copied yet
//! copy_part -> copies the next entries and takes the changes logged so far. Copied entries are not
//!              logged any more
//! ```
//!
//! The checkpoint sorts the changes by part and reverts them in reverse order without access to the
//! device ([`crate::checkpoint`]), so host commands only wait for the append. When the log reaches
//! its limit or memory is exhausted, it stops and the checkpoint is abandoned. At most one log
//! exists. It belongs to the checkpoint that began it.

use std::ops::Range;
use std::sync::Arc;

use super::{PageMaps, run_length};
use crate::cast::{index, wide};
use crate::error::CheckpointAbort;
use crate::types::{Lpn, MappedRun};

/// Size of a part in L2P entries, 256 KiB. A part is copied in some ten microseconds and stored as
/// one section.
pub(crate) const PART_PAGES: u32 = 1 << 16;

pub(crate) fn parts(logical_pages: u32) -> impl Iterator<Item = Range<u32>> {
    (0..logical_pages.div_ceil(PART_PAGES)).map(move |part| part_from(part * PART_PAGES, logical_pages))
}

/// Logical pages of the part that begins with `start`.
pub(crate) fn part_from(start: u32, logical_pages: u32) -> Range<u32> {
    start..start + PART_PAGES.min(logical_pages - start)
}

/// A run of logical pages that was remapped or unmapped.
#[derive(Clone, Copy)]
pub(crate) struct MapChange {
    pub(crate) lpn: u32,
    pub(crate) pages: u32,
    /// Previous entry of the first page. The entries of the other pages continued the run.
    pub(crate) before: u32,
}

/// Number of changes per allocation.
const BLOCK_CHANGES: usize = 4096;

/// Unique token that ties a checkpoint to the log that it began.
#[derive(Clone)]
pub(crate) struct UndoEpoch(Arc<()>);

impl PartialEq for UndoEpoch {
    fn eq(&self, other: &UndoEpoch) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Undo log of one checkpoint.
pub(crate) struct UndoLog {
    epoch: UndoEpoch,
    /// Number of copied entries.
    copied: u32,
    full: Vec<Vec<MapChange>>,
    last: Vec<MapChange>,
    /// Number of changes that may be logged until the next part is copied.
    changes_left: u64,
    ended: Option<CheckpointAbort>,
}

/// Log of the checkpoint in progress, if any. Clones of the maps do not include it.
#[derive(Default)]
pub(super) struct ActiveUndo(pub(super) Option<Box<UndoLog>>);

impl Clone for ActiveUndo {
    fn clone(&self) -> ActiveUndo {
        ActiveUndo(None)
    }
}

impl UndoLog {
    /// Logs the mapping of a run of logical pages before it is remapped. `entries` is the whole L2P
    /// map.
    #[cold]
    #[inline(never)]
    pub(super) fn log_remap(&mut self, entries: &[u32], first: Lpn, pages: u32) {
        self.log_if(entries, first, pages, |_| true);
    }

    /// Logs the mapping of a run before it is unmapped. Skips unmapped pages.
    #[cold]
    #[inline(never)]
    pub(super) fn log_unmap(&mut self, entries: &[u32], first: Lpn, pages: u32) {
        self.log_if(entries, first, pages, |change| change.before != 0);
    }

    fn log_if(&mut self, entries: &[u32], first: Lpn, pages: u32, changes: impl Fn(&MapChange) -> bool) {
        let end = first.0 + pages;
        let mut lpn = first.0.max(self.copied);
        while lpn < end && self.ended.is_none() {
            let left = &entries[index(lpn)..index(end)];
            let change = MapChange { lpn, pages: run_length(left), before: left[0] };
            if changes(&change) {
                self.append(change);
            }
            lpn += change.pages;
        }
    }

    /// Logs the mapping of runs before they move.
    #[cold]
    #[inline(never)]
    pub(super) fn log_moves(&mut self, runs: &[MappedRun]) {
        for &MappedRun { ppn, lpn, pages } in runs {
            let copied = self.copied.saturating_sub(lpn.0);
            if copied < pages {
                self.append(MapChange { lpn: lpn.0 + copied, pages: pages - copied, before: !(ppn.0 + copied) });
            }
        }
    }

    #[inline]
    fn append(&mut self, change: MapChange) {
        if let Some(last) = self.last.last_mut() {
            let step = if last.before == 0 { 0 } else { last.pages };
            if last.lpn + last.pages == change.lpn && last.before.wrapping_sub(step) == change.before {
                last.pages += change.pages;
                return;
            }
        }
        if self.last.len() == self.last.capacity() && !self.add_block() {
            return;
        }
        assert!(change.lpn >= self.copied, "a change of a copied part is logged");
        self.last.push(change);
    }

    /// Allocates another block of changes. Returns false if the limit or memory is exhausted.
    fn add_block(&mut self) -> bool {
        let mut block = Vec::new();
        self.ended = match self.ended {
            Some(ended) => Some(ended),
            None if self.changes_left < wide(BLOCK_CHANGES) => Some(CheckpointAbort::TooManyChanges),
            None if self.full.try_reserve(1).is_err() || block.try_reserve_exact(BLOCK_CHANGES).is_err() => {
                Some(CheckpointAbort::NoMemory)
            }
            None => None,
        };
        if self.ended.is_some() {
            return false;
        }
        self.changes_left -= wide(BLOCK_CHANGES);
        self.full.push(std::mem::replace(&mut self.last, block));
        true
    }
}

/// Result of copying one part.
pub(crate) struct PartCopy {
    /// Blocks of changes logged since the previous part was copied, in order.
    pub(crate) changes: Vec<Vec<MapChange>>,
    /// The log itself, after the last part.
    pub(crate) log: Option<Box<UndoLog>>,
}

impl PageMaps {
    /// Starts a new log, which replaces any previous log.
    pub(crate) fn begin_undo(&mut self, changes_max: u64) -> UndoEpoch {
        let epoch = UndoEpoch(Arc::new(()));
        self.undo = ActiveUndo(Some(Box::new(UndoLog {
            epoch: epoch.clone(),
            copied: 0,
            full: Vec::new(),
            last: Vec::new(),
            changes_left: changes_max,
            ended: None,
        })));
        epoch
    }

    /// Ends the log, unless another log has been started since. Returns it, so that the caller can
    /// free it without holding the device lock.
    pub(crate) fn end_undo(&mut self, epoch: &UndoEpoch) -> Option<Box<UndoLog>> {
        self.undo.0.take_if(|log| log.epoch == *epoch)
    }

    /// Returns true if the current log belongs to this checkpoint.
    pub(crate) fn logs_for(&self, epoch: &UndoEpoch) -> bool {
        self.undo.0.as_ref().is_some_and(|log| log.epoch == *epoch)
    }

    /// Copies the entries of the next part, `pages`, into `entries`, and takes the logged changes.
    /// `changes_max` limits the sum of the taken changes and those logged until the next call.
    pub(crate) fn copy_part(
        &mut self,
        epoch: &UndoEpoch,
        pages: Range<u32>,
        entries: &mut Vec<u32>,
        changes_max: u64,
    ) -> Result<PartCopy, CheckpointAbort> {
        let log = self.undo.0.as_mut().filter(|log| log.epoch == *epoch);
        let log = log.ok_or(CheckpointAbort::Replaced)?;
        if let Some(ended) = log.ended {
            return Err(ended);
        }
        assert_eq!(log.copied, pages.start, "a checkpoint copies part after part");
        log.copied = pages.end;
        let mut changes = std::mem::take(&mut log.full);
        changes.push(std::mem::take(&mut log.last));
        let taken: usize = changes.iter().map(Vec::len).sum();
        log.changes_left = changes_max.saturating_sub(wide(taken));
        assert!(index(pages.end) <= self.l2p_inverted.get().len(), "a part ends with the map");
        let is_last = index(pages.end) == self.l2p_inverted.get().len();
        self.copy_entries(pages, entries);
        Ok(PartCopy { changes, log: is_last.then(|| self.end_undo(epoch)).flatten() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_every_page_once() {
        for pages in [1, PART_PAGES - 1, PART_PAGES, PART_PAGES + 1, u32::MAX - 1] {
            let mut end = 0;
            for part in parts(pages) {
                assert_eq!(part.start, end);
                assert!(part.len() <= index(PART_PAGES) && !part.is_empty());
                end = part.end;
            }
            assert_eq!(end, pages);
        }
    }
}
