//! Cost of a stream's requests in virtual time, by which streams share a drive without a clock.
//!
//! Costs are in nanoseconds of the virtual clock.
//!
//! | option of the job | cost |
//! |---|---|
//! | `rate` | 1 s / rate per byte |
//! | `rate_iops` | 1 s / rate_iops per request |
//! | `flow` | 1 s / flow per request |
//! | none of them | [`NOMINAL_SERVICE_NS`] / `iodepth` per request |
//!
//! The last line models a drive that serves its queue slots in turn (NVMe's round-robin
//! arbitration). A job's served requests are proportional to its requests in flight. `thinktime`
//! adds thinktime / `thinktime_blocks` to the cost of a request (`none of them`). For a `rate`,
//! the sum only limits the speed from above, since fio catches up to its rate after a pause. With
//! `rate_ignore_thinktime` fio does not, and the pause adds to the rate's cost. Jobs with `flow`
//! wait for each other anyway, so their thinktime has no effect.
//!
//! Jobs with a rate and jobs with only a queue depth may share a group, because both costs are
//! times. A job without a rate runs as on a drive with the nominal service time. A flow is not a
//! time, so all jobs of a group have one or none has.

use super::{Job, JobPlan};
use crate::ScaledModel;

/// Assumed service time of a request at queue depth 1. 100 us lies between a flash read and a flash
/// program. It only matters when `thinktime` is compared with service times.
pub const NOMINAL_SERVICE_NS: f64 = 100_000.0;

const NS_PER_SECOND: f64 = 1e9;

/// Virtual time of a stream's requests, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    pub(super) per_request: f64,
    pub(super) per_byte: f64,
}

impl Cost {
    pub(super) fn new(job: &Job, plan: &JobPlan) -> Self {
        let slots_and_pause = NOMINAL_SERVICE_NS / job.iodepth as f64 + pause_ns(job);
        let per_request = |ns| Self { per_request: ns, per_byte: 0.0 };
        let rated = if let Some(rate) = total(&job.rate, plan) {
            Self { per_request: 0.0, per_byte: NS_PER_SECOND / rate }
        } else if let Some(rate) = total(&job.rate_iops, plan) {
            per_request(NS_PER_SECOND / rate)
        } else if let Some(flow) = job.flow {
            return per_request(NS_PER_SECOND / flow as f64);
        } else {
            return per_request(slots_and_pause);
        };
        if job.thinktime_us == 0 {
            return rated;
        }
        if job.rate_ignore_thinktime {
            return Self { per_request: rated.per_request + pause_ns(job), ..rated };
        }
        let mean_bytes = plan.mean_request_bytes();
        if rated.request_cost(mean_bytes) >= slots_and_pause { rated } else { per_request(slots_and_pause) }
    }

    /// Cost on a scaled model. Each byte of the model stands for d bytes of the drive and for their
    /// requests.
    pub(super) fn scaled(self, full: &JobPlan, model: ScaledModel) -> Self {
        let mean_bytes = full.mean_request_bytes();
        assert!(
            mean_bytes > 0.0 && model.denominator > 0,
            "requests of {mean_bytes} bytes are scaled by 1/{}",
            model.denominator
        );
        Self { per_request: 0.0, per_byte: self.request_cost(mean_bytes) / mean_bytes * model.denominator as f64 }
    }

    pub(super) fn request_cost(self, bytes: f64) -> f64 {
        self.per_request + self.per_byte * bytes
    }
}

/// Pause per request, ns.
fn pause_ns(job: &Job) -> f64 {
    let counted = job.requests_between_pauses().map(|requests| requests as f64);
    // Number of nominal requests in `thinktime_iotime`.
    let timed = (job.thinktime_iotime_us as f64 * 1e3 / NOMINAL_SERVICE_NS * job.iodepth as f64).max(1.0);
    let requests = match counted {
        Some(counted) if job.thinktime_iotime_us > 0 => counted.min(timed),
        Some(counted) => counted,
        None => timed,
    };
    assert!(requests >= 1.0, "a pause follows each {requests} requests");
    job.thinktime_us as f64 * 1e3 / requests
}

/// Sum of a rate over the directions that a job uses. A mixed job runs at the sum of both rates, in
/// the proportion of `rwmixread`.
pub fn total(rates: &[Option<u64>; 3], plan: &JobPlan) -> Option<f64> {
    let operations = plan.access.operations.iter();
    let given: Vec<f64> =
        operations.filter_map(|operation| rates[operation as usize]).map(|rate| rate as f64).collect();
    (!given.is_empty()).then(|| given.iter().sum())
}
