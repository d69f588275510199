//! A backend that stores a test pattern instead of data, for drives that are larger than the machine
//! and whose hosts verify their reads.
//!
//! Four bytes represent each page of 4 KiB: the generation of the [`pattern`] in the page. A page
//! written completely in the pattern of its own address reads back unchanged, so a host that writes
//! the pattern can verify its reads. Every other page reads as zeroes. Such a page was written
//! partly or with other data, or was discarded.

use std::sync::Arc;

use memmap2::MmapMut;
use nvme::{FlushHandle, Media, MediaError};

use super::{check_range, pattern};

/// Bytes represented by one generation.
const PAGE_BYTES: usize = 4096;

/// Stores only the pattern's generation of each page.
pub struct PatternBackend {
    /// A `u32` for each page, initially zero. Memory becomes resident on the first access.
    generations: MmapMut,
    capacity_bytes: u64,
}

impl PatternBackend {
    /// Memory in bytes that a completely written drive needs.
    pub fn memory_bytes(capacity_bytes: u64) -> u64 {
        capacity_bytes.div_ceil(PAGE_BYTES as u64) * size_of::<u32>() as u64
    }

    /// Creates an empty drive.
    ///
    /// # Errors
    /// The system has no address space for the generations.
    pub fn new(capacity_bytes: u64) -> std::io::Result<PatternBackend> {
        let generations = MmapMut::map_anon(PatternBackend::memory_bytes(capacity_bytes).max(1) as usize)?;
        #[cfg(target_os = "linux")]
        // Without transparent huge pages the call fails, and small pages are used.
        let _ = generations.advise(memmap2::Advice::HugePage);
        Ok(PatternBackend { generations, capacity_bytes })
    }

    fn generations(&mut self) -> &mut [u32] {
        let pages = self.capacity_bytes.div_ceil(PAGE_BYTES as u64) as usize;
        bytemuck::cast_slice_mut(&mut self.generations[..pages * size_of::<u32>()])
    }
}

/// Divides a range into pages: index of the page, first byte in the page, number of bytes.
fn pages(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, usize, usize)> {
    let end = offset + bytes;
    let first_page = offset / PAGE_BYTES as u64;
    let end_page = if bytes == 0 { first_page } else { end.div_ceil(PAGE_BYTES as u64) };
    (first_page..end_page).map(move |page| {
        let first = page * PAGE_BYTES as u64;
        let (from, to) = (offset.max(first), end.min(first + PAGE_BYTES as u64));
        (page, (from - first) as usize, (to - from) as usize)
    })
}

impl Media for PatternBackend {
    fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, data.len() as u64);
        let generations = self.generations();
        let mut rest = data;
        for (page, at, bytes) in pages(offset, rest.len() as u64) {
            let (part, behind) = rest.split_at_mut(bytes);
            let (address, generation) = (page * PAGE_BYTES as u64, generations[page as usize]);
            if bytes == PAGE_BYTES || generation == 0 {
                // Zeroes may have any length, because generation 0 has no blocks.
                match generation {
                    0 => part.fill(0),
                    _ => pattern::fill(address, generation, part),
                }
            } else {
                let mut whole = [0; PAGE_BYTES];
                pattern::fill(address, generation, &mut whole);
                part.copy_from_slice(&whole[at..at + bytes]);
            }
            rest = behind;
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, data.len() as u64);
        let generations = self.generations();
        let mut rest = data;
        for (page, _, bytes) in pages(offset, data.len() as u64) {
            let (part, behind) = rest.split_at(bytes);
            generations[page as usize] = match bytes {
                PAGE_BYTES => pattern::verify(page * PAGE_BYTES as u64, part).unwrap_or(0),
                _ => 0,
            };
            rest = behind;
        }
        Ok(())
    }

    fn discard(&mut self, offset: u64, bytes: u64) -> Result<(), MediaError> {
        check_range(self.capacity_bytes, offset, bytes);
        let generations = self.generations();
        for (page, ..) in pages(offset, bytes) {
            // Pages that were never written do not touch memory.
            if generations[page as usize] != 0 {
                generations[page as usize] = 0;
            }
        }
        Ok(())
    }

    fn store_state(&mut self, _state: &[u8]) -> Result<(), MediaError> {
        Ok(())
    }

    fn flush_handle(&self) -> Option<Arc<dyn FlushHandle>> {
        None
    }
}
