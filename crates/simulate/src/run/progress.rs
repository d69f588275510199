//! Who looks at runs from outside: how far they are, and whether to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::result::CellResult;

/// Receives the progress of runs; called from their threads. Work has no unit; about a byte written each.
pub trait Watch: Sync {
    /// This much more work is to be done.
    fn expects(&self, work: u64);
    /// So many more cells are to be run.
    fn expects_cells(&self, _cells: u64) {}
    /// This much more of it is done.
    fn advanced(&self, work: u64);
    /// A cell is done.
    fn finished(&self, result: &CellResult);
    /// Whether to stop and keep what was measured.
    fn stopped(&self) -> bool;
}

/// Watches nothing and never stops.
impl Watch for () {
    fn expects(&self, _work: u64) {}

    fn advanced(&self, _work: u64) {}

    fn finished(&self, _result: &CellResult) {}

    fn stopped(&self) -> bool {
        false
    }
}

/// A counter and a switch, for callers that show progress.
#[derive(Debug, Default)]
pub struct Progress {
    /// Work of all cells.
    pub expected: AtomicU64,
    pub done: AtomicU64,
    /// Cells that are to be run.
    pub expected_cells: AtomicU64,
    pub cells: AtomicU64,
    /// Set to stop.
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
