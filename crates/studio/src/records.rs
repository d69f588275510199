//! Converts the state of a device for pages: units, owners and events to records of frames, the
//! layout to JSON.
//!
//! Simulated lanes and served drives use the same functions. This module keeps no state.

use serde_json::{Map, Value, json};
use ssd::config::Isolation;
use ssd::device::Occupancy;
use ssd::event::{CloseReason, Trigger};
use ssd::unit::UnitState;
use ssd::{DeviceEvent, DeviceLayout, DeviceStats, OwnerStats, UnitOwner, UnitView};

use crate::frames::{CLOSED, NO_OWNER, NO_UNIT, OwnerRecord, UnitEventRecord, UnitRecord};

/// Event with the additional data of a trace.
#[derive(Clone, Copy, Debug)]
pub struct LoggedEvent {
    pub record: UnitEventRecord,
    pub group: u16,
    /// Time of a reclaim until the erase of the victim, virtual nanoseconds.
    pub elapsed_ns: u64,
}

pub fn rows(stats: &DeviceStats) -> impl Iterator<Item = &OwnerStats> {
    stats.handles.iter().chain([&stats.shared])
}

/// Index of an owner for pages. The handles come first, then the shared pool.
pub fn owner_index(owner: UnitOwner, handles: usize) -> u8 {
    let index = owner.handle().map_or(handles, |handle| usize::from(handle.0));
    u8::try_from(index).expect("a device has at most 128 handles")
}

// Frames have the numbers of the variants.
const _: () = assert!(UnitState::Closed as u8 == CLOSED && CloseReason::IsolationChanged as u8 == 3);
const _: () = assert!(Trigger::Background as u8 == 0 && Trigger::Forced as u8 == 2);

/// Converts an event to a record with the data of a trace. `opened_pages` has the page count of
/// each opened unit, by unit.
pub fn record(
    event: &DeviceEvent,
    destination: Option<u32>,
    handles: usize,
    opened_pages: &mut [u32],
    host_bytes: u64,
    now_ns: u64,
) -> LoggedEvent {
    let nothing = UnitEventRecord {
        kind: 0,
        owner: NO_OWNER,
        reason: 0,
        destination_owner: NO_OWNER,
        unit: NO_UNIT,
        pages: 0,
        valid_pages: 0,
        copied_pages: 0,
        destination: destination.unwrap_or(NO_UNIT),
        host_bytes,
        now_ns,
    };
    let (record, group, elapsed_ns) = match event {
        DeviceEvent::Open { group, unit, owner, unit_pages, .. } => {
            opened_pages[unit.0 as usize] = *unit_pages;
            let record = UnitEventRecord {
                kind: 1,
                owner: owner_index(*owner, handles),
                unit: unit.0,
                pages: *unit_pages,
                ..nothing
            };
            (record, group.0, 0)
        }
        DeviceEvent::Close { group, unit, owner, unwritten_pages, reason } => {
            let pages = opened_pages[unit.0 as usize];
            let record = UnitEventRecord {
                kind: 2,
                owner: owner_index(*owner, handles),
                reason: *reason as u8,
                unit: unit.0,
                pages,
                valid_pages: pages.saturating_sub(*unwritten_pages),
                ..nothing
            };
            (record, group.0, 0)
        }
        DeviceEvent::Reclaim(reclaim) => {
            let record = UnitEventRecord {
                kind: 3,
                owner: owner_index(reclaim.victim_owner, handles),
                reason: reclaim.trigger as u8,
                destination_owner: owner_index(reclaim.destination_owner, handles),
                unit: reclaim.victim.0,
                pages: reclaim.unit_pages,
                valid_pages: reclaim.valid_pages,
                copied_pages: reclaim.pages_copied,
                ..nothing
            };
            (record, reclaim.group.0, reclaim.elapsed_ns)
        }
        DeviceEvent::Redirect { from, pages, .. } => {
            let record = UnitEventRecord { kind: 4, pages: *pages, ..nothing };
            (record, from.0, 0)
        }
        DeviceEvent::HostWrite(_)
        | DeviceEvent::Absorb { .. }
        | DeviceEvent::Deallocate { .. }
        | DeviceEvent::LevelWear { .. } => {
            unreachable!("the log of recent events has neither host commands nor wear levelling")
        }
    };
    LoggedEvent { record, group, elapsed_ns }
}

pub fn owner_record(row: &OwnerStats, holds: &Occupancy) -> OwnerRecord {
    OwnerRecord {
        host_bytes: row.host_bytes_written,
        copied_out_pages: row.gc_pages_copied,
        received_pages: row.gc_pages_received,
        valid_pages: holds.valid_pages,
        units: u32::try_from(holds.units).expect("a drive has at most 2^32 reclaim units"),
        reclaimed: row.units_reclaimed,
    }
}

/// Records of all slices of a drive.
pub fn units_of(views: impl IntoIterator<Item = UnitView>, layout: &DeviceLayout) -> Vec<UnitRecord> {
    let slices_per_group = layout.slices_per_superblock * layout.superblocks_per_group;
    let handles = layout.handles.len();
    let free = |slice: u32| UnitRecord {
        state: 0,
        owner: NO_OWNER,
        group: (slice / slices_per_group) as u16,
        valid_pages: 0,
        written_pages: 0,
    };
    let mut units: Vec<UnitRecord> = (0..layout.slices()).map(free).collect();
    for view in views {
        units[view.unit.0 as usize] = UnitRecord {
            state: view.state as u8,
            owner: view.owner.map_or(NO_OWNER, |owner| owner_index(owner, handles)),
            group: view.group.0,
            valid_pages: view.valid_pages,
            written_pages: view.written_pages,
        };
    }
    units
}

/// JSON of a lane that depends only on the drive's layout.
pub fn drive_json(layout: &DeviceLayout) -> Map<String, Value> {
    let groups = u64::from(layout.groups);
    let slices = u64::from(layout.slices_per_superblock);
    let handles = layout.handles.iter().enumerate().map(|(handle, settings)| {
        let isolation = match settings.isolation {
            Isolation::InitiallyIsolated => "II",
            // An adaptive handle is persistently isolated while its group can afford it.
            Isolation::PersistentlyIsolated | Isolation::Adaptive => "PI",
        };
        json!({ "name": format!("RUH {handle}"), "isolation": isolation })
    });
    let pool = json!({ "name": "shared pool", "isolation": null });
    object(json!({
        "page_bytes": layout.page_bytes,
        "capacity_bytes": layout.capacity_bytes(),
        "physical_bytes": u64::from(layout.physical_pages) * layout.page_bytes,
        "unit_pages": layout.slice_pages,
        "units": layout.slices(),
        "superblocks": layout.superblocks(),
        "groups": layout.groups,
        "owners": handles.chain([pool]).collect::<Vec<Value>>(),
        "marks": {
            "background_free_units": groups * layout.background_free_slices / slices,
            "foreground_free_units": groups * layout.foreground_free_slices / slices,
        },
    }))
}

/// Members of a JSON object.
///
/// # Panics
/// The value is not an object.
pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}
