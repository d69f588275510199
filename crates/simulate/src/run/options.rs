//! How cells are run.

use std::path::Path;

use super::memory::memory_available;
use crate::policy::Policies;

/// How cells are run, and what is kept of them.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Policies of the caller. They may share something, so with policies cells run one after another, on the calling
    /// thread.
    pub policies: Policies<'a>,
    /// Keep a row for each collection.
    pub keep_gc_log: bool,
    /// Bytes of memory that the runs may use together.
    pub memory_budget_bytes: u64,
    /// Where to save the device of the only run afterwards.
    pub save: Option<&'a Path>,
    /// Write the logs that jobs ask for (`write_bw_log` and others), in virtual time.
    pub fio_logs: bool,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options {
            policies: Policies::default(),
            keep_gc_log: false,
            memory_budget_bytes: memory_available(),
            save: None,
            fio_logs: false,
        }
    }
}
