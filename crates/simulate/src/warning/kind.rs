//! Kinds of warnings, and the programs that show them.

use std::fmt;

use serde::Serialize;

use crate::steady::{ROUNDS, SteadyState};
use experiment::scaled_model::Scale;

/// Names of all kinds, in output order.
pub(super) const KINDS: [&str; 15] = [
    "nothing_written",
    "partial_writes",
    "never_collected",
    "steady_state_not_reached",
    "not_steady",
    "start_included",
    "little_used",
    "unwritten_read",
    "replay_scaled",
    "without_effect",
    "not_converged",
    "too_few_pages",
    "fewer_slots",
    "too_many_open_units",
    "events_missed",
];

/// Reason to doubt a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum RunWarning {
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
    /// The run should have reached steady state, but reached its write limit first.
    SteadyStateNotReached {
        /// State at the end. `None` if the run has too few drive writes.
        steady: Option<SteadyState>,
    },
    /// Write amplification still changes, or the run is too short.
    NotSteady {
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
    UnwrittenRead { share: f64 },
    /// A timed replay ran on a scaled model, whose positions overlap.
    ReplayScaled { scale: Scale },
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
    TooManyOpenUnits {
        /// Open units per over-provisioned unit.
        share: f64,
    },
    /// The tier of a key-value cache has fewer slots on the scaled model than on the drive.
    FewerSlots {
        /// Slots of the drive per slot of the model, the most of all classes.
        merged: u64,
    },
    /// The run ended before the moments of these events of the array.
    EventsMissed { events: Vec<String> },
}

impl RunWarning {
    /// Name of the kind in data and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            RunWarning::NeverCollected => "never_collected",
            RunWarning::NothingWritten => "nothing_written",
            RunWarning::PartialWrites { .. } => "partial_writes",
            RunWarning::SteadyStateNotReached { .. } => "steady_state_not_reached",
            RunWarning::NotSteady { .. } => "not_steady",
            RunWarning::StartIncluded { .. } => "start_included",
            RunWarning::LittleUsed { .. } => "little_used",
            RunWarning::UnwrittenRead { .. } => "unwritten_read",
            RunWarning::ReplayScaled { .. } => "replay_scaled",
            RunWarning::WithoutEffect { .. } => "without_effect",
            RunWarning::NotConverged { .. } => "not_converged",
            RunWarning::TooFewPages { .. } => "too_few_pages",
            RunWarning::TooManyOpenUnits { .. } => "too_many_open_units",
            RunWarning::FewerSlots { .. } => "fewer_slots",
            RunWarning::EventsMissed { .. } => "events_missed",
        }
    }

    /// Returns true if the warning casts doubt on the write amplification that a command shows.
    /// Warnings about times and options do not. `warp whatif` reports the beginning of a run and
    /// partial mapping units separately.
    pub fn is_doubt(&self, command: WarningCommand) -> bool {
        match self {
            RunWarning::UnwrittenRead { .. } | RunWarning::WithoutEffect { .. } => false,
            RunWarning::StartIncluded { .. } | RunWarning::PartialWrites { .. } => command != WarningCommand::WhatIf,
            _ => true,
        }
    }

    /// Returns true if the number describes the drive's state instead of the placement.
    pub fn is_not_of_placement(&self) -> bool {
        matches!(self, RunWarning::TooManyOpenUnits { .. } | RunWarning::NeverCollected | RunWarning::NothingWritten)
    }

    /// Relative difference of the last drive writes, if it is the reason for doubt.
    pub fn end_difference(&self) -> Option<f64> {
        match self {
            RunWarning::NotSteady { .. } | RunWarning::SteadyStateNotReached { .. } => self.difference(),
            _ => None,
        }
    }

    /// Relative difference of two numbers that should agree. `None` without two.
    pub(super) fn difference(&self) -> Option<f64> {
        match *self {
            RunWarning::NotSteady { last, before, .. } => before.map(|before| (last / before - 1.0).abs()),
            RunWarning::StartIncluded { last, whole } => Some((whole / last - 1.0).abs()),
            RunWarning::SteadyStateNotReached { steady } => steady.map(|state| state.range),
            RunWarning::NotConverged { difference, .. } => difference,
            _ => None,
        }
    }

    /// Share of the drive, of the pages read or of the over-provisioned units.
    pub(super) fn share(&self) -> Option<f64> {
        match *self {
            RunWarning::LittleUsed { share }
            | RunWarning::UnwrittenRead { share }
            | RunWarning::TooManyOpenUnits { share } => Some(share),
            _ => None,
        }
    }
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Short form of one warning.
impl fmt::Display for RunWarning {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.name().replace('_', " "))?;
        match self {
            RunWarning::NeverCollected | RunWarning::NothingWritten => Ok(()),
            RunWarning::PartialWrites { waf, .. } => write!(out, " (WAF {waf:.3} without garbage collection)"),
            RunWarning::SteadyStateNotReached { steady: Some(state) } => {
                write!(out, " ({} apart)", percent(state.range))
            }
            RunWarning::SteadyStateNotReached { steady: None } => write!(out, " (fewer than {ROUNDS} drive writes)"),
            RunWarning::NotSteady { last, before: Some(before), .. } => write!(out, " ({before:.3}, then {last:.3})"),
            RunWarning::NotSteady { before: None, .. } => out.write_str(" (fewer than two drive writes)"),
            RunWarning::StartIncluded { last, whole } => write!(out, " ({whole:.3}, at the end {last:.3})"),
            RunWarning::LittleUsed { share } => write!(out, " ({} of the drive)", percent(*share)),
            RunWarning::UnwrittenRead { share } => write!(out, " ({} of the pages)", percent(*share)),
            RunWarning::ReplayScaled { scale } => write!(out, " ({scale})"),
            RunWarning::WithoutEffect { options } => write!(out, " ({})", options.join(", ")),
            RunWarning::NotConverged { other: Some(other), difference: Some(difference), .. } => {
                write!(out, " ({} from {other})", percent(*difference))
            }
            RunWarning::NotConverged { .. } => out.write_str(" (no other scaled model to compare with)"),
            RunWarning::TooFewPages { pages } => write!(out, " ({pages} in a reclaim unit)"),
            RunWarning::TooManyOpenUnits { share } => {
                write!(out, " ({} of the spare reclaim units are open)", percent(*share))
            }
            RunWarning::FewerSlots { merged } => write!(out, " (one for {merged} of the drive's)"),
            RunWarning::EventsMissed { events } => write!(out, " ({})", events.join(", ")),
        }
    }
}

/// Command or page that shows a warning. Remedies name only its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarningCommand {
    /// `warp run`.
    Run,
    /// `warp whatif`.
    WhatIf,
    /// `warp_ssd.run` in Python, whose options are keyword arguments.
    Python,
    /// The page of `warp studio`, whose options are labels of fields.
    Studio,
}

impl WarningCommand {
    /// Options that remedies may name.
    pub fn options(self) -> &'static [&'static str] {
        match self {
            WarningCommand::Run => {
                &["--steady-state", "--drive-writes", "--capacity", "--precondition", "--scale", "--set", "--untimed"]
            }
            WarningCommand::WhatIf => &[
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
            WarningCommand::Python => {
                &["steady_state", "drive_writes", "capacity_bytes", "precondition_drive_writes", "scale", "overrides"]
            }
            WarningCommand::Studio => &[],
        }
    }

    /// Advice to write more, for a run with or without a steady-state condition.
    pub(super) fn more_writes(self, is_until_steady: bool) -> &'static str {
        match (self, is_until_steady) {
            (WarningCommand::Run, false) => "Write more (--steady-state)",
            (WarningCommand::Run, true) => "Write more (a larger --drive-writes)",
            (WarningCommand::WhatIf, _) => "Write more (--drive-writes)",
            (WarningCommand::Python, false) => "Write more (steady_state=True)",
            (WarningCommand::Python, true) => "Write more (a larger drive_writes)",
            (WarningCommand::Studio, _) => "Write more (`drive writes`)",
        }
    }

    /// Options for more writes, more preconditioning, another scale and larger reclaim units.
    pub(super) fn remedies(self) -> [&'static str; 4] {
        match self {
            WarningCommand::Run | WarningCommand::WhatIf => {
                ["--drive-writes", "--precondition", "--scale", "--set geometry.reclaim_unit_bytes=SIZE"]
            }
            WarningCommand::Python => [
                "drive_writes",
                "precondition_drive_writes",
                "scale",
                "overrides={\"geometry.reclaim_unit_bytes\": SIZE}",
            ],
            WarningCommand::Studio => {
                ["`drive writes`", "`drive writes before the run`", "`scale`", "`geometry.reclaim_unit_bytes`"]
            }
        }
    }

    /// Advice to use more of a drive.
    pub(super) fn fuller_drive(self) -> &'static str {
        match self {
            WarningCommand::Run => "Use a smaller drive (--capacity) or fill it first (--precondition)",
            WarningCommand::WhatIf => "Use a smaller drive (--drive)",
            WarningCommand::Python => {
                "Use a smaller drive (capacity_bytes) or fill it first (precondition_drive_writes)"
            }
            WarningCommand::Studio => "Fill the drive first (`drive writes before the run`)",
        }
    }
}
