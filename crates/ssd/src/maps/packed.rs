//! Packed reverse map of closed reclaim units, for drives that need little memory.
//!
//! ```text
//! open unit    the reverse map has 4 bytes for each run
//! pack         when the unit closes: the set of blocks of L2P entries that map a valid page of the
//!              unit, as distances between blocks, about a byte for each page written at random
//! unpack       before the unit is collected: searches these blocks for entries that point into
//!              the unit, and fills the reverse map again
//! ```
//!
//! The L2P map knows the order of the pages, so the set needs none. Pages of the set that have moved
//! since are not found any more. A distance of 255 or more takes several bytes, the first ones 255.
//! A block has as many entries as make the mean distance at most 32, which bounds the bytes of a
//! unit ([`PackedShape::slot_bytes`]).

use crate::cast::{count, index};
use crate::maps::{PageMaps, PageSize, ZeroedArray};
use crate::types::Ppn;
use prefetch::prefetch;

/// Largest mean distance of blocks.
const DISTANCE_MAX: u64 = 32;
/// Most entries of a block, 1 KiB. More would be searched for longer than they save memory.
const BLOCK_ENTRIES_MAX: u64 = 256;
/// A byte with this value adds to the next distance.
const MORE: u8 = u8::MAX;
/// Value of a slice that is not packed.
const NOT_PACKED: u32 = u32::MAX;
/// Logical page of an invalid page.
const NONE: u32 = u32::MAX;

/// Sizes of packed units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedShape {
    /// Binary logarithm of the entries of a block.
    block_bits: u32,
    slice_pages: u32,
    /// Most bytes of a unit of one slice. A unit of several slices has as many slots.
    slot_bytes: u32,
}

impl PackedShape {
    /// Returns `None` if packing would not save half of the memory, or if a region of the reverse
    /// map belongs to several units.
    pub(crate) fn new(logical_pages: u32, slice_pages: u32) -> Option<PackedShape> {
        let (logical_pages, pages) = (u64::from(logical_pages), u64::from(slice_pages));
        let block_entries = logical_pages.div_ceil(DISTANCE_MAX * pages).next_power_of_two().min(BLOCK_ENTRIES_MAX);
        let slot_bytes = pages + logical_pages.div_ceil(block_entries) / u64::from(MORE);
        (slice_pages.trailing_zeros() >= 6 && slot_bytes <= 2 * pages).then(|| PackedShape {
            block_bits: block_entries.trailing_zeros(),
            slice_pages,
            slot_bytes: u32::try_from(slot_bytes).expect("a slot has at most two bytes for each page of a slice"),
        })
    }

    /// Memory of the packed units of a drive, and of the work on a unit of `unit_pages` pages.
    pub(crate) fn memory_bytes(&self, logical_pages: u32, slices: u32, unit_pages: u32) -> u64 {
        let slots_bytes = u64::from(slices) * u64::from(self.slot_bytes + 4);
        slots_bytes + u64::from(logical_pages >> self.block_bits) / 8 + 4 * u64::from(unit_pages)
    }
}

/// Packed units of a drive.
#[derive(Clone)]
pub(super) struct PackedUnits {
    shape: PackedShape,
    /// A slot for each slice.
    bytes: ZeroedArray<u8>,
    /// Bytes of each packed unit, at its first slice.
    lengths: Vec<u32>,
    /// A bit for each block, zero between calls.
    blocks: Vec<u64>,
    /// Logical pages of a unit, or [`NONE`]. Empty between calls.
    logical: Vec<u32>,
}

/// Blocks of a packed unit in order.
#[derive(Clone)]
struct Blocks<'a> {
    bytes: std::slice::Iter<'a, u8>,
    next: u32,
}

impl Iterator for Blocks<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            let byte = *self.bytes.next()?;
            self.next += u32::from(byte);
            if byte != MORE {
                self.next += 1;
                return Some(self.next - 1);
            }
        }
    }
}

impl PackedUnits {
    fn new(shape: PackedShape, logical_pages: u32, physical_pages: u32) -> std::io::Result<PackedUnits> {
        let slices = index(physical_pages / shape.slice_pages);
        let blocks = ((logical_pages - 1) >> shape.block_bits) + 1;
        Ok(PackedUnits {
            shape,
            bytes: ZeroedArray::zeroed_on(slices * index(shape.slot_bytes), PageSize::Small)?,
            lengths: vec![NOT_PACKED; slices],
            blocks: vec![0; index(blocks.div_ceil(64))],
            logical: Vec::new(),
        })
    }

    /// Slice of a unit's first page, and the position of its slot.
    fn slot(&self, first: u32) -> (usize, usize) {
        assert!(first.is_multiple_of(self.shape.slice_pages), "a reclaim unit begins with a slice");
        let slice = index(first / self.shape.slice_pages);
        (slice, slice * index(self.shape.slot_bytes))
    }

    /// Adds the blocks of a run of logical pages.
    #[inline]
    fn add(&mut self, lpn: u32, pages: u32) {
        for block in lpn >> self.shape.block_bits..=(lpn + pages - 1) >> self.shape.block_bits {
            self.blocks[index(block / 64)] |= 1 << (block % 64);
        }
    }

    /// Stores the added blocks as those of a unit.
    fn store(&mut self, first: u32, pages: u32) {
        let (slice, start) = self.slot(first);
        assert_eq!(self.lengths[slice], NOT_PACKED, "reclaim unit at page {first} is packed twice");
        let slots = index(pages / self.shape.slice_pages) * index(self.shape.slot_bytes);
        let slot = &mut self.bytes.get_mut()[start..start + slots];
        let (mut length, mut next) = (0, 0);
        for (word, base) in self.blocks.iter_mut().zip((0..).step_by(64)) {
            let mut bits = std::mem::take(word);
            while bits != 0 {
                let block = base + bits.trailing_zeros();
                bits &= bits - 1;
                let mut distance = block - next;
                while distance >= u32::from(MORE) {
                    slot[length] = MORE;
                    length += 1;
                    distance -= u32::from(MORE);
                }
                slot[length] = u8::try_from(distance).expect("it is below MORE");
                length += 1;
                next = block + 1;
            }
        }
        self.lengths[slice] = count(length);
    }

    /// Removes the packed form of a unit and returns its blocks.
    fn take(&mut self, first: u32) -> Blocks<'_> {
        let (slice, start) = self.slot(first);
        let length = std::mem::replace(&mut self.lengths[slice], NOT_PACKED);
        assert_ne!(length, NOT_PACKED, "the reclaim unit at page {first} is not packed");
        Blocks { bytes: self.bytes.get()[start..start + index(length)].iter(), next: 0 }
    }
}

impl PageMaps {
    /// Packs the reverse map of closed reclaim units from now on, if that saves memory.
    ///
    /// # Errors
    /// The system has no address space for it.
    ///
    /// # Panics
    /// Panics if the drive has been written to.
    pub(crate) fn make_compact(&mut self, slice_pages: u32) -> std::io::Result<()> {
        let logical_pages = count(self.l2p_inverted.get().len());
        let Some(shape) = PackedShape::new(logical_pages, slice_pages) else {
            return Ok(());
        };
        self.packing = Some(PackedUnits::new(shape, logical_pages, self.reverse.physical_pages())?);
        self.reverse.make_compact();
        Ok(())
    }

    pub(crate) fn is_compact(&self) -> bool {
        self.packing.is_some()
    }

    /// Packs the pages of a unit that was closed, if the maps are compact.
    pub(crate) fn pack(&mut self, first: Ppn, pages: u32) {
        /// Pages of a batch. The last word of the bitmap may exceed it.
        const BATCH_PAGES: u32 = 512;
        let Some(mut packing) = self.packing.take() else { return };
        let (mut runs, mut cursor, end) = (Vec::new(), self.cursor(first), first.0 + pages);
        while cursor.is_before(end) {
            runs.clear();
            let mut gathered = 0;
            while cursor.is_before(end) && gathered < BATCH_PAGES {
                gathered += self.gather(&mut cursor, first.0, end, &mut runs);
            }
            runs.iter().for_each(|run| packing.add(run.lpn.0, run.pages));
        }
        packing.store(first.0, pages);
        self.packing = Some(packing);
        self.reverse.erase(first.0, pages);
    }

    /// Restores the pages of a packed unit before its collection.
    pub(crate) fn unpack(&mut self, first: Ppn, pages: u32) {
        /// Blocks between a prefetch and the search.
        const AHEAD: usize = 16;
        /// Entries in a cache line.
        const LINE_ENTRIES: usize = 16;
        let Some(mut packing) = self.packing.take() else { return };
        let (valid_pages, l2p) = (self.count_valid(first, pages), self.l2p_inverted.get());
        let mut logical = std::mem::take(&mut packing.logical);
        logical.resize(index(pages), NONE);
        let block_entries = 1 << packing.shape.block_bits;
        let blocks = packing.take(first.0);
        let mut later = blocks.clone().skip(AHEAD);
        for block in blocks {
            if let Some(later) = later.next() {
                let start = index(later) * block_entries;
                (start..start + block_entries).step_by(LINE_ENTRIES).for_each(|at| prefetch(l2p, at));
            }
            let start = index(block) * block_entries;
            let entries = &l2p[start..l2p.len().min(start + block_entries)];
            for (entry, lpn) in entries.iter().zip(count(start)..) {
                let offset = (!entry).wrapping_sub(first.0);
                if offset < pages {
                    logical[index(offset)] = lpn;
                }
            }
        }
        let mut found = 0;
        for (lpn, ppn) in logical.drain(..).zip(first.0..).filter(|(lpn, _)| *lpn != NONE) {
            self.reverse.append(ppn, lpn, 1);
            found += 1;
        }
        assert_eq!(found, valid_pages, "the packed reclaim unit at page {} lost pages", first.0);
        packing.logical = logical;
        self.packing = Some(packing);
    }

    /// A copy in which all units are unpacked.
    pub(crate) fn unpacked(&self, units: impl Iterator<Item = (Ppn, u32)>) -> PageMaps {
        let mut copy = self.clone();
        units.for_each(|(first, pages)| copy.unpack(first, pages));
        copy
    }
}
