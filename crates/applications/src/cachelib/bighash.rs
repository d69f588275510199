//! BigHash, the engine for small items (SOC): a set-associative cache with one flash bucket per
//! set.
//!
//! ```text
//! key -> bucket = hash mod buckets -> read, drop old copy of the key, drop oldest entries,
//!                                    append, write the whole bucket
//! ```
//!
//! Rules from CacheLib: a 4 KiB bucket has a header of 24 bytes. An entry has a header of 20 bytes
//! before its key and value. The oldest entry leaves first. An insert rewrites the whole bucket,
//! and so does the removal of a stored key. A Bloom filter of 8 bytes per bucket in DRAM saves most
//! flash reads for absent keys (CacheLib docs, "Small Object Cache"; navy/bighash/BigHash.cpp;
//! allocator/nvmcache/NavyConfig.h).
//!
//! The model keeps an entry in 4 bytes: 20 bits of the key's hash, and the size. Two keys of a
//! bucket collide with a probability of one in a million. The model has no checksums, no
//! generations and no locks of concurrent writers.

use prefetch::prefetch;

const BUCKET_HEADER_BYTES: u64 = 24;
const ENTRY_HEADER_BYTES: u32 = 20;
/// Functions of the Bloom filter. Each has its own part of the bits
/// (allocator/nvmcache/NavySetup.cpp).
const BLOOM_FUNCTIONS: u64 = 4;
/// Bits of an entry for its size, in units.
const SIZE_BITS: u32 = 12;
/// Entries of a block. With its two other fields it fills one cache line.
const BLOCK_ENTRIES: usize = 14;
/// Marks the absence of a block.
const NONE: u32 = u32::MAX;

/// Some entries of a bucket, oldest first, and the number of the next block.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct BucketBlock {
    entries: [u32; BLOCK_ENTRIES],
    /// Number of entries of the bucket, in its first block only.
    count: u32,
    next: u32,
}

impl BucketBlock {
    const EMPTY: BucketBlock = BucketBlock { entries: [0; BLOCK_ENTRIES], count: 0, next: NONE };
}

pub(super) struct BigHash {
    buckets: u64,
    /// The first block of every bucket, then additional blocks.
    blocks: Vec<BucketBlock>,
    free: u32,
    bucket_bytes: u64,
    size_unit_bytes: u32,
    bloom_bits: u64,
    /// Entries of the current bucket, oldest first.
    scratch: Vec<u32>,
}

impl BigHash {
    pub(super) fn new(buckets: u64, bucket_bytes: u64, bloom_filter_bytes: u64) -> BigHash {
        assert!(buckets < u64::from(NONE), "BigHash has at most 2^32 - 2 buckets");
        BigHash {
            buckets,
            blocks: vec![BucketBlock::EMPTY; buckets as usize],
            free: NONE,
            bucket_bytes,
            size_unit_bytes: bucket_bytes.div_ceil(1 << SIZE_BITS) as u32,
            bloom_bits: bloom_filter_bytes * 8 / BLOOM_FUNCTIONS,
            scratch: Vec::with_capacity(256),
        }
    }

    /// Bytes of a bucket for entries.
    fn capacity_bytes(&self) -> u64 {
        self.bucket_bytes - BUCKET_HEADER_BYTES
    }

    /// True if an item of this size (key and value) fits in a bucket.
    pub(super) fn fits(&self, bytes: u32) -> bool {
        self.entry_bytes(self.entry(0, bytes)) <= self.capacity_bytes()
    }

    pub(super) fn bucket_of(&self, key: u64) -> u64 {
        key % self.buckets
    }

    /// Compact entry of a key and its size.
    fn entry(&self, key: u64, bytes: u32) -> u32 {
        let units = (bytes + ENTRY_HEADER_BYTES).div_ceil(self.size_unit_bytes);
        fingerprint(key) << SIZE_BITS | units.min((1 << SIZE_BITS) - 1)
    }

    fn entry_bytes(&self, entry: u32) -> u64 {
        u64::from(entry & ((1 << SIZE_BITS) - 1)) * u64::from(self.size_unit_bytes)
    }

    /// Prefetches the first block of a key's bucket.
    pub(super) fn prefetch_bucket(&self, key: u64) {
        prefetch(&self.blocks, self.bucket_of(key) as usize);
    }

    /// Prefetches the second block of a key's bucket, if any. Call it a moment after
    /// [`BigHash::prefetch_bucket`].
    pub(super) fn prefetch_second_block(&self, key: u64) {
        let BucketBlock { count, next, .. } = self.blocks[self.bucket_of(key) as usize];
        if count as usize > BLOCK_ENTRIES {
            prefetch(&self.blocks, next as usize);
        }
    }

    /// Size (key and value) of a stored key.
    #[inline]
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        let wanted = fingerprint(key);
        let mut block = &self.blocks[self.bucket_of(key) as usize];
        let mut left = block.count as usize;
        let entry = loop {
            // A loop over the whole block, without an early end, compiles to vector instructions.
            let mut matches = 0_u32;
            for (at, entry) in block.entries.iter().enumerate() {
                matches |= u32::from(entry >> SIZE_BITS == wanted) << at;
            }
            matches &= (1 << left.min(BLOCK_ENTRIES)) - 1;
            if matches != 0 {
                break block.entries[matches.trailing_zeros() as usize];
            }
            if left <= BLOCK_ENTRIES {
                return None;
            }
            left -= BLOCK_ENTRIES;
            block = &self.blocks[block.next as usize];
        };
        Some(self.entry_bytes(entry) as u32 - ENTRY_HEADER_BYTES)
    }

    /// Passes the entries of the key's bucket to `go_on`, block by block and oldest first, while it
    /// returns true.
    #[inline]
    fn visit(&self, key: u64, mut go_on: impl FnMut(&[u32]) -> bool) {
        let mut block = &self.blocks[self.bucket_of(key) as usize];
        let mut left = block.count as usize;
        while left > BLOCK_ENTRIES {
            if !go_on(&block.entries) {
                return;
            }
            left -= BLOCK_ENTRIES;
            block = &self.blocks[block.next as usize];
        }
        go_on(&block.entries[..left]);
    }

    /// True if the bucket's Bloom filter passes this key.
    pub(super) fn may_contain(&self, key: u64) -> bool {
        if self.bloom_bits == 0 {
            return true;
        }
        let bit =
            |fingerprint: u32, function: u64| super::mix(u64::from(fingerprint) << 8 | function) % self.bloom_bits;
        let wanted = fingerprint(key);
        (0..BLOOM_FUNCTIONS).all(|function| {
            let mut set = false;
            self.visit(key, |entries| {
                set = entries.iter().any(|entry| bit(entry >> SIZE_BITS, function) == bit(wanted, function));
                !set
            });
            set
        })
    }

    /// Inserts a key and rewrites its bucket.
    pub(super) fn insert(&mut self, key: u64, bytes: u32) {
        let entry = self.entry(key, bytes);
        self.load(key);
        self.scratch.retain(|other| other >> SIZE_BITS != entry >> SIZE_BITS);
        self.scratch.push(entry);
        let mut used: u64 = self.scratch.iter().map(|entry| self.entry_bytes(*entry)).sum();
        let mut gone = 0;
        while used > self.capacity_bytes() {
            used -= self.entry_bytes(self.scratch[gone]);
            gone += 1;
        }
        assert!(gone < self.scratch.len(), "an item that is inserted fits a bucket");
        self.scratch.drain(..gone);
        self.store(key);
    }

    /// Removes a key. Returns true if it was stored. The bucket is then rewritten.
    pub(super) fn remove(&mut self, key: u64) -> bool {
        if self.find(key).is_none() {
            return false;
        }
        self.load(key);
        self.scratch.retain(|other| other >> SIZE_BITS != fingerprint(key));
        self.store(key);
        true
    }

    fn load(&mut self, key: u64) {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        self.visit(key, |entries| {
            scratch.extend_from_slice(entries);
            true
        });
        self.scratch = scratch;
    }

    /// Replaces the entries of the key's bucket with the current ones. Adds or frees blocks as
    /// needed.
    fn store(&mut self, key: u64) {
        let entries = std::mem::take(&mut self.scratch);
        let mut at = self.bucket_of(key) as usize;
        let blocks = |entries: usize| entries.div_ceil(BLOCK_ENTRIES).max(1);
        let (old_blocks, new_blocks) = (blocks(self.blocks[at].count as usize), blocks(entries.len()));
        self.blocks[at].count = entries.len() as u32;
        for (number, chunk) in entries.chunks(BLOCK_ENTRIES).enumerate() {
            self.blocks[at].entries[..chunk.len()].copy_from_slice(chunk);
            if number + 1 == new_blocks {
                break;
            }
            if number + 1 >= old_blocks {
                self.blocks[at].next = self.take_block();
            }
            at = self.blocks[at].next as usize;
        }
        for _ in new_blocks..old_blocks {
            let spare = self.blocks[at].next;
            self.blocks[at].next = self.blocks[spare as usize].next;
            self.blocks[spare as usize].next = self.free;
            self.free = spare;
        }
        self.scratch = entries;
    }

    fn take_block(&mut self) -> u32 {
        if self.free == NONE {
            self.blocks.push(BucketBlock::EMPTY);
            let block = self.blocks.len() - 1;
            assert!(block < NONE as usize, "BigHash holds at most 2^32 - 1 blocks of entries");
            return block as u32;
        }
        let block = self.free;
        self.free = self.blocks[block as usize].next;
        block
    }
}

/// 20 bits of a hash, distinct from those that select the bucket.
fn fingerprint(key: u64) -> u32 {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - (32 - SIZE_BITS))) as u32
}

#[cfg(test)]
mod tests {
    use super::super::mix;
    use super::*;
    use std::collections::VecDeque;

    fn key_of(cache: &BigHash, bucket: u64, number: u64) -> u64 {
        mix(number << 16 | bucket) / cache.buckets * cache.buckets + bucket
    }

    #[test]
    fn a_bucket_holds_what_fits_and_the_oldest_goes_first() {
        let mut cache = BigHash::new(10, 4096, 8);
        // 4096 - 24 bytes hold four entries of 20 + 980 bytes. 72 bytes remain.
        let keys: Vec<u64> = (0..6).map(|number| key_of(&cache, 3, number)).collect();
        for key in &keys[..5] {
            cache.insert(*key, 980);
        }
        assert_eq!(cache.find(keys[0]), None);
        assert!(keys[1..5].iter().all(|key| cache.find(*key) == Some(980)));
        // A new value makes an old key the youngest.
        cache.insert(keys[1], 900);
        cache.insert(keys[5], 980);
        assert_eq!(cache.find(keys[2]), None);
        assert_eq!(cache.find(keys[1]), Some(900));
        assert!(cache.remove(keys[1]) && !cache.remove(keys[1]));
        assert!(cache.fits(4052) && !cache.fits(4053));
    }

    #[test]
    fn buckets_are_those_of_a_model() {
        const BUCKETS: u64 = 50;
        let mut cache = BigHash::new(BUCKETS, 4096, 8);
        let mut model: Vec<VecDeque<(u64, u32)>> = vec![VecDeque::new(); BUCKETS as usize];
        for step in 0..100_000_u64 {
            let random = mix(step);
            let key = mix(random % 3_000);
            let bytes = 20 + (random >> 20) as u32 % [60, 300, 2_000][(random >> 60) as usize % 3];
            let bucket = &mut model[(key % BUCKETS) as usize];
            bucket.retain(|(other, _)| *other != key);
            if random >> 32 & 7 == 0 {
                cache.remove(key);
                continue;
            }
            bucket.push_back((key, bytes));
            while bucket.iter().map(|(_, bytes)| bytes + ENTRY_HEADER_BYTES).sum::<u32>() > 4072 {
                bucket.pop_front();
            }
            cache.insert(key, bytes);
        }
        for key in (0..3_000).map(mix) {
            let held = model[(key % BUCKETS) as usize].iter().find(|(other, _)| *other == key);
            assert_eq!(cache.find(key), held.map(|(_, bytes)| *bytes));
            assert!(held.is_none() || cache.may_contain(key));
        }
        let blocks: usize = model.iter().map(|bucket| bucket.len().div_ceil(BLOCK_ENTRIES).max(1)).sum();
        let mut free = 0;
        let mut at = cache.free;
        while at != NONE {
            (free, at) = (free + 1, cache.blocks[at as usize].next);
        }
        assert_eq!(cache.blocks.len(), blocks + free, "no block is lost");
    }

    #[test]
    fn the_bloom_filter_errs_as_often_as_its_size_says() {
        let mut cache = BigHash::new(2_000, 4096, 8);
        for key in (0..100_000).map(mix) {
            cache.insert(key, 230);
        }
        // 16 entries of 250 bytes set 1 - (15/16)^16 of the 16 bits of each function.
        let expected = (1.0 - (15.0_f64 / 16.0).powi(16)).powi(4);
        let errs = (0..100_000).filter(|number| cache.may_contain(mix(number + (1 << 40)))).count() as f64 / 1e5;
        assert!((errs - expected).abs() < 0.02, "{errs}, not {expected}");
        assert!(BigHash::new(1, 4096, 0).may_contain(5), "without a filter every lookup reads");
    }

    #[test]
    fn inserts_rewrite_all_buckets_alike() {
        const BUCKETS: u64 = 1_000;
        let cache = BigHash::new(BUCKETS, 4096, 8);
        let mut rewrites = vec![0_u32; BUCKETS as usize];
        for number in 0..1_000_000 {
            rewrites[cache.bucket_of(mix(number)) as usize] += 1;
        }
        let chi_square: f64 = rewrites.iter().map(|count| (f64::from(*count) - 1_000.0).powi(2) / 1_000.0).sum();
        // 999 degrees of freedom have mean 999 and standard deviation 44.7. The bound is 5
        // deviations.
        assert!((chi_square - 999.0).abs() < 224.0, "chi-square {chi_square}");
    }
}
