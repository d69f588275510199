//! Progress reports and the stop switch of runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::result::RunResult;

/// Observer of runs, called from their threads. Work has no unit. A written byte counts about 1.
pub trait ProgressObserver: Sync {
    /// Adds this much expected work.
    fn add_expected(&self, work: u64);
    /// Adds this many expected cells.
    fn add_expected_cells(&self, _cells: u64) {}
    /// Reports this much completed work.
    fn add_completed(&self, work: u64);
    /// Reports a completed cell.
    fn record_result(&self, result: &RunResult);
    /// Returns true to stop a run and keep its measurements.
    fn should_stop(&self) -> bool;
}

/// Ignores all reports and never stops a run.
impl ProgressObserver for () {
    fn add_expected(&self, _work: u64) {}

    fn add_completed(&self, _work: u64) {}

    fn record_result(&self, _result: &RunResult) {}

    fn should_stop(&self) -> bool {
        false
    }
}

/// Progress counters and stop switch, for callers that show progress.
#[derive(Debug, Default)]
pub struct RunProgress {
    pub expected: AtomicU64,
    pub completed: AtomicU64,
    pub cells_expected: AtomicU64,
    pub cells_completed: AtomicU64,
    /// Set to stop all runs.
    pub stop: AtomicBool,
}

impl ProgressObserver for RunProgress {
    fn add_expected(&self, work: u64) {
        self.expected.fetch_add(work, Ordering::Relaxed);
    }

    fn add_expected_cells(&self, cells: u64) {
        self.cells_expected.fetch_add(cells, Ordering::Relaxed);
    }

    fn add_completed(&self, work: u64) {
        self.completed.fetch_add(work, Ordering::Relaxed);
    }

    fn record_result(&self, _result: &RunResult) {
        self.cells_completed.fetch_add(1, Ordering::Relaxed);
    }

    fn should_stop(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
