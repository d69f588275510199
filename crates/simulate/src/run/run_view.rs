//! Read access to the state and the result of a run.

use std::ops::Deref;

use ssd::{Device, DeviceStats, Nanos, RecentEvents};

use super::active_run::{ActiveRun, Stage};
use super::plan::{BuiltWorkload, RunPlan};
use super::result::RunResult;
use super::series::SampleSeries;
use crate::run_recorder::RunRecorder;
use crate::timed::result::TimedResult;

/// Die and channel operations kept for monitoring.
const ACTIVITY_KEPT: usize = 1 << 16;

/// Stage of a run, for callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunPhase {
    /// The drive is filled before the workload.
    Filling,
    Running,
    Ended,
}

impl<P: Deref<Target = RunPlan>> ActiveRun<P> {
    pub(crate) fn device(&self) -> &Device<RunRecorder> {
        &self.drive.device
    }

    /// Returns the device without its recorder, at the end of the run.
    pub(super) fn into_device(self) -> Device {
        self.drive.device.replace_sink(()).0
    }

    /// Counters since the workload began.
    pub(crate) fn stats(&self) -> DeviceStats {
        self.drive.stats()
    }

    /// Records events from now on.
    ///
    /// # Panics
    /// The workload has begun.
    pub(crate) fn enable_event_log(&mut self) {
        self.drive.device.sink_mut().live_log = Some(RecentEvents::default());
        let Stage::Filling(_, workload) = &mut self.stage else {
            panic!("monitoring begins before the workload");
        };
        if let BuiltWorkload::Timed(runner) = workload {
            runner.keep_request_log();
            self.drive.device.enable_activity_log(ACTIVITY_KEPT);
        }
    }

    /// Returns the event log.
    ///
    /// # Panics
    /// The log is not enabled, see [`ActiveRun::enable_event_log`].
    pub(crate) fn live_log(&mut self) -> &mut RecentEvents {
        let log = self.drive.device.sink_mut().live_log.as_mut();
        log.expect("the live log is kept")
    }

    /// Device time when the workload began. 0 before, and without timing.
    pub(crate) fn begun_at(&self) -> Nanos {
        self.filled.until
    }

    pub(crate) fn phase(&self) -> RunPhase {
        match &self.stage {
            Stage::Filling(..) => RunPhase::Filling,
            Stage::Untimed(_) | Stage::Timed(_) => RunPhase::Running,
            Stage::Ended => RunPhase::Ended,
        }
    }

    /// Extents written before the workload.
    pub(crate) fn extents_filled(&self) -> u64 {
        match &self.stage {
            Stage::Filling(fill, _) => fill.filled.extents,
            _ => self.filled.extents,
        }
    }

    pub(crate) fn timed_now(&self) -> Option<TimedResult> {
        match &self.stage {
            Stage::Timed(work) => Some(work.runner.measured()),
            _ => self.timed.clone(),
        }
    }

    pub(crate) fn result_now(&self) -> RunResult {
        let source = match &self.stage {
            Stage::Untimed(work) => Some(&*work.source),
            Stage::Timed(work) => work.runner.source(),
            Stage::Filling(..) | Stage::Ended => None,
        };
        RunResult {
            measures: source.map_or_else(|| self.measures.clone(), |source| self.drive.measures_of(source)),
            timed: self.timed_now(),
            feedback: self.feedback_result.clone(),
            ..self.result_with(self.series.clone())
        }
    }

    /// Returns the result. Call it once, because it consumes series and log.
    pub(super) fn result(&mut self) -> RunResult {
        let series = std::mem::take(&mut self.series);
        RunResult {
            gc_log: std::mem::take(&mut self.drive.device.sink_mut().gc_log),
            measures: std::mem::take(&mut self.measures),
            timed: self.timed.take(),
            feedback: self.feedback_result.take(),
            ..self.result_with(series)
        }
    }

    /// Builds a result from the current counters and this series.
    fn result_with(&self, series: SampleSeries) -> RunResult {
        let (plan, device) = (&*self.plan, &self.drive.device);
        let mut result = RunResult {
            complete: self.complete && matches!(self.stage, Stage::Ended),
            open_unit_share: self.drive.open_unit_share(),
            steady: series.steady,
            pages_read: self.pages_read,
            samples: series.finish(&self.drive),
            endurance: self.drive.endurance(f64::from(plan.scale.0)),
            ..plan.result(self.drive.stats(), device.wear())
        };
        if result.stats.write_amplification().is_some() {
            let waf = result.headline_write_amplification();
            result.endurance = result.endurance.map(|endurance| endurance.at(waf));
        }
        result
    }
}
