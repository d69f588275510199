//! The drive of a workload as Python sees it.

use pyo3::prelude::*;
use workload::Target;

/// The drive that a workload is made for.
#[pyclass(frozen, name = "Target", module = "warp_ssd")]
pub struct WorkloadTarget {
    target: Target,
    /// Bytes of the drive's mapping unit: smaller writes cost as much as one.
    #[pyo3(get)]
    mapping_unit_bytes: u64,
    /// Seed of the point; random numbers that are drawn from it are others for each seed.
    #[pyo3(get)]
    seed: u64,
}

impl WorkloadTarget {
    pub(super) fn new(target: Target, mapping_unit_bytes: u64, seed: u64) -> WorkloadTarget {
        WorkloadTarget {
            target,
            mapping_unit_bytes,
            seed,
        }
    }
}

#[pymethods]
impl WorkloadTarget {
    /// Bytes that requests may use. On a twin they are the twin's.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.target.capacity_bytes()
    }

    /// Number of placement indices, from 0; 0 for a drive without FDP, which ignores them.
    #[getter]
    fn placement_count(&self) -> u16 {
        self.target.placement_count
    }

    /// How many times smaller than its drive the twin is; 1 for the drive itself.
    #[getter]
    fn scale(&self) -> u64 {
        self.target.denominator()
    }

    /// Whether the run decides when enough is written. Otherwise the workload has to end by itself.
    #[getter]
    fn endless(&self) -> bool {
        self.target.endless
    }

    /// The length of a request that has so many bytes on the drive itself: on a twin less, in whole mapping units, at least
    /// one.
    fn request_bytes(&self, bytes: u64) -> u64 {
        self.target.request_bytes(bytes)
    }

    fn __repr__(&self) -> String {
        format!(
            "Target(capacity_bytes={}, mapping_unit_bytes={}, placement_count={}, seed={}, scale={}, endless={})",
            self.capacity_bytes(),
            self.mapping_unit_bytes,
            self.placement_count(),
            self.seed,
            self.scale(),
            if self.target.endless { "True" } else { "False" }
        )
    }
}
