//! Sizes of the requests of a stream.

use crate::Operation;
use crate::fio::job::Operations;
use crate::fio::plan::Plan;
use crate::fio::random::{Generator, Purpose};

/// Maximum draws of a size or block that does not fit. After that, a fitting one is chosen.
/// Ordinary jobs need a few draws.
pub(super) const DRAWS_MAX: u32 = 1 << 16;

/// Source of the sizes of one direction.
#[derive(Debug, Clone)]
pub(super) struct Sizes {
    pub(super) min_bytes: u64,
    pub(super) max_bytes: u64,
    pub(super) align_bytes: u64,
    /// Sizes with the largest draw that selects them.
    split: Vec<(u64, u64)>,
    /// Blocks that offsets are drawn from.
    pub(super) last_block: f64,
    pub(super) generator: Generator,
}

impl Sizes {
    pub(super) fn new(plan: &Plan, operation: Operation) -> Self {
        let block = &plan.blocks[operation as usize];
        let generator = size_generator(plan, operation);
        // fio compares draw / percent with max / 100, in whole numbers.
        let per_percent = generator.max() / 100 + 1;
        let mut percent = 0.0;
        let split = block
            .split
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(bytes, share)| {
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
        assert!(
            0 < self.min_bytes && self.min_bytes <= self.max_bytes,
            "sizes are from the smallest to the largest"
        );
        if self.min_bytes > room_bytes {
            return None;
        }
        for _ in 0..DRAWS_MAX {
            let bytes = if self.split.is_empty() {
                self.min_bytes + (self.max_bytes as f64 * self.generator.next_fraction()) as u64
            } else {
                let draw = self.generator.next_bits();
                let taken = self
                    .split
                    .iter()
                    .find(|(bytes, last)| draw <= *last && *bytes <= room_bytes);
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

pub(super) fn size_generator(plan: &Plan, operation: Operation) -> Generator {
    let purpose = match operation {
        Operation::Read => Purpose::BlockSizeRead,
        // With `verify`, reads and writes draw the same sizes.
        Operation::Write if plan.verifies => Purpose::BlockSizeRead,
        Operation::Trim if plan.verifies && plan.access.operations == Operations::TrimWrite => Purpose::BlockSizeRead,
        Operation::Write => Purpose::BlockSizeWrite,
        // In a trim-and-write job, both must draw the same sizes.
        Operation::Trim if plan.access.operations == Operations::TrimWrite => Purpose::BlockSizeWrite,
        Operation::Trim => Purpose::BlockSizeTrim,
    };
    Generator::new(plan.seeds.of(purpose), plan.sizes_64)
}
