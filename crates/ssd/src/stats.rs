//! Counters of a device, on the levels of section 4.5 of the WARP paper: device and reclaim unit
//! handle. The third level, the single collection, is [`crate::event::ReclaimRecord`].
//!
//! [`DeviceStats`] holds one row for each handle and one for the shared pool. Device totals are
//! sums of rows, so the two levels cannot disagree. [`DeviceStats::apply`] derives the same numbers
//! from events, as a cross-check.

use serde::{Deserialize, Serialize};

use crate::cast::to_f64;
use crate::event::{CloseReason, DeviceEvent, Trigger};
use crate::overhead::MediaOverhead;
use crate::types::{RuhId, UnitOwner};

/// Counters of one owner, which is a reclaim unit handle or the shared pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerStats {
    /// Bytes that the host sent through this handle.
    pub host_bytes_written: u64,
    /// Pages of host writes. Exceeds the bytes if writes cover mapping units partially.
    pub host_pages_written: u64,
    /// Pages of host writes that replaced a page in the write buffer and were not programmed.
    pub host_pages_absorbed: u64,
    /// Pages that collection copied out of this owner's reclaim units.
    pub gc_pages_copied: u64,
    /// Pages that collection copied into this owner's reclaim units.
    pub gc_pages_received: u64,
    /// Pages that static wear levelling copied to worn blocks. Collection's copies do not include
    /// them.
    pub wear_levelling_pages: u64,
    /// Pages of `pages_erased` that static wear levelling erased.
    pub wear_levelling_pages_erased: u64,
    /// Fully valid blocks that collection moved out of this owner's reclaim units without copying.
    pub blocks_remapped: u64,
    /// Pages in remapped blocks.
    pub pages_remapped: u64,
    /// Reclaim units opened (allocations).
    pub units_opened: u64,
    /// Reclaim units reclaimed (evictions).
    pub units_reclaimed: u64,
    /// Pages erased with the reclaim units, by collection and wear levelling. A blank block that a reclaim unit received in exchange
    /// for a remapped block is not erased again.
    pub pages_erased: u64,
    /// Pages that were still valid at the time their reclaim unit was reclaimed.
    pub valid_pages_reclaimed: u64,
}

impl OwnerStats {
    /// Pages programmed for data of this owner.
    pub fn data_pages(&self) -> u64 {
        self.host_pages_written - self.host_pages_absorbed + self.gc_pages_copied + self.wear_levelling_pages
    }

    /// Write amplification of the handle, data pages / host pages (WARP Fig. 17). `None`
    /// before any write. The drive's overhead belongs to no handle.
    pub fn write_amplification(&self) -> Option<f64> {
        let host = self.host_pages_written;
        (host > 0).then(|| to_f64(self.data_pages()) / to_f64(host))
    }

    fn combine(&self, other: &OwnerStats, with: fn(u64, u64) -> u64) -> OwnerStats {
        OwnerStats {
            host_bytes_written: with(self.host_bytes_written, other.host_bytes_written),
            host_pages_written: with(self.host_pages_written, other.host_pages_written),
            host_pages_absorbed: with(self.host_pages_absorbed, other.host_pages_absorbed),
            gc_pages_copied: with(self.gc_pages_copied, other.gc_pages_copied),
            gc_pages_received: with(self.gc_pages_received, other.gc_pages_received),
            wear_levelling_pages: with(self.wear_levelling_pages, other.wear_levelling_pages),
            wear_levelling_pages_erased: with(self.wear_levelling_pages_erased, other.wear_levelling_pages_erased),
            blocks_remapped: with(self.blocks_remapped, other.blocks_remapped),
            pages_remapped: with(self.pages_remapped, other.pages_remapped),
            units_opened: with(self.units_opened, other.units_opened),
            units_reclaimed: with(self.units_reclaimed, other.units_reclaimed),
            pages_erased: with(self.pages_erased, other.pages_erased),
            valid_pages_reclaimed: with(self.valid_pages_reclaimed, other.valid_pages_reclaimed),
        }
    }
}

/// All counters of a device since its creation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceStats {
    /// Size of a page in bytes.
    pub page_bytes: u64,
    /// Pages of the drive's own for data pages.
    pub overhead: MediaOverhead,
    /// Rows of the handles.
    pub handles: Vec<OwnerStats>,
    /// Row of the shared pool.
    pub shared: OwnerStats,
    /// Pages that the host deallocated while they were mapped.
    pub pages_deallocated: u64,
    /// Collections at the background watermark.
    pub background_collections: u64,
    /// Collections at the foreground watermark.
    pub foreground_collections: u64,
    /// Emergency collections outside the policy, which found no victim while the device needed
    /// space.
    pub forced_collections: u64,
    /// Reclaim units that the host closed before they were full (reclaim unit handle update).
    pub units_closed_by_host: u64,
    /// Reclaim units that the device closed before they were full.
    pub units_closed_early: u64,
    /// Pages placed in another reclaim group because the requested group was full.
    pub pages_redirected: u64,
}

/// Counters of the FDP statistics log, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdpTotals {
    /// Host Bytes with Metadata Written (HBMW).
    pub host_bytes_written: u64,
    /// Media Bytes with Metadata Written (MBMW), overhead included.
    pub media_bytes_written: u64,
    /// Media Bytes Erased (MBE).
    pub media_bytes_erased: u64,
}

impl DeviceStats {
    /// Returns the counters of the FDP statistics log.
    pub fn totals(&self) -> FdpTotals {
        FdpTotals {
            host_bytes_written: self.host_bytes_written(),
            media_bytes_written: self.media_bytes_written(),
            media_bytes_erased: self.media_bytes_erased(),
        }
    }

    /// Raises the totals to `at_least`. Assigns the difference to the first handle, because its
    /// owner is unknown. Returns the added host pages and the added erased blocks of `block_pages`
    /// pages.
    pub(crate) fn raise(&mut self, at_least: &FdpTotals, block_pages: u64) -> (u64, u64) {
        let now = self.totals();
        let (page_bytes, block_bytes) = (self.page_bytes, self.page_bytes * block_pages);
        let missing = |at_least: u64, now: u64, unit: u64| at_least.saturating_sub(now).div_ceil(unit);
        let media_pages = missing(at_least.media_bytes_written, now.media_bytes_written, page_bytes);
        let pages = self.overhead.data_pages(media_pages);
        let blocks = missing(at_least.media_bytes_erased, now.media_bytes_erased, block_bytes);
        let first = &mut self.handles[0];
        first.host_bytes_written += at_least.host_bytes_written.saturating_sub(now.host_bytes_written);
        first.host_pages_written += pages;
        first.pages_erased += blocks * block_pages;
        let raised = self.totals();
        assert!(
            raised.host_bytes_written >= at_least.host_bytes_written
                && raised.media_bytes_written >= at_least.media_bytes_written
                && raised.media_bytes_erased >= at_least.media_bytes_erased,
            "no counter decreases"
        );
        (pages, blocks)
    }

    /// Returns true if all counters are small enough for a drive's further life to be added without
    /// overflow, and for their sums.
    pub(crate) fn is_countable(&self) -> bool {
        const BYTES_MAX: u128 = 1 << 62;
        // 1 EiB for each counter, so that the bytes of all causes together fit 64 bits.
        let pages_max = (1 << 60) / u128::from(self.page_bytes.max(1));
        let sum = |of: fn(&OwnerStats) -> u64| -> u128 {
            let rows = self.handles.iter().chain([&self.shared]);
            rows.map(|row| u128::from(of(row))).sum()
        };
        let in_pages: [fn(&OwnerStats) -> u64; 12] = [
            |row| row.wear_levelling_pages,
            |row| row.wear_levelling_pages_erased,
            |row| row.host_pages_written,
            |row| row.host_pages_absorbed,
            |row| row.gc_pages_copied,
            |row| row.gc_pages_received,
            |row| row.blocks_remapped,
            |row| row.pages_remapped,
            |row| row.units_opened,
            |row| row.units_reclaimed,
            |row| row.pages_erased,
            |row| row.valid_pages_reclaimed,
        ];
        let alone = [
            self.pages_deallocated,
            self.background_collections,
            self.foreground_collections,
            self.forced_collections,
            self.units_closed_by_host,
            self.units_closed_early,
            self.pages_redirected,
        ];
        let is_written = |row: &OwnerStats| row.host_pages_absorbed <= row.host_pages_written;
        self.handles.iter().chain([&self.shared]).all(is_written)
            && in_pages.iter().all(|of| sum(*of) <= pages_max)
            && sum(|row| row.host_bytes_written) <= BYTES_MAX
            && alone.iter().all(|count| u128::from(*count) <= pages_max)
    }

    /// Creates zeroed counters for a device with this many handles and without overhead.
    pub fn new(page_bytes: u64, handles: u16) -> DeviceStats {
        DeviceStats {
            page_bytes,
            overhead: MediaOverhead::default(),
            handles: vec![OwnerStats::default(); usize::from(handles)],
            shared: OwnerStats::default(),
            pages_deallocated: 0,
            background_collections: 0,
            foreground_collections: 0,
            forced_collections: 0,
            units_closed_by_host: 0,
            units_closed_early: 0,
            pages_redirected: 0,
        }
    }

    /// Same counters for a device with overhead.
    #[must_use]
    pub fn with_overhead(self, overhead: MediaOverhead) -> DeviceStats {
        DeviceStats { overhead, ..self }
    }

    /// Iterates over the owners with their counters. The handles come first, in order, then the
    /// shared pool.
    pub fn owners(&self) -> impl Iterator<Item = (UnitOwner, &OwnerStats)> {
        let handles = (0..).map(|handle| UnitOwner::from_handle(RuhId(handle))).zip(&self.handles);
        handles.chain([(UnitOwner::SHARED_POOL, &self.shared)])
    }

    /// Continues the counters of a device with the same number of handles. Keeps the reclaim units
    /// that this device opened at start.
    pub(crate) fn continue_from(&mut self, before: &DeviceStats) {
        assert_eq!(self.handles.len(), before.handles.len(), "the handles of a drive do not change in number");
        let opened: Vec<u64> = self.handles.iter().map(|row| row.units_opened).collect();
        let shared_opened = self.shared.units_opened;
        self.clone_from(before);
        for (row, opened) in self.handles.iter_mut().zip(opened) {
            row.units_opened += opened;
        }
        self.shared.units_opened += shared_opened;
    }

    /// Counters of an owner.
    pub fn owner(&self, owner: UnitOwner) -> &OwnerStats {
        owner.handle().map_or(&self.shared, |handle| &self.handles[usize::from(handle.0)])
    }

    pub(crate) fn owner_mut(&mut self, owner: UnitOwner) -> &mut OwnerStats {
        match owner.handle() {
            Some(handle) => &mut self.handles[usize::from(handle.0)],
            None => &mut self.shared,
        }
    }

    /// Sum over all owners.
    pub fn total(&self) -> OwnerStats {
        self.handles.iter().fold(self.shared, |total, row| total.combine(row, |a, b| a + b))
    }

    /// Difference from `earlier`, a previous copy of the same device's counters.
    pub fn since(&self, earlier: &DeviceStats) -> DeviceStats {
        assert_eq!(self.handles.len(), earlier.handles.len(), "both are counters of the same device");
        let fewer = |now: u64, then: u64| now.checked_sub(then).expect("no counter of a device falls");
        let counted = self.combine(earlier, fewer);
        DeviceStats { overhead: earlier.overhead.counting_from(earlier.data_pages()), ..counted }
    }

    /// Sum of the counters of two devices of the same kind. Overhead of less than a page of each is
    /// counted together.
    #[must_use]
    pub fn plus(&self, other: &DeviceStats) -> DeviceStats {
        assert_eq!(self.handles.len(), other.handles.len(), "both devices have the same handles");
        assert_eq!(self.page_bytes, other.page_bytes, "both devices have the same pages");
        self.combine(other, |one, other| one + other)
    }

    /// Combines each pair of counters. Page size and overhead stay.
    fn combine(&self, other: &DeviceStats, combine: fn(u64, u64) -> u64) -> DeviceStats {
        let rows = self.handles.iter().zip(&other.handles);
        DeviceStats {
            page_bytes: self.page_bytes,
            overhead: self.overhead,
            handles: rows.map(|(one, other)| one.combine(other, combine)).collect(),
            shared: self.shared.combine(&other.shared, combine),
            pages_deallocated: combine(self.pages_deallocated, other.pages_deallocated),
            background_collections: combine(self.background_collections, other.background_collections),
            foreground_collections: combine(self.foreground_collections, other.foreground_collections),
            forced_collections: combine(self.forced_collections, other.forced_collections),
            units_closed_by_host: combine(self.units_closed_by_host, other.units_closed_by_host),
            units_closed_early: combine(self.units_closed_early, other.units_closed_early),
            pages_redirected: combine(self.pages_redirected, other.pages_redirected),
        }
    }

    /// Host Bytes with Metadata Written (HBMW of the FDP statistics log, NVMe 2.1).
    pub fn host_bytes_written(&self) -> u64 {
        self.total().host_bytes_written
    }

    /// Pages programmed for data, which are host pages that were not absorbed, and the copies of
    /// collection and wear levelling.
    pub fn data_pages(&self) -> u64 {
        self.total().data_pages()
    }

    /// Pages that the drive wrote beside data (`geometry.media_overhead_share`).
    pub fn overhead_pages(&self) -> u64 {
        self.overhead.pages(self.data_pages())
    }

    /// Media Bytes with Metadata Written (MBMW), which are data and overhead.
    pub fn media_bytes_written(&self) -> u64 {
        (self.data_pages() + self.overhead_pages()) * self.page_bytes
    }

    /// Media Bytes Erased (MBE), without the flash of the overhead.
    pub fn media_bytes_erased(&self) -> u64 {
        self.total().pages_erased * self.page_bytes
    }

    /// Write amplification, MBMW / HBMW. `None` before any write.
    pub fn write_amplification(&self) -> Option<f64> {
        let host = self.host_bytes_written();
        (host > 0).then(|| to_f64(self.media_bytes_written()) / to_f64(host))
    }

    /// Adds one event. A fresh `DeviceStats` that receives every event of a device equals the
    /// device's own counters.
    pub fn apply(&mut self, event: &DeviceEvent) {
        match event {
            DeviceEvent::HostWrite(write) => {
                let row = self.owner_mut(UnitOwner::from_handle(write.placement.handle));
                row.host_bytes_written += write.host_bytes;
                row.host_pages_written += u64::from(write.pages);
            }
            DeviceEvent::Absorb { handle, pages } => {
                self.handles[handle.index()].host_pages_absorbed += u64::from(*pages);
            }
            DeviceEvent::Deallocate { pages } => self.pages_deallocated += u64::from(*pages),
            DeviceEvent::Redirect { pages, .. } => self.pages_redirected += u64::from(*pages),
            DeviceEvent::Open { owner, .. } => self.owner_mut(*owner).units_opened += 1,
            DeviceEvent::Close { reason, .. } => match reason {
                CloseReason::Full => {}
                CloseReason::HostUpdate => self.units_closed_by_host += 1,
                CloseReason::RoomNeeded | CloseReason::IsolationChanged => self.units_closed_early += 1,
            },
            DeviceEvent::LevelWear { owner, unit_pages, pages_copied, .. } => {
                let row = self.owner_mut(*owner);
                row.wear_levelling_pages += u64::from(*pages_copied);
                row.wear_levelling_pages_erased += u64::from(*unit_pages);
                row.pages_erased += u64::from(*unit_pages);
            }
            DeviceEvent::Reclaim(reclaim) => {
                match reclaim.trigger {
                    Trigger::Background => self.background_collections += 1,
                    Trigger::Foreground => self.foreground_collections += 1,
                    Trigger::Forced => self.forced_collections += 1,
                }
                assert!(
                    reclaim.pages_copied <= reclaim.valid_pages && reclaim.valid_pages <= reclaim.unit_pages,
                    "a collection copies valid pages of its reclaim unit and no others"
                );
                let row = self.owner_mut(reclaim.victim_owner);
                row.gc_pages_copied += u64::from(reclaim.pages_copied);
                row.blocks_remapped += u64::from(reclaim.blocks_remapped);
                let pages_remapped = reclaim.valid_pages - reclaim.pages_copied;
                row.pages_remapped += u64::from(pages_remapped);
                row.units_reclaimed += 1;
                row.pages_erased += u64::from(reclaim.unit_pages - pages_remapped);
                row.valid_pages_reclaimed += u64::from(reclaim.valid_pages);
                self.owner_mut(reclaim.destination_owner).gc_pages_received += u64::from(reclaim.pages_copied);
            }
        }
    }
}
