//! Segments of the main area: valid blocks, segment states, and the choice of victims.
//!
//! ```text
//!            a log takes it                    the log leaves it, blocks become invalid
//!   free ------------------> current ----------------------------> dirty (or full)
//!    ^                          ^---------- threaded logging ----------|
//!    |        checkpoint                                               | the last valid block goes
//!    +---------------------- prefree <---------------------------------+
//! ```
//!
//! A block that was valid at the last checkpoint is not rewritten before the next checkpoint,
//! because recovery after a power loss starts from there. A segment without valid blocks is
//! therefore only prefree, and threaded logging checks both bitmaps. The rules come from the
//! kernel, `fs/f2fs/segment.c` and `gc.c` (`locate_dirty_segment`, `select_policy`, `get_gc_cost`,
//! `get_cb_cost`).

use super::hints::LogKind;
use super::layout::{F2fsLayout, SEGMENT_BLOCKS};
use crate::bitmap::Bitmap;

/// Words of a segment's bitmaps.
const WORDS: usize = SEGMENT_BLOCKS as usize / 64;
/// Dirty segments that threaded logging and background cleaning examine (`DEF_MAX_VICTIM_SEARCH`).
const MAX_VICTIM_SEARCH: usize = 4096;

/// Segments of a group in the search for threaded logging.
const GROUP: usize = 64;
/// Marks a segment that is not dirty in place of a number of blocks.
const NOT_DIRTY: u16 = u16::MAX;

/// One bit per block of a segment. Segments of a scaled model need fewer.
pub type BlockBits = [u64; WORDS];

/// All segments of the main area. Block numbers start at the area.
pub struct SegmentTable {
    segment_blocks: u32,
    section_segments: u32,
    /// Currently valid blocks.
    now: Vec<BlockBits>,
    /// Blocks valid at the last checkpoint.
    before: Vec<BlockBits>,
    valid: Vec<u16>,
    /// Number of unwritable blocks: currently valid, or valid at the last checkpoint.
    taken: Vec<u16>,
    section_valid: Vec<u32>,
    /// Number of segments of each section that are not free.
    section_in_use: Vec<u16>,
    kind: Vec<LogKind>,
    /// Time of the last change of each segment.
    modified: Vec<u64>,
    free: Bitmap,
    free_sections: Bitmap,
    dirty: [Bitmap; 6],
    /// Number of unwritable blocks of dirty segments by kind, in groups of 64. Others have
    /// [`NOT_DIRTY`].
    fill: [Vec<[u16; GROUP]>; 6],
    prefree: Bitmap,
    /// Segments changed since the last checkpoint, in the order of their first change.
    pub touched: Vec<u32>,
    is_touched: Bitmap,
    current: [u32; 6],
    /// Section under cleaning, which no log may use.
    victim: u32,
    /// Segment at which the last search for a victim ended.
    last_victim: u32,
    /// Section at which the last search of background cleaning ended.
    last_background: u32,
    pub total_valid: u64,
}

pub const NOWHERE: u32 = u32::MAX;

impl SegmentTable {
    pub fn new(layout: &F2fsLayout) -> SegmentTable {
        let segments = layout.segments as usize;
        let sections = layout.sections as usize;
        SegmentTable {
            segment_blocks: layout.segment_blocks,
            section_segments: layout.section_segments,
            now: vec![[0; WORDS]; segments],
            before: vec![[0; WORDS]; segments],
            valid: vec![0; segments],
            taken: vec![0; segments],
            section_valid: vec![0; sections],
            section_in_use: vec![0; sections],
            kind: vec![LogKind::WarmData; segments],
            modified: vec![0; segments],
            free: Bitmap::full(segments),
            free_sections: Bitmap::full(sections),
            dirty: std::array::from_fn(|_| Bitmap::new(segments)),
            fill: std::array::from_fn(|_| vec![[NOT_DIRTY; GROUP]; segments.div_ceil(GROUP)]),
            prefree: Bitmap::new(segments),
            touched: Vec::new(),
            is_touched: Bitmap::new(segments),
            current: [NOWHERE; 6],
            victim: NOWHERE,
            last_victim: 0,
            last_background: 0,
            total_valid: 0,
        }
    }

    /// Number of sections without a used segment.
    pub fn free_sections(&self) -> u32 {
        self.free_sections.count as u32
    }

    /// Number of segments that the next checkpoint frees.
    pub fn prefree(&self) -> u32 {
        self.prefree.count as u32
    }

    pub fn valid(&self, segment: u32) -> u32 {
        u32::from(self.valid[segment as usize])
    }

    pub fn valid_bits(&self, segment: u32) -> &BlockBits {
        &self.now[segment as usize]
    }

    /// Segments of a section.
    pub fn of_section(&self, section: u32) -> std::ops::Range<u32> {
        section * self.section_segments..(section + 1) * self.section_segments
    }

    /// Next run of writable blocks in a segment at or after `from`. Returns first block and length,
    /// at most `limit`.
    pub fn writable_run(&self, segment: u32, from: u32, limit: u32) -> Option<(u32, u32)> {
        let (now, before) = (&self.now[segment as usize], &self.before[segment as usize]);
        let taken = |word: usize| now[word] | before[word];
        let mut word = (from / 64) as usize;
        let mut open = !taken(word) & (u64::MAX << (from % 64));
        while open == 0 {
            word += 1;
            if word as u32 * 64 >= self.segment_blocks {
                return None;
            }
            open = !taken(word);
        }
        let first = word as u32 * 64 + open.trailing_zeros();
        if first >= self.segment_blocks {
            return None;
        }
        let mut end = first;
        let limit = limit.min(self.segment_blocks - first);
        while end - first < limit {
            let rest = taken((end / 64) as usize) >> (end % 64);
            if rest == 0 {
                end = (end / 64 + 1) * 64;
            } else {
                end += rest.trailing_zeros();
                break;
            }
        }
        Some((first, (end - first).min(limit)))
    }

    /// Marks written blocks of a log's segment as valid.
    pub fn write(&mut self, first: u32, blocks: u32, time: u64) {
        let segment = first / self.segment_blocks;
        let index = segment as usize;
        for (word, bits) in places(first % self.segment_blocks, blocks) {
            let taken = self.now[index][word] | self.before[index][word];
            assert!(taken & bits == 0, "blocks {first} to {} are in use", first + blocks);
            self.now[index][word] |= bits;
        }
        self.valid[index] += blocks as u16;
        self.taken[index] += blocks as u16;
        self.section_valid[(segment / self.section_segments) as usize] += blocks;
        self.total_valid += u64::from(blocks);
        self.touch(segment, time);
    }

    /// Marks consecutive blocks, in one or more segments, as invalid.
    pub fn invalidate(&mut self, first: u32, blocks: u32, time: u64) {
        let (mut first, mut left) = (first, blocks);
        while left > 0 {
            let run = left.min(self.segment_blocks - first % self.segment_blocks);
            self.invalidate_in_segment(first, run, time);
            first += run;
            left -= run;
        }
    }

    fn invalidate_in_segment(&mut self, first: u32, blocks: u32, time: u64) {
        let segment = first / self.segment_blocks;
        let index = segment as usize;
        let mut kept = 0;
        for (word, bits) in places(first % self.segment_blocks, blocks) {
            assert!(self.now[index][word] & bits == bits, "blocks {first} to {} are not valid", first + blocks);
            self.now[index][word] &= !bits;
            kept += (self.before[index][word] & bits).count_ones();
        }
        self.valid[index] -= blocks as u16;
        self.taken[index] -= (blocks - kept) as u16;
        self.section_valid[(segment / self.section_segments) as usize] -= blocks;
        self.total_valid -= u64::from(blocks);
        self.touch(segment, time);
        self.locate(segment);
    }

    #[inline]
    fn touch(&mut self, segment: u32, time: u64) {
        self.modified[segment as usize] = time;
        if self.is_touched.set(segment as usize) {
            self.touched.push(segment);
        }
    }

    /// Sets the state of a segment from its number of valid blocks.
    fn locate(&mut self, segment: u32) {
        if self.current.contains(&segment) {
            return;
        }
        let index = segment as usize;
        let valid = self.valid(segment);
        self.set_dirty(index, valid > 0 && valid < self.segment_blocks);
        if valid == 0 {
            self.prefree.set(index);
        }
    }

    fn set_dirty(&mut self, index: usize, is_dirty: bool) {
        let kind = self.kind[index] as usize;
        let fill = &mut self.fill[kind][index / GROUP][index % GROUP];
        if is_dirty {
            self.dirty[kind].set(index);
            *fill = self.taken[index];
        } else {
            self.dirty[kind].clear(index);
            *fill = NOT_DIRTY;
        }
    }

    /// Moves a log from its segment, if any, to another one. A dirty segment is used for threaded
    /// logging.
    pub fn switch_segment(&mut self, log: LogKind, segment: u32) {
        let index = segment as usize;
        let left = std::mem::replace(&mut self.current[log as usize], segment);
        if left != NOWHERE {
            self.locate(left);
        }
        if self.free.clear(index) {
            let section = (segment / self.section_segments) as usize;
            self.section_in_use[section] += 1;
            self.free_sections.clear(section);
        } else {
            let was_dirty = self.dirty[self.kind[index] as usize].get(index);
            assert!(was_dirty, "segment {segment} is neither free nor dirty");
            self.set_dirty(index, false);
        }
        self.kind[index] = log;
    }

    pub fn current(&self, log: LogKind) -> u32 {
        self.current[log as usize]
    }

    /// The first free section.
    pub fn next_free_section(&self) -> Option<u32> {
        self.free_sections.next(0).map(|section| section as u32)
    }

    /// Free segment for a log. Prefers the same section. Otherwise searches the next free section,
    /// to the right of the current one, or from the start for nodes and hot data
    /// (`__get_next_segno`).
    pub fn next_free(&self, log: LogKind) -> Option<u32> {
        let current = self.current(log);
        if current != NOWHERE {
            let section_end = (current / self.section_segments + 1) * self.section_segments;
            let next = self.free.next(current as usize + 1);
            if let Some(next) = next.filter(|next| *next < section_end as usize) {
                return Some(next as u32);
            }
        }
        let from_start = log.is_node() || log == LogKind::HotData || current == NOWHERE;
        let from = if from_start { 0 } else { current / self.section_segments };
        let section = self.free_sections.next_around(from as usize)?;
        Some(section as u32 * self.section_segments)
    }

    /// Dirty segment of a kind with the most room for threaded logging, among the next ones from
    /// the end of the last search.
    pub fn roomiest(&mut self, kind: LogKind) -> Option<u32> {
        let dirty = &self.dirty[kind as usize];
        let candidates = dirty.count.min(MAX_VICTIM_SEARCH);
        let fill = &self.fill[kind as usize];
        let from_start = kind.is_node() || kind == LogKind::HotData;
        let mut group = if from_start { 0 } else { self.last_victim as usize / GROUP };
        let mut best = (self.segment_blocks as u16, None);
        let mut seen = 0;
        while seen < candidates {
            seen += dirty.word(group).count_ones() as usize;
            let least = fill[group].iter().copied().fold(NOT_DIRTY, u16::min);
            if least < best.0
                && let Some(index) = self.find_in_group(&fill[group], group, least)
            {
                best = (least, Some(index));
            }
            group = (group + 1) % fill.len();
        }
        if best.1.is_some() {
            self.last_victim = (group * GROUP) as u32;
        }
        best.1
    }

    /// Segment of a group with this number of unwritable blocks, unless it is under cleaning.
    fn find_in_group(&self, fill: &[u16; GROUP], group: usize, wanted: u16) -> Option<u32> {
        let place = fill.iter().position(|blocks| *blocks == wanted).expect("the least is one of them");
        let segment = (group * GROUP + place) as u32;
        (segment / self.section_segments != self.victim).then_some(segment)
    }

    /// True if a section has valid and invalid blocks and no log.
    fn can_be_cleaned(&self, section: u32) -> bool {
        let valid = self.section_valid[section as usize];
        let in_use = u32::from(self.section_in_use[section as usize]) * self.segment_blocks;
        valid > 0 && valid < in_use && !self.has_log(section)
    }

    fn has_log(&self, section: u32) -> bool {
        self.current.iter().any(|current| *current != NOWHERE && current / self.section_segments == section)
    }

    /// Victim of foreground cleaning, the section with the fewest valid blocks.
    pub fn greedy_victim(&self) -> Option<u32> {
        let sections = 0..self.section_valid.len() as u32;
        sections
            .filter(|section| self.can_be_cleaned(*section))
            .min_by_key(|section| self.section_valid[*section as usize])
    }

    /// Victim of background cleaning, the section with the best ratio of benefit to cost,
    /// `(1 - u) * age / (1 + u)`. Age is relative to the oldest and youngest segment. Examines the
    /// next sections from the end of the last search.
    pub fn cost_benefit_victim(&mut self) -> Option<u32> {
        let sections = self.section_valid.len() as u32;
        let (oldest, youngest) =
            self.modified.iter().fold((u64::MAX, 0), |(least, most), time| (least.min(*time), most.max(*time)));
        let span = (youngest - oldest.min(youngest)).max(1);
        let mut best: (u64, Option<u32>) = (0, None);
        let mut seen = 0;
        for step in 0..sections {
            let section = (self.last_background + step) % sections;
            if !self.can_be_cleaned(section) {
                continue;
            }
            let range = self.of_section(section);
            let mean = range.clone().map(|segment| self.modified[segment as usize]).sum::<u64>()
                / u64::from(self.section_segments);
            let age = 100 - 100 * (mean.max(oldest) - oldest) / span;
            let capacity = u64::from(self.section_segments * self.segment_blocks);
            let used = 100 * u64::from(self.section_valid[section as usize]) / capacity;
            let benefit = 1 + 100 * (100 - used) * age / (100 + used);
            if benefit > best.0 {
                best = (benefit, Some(section));
            }
            seen += 1;
            if seen == MAX_VICTIM_SEARCH {
                break;
            }
        }
        if let Some(section) = best.1 {
            self.last_background = (section + 1) % sections;
        }
        best.1
    }

    /// Begins the cleaning of a section, or ends it with [`NOWHERE`].
    pub fn set_victim(&mut self, section: u32) {
        self.victim = section;
    }

    /// True if the next checkpoint frees a segment.
    pub fn will_be_free(&self, segment: u32) -> bool {
        self.prefree.get(segment as usize) && self.valid(segment) == 0 && !self.current.contains(&segment)
    }

    /// Blocks of a segment that were valid at the last checkpoint and are now invalid.
    pub fn newly_invalid(&self, segment: u32) -> BlockBits {
        let index = segment as usize;
        std::array::from_fn(|word| self.before[index][word] & !self.now[index][word])
    }

    /// Completes a checkpoint: the current state becomes the recovery state, and prefree segments
    /// become free.
    pub fn checkpoint(&mut self) {
        for segment in std::mem::take(&mut self.touched) {
            let index = segment as usize;
            self.before[index] = self.now[index];
            self.taken[index] = self.valid[index];
            self.is_touched.clear(index);
            self.locate(segment);
        }
        let mut from = 0;
        while let Some(index) = self.prefree.next(from) {
            from = index + 1;
            self.prefree.clear(index);
            if self.valid[index] > 0 || self.current.contains(&(index as u32)) {
                continue;
            }
            self.free.set(index);
            let section = index / self.section_segments as usize;
            self.section_in_use[section] -= 1;
            if self.section_in_use[section] == 0 {
                self.free_sections.set(section);
            }
        }
    }

    /// Recomputes all counters and compares them.
    #[cfg(test)]
    pub fn check(&self) {
        let ones = |bits: &BlockBits| bits.iter().map(|word| word.count_ones()).sum::<u32>();
        for segment in 0..self.valid.len() as u32 {
            let index = segment as usize;
            assert_eq!(ones(&self.now[index]), self.valid(segment), "segment {segment}");
            let both: BlockBits = std::array::from_fn(|word| self.now[index][word] | self.before[index][word]);
            assert_eq!(ones(&both), u32::from(self.taken[index]), "segment {segment}");
            let is_current = self.current.contains(&segment);
            let is_dirty = (1..self.segment_blocks).contains(&self.valid(segment)) && !is_current;
            for kind in LogKind::ALL {
                let expected = is_dirty && self.kind[index] == kind;
                assert_eq!(self.dirty[kind as usize].get(index), expected, "segment {segment}");
                let fill = if expected { self.taken[index] } else { NOT_DIRTY };
                assert_eq!(self.fill[kind as usize][index / GROUP][index % GROUP], fill, "segment {segment}");
            }
            if self.free.get(index) {
                assert!(self.taken[index] == 0 && !is_current, "segment {segment}");
            } else if self.valid(segment) == 0 && !is_current {
                assert!(self.prefree.get(index), "segment {segment}");
            }
        }
        for section in 0..self.section_valid.len() as u32 {
            let range = self.of_section(section);
            let valid: u32 = range.clone().map(|segment| self.valid(segment)).sum();
            assert_eq!(valid, self.section_valid[section as usize]);
            let in_use = range.filter(|segment| !self.free.get(*segment as usize)).count();
            assert_eq!(in_use, usize::from(self.section_in_use[section as usize]));
            assert_eq!(self.free_sections.get(section as usize), in_use == 0);
        }
        let valid: u64 = self.valid.iter().map(|valid| u64::from(*valid)).sum();
        assert_eq!(valid, self.total_valid);
    }
}

/// Words of a segment's bitmap that a run of blocks touches, with its bits in each word.
pub fn places(offset: u32, blocks: u32) -> impl Iterator<Item = (usize, u64)> {
    let end = offset + blocks;
    (offset / 64..end.div_ceil(64)).map(move |word| {
        let from = offset.max(word * 64) - word * 64;
        let to = end.min(word * 64 + 64) - word * 64;
        let bits = (u64::MAX >> (64 - (to - from))) << from;
        (word as usize, bits)
    })
}
