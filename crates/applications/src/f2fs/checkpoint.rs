//! Checkpoints: write all in-memory state to the drive and free the invalid segments.
//!
//! The order of writes is: directory entries, nodes, changed blocks of the NAT and the SIT,
//! summaries of the segments that logs have left, the checkpoint pack. A changed NAT or SIT block
//! goes to the older of its two copies. A few changes fit into journals of the checkpoint instead.
//!
//! A checkpoint is due after `checkpoint_seconds`, if prefree segments reach 5 % of all or 8 GiB,
//! and if cleaning or recovery needs one (`f2fs_balance_fs_bg`). There is no clock: time follows
//! from the bytes written. The rules come from the kernel: `fs/f2fs/checkpoint.c`
//! (`f2fs_write_checkpoint`), `node.c` (`f2fs_flush_nat_entries`) and `segment.c`
//! (`f2fs_flush_sit_entries`, `f2fs_clear_prefree_segments`).

use super::file_system::{FileSystem, FileSystemFull};
use super::hints::F2fsWriter;
use super::layout::SIT_ENTRIES;
use super::rules::DiscardPolicy;
use super::segments::{BlockBits, places};

/// NAT entries that fit into the journal (`NAT_JOURNAL_ENTRIES`).
const NAT_JOURNAL: u32 = 38;
/// SIT entries that fit into the journal (`SIT_JOURNAL_ENTRIES`).
const SIT_JOURNAL: u32 = 6;
/// Blocks of a pack: header, footer, and the compact summaries of the logs.
const PACK_BLOCKS: u32 = 2 + 3;
/// Utilisation above which the file system discards all invalid blocks (`DEF_DISCARD_URGENT_UTIL`).
const URGENT_UTILIZATION: f64 = 0.8;
/// Seconds without requests until the file system is idle (`DEF_IDLE_INTERVAL`).
const IDLE_AFTER_SECONDS: f64 = 5.0;
/// Discards per second of the discard thread, 8 every 50 ms (`DEF_MAX_DISCARD_REQUEST`,
/// `DEF_MIN_DISCARD_ISSUE_TIME`).
const DISCARDS_PER_SECOND: f64 = 160.0;
/// Seconds between two background cleanings of a section (`DEF_GC_THREAD_MIN_SLEEP_TIME`).
const CLEANING_SECONDS: f64 = 30.0;

impl FileSystem {
    /// Does the background work between operations: due checkpoints and pauses.
    pub fn background(&mut self) -> Result<(), FileSystemFull> {
        let written = self.output.bytes_written;
        let due = written - self.checkpointed_at >= self.rules.checkpoint_bytes;
        if due || self.segments.prefree() > self.rules.prefree_limit {
            self.checkpoint()?;
        }
        if let Some(every) = self.rules.pause_bytes
            && written - self.paused_at >= every
        {
            self.paused_at = written;
            self.pause()?;
        }
        Ok(())
    }

    /// Pauses the load for background cleaning and discards.
    fn pause(&mut self) -> Result<(), FileSystemFull> {
        let idle_seconds = (self.rules.settings.pause_seconds - IDLE_AFTER_SECONDS).max(0.0);
        if self.rules.settings.background_cleaning {
            for _ in 0..(idle_seconds / CLEANING_SECONDS) as u64 {
                self.clean_in_background()?;
            }
        }
        self.checkpoint()?;
        if self.rules.settings.discard == DiscardPolicy::WhenIdle {
            // A request of the scaled model stands for d / s requests of the drive.
            let requests = idle_seconds * DISCARDS_PER_SECOND * f64::from(self.layout.shrink);
            let requests = requests / self.rules.denominator as f64;
            let granularity = self.discard_granularity();
            self.discards.send(&mut self.output, &self.layout, granularity, requests as u64);
            self.output.flush();
        }
        Ok(())
    }

    fn discard_granularity(&self) -> u32 {
        if self.utilization() > URGENT_UTILIZATION {
            1
        } else {
            (self.rules.settings.discard_granularity_blocks / self.layout.shrink).max(1)
        }
    }

    pub(super) fn checkpoint(&mut self) -> Result<(), FileSystemFull> {
        self.write_entries()?;
        for node in self.nodes.take_dirty() {
            self.write_node(node)?;
        }
        self.output.flush();
        self.write_nat();
        self.write_sit();
        self.write_summaries();
        self.write_pack();
        self.output.flush();
        self.queue_discards();
        self.segments.checkpoint();
        if self.rules.settings.discard == DiscardPolicy::Always {
            let granularity = self.discard_granularity();
            self.discards.send_new(&mut self.output, &self.layout, granularity);
            self.output.flush();
        }
        self.counters.checkpoints += 1;
        self.checkpointed_at = self.output.bytes_written;
        self.valid_at_checkpoint = self.segments.total_valid;
        self.allocated = 0;
        Ok(())
    }

    fn write_meta(&mut self, first: u32, blocks: u32) {
        self.output.write(F2fsWriter::Meta, 0, first, blocks);
    }

    /// The two copies of the NAT alternate segment by segment (`current_nat_addr`).
    fn write_nat(&mut self) {
        for block in self.nodes.take_nat_blocks(NAT_JOURNAL) {
            let second = toggle(&mut self.nat_copy, block);
            let segment_blocks = self.layout.segment_blocks;
            let place = block + (block / segment_blocks + second) * segment_blocks;
            self.write_meta(self.layout.nat + place, 1);
        }
    }

    fn write_sit(&mut self) {
        let touched = &self.segments.touched;
        if touched.len() as u32 <= SIT_JOURNAL * self.layout.shrink {
            return;
        }
        let entries = SIT_ENTRIES * self.layout.shrink;
        let mut blocks: Vec<u32> = touched.iter().map(|segment| segment / entries).collect();
        blocks.sort_unstable();
        blocks.dedup();
        for block in blocks {
            let second = toggle(&mut self.sit_copy, block);
            self.write_meta(self.layout.sit + block + second * self.layout.sit_blocks, 1);
        }
    }

    fn write_summaries(&mut self) {
        while let Some(segment) = self.summaries.next(0) {
            self.summaries.clear(segment);
            if (segment as u32).is_multiple_of(self.layout.shrink) {
                self.write_meta(self.layout.ssa + segment as u32 / self.layout.shrink, 1);
            }
        }
    }

    fn write_pack(&mut self) {
        let second = (self.counters.checkpoints % 2) as u32;
        let first = self.layout.checkpoint + second * self.layout.segment_blocks;
        self.write_meta(first, PACK_BLOCKS + self.layout.payload_blocks);
    }

    /// Queues discards of the blocks that this checkpoint makes invalid: whole prefree segments,
    /// and single blocks of other segments.
    fn queue_discards(&mut self) {
        if !self.rules.settings.discard.is_enabled() {
            return;
        }
        let mut all = BlockBits::default();
        places(0, self.layout.segment_blocks).for_each(|(word, bits)| all[word] = bits);
        for segment in &self.segments.touched {
            if self.segments.will_be_free(*segment) {
                self.discards.add(*segment, &all);
            } else {
                self.discards.add(*segment, &self.segments.newly_invalid(*segment));
            }
        }
    }
}

/// Switches to the other copy of a block. Returns 1 for the second copy.
fn toggle(copies: &mut crate::bitmap::Bitmap, block: u32) -> u32 {
    let block = block as usize;
    if copies.set(block) {
        1
    } else {
        copies.clear(block);
        0
    }
}
