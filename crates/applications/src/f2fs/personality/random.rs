//! Random numbers for personalities, without system math functions, so that all machines draw the
//! same.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub struct PersonalityRng(Xoshiro256PlusPlus);

impl PersonalityRng {
    pub fn new(seed: u64) -> PersonalityRng {
        PersonalityRng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Draws uniformly from 0 to `bound` - 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        workload::random::below(&mut self.0, bound)
    }

    /// Draws uniformly from 0 to 1.
    pub fn fraction(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Draws approximately from a normal distribution (mean 0, variance 1), as the sum of twelve
    /// uniform numbers minus 6.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.fraction()).sum::<f64>() - 6.0
    }

    /// Draws from a gamma distribution with mean 1 and shape `half_shapes` / 2, as the mean of
    /// `half_shapes` squared normal numbers. Shape 1 is the exponential distribution.
    pub fn gamma(&mut self, half_shapes: u32) -> f64 {
        let squares: f64 = (0..half_shapes).map(|_| self.normal()).map(|normal| normal * normal).sum();
        squares / f64::from(half_shapes)
    }

    pub fn shuffle(&mut self, list: &mut [u32]) {
        for last in (1..list.len()).rev() {
            list.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_has_its_mean_and_variance() {
        for half_shapes in [2, 3, 8] {
            let mut random = PersonalityRng::new(11);
            let drawn: Vec<f64> = (0..200_000).map(|_| random.gamma(half_shapes)).collect();
            let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
            let variance = drawn.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / drawn.len() as f64;
            assert!((mean - 1.0).abs() < 0.01, "mean {mean} of {half_shapes}, seed 11");
            let expected = 2.0 / f64::from(half_shapes);
            assert!((variance / expected - 1.0).abs() < 0.06, "variance {variance} of {half_shapes}, seed 11");
        }
    }
}
