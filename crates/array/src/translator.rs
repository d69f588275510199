//! Translator of an array: host requests, rebuilds and scrubs to member I/O.

use workload::{IoRequest, PlacementIndex, RequestOperation};

use crate::PAGE_BYTES;
use crate::geometry::ArrayGeometry;
use crate::in_place;
use crate::log_structured::LogLayer;
use crate::member_io::{IoCause, IoList, MemberIo};
use crate::members::Members;
use crate::settings::{ArraySettings, DataPlacement, ParityPlacement, ResyncExtent};

/// An array of drives. See the crate.
#[derive(Clone, Debug)]
pub struct Array {
    settings: ArraySettings,
    members: Members,
    log: Option<LogLayer>,
}

impl Array {
    /// Creates an empty array of drives of `member_bytes` with `placement_count` placement indices.
    ///
    /// # Errors
    /// The settings are impossible, or the drives are too small. The message names the remedy.
    pub fn new(settings: &ArraySettings, member_bytes: u64, placement_count: u16) -> Result<Array, String> {
        let capacity_bytes = Array::capacity_of(settings, member_bytes, placement_count)?;
        let placements = settings.workload_placements(placement_count)?;
        let geometry = ArrayGeometry::new(settings, member_bytes);
        let log = settings
            .is_log_structured()
            .then(|| LogLayer::new(&geometry, settings.layer_over_provisioning(), placements))
            .transpose()?;
        let has_own = settings.parity_placement == ParityPlacement::OwnHandle;
        let parity_index = has_own.then(|| PlacementIndex(placement_count - 1));
        let keeps_live = !settings.events.is_empty();
        let members = Members::new(geometry, parity_index, keeps_live);
        let array = Array { settings: settings.clone(), members, log };
        assert_eq!(array.capacity_bytes(), capacity_bytes, "the capacity is that which was planned");
        Ok(array)
    }

    /// Capacity of an array of drives of this size, bytes. Takes no memory for maps.
    ///
    /// # Errors
    /// As [`Array::new`].
    pub fn capacity_of(settings: &ArraySettings, member_bytes: u64, placement_count: u16) -> Result<u64, String> {
        settings.check()?;
        let placements = settings.workload_placements(placement_count)?;
        let geometry = ArrayGeometry::new(settings, member_bytes);
        if geometry.rows == 0 {
            return Err(format!("chunk = {} is larger than a drive. Give a smaller one", settings.chunk));
        }
        match settings.is_log_structured() {
            true => LogLayer::host_pages(&geometry, settings.layer_over_provisioning(), placements)
                .map(|pages| pages * PAGE_BYTES),
            false => Ok(geometry.rows * geometry.row_bytes()),
        }
    }

    /// Capacity that the host sees, bytes.
    pub fn capacity_bytes(&self) -> u64 {
        let geometry = &self.members.geometry;
        self.log.as_ref().map_or(geometry.rows * geometry.row_bytes(), LogLayer::capacity_bytes)
    }

    /// Memory of the layer's maps in bytes, an upper bound for an array of this size.
    pub fn memory_bytes(settings: &ArraySettings, member_bytes: u64) -> u64 {
        let pages = u64::from(settings.drives) * (member_bytes / PAGE_BYTES);
        let live = if settings.events.is_empty() { 0 } else { pages / 8 };
        let log = if settings.is_log_structured() { 8 * pages } else { 0 };
        live + log
    }

    /// Bytes of the host that the log-structured layer has not written yet.
    pub fn buffered_bytes(&self) -> u64 {
        self.log.as_ref().map_or(0, |log| log.buffered_pages() * PAGE_BYTES)
    }

    pub fn stripe_bytes(&self) -> u64 {
        self.members.geometry.row_bytes()
    }

    /// Stripes of the array, which are the steps of a rebuild and of a scrub.
    pub fn rows(&self) -> u64 {
        self.members.geometry.rows
    }

    pub fn settings(&self) -> &ArraySettings {
        &self.settings
    }

    /// Returns true if every drive works and is rebuilt.
    pub fn is_whole(&self) -> bool {
        self.members.are_whole()
    }

    /// Appends the member I/O of a host request. The order is a valid order of execution.
    ///
    /// # Panics
    /// The request exceeds the array.
    pub fn translate(&mut self, request: &IoRequest, ios: &mut Vec<MemberIo>) {
        let bytes = request.offset_bytes..request.offset_bytes + u64::from(request.bytes);
        assert!(bytes.end <= self.capacity_bytes(), "a request for {bytes:?} exceeds the array");
        if bytes.is_empty() {
            return;
        }
        let first = ios.len();
        let (members, mut list) = (&mut self.members, IoList::new(ios));
        let placement = request.placement.filter(|_| self.settings.data_placement == DataPlacement::Kept);
        match (request.operation, &mut self.log) {
            (RequestOperation::Read, Some(log)) => log.read(members, &mut list, bytes),
            (RequestOperation::Read, None) => {
                for part in members.geometry.parts(bytes) {
                    members.read(&mut list, (part.row, part.column, &part.bytes), IoCause::Data);
                }
                members.end_read();
            }
            (RequestOperation::Write, Some(log)) => log.write(members, &mut list, bytes, placement),
            (RequestOperation::Write, None) => {
                in_place::write(members, self.settings.write_policy, &mut list, bytes, placement);
            }
            (RequestOperation::Trim, Some(log)) => log.trim(members, &mut list, bytes),
            (RequestOperation::Trim, None) => in_place::trim(members, &mut list, bytes),
        }
        assert!(ios[first..].iter().all(|io| io.drive < self.settings.drives), "I/O of a drive of the array");
    }

    pub fn fail(&mut self, drive: u16) {
        self.members.fail(drive);
    }

    /// Puts a new drive in the place of a failed one. It has no data yet.
    pub fn begin_rebuild(&mut self, drive: u16) {
        self.members.begin_rebuild(drive);
    }

    /// Appends the I/O that rebuilds a row of a drive. Rows follow each other from 0.
    pub fn rebuild_row(&mut self, drive: u16, row: u64, ios: &mut Vec<MemberIo>) {
        let mut list = IoList::new(ios);
        let geometry = &self.members.geometry;
        for bytes in self.resync_parts(row, drive) {
            let phases = [(IoCause::Rebuild, 0), (IoCause::Rebuild, 1)];
            if geometry.parity == 0 {
                let copies = geometry.copies;
                let of_group = drive / copies * copies..(drive / copies + 1) * copies;
                let mut others = of_group.into_iter().filter(|other| self.members.is_alive(*other, row));
                let source = others.next().expect("a copy is left");
                self.members.read_drive(&mut list, (source, row), &bytes, phases[0]);
            } else {
                let column = (0..geometry.data + geometry.parity)
                    .find(|column| geometry.drive(row, *column, 0) == drive)
                    .expect("each drive has a chunk of each row");
                let columns = self.members.columns_to_read(row, 1 << column);
                self.members.read_columns(&mut list, (row, columns), &bytes, phases[0]);
            }
            let placement = self.members.rebuilt_placement(row, drive);
            self.members.write_drive(&mut list, (drive, row), &bytes, phases[1], placement);
        }
        self.members.has_rebuilt(drive, row);
    }

    pub fn scrub_row(&self, row: u64, ios: &mut Vec<MemberIo>) {
        let mut list = IoList::new(ios);
        for drive in (0..self.settings.drives).filter(|drive| self.members.is_alive(*drive, row)) {
            for bytes in self.resync_parts(row, drive) {
                self.members.read_drive(&mut list, (drive, row), &bytes, (IoCause::Scrub, 0));
            }
        }
    }

    /// Parts of a chunk that a rebuild or scrub covers.
    fn resync_parts(&self, row: u64, drive: u16) -> Vec<std::ops::Range<u64>> {
        match self.settings.resync {
            ResyncExtent::Live => self.members.live_parts(row, drive),
            ResyncExtent::All => std::iter::once(0..self.members.geometry.chunk_bytes).collect(),
        }
    }
}
