//! The database: a tree for each column family, with one log and one space for all.
//!
//! ```text
//! put -> log -> memtable of the family --full--> level 0 of its tree, then files of the log that no memtable needs are deleted
//! ```
//!
//! RocksDB's rules (`DBImpl::SwitchMemtable`, `SwitchWAL`, `ScheduleFlushes` in `db/db_impl/db_impl_write.cc`): whichever memtable is flushed, a
//! new file of the log begins; a file is deleted when every family has flushed what is in it; when the files have more than a limit together,
//! the families with entries in the oldest are flushed, full or not; and with `atomic_flush` all families are flushed together.
//!
//! It leaves out the limit of all memtables together (`db_write_buffer_size`, off unless it is set) and flushes that wait for one another.

use super::log::Log;
use super::store::{Full, Store};
use super::tree::Tree;

/// Trees on a drive.
#[derive(Debug)]
pub struct Database {
    pub(super) trees: Vec<Tree>,
    pub(super) store: Store,
    /// None: puts are not logged.
    pub(super) log: Option<Log>,
    /// Bytes of the log beyond which the families that need its oldest file are flushed.
    pub(super) max_log_bytes: u64,
    /// All families are flushed when one is.
    pub(super) atomic_flush: bool,
}

impl Database {
    /// Puts a key into a family.
    pub fn put(&mut self, family: usize, key: u32) -> Result<(), Full> {
        self.limit_log()?;
        let tree = &mut self.trees[family];
        if let Some(log) = &mut self.log {
            let file = log.append(&mut self.store, tree.rules.entry_bytes)?;
            tree.oldest_log.get_or_insert(file);
        }
        tree.put(key);
        if tree.is_full() {
            self.flush(Tree::is_full)?;
        }
        Ok(())
    }

    /// Flushes who holds the oldest file of a log that is too large. Once for each put, as in RocksDB, so that the log can be larger for a while.
    fn limit_log(&mut self) -> Result<(), Full> {
        let Some(log) = self.log.as_ref().filter(|log| log.bytes() > self.max_log_bytes) else {
            return Ok(());
        };
        let oldest = log.oldest();
        self.flush(|tree| tree.oldest_log == oldest)?;
        let log = self.log.as_ref().expect("it has a log");
        assert!(log.oldest() > oldest || log.files() == 0, "its oldest file is deleted");
        Ok(())
    }

    /// Writes the memtables that are due, deletes what is not needed of the log, and merges what is too much.
    fn flush(&mut self, is_due: impl Fn(&Tree) -> bool) -> Result<(), Full> {
        let is_due = |tree: &Tree| !tree.is_empty() && (self.atomic_flush || is_due(tree));
        let due: Vec<usize> = (0..self.trees.len())
            .filter(|tree| is_due(&self.trees[*tree]))
            .collect();
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
