//! Translation of host requests, in bytes with placement indices, into extents of mapping units
//! with placements.

use ssd::{Device, DeviceLayout, EventSink, Lpn, Placement, PlacementIndex, PlacementList, RuhId, WriteRequest};
use workload::IoRequest;

/// Translator from a host's requests to the drive's pages and placements.
#[derive(Clone, Debug)]
pub(crate) struct RequestMapper {
    /// Address bits within a mapping unit. A division per request would be measurably slower.
    page_bits: u32,
    /// Placement of each placement index. Never empty.
    placements: Vec<Placement>,
}

impl RequestMapper {
    /// Creates the mapper of a device for a namespace with these placement handles.
    pub(crate) fn new(layout: &DeviceLayout, handles: &[RuhId]) -> RequestMapper {
        assert!(!handles.is_empty(), "a namespace has a placement handle");
        assert!(layout.page_bytes.is_power_of_two(), "layouts have mapping units of 4 to 64 KiB");
        RequestMapper {
            page_bits: layout.page_bytes.trailing_zeros(),
            placements: PlacementList::new(handles, layout.groups).iter().collect(),
        }
    }

    /// All mapping units that a request touches.
    #[inline]
    pub(crate) fn extent(&self, request: &IoRequest) -> (Lpn, u32) {
        let first = self.first_unit(request);
        let end = self.pages_up(request.offset_bytes + u64::from(request.bytes));
        (first, (end - u64::from(first.0)) as u32)
    }

    /// First mapping unit of a request.
    #[inline]
    pub(crate) fn first_unit(&self, request: &IoRequest) -> Lpn {
        Lpn((request.offset_bytes >> self.page_bits) as u32)
    }

    /// Mapping units that hold this many bytes.
    #[inline]
    fn pages_up(&self, bytes: u64) -> u64 {
        (bytes + (1 << self.page_bits) - 1) >> self.page_bits
    }

    /// Mapping units that a request covers completely. Deallocation leaves partial units unchanged.
    pub(crate) fn whole_pages(&self, request: &IoRequest) -> Option<(Lpn, u32)> {
        let first = self.pages_up(request.offset_bytes);
        let end = (request.offset_bytes + u64::from(request.bytes)) >> self.page_bits;
        (end > first).then(|| (Lpn(first as u32), (end - first) as u32))
    }

    /// Handle of a write with this placement index, or of a write without a directive.
    pub(crate) fn handle_of(&self, placement: Option<PlacementIndex>) -> RuhId {
        self.placements[placement.map_or(0, PlacementIndex::index)].handle
    }

    /// Placement of the next write without a directive.
    #[inline]
    pub(crate) fn default_placement<S: EventSink>(&self, device: &mut Device<S>) -> Placement {
        device.default_placement(self.placements[0].handle)
    }

    /// Translates a request into a write. Call it once per write in order, because writes without a
    /// directive alternate between placements.
    #[inline]
    pub(crate) fn write<S: EventSink>(&self, device: &mut Device<S>, request: &IoRequest) -> WriteRequest {
        let (first, pages) = self.extent(request);
        let placement = match request.placement {
            Some(index) => self.placements[index.index()],
            None => self.default_placement(device),
        };
        WriteRequest { first, pages, host_bytes: u64::from(request.bytes), placement }
    }
}
