//! Kinds of findings, and the commands that show them.

use std::fmt;

use serde::Serialize;

use crate::steady::{ROUNDS, SteadyState};
use experiment::twin::Scale;

/// Names of all kinds, in output order.
pub(super) const KINDS: [&str; 13] = [
    "nothing_written",
    "partial_writes",
    "never_collected",
    "not_steady",
    "not_settled",
    "start_included",
    "little_used",
    "unwritten_read",
    "replay_scaled",
    "without_effect",
    "not_converged",
    "too_few_pages",
    "spare_held",
];

/// Reason to doubt a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Finding {
    /// The drive reclaimed no unit, so write amplification excludes garbage collection.
    NeverCollected,
    /// The host wrote no data.
    NothingWritten,
    /// Writes covered mapping units in part, and the drive programs whole units.
    PartialWrites {
        /// Write amplification without copies: programmed bytes per host byte.
        waf: f64,
        /// Bytes of a mapping unit.
        unit_bytes: u64,
    },
    /// The run should have reached steady state, but ended before.
    NotSteady {
        /// State at the end. `None` if the run has too few drive writes.
        steady: Option<SteadyState>,
    },
    /// Write amplification still changes, or the run is too short.
    NotSettled {
        /// Write amplification of the last drive write.
        last: f64,
        /// Write amplification of the drive write before. `None` if the run has only one.
        before: Option<f64>,
        /// Write amplification of the whole run.
        whole: f64,
    },
    /// The run has converged, but its total differs, because it includes the beginning.
    StartIncluded {
        /// Write amplification of the last drive write.
        last: f64,
        /// Write amplification of the whole run.
        whole: f64,
    },
    /// Little of the drive holds data, so most of it acts as over-provisioning.
    LittleUsed {
        /// Share of the drive's pages with data.
        share: f64,
    },
    /// Reads addressed unwritten pages, which take no time in the flash.
    UnwrittenRead {
        /// Share of the pages read.
        share: f64,
    },
    /// A timed replay ran on a scaled model, whose positions overlap.
    ReplayScaled {
        /// Scale of the model.
        scale: Scale,
    },
    /// Options of the job file were accepted without effect, though they would affect a real drive.
    WithoutEffect { options: Vec<String> },
    /// A scale search ended without two models that agree.
    NotConverged {
        /// Scale of the largest model that ran.
        scale: Scale,
        /// Scale of the next smaller model, if a second one ran.
        other: Option<Scale>,
        /// Relative difference between the two.
        difference: Option<f64>,
    },
    /// The reclaim units of the scaled model are too small for drive-like behaviour.
    TooFewPages {
        /// Pages of the smallest reclaim units.
        pages: u64,
    },
    /// The handles in use hold so many open reclaim units that too few remain for garbage
    /// collection.
    SpareHeld {
        /// Open units per over-provisioned unit.
        share: f64,
    },
}

impl Finding {
    /// Name of the kind in data and JSON.
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
            Finding::ReplayScaled { .. } => "replay_scaled",
            Finding::WithoutEffect { .. } => "without_effect",
            Finding::NotConverged { .. } => "not_converged",
            Finding::TooFewPages { .. } => "too_few_pages",
            Finding::SpareHeld { .. } => "spare_held",
        }
    }

    /// Returns true if the finding casts doubt on the write amplification that a command shows.
    /// Findings about times and options do not. `warp whatif` reports the beginning of a run and
    /// partial mapping units separately.
    pub fn is_doubt(&self, command: Command) -> bool {
        match self {
            Finding::UnwrittenRead { .. } | Finding::WithoutEffect { .. } => false,
            Finding::StartIncluded { .. } | Finding::PartialWrites { .. } => command != Command::WhatIf,
            _ => true,
        }
    }

    /// Returns true if the number describes the drive's state instead of the placement.
    pub fn is_not_of_placement(&self) -> bool {
        matches!(
            self,
            Finding::SpareHeld { .. } | Finding::NeverCollected | Finding::NothingWritten
        )
    }

    /// Relative difference of the last drive writes, if it is the reason for doubt.
    pub fn unsettled(&self) -> Option<f64> {
        match self {
            Finding::NotSettled { .. } | Finding::NotSteady { .. } => self.difference(),
            _ => None,
        }
    }

    /// Relative difference of two numbers that should agree. `None` without two.
    pub(super) fn difference(&self) -> Option<f64> {
        match *self {
            Finding::NotSettled { last, before, .. } => before.map(|before| (last / before - 1.0).abs()),
            Finding::StartIncluded { last, whole } => Some((whole / last - 1.0).abs()),
            Finding::NotSteady { steady } => steady.map(|state| state.range),
            Finding::NotConverged { difference, .. } => difference,
            _ => None,
        }
    }

    /// Share of the drive, of the pages read or of the over-provisioned units.
    pub(super) fn share(&self) -> Option<f64> {
        match *self {
            Finding::LittleUsed { share } | Finding::UnwrittenRead { share } | Finding::SpareHeld { share } => {
                Some(share)
            }
            _ => None,
        }
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Short form of one finding.
impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name().replace('_', " "))?;
        match self {
            Finding::NeverCollected | Finding::NothingWritten => Ok(()),
            Finding::PartialWrites { waf, .. } => write!(out, " (WAF {waf:.3} without garbage collection)"),
            Finding::NotSteady { steady: Some(state) } => write!(out, " ({} apart)", percent(state.range)),
            Finding::NotSteady { steady: None } => write!(out, " (fewer than {ROUNDS} drive writes)"),
            Finding::NotSettled {
                last,
                before: Some(before),
                ..
            } => write!(out, " ({before:.3}, then {last:.3})"),
            Finding::NotSettled { before: None, .. } => out.write_str(" (fewer than two drive writes)"),
            Finding::StartIncluded { last, whole } => write!(out, " ({whole:.3}, at the end {last:.3})"),
            Finding::LittleUsed { share } => write!(out, " ({} of the drive)", percent(*share)),
            Finding::UnwrittenRead { share } => write!(out, " ({} of the pages)", percent(*share)),
            Finding::ReplayScaled { scale } => write!(out, " ({scale})"),
            Finding::WithoutEffect { options } => write!(out, " ({})", options.join(", ")),
            Finding::NotConverged {
                other: Some(other),
                difference: Some(difference),
                ..
            } => write!(out, " ({} from {other})", percent(*difference)),
            Finding::NotConverged { .. } => out.write_str(" (no other scaled model to compare with)"),
            Finding::TooFewPages { pages } => write!(out, " ({pages} in a reclaim unit)"),
            Finding::SpareHeld { share } => write!(out, " ({} of the spare reclaim units are open)", percent(*share)),
        }
    }
}

/// Command that shows a finding. Remedies name only its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `warp run`.
    Run,
    /// `warp whatif`.
    WhatIf,
    /// `warp_ssd.run` in Python, whose options are keyword arguments.
    Python,
}

impl Command {
    /// Options that remedies may name.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            Command::Run => &[
                "--steady-state",
                "--drive-writes",
                "--capacity",
                "--precondition",
                "--scale",
                "--set",
            ],
            Command::WhatIf => &[
                "--drive-writes",
                "--drive",
                "--fill",
                "--op",
                "--rate",
                "--scale",
                "--set",
                "--dollars-per-tb",
                "--carbon-per-gb",
            ],
            Command::Python => &[
                "steady_state",
                "drive_writes",
                "capacity_bytes",
                "precondition_drive_writes",
                "scale",
                "overrides",
            ],
        }
    }

    /// Advice to write more, for a run with or without a steady-state condition.
    pub(super) fn more_writes(self, is_until_steady: bool) -> &'static str {
        match (self, is_until_steady) {
            (Command::Run, false) => "Write more (--steady-state)",
            (Command::Run, true) => "Write more (a larger --drive-writes)",
            (Command::WhatIf, _) => "Write more (--drive-writes)",
            (Command::Python, false) => "Write more (steady_state=True)",
            (Command::Python, true) => "Write more (a larger drive_writes)",
        }
    }

    /// Options for more writes, a larger prefill, another scale and larger reclaim units.
    pub(super) fn remedies(self) -> [&'static str; 4] {
        match self {
            Command::Run | Command::WhatIf => [
                "--drive-writes",
                "--precondition",
                "--scale",
                "--set geometry.reclaim_unit_bytes=SIZE",
            ],
            Command::Python => [
                "drive_writes",
                "precondition_drive_writes",
                "scale",
                "overrides={\"geometry.reclaim_unit_bytes\": SIZE}",
            ],
        }
    }

    /// Advice to use more of a drive.
    pub(super) fn fuller_drive(self) -> &'static str {
        match self {
            Command::Run => "Use a smaller drive (--capacity) or fill it first (--precondition)",
            Command::WhatIf => "Use a smaller drive (--drive)",
            Command::Python => "Use a smaller drive (capacity_bytes) or fill it first (precondition_drive_writes)",
        }
    }
}
