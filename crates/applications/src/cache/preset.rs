//! Statistics of published workloads, so that a generator can replace large trace downloads.
//!
//! Sources of the numbers:
//!
//! - "Read-through working sets: the Meta/CacheLib traces" gives measurements over all lines of
//!   Meta's traces in CacheLib's public bucket. Trace kvcache/202206 has 18.0 M keys, 24.9 GiB,
//!   1485 bytes a key and quantiles of the sizes. 23 percent of its gets have size 0. It has 83
//!   gets to 17 sets with repetitions. Its `config_kvcache.json` has `ampFactor` 100, 43000 MB of
//!   DRAM and no lookaside.
//! - CacheLib docs, "Evaluating SSD hardware for Facebook workloads", gives the DRAM of a host.
//!   Cachebench's test_configs/hit_ratio/cdn gives sizes.
//! - github.com/twitter/cache-trace, stat/2020Mar.md gives sizes, mixes and Zipf's alpha by
//!   cluster.
//! - WARP, Table 1 (R:W) and section 3.3.
//!
//! R:W in WARP's Table 1 is not the ratio of gets to sets. The CDN trace has no sets and gets
//! 1:1.4. Cluster 12 has 1:4 and gets 1:8. The ratio matches the drive's I/O, because the cache
//! reads a bucket before it rewrites it.

use serde::{Deserialize, Serialize};

use workload::{WorkloadError, within};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// Meta's key-value cache, June 2022.
    ///
    /// Sizes come from the trace. Working set and DRAM are the published ones (100 times the keys,
    /// 43000 MB) on a drive of 7.68 TB, and scale with the drive.
    ///
    /// The other numbers were fitted once for all SOC shares. The fit covers the six cells of
    /// WARP's Table 2 and the hit ratios of its Fig. 8. It set `zipf_alpha`, `absent_get_percent`,
    /// `set_percent`, `large_set_weight` and the set after each miss. `set_percent` omits sets that
    /// repeat the operation before, because DRAM absorbs them.
    #[serde(rename = "kvcache_202206")]
    Kvcache202206,
    /// Sets of Meta's key-value cache, October 2022, without gets as in WARP. Sizes come from the
    /// trace. Popularity and working set are those of June 2022.
    #[serde(rename = "kvcache_202210")]
    Kvcache202210,
    /// Sets of Meta's key-value cache, January 2024, without gets as in WARP. Sizes come from the
    /// trace. Popularity and working set are those of June 2022.
    #[serde(rename = "kvcache_202401")]
    Kvcache202401,
    /// Gets of Meta's content delivery network, with a set after each miss. Sizes come from
    /// cachebench. DRAM is that of a host of cdn/202504 (105 to 3577 GB). Popularity and working
    /// set are assumptions: a third or more of the gets miss DRAM and flash.
    Cdn,
    /// Twitter's cluster 12, computed values with few reads. Mix, alpha and the mean of key plus
    /// value (1030 bytes) come from the statistics. The spread of sizes is an assumption. 79 of 100
    /// requests ask for new keys, so the working set is large.
    Twitter12,
    /// Twitter's cluster 37, large values. Mix, alpha and the mean of key plus value (20134 bytes)
    /// come from the statistics. Spread of sizes and working set are assumptions.
    Twitter37,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadStatistics {
    /// Gets among the operations, percent.
    pub get_percent: f64,
    /// Sets among the operations, percent. Deletes are the rest.
    pub set_percent: f64,
    /// Gets of keys that are never stored, percent of the gets.
    pub absent_get_percent: f64,
    /// True if a set follows each get that misses an existing key.
    pub lookaside: bool,
    /// Exponent of the popularity r^-alpha of the key with rank r.
    pub zipf_alpha: f64,
    /// Bytes of all keys and values, percent of the drive's capacity.
    pub working_set_percent: f64,
    /// Relative frequency of sets of a large key. A small key of the same popularity (up to 2 KiB
    /// with its value) has 1.
    pub large_set_weight: f64,
    /// Mean length of a key, bytes.
    pub key_bytes: u32,
    /// Sizes of values as pairs of percent of the keys and bytes, log-uniform in between.
    pub value_quantiles: Vec<(f64, u32)>,
    /// DRAM of the cache, percent of the drive's capacity.
    pub dram_percent: f64,
}

/// Values that replace those of a preset. See [`WorkloadStatistics`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatisticsSettings {
    pub get_percent: Option<f64>,
    pub set_percent: Option<f64>,
    pub absent_get_percent: Option<f64>,
    pub zipf_alpha: Option<f64>,
    pub working_set_percent: Option<f64>,
    pub large_set_weight: Option<f64>,
    pub key_bytes: Option<u32>,
    pub value_quantiles: Option<Vec<(f64, u32)>>,
}

impl StatisticsSettings {
    /// Statistics of the preset, with these values in place of its own.
    pub(crate) fn over(&self, preset: Preset, lookaside: Option<bool>) -> WorkloadStatistics {
        let preset = preset.statistics();
        WorkloadStatistics {
            get_percent: self.get_percent.unwrap_or(preset.get_percent),
            set_percent: self.set_percent.unwrap_or(preset.set_percent),
            absent_get_percent: self.absent_get_percent.unwrap_or(preset.absent_get_percent),
            lookaside: lookaside.unwrap_or(preset.lookaside),
            zipf_alpha: self.zipf_alpha.unwrap_or(preset.zipf_alpha),
            working_set_percent: self.working_set_percent.unwrap_or(preset.working_set_percent),
            large_set_weight: self.large_set_weight.unwrap_or(preset.large_set_weight),
            key_bytes: self.key_bytes.unwrap_or(preset.key_bytes),
            value_quantiles: self.value_quantiles.clone().unwrap_or(preset.value_quantiles),
            dram_percent: preset.dram_percent,
        }
    }
}

impl WorkloadStatistics {
    pub(crate) fn check(&self) -> Result<(), WorkloadError> {
        let name = |name: &str| format!("statistics.{name}");
        within(&name("get_percent"), self.get_percent, 0.0..=100.0)?;
        within(&name("set_percent"), self.set_percent, 0.0..=100.0)?;
        let both = self.get_percent + self.set_percent;
        within(&name("get_percent + set_percent"), both, 1e-3..=100.0 + 1e-9)?;
        within(&name("absent_get_percent"), self.absent_get_percent, 0.0..=100.0)?;
        within(&name("zipf_alpha"), self.zipf_alpha, 0.0..=4.0)?;
        within(&name("working_set_percent"), self.working_set_percent, 1e-6..=1e6)?;
        within(&name("large_set_weight"), self.large_set_weight, 1e-3..=1e3)?;
        within(&name("key_bytes"), self.key_bytes, 1..=256)?;
        check_quantiles(&name("value_quantiles"), &self.value_quantiles, (1 << 30, "1 GiB"), "bytes")
    }
}

/// Checks quantiles for [`crate::distribution::SizeDistribution`].
pub(crate) fn check_quantiles(
    name: &str,
    quantiles: &[(f64, u32)],
    (most, shown_most): (u32, &str),
    unit: &str,
) -> Result<(), WorkloadError> {
    let rises = |pair: &[(f64, u32)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
    let ends =
        quantiles.first().map(|first| first.0) == Some(0.0) && quantiles.last().map(|last| last.0) == Some(100.0);
    let possible = quantiles.iter().all(|(_, value)| (1..=most).contains(value));
    if ends && possible && quantiles.len() >= 2 && quantiles.windows(2).all(rises) {
        return Ok(());
    }
    let problem = format!(
        "must be pairs of percent and {unit} that rise from 0 to 100 percent, with {unit} from 1 to \
                 {shown_most}"
    );
    Err(WorkloadError::setting(name, problem))
}

impl Preset {
    pub fn statistics(self) -> WorkloadStatistics {
        match self {
            Preset::Kvcache202206 => kvcache_202206(),
            Preset::Kvcache202210 => kvcache_202210(),
            Preset::Kvcache202401 => kvcache_202401(),
            Preset::Cdn => cdn(),
            Preset::Twitter12 => twitter_12(),
            Preset::Twitter37 => twitter_37(),
        }
    }
}

fn kvcache_202206() -> WorkloadStatistics {
    WorkloadStatistics {
        get_percent: 94.7,
        set_percent: 5.0,
        absent_get_percent: 17.0,
        lookaside: true,
        zipf_alpha: 0.6,
        working_set_percent: 34.8,
        large_set_weight: 2.2,
        key_bytes: 60,
        value_quantiles: vec![
            (0.0, 63),
            (1.0, 74),
            (25.0, 104),
            (50.0, 132),
            (75.0, 169),
            (90.0, 394),
            (95.0, 759),
            (99.0, 10_606),
            (99.5, 23_500),
            (99.9, 480_563),
            (100.0, 523_288),
        ],
        dram_percent: 0.587,
    }
}

fn kvcache_202210() -> WorkloadStatistics {
    WorkloadStatistics {
        get_percent: 0.0,
        set_percent: 100.0,
        value_quantiles: vec![
            (0.0, 8),
            (25.0, 8),
            (50.0, 29),
            (75.0, 69),
            (90.0, 328),
            (95.0, 1_031),
            (99.0, 12_143),
            (99.5, 45_000),
            (99.9, 523_287),
            (100.0, 523_288),
        ],
        ..kvcache_202206()
    }
}

fn kvcache_202401() -> WorkloadStatistics {
    WorkloadStatistics {
        get_percent: 0.0,
        set_percent: 100.0,
        value_quantiles: vec![
            (0.0, 8),
            (25.0, 9),
            (50.0, 25),
            (75.0, 67),
            (90.0, 585),
            (95.0, 2_582),
            (99.0, 12_305),
            (99.5, 14_000),
            (99.9, 420_582),
            (100.0, 523_288),
        ],
        ..kvcache_202206()
    }
}

fn cdn() -> WorkloadStatistics {
    WorkloadStatistics {
        get_percent: 100.0,
        set_percent: 0.0,
        absent_get_percent: 0.0,
        zipf_alpha: 0.8,
        working_set_percent: 400.0,
        large_set_weight: 1.0,
        key_bytes: 30,
        value_quantiles: vec![
            (0.0, 127),
            (19.0, 191),
            (21.0, 2_048),
            (25.0, 2_815),
            (50.0, 13_375),
            (75.0, 41_375),
            (90.0, 77_663),
            (95.0, 118_527),
            (99.0, 274_271),
            (100.0, 523_288),
        ],
        dram_percent: 2.9,
        ..kvcache_202206()
    }
}

fn twitter_12() -> WorkloadStatistics {
    WorkloadStatistics {
        get_percent: 20.0,
        set_percent: 80.0,
        absent_get_percent: 0.0,
        lookaside: false,
        zipf_alpha: 0.3048,
        working_set_percent: 1_000.0,
        large_set_weight: 1.0,
        key_bytes: 44,
        value_quantiles: vec![(0.0, 400), (50.0, 970), (100.0, 1_980)],
        ..kvcache_202206()
    }
}

fn twitter_37() -> WorkloadStatistics {
    WorkloadStatistics {
        get_percent: 63.0,
        set_percent: 37.0,
        absent_get_percent: 0.0,
        lookaside: false,
        zipf_alpha: 0.4251,
        working_set_percent: 400.0,
        large_set_weight: 1.0,
        key_bytes: 72,
        value_quantiles: vec![(0.0, 1_000), (50.0, 11_500), (90.0, 44_000), (100.0, 145_000)],
        ..kvcache_202206()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::SizeDistribution;

    #[test]
    fn values_have_the_published_means() {
        // Published mean in bytes, and tolerance in percent.
        let means = [
            (Preset::Kvcache202206, 1_485.0, 3.0),
            (Preset::Kvcache202210, 1_684.0, 3.0),
            (Preset::Kvcache202401, 1_376.0, 3.0),
            (Preset::Cdn, 33_041.0, 10.0),
            (Preset::Twitter12, 1_030.0, 3.0),
            (Preset::Twitter37, 20_134.0, 3.0),
        ];
        for (preset, published, percent) in means {
            let mean = SizeDistribution::new(&preset.statistics().value_quantiles).mean();
            let off = (mean / published - 1.0) * 100.0;
            assert!(off.abs() < percent, "{preset:?}: {mean}, published {published}");
        }
    }
}
