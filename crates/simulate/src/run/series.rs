//! Time series of a run and its steady state.

use ssd::{DeviceStats, Occupancy};

use super::plan::RunPlan;
use super::result::RunSample;
use crate::steady::SteadyState;

#[derive(Clone, Default)]
pub(super) struct SampleSeries {
    pub(super) samples: Vec<RunSample>,
    /// Host bytes at which the next sample is due.
    next_bytes: u64,
    pub(super) steady: Option<SteadyState>,
}

/// A drive, or the drives of an array together.
pub(super) trait SampledDrive {
    /// Counters since the workload began.
    fn stats(&self) -> DeviceStats;

    /// Space of each owner. The handles come first, in order, then the shared pool.
    fn occupancy(&self) -> Vec<Occupancy>;
}

/// Bytes that a drive receives between two samples.
fn interval_bytes(plan: &RunPlan) -> u64 {
    ((plan.cell().run.sample_drive_writes * plan.drives_bytes() as f64) as u64).max(1)
}

impl SampleSeries {
    pub(super) fn new(plan: &RunPlan) -> SampleSeries {
        SampleSeries { samples: Vec::new(), next_bytes: interval_bytes(plan), steady: None }
    }

    pub(super) fn is_due(&self, written: u64) -> bool {
        written >= self.next_bytes
    }

    /// Takes a sample if due. Returns true if steady state ends the run.
    pub(super) fn advance(&mut self, drive: &impl SampledDrive, plan: &RunPlan, written: u64) -> bool {
        if !self.is_due(written) {
            return false;
        }
        let interval = interval_bytes(plan);
        self.samples.push(self.sample(drive));
        assert_eq!(
            self.samples.last().map(|sample| sample.host_bytes),
            Some(written),
            "a sample counts other bytes than the run wrote"
        );
        self.next_bytes = written - written % interval + interval;
        assert!(self.next_bytes > written, "the next sample is still to come");
        self.has_converged(plan)
    }

    /// Returns true if the run waits for steady state and has reached it. Checks once per
    /// drive write.
    fn has_converged(&mut self, plan: &RunPlan) -> bool {
        let capacity_bytes = plan.drives_bytes();
        let [.., before, last] = &self.samples[..] else {
            return false;
        };
        let drive_writes = |sample: &RunSample| sample.host_bytes / capacity_bytes;
        if !plan.cell().run.steady_state || drive_writes(before) == drive_writes(last) {
            return false;
        }
        self.steady = SteadyState::assess(&self.samples, capacity_bytes);
        self.steady.is_some_and(|state| state.reached)
    }

    /// Returns the samples, with one of the current state at the end.
    pub(super) fn finish(mut self, drive: &impl SampledDrive) -> Vec<RunSample> {
        let written = drive.stats().host_bytes_written();
        if self.samples.last().is_none_or(|sample| sample.host_bytes < written) {
            self.samples.push(self.sample(drive));
        }
        let end = self.samples.last().map(|sample| sample.host_bytes);
        assert_eq!(end, Some(written), "the series ends with the run");
        self.samples
    }

    fn sample(&self, drive: &impl SampledDrive) -> RunSample {
        let stats = drive.stats();
        let occupancy = drive.occupancy();
        let (host_bytes, media_bytes) = (stats.host_bytes_written(), stats.media_bytes_written());
        assert!(
            self.samples
                .last()
                .is_none_or(|before| host_bytes >= before.host_bytes && media_bytes >= before.media_bytes),
            "bytes written never fall"
        );
        RunSample {
            host_bytes,
            media_bytes,
            owners: stats.handles.iter().copied().chain([stats.shared]).collect(),
            units: occupancy.iter().map(|row| row.units).collect(),
            valid_pages: occupancy.iter().map(|row| row.valid_pages).collect(),
        }
    }
}
