//! The FDP configurations of a drive, and the placement identifiers of a configuration.

use ssd::RuhId;
use ssd::config::{DeviceConfig, Isolation};

/// Bits of a placement identifier for the reclaim group (RGIF), the fewest that can number `groups`
/// groups.
pub fn reclaim_group_identifier_bits(groups: u16) -> u32 {
    u16::BITS - (groups - 1).leading_zeros()
}

/// Splits a placement identifier into reclaim group and placement handle index, without range
/// checks.
pub fn split_placement_identifier(pid: u16, groups: u16) -> (u16, u16) {
    let bits = reclaim_group_identifier_bits(groups);
    let handle_bits = u16::BITS - bits;
    let group = u32::from(pid) >> handle_bits;
    (group as u16, (u32::from(pid) & ((1 << handle_bits) - 1)) as u16)
}

/// Builds the placement identifier of a reclaim group and a placement handle index.
pub fn placement_identifier(group: u16, handle: u16, groups: u16) -> u16 {
    let handle_bits = u16::BITS - reclaim_group_identifier_bits(groups);
    assert!(group < groups, "reclaim group {group} is one of {groups}");
    assert!(u32::from(handle) < 1 << handle_bits, "placement handle {handle} has {handle_bits} bits");
    (u32::from(group) << handle_bits) as u16 | handle
}

/// The device without Flexible Data Placement. It has one reclaim group, so each reclaim unit spans
/// all dies. All host writes use handle 0.
pub fn without_fdp(profile: &DeviceConfig) -> DeviceConfig {
    let mut config = profile.clone();
    config.geometry.reclaim_unit_bytes *= u64::from(profile.geometry.reclaim_groups);
    config.geometry.reclaim_groups = 1;
    config
}

/// The FDP configurations of a drive. The first is the profile's, the second has the other
/// isolation on every handle.
pub fn configurations(profile: &DeviceConfig) -> Vec<DeviceConfig> {
    let mut other = profile.clone();
    let any_initially = (0..profile.handles.count)
        .any(|handle| profile.handles.get(handle).isolation != Isolation::PersistentlyIsolated);
    other.handles.isolation =
        if any_initially { Isolation::PersistentlyIsolated } else { Isolation::InitiallyIsolated };
    for given in &mut other.handles.overrides {
        given.isolation = None;
    }
    let mut all = vec![profile.clone()];
    // Persistent isolation needs more over-provisioning. A drive without enough does not offer it.
    all.extend(is_same_flash(profile, &other).then_some(other));
    assert!(
        all.iter().all(|config| config.handles.count == profile.handles.count),
        "configurations differ in isolation alone"
    );
    all
}

/// True if both configurations are valid and divide the same blocks for the same capacity. A drive
/// can switch only between such configurations.
pub fn is_same_flash(one: &DeviceConfig, other: &DeviceConfig) -> bool {
    match (ssd::DeviceLayout::new(one), ssd::DeviceLayout::new(other)) {
        (Ok(one), Ok(other)) => one.logical_pages == other.logical_pages && one.blocks() == other.blocks(),
        _ => false,
    }
}

/// Reclaim unit handle type of the FDP configuration descriptor. 1 is initially isolated, 2
/// persistently isolated.
pub(super) fn handle_type(isolation: Isolation) -> u8 {
    match isolation {
        // An adaptive handle gives no guarantee beyond the weaker of its two modes.
        Isolation::InitiallyIsolated | Isolation::Adaptive => 1,
        Isolation::PersistentlyIsolated => 2,
    }
}

/// Default placement handles of a new namespace, which are one placement handle with handle 0.
pub(crate) fn default_handles() -> Vec<RuhId> {
    vec![RuhId(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_split_and_join() {
        assert_eq!(reclaim_group_identifier_bits(1), 0);
        assert_eq!(reclaim_group_identifier_bits(2), 1);
        assert_eq!(reclaim_group_identifier_bits(4), 2);
        assert_eq!(reclaim_group_identifier_bits(5), 3);
        assert_eq!(split_placement_identifier(0x8003, 2), (1, 3));
        assert_eq!(split_placement_identifier(0xffff, 1), (0, 0xffff));
        for groups in [1, 2, 3, 4, 64] {
            let pid = placement_identifier(groups - 1, 5, groups);
            assert_eq!(split_placement_identifier(pid, groups), (groups - 1, 5));
        }
    }
}
