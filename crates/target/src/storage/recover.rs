//! Recovery: makes the mapping of a device match the data file after a server that did not shut
//! down.
//!
//! The snapshot is older than the data. The file itself shows the pages with data, because
//! unwritten and discarded ranges are holes. Three repairs follow:
//!
//! - Data in a namespace that the device has not mapped is written to the device again, without
//!   placement directives.
//! - Mapped pages that are holes are deallocated. Zeroes written by a host may be a hole too, but
//!   read the same.
//! - Data and metadata outside all namespaces, left by a deleted one, are returned to the file
//!   system.
//!
//! A page overwritten since the snapshot keeps its flash address of that time, because it has data
//! before and after. Recovery therefore rebuilds the mapping but not its history. The counters are
//! those of the snapshot plus the repairs.

use std::fs::File;
use std::ops::Range;

use nvme::Namespace;
use nvme::media::{ByteRange, metadata_of};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use ssd::{Device, Lpn, RuhId, WriteRequest};

use crate::storage::backend::file::OpenDataFile;

/// Repairs made by a recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repairs {
    /// Pages with data that were not mapped.
    pub pages_mapped_again: u64,
    /// Mapped pages without data.
    pub pages_deallocated: u64,
    /// Bytes of data outside all namespaces.
    pub bytes_given_back: u64,
}

/// First range of data in a file from `at` on, `None` if only holes follow.
pub(super) fn next_data(file: &File, at: u64) -> std::io::Result<Option<Range<u64>>> {
    let start = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(start) => start,
        Err(Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(start))?;
    Ok(Some(start..end))
}

/// A range of pages and the handle for writing them again. Outside namespaces the handle is `None`.
struct Area {
    pages: Range<u32>,
    handle: Option<RuhId>,
}

/// Divides the drive into areas, in order and without gaps.
fn areas<'a>(namespaces: impl Iterator<Item = &'a Namespace>, logical_pages: u32) -> Vec<Area> {
    let mut owned: Vec<Area> = namespaces
        .flat_map(|namespace| {
            namespace.extents.iter().map(|extent| Area {
                pages: extent.first..extent.first + extent.pages,
                handle: Some(namespace.placement_handles[0]),
            })
        })
        .collect();
    owned.sort_by_key(|area| area.pages.start);
    let mut all = Vec::new();
    let mut at = 0;
    let unowned = |pages: Range<u32>| Area { pages, handle: None };
    for area in owned {
        assert!(area.pages.start >= at, "two namespaces have page {}", area.pages.start);
        all.push(unowned(at..area.pages.start));
        at = area.pages.end;
        all.push(area);
    }
    assert!(at <= logical_pages, "a namespace reaches beyond the drive");
    all.push(unowned(at..logical_pages));
    all.retain(|area| !area.pages.is_empty());
    let pages: u64 = all.iter().map(|area| u64::from(area.pages.end - area.pages.start)).sum();
    assert_eq!(pages, u64::from(logical_pages), "areas are the drive, without gaps");
    all
}

/// Makes the device's mapping match the data file.
pub(super) fn reconcile<'a>(
    device: &mut Device,
    namespaces: impl Iterator<Item = &'a Namespace>,
    storage: &OpenDataFile,
) -> std::io::Result<Repairs> {
    let page_bytes = device.layout().page_bytes;
    let logical_pages = device.layout().logical_pages;
    let areas = areas(namespaces, logical_pages);
    let live_pages_before = device.live_pages();
    let mut repair = Repair { device, done: Repairs::default() };
    // Pages before `page` and bytes before `byte` are finished. Metadata follows the last page.
    let (mut page, mut byte) = (0, 0);
    while let Some(data) = next_data(storage.file(), byte)? {
        byte = data.end;
        let first = u32::try_from(data.start / page_bytes).unwrap_or(u32::MAX).clamp(page, logical_pages);
        let end = u32::try_from(data.end.div_ceil(page_bytes)).unwrap_or(u32::MAX).clamp(first, logical_pages);
        repair.unmap(page..first);
        let after = areas.partition_point(|area| area.pages.end <= first);
        for area in areas[after..].iter().take_while(|area| area.pages.start < end) {
            let pages = area.pages.start.max(first)..area.pages.end.min(end);
            match area.handle {
                Some(handle) => repair.map(pages, handle),
                None => {
                    repair.unmap(pages.clone());
                    let bytes = u64::from(pages.end - pages.start) * page_bytes;
                    storage.discard(u64::from(pages.start) * page_bytes, bytes)?;
                    repair.done.bytes_given_back += bytes;
                }
            }
        }
        page = end;
    }
    repair.unmap(page..logical_pages);
    assert_eq!(
        repair.device.live_pages() + repair.done.pages_deallocated,
        live_pages_before + repair.done.pages_mapped_again,
        "every page that was mapped again or deallocated is counted once"
    );
    // The position of metadata follows from the position of its data, so no search is needed.
    let bytes = |pages: u32| u64::from(pages) * page_bytes;
    for area in areas.iter().filter(|area| area.handle.is_none()) {
        let data = ByteRange { offset: bytes(area.pages.start), bytes: bytes(area.pages.end - area.pages.start) };
        let metadata = metadata_of(bytes(logical_pages), data);
        storage.discard(metadata.offset, metadata.bytes)?;
    }
    Ok(repair.done)
}

struct Repair<'a> {
    device: &'a mut Device,
    done: Repairs,
}

impl Repair<'_> {
    /// Deallocates the mapped ones of these pages.
    fn unmap(&mut self, pages: Range<u32>) {
        if pages.is_empty() {
            return;
        }
        let before = self.device.stats().pages_deallocated;
        let done = self.device.deallocate(0, Lpn(pages.start), pages.end - pages.start);
        let _ = done.expect("the pages are the drive's");
        let deallocated = self.device.stats().pages_deallocated - before;
        assert!(deallocated <= u64::from(pages.end - pages.start), "{deallocated} of the pages {pages:?} were mapped");
        self.done.pages_deallocated += deallocated;
    }

    /// Writes the unmapped ones of these pages.
    fn map(&mut self, pages: Range<u32>, handle: RuhId) {
        /// The size of a host's large command.
        const PAGES_AT_ONCE: u32 = 64;
        let mut page = pages.start;
        while page < pages.end {
            let limit = pages.end.min(page + PAGES_AT_ONCE);
            let unmapped = (page..limit).take_while(|&page| self.device.lookup(Lpn(page)).is_none()).count() as u32;
            if unmapped > 0 {
                self.write(page, unmapped, handle);
            }
            // The next page is mapped or beyond the limit.
            page += (unmapped + 1).min(limit - page);
        }
        assert!(page == pages.end || pages.is_empty(), "page {page} is behind the last of {pages:?}");
    }

    fn write(&mut self, first: u32, pages: u32, handle: RuhId) {
        let write = WriteRequest {
            first: Lpn(first),
            pages,
            host_bytes: u64::from(pages) * self.device.layout().page_bytes,
            placement: self.device.default_placement(handle),
        };
        let done = self.device.write(0, &write);
        let _ = done.expect("namespaces lie inside the device and have its handles");
        self.done.pages_mapped_again += u64::from(pages);
    }
}
