//! Flexible Data Placement: the configurations a drive offers, placement identifiers, and the event logs.
//!
//! ```text
//! ssd::Event (kept by DeviceReports until the command is done) -> FdpEvent in a ring -> bytes of the log page
//!            \-> RecentEvents -> who watches
//! ```
//!
//! The device model knows reclaim groups, reclaim units and handles; this module gives them the standard's clothes. The
//! bytes of the log pages are made in `admin::log_page`, from what is here and from the device's `Stats` alone.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ssd::config::{DeviceConfig, Isolation};
use ssd::event::{CloseReason, Interest};
use ssd::{Event, EventSink, Nanos, Placement, RecentEvents, Ring, RuhId};

/// Flexible Data Placement of the endurance group, non-volatile.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FdpState {
    /// FDPE of feature 1Dh.
    pub enabled: bool,
    /// Index of the FDP configuration.
    pub configuration: u8,
    /// Host events, oldest first.
    pub host_events: Ring<FdpEvent>,
    /// Controller events, oldest first.
    pub controller_events: Ring<FdpEvent>,
}

/// When each handle's reclaim unit was first written to, for the time limit (ERUTL): by reclaim group and handle.
pub(crate) type OpenSince = BTreeMap<(u16, u16), Nanos>;

/// One event of the FDP Events log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdpEvent {
    /// Event type ([`kind`]).
    pub kind: u8,
    /// Placement identifier, if there is one (PIV).
    pub pid: Option<u16>,
    /// Namespace, if there is one (NSIDV).
    pub nsid: Option<u32>,
    /// Reclaim group and handle, if known (LV).
    pub location: Option<Placement>,
    /// The 8 bytes of the Timestamp feature when it happened.
    pub timestamp: u64,
    /// Of Media Reallocated: logical blocks moved (NLBAM), and the first one of the longest contiguous run.
    pub reallocated: Option<Reallocation>,
}

/// What a Media Reallocated event says beyond the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reallocation {
    /// Logical blocks moved, at most 65535 can be said (NLBAM).
    pub blocks: u16,
    /// One of the moved blocks, as `events.reported_page` chooses it; `None` if the drive names none.
    pub lba: Option<u64>,
}

/// Event types, as numbers of the FDP Events log page.
pub mod kind {
    use nvme_spec::fdp::FdpEventType;

    /// Host: a reclaim unit was left before it was full.
    pub const RU_NOT_FULLY_WRITTEN: u8 = FdpEventType::RuNotWrittenToCapacity.code();
    /// Host: a reclaim unit was open for longer than the limit.
    pub const RU_TIME_LIMIT_EXCEEDED: u8 = FdpEventType::RuTimeLimitExceeded.code();
    /// Host: a reset made handles reference other reclaim units.
    pub const CONTROLLER_RESET_MODIFIED_RUHS: u8 = FdpEventType::ControllerResetModifiedRuhs.code();
    /// Host: a placement identifier that does not exist.
    pub const INVALID_PLACEMENT_IDENTIFIER: u8 = FdpEventType::InvalidPlacementIdentifier.code();
    /// Controller: garbage collection moved data.
    pub const MEDIA_REALLOCATED: u8 = FdpEventType::MediaReallocated.code();
    /// Controller: a handle references another reclaim unit without the host's doing.
    pub const IMPLICITLY_MODIFIED_RUH: u8 = FdpEventType::ImplicitlyModifiedRuh.code();
    /// All that the controller can report.
    pub const SUPPORTED: [u8; 6] = [
        RU_NOT_FULLY_WRITTEN,
        RU_TIME_LIMIT_EXCEEDED,
        CONTROLLER_RESET_MODIFIED_RUHS,
        INVALID_PLACEMENT_IDENTIFIER,
        MEDIA_REALLOCATED,
        IMPLICITLY_MODIFIED_RUH,
    ];

    /// Whether a type belongs to the host event log (the others to the controller event log).
    pub const fn is_host_event(kind: u8) -> bool {
        kind < 0x80
    }
}

/// What the device tells the controller: the few of its events that become FDP events, until they are taken.
#[derive(Clone, Debug, Default)]
pub struct DeviceReports {
    pending: Vec<Event>,
    /// Pages that went to other reclaim groups than the host asked for, by where they went.
    redirected: BTreeMap<u16, u64>,
    /// What happened lately, for who watches.
    recent: RecentEvents,
}

impl EventSink for DeviceReports {
    fn interest(&self) -> Interest {
        Interest::ReclaimUnits
    }

    fn event(&mut self, event: &Event) {
        self.recent.note(event);
        let becomes_an_event = match event {
            Event::Redirect { to, pages, .. } => {
                *self.redirected.entry(to.0).or_default() += u64::from(*pages);
                false
            }
            // Nothing was reallocated where all blocks could be remapped.
            Event::Reclaim(reclaim) => reclaim.pages_copied > 0,
            Event::Close { owner, reason, .. } => *reason == CloseReason::RoomNeeded && owner.handle().is_some(),
            _ => false,
        };
        if becomes_an_event {
            self.pending.push(event.clone());
        }
    }
}

impl DeviceReports {
    /// Those of the device that takes the place of another one: nothing is pending, and who watches goes on where he was.
    pub fn after(before: &DeviceReports) -> DeviceReports {
        DeviceReports {
            recent: before.recent.clone(),
            ..DeviceReports::default()
        }
    }

    /// What happened lately.
    pub fn recent(&self) -> &RecentEvents {
        &self.recent
    }

    /// Whether there is nothing to take.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes what is there.
    pub fn take(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.pending)
    }

    /// Takes the pages that each reclaim group got because the one that the host asked for was full.
    pub fn take_redirected(&mut self) -> BTreeMap<u16, u64> {
        std::mem::take(&mut self.redirected)
    }

    /// Nobody wants to know them.
    #[inline]
    pub fn forget_redirected(&mut self) {
        if !self.redirected.is_empty() {
            self.redirected.clear();
        }
    }
}

/// Bits of a placement identifier that name the reclaim group (RGIF): as few as tell `groups` groups apart.
pub fn reclaim_group_identifier_bits(groups: u16) -> u32 {
    u16::BITS - (groups - 1).leading_zeros()
}

/// Splits a placement identifier into reclaim group and placement handle index. Neither is checked.
pub fn split_placement_identifier(pid: u16, groups: u16) -> (u16, u16) {
    let bits = reclaim_group_identifier_bits(groups);
    let handle_bits = u16::BITS - bits;
    let group = u32::from(pid) >> handle_bits;
    (group as u16, (u32::from(pid) & ((1 << handle_bits) - 1)) as u16)
}

/// The placement identifier of a reclaim group and a placement handle index.
pub fn placement_identifier(group: u16, handle: u16, groups: u16) -> u16 {
    let handle_bits = u16::BITS - reclaim_group_identifier_bits(groups);
    (u32::from(group) << handle_bits) as u16 | handle
}

/// The device as it is without Flexible Data Placement: one reclaim group, so reclaim units of the same blocks over all
/// dies; host writes all go to handle 0.
pub fn without_fdp(profile: &DeviceConfig) -> DeviceConfig {
    let mut config = profile.clone();
    config.geometry.reclaim_unit_bytes *= u64::from(profile.geometry.reclaim_groups);
    config.geometry.reclaim_groups = 1;
    config
}

/// The FDP configurations that a drive offers: as its profile says, and with the other isolation on every handle.
pub fn configurations(profile: &DeviceConfig) -> Vec<DeviceConfig> {
    let mut other = profile.clone();
    let any_initially = (0..profile.handles.count)
        .any(|handle| profile.handles.get(handle).isolation != Isolation::PersistentlyIsolated);
    other.handles.isolation = if any_initially {
        Isolation::PersistentlyIsolated
    } else {
        Isolation::InitiallyIsolated
    };
    for given in &mut other.handles.overrides {
        given.isolation = None;
    }
    let mut all = vec![profile.clone()];
    // Persistent isolation needs more spare room; a drive that has not got it does not offer it.
    all.extend(is_same_flash(profile, &other).then_some(other));
    all
}

/// Whether two configurations work and divide the same blocks for the same capacity: only between such can a drive be
/// switched.
pub fn is_same_flash(one: &DeviceConfig, other: &DeviceConfig) -> bool {
    match (ssd::Layout::new(one), ssd::Layout::new(other)) {
        (Ok(one), Ok(other)) => one.logical_pages == other.logical_pages && one.blocks() == other.blocks(),
        _ => false,
    }
}

/// Reclaim unit handle type of the FDP configuration descriptor: 1 initially isolated, 2 persistently isolated.
pub fn handle_type(isolation: Isolation) -> u8 {
    match isolation {
        // An adaptive handle gives no guarantee beyond the weaker of its two modes.
        Isolation::InitiallyIsolated | Isolation::Adaptive => 1,
        Isolation::PersistentlyIsolated => 2,
    }
}

/// Default placement handles of a namespace whose creator named none: one, of handle 0.
pub fn default_handles() -> Vec<RuhId> {
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
