//! Places of data, copies and parity on the drives of an array.
//!
//! A row is a stripe: a chunk of each drive at the same offset. Data chunks have columns from 0,
//! parity chunks follow them.

use std::ops::Range;

use crate::PAGE_BYTES;
use crate::settings::{ArraySettings, ParityRotation};

/// Sizes of an array in drives, chunks and rows.
#[derive(Clone, Debug)]
pub(crate) struct ArrayGeometry {
    /// Drives without spares.
    pub(crate) drives: u16,
    pub(crate) data: u16,
    pub(crate) parity: u16,
    /// Copies of each data chunk.
    pub(crate) copies: u16,
    pub(crate) chunk_bytes: u64,
    pub(crate) rows: u64,
    rotation: ParityRotation,
}

/// Part of a chunk that a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkPart {
    pub(crate) row: u64,
    pub(crate) column: u16,
    /// Bytes within the chunk.
    pub(crate) bytes: Range<u64>,
}

impl ArrayGeometry {
    pub(crate) fn new(settings: &ArraySettings, member_bytes: u64) -> ArrayGeometry {
        let (data, parity, copies) = settings.shape();
        ArrayGeometry {
            drives: settings.drives,
            data,
            parity,
            copies,
            chunk_bytes: settings.chunk,
            rows: member_bytes / settings.chunk,
            rotation: settings.parity_rotation,
        }
    }

    pub(crate) fn row_bytes(&self) -> u64 {
        u64::from(self.data) * self.chunk_bytes
    }

    pub(crate) fn chunk_pages(&self) -> u64 {
        self.chunk_bytes / PAGE_BYTES
    }

    pub(crate) fn drive(&self, row: u64, column: u16, copy: u16) -> u16 {
        assert!(column < self.data + self.parity && copy < self.copies, "column {column}, copy {copy}");
        if self.parity == 0 {
            return column * self.copies + copy;
        }
        match self.rotation {
            ParityRotation::Dedicated => column,
            ParityRotation::LeftSymmetric => {
                let n = u64::from(self.drives);
                // The first parity chunk moves from the last drive down. Its column is `data`.
                let first_parity = n - 1 - row % n;
                let after = if column >= self.data { column - self.data } else { self.parity + column };
                ((first_parity + u64::from(after)) % n) as u16
            }
        }
    }

    /// Columns of a row on working drives, as bits.
    pub(crate) fn columns(&self, row: u64, is_alive: impl Fn(u16) -> bool) -> u64 {
        let columns = 0..self.data + self.parity;
        columns.filter(|column| is_alive(self.drive(row, *column, 0))).fold(0, |bits, column| bits | 1 << column)
    }

    /// Splits a range of the host's bytes into parts of chunks, in order.
    pub(crate) fn parts(&self, bytes: Range<u64>) -> impl Iterator<Item = ChunkPart> + use<> {
        let (chunk_bytes, data) = (self.chunk_bytes, u64::from(self.data));
        let chunks = bytes.start / chunk_bytes..bytes.end.div_ceil(chunk_bytes);
        chunks.map(move |chunk| {
            let start = chunk * chunk_bytes;
            let part = bytes.start.max(start) - start..bytes.end.min(start + chunk_bytes) - start;
            ChunkPart { row: chunk / data, column: (chunk % data) as u16, bytes: part }
        })
    }
}
