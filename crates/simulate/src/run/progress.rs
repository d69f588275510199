//! Progress reports and the stop switch of runs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::result::CellResult;

/// Observer of runs, called from their threads. Work has no unit. A written byte counts about 1.
pub trait Watch: Sync {
    /// Adds this much expected work.
    fn expects(&self, work: u64);
    /// Adds this many expected cells.
    fn expects_cells(&self, _cells: u64) {}
    /// Reports this much completed work.
    fn advanced(&self, work: u64);
    /// Reports a completed cell.
    fn finished(&self, result: &CellResult);
    /// Returns true to stop a run and keep its measurements.
    fn stopped(&self) -> bool;
}

/// Ignores all reports and never stops a run.
impl Watch for () {
    fn expects(&self, _work: u64) {}

    fn advanced(&self, _work: u64) {}

    fn finished(&self, _result: &CellResult) {}

    fn stopped(&self) -> bool {
        false
    }
}

/// Progress counters and stop switch, for callers that show progress.
#[derive(Debug, Default)]
pub struct Progress {
    pub expected: AtomicU64,
    pub done: AtomicU64,
    pub expected_cells: AtomicU64,
    pub cells: AtomicU64,
    /// Set to stop all runs.
    pub stop: AtomicBool,
}

impl Watch for Progress {
    fn expects(&self, work: u64) {
        self.expected.fetch_add(work, Ordering::Relaxed);
    }

    fn expects_cells(&self, cells: u64) {
        self.expected_cells.fetch_add(cells, Ordering::Relaxed);
    }

    fn advanced(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }

    fn finished(&self, _result: &CellResult) {
        self.cells.fetch_add(1, Ordering::Relaxed);
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
