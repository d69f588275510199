//! Layout of the cache on the device.
//!
//! ```text
//! | metadata | LOC: region 0, 1, ... | SOC: bucket 0, 1, ... |
//! ```
//!
//! Rules from CacheLib (allocator/nvmcache/NavySetup.cpp): metadata takes 0.5 percent at the start.
//! SOC takes its percentage of the whole at the end. LOC takes the middle in whole regions.
//! CacheLib writes metadata at shutdown, and the model never shuts down.

use workload::{WorkloadError, WorkloadTarget};

use super::CachelibSettings;

/// Stream number of SOC.
pub(super) const SOC_STREAM: u16 = 0;
/// Stream number of LOC.
pub(super) const LOC_STREAM: u16 = 1;
/// Minimum region of a scaled model, bytes. It exceeds any item, so a region holds the same
/// items as on the drive.
const REGION_BYTES_MIN: u64 = 1 << 20;
/// Minimum alignment of LOC entries, bytes (navy/block_cache/BlockCache.h).
const LOC_ALIGN_BYTES_MIN: u64 = 512;

/// Extents on the device or its scaled model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CacheLayout {
    pub(super) loc_start_bytes: u64,
    pub(super) regions: u64,
    pub(super) region_bytes: u64,
    pub(super) loc_align_bytes: u64,
    pub(super) device_max_write_bytes: u64,
    pub(super) soc_start_bytes: u64,
    pub(super) buckets: u64,
    pub(super) bucket_bytes: u64,
}

impl CacheLayout {
    pub(super) fn new(settings: &CachelibSettings, target: &WorkloadTarget) -> Result<CacheLayout, WorkloadError> {
        let unit = target.unit_bytes().max(4096);
        let capacity = target.capacity_bytes();
        let share = |percent: f64| (capacity as f64 * percent / 100.0) as u64;
        let bucket_bytes = settings.bucket_bytes;
        let buckets = share(settings.soc_percent) / bucket_bytes;
        let soc_start_bytes = capacity / bucket_bytes * bucket_bytes - buckets * bucket_bytes;
        let loc_start_bytes = share(settings.metadata_percent).next_multiple_of(unit);
        let region_bytes = match target.scaled_model {
            Some(model) => model.size(settings.region_bytes).max(REGION_BYTES_MIN.min(settings.region_bytes)),
            None => settings.region_bytes,
        };
        let device_max_write_bytes = target.request_bytes(settings.device_max_write_bytes);
        // Addresses have 32 bits and count alignment units.
        let reachable = (target.device_bytes >> 32).next_power_of_two();
        let layout = CacheLayout {
            loc_start_bytes,
            regions: soc_start_bytes.saturating_sub(loc_start_bytes) / region_bytes,
            region_bytes,
            loc_align_bytes: settings.loc_align_bytes.max(reachable).max(LOC_ALIGN_BYTES_MIN),
            device_max_write_bytes,
            soc_start_bytes,
            buckets,
            bucket_bytes,
        };
        layout.check(settings, capacity)?;
        Ok(layout)
    }

    fn check(&self, settings: &CachelibSettings, capacity: u64) -> Result<(), WorkloadError> {
        let soc_percent = settings.soc_percent;
        if soc_percent > 0.0 && self.buckets == 0 {
            let problem = format!(
                "leaves no room for a bucket on a device of {capacity} bytes. Use a larger \
                                   soc_percent, or a larger scaled model"
            );
            return Err(WorkloadError::setting(format!("soc_percent = {soc_percent}"), problem));
        }
        let needed = settings.clean_regions + 2;
        if self.has_loc(settings) && self.regions < needed {
            let setting = format!("region_bytes = {}", settings.region_bytes);
            let problem = format!(
                "gives LOC room for {} regions of {} bytes, but {needed} are needed. Use smaller regions, a smaller \
                 soc_percent, or a larger scaled model",
                self.regions, self.region_bytes
            );
            return Err(WorkloadError::setting(setting, problem));
        }
        Ok(())
    }

    /// Start and end offset of LOC, bytes. The end is exclusive.
    pub(super) fn loc_extent(&self) -> (u64, u64) {
        let end = self.loc_start_bytes + self.regions * self.region_bytes;
        (self.loc_start_bytes, end)
    }

    /// Start and end offset of SOC, bytes. The end is exclusive.
    pub(super) fn soc_extent(&self) -> (u64, u64) {
        (self.soc_start_bytes, self.soc_start_bytes + self.buckets * self.bucket_bytes)
    }

    /// True if LOC exists, that is, if SOC and metadata leave space.
    pub(super) fn has_loc(&self, settings: &CachelibSettings) -> bool {
        settings.soc_percent + settings.metadata_percent < 100.0
    }
}
