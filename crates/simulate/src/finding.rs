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
use ssd::Device;
use ssd::event::EventSink;
use ssd::unit::UnitState;

use crate::run::CellResult;
use crate::steady::{ROUNDS, SteadyState};
use experiment::twin::{self, Scale};

/// Relative difference of write amplification between two drive-writes up to which a run has settled.
pub const SETTLED: f64 = 0.02;

/// Share of a drive's pages below which what they say is not about a drive in use.
pub const USED_LEAST: f64 = 0.5;

/// Share of a drive's spare reclaim units from which on those that are open decide about its write amplification. Half of what is open is
/// room that garbage collection does not have: random writes of 64 KiB on `warp_default` have 4 % more write amplification where a tenth is
/// open, 10 % at a fifth, 20 % at two fifths and 60 % at four fifths.
pub const SPARE_HELD_MOST: f64 = 0.25;

/// What makes a result doubtful.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Finding {
    /// Nothing was reclaimed, so write amplification says nothing of garbage collection.
    NeverCollected,
    /// The host wrote nothing at all.
    NothingWritten,
    /// Writes covered mapping units in part, and the drive programs them whole.
    PartialWrites {
        /// Write amplification without any copy: bytes of the programmed units for each byte of the host.
        waf: f64,
        /// Bytes of a mapping unit.
        unit_bytes: u64,
    },
    /// The run was to go on until write amplification is steady, and ended before.
    NotSteady {
        /// How it was at the end; `None` if there were not enough drive-writes.
        steady: Option<SteadyState>,
    },
    /// Write amplification still changes, or the run is too short to say.
    NotSettled {
        /// That of the last drive-write.
        last: f64,
        /// That of the drive-write before it; `None` if there were not two.
        before: Option<f64>,
        /// That over the whole run.
        whole: f64,
    },
    /// It has settled, but over the whole run it is another, because that includes its beginning.
    StartIncluded {
        /// That of the last drive-write.
        last: f64,
        /// That over the whole run.
        whole: f64,
    },
    /// Little of the drive holds data, so that most of it is spare.
    LittleUsed {
        /// Share of its pages.
        share: f64,
    },
    /// Pages were read that had not been written, which takes no time in the flash.
    UnwrittenRead {
        /// Share of the pages that were read.
        share: f64,
    },
    /// Options of the job file were accepted and change nothing, though they would on a drive.
    WithoutEffect {
        /// Their names.
        options: Vec<String>,
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
    /// The handles in use have so many reclaim units open that the drive has too few left for garbage collection.
    SpareHeld {
        /// Open ones for each spare one.
        share: f64,
    },
}

/// The names of all kinds, in the order in which they are said.
const KINDS: [&str; 12] = [
    "nothing_written",
    "partial_writes",
    "never_collected",
    "not_steady",
    "not_settled",
    "start_included",
    "little_used",
    "unwritten_read",
    "without_effect",
    "not_converged",
    "too_few_pages",
    "spare_held",
];

/// Everything that makes a result doubtful, in the order of the kinds.
pub(crate) fn of(result: &CellResult) -> Vec<Finding> {
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
    let reached = result.steady.is_some_and(|state| state.reached);
    (result.until.is_some() && !reached).then_some(Finding::NotSteady { steady: result.steady })
}

/// Whether the end of a run is what its drive settles to, and whether the whole run says so.
fn of_the_end(result: &CellResult) -> Option<Finding> {
    let [last, before] = result.last_drive_writes();
    let end = result.samples.last()?;
    let (last, whole) = (last?, end.media_bytes as f64 / end.host_bytes as f64);
    let finding = Finding::NotSettled { last, before, whole };
    if finding.difference().is_none_or(|difference| difference > SETTLED) {
        return Some(finding);
    }
    ((whole / last - 1.0).abs() > SETTLED).then_some(Finding::StartIncluded { last, whole })
}

/// Reclaim units that a drive's handles have open, for each spare one: for each that no data and no reserve takes when the drive is full.
pub(crate) fn spare_held(device: &Device<impl EventSink>) -> f64 {
    let layout = device.layout();
    let open = device.units().filter(|unit| unit.state == UnitState::OpenForHost);
    let open_pages: u64 = open.map(|unit| u64::from(unit.pages)).sum();
    let spare_pages =
        u64::from(layout.spare_superblocks) * u64::from(layout.groups) * u64::from(layout.superblock_pages);
    open_pages as f64 / spare_pages.max(1) as f64
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
            Finding::NothingWritten => "nothing_written",
            Finding::PartialWrites { .. } => "partial_writes",
            Finding::NotSteady { .. } => "not_steady",
            Finding::NotSettled { .. } => "not_settled",
            Finding::StartIncluded { .. } => "start_included",
            Finding::LittleUsed { .. } => "little_used",
            Finding::UnwrittenRead { .. } => "unwritten_read",
            Finding::WithoutEffect { .. } => "without_effect",
            Finding::NotConverged { .. } => "not_converged",
            Finding::TooFewPages { .. } => "too_few_pages",
            Finding::SpareHeld { .. } => "spare_held",
        }
    }

    /// Whether it makes the write amplification doubtful that a command shows: it is not about times or options, and in an answer of
    /// `warp whatif` neither about the beginning of the run nor about parts of mapping units, which the answer says apart.
    pub fn is_doubt(&self, command: Command) -> bool {
        match self {
            Finding::UnwrittenRead { .. } | Finding::WithoutEffect { .. } => false,
            Finding::StartIncluded { .. } | Finding::PartialWrites { .. } => command == Command::Run,
            _ => true,
        }
    }

    /// Whether the number is that of a drive in this state, not of the placement.
    pub fn is_not_of_placement(&self) -> bool {
        matches!(
            self,
            Finding::SpareHeld { .. } | Finding::NeverCollected | Finding::NothingWritten
        )
    }

    /// How far the last drive-writes are apart, as a share, if that is what is doubtful.
    pub fn unsettled(&self) -> Option<f64> {
        match self {
            Finding::NotSettled { .. } | Finding::NotSteady { .. } => self.difference(),
            _ => None,
        }
    }

    /// How far two numbers that should agree are apart, as a share; `None` if there are not two.
    fn difference(&self) -> Option<f64> {
        match *self {
            Finding::NotSettled { last, before, .. } => before.map(|before| (last / before - 1.0).abs()),
            Finding::StartIncluded { last, whole } => Some((whole / last - 1.0).abs()),
            Finding::NotSteady { steady } => steady.map(|state| state.range),
            Finding::NotConverged { difference, .. } => difference,
            _ => None,
        }
    }

    /// The share of the drive, of what was read, or of the spare reclaim units.
    fn share(&self) -> Option<f64> {
        match *self {
            Finding::LittleUsed { share } | Finding::UnwrittenRead { share } | Finding::SpareHeld { share } => {
                Some(share)
            }
            _ => None,
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Of one result, in a few words.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name().replace('_', " "))?;
        match self {
            Finding::NeverCollected | Finding::NothingWritten => Ok(()),
            Finding::PartialWrites { waf, .. } => write!(out, " (WAF {waf:.3} without garbage collection)"),
            Finding::NotSteady { steady: Some(state) } => write!(out, " ({} apart)", percent(state.range)),
            Finding::NotSteady { steady: None } => write!(out, " (fewer than {ROUNDS} drive-writes)"),
            Finding::NotSettled {
                last,
                before: Some(before),
                ..
            } => write!(out, " ({before:.3}, then {last:.3})"),
            Finding::NotSettled { before: None, .. } => out.write_str(" (fewer than two drive-writes)"),
            Finding::StartIncluded { last, whole } => write!(out, " ({whole:.3}, at the end {last:.3})"),
            Finding::LittleUsed { share } => write!(out, " ({} of the drive)", percent(*share)),
            Finding::UnwrittenRead { share } => write!(out, " ({} of the pages)", percent(*share)),
            Finding::WithoutEffect { options } => write!(out, " ({})", options.join(", ")),
            Finding::NotConverged {
                other: Some(other),
                difference: Some(difference),
                ..
            } => write!(out, " ({} from {other})", percent(*difference)),
            Finding::NotConverged { .. } => out.write_str(" (no other twin to compare with)"),
            Finding::TooFewPages { pages } => write!(out, " ({pages} in a reclaim unit)"),
            Finding::SpareHeld { share } => write!(out, " (open: {} of the spare reclaim units)", percent(*share)),
        }
    }
}

/// The command that a finding's remedy is for: only its own options are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `warp run`.
    Run,
    /// `warp whatif`.
    WhatIf,
}

impl Command {
    /// The options that its remedies may name.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Command::Run => &["--until", "--write", "--capacity", "--prefill", "--scale", "--set"],
            Command::WhatIf => &[
                "--write",
                "--drive",
                "--fill",
                "--op",
                "--rate",
                "--scale",
                "--set",
                "--dollars-per-tb",
                "--carbon-per-gb",
            ],
        }
    }

    /// How more is written.
    fn more_writes(self) -> &'static str {
        match self {
            Command::Run => "write more (--until steady)",
            Command::WhatIf => "write more (--write)",
        }
    }

    /// How more of a drive is used.
    fn fuller_drive(self) -> &'static str {
        match self {
            Command::Run => "use a smaller drive (--capacity) or fill it first (--prefill)",
            Command::WhatIf => "use a smaller drive (--drive)",
        }
    }
}

/// The findings of results, a line for each kind: how many have it, how bad it is at most, and what to do.
pub fn lines(results: &[CellResult], command: Command) -> Vec<String> {
    let of_results: Vec<Finding> = results.iter().flat_map(CellResult::findings).collect();
    let keys: std::collections::BTreeSet<_> = results.iter().map(|result| &result.key).collect();
    let things = if keys.len() == results.len() { "cells" } else { "runs" };
    // An answer of `whatif` is that of the end anyway.
    let is_said = |finding: &&Finding| command == Command::Run || !matches!(finding, Finding::StartIncluded { .. });
    let of_results: Vec<&Finding> = of_results.iter().filter(is_said).collect();
    let line = |name: &str| {
        let kind: Vec<&Finding> = of_results
            .iter()
            .copied()
            .filter(|finding| finding.name() == name)
            .collect();
        let what = extent(&kind, command)?;
        let count = match results.len() {
            1 => String::new(),
            all => format!("{} of {all} {things}; ", kind.len()),
        };
        Some(format!("{}: {count}{what}", name.replace('_', " ")))
    };
    KINDS.into_iter().filter_map(line).collect()
}

/// Whether a result says nothing at all about its drive, which is said before its numbers.
pub fn is_empty_of_meaning(results: &[CellResult]) -> bool {
    let says_nothing = |finding: &Finding| matches!(finding, Finding::NeverCollected | Finding::NothingWritten);
    let is_new = |result: &CellResult| result.findings().iter().any(says_nothing);
    !results.is_empty() && results.iter().all(is_new)
}

/// How bad findings of one kind are at most; `None` if there are none.
fn extent(findings: &[&Finding], command: Command) -> Option<String> {
    let differences = || findings.iter().filter_map(|finding| finding.difference());
    let shares = || findings.iter().filter_map(|finding| finding.share());
    let up_to = if findings.len() > 1 { "up to " } else { "" };
    let from = if findings.len() > 1 { "from " } else { "" };
    let most = differences().reduce(f64::max).map(percent);
    let all_compared = differences().count() == findings.len();
    Some(match (*findings.first()?, findings.len()) {
        (Finding::NeverCollected, _) => format!(
            "nothing was reclaimed, so WAF says nothing of garbage collection; {}",
            command.more_writes()
        ),
        (Finding::NothingWritten, _) => "the host wrote nothing, so there is no write amplification".to_string(),
        (Finding::PartialWrites { unit_bytes, .. }, _) => {
            let waf = |finding: &&Finding| match finding {
                Finding::PartialWrites { waf, .. } => Some(*waf),
                _ => None,
            };
            let most = findings.iter().filter_map(waf).reduce(f64::max)?;
            format!(
                "requests smaller than the mapping unit of {unit_bytes} bytes, or not aligned to it, program whole units, which alone \
                 makes WAF {up_to}{most:.3}; write whole units (bs, blockalign)"
            )
        }
        (Finding::NotSteady { .. }, _) => match most {
            Some(most) if all_compared => {
                format!("the last {ROUNDS} drive-writes are {up_to}{most} apart; allow more with --write")
            }
            _ => format!("fewer than {ROUNDS} drive-writes; allow more with --write"),
        },
        (
            Finding::NotSettled {
                last,
                before: Some(before),
                whole,
            },
            1,
        ) => format!(
            "WAF {whole:.3} over the run, {before:.3} and then {last:.3} over the last drive-writes; it still changes, the last is \
             nearest to the answer; {}",
            command.more_writes()
        ),
        (Finding::NotSettled { .. }, _) => {
            let more = command.more_writes();
            match most {
                Some(most) if all_compared => {
                    format!("the last two drive-writes are {up_to}{most} apart, so WAF still changes; {more}")
                }
                Some(most) => format!("the last two drive-writes are {up_to}{most} apart, if there are two; {more}"),
                None => format!("fewer than two drive-writes; {more}"),
            }
        }
        (Finding::StartIncluded { last, whole }, 1) => {
            format!("WAF {whole:.3} over the run, {last:.3} at its end, which is the answer for a drive in use")
        }
        (Finding::StartIncluded { .. }, _) => {
            format!(
                "over the run WAF is {up_to}{} from that at its end, which is the answer for a drive in use",
                most?
            )
        }
        (Finding::LittleUsed { .. }, _) => {
            let least = shares().reduce(f64::min).map(percent)?;
            let remedy = command.fuller_drive();
            format!("{from}{least} of the drive holds data, so the rest is spare; {remedy}")
        }
        (Finding::UnwrittenRead { .. }, _) => {
            let most = shares().reduce(f64::max).map(percent)?;
            format!(
                "{up_to}{most} of the pages read were never written, which takes no time; fill the drive first (--prefill)"
            )
        }
        (Finding::WithoutEffect { .. }, _) => {
            let names = findings.iter().flat_map(|finding| match finding {
                Finding::WithoutEffect { options } => options.as_slice(),
                _ => &[],
            });
            let names: std::collections::BTreeSet<&str> = names.map(String::as_str).collect();
            let names: Vec<&str> = names.into_iter().collect();
            format!(
                "{} would change something on a drive and does not here",
                names.join(", ")
            )
        }
        (Finding::NotConverged { .. }, _) => match most {
            Some(most) => format!("{up_to}{most} from the next smaller twin"),
            None => "no other twin to compare with".to_string(),
        },
        (Finding::TooFewPages { .. }, _) => {
            let pages = |finding: &&Finding| match finding {
                Finding::TooFewPages { pages } => Some(*pages),
                _ => None,
            };
            let fewest = findings.iter().filter_map(pages).min()?;
            format!(
                "{fewest} in a reclaim unit, twins are good from {}; use a larger one (--scale)",
                twin::UNIT_PAGES_MIN
            )
        }
        (Finding::SpareHeld { .. }, _) => {
            let most = shares().reduce(f64::max).map(percent)?;
            format!(
                "handles have {up_to}{most} of the spare reclaim units open, so WAF is that of a drive too small for them, not of the \
                 placement; use fewer handles or smaller reclaim units (--set geometry.reclaim_unit_bytes=SIZE)"
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Sample, ScaleComparison, ScaleSearch};
    use crate::testing as sample;

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

    fn said(results: &[CellResult]) -> Vec<String> {
        lines(results, Command::Run)
    }

    fn compared(result: &mut CellResult, difference: Option<f64>) {
        let compared = difference.map(|difference| ScaleComparison {
            smaller: Scale(result.scale.0 * 4),
            difference,
        });
        result.search = Some(ScaleSearch { compared });
    }

    #[test]
    fn a_drive_that_is_only_read_has_no_write_amplification() {
        let mut result = settled();
        result.stats = ssd::Stats::new(4096, 1);
        result.samples.clear();
        assert_eq!(result.findings()[0], Finding::NothingWritten);
        assert!(
            !result.findings().contains(&Finding::NeverCollected),
            "which says: write more"
        );
        assert!(is_empty_of_meaning(&[result]));
    }

    #[test]
    fn what_was_never_collected_says_nothing() {
        let mut result = settled();
        for owner in result.stats.handles.iter_mut().chain([&mut result.stats.shared]) {
            owner.units_reclaimed = 0;
        }
        result.samples.truncate(20);
        assert_eq!(
            result.findings(),
            [Finding::NeverCollected],
            "whether it settled is no question"
        );
        assert_eq!(
            said(&[result]),
            [
                "never collected: nothing was reclaimed, so WAF says nothing of garbage collection; write more (--until steady)"
            ]
        );
    }

    #[test]
    fn requests_smaller_than_the_mapping_unit_are_named_as_the_cause() {
        let mut result = settled();
        result.stats = ssd::Stats::new(4096, 1);
        result.stats.handles[0].host_bytes_written = 512_000;
        result.stats.handles[0].host_pages_written = 1000;
        result.samples.truncate(20);
        let waf = Finding::PartialWrites {
            waf: 8.0,
            unit_bytes: 4096,
        };
        assert_eq!(result.findings(), [waf.clone(), Finding::NeverCollected]);
        assert_eq!(waf.to_string(), "partial writes (WAF 8.000 without garbage collection)");
        assert_eq!(
            said(std::slice::from_ref(&result)),
            [
                "partial writes: requests smaller than the mapping unit of 4096 bytes, or not aligned to it, program whole units, \
                 which alone makes WAF 8.000; write whole units (bs, blockalign)",
                "never collected: nothing was reclaimed, so WAF says nothing of garbage collection; write more (--until steady)"
            ]
        );
        // Some of them, which changes no digit that anybody compares.
        result.stats.handles[0].host_bytes_written = 4_096_000 - 40_000;
        assert_eq!(result.findings(), [Finding::NeverCollected]);
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
                whole,
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
            said(std::slice::from_ref(&result)),
            [format!(
                "not settled: WAF {whole:.3} over the run, 2.000 and then 2.100 over the last drive-writes; it still changes, \
                 the last is nearest to the answer; write more (--until steady)"
            )]
        );

        let mut short = settled();
        short.samples.truncate(39);
        let findings = short.findings();
        assert!(
            matches!(findings[..], [Finding::NotSettled { before: None, .. }]),
            "{findings:?}"
        );
        assert_eq!(
            said(std::slice::from_ref(&short)),
            ["not settled: fewer than two drive-writes; write more (--until steady)"]
        );
        short.samples.push(settled().samples[39].clone());
        assert_eq!(short.findings(), [], "two drive-writes are enough");

        let mut other = media_of_the_last(0.08);
        other.key.variant = "other".to_string();
        let mut third = settled();
        third.key.variant = "third".to_string();
        let all = [result, other, third];
        let line = "not settled: 2 of 3 cells; the last two drive-writes are up to 8.0 % apart, so WAF still changes; ";
        assert_eq!(said(&all), [format!("{line}write more (--until steady)")]);
        assert_eq!(lines(&all, Command::WhatIf), [format!("{line}write more (--write)")]);
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
        assert_eq!(result.findings(), std::slice::from_ref(&not_converged));
        assert_eq!(not_converged.to_string(), "not converged (3.2 % from 1/256)");
        assert_eq!(
            said(std::slice::from_ref(&result)),
            ["not converged: 3.2 % from the next smaller twin"]
        );
        compared(&mut result, None);
        assert_eq!(
            said(std::slice::from_ref(&result)),
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
            said(std::slice::from_ref(&result)),
            ["too few pages: 1023 in a reclaim unit, twins are good from 1024; use a larger one (--scale)"]
        );
        result.scale = Scale::FULL;
        assert_eq!(result.findings(), [], "a drive may have what it has");
    }

    #[test]
    fn remedies_name_only_options_of_their_command() {
        let kinds = [
            Finding::NothingWritten,
            Finding::PartialWrites {
                waf: 2.0,
                unit_bytes: 4096,
            },
            Finding::NeverCollected,
            Finding::NotSteady { steady: None },
            Finding::NotSettled {
                last: 2.0,
                before: Some(1.0),
                whole: 1.5,
            },
            Finding::NotSettled {
                last: 2.0,
                before: None,
                whole: 1.5,
            },
            Finding::StartIncluded { last: 2.0, whole: 1.5 },
            Finding::LittleUsed { share: 0.1 },
            Finding::UnwrittenRead { share: 0.1 },
            Finding::WithoutEffect {
                options: vec!["ioengine".to_string()],
            },
            Finding::NotConverged {
                scale: Scale(64),
                other: None,
                difference: None,
            },
            Finding::TooFewPages { pages: 1 },
            Finding::SpareHeld { share: 0.5 },
        ];
        for name in KINDS {
            assert!(kinds.iter().any(|finding| finding.name() == name), "{name}");
        }
        for command in [Command::Run, Command::WhatIf] {
            for (finding, count) in kinds.iter().flat_map(|finding| [(finding, 1), (finding, 2)]) {
                // Runs of `whatif` are not timed, so nothing is read there that takes time.
                if command == Command::WhatIf && matches!(finding, Finding::UnwrittenRead { .. }) {
                    continue;
                }
                let line = extent(&vec![finding; count], command).unwrap_or_default();
                let words = line.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '-'));
                for option in words.filter(|word| word.starts_with("--")) {
                    assert!(command.options().contains(&option), "{command:?}: {line}");
                }
            }
        }
    }

    #[test]
    fn open_reclaim_units_that_hold_the_spare_ones_are_named() {
        let mut result = settled();
        result.spare_held = SPARE_HELD_MOST;
        assert_eq!(result.findings(), []);
        result.spare_held = 0.78;
        assert_eq!(result.findings(), [Finding::SpareHeld { share: 0.78 }]);
        assert_eq!(
            result.findings()[0].to_string(),
            "spare held (open: 78.0 % of the spare reclaim units)"
        );
        assert_eq!(
            said(std::slice::from_ref(&result)),
            [
                "spare held: handles have 78.0 % of the spare reclaim units open, so WAF is that of a drive too small for them, not \
                 of the placement; use fewer handles or smaller reclaim units (--set geometry.reclaim_unit_bytes=SIZE)"
            ]
        );
        for owner in result.stats.handles.iter_mut().chain([&mut result.stats.shared]) {
            owner.units_reclaimed = 0;
        }
        assert_eq!(result.findings(), [Finding::NeverCollected], "nothing wanted the room");
    }

    #[test]
    fn what_is_open_is_counted_against_the_layout() {
        let config: ssd::DeviceConfig = toml::from_str(
            "seed = 1\n[geometry]\nphysical_bytes = \"64MiB\"\nreclaim_unit_bytes = \"512KiB\"\nover_provisioning = 0.28\n\
             channels = 2\ndies_per_channel = 2\n[handles]\ncount = 16\n",
        )
        .expect("a device");
        let mut device = Device::new(&config).expect("it is possible");
        assert!(spare_held(&device).abs() < f64::EPSILON, "nothing is open");
        let spare = f64::from(device.layout().spare_superblocks);
        for handle in 0..16 {
            let placement = ssd::Placement {
                group: ssd::RgId(0),
                handle: ssd::RuhId(handle),
            };
            let write = ssd::Write {
                first: ssd::Lpn(u32::from(handle)),
                pages: 1,
                host_bytes: device.layout().page_bytes,
                placement,
            };
            let _ = device.write(0, &write).expect("it is in the drive");
            let expected = f64::from(handle + 1) / spare;
            assert!((spare_held(&device) - expected).abs() < 1e-12, "{handle}");
        }
    }

    #[test]
    fn a_finding_is_its_name_and_its_numbers() {
        let finding = Finding::NotSettled {
            last: 1.5,
            before: None,
            whole: 1.25,
        };
        let json = serde_json::to_value(&finding).expect("it serializes");
        assert_eq!(
            json,
            serde_json::json!({ "name": "not_settled", "last": 1.5, "before": null, "whole": 1.25 })
        );
        for finding in [Finding::NeverCollected, finding, Finding::TooFewPages { pages: 1 }] {
            let json = serde_json::to_value(&finding).expect("it serializes");
            assert_eq!(json["name"], finding.name());
        }
    }

    #[test]
    fn a_run_with_another_beginning_says_both() {
        let mut result = settled();
        // The first drive-write copied nothing.
        let capacity = result.capacity_bytes;
        for sample in &mut result.samples {
            sample.media_bytes -= sample.host_bytes.min(capacity);
        }
        let [Finding::StartIncluded { last, whole }] = result.findings()[..] else {
            panic!("{:?}", result.findings());
        };
        assert!((last - 2.0).abs() < 1e-6 && whole < 1.9, "{last}, {whole}");
        let line = format!(
            "start included: WAF {whole:.3} over the run, 2.000 at its end, which is the answer for a drive in use"
        );
        assert_eq!(said(std::slice::from_ref(&result)), [line]);
        let mut other = result.clone();
        other.key.variant = "other".to_string();
        let both = said(&[result, other]);
        assert!(
            both[0].starts_with("start included: 2 of 2 cells; over the run WAF is up to"),
            "{both:?}"
        );
    }

    #[test]
    fn a_drive_that_is_hardly_used_is_named() {
        let mut result = settled();
        let pages = result.capacity_bytes / result.stats.page_bytes;
        let last = result.samples.last_mut().expect("samples");
        last.valid_pages.fill(0);
        last.valid_pages[0] = pages / 2;
        assert_eq!(result.findings(), []);
        result.samples.last_mut().expect("samples").valid_pages[0] = pages / 250;
        assert!(matches!(result.findings()[..], [Finding::LittleUsed { share }] if (share - 0.004).abs() < 1e-4));
        assert!(said(&[result])[0].starts_with("little used: 0.4 % of the drive holds data"));
    }

    #[test]
    fn what_a_run_read_and_accepted_is_said() {
        let mut result = settled();
        result.pages_read = [1000, 0];
        assert_eq!(result.findings(), []);
        result.pages_read = [1000, 250];
        assert_eq!(result.findings(), [Finding::UnwrittenRead { share: 0.25 }]);
        result.without_effect = vec!["fsync".to_string()];
        let said = said(&[result]);
        assert_eq!(
            said,
            [
                "unwritten read: 25.0 % of the pages read were never written, which takes no time; fill the drive first (--prefill)",
                "without effect: fsync would change something on a drive and does not here"
            ]
        );
    }

    #[test]
    fn a_run_that_was_to_be_steady_and_is_not_says_so() {
        let mut result = settled();
        result.until = Some(experiment::run_options::Until::Steady);
        assert_eq!(result.findings(), [Finding::NotSteady { steady: None }]);
        let steady = SteadyState {
            reached: false,
            waf: 2.0,
            half_width: 0.1,
            range: 0.08,
            slope: 0.01,
            after_capacities: 1.0,
        };
        result.steady = Some(steady);
        let said = said(std::slice::from_ref(&result));
        assert_eq!(
            said,
            ["not steady: the last 5 drive-writes are 8.0 % apart; allow more with --write"]
        );
        result.steady = Some(SteadyState {
            reached: true,
            ..steady
        });
        assert_eq!(result.findings(), []);
    }
}
