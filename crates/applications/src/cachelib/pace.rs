//! How fast the cache is asked in virtual time, and how much it keeps in flight.

use serde::{Deserialize, Serialize};

use workload::{WorkloadError, within};

/// `[workload.pace]`: in virtual time the cache is asked at a rate, has threads, and gives up inserts when too much is in flight. Defaults are
/// CacheLib's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Cache operations in a second, on a twin too, since its times are the drive's; what is late is caught up.
    pub operations_per_second: f64,
    /// Who ask, each for one operation at a time, and wait for the flash reads of a get (24: `numThreads` of cachebench's ssd_perf/kvcache_l2_wc).
    #[serde(default = "default_callers")]
    pub callers: u32,
    /// Threads for lookups (32, allocator/nvmcache/NavyConfig.h).
    #[serde(default = "default_threads")]
    pub reader_threads: u32,
    /// Threads for inserts and removals (32, allocator/nvmcache/NavyConfig.h).
    #[serde(default = "default_threads")]
    pub writer_threads: u32,
    /// Inserts in flight at most (1,000,000, `maxConcurrentInserts` of NavyConfig.h); on a twin 1/d as many.
    #[serde(default = "default_inserts")]
    pub max_concurrent_inserts: u64,
    /// Keys and values of inserts in flight at most (256 MiB, `maxParcelMemoryMB` of NavyConfig.h); on a twin 1/d as many.
    #[serde(default = "default_parcel_bytes", with = "base::size")]
    pub max_parcel_bytes: u64,
    /// What the engines share.
    #[serde(default)]
    pub engines: Engines,
}

/// What the two engines share in virtual time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engines {
    /// Limits and writer threads, as in CacheLib.
    #[default]
    Together,
    /// Neither: each has limits and writer threads of its own, of the stated numbers.
    Apart,
}

impl Engines {
    /// Which of what there is belongs to an engine.
    pub(super) fn index(self, engine: u16) -> usize {
        match self {
            Engines::Together => 0,
            Engines::Apart => usize::from(engine),
        }
    }
}

fn default_callers() -> u32 {
    24
}

fn default_threads() -> u32 {
    32
}

fn default_inserts() -> u64 {
    1_000_000
}

fn default_parcel_bytes() -> u64 {
    256 << 20
}

impl Pace {
    /// CacheLib's defaults at a rate in operations per second.
    pub fn at(operations_per_second: f64) -> Pace {
        Pace {
            operations_per_second,
            callers: default_callers(),
            reader_threads: default_threads(),
            writer_threads: default_threads(),
            max_concurrent_inserts: default_inserts(),
            max_parcel_bytes: default_parcel_bytes(),
            engines: Engines::default(),
        }
    }

    /// When the operation with this number, from 0, is due: nanoseconds since the start.
    pub(super) fn due_ns(&self, operation: u64) -> u64 {
        (operation as f64 * 1e9 / self.operations_per_second) as u64
    }

    pub(super) fn check(&self) -> Result<(), WorkloadError> {
        let numbers = [
            ("operations_per_second", self.operations_per_second, 1e-3, 1e9),
            ("callers", self.callers.into(), 1.0, 1e6),
            ("reader_threads", self.reader_threads.into(), 1.0, 1024.0),
            ("writer_threads", self.writer_threads.into(), 1.0, 1024.0),
            ("max_concurrent_inserts", self.max_concurrent_inserts as f64, 1.0, 1e9),
            ("max_parcel_bytes", self.max_parcel_bytes as f64, 1.0, 1e15),
        ];
        numbers
            .into_iter()
            .try_for_each(|(name, value, least, most)| within(&format!("pace.{name}"), value, least..=most))
    }
}
