//! Drives of an array: which of them work, which pages hold data, and the I/O of a chunk.

use std::ops::Range;

use workload::{PlacementIndex, RequestOperation};

use crate::PAGE_BYTES;
use crate::geometry::ArrayGeometry;
use crate::member_io::{IoCause, IoList, MemberIo};
use crate::page_set::PageSet;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DriveState {
    Works,
    Failed,
    /// A new drive, which has the rows before this one.
    Rebuilt(u64),
}

/// Cause and phase of an I/O.
type IoStep = (IoCause, u8);

/// Part of a chunk: its row, its column and the bytes within it.
pub(crate) type Place<'a> = (u64, u16, &'a Range<u64>);

/// Drives of an array. See the module.
#[derive(Clone, Debug)]
pub(crate) struct Members {
    pub(crate) geometry: ArrayGeometry,
    states: Vec<DriveState>,
    /// Pages of each drive that hold data. Empty if no event needs them.
    live: Vec<PageSet>,
    /// Placement index of parity. `None`: that of the data.
    parity_index: Option<PlacementIndex>,
    /// Number of the next read of a mirror, which alternates between the copies.
    next_read: u64,
}

impl Members {
    pub(crate) fn new(geometry: ArrayGeometry, parity_index: Option<PlacementIndex>, keeps_live: bool) -> Members {
        let drives = usize::from(geometry.drives);
        let pages = geometry.rows * geometry.chunk_pages();
        Members {
            states: vec![DriveState::Works; drives],
            live: if keeps_live { vec![PageSet::with_room(pages); drives] } else { Vec::new() },
            geometry,
            parity_index,
            next_read: 0,
        }
    }

    pub(crate) fn is_alive(&self, drive: u16, row: u64) -> bool {
        match self.states[usize::from(drive)] {
            DriveState::Works => true,
            DriveState::Failed => false,
            DriveState::Rebuilt(end) => row < end,
        }
    }

    /// Returns true if every drive works and has all its rows.
    pub(crate) fn are_whole(&self) -> bool {
        self.states.iter().all(|state| *state == DriveState::Works)
    }

    pub(crate) fn fail(&mut self, drive: u16) {
        let state = &mut self.states[usize::from(drive)];
        assert_eq!(*state, DriveState::Works, "drive {drive} fails once");
        *state = DriveState::Failed;
    }

    /// Puts a new drive in the place of a failed one.
    pub(crate) fn begin_rebuild(&mut self, drive: u16) {
        let state = &mut self.states[usize::from(drive)];
        assert_eq!(*state, DriveState::Failed, "drive {drive} has not failed");
        *state = DriveState::Rebuilt(0);
    }

    pub(crate) fn has_rebuilt(&mut self, drive: u16, row: u64) {
        let state = &mut self.states[usize::from(drive)];
        assert_eq!(*state, DriveState::Rebuilt(row), "rows of drive {drive} are rebuilt in order");
        *state = match row + 1 == self.geometry.rows {
            true => DriveState::Works,
            false => DriveState::Rebuilt(row + 1),
        };
    }

    /// Working columns of a row, as bits.
    pub(crate) fn alive_columns(&self, row: u64) -> u64 {
        self.geometry.columns(row, |drive| self.is_alive(drive, row))
    }

    /// Columns to read to know these ones: themselves if they work, else as many as decode the row.
    pub(crate) fn columns_to_read(&self, row: u64, needed: u64) -> u64 {
        let alive = self.alive_columns(row);
        let mut read = needed & alive;
        if read == needed {
            return read;
        }
        let mut others = alive & !read;
        while read.count_ones() < u32::from(self.geometry.data) {
            assert!(others != 0, "row {row} has lost data");
            read |= others & others.wrapping_neg();
            others &= others - 1;
        }
        read
    }

    /// Pages that hold data, in runs within a chunk, in bytes within it.
    pub(crate) fn live_parts(&self, row: u64, drive: u16) -> Vec<Range<u64>> {
        let pages = self.geometry.chunk_pages();
        let first = row * pages;
        let runs = self.live[usize::from(drive)].runs(first..first + pages);
        let in_chunk = |page: u64| (page - first) * PAGE_BYTES;
        runs.into_iter().map(|run| in_chunk(run.start)..in_chunk(run.end)).collect()
    }

    fn io(&self, (drive, row): (u16, u64), bytes: &Range<u64>, (cause, phase): IoStep) -> MemberIo {
        assert!(bytes.end <= self.geometry.chunk_bytes && row < self.geometry.rows, "row {row}, {bytes:?}");
        MemberIo {
            drive,
            operation: RequestOperation::Read,
            offset_bytes: row * self.geometry.chunk_bytes + bytes.start,
            bytes: bytes.end - bytes.start,
            placement: None,
            cause,
            phase,
        }
    }

    pub(crate) fn read_drive(&self, list: &mut IoList<'_>, (drive, row): (u16, u64), bytes: &Range<u64>, step: IoStep) {
        assert!(self.is_alive(drive, row), "drive {drive} is read without data of row {row}");
        list.add(self.io((drive, row), bytes, step));
    }

    pub(crate) fn write_drive(
        &self,
        list: &mut IoList<'_>,
        place: (u16, u64),
        bytes: &Range<u64>,
        step: IoStep,
        placement: Option<PlacementIndex>,
    ) {
        let operation = RequestOperation::Write;
        list.add(MemberIo { operation, placement, ..self.io(place, bytes, step) });
    }

    pub(crate) fn read_columns(
        &self,
        list: &mut IoList<'_>,
        (row, columns): (u64, u64),
        bytes: &Range<u64>,
        step: IoStep,
    ) {
        for column in (0..u64::BITS as u16).filter(|column| columns >> column & 1 == 1) {
            self.read_drive(list, (self.geometry.drive(row, column, 0), row), bytes, step);
        }
    }

    /// Reads data of a column, if necessary from the other columns.
    pub(crate) fn read(&mut self, list: &mut IoList<'_>, (row, column, bytes): Place<'_>, cause: IoCause) {
        if self.geometry.parity == 0 {
            let copies: Vec<u16> = (0..self.geometry.copies)
                .map(|copy| self.geometry.drive(row, column, copy))
                .filter(|drive| self.is_alive(*drive, row))
                .collect();
            let drive = copies[(self.next_read % copies.len() as u64) as usize];
            return self.read_drive(list, (drive, row), bytes, (cause, 0));
        }
        let columns = self.columns_to_read(row, 1 << column);
        let cause = if columns == 1 << column { cause } else { IoCause::DegradedRead };
        self.read_columns(list, (row, columns), bytes, (cause, 0));
    }

    /// Ends a read request. The next one reads another copy.
    pub(crate) fn end_read(&mut self) {
        self.next_read += 1;
    }

    /// Writes a column on all its working drives. Failed drives miss it and get it by a rebuild.
    pub(crate) fn write(
        &mut self,
        list: &mut IoList<'_>,
        (row, column, bytes): Place<'_>,
        (cause, phase): IoStep,
        placement: Option<PlacementIndex>,
    ) {
        let is_parity = column >= self.geometry.data;
        let placement = self.parity_index.filter(|_| is_parity).or(placement);
        for copy in 0..self.geometry.copies {
            let drive = self.geometry.drive(row, column, copy);
            self.mark(drive, row, bytes, true);
            if self.is_alive(drive, row) {
                let cause = if copy > 0 { IoCause::Mirror } else { cause };
                self.write_drive(list, (drive, row), bytes, (cause, phase), placement);
            }
        }
    }

    /// Deallocates bytes of a column.
    pub(crate) fn trim(&mut self, list: &mut IoList<'_>, (row, column, bytes): Place<'_>, cause: IoCause) {
        for copy in 0..self.geometry.copies {
            let drive = self.geometry.drive(row, column, copy);
            self.mark(drive, row, bytes, false);
            if self.is_alive(drive, row) {
                let operation = RequestOperation::Trim;
                list.add(MemberIo { operation, ..self.io((drive, row), bytes, (cause, 1)) });
            }
        }
    }

    /// Deallocates all chunks of a row.
    pub(crate) fn trim_row(&mut self, list: &mut IoList<'_>, row: u64, cause: IoCause) {
        let chunk = 0..self.geometry.chunk_bytes;
        for column in 0..self.geometry.data + self.geometry.parity {
            self.trim(list, (row, column, &chunk), cause);
        }
    }

    /// Records that pages hold data. Pages that are partly deallocated still do.
    fn mark(&mut self, drive: u16, row: u64, bytes: &Range<u64>, holds_data: bool) {
        let Some(live) = self.live.get_mut(usize::from(drive)) else { return };
        let start = row * self.geometry.chunk_bytes;
        let (start, end) = (start + bytes.start, start + bytes.end);
        let pages = match holds_data {
            true => start / PAGE_BYTES..end.div_ceil(PAGE_BYTES),
            false => start.div_ceil(PAGE_BYTES)..end / PAGE_BYTES,
        };
        live.set(pages, holds_data);
    }

    /// Placement of rebuilt data. The layer does not know the directives of the lost data.
    pub(crate) fn rebuilt_placement(&self, row: u64, drive: u16) -> Option<PlacementIndex> {
        let columns = self.geometry.data..self.geometry.data + self.geometry.parity;
        let is_parity = columns.into_iter().any(|column| self.geometry.drive(row, column, 0) == drive);
        self.parity_index.filter(|_| is_parity)
    }
}
