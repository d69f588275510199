//! Sources of random choices, which are a seeded generator or the bytes of a fuzzer.

/// Makes decisions.
pub trait Entropy {
    /// A number below `limit`, which is at least 1.
    fn below(&mut self, limit: u64) -> u64;

    /// True at the end of the source. All later choices are the first option.
    fn exhausted(&self) -> bool;

    /// A number of a range, both ends included.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// True in `percent` of a hundred cases.
    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several values.
    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }
}

/// The generator of a seed.
pub struct Seeded(rand_xoshiro::Xoshiro256PlusPlus);

impl Seeded {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Seeded {
        Seeded(rand_xoshiro::rand_core::SeedableRng::seed_from_u64(seed))
    }
}

impl Entropy for Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        let random = rand_xoshiro::rand_core::Rng::next_u64(&mut self.0);
        ((u128::from(random) * u128::from(limit)) >> 64) as u64
    }

    fn exhausted(&self) -> bool {
        false
    }
}
