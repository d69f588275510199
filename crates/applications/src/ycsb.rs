//! Operations on records by key, as YCSB's core workloads mix them.
//!
//! A key is its place in the order of all keys. YCSB hashes the numbers of its records, so that neither popular nor new records are
//! neighbours; here a permutation of the numbers does that. Popularity is YCSB's: Zipf with exponent 0.99, uniform, or `latest`: Zipf by
//! age.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::distribution::Popularity as Ranks;
use workload::random::below;

/// Which records are popular.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Popularity {
    /// A few, much.
    Zipf,
    Uniform,
    Latest,
}

/// Which operations (YCSB's core workloads).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mix {
    /// Inserts of all records, and no more; on an endless run they are put again in the same order.
    Load,
    /// 50 % reads, 50 % updates.
    A,
    /// 95 % reads, 5 % updates.
    B,
    /// Reads; they write nothing.
    C,
    /// 95 % reads of new records, 5 % inserts.
    D,
    /// 95 % scans of up to 100 records, 5 % inserts.
    E,
    /// 50 % reads, 50 % reads that are followed by an update.
    F,
    /// Updates (db_bench's `overwrite`).
    Overwrite,
}

/// Longest scan (YCSB's `maxscanlength`).
const SCAN_ENTRIES: u32 = 100;

/// An operation on the record with a key, or on those from it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Read(u32),
    Put(u32),
    /// So many records.
    Scan(u32, u32),
    ReadAndPut(u32),
}

impl Mix {
    /// Which records are popular.
    pub(crate) fn popularity(self) -> Popularity {
        match self {
            Mix::D => Popularity::Latest,
            Mix::Overwrite => Popularity::Uniform,
            _ => Popularity::Zipf,
        }
    }

    /// The next operation when all records are loaded.
    pub(crate) fn next(self, keys: &mut Keys) -> Operation {
        let reads_percent = match self {
            Mix::Load | Mix::Overwrite => return Operation::Put(keys.existing()),
            Mix::C => return Operation::Read(keys.existing()),
            Mix::F => {
                let key = keys.existing();
                return if keys.chance(50) {
                    Operation::ReadAndPut(key)
                } else {
                    Operation::Read(key)
                };
            }
            Mix::A => 50,
            Mix::B | Mix::D | Mix::E => 95,
        };
        let reads = keys.chance(reads_percent);
        match self {
            // Without room for another record an old one is put again.
            Mix::D | Mix::E if !reads => Operation::Put(keys.insert().unwrap_or_else(|| keys.existing())),
            Mix::E => {
                let entries = keys.length(SCAN_ENTRIES);
                Operation::Scan(keys.existing(), entries)
            }
            _ if reads => Operation::Read(keys.existing()),
            _ => Operation::Put(keys.existing()),
        }
    }
}

/// A bijection of 0..`count`: two rounds of mixing on the next power of two, repeated until the result is small enough.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    count: u32,
    mask: u64,
    shift: u32,
}

impl Permutation {
    /// Of so many numbers.
    pub fn new(count: u32) -> Permutation {
        let bits = (64 - u64::from(count.max(2) - 1).leading_zeros()).max(2);
        Permutation {
            count,
            mask: (1 << bits) - 1,
            shift: bits / 2,
        }
    }

    /// The place of a number.
    pub fn of(&self, number: u32) -> u32 {
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

#[derive(Debug)]
pub struct Keys {
    random: Xoshiro256PlusPlus,
    popularity: Popularity,
    ranks: Ranks,
    permutation: Permutation,
    /// Records that exist; further ones may be inserted up to the end of the permutation.
    records: u32,
}

impl Keys {
    /// Room for `most` records, of which none exists. On a twin every record stands for `merged` ones of the drive.
    pub fn new(most: u32, merged: u64, popularity: Popularity, exponent: f64, seed: u64) -> Keys {
        Keys {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            popularity,
            ranks: Ranks::new(u64::from(most), merged, exponent),
            permutation: Permutation::new(most),
            records: 0,
        }
    }

    /// Number of records.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// Records that there can be.
    pub fn most(&self) -> u32 {
        self.permutation.count
    }

    /// The key of a new record; none if there is no room.
    pub fn insert(&mut self) -> Option<u32> {
        if self.records == self.permutation.count {
            return None;
        }
        self.records += 1;
        Some(self.permutation.of(self.records - 1))
    }

    /// The key of an existing record, by popularity.
    pub fn existing(&mut self) -> u32 {
        let record = match self.popularity {
            Popularity::Uniform => below(&mut self.random, u64::from(self.records)) as u32,
            Popularity::Zipf => self.rank(),
            Popularity::Latest => self.records - 1 - self.rank(),
        };
        self.permutation.of(record)
    }

    /// A rank among the records that exist: others are drawn again.
    fn rank(&mut self) -> u32 {
        loop {
            let rank = self.ranks.draw(&mut self.random);
            if rank < u64::from(self.records) {
                return rank as u32;
            }
        }
    }

    /// True in so many of a hundred cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        below(&mut self.random, 100) < u64::from(percent)
    }

    /// From 1 to `most`.
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
            let mut places: Vec<u32> = (0..count).map(|number| permutation.of(number)).collect();
            let neighbours = places.windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 3).count();
            assert!(
                count < 1000 || neighbours < count as usize / 20,
                "{neighbours} of {count}"
            );
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }
}
