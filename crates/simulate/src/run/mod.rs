//! Running cells: a workload against a device, watched.
//!
//! ```text
//! Cell -> plan (refuses what cannot be) -> work -> CellResult
//!
//! Workload -> batches of requests -> Device<Recorder> -> Stats, GC log, samples -\
//! timed::Runner -> requests in virtual time -/            \-> latencies, what happened when -> CellResult
//! ```
//!
//! A device with timing runs the jobs in virtual time (`timed`), any other as fast as it takes requests. A cell whose
//! scale is to be found runs on several twins (`search`). Cells run in parallel, as many as there are cores and as memory
//! allows; each is deterministic on its own. A run can be stopped from outside and then returns what it has measured.

mod memory;
mod plan;
mod progress;
mod result;
mod search;
mod work;

use std::borrow::Borrow;
use std::path::Path;

use rayon::prelude::*;

use crate::policy::Policies;
use experiment::error::LabError;
use memory::Memory;

pub use plan::{MemoryNeed, RefusedCell, RunPlan, prepare, prepare_possible, prepare_within};
pub use progress::{Progress, Watch};
pub use result::{AGREEMENT, CellResult, Sample, ScaleComparison, ScaleSearch};
pub use work::UNWRITTEN_REQUESTS_MAX;
pub(crate) use work::{Checkpoint, Run, STEP_PAGES, Stride};

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

/// Bytes of memory that runs may use; 8 GiB where the system does not say.
pub fn memory_available() -> u64 {
    base::memory_available_bytes().unwrap_or(8 << 30)
}

/// Runs cells, in parallel within a memory budget, and returns their results in the same order.
///
/// # Errors
/// A cell that needs more memory than there is, or whose workload cannot be read.
pub fn run_all<P: Borrow<RunPlan> + Sync>(
    plans: &[P],
    keep_gc_log: bool,
    memory_budget_bytes: u64,
    watch: &dyn Watch,
) -> Result<Vec<CellResult>, LabError> {
    let options = Options {
        keep_gc_log,
        memory_budget_bytes,
        ..Options::default()
    };
    run_all_with(plans, options, watch)
}

/// As [`run_all`], with all that there is to say about it.
///
/// # Errors
/// As [`run_all`]; a placement policy fails; there is not one device to save; or a snapshot cannot be read or written.
pub fn run_all_with<P: Borrow<RunPlan> + Sync>(
    plans: &[P],
    options: Options<'_>,
    watch: &dyn Watch,
) -> Result<Vec<CellResult>, LabError> {
    let cells = || plans.iter().map(Borrow::<RunPlan>::borrow);
    if options.save.is_some() && plans.len() != 1 {
        let problem = format!("these are {} runs; only a single one leaves a device", plans.len());
        return Err(LabError::invalid("save (--save)", problem));
    }
    if options.save.is_some() && cells().any(RunPlan::searches) {
        let problem = "several twins run where the scale is auto; give the scale that it finds";
        return Err(LabError::invalid("save (--save)", problem));
    }
    for cell in cells() {
        cell.check_memory(options.memory_budget_bytes)?;
    }
    watch.expects(cells().map(RunPlan::expected_work).sum());
    let memory = Memory::new(options.memory_budget_bytes);
    // A thread for each run comes first; those that are left over work with them.
    let threads = rayon::current_num_threads() / plans.len().max(1);
    let run_twin = |plan: &RunPlan| {
        let _share = memory.take(plan.twin_bytes);
        work::run_cell(plan, options, threads, watch)
    };
    let run = |cell: &P| {
        if watch.stopped() {
            return None;
        }
        let result = search::run(cell.borrow(), run_twin, watch);
        if let Ok(result) = &result {
            watch.finished(result);
        }
        Some(result)
    };
    if options.policies.victim.is_some() || options.policies.placement.is_some() {
        return plans.iter().filter_map(run).collect();
    }
    // Threads take one cell at a time, so that a long one at the end does not wait in another's queue.
    let results: Vec<Option<_>> = plans.par_iter().with_max_len(1).map(run).collect();
    results.into_iter().flatten().collect()
}
