//! Request source of the B-tree: loads all pages, then runs operations and reports measures.

use std::ops::Range;

use super::driver::BTreeDriver;
use super::log::{CheckpointPolicy, TransactionLog};
use super::output::{BTreeOutput, STREAMS};
use super::page_access::Touch;
use super::pool::Pool;
use super::store::{PageStore, TornPages};
use super::{BTreeSettings, PageUpdate};
use crate::ratio;
use workload::{IoRequest, RequestSource, WorkloadError, WorkloadMeasure, WorkloadTarget};

/// Number of pages by kind, in the order of page numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageCounts {
    pub(super) data: u32,
    pub(super) undo: u32,
    /// Pages loaded with the data and never changed.
    pub(super) index: u32,
    /// Pages before the data that never change.
    pub(super) unchanged: u32,
}

impl PageCounts {
    fn changing(&self) -> u32 {
        self.data + self.undo
    }

    pub(super) fn all(&self) -> u32 {
        self.changing() + self.index + self.unchanged
    }
}

pub(super) struct BTreeParts {
    pub(super) driver: BTreeDriver,
    pub(super) log: Option<TransactionLog>,
    pub(super) pool: Pool,
    pub(super) store: PageStore,
    pub(super) output: BTreeOutput,
}

/// Operations without a write that end the run, because nothing changes.
const IDLE_OPERATIONS: u64 = 10_000_000;

pub struct BTree {
    pub(super) parts: BTreeParts,
    pub(super) counts: PageCounts,
    /// Next undo page to change.
    next_undo: u32,
    flush_pages: usize,
    log_header_bytes: u64,
    checkpoints: CheckpointPolicy,
    transactions_per_checkpoint: u64,
    /// Transactions with changes since the last forced checkpoint.
    transactions: u64,
    /// Log bytes for the first change of a page after a checkpoint, or 0 for no page images.
    image_bytes: u64,
    /// Number of the checkpoint after which each page was last logged as a whole.
    imaged_at: Vec<u32>,
    /// Pages to load: first the unchanged ones, then data and undo together with the index.
    unloaded: [Range<u32>; 3],
    endless: bool,
    /// Number of checkpoints begun, log position of the last one, its unwritten pages with the last
    /// ones first, and the number of its pages at its beginning.
    checkpoint: u32,
    checkpoint_began: u64,
    checkpoint_left: Vec<u32>,
    checkpoint_pages: usize,
    touches: Vec<Touch>,
    batch: Vec<u32>,
    idle: u64,
    pub(super) counters: BTreeCounters,
}

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BTreeCounters {
    pub(super) operations: u64,
    touched: u64,
    hits: u64,
    pub(super) changed_bytes: u64,
    pub(super) page_writes: u64,
    loaded_bytes: u64,
}

impl BTree {
    pub(super) fn new(
        settings: &BTreeSettings,
        counts: PageCounts,
        parts: BTreeParts,
        target: &WorkloadTarget,
    ) -> BTree {
        let index_end = counts.changing() + counts.index;
        let has_images = settings.layout == PageUpdate::InPlace && settings.torn_pages == TornPages::FullPageWrites;
        // PostgreSQL's `XLogRecordAssemble` omits the hole between records and line pointers.
        let image_bytes = if has_images && settings.wal { settings.filled_page_bytes().max(1) } else { 0 };
        BTree {
            parts,
            counts,
            next_undo: 0,
            flush_pages: settings.flush_pages as usize,
            log_header_bytes: settings.log_header_bytes,
            checkpoints: settings.checkpoints,
            transactions_per_checkpoint: match settings.transactions_per_checkpoint {
                0 => 0,
                many => (many / target.denominator()).max(1),
            },
            transactions: 0,
            image_bytes,
            imaged_at: if image_bytes > 0 { vec![0; counts.changing() as usize] } else { Vec::new() },
            unloaded: [index_end..counts.all(), 0..counts.changing(), counts.changing()..index_end],
            endless: target.endless,
            checkpoint: 1,
            checkpoint_began: 0,
            checkpoint_left: Vec::new(),
            checkpoint_pages: 0,
            touches: Vec::new(),
            batch: Vec::new(),
            idle: 0,
            counters: BTreeCounters::default(),
        }
    }

    /// Executes the next operation. Returns false at the end.
    pub(super) fn step(&mut self) -> bool {
        if self.load() {
            return true;
        }
        let mut touches = std::mem::take(&mut self.touches);
        let goes_on = self.parts.driver.next(self.endless, &mut touches);
        for touch in &touches {
            self.touch(touch);
        }
        let changed_bytes: u64 = touches.iter().map(|touch| touch.changed_bytes).sum();
        let changes = changed_bytes > 0;
        self.touches = touches;
        self.counters.changed_bytes += changed_bytes;
        if changes && self.counts.undo > 0 {
            self.touch(&Touch { page: self.counts.data + self.next_undo, changed_bytes });
            self.next_undo = (self.next_undo + 1) % self.counts.undo;
        }
        if !goes_on {
            return false;
        }
        self.counters.operations += 1;
        self.idle = if changes { 0 } else { self.idle + 1 };
        if changes {
            if let Some(log) = &mut self.parts.log {
                log.commit(&mut self.parts.output);
            }
            self.write_forced_pages();
            self.transactions += 1;
            if self.transactions == self.transactions_per_checkpoint {
                self.transactions = 0;
                self.write_all_dirty();
            }
        }
        self.idle < IDLE_OPERATIONS
    }

    /// Loads the next pages. Returns false if all are loaded. Indexes grow with the data.
    fn load(&mut self) -> bool {
        let [first, changing, index] = &mut self.unloaded;
        // Selects the range with the larger unloaded fraction.
        let left = |part: &Range<u32>, of: u32| part.len() as u64 * u64::from(of);
        let next = if first.start < first.end {
            first
        } else if left(index, self.counts.changing()) > left(changing, self.counts.index) {
            index
        } else {
            changing
        };
        if next.start == next.end {
            return false;
        }
        let end = next.end.min(next.start + self.flush_pages as u32);
        self.batch.clear();
        self.batch.extend(next.start..end);
        next.start = end;
        self.parts.store.write(&self.batch, &mut self.parts.output);
        self.counters.loaded_bytes = self.parts.output.written_bytes.iter().sum();
        true
    }

    fn touch(&mut self, touch: &Touch) {
        self.counters.touched += 1;
        if self.parts.pool.access(touch.page) {
            self.counters.hits += 1;
        } else {
            if let Some(out) = self.parts.pool.next_out()
                && self.parts.pool.is_dirty(out)
            {
                let mut batch = std::mem::take(&mut self.batch);
                batch.clear();
                self.parts.pool.dirty_out(self.flush_pages, &mut batch);
                self.flush(&batch);
                self.batch = batch;
            }
            self.parts.store.read(touch.page, &mut self.parts.output);
            self.parts.pool.load(touch.page);
        }
        if touch.changed_bytes == 0 {
            return;
        }
        let position = self.parts.log.as_ref().map(|log| log.end_bytes);
        self.parts.pool.change(touch.page, position);
        let Some(log) = &mut self.parts.log else { return };
        log.append(touch.changed_bytes + self.log_header_bytes);
        if self.image_bytes > 0 {
            let imaged_at = &mut self.imaged_at[touch.page as usize];
            if *imaged_at != self.checkpoint {
                *imaged_at = self.checkpoint;
                log.append(self.image_bytes);
            }
        }
    }

    /// Writes dirty pages back.
    fn flush(&mut self, pages: &[u32]) {
        self.counters.page_writes += pages.len() as u64;
        self.parts.store.write(pages, &mut self.parts.output);
        for page in pages {
            self.parts.pool.clean(*page);
        }
    }

    /// Writes the pages that the log forces out.
    fn write_forced_pages(&mut self) {
        let Some(log) = &self.parts.log else { return };
        let (position, ring_bytes) = (log.end_bytes, log.ring_bytes);
        let mut batch = std::mem::take(&mut self.batch);
        match self.checkpoints {
            CheckpointPolicy::Fuzzy => {
                while let Some(since) = self.parts.pool.oldest_change()
                    && position - since > ring_bytes / 4 * 3
                {
                    batch.clear();
                    self.parts.pool.oldest_dirty(self.flush_pages, &mut batch);
                    self.flush(&batch);
                }
                if position - self.checkpoint_began >= ring_bytes / 4 {
                    self.complete_checkpoint(position);
                }
            }
            CheckpointPolicy::Spread => {
                if position - self.checkpoint_began >= ring_bytes / 2 && self.checkpoint_left.is_empty() {
                    self.complete_checkpoint(position);
                    self.parts.pool.all_dirty(&mut self.checkpoint_left);
                    self.checkpoint_left.reverse();
                    self.checkpoint_pages = self.checkpoint_left.len();
                }
                let part = (position - self.checkpoint_began) as f64 / (0.45 * ring_bytes as f64);
                let due = (part.min(1.0) * self.checkpoint_pages as f64) as usize;
                let left = self.checkpoint_pages - due;
                while self.checkpoint_left.len() > left
                    && (self.checkpoint_left.len() - left >= self.flush_pages || due == self.checkpoint_pages)
                {
                    let first = self.checkpoint_left.len().saturating_sub(self.flush_pages);
                    batch.clear();
                    batch.extend(self.checkpoint_left.drain(first..).rev());
                    // Skip pages that the pool has evicted and written in the meantime.
                    batch.retain(|page| self.parts.pool.is_dirty(*page));
                    self.flush(&batch);
                }
            }
        }
        self.batch = batch;
    }

    /// Runs a complete checkpoint: writes all dirty pages in page order.
    fn write_all_dirty(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        batch.clear();
        self.parts.pool.all_dirty(&mut batch);
        self.flush(&batch);
        self.batch = batch;
        let position = self.parts.log.as_ref().map_or(0, |log| log.end_bytes);
        self.complete_checkpoint(position);
    }

    fn complete_checkpoint(&mut self, position: u64) {
        self.checkpoint += 1;
        self.checkpoint_began = position;
        self.parts.store.checkpoint(&mut self.parts.output);
    }
}

impl RequestSource for BTree {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        while self.parts.output.queue.ready() < limit && self.step() {}
        Ok(self.parts.output.queue.pop_batch(requests, limit))
    }

    fn streams(&self) -> Vec<String> {
        STREAMS.map(String::from).to_vec()
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        let counters = &self.counters;
        let written = &self.parts.output.written_bytes;
        let all: u64 = written.iter().sum();
        let since_load = all - counters.loaded_bytes;
        let (collections, moved) = match &self.parts.store {
            PageStore::OutOfPlace(zones) => (zones.collections, zones.moved_pages),
            _ => (0, 0),
        };
        let mut measures = vec![
            WorkloadMeasure::new("operations", counters.operations as f64),
            WorkloadMeasure::new("pool_hit_ratio", ratio(counters.hits, counters.touched)),
            WorkloadMeasure::new("loaded_bytes", counters.loaded_bytes as f64),
            WorkloadMeasure::new("page_writes", counters.page_writes as f64),
            WorkloadMeasure::new("tree_waf", ratio(since_load, counters.changed_bytes)),
            WorkloadMeasure::new("written_bytes_per_page", ratio(since_load - written[0], counters.page_writes)),
            WorkloadMeasure::new("log_bytes_per_page", ratio(written[0], counters.page_writes)),
            WorkloadMeasure::new("checkpoints", f64::from(self.checkpoint - 1)),
            WorkloadMeasure::new("collections", collections as f64),
            WorkloadMeasure::new("moved_share", ratio(moved, counters.page_writes + moved)),
        ];
        if let Some(writes) = self.parts.store.inner_page_writes() {
            measures.push(WorkloadMeasure::new("inner_page_writes", writes as f64));
        }
        for (stream, bytes) in STREAMS.iter().zip(written) {
            measures.push(WorkloadMeasure::new(format!("{stream}.share"), ratio(*bytes, all)));
        }
        measures
    }
}
