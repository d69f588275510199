//! Options for the execution of cells.

use std::path::Path;

use super::memory::memory_available;
use crate::policy::Policies;

/// Execution options and outputs of cells.
#[derive(Clone, Copy)]
pub struct ExecutionOptions<'a> {
    /// Policies of the caller. They may share state, so cells with policies run one after another
    /// on the calling thread.
    pub policies: Policies<'a>,
    /// Keep a row for each garbage collection.
    pub keep_gc_log: bool,
    /// Bytes of memory that all runs together may use.
    pub memory_budget_bytes: u64,
    /// File to which the only run saves its device.
    pub save: Option<&'a Path>,
    /// Write the logs that jobs request in virtual time, such as `write_bw_log`.
    pub fio_logs: bool,
}

impl Default for ExecutionOptions<'_> {
    fn default() -> Self {
        ExecutionOptions {
            policies: Policies::default(),
            keep_gc_log: false,
            memory_budget_bytes: memory_available(),
            save: None,
            fio_logs: false,
        }
    }
}
