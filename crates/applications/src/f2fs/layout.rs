//! Layout of the areas that `mkfs.f2fs` creates, and its reserved space.
//!
//! ```text
//! superblock | checkpoint (2 packs) | SIT (2 copies) | NAT (2 copies) | SSA | main area
//!  1 segment      2 segments           1 block / 55      1 block / 455  1 block /
//!                                      segments          nodes          segment
//! ```
//!
//! The rules come from f2fs-tools, `mkfs/f2fs_format.c` (`f2fs_prepare_super_block`,
//! `get_best_overprovision`). A scaled model uses the same rules, because the areas are
//! proportional to the drive. Reserved segments and the limit of the NAT are not proportional. They
//! are computed for the drive at full size and divided by d.
//!
//! A reclaim unit of the drive holds thousands of segments and files, and write amplification
//! depends on that. A scaled model therefore cannot keep their sizes. Sizes shrink by s, and
//! numbers by d / s. The factor s is near the root of d and at most 16, because a segment and a
//! file must keep some blocks. Nodes and summaries exist once per file or segment and would weigh
//! s times as much. The model has them for one file or segment in s.

use workload::{WorkloadError, WorkloadTarget, within};

pub const BLOCK_BYTES: u64 = 4096;
/// Blocks of a segment, 2 MiB. Segments of a scaled model are smaller, see
/// [`F2fsLayout::segment_blocks`].
pub const SEGMENT_BLOCKS: u32 = 512;
/// Maximum shrink of sizes: segments shrink to 32 blocks, files of 540 KB to 8 blocks.
const MOST_SHRINK: u32 = 16;
/// SIT entries per block, one per segment.
pub const SIT_ENTRIES: u32 = 55;
/// NAT entries per block, one per node.
pub const NAT_ENTRIES: u32 = 455;
/// Bytes of the bitmap of valid NAT copies. It must fit into the checkpoint block.
const NAT_BITMAP_BYTES: u64 = 3900;
/// Minimum number of reserved sections of a scaled model: one for each of the six logs, and some
/// for moves.
const LEAST_RESERVED_SECTIONS: u32 = 16;

/// Areas of a file system, addresses in blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct F2fsLayout {
    /// First block of the first checkpoint pack. The second is one segment further.
    pub checkpoint: u32,
    /// First block of the SIT.
    pub sit: u32,
    /// Blocks of one copy of the SIT.
    pub sit_blocks: u32,
    /// First block of the NAT.
    pub nat: u32,
    /// Blocks of one copy of the NAT.
    pub nat_blocks: u32,
    /// First block of the SSA.
    pub ssa: u32,
    /// First block of the main area.
    pub main: u32,
    /// Shrink factor s of segments and files on a scaled model, otherwise 1.
    pub shrink: u32,
    pub segment_blocks: u32,
    /// Segments of the main area.
    pub segments: u32,
    pub section_segments: u32,
    /// Sections of the main area.
    pub sections: u32,
    /// Sections that only cleaning may use.
    pub reserved_sections: u32,
    /// Segments without user blocks.
    pub overprovision_segments: u32,
    /// Extra blocks of a checkpoint pack if the SIT's bitmap does not fit.
    pub payload_blocks: u32,
}

impl F2fsLayout {
    /// Computes the layout of a drive or its scaled model.
    ///
    /// # Errors
    /// The drive is too small, or too large for 32-bit block numbers.
    pub fn new(
        target: &WorkloadTarget,
        section_segments: u32,
        overprovision_percent: Option<f64>,
        shrink: u32,
    ) -> Result<F2fsLayout, WorkloadError> {
        within("segments_per_section", section_segments, 1..=4096)?;
        within("overprovision_percent", overprovision_percent.unwrap_or(1.0), 0.01..=50.0)?;
        let too_small = |bytes: u64| {
            let setting = format!("a drive of {bytes} bytes and segments_per_section = {section_segments}");
            let problem = "leave too few sections for a file system, which needs about 64. Use a larger drive or \
                           scale, or smaller sections";
            WorkloadError::setting(setting, problem)
        };
        let full =
            Areas::new(target.device_bytes, 1, section_segments).ok_or_else(|| too_small(target.device_bytes))?;
        let (reserved, overprovision) = full.reserve(section_segments, overprovision_percent);
        let bytes = target.capacity_bytes();
        // Of d segments of the drive, the scaled model has s.
        let scaled = |segments: u64| (segments * u64::from(shrink)).div_ceil(target.denominator());
        if bytes / BLOCK_BYTES >= u64::from(u32::MAX) {
            let setting = format!("a drive of {bytes} bytes");
            return Err(WorkloadError::setting(
                setting,
                "exceeds the 16 TiB that F2FS supports. Use a smaller drive, or a scaled model",
            ));
        }
        let segment_blocks = SEGMENT_BLOCKS / shrink;
        let mut areas = Areas::new(bytes, shrink, section_segments).ok_or_else(|| too_small(bytes))?;
        areas.nat_segments = areas.nat_segments.min(scaled(full.nat_segments)).max(1);
        areas.finish(section_segments);
        let sections = (areas.main_segments / u64::from(section_segments)) as u32;
        let reserved_sections =
            (scaled(reserved).div_ceil(u64::from(section_segments)) as u32).max(LEAST_RESERVED_SECTIONS);
        if sections < 4 * LEAST_RESERVED_SECTIONS {
            return Err(too_small(bytes));
        }
        let blocks = |segments: u64| (segments * u64::from(segment_blocks)) as u32;
        let checkpoint = blocks(u64::from(section_segments));
        let sit = checkpoint + blocks(2);
        let nat = sit + blocks(2 * areas.sit_segments);
        let ssa = nat + blocks(2 * areas.nat_segments);
        Ok(F2fsLayout {
            checkpoint,
            sit,
            sit_blocks: blocks(areas.sit_segments),
            nat,
            nat_blocks: blocks(areas.nat_segments),
            ssa,
            main: blocks(areas.first_main_segment),
            shrink,
            segment_blocks,
            segments: sections * section_segments,
            section_segments,
            sections,
            reserved_sections,
            overprovision_segments: (scaled(overprovision) as u32).max(reserved_sections * section_segments)
                + 2 * section_segments,
            payload_blocks: payload_blocks(areas.sit_segments),
        })
    }

    /// Default s, the largest power of two up to the root of d.
    pub fn default_shrink(denominator: u64) -> u32 {
        let mut shrink = 1;
        while shrink < MOST_SHRINK && u64::from(4 * shrink * shrink) <= denominator {
            shrink *= 2;
        }
        shrink
    }

    /// Blocks that users may have, nodes included.
    pub fn user_blocks(&self) -> u64 {
        u64::from(self.segments - self.overprovision_segments) * u64::from(self.segment_blocks)
    }

    /// Number of nodes that the NAT can hold. The file system itself uses the first three.
    pub fn nodes(&self) -> u32 {
        self.nat_blocks * NAT_ENTRIES
    }

    pub fn main_blocks(&self) -> u32 {
        self.segments * self.segment_blocks
    }
}

/// Blocks of the checkpoint pack for the SIT's bitmap, if it is too large for the first block.
fn payload_blocks(sit_segments: u64) -> u32 {
    let bitmap_bytes = sit_segments * u64::from(SEGMENT_BLOCKS) / 8;
    if bitmap_bytes > NAT_BITMAP_BYTES { bitmap_bytes.div_ceil(BLOCK_BYTES) as u32 } else { 0 }
}

/// Sizes of the areas, in segments.
struct Areas {
    shrink: u64,
    total_segments: u64,
    sit_segments: u64,
    nat_segments: u64,
    first_main_segment: u64,
    main_segments: u64,
}

impl Areas {
    fn new(bytes: u64, shrink: u32, section_segments: u32) -> Option<Areas> {
        let segment_blocks = u64::from(SEGMENT_BLOCKS / shrink);
        let shrink = u64::from(shrink);
        let total_segments = bytes / (BLOCK_BYTES * segment_blocks);
        let first = u64::from(section_segments);
        let count = total_segments.checked_sub(first)?;
        let sit_segments = count.div_ceil(u64::from(SIT_ENTRIES) * shrink).div_ceil(segment_blocks);
        let left = count.checked_sub(2 + 2 * sit_segments)?;
        let nat_blocks = (left * segment_blocks).div_ceil(u64::from(NAT_ENTRIES));
        let nat_limit = NAT_BITMAP_BYTES * 8 / segment_blocks;
        let nat_segments = nat_blocks.div_ceil(segment_blocks).min(nat_limit);
        let mut areas =
            Areas { shrink, total_segments, sit_segments, nat_segments, first_main_segment: 0, main_segments: 0 };
        areas.finish(section_segments);
        (areas.main_segments > 0).then_some(areas)
    }

    /// Places the SSA and the main area at the end. Sections start at multiples of their size.
    fn finish(&mut self, section_segments: u32) {
        let section = u64::from(section_segments);
        let before_ssa = section + 2 + 2 * self.sit_segments + 2 * self.nat_segments;
        let left = self.total_segments.saturating_sub(before_ssa);
        let ssa_segments = (left / self.shrink + 1).div_ceil(u64::from(SEGMENT_BLOCKS) / self.shrink);
        self.first_main_segment = (before_ssa + ssa_segments).next_multiple_of(section);
        self.main_segments = self.total_segments.saturating_sub(self.first_main_segment);
        self.main_segments -= self.main_segments % section;
    }

    /// Reserved segments for cleaning, and over-provisioned segments. Selects the ratio that leaves
    /// the most space to the user.
    fn reserve(&self, section_segments: u32, percent: Option<f64>) -> (u64, u64) {
        let main = self.main_segments as f64;
        let reserved = |percent: f64| ((100.0 / percent).floor() + 1.0 + 6.0) * f64::from(section_segments);
        let overprovision = |percent: f64| (main - reserved(percent)) * percent / 100.0;
        let space = |percent: f64| main - overprovision(percent).max(reserved(percent));
        let candidates: Vec<f64> = match percent {
            Some(percent) => vec![percent],
            None if self.main_segments < 256 => vec![10.0],
            None => (1..=1000).map(|hundredths| f64::from(hundredths) / 100.0).collect(),
        };
        let best = candidates
            .into_iter()
            .reduce(|best, candidate| if space(candidate) > space(best) { candidate } else { best })
            .expect("there are candidates");
        (reserved(best) as u64, overprovision(best).max(0.0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workload::ScaledModel;

    fn drive(device_bytes: u64, denominator: u64) -> WorkloadTarget {
        WorkloadTarget {
            device_bytes,
            scaled_model: (denominator > 1).then_some(ScaledModel {
                denominator,
                device_bytes: device_bytes / denominator,
                mapping_unit_bytes: 4096,
                keep_requests: false,
            }),
            ..WorkloadTarget::default()
        }
    }

    #[test]
    fn areas_follow_each_other_and_cover_what_they_describe() {
        assert_eq!([1, 3, 4, 64, 256, 1024].map(F2fsLayout::default_shrink), [1, 1, 2, 8, 16, 16]);
        for (bytes, d, section) in
            [(1u64 << 30, 1, 1), (256 << 30, 1, 4), (7_680_000_000_000, 256, 1), (7_680_000_000_000, 1, 1)]
        {
            let layout = F2fsLayout::new(&drive(bytes, d), section, None, F2fsLayout::default_shrink(d)).unwrap();
            assert!(layout.checkpoint < layout.sit && layout.sit < layout.nat && layout.nat < layout.ssa);
            assert_eq!(layout.nat - layout.sit, 2 * layout.sit_blocks);
            assert_eq!(layout.ssa - layout.nat, 2 * layout.nat_blocks);
            let summaries = (layout.main - layout.ssa) * layout.shrink;
            assert!(summaries >= layout.segments, "a summary block per segment: {layout:?}");
            assert!(layout.sit_blocks * SIT_ENTRIES * layout.shrink >= layout.segments);
            assert_eq!(layout.main % (layout.segment_blocks * section), 0);
            let end = u64::from(layout.main) + u64::from(layout.main_blocks());
            assert!(end * BLOCK_BYTES <= bytes / d);
            assert!((bytes / d) - end * BLOCK_BYTES < u64::from(section) << 22);
        }
    }

    /// With n segments, p percent cost 100 / p reserved and n p / 100 overprovisioned segments.
    /// Both are equal at p = 100 / sqrt(n).
    #[test]
    fn overprovisioning_balances_reserve_and_spare() {
        let layout = F2fsLayout::new(&drive(7_680_000_000_000, 1), 1, None, 1).unwrap();
        let root = f64::from(layout.segments).sqrt();
        assert!((f64::from(layout.reserved_sections) / root - 1.0).abs() < 0.1, "{layout:?}");
        assert!((f64::from(layout.overprovision_segments) / root - 1.0).abs() < 0.1, "{layout:?}");
    }

    #[test]
    fn drives_that_are_too_small_or_too_large_are_refused() {
        for (bytes, part) in [(1u64 << 26, "too few sections"), (1 << 45, "16 TiB")] {
            let error = F2fsLayout::new(&drive(bytes, 1), 1, None, 1).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
