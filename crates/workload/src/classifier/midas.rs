//! MiDAS, classification into groups whose number and sizes a model chooses. Source: Oh et al.,
//! "MiDAS: Minimizing Write Amplification in Log-Structured Systems through Adaptive Group Number
//! and Size Configuration", FAST '24. Authors' code: dgist-datalab/MiDAS, `algorithm/MiDAS`.
//!
//! The paper writes blocks to the first group of a chain. When a group's oldest segment is
//! reclaimed, its valid blocks move to the next group. Those of the last group return to the last
//! group. The update interval distribution (UID) counts blocks by the segments written before their
//! overwrite. It gives the share of blocks that survives each group. A Markov chain over the groups
//! (MCAM) predicts the write amplification. After each epoch the configuration with the least
//! prediction is chosen. Groups are added before the last one while this helps, each with its best
//! size. Blocks that died in the first group three times more often than not go to a separate
//! group, HOT.
//!
//! Above a drive, the host sees no garbage collection and cannot move surviving blocks. UID, model,
//! configuration search and HOT filter are as in a log of the host. Blocks do not move down the
//! chain. A write goes to the group in which the block's previous content died, because most of its
//! next content would be in that group when it dies. HOT is placement index 0, followed by the
//! groups. New blocks go to the last group. The modelled log has `garbage_percent` of garbage.
//! MiDAS models the last group with Desnoyers' formulas for two temperatures. Here it has uniformly
//! random overwrites and is reclaimed in order of age. HOT traffic stays in the UID, and HOT is as
//! large as its blocks need. An epoch is one drive write, not four, because lifespans that began
//! before the epoch also count.
//!
//! Memory is 4 bytes per unit (tick of its last write, and 2 bits of counter), and 8 per segment of
//! four drive writes.

use serde::{Deserialize, Serialize};

use super::last_writes::{LastWrites, segment_units};
use super::{Classifier, SEGMENT_BYTES, placement_count, units};
use crate::fio::power::pow;
use crate::{PlacementIndex, WorkloadError, WorkloadMeasure, WorkloadTarget, within};

/// Settings of `kind = "midas"`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MidasSettings {
    /// Placement indices to use, for HOT and groups. Default is all of the drive.
    pub placement_count: Option<u16>,
    /// Size of a segment of the drive at full size, default 512 MiB. Best is the size of a reclaim
    /// unit.
    #[serde(with = "base::size")]
    pub segment_bytes: u64,
    /// Garbage in the modelled log, percent of garbage and valid data, default 15. Best is the
    /// drive's figure.
    pub garbage_percent: f64,
    /// Writes between two choices of the groups, percent of the drive's capacity.
    pub epoch_percent: f64,
}

impl Default for MidasSettings {
    fn default() -> MidasSettings {
        MidasSettings {
            placement_count: None,
            segment_bytes: SEGMENT_BYTES,
            garbage_percent: super::GARBAGE_PERCENT,
            epoch_percent: 100.0,
        }
    }
}

impl MidasSettings {
    pub(super) fn classifier(&self, target: &WorkloadTarget) -> Result<Midas, WorkloadError> {
        within("classifier.garbage_percent", self.garbage_percent, 1.0..=90.0)?;
        within("classifier.epoch_percent", self.epoch_percent, 1.0..=10_000.0)?;
        let count = placement_count(self.placement_count, target)?;
        if count < 2 {
            return Err(WorkloadError::setting(
                "classifier.kind = \"midas\"",
                "needs at least two placement indices, one for HOT and one for a group",
            ));
        }
        let segment_units = segment_units(self.segment_bytes, target)?;
        let epoch = (units(target) as f64 * self.epoch_percent / 100.0) as u64;
        Ok(Midas::new(units(target), count - 1, segment_units, self.garbage_percent / 100.0, epoch.max(1)))
    }
}

/// Excess of deaths in the first group over other deaths that makes a block hot (`hot.c`:
/// `hot_val`).
const HOT: u32 = 3;
/// Range of distinguished update intervals, drive writes. Longer intervals share the last bin.
const INTERVAL_DRIVE_WRITES: u64 = 4;
/// Steps in the search for a group's size, between 0 and all that the last group has.
const SIZES: usize = 256;

/// The update interval distribution in the form that the model needs.
struct IntervalSurvival {
    /// Share of the blocks that are overwritten after more than `index` segments of writes.
    later: Vec<f64>,
    /// Integral of `later`, which is the number of valid segments among the last `index` written.
    held: Vec<f64>,
}

impl IntervalSurvival {
    fn new(intervals: &[u64]) -> Option<IntervalSurvival> {
        let total: u64 = intervals.iter().sum();
        let mut left = total;
        let (mut later, mut held) = (vec![1.0], vec![0.0]);
        for count in intervals {
            left -= count;
            // A block dies in the middle of its interval.
            let (before, after) = (later[later.len() - 1], left as f64 / total.max(1) as f64);
            held.push(held[held.len() - 1] + (before + after) / 2.0);
            later.push(after);
        }
        (total > 0).then_some(IntervalSurvival { later, held })
    }

    /// Interpolates between two known values.
    fn at(of: &[f64], age: f64) -> Option<f64> {
        let below = age as usize;
        let (low, high) = (of.get(below)?, of.get(below + 1)?);
        Some(low + (high - low) * (age - below as f64))
    }

    /// Predicts the behaviour of a chain of groups of these sizes with `valid` valid segments. The
    /// last size is that of the last group. Returns `None` if a group is longer than the known
    /// distribution or the last group is too small for its valid data.
    fn predict(&self, sizes: &[f64], valid: f64) -> Option<Prediction> {
        let (last, chain) = sizes.split_last()?;
        let (mut age, mut inflow, mut copies) = (0.0, 1.0, 0.0);
        let mut ages = Vec::with_capacity(chain.len());
        for size in chain {
            age += size / inflow;
            inflow = IntervalSurvival::at(&self.later, age)?;
            if inflow <= 0.0 {
                return None;
            }
            copies += inflow;
            ages.push(age);
        }
        let valid = valid - IntervalSurvival::at(&self.held, age)?;
        if valid <= 0.0 || *last <= valid {
            return None;
        }
        let valid_share = valid_share_in_order(last / valid);
        copies += inflow * valid_share / (1.0 - valid_share);
        Some(Prediction { write_amplification: 1.0 + copies, ages })
    }
}

/// The model's prediction for a configuration.
#[derive(Debug, Clone)]
struct Prediction {
    write_amplification: f64,
    /// Age of a block when it leaves each group but the last, segments of writes.
    ages: Vec<f64>,
}

/// Valid share of a segment that is reclaimed in order of age, under uniformly random overwrites.
/// Solves v = exp(-(1 - v) r), with r the ratio of all segments to valid ones (Robinson 1996;
/// Desnoyers 2012).
fn valid_share_in_order(segments_per_valid: f64) -> f64 {
    assert!(segments_per_valid > 1.0);
    let mut share = 0.0;
    for _ in 0..64 {
        share = pow(std::f64::consts::E, -(1.0 - share) * segments_per_valid);
    }
    assert!((0.0..1.0).contains(&share), "a reclaimed segment has a valid share of {share}");
    share
}

/// Returns the groups with the least predicted write amplification, at most `group_count`, of
/// `segments` segments in total.
fn choose(survival: &IntervalSurvival, group_count: usize, segments: f64, valid: f64) -> Option<Prediction> {
    let mut sizes = vec![segments];
    let mut best = survival.predict(&sizes, valid)?;
    while sizes.len() < group_count {
        let mut more = sizes.clone();
        more.insert(sizes.len() - 1, 0.0);
        let before = best.clone();
        // The new group is resized first, then the older ones to suit it.
        for index in (0..sizes.len()).rev() {
            resize(survival, &mut more, index, valid, &mut best);
        }
        if best.write_amplification >= before.write_amplification {
            break;
        }
        sizes = more;
    }
    Some(best)
}

/// Gives a group its best size at the cost of the last group, if that improves the prediction.
fn resize(survival: &IntervalSurvival, sizes: &mut Vec<f64>, index: usize, valid: f64, best: &mut Prediction) {
    let last = sizes.len() - 1;
    assert!(index < last, "group {index} is resized at the cost of group {last}");
    let both = sizes[index] + sizes[last];
    let mut tried = sizes.clone();
    for step in 1..SIZES {
        tried[index] = both * step as f64 / SIZES as f64;
        tried[last] = both - tried[index];
        let Some(prediction) = survival.predict(&tried, valid) else {
            continue;
        };
        if prediction.write_amplification < best.write_amplification {
            *best = prediction;
            sizes.clone_from(&tried);
        }
    }
}

/// MiDAS, as far as a host above a drive can do it.
#[derive(Default)]
pub struct Midas {
    /// Last write of each unit, with its counter for HOT.
    writes: LastWrites<2>,
    /// Blocks by update interval, segments. The last bin is for longer ones.
    intervals: Vec<u64>,
    /// Ages at which a block leaves each group but the last, ticks.
    ages: Vec<u64>,
    group_count: usize,
    segment_units: u64,
    segment_ticks: u64,
    garbage_share: f64,
    epoch: u64,
    written: u64,
    valid: u64,
    /// Last prediction of the model, or 0 before the first.
    predicted: f64,
}

impl Midas {
    /// Creates the classifier for a drive of `units` units, with HOT and at most `group_count`
    /// groups.
    pub fn new(units: usize, group_count: u16, segment_units: u64, garbage_share: f64, epoch: u64) -> Midas {
        assert!(
            group_count > 0 && segment_units > 0,
            "MiDAS has {group_count} groups and segments of {segment_units} units"
        );
        assert!((0.0..1.0).contains(&garbage_share), "a log with a garbage share of {garbage_share} has no valid data");
        let writes = LastWrites::new(units, segment_units);
        let segment_ticks = segment_units.div_ceil(writes.tick_units);
        let bins = (INTERVAL_DRIVE_WRITES * units as u64).div_ceil(segment_units) + 1;
        Midas {
            writes,
            intervals: vec![0; bins as usize],
            group_count: group_count.into(),
            segment_units,
            segment_ticks,
            garbage_share,
            epoch,
            ..Midas::default()
        }
    }

    /// Ages at which a block leaves each group but the last, in units written.
    pub fn ages_units(&self) -> Vec<u64> {
        self.ages.iter().map(|age| age * self.writes.tick_units).collect()
    }

    /// Predicted write amplification of the current groups, or 0 before the first epoch has ended.
    pub fn predicted(&self) -> f64 {
        self.predicted
    }

    fn end_epoch(&mut self) {
        self.written = 0;
        let valid = self.valid as f64 / self.segment_units as f64;
        let segments = valid / (1.0 - self.garbage_share);
        let chosen = IntervalSurvival::new(&self.intervals)
            .and_then(|survival| choose(&survival, self.group_count, segments, valid));
        if let Some(chosen) = chosen {
            assert!(
                chosen.write_amplification >= 1.0,
                "the model predicts a write amplification of {}",
                chosen.write_amplification
            );
            let ticks = |age: &f64| (age * self.segment_ticks as f64) as u64;
            self.ages = chosen.ages.iter().map(ticks).collect();
            self.predicted = chosen.write_amplification;
        }
        assert!(self.ages.len() < self.group_count);
        self.intervals.fill(0);
    }
}

impl Classifier for Midas {
    fn prefetch(&self, unit: u64) {
        self.writes.prefetch(unit);
    }

    fn handle(&mut self, unit: u64) -> Option<PlacementIndex> {
        let (group, counter) = match self.writes.remove(unit) {
            None => {
                self.valid += 1;
                (self.ages.len(), 0)
            }
            Some(last) => {
                let bin = (last.age / self.segment_ticks).min(self.intervals.len() as u64 - 1);
                self.intervals[bin as usize] += 1;
                let group = self.ages.partition_point(|age| *age < last.age);
                // With a single group, all blocks die in it.
                let is_young = group == 0 && !self.ages.is_empty();
                let counter = if is_young { (last.tag + 1).min(HOT) } else { last.tag.saturating_sub(1) };
                (group, counter)
            }
        };
        self.writes.record(unit, counter);
        let _ = self.writes.pass();
        self.written += 1;
        if self.written >= self.epoch {
            self.end_epoch();
        }
        let index = if counter == HOT { 0 } else { group + 1 };
        Some(PlacementIndex(index as u16))
    }

    fn trim(&mut self, unit: u64) {
        self.valid -= u64::from(self.writes.remove(unit).is_some());
    }

    fn measures(&self) -> Vec<WorkloadMeasure> {
        vec![
            WorkloadMeasure::new("classifier.groups", (self.ages.len() + 1) as f64),
            WorkloadMeasure::new("classifier.predicted_write_amplification", self.predicted),
        ]
    }
}
