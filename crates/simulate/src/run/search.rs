//! Scale search: runs larger and larger scaled models of a cell's drive until two agree.
//!
//! ```text
//! RunPlan (smallest model, scales of the others) -> a run on each
//!     -> result of the first that agrees with its predecessor, and their difference
//! ```
//!
//! Two models agree when write amplification differs by at most [`AGREEMENT`](super::AGREEMENT),
//! both over the whole run and at its end. Each cell has its own search. The search ignores
//! latencies. In virtual time a scaled model is a different drive, so planning rejects a
//! search there.

use super::plan::RunPlan;
use super::progress::ProgressObserver;
use super::result::{RunResult, ScaleComparison, ScaleSearch};
use experiment::error::LabError;
use experiment::scaled_model::Scale;

#[derive(Debug, PartialEq)]
struct SearchResult<R> {
    /// Result of the largest model that ran to its end.
    result: R,
    search: ScaleSearch,
    stopped: bool,
}

/// Runs each scale in turn until one agrees with its predecessor. `amplifications` returns the
/// values to compare, or `None` for a stopped run.
fn search<R>(
    scales: &[Scale],
    mut run: impl FnMut(Scale) -> Result<R, LabError>,
    amplifications: impl Fn(&R) -> Option<[f64; 2]>,
) -> Result<SearchResult<R>, LabError> {
    let (first, larger) = scales.split_first().expect("a search has at least one scaled model");
    let mut found = SearchResult { result: run(*first)?, search: ScaleSearch { compared: None }, stopped: false };
    let mut smaller = *first;
    for &scale in larger {
        assert!(scale.0 < smaller.0, "a search goes from small scaled models to large ones");
        let before = amplifications(&found.result);
        let next = before.map(|_| run(scale)).transpose()?;
        let after = next.as_ref().and_then(&amplifications);
        let (Some(before), Some(next), Some(after)) = (before, next, after) else {
            found.stopped = true;
            return Ok(found);
        };
        let comparison = ScaleComparison { smaller, difference: difference(before, after) };
        found.result = next;
        found.search.compared = Some(comparison);
        if comparison.agrees() {
            break;
        }
        smaller = scale;
    }
    Ok(found)
}

/// Larger of the two relative differences.
fn difference(smaller: [f64; 2], larger: [f64; 2]) -> f64 {
    let pairs = smaller.into_iter().zip(larger);
    let differences = pairs.map(|(smaller, larger)| (smaller / larger - 1.0).abs());
    differences.fold(0.0, f64::max)
}

/// Runs a plan once on its scaled model, or on several until two agree.
pub(super) fn run(
    plan: &RunPlan,
    run_plan: impl Fn(&RunPlan) -> Result<RunResult, LabError>,
    watch: &dyn ProgressObserver,
) -> Result<RunResult, LabError> {
    if plan.scales.is_empty() {
        return run_plan(plan);
    }
    let tail_drive_writes = plan.cell().run.tail_drive_writes;
    let run_scaled = |scale: Scale| {
        if scale == plan.scale {
            return run_plan(plan);
        }
        let larger = plan.larger(scale)?;
        // `expected_work` already included the first two models.
        if plan.scales.get(1) != Some(&scale) {
            watch.add_expected(larger.total_work());
        }
        run_plan(&larger)
    };
    let amplifications = |result: &RunResult| {
        let tail = result.tail_write_amplification(tail_drive_writes);
        result.complete.then_some([result.write_amplification(), tail])
    };
    let found = search(&plan.scales, run_scaled, amplifications)?;
    Ok(RunResult { complete: found.result.complete && !found.stopped, search: Some(found.search), ..found.result })
}

#[cfg(test)]
mod tests {
    use super::super::AGREEMENT;
    use super::*;

    /// Builds a search in which scale 1/d measures the values at d. Missing scales count as
    /// stopped.
    fn searched(measured: &[(u32, [f64; 2])]) -> (SearchResult<u32>, Vec<u32>) {
        let scales = [256, 64, 16, 4, 1].map(Scale);
        let mut runs = Vec::new();
        let run = |scale: Scale| {
            runs.push(scale.0);
            Ok(scale.0)
        };
        let amplifications = |denominator: &u32| {
            let known = measured.iter().find(|(known, _)| known == denominator);
            known.map(|(_, amplifications)| *amplifications)
        };
        let found = search(&scales, run, amplifications).expect("every run works");
        (found, runs)
    }

    fn compared(found: &SearchResult<u32>) -> (u32, f64) {
        let compared = found.search.compared.expect("two scaled models ran");
        (compared.smaller.0, compared.difference)
    }

    #[test]
    fn the_first_scaled_model_that_agrees_with_the_one_before_is_taken() {
        let (found, runs) = searched(&[(256, [1.0, 1.1]), (64, [1.2, 1.5]), (16, [1.21, 1.511])]);
        assert_eq!(runs, [256, 64, 16], "no larger one is run");
        assert_eq!((found.result, found.stopped), (16, false));
        let (smaller, difference) = compared(&found);
        assert_eq!(smaller, 64);
        assert!((difference - (1.0 - 1.2 / 1.21)).abs() < 1e-12, "{difference}");
    }

    #[test]
    fn the_end_of_the_run_has_to_agree_as_well() {
        let (found, runs) = searched(&[(256, [1.2, 1.5]), (64, [1.2, 1.6]), (16, [1.2, 1.6])]);
        assert_eq!((runs, found.result), (vec![256, 64, 16], 16));
        assert_eq!(compared(&found), (64, 0.0));
    }

    #[test]
    fn without_agreement_the_largest_is_taken() {
        let rising = [256, 64, 16, 4, 1].map(|denominator| (denominator, [1.0, 1.0 + 1.0 / f64::from(denominator)]));
        let (found, runs) = searched(&rising);
        assert_eq!((runs.len(), found.result), (5, 1));
        let (smaller, difference) = compared(&found);
        assert_eq!(smaller, 4);
        assert!(difference > AGREEMENT && !found.search.compared.expect("compared").agrees());
    }

    #[test]
    fn a_search_that_is_stopped_keeps_what_ran_to_its_end() {
        let (found, runs) = searched(&[(256, [1.2, 1.5]), (64, [1.4, 1.6])]);
        assert_eq!(runs, [256, 64, 16], "the third was stopped");
        assert_eq!((found.result, found.stopped, compared(&found).0), (64, true, 256));
        let (found, runs) = searched(&[(256, [1.2, 1.5])]);
        assert_eq!((runs, found.result, found.stopped), (vec![256, 64], 256, true));
        assert_eq!(found.search.compared, None);
        let (found, runs) = searched(&[]);
        assert_eq!((runs, found.result, found.stopped), (vec![256], 256, true));
    }

    #[test]
    fn an_error_ends_the_search() {
        let run = |_| Err::<u32, _>(LabError::invalid("cell", "too large"));
        let error = search(&[Scale(4), Scale(1)], run, |_| None).expect_err("it fails");
        assert_eq!(error.to_string(), "cell: too large");
    }
}
