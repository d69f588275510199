//! Naive reference model of a device, and the machinery that runs it in lockstep with the real one.
//!
//! ```text
//! Entropy (a seed, or a fuzzer's bytes) -> generate: configuration -> workload: operations
//!                                                     |                      |
//!                                                     +-> lockstep: Device and Reference,
//!                                                         compared after each operation
//! ```
//!
//! [`model`] is the reference, written from the documented behaviour. It has a vector for the map,
//! a scan for every count and no derived state. It shares the configuration, the derived
//! [`ssd::DeviceLayout`], the counters' types and the random generator with the device, because
//! those define the task. The implementation is independent. [`collection`] is its garbage
//! collection and [`selection`] its two decisions.
//!
//! It does not test timing, snapshots or speed. It does not check that `DeviceLayout` derives the
//! right watermarks, only that a device never fails with the layouts it accepts.

pub mod collection;
pub mod generate;
pub mod lockstep;
pub mod model;
pub mod selection;
pub mod workload;

/// Source of choices: a seeded generator, or the bytes of a fuzzer.
pub trait Entropy {
    /// Number below `limit`, which is at least 1.
    fn below(&mut self, limit: u64) -> u64;

    /// Returns true if the source has no more choices.
    fn exhausted(&self) -> bool {
        false
    }

    /// Number of a range, both ends included.
    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// Returns true in `percent` of a hundred cases.
    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of several values.
    fn pick<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// Share from 0 to 1 in steps of a thousandth.
    fn share(&mut self) -> f64 {
        self.below(1001) as f64 / 1000.0
    }
}

/// Seeded random generator.
pub struct Seeded(pub rand_xoshiro::Xoshiro256PlusPlus);

impl Seeded {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Seeded {
        Seeded(rand_xoshiro::rand_core::SeedableRng::seed_from_u64(seed))
    }
}

impl Entropy for Seeded {
    fn below(&mut self, limit: u64) -> u64 {
        let random = rand_xoshiro::rand_core::Rng::next_u64(&mut self.0);
        ((u128::from(random) * u128::from(limit)) >> 64) as u64
    }
}
