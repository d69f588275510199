//! Log (WAL in RocksDB) of all trees, a sequence of files.
//!
//! ```text
//! append -> open file --flush of a memtable--> closed files, oldest first
//!   --unneeded--> deleted, or recycled as the next open file
//! ```
//!
//! A file is deleted after the last memtable that needs it is flushed. The log does not know the
//! trees. The caller keeps the number of the file with its oldest entry and reports the first file
//! that is still needed.

use std::collections::VecDeque;

use super::extents::{BLOCK_BYTES, BlockExtent};
use super::output::WriteOrigin;
use super::store::{FileStore, StoreFull, blocks_of};

/// Behaviour settings of the log.
#[derive(Debug, Clone, Copy)]
pub struct LogRules {
    /// Puts per sync, or 0 for no syncs.
    pub writes_per_sync: u32,
    /// Bytes per write.
    pub write_bytes: u64,
    /// Bytes per allocation, ahead of the writes.
    pub space_bytes: u64,
    /// Reuses the space of a deleted file for the next one, and keeps one such file
    /// (`recycle_log_file_num = 1`).
    pub recycle: bool,
}

struct WalFile {
    number: u64,
    extents: Vec<BlockExtent>,
    /// Bytes appended, and bytes written to the drive.
    bytes: u64,
    written_bytes: u64,
    unsynced: u32,
}

pub struct WriteAheadLog {
    rules: LogRules,
    open: Option<WalFile>,
    closed: VecDeque<WalFile>,
    /// Extents of a deleted file for the next file.
    recycled: Option<Vec<BlockExtent>>,
    next_number: u64,
    pub bytes: u64,
}

impl WriteAheadLog {
    /// Creates a log without files.
    pub fn new(rules: LogRules) -> WriteAheadLog {
        WriteAheadLog { rules, open: None, closed: VecDeque::new(), recycled: None, next_number: 0, bytes: 0 }
    }

    /// Appends an entry and writes all complete pieces. On a sync, writes all data. Returns the
    /// number of the entry's file.
    pub fn append(&mut self, store: &mut FileStore, entry_bytes: u64) -> Result<u64, StoreFull> {
        let file = self.open.get_or_insert_with(|| {
            self.next_number += 1;
            WalFile {
                number: self.next_number,
                extents: self.recycled.take().unwrap_or_default(),
                bytes: 0,
                written_bytes: 0,
                unsynced: 0,
            }
        });
        file.bytes += entry_bytes;
        self.bytes += entry_bytes;
        let room_bytes = blocks_of(&file.extents) * BLOCK_BYTES;
        if file.bytes > room_bytes {
            let wanted = self.rules.space_bytes.max(file.bytes - room_bytes);
            file.extents.extend(store.allocate(wanted)?);
        }
        file.unsynced += 1;
        if file.unsynced == self.rules.writes_per_sync {
            file.unsynced = 0;
            file.write(store, true);
        } else if file.bytes - file.written_bytes >= self.rules.write_bytes {
            file.write(store, false);
        }
        Ok(file.number)
    }

    /// Closes the open file: writes all data and frees the unneeded space.
    pub fn close(&mut self, store: &mut FileStore) {
        let Some(mut file) = self.open.take() else { return };
        if file.bytes > file.written_bytes {
            file.write(store, true);
        }
        assert!(file.bytes == file.written_bytes, "a closed file of the log is on the drive");
        store.delete(&cut(&mut file.extents, file.bytes.div_ceil(BLOCK_BYTES)));
        self.closed.push_back(file);
    }

    /// Deletes the closed files before `number`. The next append needs the open file.
    pub fn delete_before(&mut self, store: &mut FileStore, number: u64) {
        while self.closed.front().is_some_and(|file| file.number < number) {
            let file = self.closed.pop_front().expect("there is a first");
            self.bytes -= file.bytes;
            if self.rules.recycle && self.recycled.is_none() {
                self.recycled = Some(file.extents);
            } else {
                store.delete(&file.extents);
            }
        }
    }

    pub fn oldest(&self) -> Option<u64> {
        self.closed.front().or(self.open.as_ref()).map(|file| file.number)
    }

    pub fn files(&self) -> usize {
        self.closed.len() + usize::from(self.open.is_some())
    }

    /// Extents of all files and of the recycled file.
    #[cfg(test)]
    pub fn extents(&self) -> Vec<BlockExtent> {
        let files = self.closed.iter().chain(&self.open).map(|file| &file.extents);
        files.chain(&self.recycled).flatten().copied().collect()
    }
}

impl WalFile {
    /// Writes the end of the file. With `all`, the last block may be partial and is rewritten
    /// later. Otherwise only complete blocks are written.
    fn write(&mut self, store: &mut FileStore, all: bool) {
        let end = if all { self.bytes.div_ceil(BLOCK_BYTES) } else { self.bytes / BLOCK_BYTES };
        let first = self.written_bytes / BLOCK_BYTES;
        self.written_bytes = self.bytes.min(end * BLOCK_BYTES);
        store.output.write(WriteOrigin::Wal, &self.extents, first, end - first);
    }
}

/// Shortens a file to `blocks` blocks and returns the rest.
fn cut(extents: &mut Vec<BlockExtent>, blocks: u64) -> Vec<BlockExtent> {
    let mut left = blocks;
    let mut beyond = Vec::new();
    extents.retain_mut(|extent| {
        let kept = left.min(u64::from(extent.blocks)) as u32;
        left -= u64::from(kept);
        if kept < extent.blocks {
            beyond.push(BlockExtent { first: extent.first + kept, blocks: extent.blocks - kept });
        }
        extent.blocks = kept;
        kept > 0
    });
    assert!(left == 0, "a file has the blocks that it keeps");
    beyond
}
