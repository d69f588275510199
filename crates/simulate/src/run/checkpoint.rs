//! Checkpoints of a run without virtual time, for rewinding and forks.

use std::ops::Deref;

use ssd::{Device, DeviceConfig, DeviceStats, RecentEvents};

use super::active_run::{ActiveRun, Stage};
use super::fill::FillSummary;
use super::options::ExecutionOptions;
use super::plan::RunPlan;
use super::series::SampleSeries;
use super::untimed::{UntimedPosition, UntimedStage};
use crate::run_recorder::RunRecorder;
use experiment::cell::RunSpec;
use experiment::error::LabError;

/// Checkpoint of a run without virtual time: the device and the progress of the workload.
pub(crate) struct RunCheckpoint {
    device: Device,
    recorder: RunRecorder,
    start: DeviceStats,
    series: SampleSeries,
    filled: FillSummary,
    work: UntimedPosition,
}

impl RunCheckpoint {
    /// Bytes that the workload had written.
    pub(crate) fn host_bytes(&self) -> u64 {
        self.work.written
    }
}

fn no_memory(error: std::io::Error) -> LabError {
    LabError::invalid("memory", format!("there is none for another drive ({error}). End another session or lane"))
}

impl<P: Deref<Target = RunPlan>> ActiveRun<P> {
    /// Returns true if a checkpoint is possible: between two batches, without virtual time and
    /// without a placement policy.
    pub(crate) fn can_checkpoint(&self) -> bool {
        matches!(&self.stage, Stage::Untimed(work) if work.is_carried_out()) && self.placer.is_none()
    }

    /// Takes a checkpoint if possible and if memory allows.
    pub(crate) fn checkpoint(&self) -> Option<RunCheckpoint> {
        match &self.stage {
            Stage::Untimed(work) if self.can_checkpoint() => {
                Some(self.make_checkpoint(work, self.drive.device.try_clone().ok()?))
            }
            _ => None,
        }
    }

    fn make_checkpoint(&self, work: &UntimedStage, device: Device) -> RunCheckpoint {
        RunCheckpoint {
            device,
            recorder: self.drive.device.sink().counts(),
            start: self.drive.start.clone(),
            series: self.series.clone(),
            filled: self.filled,
            work: work.position(),
        }
    }

    /// Restores an earlier or later checkpoint of this run.
    ///
    /// # Errors
    /// A workload input cannot be read any more, or memory is too low.
    pub(crate) fn restore(&mut self, to: &RunCheckpoint) -> Result<(), LabError> {
        // Drops the previous workload first, to avoid memory for two.
        self.stage = Stage::Ended;
        let source = self.plan.source()?;
        let device = to.device.try_clone().map_err(no_memory)?;
        let mut recorder = to.recorder.counts();
        let live_log = self.drive.device.sink_mut().live_log.take();
        recorder.live_log = live_log.map(|_| RecentEvents::default());
        self.drive.replace(device, recorder, &to.start);
        self.drive.assert_written(to.work.written);
        self.series.clone_from(&to.series);
        self.filled = to.filled;
        let sampled = self.series.samples.last().map_or(0, |sample| sample.host_bytes);
        assert!(sampled <= to.work.written, "a checkpoint at {} host bytes has a sample at {sampled}", to.work.written);
        self.complete = true;
        self.measures.clear();
        self.stage = Stage::Untimed(UntimedStage::at(to.work, source));
        Ok(())
    }

    /// Continues from here with another plan. `None` if the plan needs a different drive, or in
    /// virtual time.
    pub(crate) fn fork(&self, plan: &P) -> Result<Option<ActiveRun<P>>, LabError>
    where
        P: Clone,
    {
        let Stage::Untimed(work) = &self.stage else {
            return Ok(None);
        };
        let alike = DeviceConfig { gc: self.plan.config.gc.clone(), ..plan.config.clone() };
        let listens = self.placer.is_some() || plan.cell().feedback.is_some();
        let has_other_array =
            |cell: &RunSpec| (&cell.array, cell.array_drive) != (&plan.cell().array, plan.cell().array_drive);
        let is_other = has_other_array(self.plan.cell()) || plan.cell().snapshot.is_some();
        if listens || alike != self.plan.config || is_other {
            return Ok(None);
        }
        let mut device = self.drive.device.try_clone().map_err(no_memory)?;
        if device.set_gc_rules(&plan.config.gc).is_err() {
            return Ok(None);
        }
        let mut fork = ActiveRun::begin(plan.clone(), ExecutionOptions::default())?;
        fork.enable_event_log();
        fork.restore(&self.make_checkpoint(work, device))?;
        Ok(Some(fork))
    }
}
