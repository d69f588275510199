//! The settings as the file system uses them: times in bytes, amounts of the twin.

use serde::{Deserialize, Serialize};

use super::Settings;
use super::hints::{HintPolicy, Log};
use super::layout::Layout;
use workload::Target;

/// Prefree segments, of the drive at full size, that make a checkpoint due (`DEF_MAX_RECLAIM_PREFREE_SEGMENTS`): 8 GiB.
const MAX_PREFREE_SEGMENTS: u64 = 4096;

/// What happens to blocks that hold nothing of use any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Discard {
    /// `nodiscard`: the drive is never told.
    Off,
    /// `discard`, the kernel's default: told during pauses of the load, see `pause_every_seconds`.
    WhenIdle,
    /// Told right after each checkpoint: what a discard thread that did not wait would do, or `discard_unit` with a patched kernel.
    Always,
}

impl Discard {
    /// Whether the drive is ever told.
    pub fn is_enabled(self) -> bool {
        self != Discard::Off
    }
}

/// How the file system behaves.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    pub(super) hints: HintPolicy,
    pub(super) classes: u8,
    /// Logs may fill gaps of dirty segments.
    pub(super) threaded: bool,
    /// Small synced overwrites happen in place.
    pub(super) in_place: bool,
    pub(super) min_fsync_blocks: u32,
    pub(super) discard: Discard,
    pub(super) discard_granularity: u32,
    pub(super) background_cleaning: bool,
    /// Bytes written between two checkpoints, at most.
    pub(super) checkpoint_bytes: u64,
    pub(super) prefree_limit: u32,
    /// Bytes written between two pauses.
    pub(super) pause_bytes: Option<u64>,
    pub(super) pause_seconds: f64,
    pub(super) denominator: u64,
}

impl Rules {
    pub(super) fn new(settings: &Settings, target: &Target, layout: &Layout) -> Rules {
        let denominator = target.denominator();
        let bytes_of = |seconds: f64| {
            let bytes = seconds * settings.throughput_bytes_per_second as f64 / denominator as f64;
            (bytes as u64).max(1)
        };
        let most_prefree = (MAX_PREFREE_SEGMENTS * u64::from(layout.shrink)).div_ceil(denominator);
        let prefree_limit = (u64::from(layout.segments) / 20).min(most_prefree);
        Rules {
            hints: settings.hints,
            classes: settings.lifetime_classes,
            threaded: settings.logging == super::Logging::Adaptive,
            in_place: settings.in_place_updates && settings.logging == super::Logging::Adaptive,
            min_fsync_blocks: settings.min_fsync_blocks,
            discard: settings.discard,
            discard_granularity: settings.discard_granularity_blocks,
            background_cleaning: settings.background_cleaning,
            checkpoint_bytes: bytes_of(settings.checkpoint_seconds),
            prefree_limit: prefree_limit as u32,
            pause_bytes: (settings.pause_every_seconds > 0.0).then(|| bytes_of(settings.pause_every_seconds)),
            pause_seconds: settings.pause_seconds,
            denominator,
        }
    }

    /// The log for the data of a file of a class. Lifetime classes go to the logs as applications' hints do
    /// (`f2fs_rw_hint_to_seg_type`): the shortest to the hot one, the longest to the cold one.
    pub(super) fn data_log(&self, class: u8) -> Log {
        let last = match self.hints {
            HintPolicy::Lifetime => self.classes - 1,
            _ => 2,
        };
        match class {
            class if class == last => Log::ColdData,
            0 => Log::HotData,
            _ => Log::WarmData,
        }
    }
}
