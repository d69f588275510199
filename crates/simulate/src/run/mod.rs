//! Execution of cells: each run drives a device with a workload and measures it.
//!
//! ```text
//! RunSpec -> plan (rejects impossible cells) -> ActiveRun -> RunResult
//!
//! without virtual time: workload -> batches of requests -> Device<RunRecorder>
//! in virtual time:      workload -> timed::Runner       -> Device<RunRecorder>
//! Device<RunRecorder> -> DeviceStats, GC log, samples, in virtual time also latencies -> RunResult
//! ```
//!
//! A device with timing runs the jobs in virtual time (`timed`). Any other device runs them as fast
//! as it takes requests. `search` finds the scale of a cell on several scaled models. Cells run in
//! parallel, limited by cores and memory. Each is deterministic. A caller can stop a run, which
//! then returns its measurements so far.

mod active_run;
mod array;
mod array_member;
mod array_result;
mod array_writes;
mod checkpoint;
mod drive;
mod fill;
mod memory;
mod options;
mod plan;
mod progress;
mod result;
mod run_view;
mod search;
mod series;
mod untimed;

use std::borrow::Borrow;

use rayon::prelude::*;
use workload::trace::MappedTraces;

use experiment::error::LabError;
use experiment::scaled_model::ScaledOrigin;
use memory::MemoryBudget;

pub use active_run::RunPosition;
pub(crate) use active_run::{ActiveRun, STEP_PAGES, StepLimit};
pub use array_result::{ArrayDriveResult, ArrayResult, CauseCounts, RebuildResult};
pub(crate) use checkpoint::RunCheckpoint;
pub use memory::memory_available;
pub use options::ExecutionOptions;
pub use plan::{MemoryNeed, RefusedCell, RunPlan, prepare, prepare_possible};
pub use progress::{ProgressObserver, RunProgress};
pub use result::{AGREEMENT, RunResult, RunSample, ScaleComparison, ScaleSearch};
pub use run_view::RunPhase;
pub use untimed::UNWRITTEN_REQUESTS_MAX;

/// Runs cells in parallel within a memory budget. Returns their results in the same order.
///
/// # Errors
/// A cell needs too much memory, or its workload cannot be read.
pub fn run_all<P: Borrow<RunPlan> + Sync>(
    plans: &[P],
    keep_gc_log: bool,
    memory_budget_bytes: u64,
    watch: &dyn ProgressObserver,
) -> Result<Vec<RunResult>, LabError> {
    let options = ExecutionOptions { keep_gc_log, memory_budget_bytes, ..ExecutionOptions::default() };
    run_all_with(plans, options, watch)
}

/// Like [`run_all`], with all options.
///
/// # Errors
/// As [`run_all`]. A placement policy fails. A save is requested for several runs or a scale
/// search. A snapshot cannot be read.
pub fn run_all_with<P: Borrow<RunPlan> + Sync>(
    plans: &[P],
    options: ExecutionOptions<'_>,
    watch: &dyn ProgressObserver,
) -> Result<Vec<RunResult>, LabError> {
    let cells = || plans.iter().map(Borrow::<RunPlan>::borrow);
    if options.save.is_some() && plans.len() != 1 {
        let problem = format!(
            "only the device of a single run can be saved, and these are {} runs. Select one with \
                               --variant, --device or --seed",
            plans.len()
        );
        return Err(LabError::invalid("save (--save-snapshot)", problem));
    }
    if options.save.is_some() && cells().any(RunPlan::searches) {
        let problem = "an automatic scale runs several scaled models. Give the scale that it finds";
        return Err(LabError::invalid("save (--save-snapshot)", problem));
    }
    for cell in cells() {
        cell.check_memory(options.memory_budget_bytes)?;
    }
    // Runs of the same trace, and its later passes, read it once.
    let reads_again = plans.len() > 1 || cells().any(|plan| plan.target.endless);
    let _kept = reads_again.then(MappedTraces::keep);
    watch.add_expected(cells().map(RunPlan::expected_work).sum());
    watch.add_expected_cells(plans.len() as u64);
    let memory = MemoryBudget::new(options.memory_budget_bytes);
    // Each run gets its own thread first. Runs then use spare threads of the pool.
    let threads = rayon::current_num_threads() / plans.len().max(1);
    let run_plan = |plan: &RunPlan| {
        let _share = memory.reserve(plan.scaled_bytes);
        run_cell(plan, options, threads, watch)
    };
    let run = |cell: &P| {
        if watch.should_stop() {
            return None;
        }
        let result = search::run(cell.borrow(), run_plan, watch);
        if let Ok(result) = &result {
            watch.record_result(result);
        }
        Some(result)
    };
    if options.policies.victim.is_some() || options.policies.placement.is_some() {
        return plans.iter().filter_map(run).collect();
    }
    // Threads take one cell at a time. A long cell at the end does not wait behind another.
    let results: Vec<Option<_>> = plans.par_iter().with_max_len(1).map(run).collect();
    results.into_iter().flatten().collect()
}

/// Runs a cell on a new device or on that of its snapshot, with up to `threads` threads if useful.
/// Saves the device if requested.
fn run_cell(
    plan: &RunPlan,
    options: ExecutionOptions<'_>,
    threads: usize,
    watch: &dyn ProgressObserver,
) -> Result<RunResult, LabError> {
    if plan.cell().whole_array().is_some() {
        return array::run(plan, options, watch);
    }
    let mut run = ActiveRun::begin(plan, options)?;
    run.use_threads(threads);
    while run.step(StepLimit::LONGEST, watch)? {}
    let mut result = run.result();
    if let Some(path) = options.save {
        let origin = ScaledOrigin { scale: plan.scale, device: plan.cell().device.clone() };
        let saved = run.into_device().save_with_note(path, &origin.to_note());
        // A failed save keeps the result.
        result.unsaved = saved.err().map(|error| match error {
            ssd::SnapshotError::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        });
    }
    Ok(result)
}
