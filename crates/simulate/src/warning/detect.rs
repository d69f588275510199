//! Detection of warnings in a result.

use applications::kvcache::MERGED_SLOTS;

use super::kind::{RunWarning, WarningCommand};
use crate::run::RunResult;
use experiment::scaled_model::{self, Scale};

/// Relative difference of write amplification up to which no warning is given.
pub const WAF_TOLERANCE: f64 = 0.02;

/// Minimum share of a drive's pages with data. Below it, a result does not describe a drive in use.
pub const USED_SHARE_MIN: f64 = 0.5;

/// Share of open reclaim units among the over-provisioned ones above which they dominate write
/// amplification. Half of the open space is unusable for garbage collection. Random writes of 64
/// KiB on `warp_default` have 4 % more write amplification at a tenth, 10 % at a fifth, 20 % at two
/// fifths and 60 % at four fifths.
pub const OPEN_UNIT_SHARE_MAX: f64 = 0.25;

impl RunResult {
    /// All warnings of the result, in the order of the kinds.
    pub fn warnings(&self) -> Vec<RunWarning> {
        let collected = self.stats.total().units_reclaimed > 0;
        let is_read_only = self.stats.total().host_bytes_written == 0;
        let share = self.share_in_use();
        let [read, unwritten] = self.pages_read;
        let kinds = [
            is_read_only.then_some(RunWarning::NothingWritten),
            partial_writes(self),
            (!collected && !is_read_only).then_some(RunWarning::NeverCollected),
            steady_state_not_reached(self),
            if collected { detect_end(self) } else { None },
            (share < USED_SHARE_MIN).then_some(RunWarning::LittleUsed { share }),
            (unwritten > 0).then(|| RunWarning::UnwrittenRead { share: unwritten as f64 / read as f64 }),
            replay_scaled(self),
            (!self.without_effect.is_empty())
                .then(|| RunWarning::WithoutEffect { options: self.without_effect.clone() }),
            not_converged(self),
            too_few_pages(self),
            fewer_slots(self),
            if collected { too_many_open_units(self) } else { None },
            events_missed(self),
        ];
        kinds.into_iter().flatten().collect()
    }

    /// Returns true if its write amplification may be misleading.
    pub fn is_doubtful(&self) -> bool {
        self.warnings().iter().any(|warning| warning.is_doubt(WarningCommand::Run))
    }
}

/// Detects write amplification above 1 before any copy.
fn partial_writes(result: &RunResult) -> Option<RunWarning> {
    let (total, unit_bytes) = (result.stats.total(), result.stats.page_bytes);
    let waf = (total.host_pages_written * unit_bytes) as f64 / total.host_bytes_written.max(1) as f64;
    (waf > 1.0 + WAF_TOLERANCE).then_some(RunWarning::PartialWrites { waf, unit_bytes })
}

/// Detects handles that keep many over-provisioned units open while pages are copied.
fn too_many_open_units(result: &RunResult) -> Option<RunWarning> {
    let total = result.stats.total();
    let copies = total.gc_pages_copied as f64 > total.host_pages_written as f64 * WAF_TOLERANCE;
    (copies && result.open_unit_share > OPEN_UNIT_SHARE_MAX)
        .then_some(RunWarning::TooManyOpenUnits { share: result.open_unit_share })
}

fn steady_state_not_reached(result: &RunResult) -> Option<RunWarning> {
    (result.steady_state && !result.is_steady()).then_some(RunWarning::SteadyStateNotReached { steady: result.steady })
}

/// Detects an end that has not converged, or a whole run that differs from its converged end. A run
/// with steady state has neither warning.
fn detect_end(result: &RunResult) -> Option<RunWarning> {
    if result.is_steady() {
        return None;
    }
    let [last, before] = result.last_drive_writes();
    let end = result.samples.last()?;
    let (last, whole) = (last?, end.media_bytes as f64 / end.host_bytes as f64);
    let warning = RunWarning::NotSteady { last, before, whole };
    if warning.difference().is_none_or(|difference| difference > WAF_TOLERANCE) {
        return Some(warning);
    }
    ((whole / last - 1.0).abs() > WAF_TOLERANCE).then_some(RunWarning::StartIncluded { last, whole })
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

/// Detects tiers of a key-value cache whose chunks could not shrink with the model. Their sessions
/// shrink in number, but not below one, and chunks are larger relative to reclaim units.
fn fewer_slots(result: &RunResult) -> Option<RunWarning> {
    let merged = result.measures.iter().filter(|measure| measure.name.ends_with(MERGED_SLOTS));
    merged.map(|measure| measure.value as u64).max().map(|merged| RunWarning::FewerSlots { merged })
}

fn events_missed(result: &RunResult) -> Option<RunWarning> {
    let array = result.array.as_ref().filter(|array| array.events_done < array.settings.events.len())?;
    let events = array.settings.events[array.events_done..].iter().map(|event| String::from(*event)).collect();
    Some(RunWarning::EventsMissed { events })
}
