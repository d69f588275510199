//! Grouping of similar objects by size class, time to live or rewrite history.

use serde::{Deserialize, Serialize};

use super::ObjectCacheSettings;
use crate::distribution::SizeDistribution;
use workload::WorkloadTarget;
use workload::random::mix;

/// Salt of the times to live, so that they are independent of sizes.
const TTL_SALT: u64 = 0x7474_6c00;
const SECOND_NS: u64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectGrouping {
    None,
    /// By size class.
    Class,
    /// By time to live, with one group for each interval of `ttl_quantiles`.
    Ttl,
    /// Segments: separates rewritten objects from new ones.
    Rewritten,
}

pub(super) struct GroupSorter {
    groups: ObjectGrouping,
    /// Upper bounds of the size classes in ascending order, bytes.
    pub(super) class_bytes: Vec<u64>,
    /// Times to live in seconds, and the ends of their intervals, of 2^32.
    ttl: Option<(SizeDistribution, Vec<u64>)>,
}

impl GroupSorter {
    pub(super) fn new(settings: &ObjectCacheSettings, target: &WorkloadTarget) -> GroupSorter {
        let unit_bytes = target.unit_bytes();
        let mut class_bytes = vec![settings.slot_bytes.next_multiple_of(unit_bytes)];
        while class_bytes[class_bytes.len() - 1] < settings.max_object_bytes {
            let last = class_bytes[class_bytes.len() - 1];
            let next = ((last as f64 * settings.growth_factor) as u64).next_multiple_of(unit_bytes);
            // The largest object bounds the last class.
            let most = settings.max_object_bytes.next_multiple_of(unit_bytes);
            class_bytes.push(next.max(last + unit_bytes).min(most));
        }
        let ttl = (!settings.ttl_quantiles.is_empty()).then(|| {
            let ends = settings.ttl_quantiles[1..].iter();
            let ends = ends.map(|(percent, _)| (percent / 100.0 * 4_294_967_296.0) as u64);
            (SizeDistribution::new(&settings.ttl_quantiles), ends.collect())
        });
        GroupSorter { groups: settings.groups, class_bytes, ttl }
    }

    pub(super) fn names(&self) -> Vec<String> {
        match (self.groups, &self.ttl) {
            (ObjectGrouping::Class, _) => self.class_bytes.iter().map(|bytes| format!("class_{bytes}")).collect(),
            (ObjectGrouping::Ttl, Some((_, ends))) => {
                (0..ends.len()).map(|interval| format!("ttl_{interval}")).collect()
            }
            (ObjectGrouping::Rewritten, _) => ["new", "rewritten"].map(String::from).to_vec(),
            (ObjectGrouping::None | ObjectGrouping::Ttl, _) => vec!["objects".to_string()],
        }
    }

    /// Size class of an object of permitted size.
    pub(super) fn class(&self, bytes: u32) -> usize {
        let class = self.class_bytes.partition_point(|bound| *bound < u64::from(bytes));
        assert!(class < self.class_bytes.len(), "an object of {bytes} bytes has a class");
        class
    }

    pub(super) fn group(&self, key: u64, bytes: u32, is_rewritten: bool) -> usize {
        match (self.groups, &self.ttl) {
            (ObjectGrouping::Class, _) => self.class(bytes),
            (ObjectGrouping::Ttl, Some((_, ends))) => {
                let bits = u64::from(mix(key ^ TTL_SALT) as u32);
                ends.partition_point(|end| *end <= bits).min(ends.len() - 1)
            }
            (ObjectGrouping::Rewritten, _) => usize::from(is_rewritten),
            (ObjectGrouping::None | ObjectGrouping::Ttl, _) => 0,
        }
    }

    /// Expiry time of an object that is stored now, nanoseconds.
    pub(super) fn expires_ns(&self, key: u64, now_ns: u64) -> u64 {
        let Some((seconds, _)) = &self.ttl else { return u64::MAX };
        let seconds = u64::from(seconds.size(mix(key ^ TTL_SALT) as u32));
        now_ns.saturating_add(seconds * SECOND_NS)
    }
}
