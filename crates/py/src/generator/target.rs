//! The class that describes the target drive to a workload in Python.

use pyo3::prelude::*;
use workload::WorkloadTarget;

/// The drive for which a workload makes requests.
#[pyclass(frozen, name = "Target", module = "warp_ssd")]
pub struct PyWorkloadTarget {
    target: WorkloadTarget,
    /// Bytes of the drive's mapping unit. A smaller write costs the same as a whole unit.
    #[pyo3(get)]
    mapping_unit_bytes: u64,
    /// Seed of the point. Derive all random numbers from it, so that each seed gives another run.
    #[pyo3(get)]
    seed: u64,
}

impl PyWorkloadTarget {
    pub(super) fn new(target: WorkloadTarget, mapping_unit_bytes: u64, seed: u64) -> PyWorkloadTarget {
        PyWorkloadTarget { target, mapping_unit_bytes, seed }
    }
}

#[pymethods]
impl PyWorkloadTarget {
    /// Bytes that requests may address. On a scaled model this is the model's size.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.target.capacity_bytes()
    }

    /// Number of placement indices, from 0. The value is 0 for a drive without FDP, which ignores
    /// placement.
    #[getter]
    fn placement_count(&self) -> u16 {
        self.target.placement_count
    }

    /// Factor by which the scaled model is smaller than its drive. The value is 1 for the drive
    /// itself.
    #[getter]
    fn scale(&self) -> u64 {
        self.target.denominator()
    }

    /// True if the run ends the workload after enough writes. If False, the workload must end by
    /// itself.
    #[getter]
    fn endless(&self) -> bool {
        self.target.endless
    }

    /// Return the scaled length of a request of ``bytes`` on the full drive. On a scaled model it
    /// is shorter, in whole mapping units, and at least one.
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
