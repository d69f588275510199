//! Findings: what makes a write amplification doubtful.
//!
//! ```text
//! CellResult -> of -> Finding -> rows (a line for each kind), report, JSON, tables of cells
//! ```
//!
//! A finding says that a number may not be what a reader takes it for: it judges the run, not the drive, and changes
//! nothing in the result. Claims about the paper are elsewhere (`judge`). `docs/results.md` explains every kind.

use std::fmt;

use serde::Serialize;

use crate::run::CellResult;
use crate::twin::{self, Scale};

/// Relative difference of write amplification between two drive-writes up to which a run has settled.
pub const SETTLED: f64 = 0.02;

/// What makes a result doubtful.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Finding {
    /// Nothing was reclaimed, so the write amplification of 1 says nothing.
    NeverCollected,
    /// Write amplification still changes, or the run is too short to say.
    NotSettled {
        /// That of the last drive-write.
        last: f64,
        /// That of the drive-write before it; `None` if there were not two.
        before: Option<f64>,
    },
    /// A search for a scale ended without two twins that agree.
    NotConverged {
        /// The largest twin that ran.
        scale: Scale,
        /// The next smaller one, if another one ran.
        other: Option<Scale>,
        /// Relative difference between the two.
        difference: Option<f64>,
    },
    /// The reclaim units of the twin are too small for it to behave like the drive.
    TooFewPages {
        /// Pages of the smallest reclaim units.
        pages: u64,
    },
}

/// Everything that makes a result doubtful, in the order of the kinds.
pub(crate) fn of(result: &CellResult) -> Vec<Finding> {
    let collected = result.stats.total().units_reclaimed > 0;
    let kinds = [
        (!collected).then_some(Finding::NeverCollected),
        if collected { not_settled(result) } else { None },
        not_converged(result),
        too_few_pages(result),
    ];
    kinds.into_iter().flatten().collect()
}

fn not_settled(result: &CellResult) -> Option<Finding> {
    let [last, before] = result.last_drive_writes();
    let finding = Finding::NotSettled { last: last?, before };
    (finding.difference().is_none_or(|difference| difference > SETTLED)).then_some(finding)
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

fn too_few_pages(result: &CellResult) -> Option<Finding> {
    let pages = result.unit_pages;
    (result.scale != Scale::FULL && pages < twin::UNIT_PAGES_MIN).then_some(Finding::TooFewPages { pages })
}

impl Finding {
    /// The name of its kind in data: that in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Finding::NeverCollected => "never_collected",
            Finding::NotSettled { .. } => "not_settled",
            Finding::NotConverged { .. } => "not_converged",
            Finding::TooFewPages { .. } => "too_few_pages",
        }
    }

    /// How far two numbers that should agree are apart, as a share; `None` if there are not two.
    fn difference(&self) -> Option<f64> {
        match *self {
            Finding::NotSettled { last, before } => before.map(|before| (last / before - 1.0).abs()),
            Finding::NotConverged { difference, .. } => difference,
            Finding::NeverCollected | Finding::TooFewPages { .. } => None,
        }
    }
}

/// Of one result, in a few words.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name().replace('_', " "))?;
        let percent = |share: f64| share * 100.0;
        match *self {
            Finding::NeverCollected => Ok(()),
            Finding::NotSettled {
                last,
                before: Some(before),
            } => write!(out, " ({before:.3}, then {last:.3})"),
            Finding::NotSettled { before: None, .. } => out.write_str(" (fewer than two drive-writes)"),
            Finding::NotConverged {
                other: Some(other),
                difference: Some(difference),
                ..
            } => {
                write!(out, " ({:.1} % from {other})", percent(difference))
            }
            Finding::NotConverged { .. } => out.write_str(" (no other twin to compare with)"),
            Finding::TooFewPages { pages } => write!(out, " ({pages} in a reclaim unit)"),
        }
    }
}

/// The findings of results, a line for each kind: how many have it and how bad it is at most.
pub fn lines(results: &[CellResult]) -> Vec<String> {
    let of_results: Vec<Finding> = results.iter().flat_map(CellResult::findings).collect();
    let keys: std::collections::BTreeSet<_> = results.iter().map(|result| &result.key).collect();
    let things = if keys.len() == results.len() { "cells" } else { "runs" };
    let kinds = ["never_collected", "not_settled", "not_converged", "too_few_pages"];
    let line = |name: &str| {
        let kind: Vec<Finding> = of_results
            .iter()
            .filter(|finding| finding.name() == name)
            .copied()
            .collect();
        let what = extent(&kind)?;
        let count = match results.len() {
            1 => String::new(),
            all => format!("{} of {all} {things}; ", kind.len()),
        };
        Some(format!("{}: {count}{what}", name.replace('_', " ")))
    };
    kinds.into_iter().filter_map(line).collect()
}

/// How bad findings of one kind are at most; `None` if there are none.
fn extent(findings: &[Finding]) -> Option<String> {
    let differences = || findings.iter().filter_map(Finding::difference);
    let most = differences()
        .reduce(f64::max)
        .map(|share| format!("{:.1} %", share * 100.0));
    let all_compared = differences().count() == findings.len();
    let up_to = if findings.len() > 1 { "up to " } else { "" };
    Some(match findings.first()? {
        Finding::NeverCollected => "nothing was reclaimed, so a WAF of 1 says nothing".to_string(),
        Finding::NotSettled { .. } => match most {
            Some(most) if all_compared => format!("the last two drive-writes are {up_to}{most} apart"),
            Some(most) => format!("the last two drive-writes are {up_to}{most} apart, if there are two"),
            None => "fewer than two drive-writes".to_string(),
        },
        Finding::NotConverged { .. } => match most {
            Some(most) => format!("{up_to}{most} from the next smaller twin"),
            None => "no other twin to compare with".to_string(),
        },
        Finding::TooFewPages { .. } => {
            let pages = |finding: &Finding| match finding {
                Finding::TooFewPages { pages } => Some(*pages),
                _ => None,
            };
            let fewest = findings.iter().filter_map(pages).min()?;
            format!(
                "{fewest} in a reclaim unit, twins are good from {}",
                twin::UNIT_PAGES_MIN
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use crate::run::{Sample, ScaleComparison, ScaleSearch};

    /// A result of a run that had settled.
    fn settled() -> CellResult {
        let mut result = sample::results().remove(2);
        let last = result.samples.len() as u64;
        let (host, media) = (result.capacity_bytes / 20, result.capacity_bytes / 10);
        for (index, sample) in (1..=last).zip(&mut result.samples) {
            (sample.host_bytes, sample.media_bytes) = (index * host, index * media);
        }
        assert_eq!(result.findings(), []);
        result
    }

    fn compared(result: &mut CellResult, difference: Option<f64>) {
        let compared = difference.map(|difference| ScaleComparison {
            smaller: Scale(result.scale.0 * 4),
            difference,
        });
        result.search = Some(ScaleSearch { compared });
    }

    #[test]
    fn what_was_never_collected_says_nothing() {
        let mut result = settled();
        for owner in result.stats.handles.iter_mut().chain([&mut result.stats.shared]) {
            owner.units_reclaimed = 0;
        }
        result.samples.truncate(10);
        assert_eq!(
            result.findings(),
            [Finding::NeverCollected],
            "whether it settled is no question"
        );
        assert_eq!(
            lines(&[result]),
            ["never collected: nothing was reclaimed, so a WAF of 1 says nothing"]
        );
    }

    #[test]
    fn a_run_has_settled_when_two_drive_writes_agree() {
        let media_of_the_last = |share: f64| {
            let mut result = settled();
            let capacity = result.capacity_bytes;
            let end = result.samples.last().expect("samples").host_bytes;
            let more = |sample: &Sample| sample.host_bytes.saturating_sub(end - capacity) as f64 * 2.0 * share;
            for sample in &mut result.samples {
                sample.media_bytes += more(sample) as u64;
            }
            result
        };
        assert_eq!(media_of_the_last(0.019).findings(), []);
        let result = media_of_the_last(0.05);
        let [
            Finding::NotSettled {
                last,
                before: Some(before),
            },
        ] = result.findings()[..]
        else {
            panic!("{:?}", result.findings());
        };
        assert!(
            (last - 2.1).abs() < 1e-6 && (before - 2.0).abs() < 1e-6,
            "{before}, {last}"
        );
        assert_eq!(result.findings()[0].to_string(), "not settled (2.000, then 2.100)");
        assert_eq!(
            lines(std::slice::from_ref(&result)),
            ["not settled: the last two drive-writes are 5.0 % apart"]
        );

        let mut short = settled();
        short.samples.truncate(39);
        let findings = short.findings();
        assert!(
            matches!(findings[..], [Finding::NotSettled { before: None, .. }]),
            "{findings:?}"
        );
        assert_eq!(
            lines(std::slice::from_ref(&short)),
            ["not settled: fewer than two drive-writes"]
        );
        short.samples.push(settled().samples[39].clone());
        assert_eq!(short.findings(), [], "two drive-writes are enough");

        let mut other = media_of_the_last(0.08);
        other.key.variant = "other".to_string();
        let mut third = settled();
        third.key.variant = "third".to_string();
        let all = [result, other, third];
        let line = "not settled: 2 of 3 cells; the last two drive-writes are up to 8.0 % apart";
        assert_eq!(lines(&all), [line]);
        assert!(line.len() <= 80);
    }

    #[test]
    fn a_search_without_agreement_has_not_converged() {
        let mut result = settled();
        compared(&mut result, Some(0.0099));
        assert_eq!(result.findings(), []);
        compared(&mut result, Some(0.032));
        let not_converged = Finding::NotConverged {
            scale: Scale(64),
            other: Some(Scale(256)),
            difference: Some(0.032),
        };
        assert_eq!(result.findings(), [not_converged]);
        assert_eq!(not_converged.to_string(), "not converged (3.2 % from 1/256)");
        assert_eq!(
            lines(std::slice::from_ref(&result)),
            ["not converged: 3.2 % from the next smaller twin"]
        );
        compared(&mut result, None);
        assert_eq!(
            lines(std::slice::from_ref(&result)),
            ["not converged: no other twin to compare with"]
        );
        result.scale = Scale::FULL;
        assert_eq!(result.findings(), [], "the drive itself needs no other");
    }

    #[test]
    fn twins_with_small_reclaim_units_have_too_few_pages() {
        let mut result = settled();
        result.unit_pages = 1023;
        assert_eq!(result.findings(), [Finding::TooFewPages { pages: 1023 }]);
        assert_eq!(
            lines(std::slice::from_ref(&result)),
            ["too few pages: 1023 in a reclaim unit, twins are good from 1024"]
        );
        result.scale = Scale::FULL;
        assert_eq!(result.findings(), [], "a drive may have what it has");
    }

    #[test]
    fn a_finding_is_its_name_and_its_numbers() {
        let finding = Finding::NotSettled {
            last: 1.5,
            before: None,
        };
        let json = serde_json::to_value(finding).expect("it serializes");
        assert_eq!(
            json,
            serde_json::json!({ "name": "not_settled", "last": 1.5, "before": null })
        );
        for finding in [Finding::NeverCollected, finding, Finding::TooFewPages { pages: 1 }] {
            let json = serde_json::to_value(finding).expect("it serializes");
            assert_eq!(json["name"], finding.name());
        }
    }
}
