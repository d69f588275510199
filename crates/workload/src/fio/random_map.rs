//! The random map, which records the blocks of a region that this pass has touched.
//!
//! By default fio's uniform random jobs touch each block once per pass (`norandommap` disables
//! this). A draw of a touched block moves to the next untouched one, wrapping at the end. Level 0
//! has a bit per block. A bit of level n + 1 says that a whole word of level n is full. The search
//! is thus short even if the map is nearly full. Results equal those of fio's `lib/axmap.c`.
//!
//! The map does not draw random numbers.

/// A map of touched blocks.
#[derive(Debug, Clone)]
pub struct RandomMap {
    blocks: u64,
    /// Untouched blocks.
    pub free_blocks: u64,
    /// `levels[0]` has one bit per block. Each further level has one bit per word of the level
    /// below. Bits past the end are set.
    levels: Vec<Vec<u64>>,
}

impl RandomMap {
    /// Creates a map of untouched blocks.
    pub fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = blocks;
        loop {
            bits = bits.div_ceil(64);
            levels.push(vec![0; bits as usize]);
            if bits <= 1 {
                break;
            }
        }
        assert!(blocks > 0, "a region has a block");
        assert!(
            levels.last().is_some_and(|level| level.len() == 1),
            "the highest level of a map of {blocks} blocks is not one word"
        );
        let mut map = Self { blocks, free_blocks: blocks, levels };
        map.close_ends();
        map
    }

    pub fn memory_bytes(blocks: u64) -> u64 {
        // Each level has a 64th of the bits of the one below it.
        blocks / 8 + blocks / 8 / 63 + 64 * size_of::<u64>() as u64
    }

    /// Marks all blocks as untouched.
    pub fn reset(&mut self) {
        self.free_blocks = self.blocks;
        self.levels.iter_mut().for_each(|level| level.fill(0));
        self.close_ends();
    }

    /// Sets the bits past the end of each level.
    fn close_ends(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            if let Some(last) = level.last_mut().filter(|_| !bits.is_multiple_of(64)) {
                *last = u64::MAX << (bits % 64);
            }
            bits = level.len() as u64;
        }
    }

    /// Returns the word with the block's bit. Reading the words of many blocks first overlaps their
    /// cache misses.
    #[inline]
    pub fn word(&self, block: u64) -> u64 {
        self.levels[0][(block / 64) as usize]
    }

    /// Returns the first untouched block from this block on, wrapping at the end. `None` if all are
    /// touched.
    #[inline]
    pub fn free_from(&self, block: u64) -> Option<u64> {
        let free = !self.word(block) & (u64::MAX << (block % 64));
        if free != 0 {
            return Some(block / 64 * 64 + u64::from(free.trailing_zeros()));
        }
        self.search_from(block).or_else(|| self.search_from(0))
    }

    /// Touches up to `count` blocks from an untouched one, up to the next touched one. Returns
    /// their number.
    pub fn set_run(&mut self, first: u64, count: u64) -> u64 {
        let mut run = 0;
        while run < count {
            let block = first + run;
            let Some(word) = self.levels[0].get_mut((block / 64) as usize) else {
                break;
            };
            // Bits past the end are set, so a run ends at the end without a check.
            let free = u64::from((*word >> (block % 64)).trailing_zeros());
            let bits = free.min(64 - block % 64).min(count - run);
            if bits == 0 {
                break;
            }
            *word |= (u64::MAX >> (64 - bits)) << (block % 64);
            let is_full = *word == u64::MAX;
            assert!(bits <= self.free_blocks, "{bits} blocks are touched, and {} are untouched", self.free_blocks);
            self.free_blocks -= bits;
            run += bits;
            if is_full {
                self.fill_above(block / 64);
            }
        }
        run
    }

    /// Records in the levels above that a word of the lowest level is full.
    fn fill_above(&mut self, word: u64) {
        let mut bit = word;
        for level in &mut self.levels[1..] {
            let word = &mut level[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                return;
            }
            bit /= 64;
        }
    }

    /// Touches one untouched block.
    #[inline]
    pub fn set(&mut self, block: u64) {
        debug_assert!(self.is_free(block), "block {block} is touched already");
        self.free_blocks -= 1;
        let word = &mut self.levels[0][(block / 64) as usize];
        *word |= 1 << (block % 64);
        if *word == u64::MAX {
            self.fill_above(block / 64);
        }
    }

    fn is_free(&self, block: u64) -> bool {
        self.word(block) & (1 << (block % 64)) == 0
    }

    /// Like [`Self::free_from`] without wrapping.
    fn search_from(&self, block: u64) -> Option<u64> {
        let mut bit = block;
        for (height, level) in self.levels.iter().enumerate() {
            let word = *level.get((bit / 64) as usize)?;
            let free = !word & (u64::MAX << (bit % 64));
            if free != 0 {
                let found = bit / 64 * 64 + u64::from(free.trailing_zeros());
                let down = |at: u64, level: &Vec<u64>| at * 64 + u64::from((!level[at as usize]).trailing_zeros());
                return Some(self.levels[..height].iter().rev().fold(found, down));
            }
            bit = bit / 64 + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Taus88;
    use super::*;

    /// Naive version of the search rule.
    fn naive_free_from(touched: &[bool], block: usize) -> Option<u64> {
        (block..touched.len()).chain(0..touched.len()).find(|at| !touched[*at]).map(|at| at as u64)
    }

    #[test]
    fn finds_what_a_linear_search_finds() {
        for blocks in [1_usize, 5, 63, 64, 65, 4096, 4097, 10_000] {
            let mut map = RandomMap::new(blocks as u64);
            let mut touched = vec![false; blocks];
            let mut generator = Taus88::new(blocks as u64);
            for done in 0..blocks {
                let drawn = generator.between(0, blocks as u32 - 1) as usize;
                assert_eq!(map.free_blocks, (blocks - done) as u64);
                let found = map.free_from(drawn as u64);
                assert_eq!(found, naive_free_from(&touched, drawn), "{blocks} blocks, at {drawn}");
                map.set(found.unwrap());
                touched[found.unwrap() as usize] = true;
            }
            assert_eq!(map.free_from(0), None);
            map.reset();
            assert_eq!(map.free_from(blocks as u64 - 1), Some(blocks as u64 - 1));
        }
    }

    #[test]
    fn a_run_is_as_if_its_blocks_were_touched_one_by_one() {
        const BLOCKS: u64 = 10_001;
        let (mut together, mut one_by_one) = (RandomMap::new(BLOCKS), RandomMap::new(BLOCKS));
        let mut generator = Taus88::new(3);
        while let Some(first) = together.free_from(generator.between(0, BLOCKS as u32 - 1).into()) {
            let count = u64::from(generator.between(1, 300));
            let run = together.set_run(first, count);
            let is_free = |block: &u64| *block < BLOCKS && one_by_one.is_free(*block);
            assert_eq!(run, (first..first + count).take_while(is_free).count() as u64);
            (first..first + run).for_each(|block| one_by_one.set(block));
            assert_eq!(together.levels, one_by_one.levels);
            assert_eq!(together.free_blocks, one_by_one.free_blocks);
        }
        assert_eq!(together.free_blocks, 0);
    }

    #[test]
    fn a_map_takes_no_more_memory_than_it_says() {
        for blocks in [1, 63, 64, 65, 4097, 1 << 20, (1 << 20) + 1] {
            let words: usize = RandomMap::new(blocks).levels.iter().map(Vec::len).sum();
            assert!((words * 8) as u64 <= RandomMap::memory_bytes(blocks), "{blocks} blocks");
        }
    }

    #[test]
    fn a_run_stops_at_a_touched_block_and_at_the_end() {
        let mut map = RandomMap::new(200);
        map.set(100);
        assert_eq!(map.set_run(60, 64), 40);
        assert_eq!(map.set_run(190, 64), 10);
        assert_eq!(map.free_from(60), Some(101));
        assert_eq!(map.free_from(190), Some(0));
    }
}
