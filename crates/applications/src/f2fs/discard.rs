//! Discards: blocks without valid data that the drive does not know about.
//!
//! After a checkpoint, the kernel queues the newly invalid blocks (`add_discard_addrs`). These are
//! whole prefree segments, and runs of at least `discard_granularity` blocks in other segments. The
//! discard thread sends eight requests every 50 ms. It sends only after the file system has been
//! idle for five seconds (`__issue_discard_cmd` with `io_aware`, `is_idle`, `DEF_IDLE_INTERVAL`). A
//! rewritten block leaves the queue. A load without pauses therefore never sends the queue.

use super::layout::F2fsLayout;
use super::output::F2fsOutput;
use super::segments::{BlockBits, places};
use crate::bitmap::Bitmap;

pub struct Discards {
    /// Blocks to discard by segment. Empty if discards are disabled.
    waiting: Vec<BlockBits>,
    has_waiting: Bitmap,
    /// Segments with new discards since the last round.
    new: Vec<u32>,
    pub blocks: u64,
    segment_blocks: u32,
    next: usize,
}

impl Discards {
    /// Creates the queue. With `enabled` false, the file system is mounted without discards.
    pub fn new(layout: &F2fsLayout, enabled: bool) -> Discards {
        let segments = if enabled { layout.segments as usize } else { 0 };
        Discards {
            waiting: vec![BlockBits::default(); segments],
            has_waiting: Bitmap::new(segments),
            new: Vec::new(),
            blocks: 0,
            segment_blocks: layout.segment_blocks,
            next: 0,
        }
    }

    /// Adds blocks of a segment that became invalid with a checkpoint.
    pub fn add(&mut self, segment: u32, bits: &BlockBits) {
        if self.waiting.is_empty() {
            return;
        }
        let waiting = &mut self.waiting[segment as usize];
        for (waiting, new) in waiting.iter_mut().zip(bits) {
            self.blocks += u64::from((new & !*waiting).count_ones());
            *waiting |= new;
        }
        if waiting.iter().any(|word| *word != 0) {
            self.has_waiting.set(segment as usize);
            self.new.push(segment);
        }
    }

    /// Removes rewritten blocks of a segment.
    pub fn remove(&mut self, first: u32, blocks: u32) {
        let segment = (first / self.segment_blocks) as usize;
        if self.waiting.is_empty() || !self.has_waiting.get(segment) {
            return;
        }
        for (word, bits) in places(first % self.segment_blocks, blocks) {
            let word = &mut self.waiting[segment][word];
            self.blocks -= u64::from((*word & bits).count_ones());
            *word &= !bits;
        }
    }

    /// Sends the discards of the last checkpoint, in runs of at least `granularity` blocks.
    pub fn send_new(&mut self, output: &mut F2fsOutput, layout: &F2fsLayout, granularity: u32) {
        let mut new = std::mem::take(&mut self.new);
        new.sort_unstable();
        for segment in new.drain(..) {
            self.send_segment(segment as usize, output, layout, granularity, u64::MAX);
        }
        self.new = new;
    }

    /// Sends up to `requests` runs of at least `granularity` blocks, whole segments first.
    /// Continues at the segment where the last round ended.
    pub fn send(&mut self, output: &mut F2fsOutput, layout: &F2fsLayout, granularity: u32, requests: u64) {
        self.new.clear();
        let mut left = requests;
        for least in [layout.segment_blocks, granularity] {
            for _ in 0..self.has_waiting.count {
                if left == 0 {
                    return;
                }
                let Some(segment) = self.has_waiting.next_around(self.next) else {
                    break;
                };
                self.next = segment + 1;
                left -= self.send_segment(segment, output, layout, least, left);
            }
        }
    }

    fn send_segment(
        &mut self,
        segment: usize,
        output: &mut F2fsOutput,
        layout: &F2fsLayout,
        least: u32,
        limit: u64,
    ) -> u64 {
        let mut sent = 0;
        let mut offset = 0;
        while let Some((first, blocks)) = next_run(&self.waiting[segment], offset) {
            offset = first + blocks;
            if blocks < least {
                continue;
            }
            if sent == limit {
                break;
            }
            output.discard(layout.main + segment as u32 * layout.segment_blocks + first, blocks);
            for (word, bits) in places(first, blocks) {
                self.waiting[segment][word] &= !bits;
            }
            self.blocks -= u64::from(blocks);
            sent += 1;
        }
        if self.waiting[segment].iter().all(|word| *word == 0) {
            self.has_waiting.clear(segment);
        }
        sent
    }
}

/// First bit and length of the next run of set bits at or after `from`.
pub fn next_run(bits: &BlockBits, from: u32) -> Option<(u32, u32)> {
    let first = find(bits, from, 0)?;
    let end = find(bits, first, u64::MAX).unwrap_or(64 * bits.len() as u32);
    Some((first, end - first))
}

/// First bit at or after `from` that differs from `flip`, whose bits are all 0 or all 1.
fn find(bits: &BlockBits, from: u32, flip: u64) -> Option<u32> {
    let mut word = (from / 64) as usize;
    let mut wanted = (bits.get(word)? ^ flip) & (u64::MAX << (from % 64));
    while wanted == 0 {
        word += 1;
        wanted = bits.get(word)? ^ flip;
    }
    Some(word as u32 * 64 + wanted.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_across_words() {
        let mut bits = BlockBits::default();
        for (first, blocks) in [(3, 1), (60, 70), (500, 12)] {
            places(first, blocks).for_each(|(word, set)| bits[word] |= set);
        }
        assert_eq!(next_run(&bits, 0), Some((3, 1)));
        assert_eq!(next_run(&bits, 4), Some((60, 70)));
        assert_eq!(next_run(&bits, 100), Some((100, 30)));
        assert_eq!(next_run(&bits, 130), Some((500, 12)));
        assert_eq!(next_run(&bits, 512), None);
    }
}
