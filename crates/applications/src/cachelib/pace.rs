//! Rate and concurrency of the cache in virtual time.

use serde::{Deserialize, Serialize};

use workload::{WorkloadError, within};

/// `[workload.pace]`: operation rate, threads and limits of inserts in flight in virtual time.
/// Defaults are CacheLib's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pace {
    /// Cache operations per second. The rate also holds on a scaled model, because the model
    /// has the drive's latencies. Late operations catch up.
    pub operations_per_second: f64,
    /// Number of callers. A caller has one operation at a time and waits for the flash reads of a
    /// get (24, `numThreads` of cachebench's ssd_perf/kvcache_l2_wc).
    #[serde(default = "default_callers")]
    pub callers: u32,
    /// Threads for lookups (32, allocator/nvmcache/NavyConfig.h).
    #[serde(default = "default_threads")]
    pub reader_threads: u32,
    /// Threads for inserts and removals (32, allocator/nvmcache/NavyConfig.h).
    #[serde(default = "default_threads")]
    pub writer_threads: u32,
    /// Maximum number of inserts in flight (1,000,000, `maxConcurrentInserts` of NavyConfig.h). A
    /// scaled model uses 1/d of it.
    #[serde(default = "default_inserts")]
    pub max_concurrent_inserts: u64,
    /// Maximum bytes of keys and values in flight (256 MiB, `maxParcelMemoryMB` of NavyConfig.h). A
    /// scaled model uses 1/d of it.
    #[serde(default = "default_parcel_bytes", with = "base::size")]
    pub max_parcel_bytes: u64,
    #[serde(default)]
    pub engines: EngineResources,
}

/// Resources that the two engines share in virtual time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineResources {
    /// Shared limits and writer threads, as in CacheLib.
    #[default]
    SharedThreads,
    /// Separate limits and writer threads. Each engine has the configured numbers.
    OwnThreads,
}

impl EngineResources {
    pub(super) fn index(self, engine: u16) -> usize {
        match self {
            EngineResources::SharedThreads => 0,
            EngineResources::OwnThreads => usize::from(engine),
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
    /// CacheLib's defaults at this rate.
    pub fn at(operations_per_second: f64) -> Pace {
        Pace {
            operations_per_second,
            callers: default_callers(),
            reader_threads: default_threads(),
            writer_threads: default_threads(),
            max_concurrent_inserts: default_inserts(),
            max_parcel_bytes: default_parcel_bytes(),
            engines: EngineResources::default(),
        }
    }

    /// Due time of operation number `operation`, counted from 0, in nanoseconds since the start.
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
