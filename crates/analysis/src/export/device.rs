//! Tables of a device: content and counters of its handles, its reclaim units, its collections.

use ssd::event::ReclaimRecord;
use ssd::unit::UnitState;
use ssd::{Device, EventSink, RuId};

use super::columns::ExportTable;
use super::tables::{owner_columns, reclaim_columns};

/// One row for each handle and one for the shared pool, with counters and present content.
pub fn handles<'a, S: EventSink>(device: &Device<S>) -> ExportTable<'a> {
    let rows: Vec<_> = device.stats().owners().zip(device.occupancy()).collect();
    ExportTable::single_batch(&rows, |columns| {
        owner_columns(columns, |((owner, row), _)| (*owner, *row))
            .u64("units", |(_, held)| held.units)
            .u64("pages", |(_, held)| held.pages)
            .u64("valid_pages", |(_, held)| held.valid_pages)
    })
}

/// One row for each reclaim unit that is not free.
pub fn units<'a, S: EventSink>(device: &Device<S>) -> ExportTable<'a> {
    let all = (0..device.layout().slices()).map(|unit| (RuId(unit), device.unit(RuId(unit))));
    let rows: Vec<_> = all.filter(|(_, unit)| unit.state() != UnitState::Free).collect();
    let now = device.host_pages_written();
    ExportTable::single_batch(&rows, |columns| {
        columns
            .u32("unit", |(id, _)| id.0)
            .u16("reclaim_group", |(_, unit)| unit.group().0)
            .handle("ruh", |(_, unit)| unit.owner())
            .text("state", |(_, unit)| state_name(unit.state()))
            .u32("pages", |(_, unit)| unit.pages())
            .u32("valid_pages", |(_, unit)| unit.valid_pages())
            .u64("age", |(_, unit)| now - unit.last_write())
            .u64("since_invalidation", |(_, unit)| now - unit.last_invalidation())
            .optional_u64("closed_sequence", |(_, unit)| {
                (unit.state() == UnitState::Closed).then(|| unit.closed_sequence())
            })
    })
}

fn state_name(state: UnitState) -> &'static str {
    match state {
        UnitState::Free => "free",
        UnitState::OpenForHost => "open_for_host",
        UnitState::OpenForCollection => "open_for_collection",
        UnitState::Closed => "closed",
    }
}

/// One row for each collection of a device.
pub fn gc_log<'a>(page_bytes: u64, rows: &[ReclaimRecord]) -> ExportTable<'a> {
    ExportTable::single_batch(rows, |columns| reclaim_columns(columns, |row| (page_bytes, row)))
}
