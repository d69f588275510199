//! Skewed block distributions with fio's own formulas: zipf, pareto, normal, zoned, zoned_abs.
//!
//! [`Skew`] draws block numbers in 0..n from its own generator (zipf, pareto, normal).
//! [`ZoneTable`] chooses the part of the region for the next uniform draw (zoned, zoned_abs).
//! Uniform distributions need neither. Formulas and quirks are those of fio's `lib/zipf.c`,
//! `lib/gauss.c` and `zone-dist.c`. Examples are a hash that is no permutation modulo n and a sum
//! capped at ten million terms.
//!
//! This module does not know bytes, regions or requests (see `stream`).

use std::sync::{Arc, Mutex, OnceLock};

use serde::{Deserialize, Serialize};

use super::power::{ln, pow};
use super::random::{Taus88, hash_u64};

/// Number of terms after which fio stops summing the zeta function.
const MAX_ZETA_TERMS: u64 = 10_000_000;

/// Draws that fio averages for a normal distribution.
const NORMAL_DRAWS: u64 = 12;

/// The parameters of a skewed distribution (`random_distribution=`).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkewKind {
    /// `zipf:theta`
    Zipf(f64),
    /// `pareto:h`
    Pareto(f64),
    /// `normal:deviation`, in percent of the blocks
    Normal(f64),
}

/// A source of skewed block numbers.
#[derive(Debug, Clone)]
pub struct Skew {
    generator: Taus88,
    /// Blocks that ranks are drawn from.
    blocks: u64,
    /// Blocks that ranks are mapped to. Smaller than `blocks` on a scaled model, else equal.
    landing_blocks: u64,
    offset: u64,
    formula: Formula,
}

#[derive(Debug, Clone)]
enum Formula {
    Zipf { zeta_n: f64, second: f64, eta: f64, alpha: f64 },
    Pareto { power: f64 },
    Normal { deviation: u32 },
}

impl Skew {
    /// Creates a distribution over `blocks` blocks. `center` (0..=1) moves the hottest block.
    /// Without it, fio chooses a random position.
    pub fn new(kind: SkewKind, blocks: u64, center: Option<f64>, seed: u64) -> Self {
        assert!(blocks > 0, "a distribution needs at least one block");
        let mut generator = Taus88::new(seed);
        let n = blocks as f64;
        let (formula, offset) = match kind {
            SkewKind::Normal(deviation_percent) => {
                // fio keeps the offset in 32 bits.
                let offset = center.map_or(0, |center| u64::from((n * (center - 0.5)) as i64 as u32));
                let deviation = (n * deviation_percent / 100.0).ceil() as u32;
                (Formula::Normal { deviation: u64::from(deviation).min(blocks / 2) as u32 }, offset)
            }
            SkewKind::Zipf(theta) => {
                let first = generator.next();
                (Self::zipf(theta, blocks), center.map_or(u64::from(first), |center| (n * center) as u64))
            }
            SkewKind::Pareto(h) => {
                let first = generator.next();
                let formula = Formula::Pareto { power: ln(h) / ln(1.0 - h) };
                (formula, center.map_or(u64::from(first), |center| (n * center) as u64))
            }
        };
        Self { generator, blocks, landing_blocks: blocks, offset, formula }
    }

    /// Maps the distribution to a scaled model with fewer blocks. Each block stands for the largest
    /// possible number of neighbouring ranks, before the hash scatters them. After any number of
    /// drive writes, the touched share of blocks then equals that of the full drive. Mapping the
    /// scattered blocks instead would touch more (twice the share for theta 1.2 at 1/64).
    pub fn on_scaled_model(mut self, landing_blocks: u64) -> Self {
        assert!(landing_blocks > 0, "a distribution needs at least one block");
        self.landing_blocks = landing_blocks;
        self
    }

    fn zipf(theta: f64, blocks: u64) -> Formula {
        let zeta_n = zeta(zeta_terms(blocks), theta);
        assert!(zeta_n >= 1.0, "the first block is drawn with some probability");
        let second = 1.0 + pow(0.5, theta);
        let eta = (1.0 - pow(2.0 / blocks as f64, 1.0 - theta)) / (1.0 - second / zeta_n);
        Formula::Zipf { zeta_n, second, eta, alpha: 1.0 / (1.0 - theta) }
    }

    /// Draws the next block number, in 0..blocks (of the scaled model, if any).
    #[inline]
    pub fn next(&mut self) -> u64 {
        let blocks = self.blocks;
        let rank = match self.formula {
            Formula::Zipf { zeta_n, second, eta, alpha } => {
                let u = f64::from(self.generator.next()) / f64::from(u32::MAX);
                let z = u * zeta_n;
                if z < 1.0 {
                    0
                } else if z < second {
                    1
                } else {
                    (blocks as f64 * pow(eta * u - eta + 1.0, alpha)) as u64
                }
            }
            Formula::Pareto { power } => {
                let u = f64::from(self.generator.next()) / f64::from(u32::MAX);
                ((blocks - 1) as f64 * pow(u, power)) as u64
            }
            Formula::Normal { deviation } => self.next_normal(deviation),
        };
        let rank = if self.landing_blocks == blocks {
            rank
        } else {
            (rank as f64 * self.landing_blocks as f64 / blocks as f64) as u64
        };
        hash_u64(rank).wrapping_add(self.offset) % self.landing_blocks
    }

    fn next_normal(&mut self, deviation: u32) -> u64 {
        let sum: u64 = (0..NORMAL_DRAWS).map(|_| u64::from(self.generator.next()) % (self.blocks + 1)).sum();
        let mean = sum.div_ceil(NORMAL_DRAWS);
        if deviation == 0 {
            return mean;
        }
        let spread = (f64::from(deviation) * self.generator.next_fraction()) as i32;
        let mut shift = spread.wrapping_sub((deviation / 2) as i32);
        while mean.wrapping_add(i64::from(shift) as u64) >= self.blocks && shift != 0 {
            shift /= 2;
        }
        mean.wrapping_add(i64::from(shift) as u64)
    }
}

/// Terms of the zeta function that a zipf distribution over `blocks` blocks sums.
pub(super) fn zeta_terms(blocks: u64) -> u64 {
    blocks.min(MAX_ZETA_TERMS)
}

/// Sum of i^-theta for i = 1..=terms, in fio's order. Ten million terms take a fraction of a
/// second, so recent results are cached.
fn zeta(terms: u64, theta: f64) -> f64 {
    /// Maximum cached sums.
    const KNOWN_MAX: usize = 1024;
    type Known = Vec<((u64, u64), Arc<OnceLock<f64>>)>;
    static KNOWN: Mutex<Known> = Mutex::new(Vec::new());
    let key = (terms, theta.to_bits());
    let sum = {
        let mut known = KNOWN.lock().expect("nothing panics while the lock is held");
        match known.iter().find(|(other, _)| *other == key) {
            Some((_, sum)) => Arc::clone(sum),
            None => {
                if known.len() == KNOWN_MAX {
                    known.remove(0);
                }
                known.push((key, Arc::default()));
                assert!(known.len() <= KNOWN_MAX, "{} sums are cached, at most {KNOWN_MAX}", known.len());
                Arc::clone(&known.last().expect("it was pushed").1)
            }
        }
    };
    // Threads that need the same sum wait for it. Threads that need another sum do not.
    *sum.get_or_init(|| (1..=terms).fold(0.0, |sum, i| sum + pow(1.0 / i as f64, theta)))
}

/// One zone of `random_distribution=zoned:` (sizes in percent) or `zoned_abs:` (sizes in bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessZone {
    /// Share of the accesses, percent.
    pub access_percent: u32,
    /// Share of the region in percent (`zoned`), or bytes (`zoned_abs`).
    pub size: u64,
}

/// Maps each percent of the accesses to the first block and number of blocks of its zone.
#[derive(Debug, Clone)]
pub struct ZoneTable {
    zones: Vec<(u64, u64)>,
}

impl ZoneTable {
    /// Zones in percent of `blocks` blocks (fio's `zoned`).
    pub fn from_percents(zones: &[AccessZone], blocks: u64) -> Self {
        let share = |percent: u64| percent * blocks / 100;
        Self::new(zones, |before, size| (share(before), share(size)))
    }

    /// Zones in bytes (fio's `zoned_abs`).
    pub fn from_bytes(zones: &[AccessZone], block_bytes: u64) -> Self {
        Self::new(zones, |before, size| (before / block_bytes, (before + size) / block_bytes - before / block_bytes))
    }

    /// Builds the table. `blocks_of` converts the total size before a zone and its own size into
    /// blocks.
    fn new(zones: &[AccessZone], blocks_of: impl Fn(u64, u64) -> (u64, u64)) -> Self {
        let mut table = Vec::with_capacity(100);
        let mut before = 0;
        for zone in zones {
            table.extend(std::iter::repeat_n(blocks_of(before, zone.size), zone.access_percent as usize));
            before += zone.size;
        }
        assert_eq!(table.len(), 100, "access percentages are checked when the job file is read");
        Self { zones: table }
    }

    /// Draws the zone of the next access. Returns its first block and number of blocks.
    #[inline]
    pub fn next(&self, generator: &mut Taus88) -> (u64, u64) {
        self.zones[generator.between(1, 100) as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(kind: SkewKind, count: usize) -> Vec<u64> {
        let mut skew = Skew::new(kind, 1_000_000, None, 1234);
        (0..count).map(|_| skew.next()).collect()
    }

    #[test]
    fn zipf_draws_what_fio_draws() {
        let drawn = first(SkewKind::Zipf(1.2), 8);
        assert_eq!(drawn, [779143, 3489, 92697, 607504, 260074, 906943, 906943, 523268]);
        let drawn = first(SkewKind::Zipf(2.2), 8);
        assert_eq!(drawn, [260074, 445828, 906943, 260074, 906943, 906943, 906943, 613205]);
        assert!((zeta(1_000_000, 1.2) - 5.276_103_800_485).abs() < 1e-12);
        assert!((zeta(1_000_000, 2.2) - 1.490_543_203_927).abs() < 1e-12);
    }

    #[test]
    fn pareto_and_normal_draw_what_fio_draws() {
        let drawn = first(SkewKind::Pareto(0.2), 8);
        assert_eq!(drawn, [244081, 97749, 750085, 726251, 940874, 906943, 260074, 393421]);
        let drawn = first(SkewKind::Normal(10.0), 6);
        assert_eq!(drawn, [556934, 320381, 387894, 486891, 753593, 962233]);
    }

    #[test]
    fn zipf_is_as_skewed_as_fio_is() {
        // Measured with fio. Of a million blocks, the hottest gets 67.1 % of the accesses at theta
        // 2.2 and 18.9 % at 1.2.
        for (theta, expected) in [(2.2, 0.671), (1.2, 0.189)] {
            let mut skew = Skew::new(SkewKind::Zipf(theta), 1_000_000, None, 1);
            let mut hits = std::collections::HashMap::new();
            let draws = 400_000;
            for _ in 0..draws {
                *hits.entry(skew.next()).or_insert(0_u32) += 1;
            }
            let hottest = f64::from(*hits.values().max().unwrap()) / f64::from(draws);
            assert!((hottest - expected).abs() < 0.005, "theta {theta}: hottest block {hottest}");
        }
    }

    #[test]
    fn center_moves_the_hottest_block() {
        let mut skew = Skew::new(SkewKind::Zipf(2.2), 1000, Some(0.25), 1);
        let draws: Vec<u64> = (0..1000).map(|_| skew.next()).collect();
        let at_center = draws.iter().filter(|block| **block == 250).count();
        assert!((600..740).contains(&at_center), "{at_center} of 1000 draws at the centre");
    }

    #[test]
    fn every_kind_stays_inside_a_region_of_any_size() {
        for kind in [SkewKind::Zipf(0.9), SkewKind::Zipf(2.5), SkewKind::Pareto(0.3), SkewKind::Normal(99.0)] {
            for blocks in [1, 2, 3, 7, 1000] {
                let mut skew = Skew::new(kind, blocks, None, 99);
                assert!((0..2000).all(|_| skew.next() < blocks), "{kind:?} over {blocks} blocks");
            }
        }
    }

    #[test]
    fn zones_get_their_shares() {
        let zones = [AccessZone { access_percent: 80, size: 20 }, AccessZone { access_percent: 20, size: 80 }];
        let table = ZoneTable::from_percents(&zones, 1000);
        let mut generator = Taus88::new(7);
        let draws = 100_000;
        let hot = (0..draws).filter(|_| table.next(&mut generator) == (0, 200)).count();
        assert!((79_000..81_000).contains(&hot), "{hot} of {draws} in the hot zone");
        assert!((0..1000).all(|_| [(0, 200), (200, 800)].contains(&table.next(&mut generator))));
    }

    #[test]
    fn zones_in_bytes_follow_each_other() {
        let zones = [AccessZone { access_percent: 60, size: 8192 }, AccessZone { access_percent: 40, size: 12288 }];
        let table = ZoneTable::from_bytes(&zones, 4096);
        assert_eq!([table.zones[59], table.zones[60]], [(0, 2), (2, 3)]);
    }
}
