//! SepBIT, separation by inferred block invalidation time. Source: Wang et al., "Separating Data
//! via Block Invalidation Time Inference for Write Amplification Reduction in Log-Structured
//! Storage", FAST '22, section 3 and Algorithm 1.
//!
//! In the paper, an overwritten block had a lifespan, the number of blocks written since its own
//! write. The new block will live about as long. A lifespan below ℓ makes the new block
//! *short-lived* (Class 1). A longer lifespan or a first write makes it *long-lived* (Class 2). ℓ
//! is the mean lifespan of the last 16 reclaimed segments of Class 1. A segment's lifespan runs
//! from its creation to its reclaim, in blocks written. ℓ is infinite until 16 segments have been
//! reclaimed. Blocks that garbage collection rewrites go to Classes 3 to 6, by their previous class
//! and age.
//!
//! Above a drive, the host sees no garbage collection. Classes 3 to 6 are up to the drive, with its
//! handles for garbage collection (initially or persistently isolated). Two placement indices
//! remain, 0 for Class 1 and 1 for Class 2. The host does not learn when a reclaim unit is
//! reclaimed either. It estimates ℓ from a simulated log such as the paper's system would write.
//! Its writes fill segments of each class in turn, and each overwrite turns a unit into garbage.
//! Once garbage exceeds `garbage_percent` of all data, a segment counts as reclaimed and its valid
//! units are dropped (the drive has moved them). The victim has the greatest garbage / valid x age.
//! This is the cost-benefit policy of the authors' prototype (fallfish/sepbit,
//! `prototype/src/logstore/config.h`) with age in place of its root. Defaults are the prototype's
//! too, with segments of 512 MiB and 15 % garbage (`manager.cc`). If known, the drive's own figures
//! are better: the size of its reclaim units, and over-provisioning / (1 + over-provisioning).
//!
//! Memory is 4 bytes per unit (tick and class of its last write), and 32 per segment.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::last_writes::{LastWrites, segment_units};
use super::{Classifier, GARBAGE_PERCENT, SEGMENT_BYTES, units};
use crate::{PlacementIndex, WorkloadError, WorkloadMeasure, WorkloadTarget, within};

/// Settings of `kind = "sepbit"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SepbitSettings {
    /// Size of a segment of the drive at full size, default 512 MiB as in the authors' prototype.
    /// Best is the size of a reclaim unit.
    #[serde(with = "base::size")]
    pub segment_bytes: u64,
    /// Garbage at which a segment is reclaimed, percent of garbage and valid data. Default is 15,
    /// as in the authors' prototype.
    pub garbage_percent: f64,
}

impl Default for SepbitSettings {
    fn default() -> SepbitSettings {
        SepbitSettings { segment_bytes: SEGMENT_BYTES, garbage_percent: GARBAGE_PERCENT }
    }
}

impl SepbitSettings {
    pub(super) fn classifier(&self, target: &WorkloadTarget) -> Result<Sepbit, WorkloadError> {
        let percent = self.garbage_percent;
        within("classifier.garbage_percent", percent, 1.0..=90.0)?;
        if target.placement_count < 2 {
            return Err(WorkloadError::setting(
                "classifier.kind = \"sepbit\"",
                "needs two placement indices, but the drive has one",
            ));
        }
        let segment_units = segment_units(self.segment_bytes, target)?;
        Ok(Sepbit::new(units(target), segment_units, percent / 100.0))
    }
}

/// Number of classes that a host writes, the paper's Class 1 and Class 2.
const CLASSES: usize = 2;
const SHORT_LIVED: usize = 0;
const LONG_LIVED: usize = 1;
/// Number of reclaimed segments of Class 1 over which ℓ is averaged (Algorithm 1).
const SEGMENTS_OF_MEAN: u64 = 16;

/// A segment of the simulated log, which stands for a reclaim unit.
#[derive(Debug, Clone, Copy)]
struct LogSegment {
    /// First tick of its writes, and first tick after them. The last segment of a class is open.
    created: u64,
    ended: u64,
    /// Units written to the segment, and units of it not yet overwritten.
    written: u64,
    valid: u64,
}

/// SepBIT, as far as a host above a drive can do it.
#[derive(Default)]
pub struct Sepbit {
    /// Last write of each unit with its class. Also the clock.
    writes: LastWrites<1>,
    /// Unreclaimed segments of each class, oldest first.
    segments: [VecDeque<LogSegment>; CLASSES],
    segment_units: u64,
    garbage_share: f64,
    /// Valid units, and garbage units in segments.
    valid: u64,
    garbage: u64,
    /// ℓ in ticks.
    threshold: f64,
    /// Sum of the lifespans of Class 1 segments reclaimed since ℓ was last computed.
    lifespans: u64,
    reclaimed: u64,
    /// Number of computations of ℓ.
    updates: u64,
}

impl Sepbit {
    /// Creates the classifier for a drive of `units` units. `garbage_share` is the limit of garbage
    /// in garbage and valid data.
    pub fn new(units: usize, segment_units: u64, garbage_share: f64) -> Sepbit {
        assert!(
            segment_units > 0 && (0.0..1.0).contains(&garbage_share),
            "the log has segments of {segment_units} units and a garbage share of {garbage_share}"
        );
        Sepbit {
            writes: LastWrites::new(units, segment_units),
            segment_units,
            garbage_share,
            threshold: f64::INFINITY,
            ..Sepbit::default()
        }
    }

    /// ℓ, in units written. Infinite until 16 segments of Class 1 have been reclaimed.
    pub fn threshold_units(&self) -> f64 {
        self.threshold * self.writes.tick_units as f64
    }

    /// Number of computations of ℓ.
    pub fn threshold_updates(&self) -> u64 {
        self.updates
    }

    /// Invalidates the content of a unit that is overwritten or deallocated. Returns its age in
    /// ticks.
    fn invalidate(&mut self, unit: u64) -> Option<u64> {
        let last = self.writes.remove(unit)?;
        self.valid -= 1;
        let written = self.writes.tick.saturating_sub(last.age);
        let segments = &mut self.segments[last.tag as usize];
        let newer = segments.partition_point(|segment| segment.created <= written);
        let segment = newer.checked_sub(1).map(|index| &mut segments[index]);
        // Garbage collection moved the units that are in no segment, so the drive accounts for
        // them.
        if let Some(segment) = segment.filter(|segment| written < segment.ended) {
            segment.valid = segment.valid.saturating_sub(1);
            self.garbage += 1;
        }
        Some(last.age)
    }

    fn append(&mut self, unit: u64, class: usize) {
        self.writes.record(unit, class as u32);
        self.valid += 1;
        let tick = self.writes.tick;
        let segments = &mut self.segments[class];
        match segments.back_mut().filter(|segment| segment.ended == u64::MAX) {
            Some(open) => {
                open.written += 1;
                open.valid += 1;
            }
            None => segments.push_back(LogSegment { created: tick, ended: u64::MAX, written: 1, valid: 1 }),
        }
    }

    /// Advances the time by one unit. Segments begin and end with ticks, so a tick identifies a
    /// segment.
    fn pass(&mut self) {
        if !self.writes.pass() {
            return;
        }
        let tick = self.writes.tick;
        for segments in &mut self.segments {
            if let Some(last) = segments.back_mut()
                && last.ended == u64::MAX
                && last.written >= self.segment_units
            {
                last.ended = tick;
            }
        }
        while self.garbage as f64 > self.garbage_share * (self.garbage + self.valid) as f64 && self.reclaim() {}
    }

    /// Reclaims the closed segment with the best score. Returns false if no segment is closed.
    fn reclaim(&mut self) -> bool {
        let tick = self.writes.tick;
        let closed = |class: usize| {
            let segments = self.segments[class].iter().enumerate();
            let closed = segments.filter(|(_, segment)| segment.ended != u64::MAX);
            closed.map(move |(index, segment)| (class, index, *segment))
        };
        let best = closed(SHORT_LIVED).chain(closed(LONG_LIVED)).max_by(|(.., one), (.., other)| {
            // Garbage / valid * age, compared in whole numbers. Ties go to the older segment.
            let score = |segment: &LogSegment, other: &LogSegment| {
                let age = u128::from(tick - segment.created);
                u128::from(segment.written - segment.valid) * age * u128::from(other.valid)
            };
            score(one, other).cmp(&score(other, one)).then(other.created.cmp(&one.created))
        });
        let Some((class, index, segment)) = best else {
            return false;
        };
        assert!(
            segment.valid <= segment.written,
            "{} of {} units of a segment are valid",
            segment.valid,
            segment.written
        );
        self.segments[class].remove(index);
        self.garbage = self.garbage.saturating_sub(segment.written - segment.valid);
        if class == SHORT_LIVED {
            self.lifespans += tick - segment.created;
            self.reclaimed += 1;
        }
        assert!(self.reclaimed <= SEGMENTS_OF_MEAN, "{} segments are averaged, not {SEGMENTS_OF_MEAN}", self.reclaimed);
        if self.reclaimed == SEGMENTS_OF_MEAN {
            self.threshold = self.lifespans as f64 / SEGMENTS_OF_MEAN as f64;
            self.updates += 1;
            self.lifespans = 0;
            self.reclaimed = 0;
        }
        true
    }
}

impl Classifier for Sepbit {
    fn prefetch(&self, unit: u64) {
        self.writes.prefetch(unit);
    }

    fn handle(&mut self, unit: u64) -> Option<PlacementIndex> {
        let class = match self.invalidate(unit) {
            Some(lifespan) if (lifespan as f64) < self.threshold => SHORT_LIVED,
            _ => LONG_LIVED,
        };
        self.append(unit, class);
        self.pass();
        Some(PlacementIndex(class as u16))
    }

    fn trim(&mut self, unit: u64) {
        self.invalidate(unit);
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        // JSON has no infinity, and before the first update the threshold is infinite.
        let threshold = if self.updates > 0 { self.threshold_units() } else { 0.0 };
        vec![
            WorkloadMeasure::new("classifier.threshold_units", threshold),
            WorkloadMeasure::new("classifier.threshold_updates", self.updates as f64),
        ]
    }
}
