//! Guest memory that the client shares: a sorted list of mapped files.
//!
//! Maps come and go at any time. The worker, which executes commands, owns the list, so that no
//! range is unmapped during an access. The list omits ranges without a file descriptor. An access
//! to such a range is a [`TerminationError`].
//!
//! An access also faults if the file of the memory was truncated or its file system is full (crate
//! `guest_memory`). The data of that command is not transferred. A controller whose queues are
//! affected fails. Other controllers are not affected.

use std::io;
use std::os::fd::OwnedFd;

use guest_memory::{AccessFault, SharedMapping};
use nvme::pcie::{HostMemory, MemoryFault};
use prefetch::NonTemporalBuf;
use rustix::io::Errno;

use crate::account::BudgetShare;

#[derive(Debug)]
pub struct GuestRange {
    start: u64,
    /// Address behind the last byte.
    end: u64,
    readable: bool,
    writable: bool,
    map: SharedMapping,
    _shares: [BudgetShare; 2],
}

impl GuestRange {
    /// Maps a range of a file as guest memory and keeps the shares taken for it.
    ///
    /// # Errors
    /// The range is empty, ends beyond the address space or the file, or the system does not map
    /// it.
    pub fn map(
        shares: [BudgetShare; 2],
        address: u64,
        bytes: u64,
        file: OwnedFd,
        offset: u64,
        readable: bool,
        writable: bool,
    ) -> io::Result<GuestRange> {
        let end = address.checked_add(bytes).filter(|end| *end > address).ok_or(Errno::INVAL)?;
        let map = SharedMapping::new(file, offset, bytes, writable)?;
        assert_eq!(map.bytes() as u64, bytes, "the range at {address:#x} is mapped as a whole");
        Ok(GuestRange { start: address, end, readable, writable, map, _shares: shares })
    }

    /// Publishes entries in the range, from `address` on. `offset` is the offset of `address` in
    /// the range.
    #[inline]
    fn publish(&self, address: u64, offset: usize, entries: &[[u8; 16]]) -> Result<(), MemoryFault> {
        if !self.writable || !offset.is_multiple_of(4) {
            return Err(MemoryFault { address });
        }
        self.map.publish(offset, entries).map_err(|AccessFault| MemoryFault { address })
    }
}

#[derive(Debug, Default)]
pub struct GuestMemory {
    /// Sorted by address, without overlap.
    ranges: Vec<GuestRange>,
}

impl GuestMemory {
    /// Adds a range.
    ///
    /// # Errors
    /// The range overlaps another one.
    pub fn add(&mut self, range: GuestRange) -> io::Result<()> {
        let at = self.ranges.partition_point(|other| other.end <= range.start);
        if self.ranges.get(at).is_some_and(|next| next.start < range.end) {
            return Err(Errno::EXIST.into());
        }
        assert!(at == 0 || self.ranges[at - 1].end <= range.start, "ranges are in order and do not overlap");
        self.ranges.insert(at, range);
        Ok(())
    }

    /// Removes all mapped ranges within an address range. Clients may also name ranges that were
    /// ignored when mapped.
    ///
    /// # Errors
    /// A mapped range lies only partly within it. No range is removed then.
    pub fn remove(&mut self, address: u64, bytes: u64) -> io::Result<()> {
        let end = address.checked_add(bytes).ok_or(Errno::INVAL)?;
        let inside = |range: &GuestRange| range.start >= address && range.end <= end;
        if self.ranges.iter().any(|range| range.start < end && range.end > address && !inside(range)) {
            return Err(Errno::INVAL.into());
        }
        self.ranges.retain(|range| !inside(range));
        let next = self.ranges.partition_point(|range| range.end <= address);
        assert!(
            self.ranges.get(next).is_none_or(|range| range.start >= end),
            "no memory is left from {address:#x} to {end:#x}"
        );
        Ok(())
    }

    /// Returns whether the client shares no memory.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The range that contains an address, and the offset in the range.
    #[inline]
    fn find(&self, address: u64) -> Result<(&GuestRange, usize), MemoryFault> {
        let at = self.ranges.partition_point(|range| range.end <= address);
        match self.ranges.get(at) {
            Some(range) if range.start <= address => Ok((range, (address - range.start) as usize)),
            _ => Err(MemoryFault { address }),
        }
    }

    /// Calls `copy` for each piece of the `bytes` from `address` on, with the piece's mapping, its
    /// offset there and its position in the transfer. More than one piece exists only if the
    /// transfer crosses ranges.
    #[inline]
    fn for_each_piece(
        &self,
        address: u64,
        bytes: usize,
        allowed: impl Fn(&GuestRange) -> bool,
        mut copy: impl FnMut(&SharedMapping, usize, std::ops::Range<usize>) -> Result<(), AccessFault>,
    ) -> Result<(), MemoryFault> {
        let mut done = 0;
        while done < bytes {
            let address = address.checked_add(done as u64).ok_or(MemoryFault { address })?;
            let (range, offset) = self.find(address)?;
            if !allowed(range) {
                return Err(MemoryFault { address });
            }
            let piece = done..done + (bytes - done).min(range.map.bytes() - offset);
            done = piece.end;
            copy(&range.map, offset, piece).map_err(|AccessFault| MemoryFault { address })?;
        }
        Ok(())
    }

    /// Locates a 32-bit number that is shared with the guest: its range, and its offset there.
    #[inline]
    fn number(&self, address: u64) -> Result<(&GuestRange, usize), MemoryFault> {
        let (range, offset) = self.find(address)?;
        if !offset.is_multiple_of(4) || range.map.bytes() - offset < 4 {
            return Err(MemoryFault { address });
        }
        Ok((range, offset))
    }
}

impl HostMemory for GuestMemory {
    #[inline]
    fn read(&self, address: u64, data: &mut [u8]) -> Result<(), MemoryFault> {
        self.for_each_piece(
            address,
            data.len(),
            |range| range.readable,
            |map, offset, piece| map.read(offset, &mut data[piece]),
        )
    }

    #[inline]
    fn read_into(&self, address: u64, mut room: NonTemporalBuf<'_>) -> Result<(), MemoryFault> {
        self.for_each_piece(
            address,
            room.len(),
            |range| range.readable,
            |map, offset, piece| map.read_into(offset, room.split_off_front(piece.len())),
        )
    }

    #[inline]
    fn append(&self, address: u64, bytes: usize, data: &mut Vec<u8>) -> Result<(), MemoryFault> {
        self.for_each_piece(
            address,
            bytes,
            |range| range.readable,
            |map, offset, piece| map.append(offset, piece.len(), data),
        )
    }

    #[inline]
    fn check_readable(&self, address: u64, bytes: usize) -> Result<(), MemoryFault> {
        self.for_each_piece(address, bytes, |range| range.readable, |_, _, _| Ok(()))
    }

    #[inline]
    fn write(&self, address: u64, data: &[u8]) -> Result<(), MemoryFault> {
        self.for_each_piece(
            address,
            data.len(),
            |range| range.writable,
            |map, offset, piece| map.write(offset, &data[piece]),
        )
    }

    #[inline]
    fn publish(&self, address: u64, entry: &[u8; 16]) -> Result<(), MemoryFault> {
        let (range, offset) = self.find(address)?;
        if range.map.bytes() - offset < entry.len() {
            // The entry crosses two ranges.
            let (start, last) = entry.split_last_chunk::<4>().expect("16 bytes");
            self.write(address, start)?;
            return self.store(address.wrapping_add(start.len() as u64), u32::from_le_bytes(*last));
        }
        range.publish(address, offset, std::slice::from_ref(entry))
    }

    #[inline]
    fn publish_all(&self, address: u64, entries: &[[u8; 16]]) -> Result<(), MemoryFault> {
        let (range, offset) = self.find(address)?;
        if range.map.bytes() - offset < size_of_val(entries) {
            // The entries cross two ranges.
            let places = (0..).map(|place| address.wrapping_add(place * 16));
            return places.zip(entries).try_for_each(|(place, entry)| self.publish(place, entry));
        }
        range.publish(address, offset, entries)
    }

    #[inline]
    fn load(&self, address: u64) -> Result<u32, MemoryFault> {
        match self.number(address)? {
            (range, offset) if range.readable => {
                let value = range.map.load(offset).map_err(|AccessFault| MemoryFault { address })?;
                Ok(u32::from_le(value))
            }
            _ => Err(MemoryFault { address }),
        }
    }

    #[inline]
    fn store(&self, address: u64, value: u32) -> Result<(), MemoryFault> {
        match self.number(address)? {
            (range, offset) if range.writable => {
                let stored = range.map.store(offset, value.to_le());
                stored.map_err(|AccessFault| MemoryFault { address })
            }
            _ => Err(MemoryFault { address }),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;
    use crate::account::GuestBudget;

    fn shares(bytes: u64) -> [BudgetShare; 2] {
        GuestBudget::new().take(bytes).unwrap()
    }

    fn range(address: u64, bytes: u64, writable: bool) -> GuestRange {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes).unwrap();
        GuestRange::map(shares(bytes), address, bytes, file, 0, true, writable).unwrap()
    }

    #[test]
    fn accesses_cross_ranges_and_end_at_holes() {
        let mut memory = GuestMemory::default();
        memory.add(range(0x2000, 0x1000, true)).unwrap();
        memory.add(range(0x1000, 0x1000, true)).unwrap();
        memory.write(0x1ffe, &[1, 2, 3, 4]).unwrap();
        let mut data = [0; 4];
        memory.read(0x1ffe, &mut data).unwrap();
        assert_eq!(data, [1, 2, 3, 4]);
        assert_eq!(memory.read(0x2ffe, &mut data), Err(MemoryFault { address: 0x3000 }));
        assert_eq!(memory.read(0xfff, &mut data), Err(MemoryFault { address: 0xfff }));
        assert_eq!(memory.read(u64::MAX, &mut data), Err(MemoryFault { address: u64::MAX }));
    }

    #[test]
    fn what_is_read_only_is_not_written() {
        let mut memory = GuestMemory::default();
        memory.add(range(0, 0x1000, false)).unwrap();
        assert_eq!(memory.load(0), Ok(0));
        assert_eq!(memory.write(0, &[1]), Err(MemoryFault { address: 0 }));
        assert_eq!(memory.store(4, 1), Err(MemoryFault { address: 4 }));
        assert_eq!(memory.load(2), Err(MemoryFault { address: 2 }), "not aligned");
    }

    #[test]
    fn entries_are_published_also_where_ranges_meet() {
        let mut memory = GuestMemory::default();
        memory.add(range(0x1000, 0x1000, true)).unwrap();
        memory.add(range(0x2000, 0x1000, true)).unwrap();
        memory.add(range(0x3000, 0x1000, false)).unwrap();
        let entry: [u8; 16] = std::array::from_fn(|at| at as u8);
        for address in [0x1000, 0x1ff0, 0x1ff4, 0x1ff8, 0x1ffc, 0x2ff0] {
            memory.publish(address, &entry).unwrap();
            let mut data = [0; 16];
            memory.read(address, &mut data).unwrap();
            assert_eq!(data, entry, "{address:#x}");
        }
        let entries: [[u8; 16]; 3] = std::array::from_fn(|at| [at as u8 + 1; 16]);
        for address in [0x1000, 0x1fd0, 0x1fe4, 0x1ff0, 0x1ffc, 0x2fd0] {
            memory.publish_all(address, &entries).unwrap();
            let mut data = [[0; 16]; 3];
            memory.read(address, data.as_flattened_mut()).unwrap();
            assert_eq!(data, entries, "{address:#x}");
        }
        assert_eq!(
            memory.publish_all(0x2fe0, &entries),
            Err(MemoryFault { address: 0x3000 }),
            "the last one is where nothing is written"
        );
        for (address, fault) in [(0x1002, 0x1002), (0x3000, 0x3000), (0x2ff4, 0x3000), (0x3ff8, 0x3ff8), (0, 0)] {
            assert_eq!(memory.publish(address, &entry), Err(MemoryFault { address: fault }), "{address:#x}");
        }
    }

    #[test]
    fn maps_do_not_overlap_and_are_taken_away_whole() {
        let mut memory = GuestMemory::default();
        memory.add(range(0x1000, 0x2000, true)).unwrap();
        assert_eq!(memory.add(range(0x2000, 0x1000, true)).unwrap_err().raw_os_error(), Some(17));
        assert!(memory.remove(0x1000, 0x1000).is_err());
        memory.remove(0x8000, 0x1000).unwrap();
        assert_eq!(memory.load(0x2000), Ok(0));
        memory.remove(0, 0x10000).unwrap();
        assert_eq!(memory.load(0x2000), Err(MemoryFault { address: 0x2000 }));
    }

    #[test]
    fn a_range_ends_in_its_file() {
        let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, 0x1000).unwrap();
        let copy = file.try_clone().unwrap();
        assert!(GuestRange::map(shares(0x2000), 0, 0x2000, copy, 0, true, true).is_err());
        assert!(GuestRange::map(shares(0x1000), u64::MAX, 0x1000, file, 0, true, true).is_err());
    }
}
