//! Detection of findings in a result.

use super::kind::{RunWarning, WarningCommand};
use crate::run::RunResult;
use experiment::scaled_model::{self, Scale};

/// Largest relative difference of write amplification between two drive writes of a converged run.
pub const SETTLED: f64 = 0.02;

/// Minimum share of a drive's pages with data. Below it, a result does not describe a drive in use.
pub const USED_LEAST: f64 = 0.5;

/// Share of open reclaim units among the over-provisioned ones above which they dominate write
/// amplification. Half of the open space is unusable for garbage collection. Random writes of 64
/// KiB on `warp_default` have 4 % more write amplification at a tenth, 10 % at a fifth, 20 % at two
/// fifths and 60 % at four fifths.
pub const SPARE_HELD_MOST: f64 = 0.25;

impl RunResult {
    /// All findings of the result, in the order of the kinds.
    pub fn findings(&self) -> Vec<RunWarning> {
        detect_all(self)
    }

    /// Returns true if its write amplification may be misleading.
    pub fn is_doubtful(&self) -> bool {
        self.findings()
            .iter()
            .any(|finding| finding.is_doubt(WarningCommand::Run))
    }
}

/// All findings of a result, in the order of the kinds.
fn detect_all(result: &RunResult) -> Vec<RunWarning> {
    let collected = result.stats.total().units_reclaimed > 0;
    let is_read_only = result.stats.total().host_bytes_written == 0;
    let share = result.share_in_use();
    let [read, unwritten] = result.pages_read;
    let kinds = [
        is_read_only.then_some(RunWarning::NothingWritten),
        partial_writes(result),
        (!collected && !is_read_only).then_some(RunWarning::NeverCollected),
        not_steady(result),
        if collected { detect_end(result) } else { None },
        (share < USED_LEAST).then_some(RunWarning::LittleUsed { share }),
        (unwritten > 0).then(|| RunWarning::UnwrittenRead {
            share: unwritten as f64 / read as f64,
        }),
        replay_scaled(result),
        (!result.without_effect.is_empty()).then(|| RunWarning::WithoutEffect {
            options: result.without_effect.clone(),
        }),
        not_converged(result),
        too_few_pages(result),
        if collected { little_spare(result) } else { None },
    ];
    kinds.into_iter().flatten().collect()
}

/// Detects write amplification above 1 before any copy.
fn partial_writes(result: &RunResult) -> Option<RunWarning> {
    let (total, unit_bytes) = (result.stats.total(), result.stats.page_bytes);
    let waf = (total.host_pages_written * unit_bytes) as f64 / total.host_bytes_written.max(1) as f64;
    (waf > 1.0 + SETTLED).then_some(RunWarning::PartialWrites { waf, unit_bytes })
}

/// Detects handles that hold many over-provisioned units while pages are copied.
fn little_spare(result: &RunResult) -> Option<RunWarning> {
    let totals = result.stats.totals();
    let copies = totals.media_bytes_written as f64 > totals.host_bytes_written as f64 * (1.0 + SETTLED);
    (copies && result.spare_held > SPARE_HELD_MOST).then_some(RunWarning::SpareHeld {
        share: result.spare_held,
    })
}

fn not_steady(result: &RunResult) -> Option<RunWarning> {
    (result.steady_state && !result.is_steady()).then_some(RunWarning::NotSteady { steady: result.steady })
}

/// Detects an end that has not converged, or a whole run that differs from its converged end. A run
/// with steady state has neither finding.
fn detect_end(result: &RunResult) -> Option<RunWarning> {
    if result.is_steady() {
        return None;
    }
    let [last, before] = result.last_drive_writes();
    let end = result.samples.last()?;
    let (last, whole) = (last?, end.media_bytes as f64 / end.host_bytes as f64);
    let finding = RunWarning::NotSettled { last, before, whole };
    if finding.difference().is_none_or(|difference| difference > SETTLED) {
        return Some(finding);
    }
    ((whole / last - 1.0).abs() > SETTLED).then_some(RunWarning::StartIncluded { last, whole })
}

/// Detects scaled models that disagree. The full-size drive is never doubtful.
fn not_converged(result: &RunResult) -> Option<RunWarning> {
    let compared = result.search?.compared;
    let agrees = compared.is_some_and(|compared| compared.agrees());
    (!agrees && result.scale != Scale::FULL).then_some(RunWarning::NotConverged {
        scale: result.scale,
        other: compared.map(|compared| compared.smaller),
        difference: compared.map(|compared| compared.difference),
    })
}

/// Detects a timed replay on a scaled model. Requests keep size and number there, so they collide
/// where the full drive has no collision.
fn replay_scaled(result: &RunResult) -> Option<RunWarning> {
    let pace = result.timed.as_ref()?.trace.as_ref()?;
    let scale = result.scale;
    (pace.replay().is_some() && scale != Scale::FULL).then_some(RunWarning::ReplayScaled { scale })
}

fn too_few_pages(result: &RunResult) -> Option<RunWarning> {
    let pages = result.unit_pages;
    (result.scale != Scale::FULL && pages < scaled_model::UNIT_PAGES_MIN).then_some(RunWarning::TooFewPages { pages })
}
