//! Random distributions for caches and databases: keys by rank (Zipf) and sizes by key (quantiles).
//!
//! Both are tables. Their construction gives the same result on every machine, and a draw needs no
//! floating point. The first thousand ranks have a range each. Later ranges grow by one percent,
//! and all ranks of a range are equally likely. Walker's alias method draws a range.
//!
//! On a scaled model with denominator d, each key stands for d neighbouring ranks of the
//! full drive. Any fraction of the keys therefore gets the same fraction of the operations.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use workload::random::below;

use workload::fio::power;

/// Number of ranks with a range of their own.
const SINGLE_RANKS: u64 = 1_000;
/// Number of ranks with weights summed one by one. The Euler-Maclaurin formula sums the rest.
const SUMMED_RANKS: u64 = 10_000;

pub(crate) struct RankDistribution {
    ranges: Vec<RankRange>,
}

#[derive(Debug, Clone, Copy, Default)]
struct RankRange {
    /// A draw of 2^32 below this value selects the range itself, a larger one its alias.
    threshold: u32,
    alias: u32,
    /// First rank, counted from 0.
    first: u64,
    ranks: u64,
}

impl RankDistribution {
    /// Builds ranks 0..`keys`. Each stands for `merged` ranks with weights rank^-alpha.
    pub(crate) fn new(keys: u64, merged: u64, alpha: f64) -> RankDistribution {
        let mut ranges = Vec::new();
        let mut first = 0;
        while first < keys {
            let ranks = if first < SINGLE_RANKS { 1 } else { (first / 100).min(keys - first) };
            ranges.push(RankRange { first, ranks, ..RankRange::default() });
            first += ranks;
        }
        let sums = ZipfSums::new(alpha);
        let weights: Vec<f64> = ranges
            .iter()
            .map(|range| sums.up_to((range.first + range.ranks) * merged) - sums.up_to(range.first * merged))
            .collect();
        make_aliases(&mut ranges, &weights);
        RankDistribution { ranges }
    }

    /// Draws a rank. Rank 0 is the most popular.
    #[inline]
    pub(crate) fn draw(&self, random: &mut Xoshiro256PlusPlus) -> u64 {
        let bits = random.next_u64();
        let range = &self.ranges[(((bits >> 32) * self.ranges.len() as u64) >> 32) as usize];
        let range = if (bits as u32) < range.threshold { range } else { &self.ranges[range.alias as usize] };
        range.first + below(random, range.ranks)
    }
}

/// Partial sums of rank^-alpha.
struct ZipfSums {
    alpha: f64,
    /// Sums, indexed by number of ranks.
    sums: Vec<f64>,
}

impl ZipfSums {
    fn new(alpha: f64) -> ZipfSums {
        let mut sum = 0.0;
        let mut sums = vec![0.0];
        for rank in 1..=SUMMED_RANKS {
            sum += power::pow(rank as f64, -alpha);
            sums.push(sum);
        }
        ZipfSums { alpha, sums }
    }

    fn up_to(&self, ranks: u64) -> f64 {
        if ranks <= SUMMED_RANKS {
            return self.sums[ranks as usize];
        }
        let (from, to) = (SUMMED_RANKS as f64, ranks as f64);
        let beyond = 1.0 - self.alpha;
        let integral = if beyond.abs() < 1e-9 {
            power::ln(to / from)
        } else {
            (power::pow(to, beyond) - power::pow(from, beyond)) / beyond
        };
        let ends = (power::pow(to, -self.alpha) - power::pow(from, -self.alpha)) / 2.0;
        self.sums[SUMMED_RANKS as usize] + integral + ends
    }
}

/// Builds the alias table with Vose's algorithm: each range above the average fills one below it.
fn make_aliases(ranges: &mut [RankRange], weights: &[f64]) {
    let total: f64 = weights.iter().sum();
    let mut shares: Vec<f64> = weights.iter().map(|weight| weight / total * ranges.len() as f64).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) = (0..ranges.len()).partition(|at| shares[*at] < 1.0);
    while let (Some(poor), Some(rich)) = (small.pop(), large.last().copied()) {
        ranges[poor].threshold = (shares[poor] * 4_294_967_296.0) as u32;
        ranges[poor].alias = rich as u32;
        shares[rich] -= 1.0 - shares[poor];
        if shares[rich] < 1.0 {
            large.pop();
            small.push(rich);
        }
    }
    // The remaining ranges have their exact share, apart from rounding.
    for at in small.into_iter().chain(large) {
        ranges[at].threshold = u32::MAX;
        ranges[at].alias = at as u32;
    }
}

/// Cells of the size table.
const SIZE_CELLS: u64 = 1 << 14;

/// Size distribution by quantile.
pub(crate) struct SizeDistribution {
    /// Bounds of the cells, bytes.
    bounds: Vec<u32>,
}

impl SizeDistribution {
    /// Builds the table from pairs of percent and bytes in ascending order, from 0 to 100 percent.
    /// Sizes are log-uniform between two quantiles.
    pub(crate) fn new(quantiles: &[(f64, u32)]) -> SizeDistribution {
        let at = |cell: u64| {
            let percent = cell as f64 * 100.0 / SIZE_CELLS as f64;
            let above = quantiles.iter().position(|(bound, _)| *bound >= percent);
            let above = above.expect("the last quantile is at 100 percent").max(1);
            let ((low_percent, low), (high_percent, high)) = (quantiles[above - 1], quantiles[above]);
            let part = (percent - low_percent) / (high_percent - low_percent);
            let (low, high) = (f64::from(low), f64::from(high));
            (low * power::pow(high / low, part) + 0.5) as u32
        };
        SizeDistribution { bounds: (0..=SIZE_CELLS).map(at).collect() }
    }

    /// Size for 32 random bits.
    #[inline]
    pub(crate) fn size(&self, bits: u32) -> u32 {
        let scaled = u64::from(bits) * SIZE_CELLS;
        let cell = (scaled >> 32) as usize;
        let (low, high) = (self.bounds[cell], self.bounds[cell + 1]);
        low + ((u64::from(high - low) * (scaled & 0xffff_ffff)) >> 32) as u32
    }

    pub(crate) fn mean(&self) -> f64 {
        let pairs = self.bounds.windows(2);
        pairs.map(|pair| (f64::from(pair[0]) + f64::from(pair[1])) / 2.0).sum::<f64>() / SIZE_CELLS as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    /// Fraction of 1 M draws that are below `ranks`.
    fn draws_below(popularity: &RankDistribution, ranks: u64) -> f64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        (0..1_000_000).filter(|_| popularity.draw(&mut random) < ranks).count() as f64 / 1e6
    }

    #[test]
    fn ranks_are_zipfs() {
        for alpha in [0.3, 0.9, 1.0, 1.3] {
            let popularity = RankDistribution::new(200_000, 1, alpha);
            let weights: Vec<f64> = (1..=200_000).map(|rank| f64::from(rank).powf(-alpha)).collect();
            let total: f64 = weights.iter().sum();
            for ranks in [1_u64, 10, 1_000, 30_000, 199_000] {
                let expected = weights[..ranks as usize].iter().sum::<f64>() / total;
                let drawn = draws_below(&popularity, ranks);
                assert!((drawn - expected).abs() < 0.002, "alpha {alpha}, first {ranks}: {drawn}, not {expected}");
            }
        }
    }

    #[test]
    fn a_key_of_a_scaled_model_is_as_popular_as_the_keys_it_stands_for() {
        let (full, model) = (RankDistribution::new(64_000_000, 1, 0.9), RankDistribution::new(1_000_000, 64, 0.9));
        for share in [1_000, 100, 10, 2] {
            let (full, model) = (draws_below(&full, 64_000_000 / share), draws_below(&model, 1_000_000 / share));
            assert!((full - model).abs() < 0.002, "first 1/{share}: {full} and {model}");
        }
    }

    #[test]
    fn sizes_have_their_quantiles() {
        let quantiles = [(0.0, 50), (50.0, 100), (90.0, 1_000), (100.0, 500_000)];
        let sizes = SizeDistribution::new(&quantiles);
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut drawn: Vec<u32> = (0..200_000).map(|_| sizes.size(random.next_u64() as u32)).collect();
        drawn.sort_unstable();
        for (percent, bytes) in &quantiles[1..3] {
            let found = f64::from(drawn[(percent * 2_000.0) as usize]);
            assert!((found / f64::from(*bytes) - 1.0).abs() < 0.03, "{percent}: {found}");
        }
        assert!(drawn[0] >= 50 && drawn[199_999] <= 500_000);
        // Log-uniform between two quantiles: mean (b - a) / ln(b / a).
        let part = |share: f64, low: f64, high: f64| share * (high - low) / (high / low).ln();
        let expected = part(0.5, 50.0, 100.0) + part(0.4, 100.0, 1_000.0) + part(0.1, 1_000.0, 500_000.0);
        assert!((sizes.mean() / expected - 1.0).abs() < 1e-3, "{} {expected}", sizes.mean());
        let mean = drawn.iter().map(|size| f64::from(*size)).sum::<f64>() / 2e5;
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} {expected}");
    }
}
