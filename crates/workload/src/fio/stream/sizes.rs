//! Sizes of the requests of a stream.

use crate::RequestOperation;
use crate::fio::job::JobOperations;
use crate::fio::plan::JobPlan;
use crate::fio::random::{OffsetGenerator, Purpose};

/// Maximum draws of a size or block that does not fit. After that, a fitting one is chosen.
/// Ordinary jobs need a few draws.
pub(super) const DRAWS_MAX: u32 = 1 << 16;

/// Source of the sizes of one direction.
#[derive(Debug, Clone)]
pub(super) struct SizeSource {
    pub(super) min_bytes: u64,
    pub(super) max_bytes: u64,
    pub(super) align_bytes: u64,
    /// Sizes with the largest draw that selects them.
    split: Vec<(u64, u64)>,
    /// Blocks that offsets are drawn from.
    pub(super) last_block: f64,
    pub(super) generator: OffsetGenerator,
}

impl SizeSource {
    pub(super) fn new(plan: &JobPlan, operation: RequestOperation) -> Self {
        let block = &plan.blocks[operation as usize];
        let generator = size_generator(plan, operation);
        // fio compares draw / percent with max / 100, in whole numbers.
        let per_percent = generator.max() / 100 + 1;
        let mut percent = 0.0;
        let split = block.split.iter().filter(|(_, share)| *share > 0.0).map(|(bytes, share)| {
            percent += share;
            let last = if percent.fract() == 0.0 {
                u128::from(percent as u64) * u128::from(per_percent)
            } else {
                (percent * per_percent as f64) as u128
            };
            (*bytes, u64::try_from(last - 1).unwrap_or(u64::MAX))
        });
        Self {
            min_bytes: block.min_bytes,
            max_bytes: block.max_bytes,
            align_bytes: block.align_bytes,
            split: split.collect(),
            last_block: plan.last_block(operation) as f64,
            generator,
        }
    }

    /// Draws a random size that fits into the rest of the region, or returns `None` if even the
    /// smallest does not. fio draws until a size fits, possibly forever. Here the smallest is taken
    /// after [`DRAWS_MAX`] draws.
    pub(super) fn draw(&mut self, room_bytes: u64) -> Option<u64> {
        assert!(0 < self.min_bytes && self.min_bytes <= self.max_bytes, "sizes are from the smallest to the largest");
        if self.min_bytes > room_bytes {
            return None;
        }
        for _ in 0..DRAWS_MAX {
            let bytes = if self.split.is_empty() {
                self.min_bytes + (self.max_bytes as f64 * self.generator.next_fraction()) as u64
            } else {
                let draw = self.generator.next_bits();
                let taken = self.split.iter().find(|(bytes, last)| draw <= *last && *bytes <= room_bytes);
                taken.or(self.split.last()).map_or(self.min_bytes, |(bytes, _)| *bytes)
            };
            let bytes = (bytes - bytes % self.min_bytes).min(self.max_bytes);
            if bytes <= room_bytes {
                assert!(
                    bytes >= self.min_bytes,
                    "a request of {bytes} bytes is below the smallest, {}",
                    self.min_bytes
                );
                return Some(bytes);
            }
        }
        Some(self.min_bytes)
    }
}

pub(super) fn size_generator(plan: &JobPlan, operation: RequestOperation) -> OffsetGenerator {
    let purpose = match operation {
        RequestOperation::Read => Purpose::BlockSizeRead,
        // With `verify`, reads and writes draw the same sizes.
        RequestOperation::Write if plan.verifies => Purpose::BlockSizeRead,
        RequestOperation::Trim if plan.verifies && plan.access.operations == JobOperations::TrimWrite => {
            Purpose::BlockSizeRead
        }
        RequestOperation::Write => Purpose::BlockSizeWrite,
        // In a trim-and-write job, both must draw the same sizes.
        RequestOperation::Trim if plan.access.operations == JobOperations::TrimWrite => Purpose::BlockSizeWrite,
        RequestOperation::Trim => Purpose::BlockSizeTrim,
    };
    OffsetGenerator::new(plan.seeds.seed(purpose), plan.sizes_64)
}
