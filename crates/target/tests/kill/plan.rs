//! The operations on the drive, and the expected content afterwards.

use std::collections::HashMap;
use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::small_drive::CAPACITY_BYTES;

/// Longest distance between flushes in operations. It tells the parent the operations that may have
/// begun.
pub const FLUSH_EVERY: u32 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Write,
    WriteThrough,
    Deallocate,
    WriteZeroes,
    Flush,
    /// Stores non-volatile state.
    EnableEvent(bool),
    Checkpoint,
    /// Shuts down and starts again.
    Restart,
}

/// Kind and logical blocks of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub kind: Kind,
    pub first: u64,
    pub count: u64,
}

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// LBA format.
    pub format: u8,
    /// Number of equal parts of the drive. Operations use them in turn, so that this many can run
    /// in parallel. With several lanes, flushes come only every [`FLUSH_EVERY`] operations, and all
    /// other operations are I/O.
    pub lanes: u32,
}

impl Plan {
    /// Returns whether the drive has checksums, used for partial page writes and for parallel
    /// commands.
    pub fn has_checksums(&self) -> bool {
        self.format == 1 || self.lanes > 1
    }

    pub fn block_bytes(self) -> u64 {
        if self.format == 0 { 4096 } else { 512 }
    }

    pub fn blocks(self) -> u64 {
        CAPACITY_BYTES / self.block_bytes()
    }

    pub fn operation(self, number: u32) -> Operation {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed ^ u64::from(number) << 32);
        let kind = match random.random_range(0..1000) {
            _ if number.is_multiple_of(FLUSH_EVERY) => Kind::Flush,
            850.. if self.lanes > 1 => Kind::Write,
            0..600 => Kind::Write,
            600..720 => Kind::WriteThrough,
            720..800 => Kind::Deallocate,
            800..850 => Kind::WriteZeroes,
            850..950 => Kind::Flush,
            950..970 => Kind::EnableEvent(random.random_range(0..2) == 1),
            970..990 => Kind::Checkpoint,
            _ => Kind::Restart,
        };
        let longest = if random.random_range(0..16) == 0 { 1 << 20 } else { 32 << 10 } / self.block_bytes();
        let count = random.random_range(1..=longest);
        let lane_blocks = self.blocks() / u64::from(self.lanes);
        let lane = u64::from(number % self.lanes);
        Operation { kind, first: lane * lane_blocks + random.random_range(0..=lane_blocks - count), count }
    }
}

/// Bytes that a power failure cannot tear (NAWUPF, NABSPF): aligned pieces, also of several small
/// blocks.
const ATOMIC_BYTES: u64 = 4096;

/// Allowed blocks and state after a crash.
pub struct Expectation {
    plan: Plan,
    /// Generation of each block after the last durable operation on it.
    blocks: Vec<u32>,
    /// Later operations on each aligned piece that may have happened, in order: affected blocks,
    /// and their generation.
    perhaps: HashMap<u64, Vec<(Range<usize>, u32)>>,
    event: Vec<bool>,
}

impl Expectation {
    pub fn new(plan: Plan) -> Expectation {
        Expectation { plan, blocks: vec![0; plan.blocks() as usize], perhaps: HashMap::new(), event: vec![false] }
    }

    /// Records an operation that has run or may have run.
    pub fn operation(&mut self, number: u32, durable: bool) {
        let Operation { kind, first, count } = self.plan.operation(number);
        let generation = match kind {
            Kind::Write | Kind::WriteThrough => number,
            Kind::Deallocate | Kind::WriteZeroes => 0,
            Kind::EnableEvent(enabled) => {
                if durable {
                    self.event.clear();
                }
                return self.event.push(enabled);
            }
            Kind::Flush | Kind::Checkpoint | Kind::Restart => return,
        };
        let piece_blocks = ATOMIC_BYTES / self.plan.block_bytes();
        let end = first + count;
        for piece in first / piece_blocks..end.div_ceil(piece_blocks) {
            let start = piece * piece_blocks;
            let blocks = first.max(start) as usize..end.min(start + piece_blocks) as usize;
            let since = self.perhaps.entry(piece).or_default();
            since.push((blocks, generation));
            if durable {
                // Operations on the same blocks run one after the other, so the earlier ones are
                // done too.
                for (blocks, generation) in since.drain(..) {
                    self.blocks[blocks].fill(generation);
                }
            }
        }
    }

    /// Checks that each piece has the result of one of the possible last operations. The found
    /// content is the new expectation.
    pub fn compare(&mut self, found: &[u32], event: bool) {
        assert_eq!(found.len(), self.blocks.len());
        let piece_blocks = (ATOMIC_BYTES / self.plan.block_bytes()) as usize;
        for (piece, found) in found.chunks_exact(piece_blocks).enumerate() {
            let start = piece * piece_blocks;
            let flushed = self.blocks[start..start + piece_blocks].to_vec();
            let since = self.perhaps.remove(&(piece as u64)).unwrap_or_default();
            let is_found = |blocks: &[u32]| blocks[start..start + piece_blocks] == *found;
            let mut matches = is_found(&self.blocks);
            for (blocks, generation) in &since {
                if matches {
                    break;
                }
                self.blocks[blocks.clone()].fill(*generation);
                matches = is_found(&self.blocks);
            }
            assert!(
                matches,
                "blocks from {start} on are of generations {found:?}; flushed were {flushed:?}, then perhaps {since:?}"
            );
        }
        assert!(self.event.contains(&event), "the stored state is {event}, it may be {:?}", self.event);
        self.event = vec![event];
    }
}
