//! Classification by address, for a host whose administrator knows the contents of each partition.
//! Needs no memory.

use serde::{Deserialize, Serialize};

use super::{Classifier, placement_count};
use crate::trace::LbaRange;
use crate::{PlacementIndex, WorkloadError, WorkloadTarget};

/// Settings of `kind = "lba_range"`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LbaRangeSettings {
    /// Ranges of the drive at full size, with their placement indices. The first range that
    /// contains a unit's first byte counts. Units outside all ranges have no directive. By default,
    /// the drive is divided into equal parts, one for each placement index.
    pub ranges: Vec<LbaRange>,
    /// Number of equal parts if `ranges` is empty. Default is the number of placement indices.
    pub placement_count: Option<u16>,
}

/// Ranges in units of the drive that receives the requests.
pub(super) struct LbaRanges {
    ranges: Vec<(std::ops::Range<u64>, PlacementIndex)>,
}

impl LbaRangeSettings {
    pub(super) fn classifier(&self, target: &WorkloadTarget) -> Result<LbaRanges, WorkloadError> {
        let ranges = if self.ranges.is_empty() { self.equal_parts(target)? } else { self.ranges.clone() };
        let unit_bytes = target.unit_bytes();
        let unit = |bytes: u64| {
            let bytes = bytes.min(target.device_bytes);
            let bytes = target.scaled_model.map_or(bytes, |model| model.position(bytes, target.device_bytes));
            bytes.div_ceil(unit_bytes)
        };
        let mut in_units = Vec::new();
        for range in ranges {
            if range.placement.0 >= target.placement_count {
                return Err(WorkloadError::setting(
                    "classifier.ranges",
                    format!(
                        "has placement = {}, which does not exist on the drive. Use a placement index from 0 to {}",
                        range.placement,
                        target.placement_count - 1
                    ),
                ));
            }
            if range.start_bytes >= range.end_bytes {
                return Err(WorkloadError::setting(
                    "classifier.ranges",
                    format!(
                        "has an empty range from {} to {}. Give an end_bytes above start_bytes",
                        range.start_bytes, range.end_bytes
                    ),
                ));
            }
            let units = unit(range.start_bytes)..unit(range.end_bytes);
            assert!(units.start <= units.end, "a range of units goes back: {units:?}");
            in_units.push((units, range.placement));
        }
        Ok(LbaRanges { ranges: in_units })
    }

    fn equal_parts(&self, target: &WorkloadTarget) -> Result<Vec<LbaRange>, WorkloadError> {
        let parts = placement_count(self.placement_count, target)?;
        let at = |part: u16| {
            let start = u128::from(target.device_bytes) * u128::from(part) / u128::from(parts);
            start as u64 - start as u64 % target.unit_bytes()
        };
        let part = |part| LbaRange {
            start_bytes: at(part),
            end_bytes: if part + 1 == parts { u64::MAX } else { at(part + 1) },
            placement: PlacementIndex(part),
        };
        Ok((0..parts).map(part).collect())
    }
}

impl Classifier for LbaRanges {
    fn handle(&mut self, unit: u64) -> Option<PlacementIndex> {
        let range = self.ranges.iter().find(|(range, _)| range.contains(&unit));
        range.map(|(_, placement)| *placement)
    }
}
