//! What changed in the L2P map since a checkpoint began, as far as the checkpoint has not copied it: enough to take the
//! changes back.
//!
//! ```text
//! begin     -> an empty log
//! a change  -> of an entry that is not copied yet: what it was is appended, in the order of changes
//! copy_part -> the next entries as they are, and all that was noted; what is copied is not noted any more
//! ```
//!
//! Whoever makes the checkpoint sorts what was noted by part and takes it back in reverse order, without the device
//! ([`crate::checkpoint`]), so appending is all that a host's command waits for. The log is as long as it may be: beyond that, and
//! without memory, it notes nothing more, and the checkpoint comes to nothing. There is one log; it knows which checkpoint began it,
//! and is no other's.

use std::ops::Range;
use std::sync::Arc;

use super::{Maps, run_length};
use crate::cast::{index, wide};
use crate::error::CheckpointEnded;
use crate::types::{Lpn, MappedRun};

/// Entries of the L2P map that are copied, and stored, in one piece: 256 KiB, which is copied in some ten microseconds.
pub(crate) const PART_PAGES: u32 = 1 << 16;

/// The logical pages of each part.
pub(crate) fn parts(logical_pages: u32) -> impl Iterator<Item = Range<u32>> {
    (0..logical_pages.div_ceil(PART_PAGES)).map(move |part| part_from(part * PART_PAGES, logical_pages))
}

/// The logical pages of the part that begins with this one.
pub(crate) fn part_from(start: u32, logical_pages: u32) -> Range<u32> {
    start..start + PART_PAGES.min(logical_pages - start)
}

/// A run of logical pages that was mapped to other physical pages, or to none.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    pub(crate) lpn: u32,
    pub(crate) pages: u32,
    /// Entry of the first of them before; those of the others followed as they do in a run.
    pub(crate) before: u32,
}

/// Changes that are allocated in one piece.
const BLOCK_CHANGES: usize = 4096;

/// What a checkpoint shows to have the log that it began: there is one of each.
#[derive(Clone)]
pub(crate) struct Beginning(Arc<()>);

impl PartialEq for Beginning {
    fn eq(&self, other: &Beginning) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// See the module.
pub(crate) struct UndoLog {
    beginning: Beginning,
    /// Entries before this one are copied.
    copied: u32,
    full: Vec<Vec<Change>>,
    last: Vec<Change>,
    /// Changes that may be noted until the next part is copied.
    room: u64,
    ended: Option<CheckpointEnded>,
}

/// The log of the checkpoint that is being made, if one is; a copy of the maps is not part of it.
#[derive(Default)]
pub(super) struct Undo(pub(super) Option<Box<UndoLog>>);

impl Clone for Undo {
    fn clone(&self) -> Undo {
        Undo(None)
    }
}

impl UndoLog {
    /// Notes what a run of logical pages, of which `entries` are all entries, is mapped to before it is mapped anew.
    #[cold]
    #[inline(never)]
    pub(super) fn note(&mut self, entries: &[u32], first: Lpn, pages: u32) {
        self.note_if(entries, first, pages, |_| true);
    }

    /// The same before it is unmapped; what is not mapped does not change.
    #[cold]
    #[inline(never)]
    pub(super) fn note_unmapping(&mut self, entries: &[u32], first: Lpn, pages: u32) {
        self.note_if(entries, first, pages, |change| change.before != 0);
    }

    fn note_if(&mut self, entries: &[u32], first: Lpn, pages: u32, changes: impl Fn(&Change) -> bool) {
        let end = first.0 + pages;
        let mut lpn = first.0.max(self.copied);
        while lpn < end && self.ended.is_none() {
            let left = &entries[index(lpn)..index(end)];
            let change = Change {
                lpn,
                pages: run_length(left),
                before: left[0],
            };
            if changes(&change) {
                self.append(change);
            }
            lpn += change.pages;
        }
    }

    /// Notes where runs are before they move.
    #[cold]
    #[inline(never)]
    pub(super) fn note_moves(&mut self, runs: &[MappedRun]) {
        for &MappedRun { ppn, lpn, pages } in runs {
            let copied = self.copied.saturating_sub(lpn.0);
            if copied < pages {
                self.append(Change {
                    lpn: lpn.0 + copied,
                    pages: pages - copied,
                    before: !(ppn.0 + copied),
                });
            }
        }
    }

    #[inline]
    fn append(&mut self, change: Change) {
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
        assert!(
            change.lpn >= self.copied,
            "a change is noted of a part that is copied already"
        );
        self.last.push(change);
    }

    /// Makes room for another block of changes; false if there is none.
    fn add_block(&mut self) -> bool {
        let mut block = Vec::new();
        self.ended = match self.ended {
            Some(ended) => Some(ended),
            None if self.room < wide(BLOCK_CHANGES) => Some(CheckpointEnded::TooManyChanges),
            None if self.full.try_reserve(1).is_err() || block.try_reserve_exact(BLOCK_CHANGES).is_err() => {
                Some(CheckpointEnded::NoMemory)
            }
            None => None,
        };
        if self.ended.is_some() {
            return false;
        }
        self.room -= wide(BLOCK_CHANGES);
        self.full.push(std::mem::replace(&mut self.last, block));
        true
    }
}

/// What a checkpoint takes from the maps at once.
pub(crate) struct PartCopy {
    /// Blocks of changes since the part before was copied, in their order.
    pub(crate) changes: Vec<Vec<Change>>,
    /// The log, after the last part.
    pub(crate) log: Option<Box<UndoLog>>,
}

impl Maps {
    /// Notes changes from now on, in place of what was noted.
    pub(crate) fn begin_undo(&mut self, changes_max: u64) -> Beginning {
        let beginning = Beginning(Arc::new(()));
        self.undo = Undo(Some(Box::new(UndoLog {
            beginning: beginning.clone(),
            copied: 0,
            full: Vec::new(),
            last: Vec::new(),
            room: changes_max,
            ended: None,
        })));
        beginning
    }

    /// Notes no changes any more, unless another log was begun since. Returns the log, so that whoever has it can drop it when nobody
    /// waits.
    pub(crate) fn end_undo(&mut self, beginning: &Beginning) -> Option<Box<UndoLog>> {
        self.undo.0.take_if(|log| log.beginning == *beginning)
    }

    /// Whether what changes is noted for this checkpoint.
    pub(crate) fn notes_for(&self, beginning: &Beginning) -> bool {
        self.undo.0.as_ref().is_some_and(|log| log.beginning == *beginning)
    }

    /// Copies the entries of the next part, `pages`, in place of what is in `entries`, and takes what was noted. What was taken
    /// and what will be noted of the entries that follow may be `changes_max` changes together.
    pub(crate) fn copy_part(
        &mut self,
        beginning: &Beginning,
        pages: Range<u32>,
        entries: &mut Vec<u32>,
        changes_max: u64,
    ) -> Result<PartCopy, CheckpointEnded> {
        let log = self.undo.0.as_mut().filter(|log| log.beginning == *beginning);
        let log = log.ok_or(CheckpointEnded::Replaced)?;
        if let Some(ended) = log.ended {
            return Err(ended);
        }
        assert_eq!(log.copied, pages.start, "a checkpoint copies part after part");
        log.copied = pages.end;
        let mut changes = std::mem::take(&mut log.full);
        changes.push(std::mem::take(&mut log.last));
        let taken: usize = changes.iter().map(Vec::len).sum();
        log.room = changes_max.saturating_sub(wide(taken));
        assert!(
            index(pages.end) <= self.l2p_inverted.get().len(),
            "a part ends with the map"
        );
        let is_last = index(pages.end) == self.l2p_inverted.get().len();
        self.copy_entries(pages, entries);
        Ok(PartCopy {
            changes,
            log: is_last.then(|| self.end_undo(beginning)).flatten(),
        })
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
