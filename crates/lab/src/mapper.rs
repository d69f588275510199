//! From requests in bytes to extents of mapping units.

use ssd::{Layout, Lpn, Placement, RgId, RuhId, Write};
use workload::Request;

/// From bytes on the drive to its mapping units.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapper {
    /// Bits of an address within a mapping unit: a division for each request would show.
    page_bits: u32,
    groups: u16,
}

impl Mapper {
    /// The mapping of a device.
    pub(crate) fn new(layout: &Layout) -> Mapper {
        assert!(
            layout.page_bytes.is_power_of_two(),
            "layouts have mapping units of 4 to 64 KiB"
        );
        Mapper {
            page_bits: layout.page_bytes.trailing_zeros(),
            groups: layout.groups,
        }
    }

    /// All mapping units that a request touches.
    #[inline]
    pub(crate) fn extent(self, request: &Request) -> (Lpn, u32) {
        let first = request.offset_bytes >> self.page_bits;
        let end = self.pages_up(request.offset_bytes + u64::from(request.bytes));
        (Lpn(first as u32), (end - first) as u32)
    }

    /// Mapping units that hold this many bytes.
    #[inline]
    fn pages_up(self, bytes: u64) -> u64 {
        (bytes + (1 << self.page_bits) - 1) >> self.page_bits
    }

    /// Mapping units that a request covers: deallocation leaves a part of one as it is.
    pub(crate) fn whole_pages(self, request: &Request) -> Option<(Lpn, u32)> {
        let first = self.pages_up(request.offset_bytes);
        let end = (request.offset_bytes + u64::from(request.bytes)) >> self.page_bits;
        (end > first).then(|| (Lpn(first as u32), (end - first) as u32))
    }

    /// The write that a request is.
    #[inline]
    pub(crate) fn write(self, request: &Request) -> Write {
        let (first, pages) = self.extent(request);
        // The drive lists its placement identifiers handle by handle, the groups of each in a row.
        let placement = request.placement.map_or(Placement::DEFAULT, |index| Placement {
            group: RgId(index % self.groups),
            handle: RuhId(index / self.groups),
        });
        Write {
            first,
            pages,
            host_bytes: u64::from(request.bytes),
            placement,
        }
    }
}
