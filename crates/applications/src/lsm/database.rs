//! The database: one tree per column family, with a common log and common space.
//!
//! ```text
//! put -> log -> memtable of the family --full--> level 0 of its tree
//!                                      -> deletion of log files that no memtable needs
//! ```
//!
//! Rules from RocksDB (`DBImpl::SwitchMemtable`, `SwitchWAL`, `ScheduleFlushes` in
//! `db/db_impl/db_impl_write.cc`):
//!
//! - Each flush of a memtable starts a new log file.
//! - A log file is deleted after all families have flushed its entries.
//! - If the files exceed a limit, all families with entries in the oldest file are flushed.
//! - With `atomic_flush`, all families are flushed together.
//!
//! The model omits the limit over all memtables (`db_write_buffer_size`, off by default) and
//! flushes that wait for each other.

use super::log::WriteAheadLog;
use super::store::{FileStore, StoreFull};
use super::tree::LsmTree;

pub struct Database {
    pub(super) trees: Vec<LsmTree>,
    pub(super) store: FileStore,
    /// `None` disables the log.
    pub(super) log: Option<WriteAheadLog>,
    /// Log size that triggers a flush of the families in its oldest file, bytes.
    pub(super) max_log_bytes: u64,
    /// Flushes all families together.
    pub(super) atomic_flush: bool,
}

impl Database {
    pub fn put(&mut self, family: usize, key: u32) -> Result<(), StoreFull> {
        self.limit_log()?;
        let tree = &mut self.trees[family];
        if let Some(log) = &mut self.log {
            let file = log.append(&mut self.store, tree.rules.entry_bytes)?;
            tree.oldest_log.get_or_insert(file);
        }
        tree.put(key);
        if tree.is_full() {
            self.flush(LsmTree::is_full)?;
        }
        Ok(())
    }

    /// If the log is too large, flushes the families in its oldest file. One check per put, as in
    /// RocksDB, so the log can exceed the limit for a while.
    fn limit_log(&mut self) -> Result<(), StoreFull> {
        let Some(log) = self.log.as_ref().filter(|log| log.bytes > self.max_log_bytes) else {
            return Ok(());
        };
        let oldest = log.oldest();
        self.flush(|tree| tree.oldest_log == oldest)?;
        let log = self.log.as_ref().expect("it has a log");
        assert!(log.oldest() > oldest || log.files() == 0, "its oldest file is deleted");
        Ok(())
    }

    /// Flushes the due memtables, deletes unneeded log files and compacts the trees.
    fn flush(&mut self, is_due: impl Fn(&LsmTree) -> bool) -> Result<(), StoreFull> {
        let is_due = |tree: &LsmTree| !tree.is_empty() && (self.atomic_flush || is_due(tree));
        let due: Vec<usize> = (0..self.trees.len()).filter(|tree| is_due(&self.trees[*tree])).collect();
        assert!(!due.is_empty(), "a flush writes something");
        if let Some(log) = &mut self.log {
            log.close(&mut self.store);
        }
        for tree in &due {
            self.trees[*tree].flush(&mut self.store)?;
        }
        if let Some(log) = &mut self.log {
            let needed = self.trees.iter().filter_map(|tree| tree.oldest_log).min();
            log.delete_before(&mut self.store, needed.unwrap_or(u64::MAX));
        }
        for tree in &due {
            self.trees[*tree].compact(&mut self.store)?;
        }
        Ok(())
    }
}
