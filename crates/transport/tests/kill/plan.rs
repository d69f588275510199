//! What is done to the drive, and what must be there afterwards.

use std::collections::HashMap;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::small_drive::CAPACITY_BYTES;

/// There is a flush at least every so many operations, so the parent knows which may have been begun.
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
    /// Shut down and start again.
    Restart,
}

/// What operation `number` is, on which logical blocks.
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
    /// Equal parts of the drive that operations take in turn, so that as many of them can be under way at the same time.
    /// With more than one, only flushes are between them that come every [`FLUSH_EVERY`], and nothing but I/O.
    pub lanes: u32,
}

impl Plan {
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
        let longest = if random.random_range(0..16) == 0 {
            1 << 20
        } else {
            32 << 10
        } / self.block_bytes();
        let count = random.random_range(1..=longest);
        let lane_blocks = self.blocks() / u64::from(self.lanes);
        let lane = u64::from(number % self.lanes);
        Operation {
            kind,
            first: lane * lane_blocks + random.random_range(0..=lane_blocks - count),
            count,
        }
    }
}

/// What blocks and state may be after a crash.
pub struct Expected {
    plan: Plan,
    /// Generation of each block for certain, up to the operations in `perhaps`.
    blocks: Vec<u32>,
    /// Generations that blocks may have instead.
    perhaps: HashMap<u64, Vec<u32>>,
    event: Vec<bool>,
}

impl Expected {
    pub fn new(plan: Plan) -> Expected {
        Expected {
            plan,
            blocks: vec![0; plan.blocks() as usize],
            perhaps: HashMap::new(),
            event: vec![false],
        }
    }

    /// An operation that was, or may have been, carried out.
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
        for block in first..first + count {
            if durable {
                self.blocks[block as usize] = generation;
                self.perhaps.remove(&block);
            } else {
                self.perhaps.entry(block).or_default().push(generation);
            }
        }
    }

    /// What was found must be one of what may be; from now on it is what is.
    pub fn compare(&mut self, found: &[u32], event: bool) {
        assert_eq!(found.len(), self.blocks.len());
        for (block, (&found, expected)) in found.iter().zip(&mut self.blocks).enumerate() {
            let perhaps = self.perhaps.get(&(block as u64)).map_or(&[][..], Vec::as_slice);
            assert!(
                found == *expected || perhaps.contains(&found),
                "block {block} is of generation {found}; it was flushed with {expected}, later ones are {perhaps:?}"
            );
            *expected = found;
        }
        self.perhaps.clear();
        assert!(
            self.event.contains(&event),
            "the stored state is {event}, it may be {:?}",
            self.event
        );
        self.event = vec![event];
    }
}
