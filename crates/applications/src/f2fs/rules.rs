//! File system settings with times converted to bytes and amounts scaled to the model.

use serde::{Deserialize, Serialize};

use super::F2fsSettings;
use super::hints::{HintPolicy, LogKind};
use super::layout::F2fsLayout;
use workload::WorkloadTarget;

/// Prefree segments of the full-size drive that trigger a checkpoint
/// (`DEF_MAX_RECLAIM_PREFREE_SEGMENTS`), 8 GiB.
const MAX_PREFREE_SEGMENTS: u64 = 4096;

/// Discard policy for invalid blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiscardPolicy {
    /// `nodiscard`: no discards.
    Off,
    /// `discard`, the kernel's default: discards during pauses of the load, see
    /// `pause_every_seconds`.
    WhenIdle,
    /// Discards after each checkpoint, like a discard thread without delays, or like `discard_unit`
    /// with a patched kernel.
    Always,
}

impl DiscardPolicy {
    /// True if discards are ever sent.
    pub fn is_enabled(self) -> bool {
        self != DiscardPolicy::Off
    }
}

/// Behaviour settings of the file system.
pub struct F2fsRules {
    pub(super) settings: F2fsSettings,
    /// Logs may fill gaps of dirty segments.
    pub(super) threaded: bool,
    /// Small synced overwrites happen in place.
    pub(super) in_place: bool,
    /// Maximum bytes written between two checkpoints.
    pub(super) checkpoint_bytes: u64,
    pub(super) prefree_limit: u32,
    /// Bytes written between two pauses.
    pub(super) pause_bytes: Option<u64>,
    pub(super) denominator: u64,
}

impl F2fsRules {
    pub(super) fn new(settings: &F2fsSettings, target: &WorkloadTarget, layout: &F2fsLayout) -> F2fsRules {
        let denominator = target.denominator();
        let bytes_of = |seconds: f64| {
            let bytes = seconds * settings.throughput_bytes_per_second as f64 / denominator as f64;
            (bytes as u64).max(1)
        };
        let most_prefree = (MAX_PREFREE_SEGMENTS * u64::from(layout.shrink)).div_ceil(denominator);
        let prefree_limit = (u64::from(layout.segments) / 20).min(most_prefree);
        F2fsRules {
            threaded: settings.logging == super::LogMode::Adaptive,
            in_place: settings.in_place_updates && settings.logging == super::LogMode::Adaptive,
            checkpoint_bytes: bytes_of(settings.checkpoint_seconds),
            prefree_limit: prefree_limit as u32,
            pause_bytes: (settings.pause_every_seconds > 0.0).then(|| bytes_of(settings.pause_every_seconds)),
            settings: settings.clone(),
            denominator,
        }
    }

    /// Log for the data of a file with this class. Lifetime classes map to logs like applications'
    /// hints (`f2fs_rw_hint_to_seg_type`): the shortest to the hot log, the longest to the cold
    /// log.
    pub(super) fn data_log(&self, class: u8) -> LogKind {
        let last = match self.settings.hints {
            HintPolicy::Lifetime => self.settings.lifetime_classes - 1,
            _ => 2,
        };
        match class {
            class if class == last => LogKind::ColdData,
            0 => LogKind::HotData,
            _ => LogKind::WarmData,
        }
    }
}
