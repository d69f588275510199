//! The kinds of findings, and the commands that show them.

use std::fmt;

use serde::Serialize;

use crate::steady::{ROUNDS, SteadyState};
use experiment::twin::Scale;

/// The names of all kinds, in the order in which they are said.
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
    /// A trace was replayed at its own times on a scaled model, where its positions lie upon each other.
    ReplayScaled {
        /// That of the model.
        scale: Scale,
    },
    /// Options of the job file were accepted and change nothing, though they would on a drive.
    WithoutEffect { options: Vec<String> },
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
            Finding::ReplayScaled { .. } => "replay_scaled",
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
            Finding::StartIncluded { .. } | Finding::PartialWrites { .. } => command != Command::WhatIf,
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
    pub(super) fn difference(&self) -> Option<f64> {
        match *self {
            Finding::NotSettled { last, before, .. } => before.map(|before| (last / before - 1.0).abs()),
            Finding::StartIncluded { last, whole } => Some((whole / last - 1.0).abs()),
            Finding::NotSteady { steady } => steady.map(|state| state.range),
            Finding::NotConverged { difference, .. } => difference,
            _ => None,
        }
    }

    /// The share of the drive, of what was read, or of the spare reclaim units.
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
            Finding::ReplayScaled { scale } => write!(out, " ({scale})"),
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
    /// `warp_ssd.run` in Python, whose options are keyword arguments.
    Python,
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
            Command::Python => &[
                "until",
                "write_capacities",
                "capacity_bytes",
                "prefill_capacities",
                "scale",
                "overrides",
            ],
        }
    }

    /// How more is written, by a run that goes on until it is steady or by one that does not.
    pub(super) fn more_writes(self, is_until_steady: bool) -> &'static str {
        match (self, is_until_steady) {
            (Command::Run, false) => "write more (--until steady)",
            (Command::Run, true) => "write more (a larger --write)",
            (Command::WhatIf, _) => "write more (--write)",
            (Command::Python, false) => "write more (until=\"steady\")",
            (Command::Python, true) => "write more (a larger write_capacities)",
        }
    }

    /// The option of more writes, of more in the drive before, of another scale, and of larger reclaim units.
    pub(super) fn remedies(self) -> [&'static str; 4] {
        match self {
            Command::Run | Command::WhatIf => [
                "--write",
                "--prefill",
                "--scale",
                "--set geometry.reclaim_unit_bytes=SIZE",
            ],
            Command::Python => [
                "write_capacities",
                "prefill_capacities",
                "scale",
                "overrides={\"geometry.reclaim_unit_bytes\": SIZE}",
            ],
        }
    }

    /// How more of a drive is used.
    pub(super) fn fuller_drive(self) -> &'static str {
        match self {
            Command::Run => "use a smaller drive (--capacity) or fill it first (--prefill)",
            Command::WhatIf => "use a smaller drive (--drive)",
            Command::Python => "use a smaller drive (capacity_bytes) or fill it first (prefill_capacities)",
        }
    }
}
