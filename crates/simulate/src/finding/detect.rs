//! How findings are detected in a result.

use super::kind::{Command, Finding};
use crate::run::CellResult;
use experiment::twin::{self, Scale};

/// Relative difference of write amplification between two drive-writes up to which a run has settled.
pub const SETTLED: f64 = 0.02;

/// Share of a drive's pages below which what they say is not about a drive in use.
pub const USED_LEAST: f64 = 0.5;

/// Share of a drive's spare reclaim units from which on those that are open decide about its write amplification. Half of what is open is
/// room that garbage collection does not have: random writes of 64 KiB on `warp_default` have 4 % more write amplification where a tenth is
/// open, 10 % at a fifth, 20 % at two fifths and 60 % at four fifths.
pub const SPARE_HELD_MOST: f64 = 0.25;

impl CellResult {
    /// Everything that makes it doubtful, in the order of the kinds.
    pub fn findings(&self) -> Vec<Finding> {
        of(self)
    }

    /// Whether its write amplification may not be what a reader takes it for.
    pub fn is_doubtful(&self) -> bool {
        self.findings().iter().any(|finding| finding.is_doubt(Command::Run))
    }
}

/// Everything that makes a result doubtful, in the order of the kinds.
fn of(result: &CellResult) -> Vec<Finding> {
    let collected = result.stats.total().units_reclaimed > 0;
    let is_read_only = result.stats.total().host_bytes_written == 0;
    let share = result.share_in_use();
    let [read, unwritten] = result.pages_read;
    let options = || result.without_effect.clone();
    let kinds = [
        is_read_only.then_some(Finding::NothingWritten),
        partial_writes(result),
        (!collected && !is_read_only).then_some(Finding::NeverCollected),
        not_steady(result),
        if collected { of_the_end(result) } else { None },
        (share < USED_LEAST).then_some(Finding::LittleUsed { share }),
        (unwritten > 0).then(|| Finding::UnwrittenRead {
            share: unwritten as f64 / read as f64,
        }),
        replay_scaled(result),
        (!result.without_effect.is_empty()).then(|| Finding::WithoutEffect { options: options() }),
        not_converged(result),
        too_few_pages(result),
        if collected { little_spare(result) } else { None },
    ];
    kinds.into_iter().flatten().collect()
}

/// Whether write amplification is more than 1 before anything is copied.
fn partial_writes(result: &CellResult) -> Option<Finding> {
    let (total, unit_bytes) = (result.stats.total(), result.stats.page_bytes);
    let waf = (total.host_pages_written * unit_bytes) as f64 / total.host_bytes_written.max(1) as f64;
    (waf > 1.0 + SETTLED).then_some(Finding::PartialWrites { waf, unit_bytes })
}

/// Whether handles hold much of the spare while pages are copied.
fn little_spare(result: &CellResult) -> Option<Finding> {
    let totals = result.stats.totals();
    let copies = totals.media_bytes_written as f64 > totals.host_bytes_written as f64 * (1.0 + SETTLED);
    (copies && result.spare_held > SPARE_HELD_MOST).then_some(Finding::SpareHeld {
        share: result.spare_held,
    })
}

fn not_steady(result: &CellResult) -> Option<Finding> {
    (result.until.is_some() && !result.is_steady()).then_some(Finding::NotSteady { steady: result.steady })
}

/// Whether the end of a run is what its drive settles to, and whether the whole run says so. A steady state is an answer of its own.
fn of_the_end(result: &CellResult) -> Option<Finding> {
    if result.is_steady() {
        return None;
    }
    let [last, before] = result.last_drive_writes();
    let end = result.samples.last()?;
    let (last, whole) = (last?, end.media_bytes as f64 / end.host_bytes as f64);
    let finding = Finding::NotSettled { last, before, whole };
    if finding.difference().is_none_or(|difference| difference > SETTLED) {
        return Some(finding);
    }
    ((whole / last - 1.0).abs() > SETTLED).then_some(Finding::StartIncluded { last, whole })
}

/// The drive itself is not doubted, however far its twins are away.
fn not_converged(result: &CellResult) -> Option<Finding> {
    let compared = result.search?.compared;
    let agrees = compared.is_some_and(|compared| compared.agrees());
    (!agrees && result.scale != Scale::FULL).then_some(Finding::NotConverged {
        scale: result.scale,
        other: compared.map(|compared| compared.smaller),
        difference: compared.map(|compared| compared.difference),
    })
}

/// Requests keep their size and number on a scaled model in virtual time, so that they meet where they do not on the drive.
fn replay_scaled(result: &CellResult) -> Option<Finding> {
    let pace = result.timed.as_ref()?.trace.as_ref()?;
    let scale = result.scale;
    (pace.replay().is_some() && scale != Scale::FULL).then_some(Finding::ReplayScaled { scale })
}

fn too_few_pages(result: &CellResult) -> Option<Finding> {
    let pages = result.unit_pages;
    (result.scale != Scale::FULL && pages < twin::UNIT_PAGES_MIN).then_some(Finding::TooFewPages { pages })
}
