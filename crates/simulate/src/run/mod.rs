//! Execution of cells: each run drives a device with a workload and measures it.
//!
//! ```text
//! Cell -> plan (rejects impossible cells) -> work -> CellResult
//!
//! Workload -> batches of requests -> Device<Recorder> -> Stats, GC log, samples -\
//! timed::Runner -> requests in virtual time -/            \-> latencies, event times -> CellResult
//! ```
//!
//! A device with timing runs the jobs in virtual time (`timed`). Any other device runs them as fast
//! as it takes requests. `search` finds the scale of a cell on several scaled models. Cells run in
//! parallel, limited by cores and memory. Each is deterministic. A caller can stop a run, which
//! then returns its measurements so far.

mod checkpoint;
mod drive;
mod fill;
mod memory;
mod options;
mod plan;
mod progress;
mod result;
mod search;
mod series;
mod untimed;
mod view;
mod work;

use std::borrow::Borrow;

use rayon::prelude::*;

use experiment::error::LabError;
use experiment::twin::TwinOrigin;
use memory::Memory;

pub(crate) use checkpoint::Checkpoint;
pub use memory::memory_available;
pub use options::Options;
pub use plan::{MemoryNeed, RefusedCell, RunPlan, prepare, prepare_possible, prepare_within};
pub use progress::{Progress, Watch};
pub use result::{AGREEMENT, CellResult, Sample, ScaleComparison, ScaleSearch};
pub use view::Phase;
pub use work::{Position, UNWRITTEN_REQUESTS_MAX};
pub(crate) use work::{Run, STEP_PAGES, Stride};

/// Runs cells in parallel within a memory budget. Returns their results in the same order.
///
/// # Errors
/// A cell needs too much memory, or its workload cannot be read.
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

/// Like [`run_all`], with all options.
///
/// # Errors
/// As [`run_all`]. A placement policy fails. A save is requested for several runs or a scale
/// search. A snapshot cannot be read.
pub fn run_all_with<P: Borrow<RunPlan> + Sync>(
    plans: &[P],
    options: Options<'_>,
    watch: &dyn Watch,
) -> Result<Vec<CellResult>, LabError> {
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
    watch.expects(cells().map(RunPlan::expected_work).sum());
    watch.expects_cells(plans.len() as u64);
    let memory = Memory::new(options.memory_budget_bytes);
    // Each run gets its own thread first. Runs then use spare threads of the pool.
    let threads = rayon::current_num_threads() / plans.len().max(1);
    let run_twin = |plan: &RunPlan| {
        let _share = memory.take(plan.twin_bytes);
        run_cell(plan, options, threads, watch)
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
    // Threads take one cell at a time. A long cell at the end does not wait behind another.
    let results: Vec<Option<_>> = plans.par_iter().with_max_len(1).map(run).collect();
    results.into_iter().flatten().collect()
}

/// Runs a cell on a new device or on that of its snapshot, with up to `threads` threads if useful.
/// Saves the device if requested.
fn run_cell(plan: &RunPlan, options: Options<'_>, threads: usize, watch: &dyn Watch) -> Result<CellResult, LabError> {
    let mut run = Run::begin(plan, options)?;
    run.use_threads(threads);
    while run.step(Stride::LONGEST, watch)? {}
    let mut result = run.result();
    if let Some(path) = options.save {
        let origin = TwinOrigin {
            scale: plan.scale,
            device: plan.cell().device.clone(),
        };
        let saved = run.into_device().save_with_note(path, &origin.note());
        // A failed save keeps the result.
        result.unsaved = saved.err().map(|error| match error {
            ssd::SnapshotError::Io { source, .. } => source.to_string(),
            other => other.to_string(),
        });
    }
    Ok(result)
}
