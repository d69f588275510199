//! Flexible Data Placement: the configurations a drive offers, placement identifiers, and the event logs.
//!
//! The device model knows reclaim groups, reclaim units and handles; this module gives them the standard's clothes. The
//! bytes of the log pages are made in `admin::log_page`, from what is here and from the device's `Stats` alone.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use ssd::config::{DeviceConfig, Isolation};
use ssd::event::{CloseReason, Interest, Moved};
use ssd::{Event, EventSink, Nanos, Owner, Placement, RgId, RuhId};

/// Flexible Data Placement of the endurance group, non-volatile.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FdpState {
    /// FDPE of feature 1Dh.
    pub enabled: bool,
    /// Index of the FDP configuration.
    pub configuration: u8,
    /// Host events, oldest first.
    pub host_events: EventLog,
    /// Controller events, oldest first.
    pub controller_events: EventLog,
}

/// When each handle's reclaim unit was first written to, for the time limit (ERUTL): by reclaim group and handle.
pub(crate) type OpenSince = BTreeMap<(u16, u16), Nanos>;

/// A ring of events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct EventLog {
    entries: VecDeque<FdpEvent>,
    /// Events that made room for newer ones, unread or not.
    pub overwritten: u64,
}

impl EventLog {
    /// Adds an event to a log of `entries`, dropping the oldest when full.
    pub fn push(&mut self, event: FdpEvent, entries: u16) {
        while self.entries.len() >= usize::from(entries) {
            self.entries.pop_front();
            self.overwritten += 1;
        }
        self.entries.push_back(event);
    }

    /// The events, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &FdpEvent> {
        self.entries.iter()
    }

    /// Forgets everything, as a change of the FDP configuration does.
    pub fn clear(&mut self) {
        *self = EventLog::default();
    }
}

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
    pub reallocated: Option<Reallocated>,
}

/// What a Media Reallocated event says beyond the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reallocated {
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

/// What the device tells the controller: the few events that become FDP events, until they are taken.
#[derive(Clone, Debug, Default)]
pub struct DeviceReports {
    pending: Vec<DeviceReport>,
    /// Pages that went to other reclaim groups than the host asked for, by where they went.
    redirected: BTreeMap<u16, u64>,
}

/// A device event that becomes an FDP event.
#[derive(Clone, Copy, Debug)]
pub enum DeviceReport {
    /// Garbage collection moved data.
    Reallocated {
        /// Where from.
        group: RgId,
        /// Whose reclaim unit it was.
        owner: Owner,
        /// The pages to name, if any.
        moved: Option<Moved>,
        /// Pages moved in all.
        pages: u32,
    },
    /// A handle's reclaim unit was closed for room.
    Modified(Placement),
}

impl EventSink for DeviceReports {
    fn interest(&self) -> Interest {
        Interest::ReclaimUnits
    }

    fn event(&mut self, event: &Event) {
        if let Event::Redirect { to, pages, .. } = event {
            *self.redirected.entry(to.0).or_default() += u64::from(*pages);
        }
        let report = match event {
            Event::Reclaim(reclaim) => (reclaim.pages_copied > 0).then_some(DeviceReport::Reallocated {
                group: reclaim.group,
                owner: reclaim.victim_owner,
                moved: reclaim.moved,
                pages: reclaim.pages_copied,
            }),
            Event::Close {
                group,
                owner,
                reason: CloseReason::RoomNeeded,
                ..
            } => owner
                .handle()
                .map(|handle| DeviceReport::Modified(Placement { group: *group, handle })),
            _ => None,
        };
        self.pending.extend(report);
    }
}

impl DeviceReports {
    /// Whether there is nothing to take.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Takes what is there.
    pub fn take(&mut self) -> Vec<DeviceReport> {
        std::mem::take(&mut self.pending)
    }

    /// Takes the pages that each reclaim group got because the one that the host asked for was full.
    pub fn take_redirected(&mut self) -> BTreeMap<u16, u64> {
        std::mem::take(&mut self.redirected)
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
    other.handles.isolation = match any_initially {
        true => Isolation::PersistentlyIsolated,
        false => Isolation::InitiallyIsolated,
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

    #[test]
    fn a_full_log_drops_the_oldest() {
        let mut log = EventLog::default();
        for timestamp in 0..70 {
            let event = FdpEvent {
                kind: kind::INVALID_PLACEMENT_IDENTIFIER,
                pid: None,
                nsid: None,
                location: None,
                timestamp,
                reallocated: None,
            };
            log.push(event, 63);
        }
        assert_eq!(log.iter().len(), 63);
        assert_eq!(log.iter().next().unwrap().timestamp, 7);
        assert_eq!(log.overwritten, 7);
    }
}
