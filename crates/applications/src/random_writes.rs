//! Random overwrites of blocks with an exact skew, or of zones that are written in order.
//!
//! ```text
//! rank (Zipf in the hot part, uniform in the cold part) -> permutation -> write of a block
//! random open zone -> next block of the zone             -> write of a block
//! ```
//!
//! fio's zipf maps ranks to blocks with a hash, which leaves a third of the blocks unwritten, and its
//! zones are contiguous. Here each block has exactly one rank, and ranks lie in address order or
//! scattered. These are the patterns of SSD-iq (PVLDB 18(11), 2025).
//!
//! On a scaled model of 1/d a block stands for d neighbouring ranks. The source writes without
//! placement directives and never ends.

use std::collections::VecDeque;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::distribution::RankDistribution;
use crate::ycsb::Permutation;
use workload::random::below;
use workload::{IoRequest, RequestOperation, RequestSource, WorkloadError, WorkloadTarget, multiple_of, within};

/// Unit of the sizes of blocks.
const UNIT_BYTES: u64 = 4096;
/// Largest block and largest deallocation.
const REQUEST_BYTES_MAX: u64 = 1 << 30;

/// Settings table `[workload]` of `kind = "random_writes"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RandomWriteSettings {
    /// Size of a block, and of a write. Default 4 KiB.
    #[serde(with = "base::size")]
    block_bytes: u64,
    /// Exponent of the popularity of the hot part's blocks by rank. Default 0, which is uniform.
    zipf_exponent: f64,
    /// Blocks of the hot part, percent. Default 100.
    hot_blocks_percent: f64,
    /// Writes to the hot part, percent. The others are uniform in the cold part. Default 100.
    hot_writes_percent: f64,
    /// Spreads the ranks over the drive. Otherwise they lie in address order. Default true.
    scattered: bool,
    /// Zones that are written in order at the same time. Default none.
    zones: Option<ZoneSettings>,
}

/// Zones that are written in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoneSettings {
    #[serde(with = "base::size")]
    bytes: u64,
    /// Number of zones that are written at the same time.
    open: u32,
    /// Deallocates a zone before its first write. Default false.
    #[serde(default)]
    discard: bool,
}

impl Default for RandomWriteSettings {
    fn default() -> RandomWriteSettings {
        RandomWriteSettings {
            block_bytes: UNIT_BYTES,
            zipf_exponent: 0.0,
            hot_blocks_percent: 100.0,
            hot_writes_percent: 100.0,
            scattered: true,
            zones: None,
        }
    }
}

impl RandomWriteSettings {
    pub(crate) fn memory_bytes(&self) -> u64 {
        /// Tables of a distribution. Each one percent more of the ranks has an entry.
        const TABLE_BYTES: u64 = 1 << 20;
        let open = self.zones.as_ref().map_or(0, |zones| u64::from(zones.open));
        TABLE_BYTES + open * size_of::<OpenZone>() as u64
    }

    /// Creates the source for a drive.
    pub(crate) fn source(&self, target: &WorkloadTarget, seed: u64) -> Result<RandomWrites, WorkloadError> {
        self.check()?;
        let block_bytes = target.request_bytes(self.block_bytes).next_multiple_of(target.unit_bytes());
        let blocks = u32::try_from(target.capacity_bytes() / block_bytes).unwrap_or(u32::MAX);
        let pattern = match &self.zones {
            Some(zones) => Pattern::Zones(zones.pattern(blocks, block_bytes, target)?),
            None => Pattern::Ranks(self.ranks(blocks, block_bytes, target)?),
        };
        Ok(RandomWrites {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            block_bytes,
            blocks,
            pattern,
            coming: VecDeque::new(),
        })
    }

    fn ranks(&self, blocks: u32, block_bytes: u64, target: &WorkloadTarget) -> Result<RankedBlocks, WorkloadError> {
        let hot_blocks = (f64::from(blocks) * self.hot_blocks_percent / 100.0) as u32;
        let all_hot = self.hot_writes_percent == 100.0;
        if hot_blocks == 0 || (hot_blocks == blocks && !all_hot) {
            let problem = format!(
                "makes {hot_blocks} of {blocks} blocks hot, but both parts need one. Give another percentage or scale"
            );
            return Err(WorkloadError::setting("hot_blocks_percent", problem));
        }
        let merged = (target.denominator() * block_bytes / self.block_bytes).max(1);
        Ok(RankedBlocks {
            hot_threshold: (self.hot_writes_percent / 100.0 * (1_u64 << 32) as f64) as u64,
            hot_blocks,
            ranks: RankDistribution::new(hot_blocks.into(), merged, self.zipf_exponent),
            permutation: self.scattered.then(|| Permutation::new(blocks)),
        })
    }

    fn check(&self) -> Result<(), WorkloadError> {
        multiple_of(UNIT_BYTES, "block_bytes", self.block_bytes, REQUEST_BYTES_MAX)?;
        within("zipf_exponent", self.zipf_exponent, 0.0..=3.0)?;
        within("hot_blocks_percent", self.hot_blocks_percent, 0.001..=100.0)?;
        within("hot_writes_percent", self.hot_writes_percent, 0.0..=100.0)?;
        let Some(zones) = &self.zones else { return Ok(()) };
        within("zones.open", zones.open, 1..=4096)?;
        multiple_of(self.block_bytes, "zones.bytes", zones.bytes, 1 << 40)?;
        let is_plain = RandomWriteSettings {
            block_bytes: self.block_bytes,
            zones: self.zones.clone(),
            ..RandomWriteSettings::default()
        };
        if *self != is_plain {
            let problem = "cannot be combined with zipf_exponent, hot_blocks_percent, hot_writes_percent and scattered, \
                           because zones are drawn uniformly. Remove them";
            return Err(WorkloadError::setting("zones", problem));
        }
        Ok(())
    }
}

impl ZoneSettings {
    fn pattern(&self, blocks: u32, block_bytes: u64, target: &WorkloadTarget) -> Result<OpenZones, WorkloadError> {
        let zone_blocks = u32::try_from(target.request_bytes(self.bytes) / block_bytes).unwrap_or(u32::MAX);
        let zones = blocks.checked_div(zone_blocks).unwrap_or(0);
        if zones <= self.open {
            let problem = format!(
                "is too many for a drive with {zones} zones, because a zone is opened only once at a time. Give another \
                 number, size or scale"
            );
            return Err(WorkloadError::setting(format!("zones.open = {}", self.open), problem));
        }
        let full = OpenZone { zone: u32::MAX, next: zone_blocks };
        Ok(OpenZones { zone_blocks, zones, open: vec![full; self.open as usize], discard: self.discard })
    }
}

/// Blocks with a popularity by rank.
struct RankedBlocks {
    /// A draw of 32 bits below this value writes to the hot part.
    hot_threshold: u64,
    hot_blocks: u32,
    ranks: RankDistribution,
    /// From ranks to blocks. `None` for address order.
    permutation: Option<Permutation>,
}

impl RankedBlocks {
    fn draw(&self, blocks: u32, random: &mut Xoshiro256PlusPlus) -> u32 {
        let is_hot = self.hot_blocks == blocks || (random.next_u64() >> 32) < self.hot_threshold;
        let rank = if is_hot {
            self.ranks.draw(random)
        } else {
            u64::from(self.hot_blocks) + below(random, u64::from(blocks - self.hot_blocks))
        };
        let rank = u32::try_from(rank).expect("a rank is below the number of blocks");
        self.permutation.map_or(rank, |permutation| permutation.position(rank))
    }
}

/// Zones that are written at the same time. The next zone is drawn from all that are not open.
struct OpenZones {
    zone_blocks: u32,
    zones: u32,
    open: Vec<OpenZone>,
    discard: bool,
}

/// An open zone and its next block.
#[derive(Clone)]
struct OpenZone {
    zone: u32,
    next: u32,
}

impl OpenZones {
    /// Draws the next block to write. The second value is the first block of a zone that is opened
    /// for it.
    fn draw(&mut self, random: &mut Xoshiro256PlusPlus) -> (u32, Option<u32>) {
        let at = below(random, self.open.len() as u64) as usize;
        let mut opened = None;
        if self.open[at].next == self.zone_blocks {
            let mut zone = u32::MAX;
            while zone == u32::MAX || self.open.iter().any(|open| open.zone == zone) {
                zone = below(random, self.zones.into()) as u32;
            }
            self.open[at] = OpenZone { zone, next: 0 };
            opened = Some(zone * self.zone_blocks);
        }
        let open = &mut self.open[at];
        let block = open.zone * self.zone_blocks + open.next;
        open.next += 1;
        assert!(open.next <= self.zone_blocks, "block {block} is beyond its zone");
        (block, opened)
    }
}

enum Pattern {
    Ranks(RankedBlocks),
    Zones(OpenZones),
}

pub(crate) struct RandomWrites {
    random: Xoshiro256PlusPlus,
    block_bytes: u64,
    blocks: u32,
    pattern: Pattern,
    /// Requests that are drawn but not yet issued.
    coming: VecDeque<IoRequest>,
}

impl RandomWrites {
    /// Draws a write, and deallocations before it.
    fn draw(&mut self) {
        let request = |operation, block: u32, bytes: u64| IoRequest {
            stream: 0,
            operation,
            offset_bytes: u64::from(block) * self.block_bytes,
            bytes: u32::try_from(bytes).expect("a request is at most 1 GiB"),
            placement: None,
        };
        let block = match &mut self.pattern {
            Pattern::Ranks(ranks) => ranks.draw(self.blocks, &mut self.random),
            Pattern::Zones(zones) => {
                let (block, opened) = zones.draw(&mut self.random);
                if let Some(first) = opened.filter(|_| zones.discard) {
                    let step = u32::try_from(REQUEST_BYTES_MAX / self.block_bytes).expect("blocks of at least 4 KiB");
                    let ends = (first..first + zones.zone_blocks).step_by(step as usize);
                    let trims = ends.map(|from| {
                        let blocks = step.min(first + zones.zone_blocks - from);
                        request(RequestOperation::Trim, from, u64::from(blocks) * self.block_bytes)
                    });
                    self.coming.extend(trims);
                }
                block
            }
        };
        assert!(block < self.blocks, "block {block} of {} is drawn", self.blocks);
        self.coming.push_back(request(RequestOperation::Write, block, self.block_bytes));
    }
}

impl RequestSource for RandomWrites {
    fn next_batch(&mut self, requests: &mut Vec<IoRequest>, limit: usize) -> Result<usize, WorkloadError> {
        for _ in 0..limit {
            if self.coming.is_empty() {
                self.draw();
            }
            requests.extend(self.coming.pop_front());
        }
        Ok(limit)
    }

    fn streams(&self) -> Vec<String> {
        vec!["writes".to_string()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MIB, drive, read, scaled_drive, zipf_weights};

    fn settings(text: &str) -> RandomWriteSettings {
        read(text).expect("they are valid")
    }

    /// Blocks of the first writes to a drive.
    fn blocks(text: &str, target: &WorkloadTarget, count: usize) -> Vec<u32> {
        let mut source = settings(text).source(target, 7).expect("it fits");
        let mut requests = Vec::new();
        source.next_batch(&mut requests, count).expect("requests");
        let bytes = source.block_bytes;
        assert!(requests.iter().all(|request| u64::from(request.bytes) == bytes));
        requests.iter().map(|request| (request.offset_bytes / bytes) as u32).collect()
    }

    /// Writes per block, most first, and the number of blocks without any.
    fn hits(blocks: &[u32], all: usize) -> (Vec<u32>, usize) {
        let mut hits = vec![0; all];
        for block in blocks {
            hits[*block as usize] += 1;
        }
        hits.sort_unstable_by(|a, b| b.cmp(a));
        let unwritten = hits.iter().filter(|count| **count == 0).count();
        (hits, unwritten)
    }

    #[test]
    fn each_block_has_one_rank_of_the_zipf_scattered_or_in_order() {
        let weights = zipf_weights(256, 0.8);
        let total: f64 = weights.iter().sum();
        for scattered in [true, false] {
            let drawn = blocks(&format!("zipf_exponent = 0.8\nscattered = {scattered}"), &drive(1), 1_000_000);
            let (found, unwritten) = hits(&drawn, 256);
            assert_eq!(unwritten, 0);
            for rank in [0, 1, 10, 200] {
                let expected = weights[rank] / total * 1e6;
                assert!((f64::from(found[rank]) / expected - 1.0).abs() < 0.05, "rank {rank}");
            }
            // The first rank may stay where it is.
            let second = drawn.iter().filter(|block| **block == 1).count();
            assert_eq!(second as u32 == found[1], !scattered);
        }
    }

    #[test]
    fn the_hot_part_gets_its_share_and_the_rest_may_get_nothing() {
        let text = |writes: u32| format!("hot_blocks_percent = 25\nhot_writes_percent = {writes}\nscattered = false");
        let share = |drawn: &[u32]| drawn.iter().filter(|block| **block < 64).count();
        assert!(share(&blocks(&text(80), &drive(1), 100_000)).abs_diff(80_000) < 500);
        let (found, unwritten) = hits(&blocks(&text(100), &drive(1), 100_000), 256);
        assert_eq!(unwritten, 192);
        assert!(found[0] < 2 * found[63], "the hot part is uniform");
    }

    #[test]
    fn a_block_of_a_scaled_model_is_as_popular_as_those_that_it_stands_for() {
        let text = "zipf_exponent = 0.9\nscattered = false";
        let below = |drawn: Vec<u32>, blocks: u32| drawn.iter().filter(|block| **block < blocks).count();
        for share in [100, 10, 2] {
            let full = below(blocks(text, &drive(64), 200_000), 16_384 / share);
            let model = below(blocks(text, &scaled_drive(64, 16), 200_000), 1024 / share);
            assert!(full.abs_diff(model) < 2_000, "first 1/{share}: {full} and {model}");
        }
    }

    #[test]
    fn zones_are_written_in_order_and_drawn_from_those_that_are_not_open() {
        let text = "block_bytes = \"64KiB\"\nzones = { bytes = \"1MiB\", open = 1 }";
        let drawn = blocks(text, &drive(8), 16 * 1000);
        let mut zones = [0; 8];
        for zone in drawn.chunks(16) {
            assert!(zone[0].is_multiple_of(16) && zone.windows(2).all(|pair| pair[1] == pair[0] + 1));
            zones[zone[0] as usize / 16] += 1;
        }
        assert!(zones.iter().all(|count| (80..170).contains(count)), "{zones:?}");
        // Each of several open zones continues at its own pace, and none is open twice.
        let drawn = blocks(&text.replace("open = 1", "open = 7"), &drive(8), 16 * 1000);
        let mut next = [16; 8];
        for block in drawn {
            let (zone, at) = (block as usize / 16, block as usize % 16);
            assert_eq!(at, next[zone] % 16, "zone {zone}");
            next[zone] = at + 1;
            let open = next.iter().filter(|next| **next < 16).count();
            assert!(open <= 7, "{open} zones are open");
        }
    }

    #[test]
    fn a_zone_is_deallocated_before_its_first_write() {
        let text = "block_bytes = \"1MiB\"\nzones = { bytes = \"3GiB\", open = 1, discard = true }";
        let mut source = settings(text).source(&drive(8192), 7).expect("it fits");
        let mut requests = Vec::new();
        source.next_batch(&mut requests, 3 + 3072 + 3).expect("requests");
        for (at, first) in [(0, 3), (3 + 3072, 0)] {
            let trims = &requests[at..at + 3];
            assert!(trims.iter().all(|trim| trim.operation == RequestOperation::Trim));
            assert!(trims.windows(2).all(|pair| pair[0].offset_bytes + (1 << 30) == pair[1].offset_bytes));
            let next = requests.get(at + first);
            assert!(next.is_none_or(|next| next.offset_bytes == trims[0].offset_bytes), "{next:?}");
        }
        let writes = &requests[3..3 + 3072];
        assert!(writes.iter().all(|write| write.operation == RequestOperation::Write));
    }

    #[test]
    fn batches_do_not_matter_and_all_writes_are_on_the_drive() {
        for text in [
            "",
            "zipf_exponent = 1.2",
            "hot_blocks_percent = 10\nhot_writes_percent = 90",
            "zones = { bytes = \"64KiB\", open = 5, discard = true }",
        ] {
            let take = |batch: usize| {
                let mut source = settings(text).source(&scaled_drive(64, 64), 3).expect("it fits");
                let mut requests = Vec::new();
                while requests.len() < 2000 {
                    let limit = batch.min(2000 - requests.len());
                    source.next_batch(&mut requests, limit).expect("requests");
                }
                requests
            };
            let one = take(1);
            assert!(one == take(2000), "{text}");
            assert!(one.iter().all(|request| request.offset_bytes + u64::from(request.bytes) <= MIB));
        }
    }

    #[test]
    fn mistakes_name_the_setting() {
        for (text, message) in [
            ("zipf_exponent = -1.0", "zipf_exponent = -1 must be from 0 to 3"),
            (
                "hot_writes_percent = 80",
                "hot_blocks_percent makes 256 of 256 blocks hot, but both parts need one. Give another percentage or scale",
            ),
            ("block_bytes = 1000", "block_bytes = 1000 must be a multiple of 4096 bytes and at most 1 GiB"),
            (
                "zones = { bytes = \"512KiB\", open = 2 }",
                "zones.open = 2 is too many for a drive with 2 zones, because a zone is opened only once at a time. Give \
                 another number, size or scale",
            ),
            (
                "zipf_exponent = 1.0\nzones = { bytes = \"64KiB\", open = 1 }",
                "zones cannot be combined with zipf_exponent, hot_blocks_percent, hot_writes_percent and scattered, \
                 because zones are drawn uniformly. Remove them",
            ),
        ] {
            let error = settings(text).source(&drive(1), 1).err().expect(text);
            assert_eq!(error.to_string(), message);
        }
    }
}
