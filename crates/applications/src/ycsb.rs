//! Operations on records by key, mixed as in YCSB's core workloads.
//!
//! A key is its position in the sorted order of all keys. YCSB hashes record numbers to scatter
//! popular and new records over the key space. A permutation of the numbers does the same here.
//! Popularity follows YCSB: Zipf with exponent 0.99, uniform, or `latest`, which is Zipf by age.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::distribution::RankDistribution;
use workload::random::below;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordPopularity {
    /// A few records get most operations.
    Zipf,
    Uniform,
    Latest,
}

/// Operation mix (YCSB's core workloads).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Inserts of all records. An endless run overwrites the records in the same order.
    Load,
    /// 50 % reads, 50 % updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads only, so the drive sees no writes.
    C,
    /// 95 % reads of new records, 5 % inserts.
    D,
    /// 95 % scans of up to 100 records, 5 % inserts.
    E,
    /// 50 % reads, 50 % reads that are followed by an update.
    F,
    /// Updates only (db_bench's `overwrite`).
    Overwrite,
}

/// Longest scan (YCSB's `maxscanlength`).
const SCAN_ENTRIES: u32 = 100;

/// An operation on a record, or on a range of records that begins at a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum YcsbOperation {
    Read(u32),
    Put(u32),
    /// A start key and a number of records.
    Scan(u32, u32),
    ReadAndPut(u32),
}

impl Mix {
    pub(crate) fn popularity(self) -> RecordPopularity {
        match self {
            Mix::D => RecordPopularity::Latest,
            Mix::Overwrite => RecordPopularity::Uniform,
            _ => RecordPopularity::Zipf,
        }
    }

    /// Draws the next operation after all records are loaded.
    pub(crate) fn next(self, keys: &mut YcsbKeys) -> YcsbOperation {
        let reads_percent = match self {
            Mix::Load | Mix::Overwrite => return YcsbOperation::Put(keys.existing()),
            Mix::C => return YcsbOperation::Read(keys.existing()),
            Mix::F => {
                let key = keys.existing();
                return if keys.chance(50) { YcsbOperation::ReadAndPut(key) } else { YcsbOperation::Read(key) };
            }
            Mix::A => 50,
            Mix::B | Mix::D | Mix::E => 95,
        };
        let reads = keys.chance(reads_percent);
        match self {
            // If the key space is full, an insert overwrites an existing record.
            Mix::D | Mix::E if !reads => YcsbOperation::Put(keys.insert().unwrap_or_else(|| keys.existing())),
            Mix::E => {
                let entries = keys.length(SCAN_ENTRIES);
                YcsbOperation::Scan(keys.existing(), entries)
            }
            _ if reads => YcsbOperation::Read(keys.existing()),
            _ => YcsbOperation::Put(keys.existing()),
        }
    }
}

/// A bijection of 0..`count`. Two rounds of mixing on the next power of two repeat until the result
/// is below `count`.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    count: u32,
    mask: u64,
    shift: u32,
}

impl Permutation {
    /// Builds a permutation of `count` numbers.
    pub fn new(count: u32) -> Permutation {
        let bits = (64 - u64::from(count.max(2) - 1).leading_zeros()).max(2);
        Permutation { count, mask: (1 << bits) - 1, shift: bits / 2 }
    }

    pub fn position(&self, number: u32) -> u32 {
        let mut mixed = u64::from(number);
        loop {
            for odd in [0x9e37_79b9_7f4a_7c15u64, 0xbf58_476d_1ce4_e5b9] {
                mixed = (mixed ^ (mixed >> self.shift)).wrapping_mul(odd) & self.mask;
            }
            mixed ^= mixed >> self.shift;
            if mixed < u64::from(self.count) {
                return mixed as u32;
            }
        }
    }
}

pub struct YcsbKeys {
    random: Xoshiro256PlusPlus,
    popularity: RecordPopularity,
    ranks: RankDistribution,
    permutation: Permutation,
    /// Existing records. Inserts may add more, up to the size of the permutation.
    pub records: u32,
}

impl YcsbKeys {
    /// Creates an empty key space of `most` records. On a scaled model each record stands
    /// for `merged` records of the full drive.
    pub fn new(most: u32, merged: u64, popularity: RecordPopularity, exponent: f64, seed: u64) -> YcsbKeys {
        YcsbKeys {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            popularity,
            ranks: RankDistribution::new(u64::from(most), merged, exponent),
            permutation: Permutation::new(most),
            records: 0,
        }
    }

    pub fn records_max(&self) -> u32 {
        self.permutation.count
    }

    /// Inserts a record and returns its key, or `None` if the key space is full.
    pub fn insert(&mut self) -> Option<u32> {
        if self.records == self.permutation.count {
            return None;
        }
        self.records += 1;
        Some(self.permutation.position(self.records - 1))
    }

    /// Draws the key of an existing record by popularity.
    pub fn existing(&mut self) -> u32 {
        let record = match self.popularity {
            RecordPopularity::Uniform => below(&mut self.random, u64::from(self.records)) as u32,
            RecordPopularity::Zipf => self.rank(),
            RecordPopularity::Latest => self.records - 1 - self.rank(),
        };
        self.permutation.position(record)
    }

    /// Draws a rank among the existing records. Repeats the draw while the rank is too large.
    fn rank(&mut self) -> u32 {
        loop {
            let rank = self.ranks.draw(&mut self.random);
            if rank < u64::from(self.records) {
                return rank as u32;
            }
        }
    }

    /// Returns true with a probability of `percent` %.
    pub fn chance(&mut self, percent: u32) -> bool {
        below(&mut self.random, 100) < u64::from(percent)
    }

    /// Draws a length from 1 to `most`.
    pub fn length(&mut self, most: u32) -> u32 {
        1 + (self.random.next_u64() % u64::from(most)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_takes_every_place_once() {
        for count in [1, 2, 100, 1000, 65_537] {
            let permutation = Permutation::new(count);
            let mut places: Vec<u32> = (0..count).map(|number| permutation.position(number)).collect();
            let neighbours = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 3).count();
            assert!(count < 1000 || neighbours < count as usize / 20, "{neighbours} of {count}");
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }
}
