//! Warnings as sentences: a line per kind, with its remedy.

use std::collections::BTreeSet;

use super::kind::{KINDS, RunWarning, WarningCommand, percent};
use crate::run::RunResult;
use crate::steady::ROUNDS;
use experiment::scaled_model;

/// Lines about the warnings of results, one per kind: count, worst extent and remedy.
pub fn lines(results: &[RunResult], command: WarningCommand) -> Vec<String> {
    let of_results: Vec<RunWarning> = results.iter().flat_map(RunResult::warnings).collect();
    let keys: BTreeSet<_> = results.iter().map(|result| &result.key).collect();
    let things = if keys.len() == results.len() { "cells" } else { "runs" };
    // An answer of `whatif` always describes the end.
    let is_said = |warning: &&RunWarning| {
        command != WarningCommand::WhatIf || !matches!(warning, RunWarning::StartIncluded { .. })
    };
    let of_results: Vec<&RunWarning> = of_results.iter().filter(is_said).collect();
    let is_until_steady = results.iter().all(|result| result.steady_state);
    let is_stopped = results.iter().any(|result| !result.complete);
    let line = |name: &str| {
        let kind: Vec<&RunWarning> = of_results.iter().copied().filter(|warning| warning.name() == name).collect();
        let what = extent(&kind, command, is_until_steady)?;
        let is_short = ["never_collected", "steady_state_not_reached", "not_steady"].contains(&name);
        // The run stopped before its write limit.
        let what = match what.rsplit_once(". ").filter(|_| is_stopped && is_short) {
            Some((what, _)) => format!("{what}. The run was stopped early, so let it run to its end"),
            None => what,
        };
        let count = match results.len() {
            1 => String::new(),
            all => format!(" ({} of {all} {things})", kind.len()),
        };
        Some(format!("{}{count}: {what}", name.replace('_', " ")))
    };
    KINDS.into_iter().filter_map(line).collect()
}

/// Returns true if the results say nothing about their drives. Output then states this before the
/// numbers.
pub fn is_empty_of_meaning(results: &[RunResult]) -> bool {
    let says_nothing =
        |warning: &RunWarning| matches!(warning, RunWarning::NeverCollected | RunWarning::NothingWritten);
    let is_new = |result: &RunResult| result.warnings().iter().any(says_nothing);
    !results.is_empty() && results.iter().all(is_new)
}

/// Worst extent of warnings of one kind. `None` without warnings.
pub(super) fn extent(warnings: &[&RunWarning], command: WarningCommand, is_until_steady: bool) -> Option<String> {
    let [write, precondition, scale, units] = command.remedies();
    let more = command.more_writes(is_until_steady);
    let differences = || warnings.iter().filter_map(|warning| warning.difference());
    let shares = || warnings.iter().filter_map(|warning| warning.share());
    let up_to = if warnings.len() > 1 { "up to " } else { "" };
    let from = if warnings.len() > 1 { "as little as " } else { "" };
    let most = differences().reduce(f64::max).map(percent);
    let all_compared = differences().count() == warnings.len();
    Some(match (*warnings.first()?, warnings.len()) {
        (RunWarning::NeverCollected, _) => {
            format!("no reclaim unit was collected, so WAF does not include garbage collection. {more}")
        }
        (RunWarning::NothingWritten, _) => "the host wrote nothing, so there is no write amplification".to_string(),
        (RunWarning::PartialWrites { unit_bytes, .. }, _) => {
            let waf = |warning: &&RunWarning| match warning {
                RunWarning::PartialWrites { waf, .. } => Some(*waf),
                _ => None,
            };
            let most = warnings.iter().filter_map(waf).reduce(f64::max)?;
            format!(
                "writes smaller than the mapping unit of {unit_bytes} bytes, or not aligned to it, program whole \
                 units. This alone makes WAF {up_to}{most:.3}. Write whole units (bs, blockalign)"
            )
        }
        (RunWarning::SteadyStateNotReached { .. }, _) => match most {
            Some(most) if all_compared => {
                format!("the last {ROUNDS} drive writes are {up_to}{most} apart. Allow more with {write}")
            }
            _ => format!("there are fewer than {ROUNDS} drive writes. Allow more with {write}"),
        },
        (RunWarning::NotSteady { last, before: Some(before), whole }, 1) => format!(
            "WAF is {whole:.3} over the run, and {before:.3} and {last:.3} in the last two drive writes. It still \
             changes, so the last value is nearest to the answer. {more}"
        ),
        (RunWarning::NotSteady { .. }, _) => match most {
            Some(most) if all_compared => {
                format!("the last two drive writes are {up_to}{most} apart, so WAF still changes. {more}")
            }
            Some(most) => format!("the last two drive writes are {up_to}{most} apart, if a run has two. {more}"),
            None => format!("there are fewer than two drive writes. {more}"),
        },
        (RunWarning::StartIncluded { last, whole }, 1) => {
            format!(
                "WAF is {whole:.3} over the run, and {last:.3} at its end. The end is the answer for a drive in \
                     use"
            )
        }
        (RunWarning::StartIncluded { .. }, _) => {
            format!(
                "WAF over the run differs by {up_to}{} from WAF at its end. The end is the answer for a drive in use",
                most?
            )
        }
        (RunWarning::LittleUsed { .. }, _) => {
            let least = shares().reduce(f64::min).map(percent)?;
            let remedy = command.fuller_drive();
            format!("{from}{least} of the drive holds data, so the rest acts as spare flash. {remedy}")
        }
        (RunWarning::UnwrittenRead { .. }, _) => {
            let most = shares().reduce(f64::max).map(percent)?;
            format!(
                "{up_to}{most} of the pages read were never written, and such reads take no time in the flash. Fill \
                 the drive first ({precondition})"
            )
        }
        (RunWarning::ReplayScaled { scale }, _) => format!(
            "on a scaled model, here {scale}, positions of the trace overlap, while requests keep their size and \
             number. Neither latencies nor WAF are those of the drive. {}",
            match command {
                WarningCommand::Run | WarningCommand::WhatIf =>
                    "Replay on a drive that the trace fills (--capacity), without --scale",
                WarningCommand::Python => "Replay on a drive that the trace fills (capacity_bytes), without scale",
                WarningCommand::Studio => "Replay on a drive that the trace fills (`scale` 1/1)",
            }
        ),
        (RunWarning::WithoutEffect { .. }, _) => {
            let options = texts(warnings).join(", ");
            format!("the model ignores {options}, which would have an effect on a drive")
        }
        (RunWarning::NotConverged { .. }, _) => match most {
            Some(most) => format!("WAF differs by {up_to}{most} from that of the next smaller scaled model"),
            None => "there is no other scaled model to compare with".to_string(),
        },
        (RunWarning::TooFewPages { .. }, _) => {
            let pages = |warning: &&RunWarning| match warning {
                RunWarning::TooFewPages { pages } => Some(*pages),
                _ => None,
            };
            let fewest = warnings.iter().filter_map(pages).min()?;
            format!(
                "a reclaim unit has {fewest} pages, and a scaled model needs at least {}. Use a larger model ({scale})",
                scaled_model::UNIT_PAGES_MIN
            )
        }
        (RunWarning::TooManyOpenUnits { .. }, _) => {
            let most = shares().reduce(f64::max).map(percent)?;
            format!(
                "handles have {up_to}{most} of the spare reclaim units open. WAF shows a drive too small for its \
                 handles, not the effect of placement. Use fewer handles or smaller reclaim units ({units})"
            )
        }
        (RunWarning::FewerSlots { .. }, _) => {
            let merged = |warning: &&RunWarning| match warning {
                RunWarning::FewerSlots { merged } => Some(*merged),
                _ => None,
            };
            let most = warnings.iter().filter_map(merged).max()?;
            let untimed = match command {
                WarningCommand::Run => " or no virtual time (--untimed)",
                WarningCommand::Python => " or no virtual time (timed=False)",
                WarningCommand::WhatIf | WarningCommand::Studio => "",
            };
            format!(
                "a slot of the cache stands for {up_to}{most} of the drive's, because chunks keep their size in \
                 virtual time and on arrays, and are never smaller than a mapping unit. Hit ratio and WAF may differ \
                 from the drive's. Use a larger model ({scale}){untimed}"
            )
        }
        (RunWarning::EventsMissed { .. }, _) => {
            let events = texts(warnings).join("\", \"");
            format!("the run ended before \"{events}\". Write more ({write}) or move the event")
        }
    })
}

/// Options or events that warnings of one kind name, each once and in order.
fn texts<'a>(warnings: &[&'a RunWarning]) -> Vec<&'a str> {
    let texts = warnings.iter().flat_map(|warning| match warning {
        RunWarning::WithoutEffect { options: texts } | RunWarning::EventsMissed { events: texts } => texts.as_slice(),
        _ => &[],
    });
    let distinct: BTreeSet<&str> = texts.map(String::as_str).collect();
    distinct.into_iter().collect()
}
